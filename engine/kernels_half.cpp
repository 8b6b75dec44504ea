#include "engine/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_half.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
using Fp16Format = ByDefinition<arithmetic::Fp16>;
using Bf16Format = ByDefinition<arithmetic::Bf16>;
#else

/// binary16: half a vector of elements becomes a vector of fp32.
struct Fp16Format {
  using Element = arithmetic::Fp16;
  using DF = hn::ScalableTag<float>;
  using D32 = hn::RebindToUnsigned<DF>;
  using D = hn::Rebind<std::uint16_t, DF>;
  using Wide = hn::Vec<DF>;
  using Narrow = hn::Vec<D>;
  static constexpr std::uint64_t kLanesOfElement = 1;
  static constexpr std::uint64_t kLanes = hn::MaxLanes(D());

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  // F16C converts exactly, and rounds to nearest even, whatever the flush modes.
  static HWY_INLINE Wide widen(Narrow value) {
    const hn::Rebind<hwy::float16_t, DF> half;
    return hn::PromoteTo(DF(), hn::BitCast(half, value));
  }
  static HWY_INLINE Narrow narrow(Wide value) {
    const hn::Rebind<hwy::float16_t, DF> half;
    return hn::BitCast(D(), hn::DemoteTo(half, value));
  }
#else
  /// value > limit, both below 2^31.
  static HWY_INLINE auto above(hn::Vec<D32> value, std::uint32_t limit) {
    const hn::RebindToSigned<D32> d;
    return hn::RebindMask(D32(), hn::Gt(hn::BitCast(d, value), hn::Set(d, static_cast<std::int32_t>(limit))));
  }
  // arithmetic::widen and arithmetic::narrow_fp16, lane by lane.
  static HWY_INLINE Wide widen(Narrow value) {
    const D32 d;
    const auto bits = hn::PromoteTo(d, value);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffU));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    const auto scaled =
        hn::BitCast(d, hn::Mul(hn::BitCast(DF(), hn::ShiftLeft<13>(magnitude)), hn::Set(DF(), 0x1p112F)));
    const auto special = hn::IfThenElseZero(above(magnitude, 0x7bffU), hn::Set(d, 0x7f800000U));
    return hn::BitCast(DF(), hn::Or(sign, hn::Or(scaled, special)));
  }
  static HWY_INLINE Narrow narrow(Wide value) {
    const D32 d;
    const auto bits = hn::BitCast(d, value);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffU));
    const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1U));
    const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(d, 0xfffU - (112U << 23U))), odd));
    const auto half = hn::Set(DF(), 0.5F);
    const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(DF(), magnitude), half)), hn::BitCast(d, half));
    const auto infinity = hn::Set(d, 0x7c00U);
    const auto nan = hn::Or(hn::Set(d, 0x7e00U), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x1ffU)));
    auto result = hn::IfThenElse(above(magnitude, 0x387fffffU), normal, subnormal);
    result = hn::IfThenElse(above(magnitude, 0x477fffffU), infinity, result);
    result = hn::IfThenElse(above(magnitude, 0x7f800000U), nan, result);
    // At most 16 bits, so that saturation changes nothing.
    return hn::DemoteTo(D(), hn::BitCast(hn::RebindToSigned<D32>(), hn::Or(sign, result)));
  }
#endif

  template <Func F>
  static HWY_INLINE Wide apply(Wide a, Wide b) {
    return apply_lanes<F>(DF(), a, b);
  }
};

/// bfloat16: the elements of even and of odd position in the vector become a vector of fp32 each, in place.
struct Bf16Format {
  using Element = arithmetic::Bf16;
  using D = hn::ScalableTag<std::uint16_t>;
  using D32 = hn::Repartition<std::uint32_t, D>;
  using DF = hn::Repartition<float, D>;
  struct Wide {
    hn::Vec<DF> even;
    hn::Vec<DF> odd;
  };
  using Narrow = hn::Vec<D>;
  static constexpr std::uint64_t kLanesOfElement = 1;
  static constexpr std::uint64_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE Wide widen(Narrow value) {
    const auto both = hn::BitCast(D32(), value);
    return {hn::BitCast(DF(), hn::ShiftLeft<16>(both)), hn::BitCast(DF(), hn::And(both, hn::Set(D32(), 0xffff0000U)))};
  }
  static HWY_INLINE Narrow narrow(Wide value) {
    const auto even = hn::ShiftRight<16>(rounded<DF>(value.even));
    const auto odd = hn::And(rounded<DF>(value.odd), hn::Set(D32(), 0xffff0000U));
    return hn::BitCast(D(), hn::Or(even, odd));
  }
  template <Func F>
  static HWY_INLINE Wide apply(Wide a, Wide b) {
    return {apply_lanes<F>(DF(), a.even, b.even), apply_lanes<F>(DF(), a.odd, b.odd)};
  }

  /// arithmetic::narrow_bf16, in the upper half of each lane.
  template <class F>
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<F> > rounded(hn::Vec<F> value) {
    const hn::RebindToUnsigned<F> d;
    const auto bits = hn::BitCast(d, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
    const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffU)));
    const auto quiet = hn::Or(bits, hn::Set(d, 0x400000U));
    return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(value)), quiet, nearest);
  }
};

#endif

template <class Format>
KernelPair half(Func func) {
  switch (func) {
    case Func::kSum:
      return kernels_of<Format, Func::kSum>();
    case Func::kProd:
      return kernels_of<Format, Func::kProd>();
    case Func::kMin:
      return kernels_of<Format, Func::kMin>();
    case Func::kMax:
      return kernels_of<Format, Func::kMax>();
    default:
      return {};
  }
}

