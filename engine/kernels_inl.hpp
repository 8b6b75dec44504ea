// The loops of the reduction kernels, compiled once for each instruction set: included by the files
// engine/kernels_*.cpp, which Highway's foreach_target.h includes once for each of its targets.
//
// A Format says how elements of a datatype are held in vectors: `Wide` is what they are computed in, `Narrow` what is
// stored. The loops know nothing else of the datatype.
#if defined(UNISONO_ENGINE_KERNELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UNISONO_ENGINE_KERNELS_INL_HPP
#undef UNISONO_ENGINE_KERNELS_INL_HPP
#else
#define UNISONO_ENGINE_KERNELS_INL_HPP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "engine/kernel_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace unisono::cclo::HWY_NAMESPACE {
namespace {  // NOLINT(google-build-namespaces): each target's copy must stay in its file

/// Elements [begin, end) one by one, by the definition itself: what is left over by vectors.
template <class Element, Func F>
HWY_INLINE void reduce_elements(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs,
                                std::uint32_t m, std::uint64_t begin, std::uint64_t end) {
  using Carrier = arithmetic::Carrier<Element>;
  for (std::uint64_t offset = begin * sizeof(Element); offset < end * sizeof(Element); offset += sizeof(Element)) {
    Element element;
    std::memcpy(&element, sources[0] + offset, sizeof element);
    auto value = Carrier::in(element);
    for (std::uint32_t k = 1; k < n; ++k) {
      std::memcpy(&element, sources[k] + offset, sizeof element);
      value = arithmetic::apply<F>(value, Carrier::in(element));
    }
    element = Carrier::out(value);
    for (std::uint32_t k = 0; k < m; ++k) std::memcpy(outputs[k] + offset, &element, sizeof element);
  }
}

// The definition by blocks, which the compiler vectorises as far as it can.

template <class Element, Func F>
void combine_by_definition(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count) {
  using Carrier = arithmetic::Carrier<Element>;
  arithmetic::for_each_element<Element, Element, Element>(a, b, out, count, [](Element x, Element y) {
    return Carrier::out(arithmetic::apply<F>(Carrier::in(x), Carrier::in(y)));
  });
}

template <class Element, Func F>
void reduce_by_definition(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs, std::uint32_t m,
                          std::uint64_t count, bool streaming) {
  if (n == 1) {
    copy_to_many(sources[0], outputs, m, count * sizeof(Element), streaming);
    return;
  }
  using Carrier = arithmetic::Carrier<Element>;
  constexpr std::uint64_t kBlock = 64;
  std::uint64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Element block[kBlock];
    typename Carrier::type wide[kBlock];
    std::memcpy(block, sources[0] + i * sizeof(Element), sizeof block);
    for (std::uint64_t k = 0; k < kBlock; ++k) wide[k] = Carrier::in(block[k]);
    for (std::uint32_t s = 1; s < n; ++s) {
      std::memcpy(block, sources[s] + i * sizeof(Element), sizeof block);
      for (std::uint64_t k = 0; k < kBlock; ++k) wide[k] = arithmetic::apply<F>(wide[k], Carrier::in(block[k]));
    }
    for (std::uint64_t k = 0; k < kBlock; ++k) block[k] = Carrier::out(wide[k]);
    for (std::uint32_t s = 0; s < m; ++s) std::memcpy(outputs[s] + i * sizeof(Element), block, sizeof block);
  }
  reduce_elements<Element, F>(sources, n, outputs, m, i, count);
}

/// A Format without vectors of Highway's.
template <class E>
struct ByDefinition {
  using Element = E;
};

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

/// Whether loads and stores of the first elements of a vector touch no other memory, and cost no more than whole ones.
constexpr bool kMasks = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

// Memory is bytes of any alignment, so vectors of bytes are loaded and stored.

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* at) {
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(at)));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, std::byte* at) {
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, value), bytes, reinterpret_cast<std::uint8_t*>(at));
}

/// The first `count` lanes; the others are zero. Only where kMasks.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const std::byte* at, std::uint64_t count) {
  return hn::MaskedLoad(hn::FirstN(d, count), d, reinterpret_cast<const hn::TFromD<D>*>(at));
}

template <class D>
HWY_INLINE void store_first(D d, hn::Vec<D> value, std::byte* at, std::uint64_t count) {
  hn::BlendedStore(value, hn::FirstN(d, count), d, reinterpret_cast<hn::TFromD<D>*>(at));
}

