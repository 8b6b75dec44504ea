#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_integer.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
template <class T>
using Integer = T;
#else
template <class T>
using Integer = Plain<T>;
#endif

KernelPair integer_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kInt32:
      return find_kernels<Integer<std::int32_t>>(func);
    case Datatype::kInt64:
      return find_kernels<Integer<std::int64_t>>(func);
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
