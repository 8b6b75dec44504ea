// What holds of each collective (facts_of) and of each operator, for those who admit calls. Freestanding.
#pragma once

#include <array>
#include <cstdint>

#include "core/generated/collectives.hpp"
#include "core/generated/spec.hpp"

namespace unisono {

namespace facts_detail {

constexpr std::uint32_t bit(Func func) { return std::uint32_t{1} << static_cast<std::uint32_t>(func); }

constexpr std::uint32_t functions_of(Datatype dtype) {
  const std::uint32_t arithmetic = bit(Func::kSum) | bit(Func::kProd);
  const std::uint32_t order = bit(Func::kMin) | bit(Func::kMax);
  const std::uint32_t logical = bit(Func::kLogicalAnd) | bit(Func::kLogicalOr) | bit(Func::kLogicalXor);
  const std::uint32_t bitwise = bit(Func::kBitwiseAnd) | bit(Func::kBitwiseOr) | bit(Func::kBitwiseXor);
  const std::uint32_t mean = bit(Func::kAvg);
  switch (dtype) {
    case Datatype::kNone:
      return 0;
    case Datatype::kByte:
      return bitwise;
    case Datatype::kInt8:
    case Datatype::kInt16:
    case Datatype::kInt32:
    case Datatype::kInt64:
    case Datatype::kUint8:
    case Datatype::kUint16:
    case Datatype::kUint32:
    case Datatype::kUint64:
      return arithmetic | order | logical | bitwise;
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kFp32:
    case Datatype::kFp64:
      return arithmetic | order | mean;
    case Datatype::kComplex64:
    case Datatype::kComplex128:
      return arithmetic | mean;
    case Datatype::kBool:
      return order | logical | bitwise;
    case Datatype::kFp32Int32:
    case Datatype::kFp64Int32:
    case Datatype::kInt32Int32:
    case Datatype::kInt64Int64:
      return bit(Func::kMinloc) | bit(Func::kMaxloc);
  }
  return 0;
}

}  // namespace facts_detail

/// Whether the order in which a built-in operator folds more than two operands, and the brackets, change no bit of the
/// result. False for operators of the user, which are not known to associate.
constexpr bool folds_in_any_order(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kFp32:
    case Datatype::kFp64:
    case Datatype::kComplex64:
    case Datatype::kComplex128:
    case Datatype::kFp32Int32:
    case Datatype::kFp64Int32:
      return false;  // sums round, and of several NaN one is taken
    default:
      return (facts_detail::functions_of(dtype) & facts_detail::bit(func)) != 0;
  }
}

/// By datatype, the built-in operators that are defined on it: bit n is that of Func n (docs/model.md, "Arithmetic").
inline constexpr auto kOperatorsOn = [] {
  std::array<std::uint32_t, kAllDatatype.size()> table{};
  for (const Datatype dtype : kAllDatatype) {
    table[static_cast<std::size_t>(dtype)] = facts_detail::functions_of(dtype);
  }
  return table;
}();

}  // namespace unisono