template <class D>
constexpr std::uint64_t vector_bytes(D d) {
  return hn::MaxLanes(d) * sizeof(hn::TFromD<D>);
}

/// Past the caches where `at` is aligned to the vector and the vector is one that can be.
template <class D>
HWY_INLINE void stream(D d, hn::Vec<D> value, std::byte* at) {
  if constexpr (vector_bytes(d) >= 16) {
    if (reinterpret_cast<std::uintptr_t>(at) % vector_bytes(d) == 0) {
      hn::Stream(value, d, reinterpret_cast<hn::TFromD<D>*>(at));
      return;
    }
  }
  store(d, value, at);
}

/// IEEE 754-2019 minimum. Equal operands are equal bits or zeros of either sign, so the union of both results of an
/// asymmetric minimum is the lesser zero.
template <class D, class V>
HWY_INLINE V minimum(D, V a, V b) {
  const V least = hn::Or(hn::Min(a, b), hn::Min(b, a));
#if HWY_ARCH_X86
  // MINPS returns its second operand if one is NaN, so the union holds the bits of that NaN.
  return least;
#else
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), least);
#endif
}

/// IEEE 754-2019 maximum: the minimum with all signs changed.
template <class D, class V>
HWY_INLINE V maximum(D d, V a, V b) {
  const V sign = hn::SignBit(d);
  return hn::Xor(minimum(d, hn::Xor(a, sign), hn::Xor(b, sign)), sign);
}

/// Integers of 8 bits are multiplied as the halves of 16.
template <class D, class V>
HWY_INLINE V product(D d, V a, V b) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    const hn::Repartition<std::uint16_t, D> d16;
    const auto x = hn::BitCast(d16, a);
    const auto y = hn::BitCast(d16, b);
    const auto low = hn::And(hn::Mul(x, y), hn::Set(d16, std::uint16_t{0xff}));
    const auto high = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(x), hn::ShiftRight<8>(y)));
    return hn::BitCast(d, hn::Or(low, high));
  } else {
    return hn::Mul(a, b);
  }
}

/// func(a, b) on vectors of carriers.
template <Func F, class D, class V>
HWY_INLINE V apply_lanes(D d, V a, V b) {
  using T = hn::TFromD<D>;
  if constexpr (F == Func::kSum) {
    return hn::Add(a, b);
  } else if constexpr (F == Func::kProd) {
    return product(d, a, b);
  } else if constexpr (F == Func::kBitwiseAnd) {
    return hn::And(a, b);
  } else if constexpr (F == Func::kBitwiseOr) {
    return hn::Or(a, b);
  } else if constexpr (F == Func::kBitwiseXor) {
    return hn::Xor(a, b);
  } else if constexpr (F == Func::kLogicalAnd || F == Func::kLogicalOr || F == Func::kLogicalXor) {
    // 1 where an operand is zero.
    const V one = hn::Set(d, T{1});
    const V no_a = hn::And(hn::VecFromMask(d, hn::Eq(a, hn::Zero(d))), one);
    const V no_b = hn::And(hn::VecFromMask(d, hn::Eq(b, hn::Zero(d))), one);
    if constexpr (F == Func::kLogicalXor) return hn::Xor(no_a, no_b);
    return hn::Xor(F == Func::kLogicalAnd ? hn::Or(no_a, no_b) : hn::And(no_a, no_b), one);
  } else if constexpr (std::is_floating_point_v<T>) {
    return F == Func::kMin ? minimum(d, a, b) : maximum(d, a, b);
  } else {
    return F == Func::kMin ? hn::Min(a, b) : hn::Max(a, b);
  }
}

/// Elements that are their own carriers. Several lanes make an element where the lanes do not matter to the function.
template <class T, class E = T>
struct Plain {
  using Element = E;
  using D = hn::ScalableTag<T>;
  using Wide = hn::Vec<D>;
  using Narrow = Wide;
  static constexpr std::uint64_t kLanesOfElement =
      sizeof(E) / sizeof(T);  // NOLINT(bugprone-sizeof-expression): elements may have parts
  static constexpr std::uint64_t kLanes = hn::MaxLanes(D()) / kLanesOfElement;  ///< elements of a vector
  static HWY_INLINE Wide widen(Narrow value) { return value; }
  static HWY_INLINE Narrow narrow(Wide value) { return value; }
  template <Func F>
  static HWY_INLINE Wide apply(Wide a, Wide b) {
    return apply_lanes<F>(D(), a, b);
  }
};

