#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_float.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
template <class T>
using Float = T;
#else
template <class T>
using Float = Plain<T>;
#endif

KernelPair float_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp32:
      return find_kernels<Float<float>>(func);
    case Datatype::kFp64:
      return find_kernels<Float<double>>(func);
    default:
      return {};
  }
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(float_kernels_here);

KernelPair float_kernels(Func func, Datatype dtype) { return HWY_DYNAMIC_DISPATCH(float_kernels_here)(func, dtype); }

}  // namespace unisono::cclo
#endif
