// Bytes per cycle as an exact fraction, and the time at which a serialiser is free again.
#pragma once

#include <cstdint>
#include <numeric>

namespace unisono::sim {

/// `bytes` bytes every `cycles` cycles, in lowest terms.
struct Rate {
  std::uint64_t bytes = 50;
  std::uint64_t cycles = 1;

  /// A link of `mbps` Mb/s seen by a clock of `khz` kHz: 100 Gb/s at 250 MHz are 50 bytes per cycle.
  static constexpr Rate of(std::uint64_t mbps, std::uint64_t khz) {
    const std::uint64_t number = mbps * 125, per = khz;  // mbps * 1e6 / 8 bytes a second over khz * 1e3 cycles a second
    const std::uint64_t common = std::gcd(number, per);
    return {number / common, per / common};
  }
  friend constexpr bool operator==(const Rate&, const Rate&) = default;
  /// Whether this rate is less than another.
  constexpr bool below(const Rate& other) const { return bytes * other.cycles < other.bytes * cycles; }
};

/// When a serialiser has sent all it was given: `cycle()` whole cycles and `part / rate.bytes` of the next. No rounding
/// ever happens, so a link that is kept busy carries exactly its rate.
class Serialiser {
 public:
  static constexpr std::uint32_t kWord = 64;

  Serialiser() : Serialiser(Rate{}) {}
  explicit Serialiser(Rate rate)
      : rate_(rate), word_cycles_(kWord * rate.cycles / rate.bytes), word_part_(kWord * rate.cycles % rate.bytes) {}

  const Rate& rate() const { return rate_; }
  /// The first cycle in which something more can be begun.
  std::uint64_t cycle() const { return cycle_; }
  /// The first cycle at whose start everything has been sent.
  std::uint64_t done() const { return cycle_ + (part_ != 0 ? 1 : 0); }

  /// Nothing is begun before cycle `now`.
  void wait_until(std::uint64_t now) {
    if (cycle_ < now) {
      cycle_ = now;
      part_ = 0;
    }
  }
  void send(std::uint64_t bytes) {
    if (bytes == kWord) {
      cycle_ += word_cycles_;
      part_ += word_part_;
    } else {
      const std::uint64_t time = bytes * rate_.cycles;
      cycle_ += time / rate_.bytes;
      part_ += time % rate_.bytes;
    }
    if (part_ >= rate_.bytes) {
      part_ -= rate_.bytes;
      ++cycle_;
    }
  }

 private:
  Rate rate_;
  std::uint64_t word_cycles_, word_part_;
  std::uint64_t cycle_ = 0, part_ = 0;
};

}  // namespace unisono::sim