template <class Format>
HWY_INLINE typename Format::Wide take(const std::byte* at) {
  return Format::widen(load(typename Format::D(), at));
}

template <class Format>
HWY_INLINE typename Format::Wide take_first(const std::byte* at, std::uint64_t count) {
  return Format::widen(load_first(typename Format::D(), at, count * Format::kLanesOfElement));
}

template <class Format>
HWY_INLINE void give_first(typename Format::Narrow value, std::byte* at, std::uint64_t count) {
  store_first(typename Format::D(), value, at, count * Format::kLanesOfElement);
}

/// Two sources: the whole pass in registers. kOutputs is 1 or 2.
template <class Format, Func F, int kOutputs>
HWY_INLINE void pair_loop(const std::byte* a, const std::byte* b, std::byte* x, std::byte* y, std::uint64_t count) {
  using Element = typename Format::Element;
  using Narrow = typename Format::Narrow;
  const typename Format::D d;
  constexpr std::uint64_t kLanes = Format::kLanes;
  constexpr std::uint64_t kStep = kLanes * sizeof(Element);
  for (; count >= 4 * kLanes; count -= 4 * kLanes) {
    const Narrow r0 = Format::narrow(Format::template apply<F>(take<Format>(a), take<Format>(b)));
    const Narrow r1 = Format::narrow(Format::template apply<F>(take<Format>(a + kStep), take<Format>(b + kStep)));
    const Narrow r2 =
        Format::narrow(Format::template apply<F>(take<Format>(a + 2 * kStep), take<Format>(b + 2 * kStep)));
    const Narrow r3 =
        Format::narrow(Format::template apply<F>(take<Format>(a + 3 * kStep), take<Format>(b + 3 * kStep)));
    store(d, r0, x);
    store(d, r1, x + kStep);
    store(d, r2, x + 2 * kStep);
    store(d, r3, x + 3 * kStep);
    if constexpr (kOutputs == 2) {
      store(d, r0, y);
      store(d, r1, y + kStep);
      store(d, r2, y + 2 * kStep);
      store(d, r3, y + 3 * kStep);
      y += 4 * kStep;
    }
    a += 4 * kStep;
    b += 4 * kStep;
    x += 4 * kStep;
  }
  for (; count >= kLanes; count -= kLanes) {
    const Narrow r = Format::narrow(Format::template apply<F>(take<Format>(a), take<Format>(b)));
    store(d, r, x);
    if constexpr (kOutputs == 2) {
      store(d, r, y);
      y += kStep;
    }
    a += kStep;
    b += kStep;
    x += kStep;
  }
  if (count == 0) return;
  if constexpr (kMasks) {
    const Narrow r =
        Format::narrow(Format::template apply<F>(take_first<Format>(a, count), take_first<Format>(b, count)));
    give_first<Format>(r, x, count);
    if constexpr (kOutputs == 2) give_first<Format>(r, y, count);
  } else {
    const std::byte* sources[] = {a, b};
    std::byte* outputs[] = {x, y};
    reduce_elements<Element, F>(sources, 2, outputs, kOutputs, 0, count);
  }
}

