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

}  // namespace

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

KernelPair float_kernels(Func func, Datatype dtype) { return HWY_DYNAMIC_DISPATCH(float_kernels_here)(func, dtype); }

}  // namespace unisono::cclo
#endif
