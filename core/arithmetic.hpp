// The definition of the reduction operators, for every engine (docs/model.md, "Arithmetic").
//
// Integers wrap; floating point rounds to nearest even and keeps subnormals; fp16 and bf16 are
// combined in fp32 and rounded once per move; min and max are IEEE 754-2019 minimum and maximum;
// a complex product is (ac - bd, ad + bc), each operation rounded.
// Must be compiled with -ffp-contract=off and without -ffast-math.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/generated/spec.hpp"
#include "core/user_op.hpp"

namespace unisono {

static_assert(std::endian::native == std::endian::little, "elements in memory are little-endian");

namespace arithmetic {

/// An IEEE 754 binary16 in memory; arithmetic happens in fp32.
struct Fp16 {
  std::uint16_t bits = 0;
};
/// A bfloat16 in memory; arithmetic happens in fp32.
struct Bf16 {
  std::uint16_t bits = 0;
};

/// A complex number in memory.
template <class Part>
struct Complex {
  Part re = 0;
  Part im = 0;
};
/// A truth value in memory: any byte but 0 is true, results are 0 or 1.
struct Bool {
  std::uint8_t byte = 0;
};
/// A value and where it was found.
template <class Value, class Index>
struct Located {
  Value value = 0;
  Index index = 0;
};
/// As C lays out a double and an int: the padding is part of the element, and zero in results.
template <>
struct Located<double, std::int32_t> {
  double value = 0;
  std::int32_t index = 0;
  std::uint32_t padding = 0;
};
static_assert(sizeof(Located<double, std::int32_t>) == 16 && sizeof(Located<float, std::int32_t>) == 8);

/// The value of a binary16, exactly. A signalling NaN may become quiet.
constexpr float widen(Fp16 half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = half.bits & 0x7fffU;
  // The exponents are biased by 15 and 127: the same fields read as fp32 are too small by 2^112. The
  // multiplication is exact and makes subnormals normal.
  const std::uint32_t scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13U) * 0x1p112F);
  const std::uint32_t special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;  // infinity and NaN keep the largest exponent
  return std::bit_cast<float>(sign | scaled | special);
}

/// The value of a bfloat16, exactly.
constexpr float widen(Bf16 brain) { return std::bit_cast<float>(static_cast<std::uint32_t>(brain.bits) << 16U); }

/// Nearest binary16, ties to even; overflows to infinity, underflows gradually, NaN stays NaN (quiet).
constexpr Fp16 narrow_fp16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Normal range: rebias the exponent by -112 and round off 13 bits; a carry runs into the exponent, and from the
  // largest finite value into infinity, as it should.
  const std::uint32_t normal = (magnitude - (112U << 23U) + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
  // Below 2^-14 the unit in the last place is 2^-24, which is that of fp32 numbers in [0.5, 1): adding 0.5 lets the
  // fp32 adder round, and the low bits are the result.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U | ((magnitude >> 13U) & 0x1ffU) : 0x7c00U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  return {static_cast<std::uint16_t>(sign | (magnitude >= 0x47800000U ? special : finite))};
}

/// Nearest bfloat16, ties to even; overflows to infinity, NaN stays NaN (quiet).
constexpr Bf16 narrow_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet = (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded)};
}

/// IEEE 754-2019 minimum, and the ordinary one for integers.
template <class T>
constexpr T minimum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return b < a ? b : a;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    // Equal values are equal bits, or zeros of either sign: the union of the sign bits is the lesser zero.
    const T equal = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b)));
    const T unordered = a + b;
    return a < b ? a : (b < a ? b : (a == b ? equal : unordered));
  }
}

/// IEEE 754-2019 maximum, and the ordinary one for integers.
template <class T>
constexpr T maximum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? b : a;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const T equal = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b)));
    const T unordered = a + b;
    return a < b ? b : (b < a ? a : (a == b ? equal : unordered));
  }
}

template <class T>
inline constexpr bool kIsComplex = false;
template <class Part>
inline constexpr bool kIsComplex<Complex<Part>> = true;
template <class T>
inline constexpr bool kIsLocated = false;
template <class Value, class Index>
inline constexpr bool kIsLocated<Located<Value, Index>> = true;

