#include "sim/switch_rtl/switch_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>

#include "Vunisono_switch_unit.h"
#include "core/header.hpp"
#include "verilated.h"

namespace unisono::sim {

namespace {

constexpr std::size_t kWord = SwitchModel::kWordBytes;
constexpr std::size_t kLanes = kWord / 4;  // 32-bit words of one
// Between what goes in and the last that comes of it there are fewer cycles: the longest way is a fold of all ports.
constexpr std::uint64_t kQuietCycles = 512;

}  // namespace

struct SwitchModel::Inside {
  VerilatedContext context;  // before the model: it must outlive it
  Vunisono_switch_unit top{&context};
  std::uint64_t cycle = 0, busy_until = 0;
  struct Port {
    std::deque<InWord> in;
    std::uint32_t frame_bytes = 0;  ///< of the frame that comes out; 0: the next word begins one
  };
  std::array<Port, kPorts> ports;
  std::deque<OutWord> out;

  void clock() {
    top.clk_i = 1;
    top.eval();
    top.clk_i = 0;
    top.eval();
    ++cycle;
  }

  void write(std::uint32_t word, std::uint32_t data) {
    top.reg_valid_i = 1;
    top.reg_write_i = 1;
    top.reg_word_i = static_cast<std::uint16_t>(word);
    top.reg_data_i = data;
    step();
    top.reg_valid_i = 0;
  }

  std::uint32_t read(std::uint32_t word) {
    top.reg_valid_i = 1;
    top.reg_write_i = 0;
    top.reg_word_i = static_cast<std::uint16_t>(word);
    step();
    top.reg_valid_i = 0;
    step();  // a read takes two cycles
    return top.reg_data_o;
  }

  void step() {
    Verilated::threadContextp(&context);
    top.in_valid_i = top.in_last_i = 0;
    for (std::size_t p = 0; p < kPorts; ++p) {
      Port& port = ports[p];
      if (port.in.empty()) continue;
      const InWord& word = port.in.front();
      top.in_valid_i |= 1U << p;
      std::memcpy(&top.in_data_i[p * kLanes], word.data.data(), kWord);
      const std::uint64_t keep = word.bytes == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << word.bytes) - 1;
      top.in_keep_i[2 * p] = static_cast<std::uint32_t>(keep);
      top.in_keep_i[2 * p + 1] = static_cast<std::uint32_t>(keep >> 32U);
      if (word.last) top.in_last_i |= 1U << p;
      busy_until = cycle + kQuietCycles;
    }
    top.eval();
    const std::uint32_t taken = top.in_valid_i & top.in_ready_o;
    for (std::size_t p = 0; p < kPorts; ++p) {
      Port& port = ports[p];
      if ((top.out_valid_o >> p & 1U) != 0) {
        take_out(p);
        busy_until = cycle + kQuietCycles;
      }
      if ((taken >> p & 1U) != 0) port.in.pop_front();
    }
    clock();
  }

  void take_out(std::size_t p) {
    OutWord word;
    std::memcpy(word.data.data(), &top.out_data_o[p * kLanes], kWord);
    const std::uint64_t keep = top.out_keep_o[2 * p] | std::uint64_t{top.out_keep_o[2 * p + 1]} << 32U;
    word.bytes = static_cast<std::uint32_t>(std::popcount(keep));
    word.last = (top.out_last_o >> p & 1U) != 0;
    word.port = static_cast<std::uint32_t>(p);
    word.address = top.out_address_o[p / 2] >> 16U * (p % 2) & 0xffffU;
    word.control = (top.out_control_o >> p & 1U) != 0;
    std::uint32_t& frame_bytes = ports[p].frame_bytes;
    word.first = frame_bytes == 0;
    if (word.first) {
      HeaderWords header;
      static_assert(sizeof header == kWord);
      std::memcpy(header.data(), word.data.data(), kWord);
      frame_bytes = static_cast<std::uint32_t>(kWord) + (word.last ? 0 : decode_header(header).segment_bytes);
    }
    word.frame_bytes = frame_bytes;
    if (word.last) frame_bytes = 0;
    out.push_back(word);
  }
};

SwitchModel::SwitchModel() : inside_(std::make_unique<Inside>()) {
  auto& top = inside_->top;
  top.rst_ni = 0;
  top.reg_valid_i = 0;
  top.in_valid_i = 0;
  top.out_ready_i = static_cast<std::uint8_t>((1U << kPorts) - 1);
  top.clk_i = 0;
  top.eval();
  for (int i = 0; i < 16; ++i) inside_->clock();
  top.rst_ni = 1;
  inside_->cycle = 0;
}

