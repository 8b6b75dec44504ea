#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_integer.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
template <class T>
using Integer = ByDefinition<T>;
#else
template <class T>
using Integer = Plain<T>;
#endif

/// Sums and products that wrap do not depend on the sign.
template <class T>
KernelPair integer(Func func) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (func) {
    case Func::kSum:
      return kernels_of<Integer<Unsigned>, Func::kSum>();
    case Func::kProd:
      return kernels_of<Integer<Unsigned>, Func::kProd>();
    case Func::kMin:
      return kernels_of<Integer<T>, Func::kMin>();
    case Func::kMax:
      return kernels_of<Integer<T>, Func::kMax>();
    default:
      return {};
  }
}

}  // namespace

KernelPair integer_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kInt8:
      return integer<std::int8_t>(func);
    case Datatype::kUint8:
      return integer<std::uint8_t>(func);
    case Datatype::kInt16:
      return integer<std::int16_t>(func);
    case Datatype::kUint16:
      return integer<std::uint16_t>(func);
    case Datatype::kInt32:
      return integer<std::int32_t>(func);
    case Datatype::kUint32:
      return integer<std::uint32_t>(func);
    case Datatype::kInt64:
      return integer<std::int64_t>(func);
    case Datatype::kUint64:
      return integer<std::uint64_t>(func);
    default:
      return {};
  }
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(integer_kernels_here);

KernelPair integer_kernels(Func func, Datatype dtype) {
  return HWY_DYNAMIC_DISPATCH(integer_kernels_here)(func, dtype);
}

}  // namespace unisono::cclo
#endif
