// Pseudo-random numbers for schedules, mixes of channels and mistakes.
#pragma once

#include <cstdint>

namespace unisono::reference {

/// A small generator of pseudo-random numbers (splitmix64), the same on every platform.
class Dice {
 public:
  /// Neighbouring seeds give the same numbers, one place further.
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) {}
  /// The numbers of neighbouring seeds have nothing to do with each other.
  static Dice apart(std::uint64_t seed) { return Dice(Dice(seed).next()); }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// 0 .. limit-1.
  std::uint64_t below(std::uint64_t limit) { return limit <= 1 ? 0 : next() % limit; }

 private:
  std::uint64_t state_;
};

}  // namespace unisono::reference