/// Whether function F is defined on carriers of type T.
template <Func F, class T>
constexpr bool defined() {
  switch (F) {
    case Func::kNone:
      return false;
    case Func::kSum:
    case Func::kProd:
      return std::is_arithmetic_v<T> || kIsComplex<T>;
    case Func::kMin:
    case Func::kMax:
      return std::is_arithmetic_v<T> || std::is_same_v<T, Bool>;
    case Func::kLogicalAnd:
    case Func::kLogicalOr:
    case Func::kLogicalXor:
      return std::is_integral_v<T> || std::is_same_v<T, Bool>;
    case Func::kBitwiseAnd:
    case Func::kBitwiseOr:
    case Func::kBitwiseXor:
      return std::is_integral_v<T> || std::is_same_v<T, Bool> || std::is_same_v<T, std::byte>;
    case Func::kMinloc:
    case Func::kMaxloc:
      return kIsLocated<T>;
    default:
      return false;  // avg has one operand; the user's are no templates
  }
  return false;
}

/// Whether a is to be taken rather than b: NaN before numbers, then by value (-0 < +0), then the lower index.
template <Func F, class T>
constexpr bool located_first(const T& a, const T& b) {
  if (a.value != a.value || b.value != b.value) {
    const bool both = a.value != a.value && b.value != b.value;
    return both ? a.index <= b.index : a.value != a.value;
  }
  if (a.value != b.value) return F == Func::kMinloc ? a.value < b.value : b.value < a.value;
  if constexpr (std::is_floating_point_v<decltype(a.value)>) {
    const bool a_negative = __builtin_signbit(a.value) != 0;
    const bool b_negative = __builtin_signbit(b.value) != 0;
    if (a_negative != b_negative) return F == Func::kMinloc ? a_negative : b_negative;
  }
  return a.index <= b.index;
}

/// A product that is rounded before anything is done with it. GCC 12 forms fused multiply-adds of alternating sums and
/// differences in spite of -ffp-contract=off.
template <class T>
constexpr T rounded_product(T a, T b) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(a * b);
#else
  return a * b;
#endif
#else
  return a * b;
#endif
}

/// Truth values, as 0 or 1.
template <Func F>
constexpr bool logical(bool a, bool b) {
  if constexpr (F == Func::kLogicalAnd || F == Func::kBitwiseAnd || F == Func::kMin) {
    return a && b;
  } else if constexpr (F == Func::kLogicalOr || F == Func::kBitwiseOr || F == Func::kMax) {
    return a || b;
  } else {
    return a != b;
  }
}

/// func(a, b) on carriers: integers, float, double, and the structures above. F must be defined on them.
template <Func F, class T>
constexpr T apply(T a, T b) {
  static_assert(defined<F, T>());
  if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<std::uint8_t>(logical<F>(a.byte != 0, b.byte != 0))};
  } else if constexpr (kIsLocated<T>) {
    T result = located_first<F>(a, b) ? a : b;
    if constexpr (requires { result.padding; }) result.padding = 0;
    return result;
  } else if constexpr (kIsComplex<T>) {
    if constexpr (F == Func::kSum) {
      return {a.re + b.re, a.im + b.im};
    } else {
      return {rounded_product(a.re, b.re) - rounded_product(a.im, b.im),
              rounded_product(a.re, b.im) + rounded_product(a.im, b.re)};
    }
  } else if constexpr (F == Func::kMin) {
    return minimum(a, b);
  } else if constexpr (F == Func::kMax) {
    return maximum(a, b);
  } else if constexpr (F == Func::kLogicalAnd || F == Func::kLogicalOr || F == Func::kLogicalXor) {
    return static_cast<T>(logical<F>(a != 0, b != 0));
  } else if constexpr (F == Func::kBitwiseAnd) {
    return static_cast<T>(a & b);
  } else if constexpr (F == Func::kBitwiseOr) {
    return static_cast<T>(a | b);
  } else if constexpr (F == Func::kBitwiseXor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (std::is_integral_v<T>) {
    // Narrow types would be promoted to a signed type that may overflow.
    using Unsigned = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    const auto x = static_cast<Unsigned>(static_cast<std::make_unsigned_t<T>>(a));
    const auto y = static_cast<Unsigned>(static_cast<std::make_unsigned_t<T>>(b));
    return static_cast<T>(F == Func::kSum ? x + y : x * y);
  } else {
    return F == Func::kSum ? a + b : a * b;
  }
}

