#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_float.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
template <class T>
using Float = ByDefinition<T>;
template <class T>
using ComplexSum = ByDefinition<arithmetic::Complex<T>>;
template <class T>
using ComplexProduct = ByDefinition<arithmetic::Complex<T>>;
#else
template <class T>
using Float = Plain<T>;
/// The sum of complex numbers is that of their parts.
template <class T>
using ComplexSum = Plain<T, arithmetic::Complex<T>>;

/// Real parts stand in even lanes, imaginary parts in odd ones.
template <class T>
struct ComplexProduct : Plain<T, arithmetic::Complex<T>> {
  using typename Plain<T, arithmetic::Complex<T>>::D;
  using typename Plain<T, arithmetic::Complex<T>>::Wide;

  template <Func F>
  static HWY_INLINE Wide apply(Wide a, Wide b) {
    static_assert(F == Func::kProd);
    const Wide straight = hn::Mul(a, hn::DupEven(b));                   // ac, bc
    const Wide crossed = hn::Mul(hn::Reverse2(D(), a), hn::DupOdd(b));  // bd, ad
    return hn::OddEven(hn::Add(straight, crossed), hn::Sub(straight, crossed));
  }
};
#endif

template <class T>
KernelPair real(Func func) {
  switch (func) {
    case Func::kSum:
      return kernels_of<Float<T>, Func::kSum>();
    case Func::kProd:
      return kernels_of<Float<T>, Func::kProd>();
    case Func::kMin:
      return kernels_of<Float<T>, Func::kMin>();
    case Func::kMax:
      return kernels_of<Float<T>, Func::kMax>();
    default:
      return {};
  }
}

template <class T>
KernelPair complex(Func func) {
  switch (func) {
    case Func::kSum:
      return kernels_of<ComplexSum<T>, Func::kSum>();
    case Func::kProd:
      return kernels_of<ComplexProduct<T>, Func::kProd>();
    default:
      return {};
  }
}

/// Of elements that are `kParts` numbers each.
template <class T, std::uint64_t kParts>
void scale_array(const std::byte* a, std::byte* out, std::uint64_t count, double factor) {
  const auto rounded = static_cast<T>(factor);
  const std::uint64_t numbers = count * kParts;
  std::uint64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr std::uint64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const auto by = hn::Set(d, rounded);
  for (; i + kLanes <= numbers; i += kLanes) store(d, hn::Mul(load(d, a + i * sizeof(T)), by), out + i * sizeof(T));
#endif
  for (; i < numbers; ++i) {
    T value = 0;
    std::memcpy(&value, a + i * sizeof value, sizeof value);
    value *= rounded;
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

ScaleKernel float_scale_here(Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp32:
      return &scale_array<float, 1>;
    case Datatype::kFp64:
      return &scale_array<double, 1>;
    case Datatype::kComplex64:
      return &scale_array<float, 2>;
    case Datatype::kComplex128:
      return &scale_array<double, 2>;
    default:
      return nullptr;
  }
}

KernelPair float_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp32:
      return real<float>(func);
    case Datatype::kFp64:
      return real<double>(func);
    case Datatype::kComplex64:
      return complex<float>(func);
    case Datatype::kComplex128:
      return complex<double>(func);
    default:
      return {};
  }
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(float_kernels_here);
HWY_EXPORT(float_scale_here);

KernelPair float_kernels(Func func, Datatype dtype) { return HWY_DYNAMIC_DISPATCH(float_kernels_here)(func, dtype); }
ScaleKernel float_scale(Datatype dtype) { return HWY_DYNAMIC_DISPATCH(float_scale_here)(dtype); }

}  // namespace unisono::cclo
#endif
