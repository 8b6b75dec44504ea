#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_located.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {
namespace {

template <class Value, class Index>
KernelPair located(Func func) {
  using Pair = ByDefinition<arithmetic::Located<Value, Index>>;
  switch (func) {
    case Func::kMinloc:
      return kernels_of<Pair, Func::kMinloc>();
    case Func::kMaxloc:
      return kernels_of<Pair, Func::kMaxloc>();
    default:
      return {};
  }
}

}  // namespace

KernelPair located_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp32Int32:
      return located<float, std::int32_t>(func);
    case Datatype::kFp64Int32:
      return located<double, std::int32_t>(func);
    case Datatype::kInt32Int32:
      return located<std::int32_t, std::int32_t>(func);
    case Datatype::kInt64Int64:
      return located<std::int64_t, std::int64_t>(func);
    default:
      return {};
  }
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(located_kernels_here);

KernelPair located_kernels(Func func, Datatype dtype) {
  return HWY_DYNAMIC_DISPATCH(located_kernels_here)(func, dtype);
}

}  // namespace unisono::cclo
#endif
