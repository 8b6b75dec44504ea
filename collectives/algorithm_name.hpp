// How users write an algorithm: its name, or its name and a radix, as in `knomial:8`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/algorithm.hpp"

namespace unisono {

/// Such a text, taken apart.
struct AlgorithmName {
  std::string name;  ///< before the colon
  bool has_radix = false;
  std::string given;        ///< behind it
  std::uint32_t radix = 0;  ///< its value; 0 if it is no number from 2 to 255

  explicit AlgorithmName(std::string_view text) : name(text.substr(0, text.find(':'))) {
    if (name.size() == text.size()) return;
    has_radix = true;
    given = text.substr(name.size() + 1);
    constexpr std::size_t kDigits = 3;
    constexpr std::uint32_t kMost = 255;
    if (given.empty() || given.size() > kDigits) return;
    std::uint32_t value = 0;
    for (const char digit : given) {
      if (digit < '0' || digit > '9') return;
      value = 10 * value + static_cast<std::uint32_t>(digit - '0');
    }
    if (value >= 2 && value <= kMost) radix = value;
  }

  /// What is wrong with the radix for an algorithm of this name, as a sentence; empty if nothing is.
  std::string fault(const Algorithm& algorithm) const {
    if (!has_radix) return {};
    if (algorithm.default_radix == 0) {
      return "the algorithm \"" + name + "\" has no radix; \":" + given + "\" was given behind its name";
    }
    if (radix == 0) {
      return "the radix of the algorithm \"" + name + "\" is \"" + given + "\"; allowed are 2 to 255";
    }
    return {};
  }

  /// `Call::radix` for it.
  std::uint8_t radix_of_call(const Algorithm& algorithm) const {
    return radix == algorithm.default_radix ? 0 : static_cast<std::uint8_t>(radix);
  }
};

}  // namespace unisono
