// Collectives and algorithms by name, as files and environment variables have them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectives/algorithm.hpp"
#include "collectives/algorithm_name.hpp"
#include "core/error.hpp"
#include "core/quoted.hpp"

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

/// An algorithm of the table, and `Call::radix` for it.
struct NamedAlgorithm {
  int position = 0;
  std::uint8_t radix = 0;
};

/// The algorithm of a name, or of a name and a radix, as in `knomial:8`. Throws Error: kUnknownAlgorithm, or
/// kInvalidArgument for a radix that it does not have.
inline NamedAlgorithm algorithm_named(Collective collective, std::string_view text) {
  const AlgorithmName written(text);
  const int position = find_algorithm(collective, written.name.c_str());
  if (position < 0) {
    throw Error(ErrorCode::kUnknownAlgorithm, std::string(name_of(collective)) + " has no algorithm " +
                                                  in_quotes(written.name) + "; there are " +
                                                  algorithms_text(collective));
  }
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(position)];
  if (const std::string fault = written.fault(algorithm); !fault.empty()) {
    throw Error(ErrorCode::kInvalidArgument, fault);
  }
  return {position, written.radix_of_call(algorithm)};
}

/// The name as a user writes it; without the radix that it has anyway.
inline std::string text_of(int position, std::uint8_t radix) {
  const std::string name = algorithms()[static_cast<std::size_t>(position)].name;
  return radix == 0 ? name : name + ":" + std::to_string(radix);
}

}  // namespace unisono::cost