/// Elements [begin, end) of any number of sources and outputs. Each vector of a source is read once, all sources'
/// vectors at one place before the outputs' there are written.
template <class Format, Func F, bool kStream>
HWY_INLINE void fold_range(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs, std::uint32_t m,
                           std::uint64_t begin, std::uint64_t end) {
  using Element = typename Format::Element;
  using Wide = typename Format::Wide;
  using Narrow = typename Format::Narrow;
  const typename Format::D d;
  constexpr std::uint64_t kLanes = Format::kLanes;
  constexpr std::uint64_t kStep = kLanes * sizeof(Element);
  std::uint64_t at = begin * sizeof(Element);
  const std::uint64_t stop = end * sizeof(Element);
  for (; stop - at >= 4 * kStep; at += 4 * kStep) {
    const std::byte* s = sources[0] + at;
    Wide w0 = take<Format>(s);
    Wide w1 = take<Format>(s + kStep);
    Wide w2 = take<Format>(s + 2 * kStep);
    Wide w3 = take<Format>(s + 3 * kStep);
    for (std::uint32_t k = 1; k < n; ++k) {
      s = sources[k] + at;
      w0 = Format::template apply<F>(w0, take<Format>(s));
      w1 = Format::template apply<F>(w1, take<Format>(s + kStep));
      w2 = Format::template apply<F>(w2, take<Format>(s + 2 * kStep));
      w3 = Format::template apply<F>(w3, take<Format>(s + 3 * kStep));
    }
    const Narrow r0 = Format::narrow(w0);
    const Narrow r1 = Format::narrow(w1);
    const Narrow r2 = Format::narrow(w2);
    const Narrow r3 = Format::narrow(w3);
    for (std::uint32_t k = 0; k < m; ++k) {
      std::byte* out = outputs[k] + at;
      if constexpr (kStream) {
        stream(d, r0, out);
        stream(d, r1, out + kStep);
        stream(d, r2, out + 2 * kStep);
        stream(d, r3, out + 3 * kStep);
      } else {
        store(d, r0, out);
        store(d, r1, out + kStep);
        store(d, r2, out + 2 * kStep);
        store(d, r3, out + 3 * kStep);
      }
    }
  }
  for (; stop - at >= kStep; at += kStep) {
    Wide wide = take<Format>(sources[0] + at);
    for (std::uint32_t k = 1; k < n; ++k) wide = Format::template apply<F>(wide, take<Format>(sources[k] + at));
    const Narrow r = Format::narrow(wide);
    for (std::uint32_t k = 0; k < m; ++k) store(d, r, outputs[k] + at);
  }
  if (at == stop) return;
  if constexpr (kMasks) {
    const std::uint64_t rest = (stop - at) / sizeof(Element);
    Wide wide = take_first<Format>(sources[0] + at, rest);
    for (std::uint32_t k = 1; k < n; ++k) {
      wide = Format::template apply<F>(wide, take_first<Format>(sources[k] + at, rest));
    }
    const Narrow r = Format::narrow(wide);
    for (std::uint32_t k = 0; k < m; ++k) give_first<Format>(r, outputs[k] + at, rest);
  } else {
    reduce_elements<Element, F>(sources, n, outputs, m, at / sizeof(Element), end);
  }
}

template <class Format, Func F>
void combine_loop(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count) {
  pair_loop<Format, F, 1>(a, b, out, nullptr, count);
}

template <class Format, Func F>
void reduce_loop(const std::byte* const* sources, std::uint32_t n, std::byte* const* outputs, std::uint32_t m,
                 std::uint64_t count, bool streaming) {
  using Element = typename Format::Element;
  if (n == 1) {
    copy_to_many(sources[0], outputs, m, count * sizeof(Element), streaming);
  } else if (streaming) {
    // Elements up to the first aligned vector of the first output; an output that is not aligned with it is stored
    // as usual.
    constexpr std::uint64_t kBytes = vector_bytes(typename Format::D());
    const std::uint64_t to_go = (kBytes - reinterpret_cast<std::uintptr_t>(outputs[0]) % kBytes) % kBytes;
    const std::uint64_t head = to_go % sizeof(Element) == 0 ? std::min(to_go / sizeof(Element), count) : 0;
    fold_range<Format, F, false>(sources, n, outputs, m, 0, head);
    fold_range<Format, F, true>(sources, n, outputs, m, head, count);
    hwy::FlushStream();
  } else if (n == 2 && m == 1) {
    pair_loop<Format, F, 1>(sources[0], sources[1], outputs[0], nullptr, count);
  } else if (n == 2 && m == 2) {
    pair_loop<Format, F, 2>(sources[0], sources[1], outputs[0], outputs[1], count);
  } else {
    fold_range<Format, F, false>(sources, n, outputs, m, 0, count);
  }
}

#endif

template <class Format>
inline constexpr bool kByDefinition = false;
template <class Element>
inline constexpr bool kByDefinition<ByDefinition<Element>> = true;

/// The kernels of F on a format.
template <class Format, Func F>
KernelPair kernels_of() {
  using Element = typename Format::Element;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (!kByDefinition<Format>) return {&combine_loop<Format, F>, &reduce_loop<Format, F>};
#endif
  return {&combine_by_definition<Element, F>, &reduce_by_definition<Element, F>};
}

}  // namespace
}  // namespace unisono::cclo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
