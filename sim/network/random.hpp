// Pseudo-random numbers that are the same on every machine: SplitMix64 (Steele, Lea, Flood: "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
#pragma once

#include <cstdint>

namespace unisono::sim {

constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(mix(seed + 1)) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
  /// One of 0 .. bound-1; bound is not 0.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64U);
  }
  /// True with a probability of 0 .. 1. Draws nothing where the answer is certain.
  bool chance(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return static_cast<double>(next() >> 11U) * 0x1.0p-53 < probability;
  }

 private:
  std::uint64_t state_;
};

}  // namespace unisono::sim
