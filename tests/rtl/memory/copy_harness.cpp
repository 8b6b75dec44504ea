// Copies within memory through unisono_memory_copy_bench, on the simulated memory of sim/memory.
//
// usage: copy_harness <seed> <copies> <beat bytes> <id width>
// Each seed is another memory (latency, bandwidth, stalls, order) and another series of copies. Every copy is compared
// when its completion comes, with the bytes around it. Ends with "ok <copies> <bytes> <cycles>", or says what is wrong.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "Vtop.h"
#include "sim/memory/axi_memory.hpp"
#include "sim/memory/axi_pins.hpp"
#include "verilated.h"

namespace {

using Random = std::mt19937_64;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kSource = 0xFFFF'FFFF'0000'0000;
constexpr std::uint64_t kSourceBytes = 1U << 18U;
constexpr std::uint64_t kTarget = 0x12'3456'0000'0000;
constexpr std::uint64_t kSlots = 64;
constexpr std::uint64_t kSlotBytes = 32768;
constexpr std::uint64_t kGuard = 128;

struct Copy {
  std::uint64_t from, to;
  std::uint32_t bytes;
};

unisono::sim::AxiMemoryConfig random_memory(Random& random, unsigned beat_bytes) {
  unisono::sim::AxiMemoryConfig config{.beat_bytes = beat_bytes, .seed = random()};
  config.read_latency = 1 + static_cast<unsigned>(random() % 80);
  config.write_latency = 1 + static_cast<unsigned>(random() % 80);
  config.jitter = random() % 2 != 0 ? static_cast<unsigned>(random() % 60) : 0;
  config.bandwidth_cycles = 1 + static_cast<unsigned>(random() % 4);
  config.bandwidth_beats = 1 + static_cast<unsigned>(random() % config.bandwidth_cycles);
  config.shared_bus = random() % 2 != 0;
  config.reorder = random() % 2 != 0;
  config.outstanding = 1 + static_cast<unsigned>(random() % 32);
  for (unsigned* stall : {&config.stall_ar, &config.stall_r, &config.stall_aw, &config.stall_w, &config.stall_b}) {
    *stall = random() % 2 != 0 ? static_cast<unsigned>(random() % 200) : 0;
  }
  return config;
}

Copy random_copy(Random& random, std::uint64_t number) {
  const auto one_of = [&](std::initializer_list<std::uint64_t> list) {
    return *(list.begin() + random() % list.size());
  };
  const std::uint64_t bytes = one_of({0, 1, random() % 130, random() % 1000, random() % 12288, 4096});
  const std::uint64_t from =
      random() % 3 != 0 ? random() % (kSourceBytes - 12288) : 4096 * (random() % 32) + 4096 - random() % 70;
  const std::uint64_t to = one_of({0, random() % 4096, 4096 - random() % 70, 64 * (random() % 64)});
  return {kSource + from, kTarget + number % kSlots * kSlotBytes + kGuard + to, static_cast<std::uint32_t>(bytes)};
}

}  // namespace

