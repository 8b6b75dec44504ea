// Drives a plugin in bulk: one word per cycle, an idle cycle now and then, results in order.
// Built once per plugin with MODEL and MODEL_HEADER set; the C functions are called through ctypes.
#include <cstdint>
#include <cstring>
#include <memory>

#include MODEL_HEADER
#include "verilated.h"

namespace {

constexpr std::size_t kWordBytes = WORD_BYTES;

// Any bits: plugins carry keep along.
constexpr std::uint64_t keep_of(std::uint64_t word) { return word * 0x9e3779b97f4a7c15U >> (64 - kWordBytes); }

struct Bench {
  VerilatedContext context;
  MODEL top{&context};

  void clock() {
    top.clk_i = 0;
    top.eval();
    top.clk_i = 1;
    top.eval();
  }
};

}  // namespace

extern "C" {

// out[i] = func[i](op0[i], op1[i]) for words of WORD_BYTES bytes; without a function, op1 passes if use1[i], otherwise
// op0. Side-band signals are checked against the word's number. Returns 0, or 1 + the number of the first word that
// came with a wrong side-band, or -1 if a result came early, late, or without a word.
std::int64_t unisono_plugin_run(std::uint64_t words, const std::uint8_t* func, const std::uint8_t* dtype,
                                const std::uint8_t* use1, const std::uint8_t* op0, const std::uint8_t* op1,
                                std::uint8_t* out, std::uint32_t latency, std::uint64_t seed) {
  auto bench = std::make_unique<Bench>();
  MODEL& top = bench->top;
  top.rst_ni = 0;
  top.enable_i = 0;
  for (int i = 0; i < 3; ++i) bench->clock();
  top.rst_ni = 1;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t cycle = 0;
  std::uint64_t random = seed | 1U;
  // When each of the newest words went in.
  std::uint64_t entered[64] = {};
  while (received < words) {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    const bool idle = sent == words || random % 8 == 0;
    top.enable_i = idle ? 0 : 1;
    // Idle words are garbage, and must leave no trace.
    const std::uint64_t word = idle ? random % words : sent;
    std::memcpy(&top.op0_i, op0 + word * kWordBytes, kWordBytes);
    std::memcpy(&top.op1_i, op1 + word * kWordBytes, kWordBytes);
    top.func_i = func[word];
    top.dtype_i = dtype[word];
    top.swap_i = random >> 20U & 1U;
    const bool both = func[word] != 0;
    top.use0_i = both || use1[word] == 0;
    top.use1_i = both || use1[word] != 0;
    top.keep_i = keep_of(word);
    top.last_i = word >> 1U & 1U;
    top.user_i = static_cast<std::uint32_t>(word);
    if (!idle) entered[sent++ % 64] = cycle;
    bench->clock();
    ++cycle;
    if (top.valid_o) {
      if (received == sent || cycle - entered[received % 64] != latency) return -1;
      if (top.keep_o != keep_of(received) || top.last_o != (received >> 1U & 1U) ||
          top.user_o != static_cast<std::uint32_t>(received)) {
        return static_cast<std::int64_t>(received) + 1;
      }
      std::memcpy(out + received++ * kWordBytes, &top.data_o, kWordBytes);
    }
    if (received < sent && cycle - entered[received % 64] > latency) return -1;
  }
  return 0;
}
}