// What Verilator's classes leave behind they take out of the thread's context.
SwitchModel::~SwitchModel() { Verilated::threadContextp(&inside_->context); }

void SwitchModel::open(std::uint32_t entry, const UnitTerms& terms) {
  const std::uint32_t table = 64 * entry, rest = 0x8000 + 64 * entry;
  const auto write = [&](std::uint32_t word, std::uint32_t data) { inside_->write(word, data); };
  write(table + 7, 0);
  // But for word 7 these are the bytes of the entry.
  std::array<std::uint32_t, sizeof(slots::EntryHead) / 4> head{};
  std::memcpy(head.data(), &terms.entry.head, sizeof head);
  for (std::uint32_t i = 0; i < 7; ++i) write(table + i, head[i]);
  for (std::uint32_t i = 0; i < terms.entry.ports.size(); ++i) {
    write(table + 8 + 2 * i, terms.entry.ports[i].first);
    write(table + 9 + 2 * i, terms.entry.ports[i].word);
  }
  write(rest + 0, terms.rank);
  write(rest + 1, terms.eager_limit);
  write(rest + 2, terms.segment_bytes);
  write(rest + 3, terms.credits);
  for (std::uint32_t p = 0; p < kPorts; ++p) {
    const UnitTerms::Neighbour& one = terms.neighbours[p];
    write(rest + 8 + 2 * p, one.rank | (one.is_switch ? 1U << 31U : 0U));
    write(rest + 9 + 2 * p, one.address);
  }
  write(rest + 4, 0);
  for (std::uint32_t i = 0; i < kRuns + 2; ++i) inside_->step();
  write(table + 7, 1);
}

void SwitchModel::close(std::uint32_t entry) { inside_->write(64 * entry + 7, 0); }

void SwitchModel::push(std::uint32_t port, const InWord& word) {
  inside_->ports.at(port).in.push_back(word);
  inside_->busy_until = inside_->cycle + kQuietCycles;
}

void SwitchModel::push(std::uint32_t port, std::span<const std::byte> frame) {
  for (std::size_t at = 0; at < frame.size(); at += kWord) {
    InWord word;
    word.bytes = static_cast<std::uint32_t>(std::min(kWord, frame.size() - at));
    word.last = at + word.bytes == frame.size();
    std::memcpy(word.data.data(), frame.data() + at, word.bytes);
    push(port, word);
  }
}

std::optional<SwitchModel::OutWord> SwitchModel::pop() {
  if (inside_->out.empty()) return std::nullopt;
  const OutWord word = inside_->out.front();
  inside_->out.pop_front();
  return word;
}

void SwitchModel::tick() { inside_->step(); }

bool SwitchModel::is_quiet() const { return inside_->cycle >= inside_->busy_until; }

std::uint64_t SwitchModel::cycle() const { return inside_->cycle; }

std::vector<SwitchModel::Wait> SwitchModel::waits(std::uint32_t entry) const {
  constexpr std::uint32_t kWays = 2 * kRuns, kFields = 4, kWaits = 1U << 31U, kTakes = 1U << 5U, kOpcode = kTakes - 1;
  std::vector<Wait> found;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    const std::uint32_t words = 0x8000 + kFields * (kWays * entry + way);
    const std::uint32_t what = inside_->read(words + 1);
    if ((what & kWaits) == 0) continue;
    found.push_back({inside_->read(words), static_cast<Collective>(what & kOpcode), (what & kTakes) != 0,
                     inside_->read(words + 2)});
  }
  std::sort(found.begin(), found.end(),
            [](const Wait& a, const Wait& b) { return static_cast<std::int32_t>(a.sequence - b.sequence) < 0; });
  return found;
}

SwitchModel::Counters SwitchModel::counters() const {
  const auto& top = inside_->top;
  Counters counters{top.counter_messages_o, top.counter_mismatches_o, 0, 0, 0};
  for (std::uint32_t p = 0; p < kPorts; ++p) {
    counters.arrived += top.counter_arrived_o[p];
    counters.faults += top.counter_faults_o[p];
    counters.bad_frames += top.counter_bad_frames_o[p];
  }
  return counters;
}

}  // namespace unisono::sim
