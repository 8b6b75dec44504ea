// Cutting vectors into blocks, and counting ranks around a ring. Freestanding.
#pragma once

#include <cstdint>

#include "core/divide.hpp"

namespace unisono::build {

/// How `total` elements are cut into `parts` blocks: the first total % parts are one element longer. Making one
/// divides.
class Split {
 public:
  constexpr Split(std::uint64_t total, std::uint32_t parts) : each_(divide(total, parts)) {}

  constexpr std::uint64_t begin(std::uint32_t part) const { return each_.quotient * part + longer(part); }
  /// begin(part + 1) - begin(part)
  constexpr std::uint64_t count(std::uint32_t part) const { return each_.quotient + (part < each_.rest ? 1 : 0); }
  /// begin(part + several) - begin(part)
  constexpr std::uint64_t count(std::uint32_t part, std::uint32_t several) const {
    return each_.quotient * several + (longer(part + several) - longer(part));
  }

 private:
  // Longer blocks before a part.
  constexpr std::uint32_t longer(std::uint32_t part) const { return part < each_.rest ? part : each_.rest; }

  Quotient each_;
};

/// (a + b) mod size, for a < size and b <= size.
constexpr std::uint32_t plus(std::uint32_t a, std::uint32_t b, std::uint32_t size) {
  const std::uint32_t sum = a + b;
  return sum >= size ? sum - size : sum;
}
/// (a - b) mod size, for a < size and b <= size.
constexpr std::uint32_t minus(std::uint32_t a, std::uint32_t b, std::uint32_t size) { return plus(a, size - b, size); }

}  // namespace unisono::build
