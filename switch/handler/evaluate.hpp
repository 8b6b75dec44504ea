// What instructions of handlers compute: the definition for interpreter, vectors and hardware.
//
// Values are the 64 bits of a scalar register or a lane. An instruction looks at its element's bits of an operand only,
// and leaves 0 in the others. Which NaN comes out is not specified, as everywhere (core/arithmetic.hpp).
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/arithmetic.hpp"
#include "switch/handler/generated/isa.hpp"

namespace unisono::handler {

template <class T>
constexpr T value_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
constexpr std::uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

/// Calls use(T{}) with the unsigned integer, or the floating-point number, that an element is in a register.
template <class Use>
constexpr auto with_value(Element element, Use&& use) {
  switch (element) {
    case Element::kI8:
      return use(std::uint8_t{});
    case Element::kI16:
      return use(std::uint16_t{});
    case Element::kI32:
      return use(std::uint32_t{});
    case Element::kFp64:
      return use(double{});
    case Element::kFp32:
    case Element::kFp16:
    case Element::kBf16:
      return use(float{});
    default:
      return use(std::uint64_t{});
  }
}

namespace compute {

/// The bits of `aux` that a and b satisfy: 1 less, 2 equal, 4 greater, 8 unordered.
template <class T>
constexpr std::uint64_t compared(T a, T b, std::uint32_t aux) {
  const std::uint32_t what = a < b ? 1U : (a == b ? 2U : (a > b ? 4U : 8U));
  return (aux & what) != 0 ? 1 : 0;
}

template <std::floating_point T>
constexpr std::uint64_t floating(Op op, T a, T b, std::uint32_t aux) {
  switch (op) {
    case Op::kAdd:
      return bits_of<T>(a + b);
    case Op::kSub:
      return bits_of<T>(a - b);
    case Op::kMul:
      return bits_of<T>(arithmetic::rounded_product(a, b));
    case Op::kDiv:
      return bits_of<T>(a / b);
    case Op::kMin:
      return bits_of<T>(arithmetic::minimum(a, b));
    case Op::kMax:
      return bits_of<T>(arithmetic::maximum(a, b));
    case Op::kCompare:
      return compared(a, b, aux);
    default:
      return 0;
  }
}

/// Of divisions, b must not be 0.
template <std::unsigned_integral T>
constexpr std::uint64_t integer(Op op, T a, T b, std::uint32_t aux) {
  using S = std::make_signed_t<T>;
  constexpr unsigned kBits = 8 * sizeof(T);
  const auto sa = static_cast<S>(a);
  const auto sb = static_cast<S>(b);
  const unsigned shift = static_cast<unsigned>(b) & (kBits - 1);
  switch (op) {
    case Op::kAdd:
      return static_cast<T>(a + b);
    case Op::kSub:
      return static_cast<T>(a - b);
    case Op::kMul:
      return static_cast<T>(std::uint64_t{a} * b);
    case Op::kDivUnsigned:
      return static_cast<T>(a / b);
    case Op::kRemUnsigned:
      return static_cast<T>(a % b);
    case Op::kDivSigned:  // -1 apart: the least number / -1 traps in C++
      return sb == -1 ? static_cast<T>(0 - a) : static_cast<T>(sa / sb);
    case Op::kRemSigned:
      return sb == -1 ? 0 : static_cast<T>(sa % sb);
    case Op::kAnd:
      return static_cast<T>(a & b);
    case Op::kOr:
      return static_cast<T>(a | b);
    case Op::kXor:
      return static_cast<T>(a ^ b);
    case Op::kShiftLeft:
      return static_cast<T>(std::uint64_t{a} << shift);
    case Op::kShiftRight:
      return static_cast<T>(a >> shift);
    case Op::kShiftSigned:
      return static_cast<T>(sa >> shift);
    case Op::kMin:
      return b < a ? b : a;
    case Op::kMax:
      return a < b ? b : a;
    case Op::kMinSigned:
      return sb < sa ? b : a;
    case Op::kMaxSigned:
      return sa < sb ? b : a;
    case Op::kCompare:
      return compared(a, b, aux);
    case Op::kCompareSigned:
      return compared(sa, sb, aux);
    case Op::kPopcount:
      return static_cast<std::uint64_t>(std::popcount(a));
    case Op::kLeadingZeros:
      return static_cast<std::uint64_t>(std::countl_zero(a));
    case Op::kTrailingZeros:
      return static_cast<std::uint64_t>(std::countr_zero(a));
    case Op::kSwapBytes:
      return __builtin_bswap64(std::uint64_t{a}) >> (64U - kBits);
    case Op::kTruncate:
      return a;
    default:
      return 0;
  }
}

/// `bits` of an integer of `from`, with its sign in all 64 bits.
constexpr std::int64_t with_sign(std::uint64_t bits, Element from) {
  const unsigned unused = 64U - 8U * bytes_of(from);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

/// Toward 0; the nearest integer of type I that there is; 0 of NaN.
template <class I, class F>
constexpr I saturated(F value) {
  if (value != value) return 0;
  // The power of two just beyond the range is exact in every floating-point type.
  constexpr I kHalf = std::numeric_limits<I>::max() / 2 + 1;
  constexpr F kBeyond = static_cast<F>(kHalf) * 2;
  if (value >= kBeyond) return std::numeric_limits<I>::max();
  if (value <= static_cast<F>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  return static_cast<I>(value);
}

/// sign_extend to convert: from element `from` to element `to`.
constexpr std::uint64_t converted(Op op, Element to, Element from, std::uint64_t a) {
  return with_value(to, [&]<class T>(T) -> std::uint64_t {
    if constexpr (std::is_integral_v<T>) {
      if (op == Op::kSignExtend) return bits_of<T>(static_cast<T>(with_sign(a, from)));
      using S = std::make_signed_t<T>;
      const auto toward = [&]<class F>(F value) {
        return op == Op::kToSigned ? bits_of<S>(saturated<S>(value)) : bits_of<T>(saturated<T>(value));
      };
      return from == Element::kFp64 ? toward(value_of<double>(a)) : toward(value_of<float>(a));
    } else {
      if (op == Op::kFromSigned) return bits_of<T>(static_cast<T>(with_sign(a, from)));
      if (op == Op::kFromUnsigned) {
        const unsigned unused = 64U - 8U * bytes_of(from);
        return bits_of<T>(static_cast<T>(a << unused >> unused));
      }
      switch (to) {
        case Element::kFp16:
          return arithmetic::narrow_fp16(value_of<float>(a)).bits;
        case Element::kBf16:
          return arithmetic::narrow_bf16(value_of<float>(a)).bits;
        default:
          break;
      }
      switch (from) {
        case Element::kFp16:
          return bits_of<T>(static_cast<T>(arithmetic::widen(arithmetic::Fp16{static_cast<std::uint16_t>(a)})));
        case Element::kBf16:
          return bits_of<T>(static_cast<T>(arithmetic::widen(arithmetic::Bf16{static_cast<std::uint16_t>(a)})));
        case Element::kFp64:
          return bits_of<T>(static_cast<T>(value_of<double>(a)));
        default:
          return bits_of<T>(static_cast<T>(value_of<float>(a)));
      }
    }
  });
}

}  // namespace compute

/// add to convert, of one scalar or one lane. `b` must not be 0 in the element's bits where integers are divided.
constexpr std::uint64_t evaluate(Op op, Element element, std::uint32_t aux, std::uint64_t a, std::uint64_t b) {
  if (op >= Op::kSignExtend) return compute::converted(op, element, static_cast<Element>(aux & 7U), a);
  return with_value(element, [&]<class T>(T) -> std::uint64_t {
    if constexpr (std::is_floating_point_v<T>) {
      return compute::floating<T>(op, value_of<T>(a), value_of<T>(b), aux);
    } else {
      return compute::integer<T>(op, value_of<T>(a), value_of<T>(b), aux);
    }
  });
}

}  // namespace unisono::handler