// Conversions to and from fp32, of arrays of any alignment.

template <class Element>
void widen_elements(const std::byte* in, std::byte* out, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) {
    Element element;
    std::memcpy(&element, in + i * sizeof element, sizeof element);
    const float value = arithmetic::widen(element);
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

template <class Element>
void narrow_elements(const std::byte* in, std::byte* out, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) {
    float value = 0;
    std::memcpy(&value, in + i * sizeof value, sizeof value);
    const Element element = arithmetic::Carrier<Element>::out(value);
    std::memcpy(out + i * sizeof element, &element, sizeof element);
  }
}

#if HWY_TARGET == HWY_SCALAR
template <class Element>
void widen_array(const std::byte* in, std::byte* out, std::uint64_t count) {
  widen_elements<Element>(in, out, 0, count);
}
template <class Element>
void narrow_array(const std::byte* in, std::byte* out, std::uint64_t count) {
  narrow_elements<Element>(in, out, 0, count);
}
#else
using Floats = hn::ScalableTag<float>;
using Halves = hn::Rebind<std::uint16_t, Floats>;

template <class Element>
HWY_INLINE hn::Vec<Floats> widen_lanes(hn::Vec<Halves> value) {
  if constexpr (std::is_same_v<Element, arithmetic::Fp16>) {
    return Fp16Format::widen(value);
  } else {
    const hn::RebindToUnsigned<Floats> d;
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(d, value)));
  }
}

template <class Element>
HWY_INLINE hn::Vec<Halves> narrow_lanes(hn::Vec<Floats> value) {
  if constexpr (std::is_same_v<Element, arithmetic::Fp16>) {
    return Fp16Format::narrow(value);
  } else {
    const hn::RebindToUnsigned<Floats> d;
    return hn::TruncateTo(Halves(), hn::ShiftRight<16>(Bf16Format::rounded<Floats>(value)));
  }
}

template <class Element>
void widen_array(const std::byte* in, std::byte* out, std::uint64_t count) {
  constexpr std::uint64_t kLanes = hn::MaxLanes(Floats());
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(Floats(), widen_lanes<Element>(load(Halves(), in + i * sizeof(Element))), out + i * sizeof(float));
  }
  widen_elements<Element>(in, out, i, count);
}

template <class Element>
void narrow_array(const std::byte* in, std::byte* out, std::uint64_t count) {
  constexpr std::uint64_t kLanes = hn::MaxLanes(Floats());
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(Halves(), narrow_lanes<Element>(load(Floats(), in + i * sizeof(float))), out + i * sizeof(Element));
  }
  narrow_elements<Element>(in, out, i, count);
}
#endif

template <class Element>
void scale_array(const std::byte* a, std::byte* out, std::uint64_t count, double factor) {
  const auto rounded = static_cast<float>(factor);
  std::uint64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::uint64_t kLanes = hn::MaxLanes(Floats());
  const auto by = hn::Set(Floats(), rounded);
  for (; i + kLanes <= count; i += kLanes) {
    const auto wide = widen_lanes<Element>(load(Halves(), a + i * sizeof(Element)));
    store(Halves(), narrow_lanes<Element>(hn::Mul(wide, by)), out + i * sizeof(Element));
  }
#endif
  for (; i < count; ++i) {
    Element element;
    std::memcpy(&element, a + i * sizeof element, sizeof element);
    element = arithmetic::Carrier<Element>::out(arithmetic::widen(element) * rounded);
    std::memcpy(out + i * sizeof element, &element, sizeof element);
  }
}

}  // namespace

ScaleKernel half_scale_here(Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp16:
      return &scale_array<arithmetic::Fp16>;
    case Datatype::kBf16:
      return &scale_array<arithmetic::Bf16>;
    default:
      return nullptr;
  }
}

ConvertKernel widening_here(Datatype narrow) {
  switch (narrow) {
    case Datatype::kFp16:
      return &widen_array<arithmetic::Fp16>;
    case Datatype::kBf16:
      return &widen_array<arithmetic::Bf16>;
    default:
      return nullptr;
  }
}

ConvertKernel narrowing_here(Datatype narrow) {
  switch (narrow) {
    case Datatype::kFp16:
      return &narrow_array<arithmetic::Fp16>;
    case Datatype::kBf16:
      return &narrow_array<arithmetic::Bf16>;
    default:
      return nullptr;
  }
}

KernelPair half_kernels_here(Func func, Datatype dtype) {
  switch (dtype) {
    case Datatype::kFp16:
      return half<Fp16Format>(func);
    case Datatype::kBf16:
      return half<Bf16Format>(func);
    default:
      return {};
  }
}

}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::cclo {

HWY_EXPORT(half_kernels_here);
HWY_EXPORT(half_scale_here);
HWY_EXPORT(widening_here);
HWY_EXPORT(narrowing_here);

KernelPair half_kernels(Func func, Datatype dtype) { return HWY_DYNAMIC_DISPATCH(half_kernels_here)(func, dtype); }
ScaleKernel half_scale(Datatype dtype) { return HWY_DYNAMIC_DISPATCH(half_scale_here)(dtype); }
ConvertKernel widening_kernel(Datatype narrow) { return HWY_DYNAMIC_DISPATCH(widening_here)(narrow); }
ConvertKernel narrowing_kernel(Datatype narrow) { return HWY_DYNAMIC_DISPATCH(narrowing_here)(narrow); }

}  // namespace unisono::cclo
#endif