/// What an element type is computed in, and how it gets there and back.
template <class Element>
struct Carrier {
  using type = Element;
  static constexpr Element in(Element value) { return value; }
  static constexpr Element out(Element value) { return value; }
};
template <>
struct Carrier<Fp16> {
  using type = float;
  static constexpr float in(Fp16 value) { return widen(value); }
  static constexpr Fp16 out(float value) { return narrow_fp16(value); }
};
template <>
struct Carrier<Bf16> {
  using type = float;
  static constexpr float in(Bf16 value) { return widen(value); }
  static constexpr Bf16 out(float value) { return narrow_bf16(value); }
};

/// Calls `use(Element{})` with the element type of `dtype`. Returns false for none and unknown values.
template <class Use>
constexpr bool with_element(Datatype dtype, Use&& use) {
  switch (dtype) {
    case Datatype::kNone:
      return false;
    case Datatype::kByte:
      use(std::byte{});
      return true;
    case Datatype::kInt32:
      use(std::int32_t{});
      return true;
    case Datatype::kInt64:
      use(std::int64_t{});
      return true;
    case Datatype::kFp16:
      use(Fp16{});
      return true;
    case Datatype::kBf16:
      use(Bf16{});
      return true;
    case Datatype::kFp32:
      use(float{});
      return true;
    case Datatype::kFp64:
      use(double{});
      return true;
    case Datatype::kComplex64:
      use(Complex<float>{});
      return true;
    case Datatype::kComplex128:
      use(Complex<double>{});
      return true;
    case Datatype::kInt8:
      use(std::int8_t{});
      return true;
    case Datatype::kUint8:
      use(std::uint8_t{});
      return true;
    case Datatype::kInt16:
      use(std::int16_t{});
      return true;
    case Datatype::kUint16:
      use(std::uint16_t{});
      return true;
    case Datatype::kUint32:
      use(std::uint32_t{});
      return true;
    case Datatype::kUint64:
      use(std::uint64_t{});
      return true;
    case Datatype::kBool:
      use(Bool{});
      return true;
    case Datatype::kFp32Int32:
      use(Located<float, std::int32_t>{});
      return true;
    case Datatype::kFp64Int32:
      use(Located<double, std::int32_t>{});
      return true;
    case Datatype::kInt32Int32:
      use(Located<std::int32_t, std::int32_t>{});
      return true;
    case Datatype::kInt64Int64:
      use(Located<std::int64_t, std::int64_t>{});
      return true;
  }
  return false;
}

/// Calls `use(std::integral_constant<Func, F>{})` if `func` has two operands and is built in. Returns false otherwise.
template <class Use>
constexpr bool with_func(Func func, Use&& use) {
  switch (func) {
    default:
      return false;
    case Func::kSum:
      use(std::integral_constant<Func, Func::kSum>{});
      return true;
    case Func::kProd:
      use(std::integral_constant<Func, Func::kProd>{});
      return true;
    case Func::kMin:
      use(std::integral_constant<Func, Func::kMin>{});
      return true;
    case Func::kMax:
      use(std::integral_constant<Func, Func::kMax>{});
      return true;
    case Func::kLogicalAnd:
      use(std::integral_constant<Func, Func::kLogicalAnd>{});
      return true;
    case Func::kLogicalOr:
      use(std::integral_constant<Func, Func::kLogicalOr>{});
      return true;
    case Func::kLogicalXor:
      use(std::integral_constant<Func, Func::kLogicalXor>{});
      return true;
    case Func::kBitwiseAnd:
      use(std::integral_constant<Func, Func::kBitwiseAnd>{});
      return true;
    case Func::kBitwiseOr:
      use(std::integral_constant<Func, Func::kBitwiseOr>{});
      return true;
    case Func::kBitwiseXor:
      use(std::integral_constant<Func, Func::kBitwiseXor>{});
      return true;
    case Func::kMinloc:
      use(std::integral_constant<Func, Func::kMinloc>{});
      return true;
    case Func::kMaxloc:
      use(std::integral_constant<Func, Func::kMaxloc>{});
      return true;
  }
  return false;
}

/// out[i] = compute(a[i], b[i]) over unaligned arrays. Works by blocks of constant size held in locals, so that the
/// compiler vectorises whatever the alignment and although `out` may be `a` or `b` (equal, not partly overlapping).
template <class A, class B, class Out, class Compute>
inline void for_each_element(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count,
                             Compute compute) {
  constexpr std::size_t kBlock = 256 / sizeof(A);
  A x[kBlock];
  B y[kBlock];
  Out z[kBlock];
  std::uint64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    std::memcpy(x, a + i * sizeof(A), sizeof x);
    std::memcpy(y, b + i * sizeof(B), sizeof y);
    for (std::size_t k = 0; k < kBlock; ++k) z[k] = compute(x[k], y[k]);
    std::memcpy(out + i * sizeof(Out), z, sizeof z);
  }
  for (; i < count; ++i) {
    std::memcpy(x, a + i * sizeof(A), sizeof(A));
    std::memcpy(y, b + i * sizeof(B), sizeof(B));
    z[0] = compute(x[0], y[0]);
    std::memcpy(out + i * sizeof(Out), z, sizeof(Out));
  }
}

}  // namespace arithmetic

