// The table of all algorithms, put together at compile time. Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/algorithm.hpp"
#include "collectives/generated/algorithms.hpp"

namespace unisono::collectives {

/// The arrays one after the other.
template <std::size_t... N>
constexpr auto concatenate(const std::array<Algorithm, N>&... arrays) {
  std::array<Algorithm, (N + ...)> table{};
  std::size_t end = 0;
  const auto append = [&](const auto& array) {
    for (const Algorithm& algorithm : array) table[end++] = algorithm;
  };
  (append(arrays), ...);
  return table;
}

/// All algorithms in order of Collective's values.
inline constexpr auto kTable = with_all_algorithms([](const auto&... arrays) { return concatenate(arrays...); });

constexpr bool same_name(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

/// The position in kTable, or -1.
constexpr int position(Collective collective, const char* name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].collective == collective && same_name(kTable[i].name, name)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace unisono::collectives
