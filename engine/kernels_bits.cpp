#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_bits.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
template <class T>
using Logical = ByDefinition<T>;
template <class T>
using Bitwise = ByDefinition<T>;
#else
template <class T>
using Logical = Plain<T>;
template <class T>
using Bitwise = Plain<std::uint8_t, T>;
#endif

/// T is the unsigned integer of the datatype's size: neither logic nor bits depend on the sign.
template <class T>
KernelPair bits(Func func) {
  switch (func) {
    case Func::kLogicalAnd:
      return kernels_of<Logical<T>, Func::kLogicalAnd>();
    case Func::kLogicalOr:
      return kernels_of<Logical<T>, Func::kLogicalOr>();
    case Func::kLogicalXor:
      return kernels_of<Logical<T>, Func::kLogicalXor>();
    case Func::kBitwiseAnd:
      return kernels_of<Bitwise<T>, Func::kBitwiseAnd>();
    case Func::kBitwiseOr:
      return kernels_of<Bitwise<T>, Func::kBitwiseOr>();
    case Func::kBitwiseXor:
      return kernels_of<Bitwise<T>, Func::kBitwiseXor>();
    default:
      return {};
  }
}

/// Truth values know three functions, under several names.
Func logic_of(Func func) {
  switch (func) {
    case Func::kMin:
    case Func::kBitwiseAnd:
      return Func::kLogicalAnd;
    case Func::kMax:
    case Func::kBitwiseOr:
      return Func::kLogicalOr;
    case Func::kBitwiseXor:
      return Func::kLogicalXor;
    default:
      return func;
  }
}

bool is_bitwise(Func func) {
  return func == Func::kBitwiseAnd || func == Func::kBitwiseOr || func == Func::kBitwiseXor;
}

}  // namespace

KernelPair bit_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kByte:
      return is_bitwise(func) ? bits<std::uint8_t>(func) : KernelPair{};
    case Datatype::kBool:
      return bits<std::uint8_t>(logic_of(func));
    case Datatype::kInt8:
    case Datatype::kUint8:
      return bits<std::uint8_t>(func);
    case Datatype::kInt16:
    case Datatype::kUint16:
      return bits<std::uint16_t>(func);
    case Datatype::kInt32:
    case Datatype::kUint32:
      return bits<std::uint32_t>(func);
    case Datatype::kInt64:
    case Datatype::kUint64:
      return bits<std::uint64_t>(func);
    default:
      return {};
  }
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(bit_kernels_here);

KernelPair bit_kernels(Func func, Datatype dtype) { return HWY_DYNAMIC_DISPATCH(bit_kernels_here)(func, dtype); }

}  // namespace unisono::cclo
#endif