double sc_time_stamp() { return 0; }

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const auto number_of = [&](int index) { return std::strtoull(arguments[index], nullptr, 0); };
  Random random(number_of(1));
  const std::uint64_t copies = number_of(2);
  const auto beat_bytes = static_cast<unsigned>(number_of(3));
  const auto id_width = static_cast<unsigned>(number_of(4));

  VerilatedContext context;
  Vtop top(&context);
  unisono::sim::AxiMemory memory(random_memory(random, beat_bytes));
  unisono::sim::AxiPins pins;
  unisono::sim::bind_read_pins(pins, top, id_width, 64, beat_bytes);
  unisono::sim::bind_write_pins(pins, top, id_width, 64, beat_bytes);

  Bytes source(kSourceBytes);
  for (auto& byte : source) byte = static_cast<std::uint8_t>(random());
  memory.write(0, kSource, source);
  Bytes target(kSlots * kSlotBytes);
  for (auto& byte : target) byte = static_cast<std::uint8_t>(random());
  memory.write(0, kTarget, target);

  std::deque<Copy> to_read, to_write, open;
  std::uint64_t made = 0, finished = 0, bytes = 0, cycles = 0, quiet = 0;
  const unsigned pause = static_cast<unsigned>(random() % 3) * 60;
  top.rst_ni = 0;
  while (finished < copies) {
    // Inputs of this cycle were set after the last edge.
    top.clk_i = 0;
    top.eval();
    const bool running = top.rst_ni != 0;
    const bool took_read = running && top.read_valid_i != 0 && top.read_ready_o != 0;
    const bool took_write = running && top.write_valid_i != 0 && top.write_ready_o != 0;
    const bool done = running && top.done_valid_o != 0 && top.done_ready_i != 0;
    const std::uint16_t user = top.done_user_o;
    if (top.read_error_o != 0 || (done && top.done_error_o != 0)) {
      std::printf("an error that nobody made, cycle %llu\n", static_cast<unsigned long long>(cycles));
      return 1;
    }
    if (running) memory.tick(0, pins.sample(0));
    top.clk_i = 1;
    top.eval();

    if (took_read) to_read.pop_front();
    if (took_write) to_write.pop_front();
    if (done) {
      const Copy copy = open.front();
      open.pop_front();
      if (user != (finished & 0xFFFFU)) {
        std::printf("completion %u instead of %llu\n", user, static_cast<unsigned long long>(finished));
        return 1;
      }
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(copy.from - kSource), copy.bytes,
                  target.begin() + static_cast<std::ptrdiff_t>(copy.to - kTarget));
      Bytes got(copy.bytes + 2 * kGuard);
      memory.read(0, copy.to - kGuard, got);
      if (!std::equal(got.begin(), got.end(),
                      target.begin() + static_cast<std::ptrdiff_t>(copy.to - kGuard - kTarget))) {
        std::printf("copy %llu of %u bytes from %#llx to %#llx is wrong\n", static_cast<unsigned long long>(finished),
                    copy.bytes, static_cast<unsigned long long>(copy.from), static_cast<unsigned long long>(copy.to));
        return 1;
      }
      ++finished;
      bytes += copy.bytes;
    }
    quiet = done ? 0 : quiet + 1;
    if (quiet > 100000) {
      std::printf("nothing happens any more after %llu copies\n", static_cast<unsigned long long>(finished));
      return 1;
    }

    // Fewer copies on their way than places, so that no two write the same bytes.
    if (made < copies && open.size() < kSlots - 2 && random() % 4 != 0) {
      const Copy copy = random_copy(random, made++);
      to_read.push_back(copy);
      to_write.push_back(copy);
      open.push_back(copy);
    }
    pins.drive(0, memory.outputs(0));
    top.rst_ni = cycles > 5 ? 1 : 0;
    top.read_valid_i = !to_read.empty() && (top.read_valid_i != 0 || random() % 3 != 0) && running;
    if (top.read_valid_i != 0) top.read_address_i = to_read.front().from, top.read_bytes_i = to_read.front().bytes;
    top.write_valid_i = !to_write.empty() && (top.write_valid_i != 0 || random() % 3 != 0) && running;
    if (top.write_valid_i != 0) {
      top.write_address_i = to_write.front().to;
      top.write_bytes_i = to_write.front().bytes;
      top.write_user_i = static_cast<std::uint16_t>(made - to_write.size());
    }
    top.pause_i = random() % 256 < pause;
    top.done_ready_i = random() % 256 >= pause;
    ++cycles;
  }
  top.final();
  Bytes all(target.size());
  memory.read(0, kTarget, all);
  if (all != target) {
    std::printf("bytes were written where nothing should be\n");
    return 1;
  }
  std::printf("ok %llu %llu %llu\n", static_cast<unsigned long long>(finished), static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(cycles));
  return 0;
}