/// Whether a function of two operands is defined on a datatype. On integers all but minloc and maxloc are, on floating
/// point sum, prod, min and max, on complex numbers sum and prod, on truth values min, max, the logical and the bitwise
/// ones, on bytes the bitwise ones, on pairs minloc and maxloc.
/// An operator of the user is on all datatypes.
inline bool is_defined(Func func, Datatype dtype) {
  if (is_user(func)) return find_user_op(func) != nullptr && dtype != Datatype::kNone;
  bool found = false;
  arithmetic::with_element(dtype, [&](auto element) {
    arithmetic::with_func(func, [&](auto f) {
      found = arithmetic::defined<decltype(f)::value, typename arithmetic::Carrier<decltype(element)>::type>();
    });
  });
  return found;
}

/// Whether a mean is defined on a datatype: on floating point and complex numbers.
constexpr bool has_mean(Datatype dtype) {
  return dtype == Datatype::kFp16 || dtype == Datatype::kBf16 || dtype == Datatype::kFp32 || dtype == Datatype::kFp64 ||
         dtype == Datatype::kComplex64 || dtype == Datatype::kComplex128;
}

/// Whether a call may reduce a datatype by an operator.
inline bool is_operator(Func func, Datatype dtype) {
  return func == Func::kAvg ? has_mean(dtype) : is_defined(func, dtype);
}

/// Whether any operator is defined on a datatype: on all but none.
constexpr bool is_reducible(Datatype dtype) { return is_known(dtype) && dtype != Datatype::kNone; }

/// out[i] = func(a[i], b[i]) for `count` elements; rounds once. Arrays need no alignment; `out` may be `a` or `b`, and
/// must not overlap them otherwise. Returns false, having written nothing, if func is not defined on dtype.
/// Thread-safe.
inline bool combine(Func func, Datatype dtype, const std::byte* a, const std::byte* b, std::byte* out,
                    std::uint64_t count) {
  if (is_user(func)) return combine_user(func, dtype, a, b, out, count);
  bool known = false;
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    arithmetic::with_func(func, [&](auto f) {
      constexpr Func kFunc = decltype(f)::value;
      if constexpr (arithmetic::defined<kFunc, typename Carrier::type>()) {
        known = true;
        arithmetic::for_each_element<Element, Element, Element>(a, b, out, count, [](Element x, Element y) {
          return Carrier::out(arithmetic::apply<kFunc>(Carrier::in(x), Carrier::in(y)));
        });
      }
    });
  });
  return known;
}

/// Bytes of one element of a fold's accumulator: fp16 and bf16 accumulate in fp32, so that a fan-in rounds once.
constexpr std::uint32_t accumulator_bytes(Datatype dtype) {
  return dtype == Datatype::kFp16 || dtype == Datatype::kBf16 ? 4 : bytes_of(dtype);
}

/// Begins a fold: accumulator = a. `accumulator` has count * accumulator_bytes(dtype) bytes.
inline void fold_begin(Datatype dtype, const std::byte* a, std::byte* accumulator, std::uint64_t count) {
  if (accumulator_bytes(dtype) == bytes_of(dtype)) {
    if (count != 0) std::memmove(accumulator, a, count * bytes_of(dtype));
    return;
  }
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    arithmetic::for_each_element<Element, Element, typename Carrier::type>(
        a, a, accumulator, count, [](Element x, Element) { return Carrier::in(x); });
  });
}

inline void fold_end(Datatype dtype, const std::byte* accumulator, std::byte* out, std::uint64_t count);

