// One direction of a cable: words arrive in order, a fixed number of cycles after they were sent. Nothing is lost, and
// nothing is added. Beside them go, the other way, the places that the receiver has free again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/network/cables.hpp"
#include "sim/network/carrier.hpp"
#include "sim/network/ring.hpp"

namespace unisono::sim {

/// A word of a packet, as the transport gives it to the wire.
struct WireWord {
  std::array<std::uint32_t, kWordBytes / 4> words{};
  std::uint8_t channel = 0;
  bool last = false;
};

class Wire {
 public:
  explicit Wire(const CableSettings& settings) : settings_(settings) {}

  /// Whether the wire takes a word in this cycle. Cycles may be left out in which nothing is sent.
  bool ready(std::uint64_t cycle) {
    const std::uint64_t cost = kWordBytes * settings_.rate.cycles;
    // What is left over of a cycle counts for the next word; an idle wire saves nothing up.
    for (; seen_ < cycle + 1 && budget_ < cost; ++seen_) budget_ += settings_.rate.bytes;
    seen_ = cycle + 1;
    return budget_ >= cost;
  }
  void send(std::uint64_t cycle, const WireWord& word) {
    budget_ -= kWordBytes * settings_.rate.cycles;
    words_.push({cycle + settings_.propagation, word});
  }
  /// What arrives in this cycle, or null; to be taken then.
  const WireWord* arriving(std::uint64_t cycle) const {
    return !words_.empty() && words_.front().due <= cycle ? &words_.front().value : nullptr;
  }
  void take() { words_.pop(); }

  /// The receiver's: a bit for each channel of which a place is free again.
  void free(std::uint64_t cycle, std::uint32_t channels) {
    if (channels != 0) freed_.push({cycle + settings_.propagation, channels});
  }
  /// Those that the sender hears of in this cycle; to be called once in each.
  std::uint32_t freed(std::uint64_t cycle) {
    if (freed_.empty() || freed_.front().due > cycle) return 0;
    const std::uint32_t channels = freed_.front().value;
    freed_.pop();
    return channels;
  }

  /// The next cycle in which something arrives at either end; Carrier::kNever if nothing is under way.
  std::uint64_t next() const {
    const std::uint64_t word = words_.empty() ? Carrier::kNever : words_.front().due;
    return std::min(word, freed_.empty() ? Carrier::kNever : freed_.front().due);
  }

 private:
  template <class T>
  struct Due {
    std::uint64_t due = 0;
    T value{};
  };
  CableSettings settings_;
  std::uint64_t budget_ = 0, seen_ = 0;
  Ring<Due<WireWord>> words_;
  Ring<Due<std::uint32_t>> freed_;
};

}  // namespace unisono::sim
