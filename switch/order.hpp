// Which operators may combine contributions as they come.
#pragma once

#include "core/generated/spec.hpp"

namespace unisono::slots {

/// Whether the bits of func over dtype are the same for every order and every bracketing, so that contributions may be
/// combined as they come: all operators on integers, truth values and bytes, and those that choose one of their
/// operands by a total order (min, max, minloc, maxloc; a NaN stays a NaN, docs/model.md). Sums and products of
/// floating point round, and operators of the user are not known to associate.
constexpr bool order_is_free(Func func, Datatype dtype) {
  switch (func) {
    case Func::kMin:
    case Func::kMax:
    case Func::kMinloc:
    case Func::kMaxloc:
    case Func::kLogicalAnd:
    case Func::kLogicalOr:
    case Func::kLogicalXor:
    case Func::kBitwiseAnd:
    case Func::kBitwiseOr:
    case Func::kBitwiseXor:
      return true;
    case Func::kSum:
    case Func::kProd:
      switch (dtype) {
        case Datatype::kInt8:
        case Datatype::kUint8:
        case Datatype::kInt16:
        case Datatype::kUint16:
        case Datatype::kInt32:
        case Datatype::kUint32:
        case Datatype::kInt64:
        case Datatype::kUint64:
          return true;
        default:
          return false;
      }
    default:
      return false;
  }
}

}  // namespace unisono::slots