/// One step: accumulator = func(accumulator, a), or func(a, accumulator) if `swap`. Returns false, having changed
/// nothing, if func is not defined on dtype.
inline bool fold_step(Func func, Datatype dtype, bool swap, std::byte* accumulator, const std::byte* a,
                      std::uint64_t count) {
  if (is_user(func)) {
    if (accumulator_bytes(dtype) == bytes_of(dtype)) {
      return combine_user(func, dtype, swap ? a : accumulator, swap ? accumulator : a, accumulator, count);
    }
    // An operator of the user sees elements, so their accumulator holds nothing that an element does not.
    constexpr std::uint64_t kBlock = 512;
    std::byte narrow[kBlock * 2];
    for (std::uint64_t done = 0; done < count; done += kBlock) {
      const std::uint64_t n = count - done < kBlock ? count - done : kBlock;
      const std::byte* with = a + done * bytes_of(dtype);
      std::byte* wide = accumulator + done * accumulator_bytes(dtype);
      fold_end(dtype, wide, narrow, n);
      if (!combine_user(func, dtype, swap ? with : narrow, swap ? narrow : with, narrow, n)) return false;
      fold_begin(dtype, narrow, wide, n);
    }
    return true;
  }
  bool known = false;
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    using Wide = typename Carrier::type;
    arithmetic::with_func(func, [&](auto f) {
      constexpr Func kFunc = decltype(f)::value;
      if constexpr (arithmetic::defined<kFunc, Wide>()) {
        known = true;
        arithmetic::for_each_element<Wide, Element, Wide>(
            accumulator, a, accumulator, count, [swap](Wide x, Element y) {
              return swap ? arithmetic::apply<kFunc>(Carrier::in(y), x) : arithmetic::apply<kFunc>(x, Carrier::in(y));
            });
      }
    });
  });
  return known;
}

/// Ends a fold: out = accumulator, rounded to dtype. `out` must not overlap the accumulator, or be equal to it.
inline void fold_end(Datatype dtype, const std::byte* accumulator, std::byte* out, std::uint64_t count) {
  if (accumulator_bytes(dtype) == bytes_of(dtype)) {
    if (count != 0) std::memmove(out, accumulator, count * bytes_of(dtype));
    return;
  }
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    using Wide = typename Carrier::type;
    arithmetic::for_each_element<Wide, Wide, Element>(accumulator, accumulator, out, count,
                                                      [](Wide x, Wide) { return Carrier::out(x); });
  });
}

/// out[i] = a[i] / ranks, rounded once; of complex numbers, each part. fp16 and bf16 are divided in fp32. `out` may be
/// `a`. Returns false, having written nothing, if dtype has no mean.
inline bool mean(Datatype dtype, const std::byte* a, std::byte* out, std::uint64_t count, std::uint32_t ranks) {
  bool known = false;
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    using Wide = typename Carrier::type;
    if constexpr (std::is_floating_point_v<Wide>) {
      known = true;
      arithmetic::for_each_element<Element, Element, Element>(a, a, out, count, [ranks](Element x, Element) {
        return Carrier::out(Carrier::in(x) / static_cast<Wide>(ranks));
      });
    } else if constexpr (arithmetic::kIsComplex<Wide>) {
      known = true;
      arithmetic::for_each_element<Element, Element, Element>(a, a, out, count, [ranks](Element x, Element) {
        const auto divisor = static_cast<decltype(x.re)>(ranks);
        return Element{x.re / divisor, x.im / divisor};
      });
    }
  });
  return known;
}

/// Whether a factor is defined on a datatype: where a mean is.
constexpr bool has_scale(Datatype dtype) { return has_mean(dtype); }

/// out[i] = a[i] * factor, rounded once; of complex numbers, each part. The factor is first rounded to what is computed
/// in, which for fp16 and bf16 is fp32. `out` may be `a`. Returns false, having written nothing, if dtype has no
/// factors.
inline bool scale(Datatype dtype, const std::byte* a, std::byte* out, std::uint64_t count, double factor) {
  bool known = false;
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    using Carrier = arithmetic::Carrier<Element>;
    using Wide = typename Carrier::type;
    if constexpr (std::is_floating_point_v<Wide>) {
      known = true;
      const auto rounded = static_cast<Wide>(factor);
      arithmetic::for_each_element<Element, Element, Element>(
          a, a, out, count, [rounded](Element x, Element) { return Carrier::out(Carrier::in(x)*rounded); });
    } else if constexpr (arithmetic::kIsComplex<Wide>) {
      known = true;
      const auto rounded = static_cast<decltype(element.re)>(factor);
      arithmetic::for_each_element<Element, Element, Element>(a, a, out, count, [rounded](Element x, Element) {
        return Element{x.re * rounded, x.im * rounded};
      });
    }
  });
  return known;
}

}  // namespace unisono
