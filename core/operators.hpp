// Which operators go with which datatypes, in words.
#pragma once

#include <string>

#include "core/arithmetic.hpp"
#include "core/generated/collectives.hpp"

namespace unisono {

/// The operators that are defined on a datatype: "sum, prod, min"; "none" if there are none.
inline std::string operators_on(Datatype dtype) {
  std::string text;
  for (const Func func : kAllFunc) {
    if (is_operator(func, dtype)) text += (text.empty() ? "" : ", ") + operator_name(func);
  }
  return text.empty() ? "none" : text;
}

/// The datatypes that an operator is defined on.
inline std::string datatypes_of(Func func) {
  std::string text;
  for (const Datatype dtype : kAllDatatype) {
    if (is_operator(func, dtype)) text += (text.empty() ? "" : ", ") + std::string(name_of(dtype));
  }
  return text;
}

/// Whether a collective can end in a division by the number of ranks: where all ranks' inputs are reduced.
constexpr bool takes_mean(Collective collective) { return facts_of(collective).mean; }

}  // namespace unisono
