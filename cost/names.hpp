// Collectives and algorithms by name, as files and environment variables have them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectives/algorithm.hpp"

namespace unisono::cost {

/// The collective of a name, if it has algorithms.
inline std::optional<Collective> collective_named(std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (name == name_of(algorithm.collective)) return algorithm.collective;
  }
  return std::nullopt;
}

/// "bcast, reduce, ..."
inline std::string collectives_text() {
  std::string text;
  Collective last = Collective::kNop;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == last) continue;
    last = algorithm.collective;
    text += (text.empty() ? "" : ", ") + std::string(name_of(last));
  }
  return text;
}

/// The algorithms of a collective.
inline std::string algorithms_text(Collective collective) {
  std::string text;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) text += (text.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  return text;
}

}  // namespace unisono::cost
