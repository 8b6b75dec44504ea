// The operators against independent definitions: exhaustive over 16-bit formats, edge cases elsewhere.
#include "core/arithmetic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

namespace unisono {
namespace {

using arithmetic::Bf16;
using arithmetic::Fp16;

// The value of a 16-bit float from its definition.
double value_of(std::uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    magnitude = std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Arithmetic, WideningIsExact) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double fp16 = value_of(half, 5);
    const double bf16 = value_of(half, 8);
    const double wide_fp16 = arithmetic::widen(Fp16{half});
    const double wide_bf16 = arithmetic::widen(Bf16{half});
    if (std::isnan(fp16)) {
      ASSERT_TRUE(std::isnan(wide_fp16)) << bits;
    } else {
      ASSERT_EQ(fp16, wide_fp16) << bits;
      ASSERT_EQ(std::signbit(fp16), std::signbit(wide_fp16)) << bits;
      ASSERT_EQ(arithmetic::narrow_fp16(static_cast<float>(fp16)).bits, half);
    }
    if (std::isnan(bf16)) {
      ASSERT_TRUE(std::isnan(wide_bf16)) << bits;
    } else {
      ASSERT_EQ(bf16, wide_bf16) << bits;
      ASSERT_EQ(arithmetic::narrow_bf16(static_cast<float>(bf16)).bits, half);
    }
  }
}

// Between each pair of neighbours: below, at and above the middle.
template <class Narrow>
void check_rounding(int exponent_bits, Narrow narrow) {
  const int infinity = ((1 << exponent_bits) - 1) << (15 - exponent_bits);
  for (int bits = 0; bits + 1 < infinity; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const auto middle =
        static_cast<float>((value_of(low, exponent_bits) + value_of(high, exponent_bits)) / 2);  // exact in fp32
    const std::uint16_t even = (bits & 1) == 0 ? low : high;
    ASSERT_EQ(narrow(middle), even) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, 0.0F)), low) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, std::numeric_limits<float>::infinity())), high) << bits;
    ASSERT_EQ(narrow(-middle), even | 0x8000) << bits;
  }
}

TEST(Arithmetic, NarrowingRoundsToNearestEven) {
  check_rounding(5, [](float value) { return arithmetic::narrow_fp16(value).bits; });
  check_rounding(8, [](float value) { return arithmetic::narrow_bf16(value).bits; });
  EXPECT_EQ(arithmetic::narrow_fp16(65519.996F).bits, 0x7bff);
  EXPECT_EQ(arithmetic::narrow_fp16(65520.0F).bits, 0x7c00);
  EXPECT_EQ(arithmetic::narrow_fp16(-1e10F).bits, 0xfc00);
  EXPECT_EQ(arithmetic::narrow_fp16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(arithmetic::narrow_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  for (const std::uint32_t nan : {0x7f800001U, 0x7fc00000U, 0xff800001U, 0xffffffffU, 0x7f80ffffU}) {
    EXPECT_TRUE(std::isnan(arithmetic::widen(arithmetic::narrow_fp16(std::bit_cast<float>(nan))))) << nan;
    EXPECT_TRUE(std::isnan(arithmetic::widen(arithmetic::narrow_bf16(std::bit_cast<float>(nan))))) << nan;
  }
}

template <class T>
T one(Func func, Datatype dtype, T a, T b) {
  T out{};
  EXPECT_TRUE(combine(func, dtype, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b),
                      reinterpret_cast<std::byte*>(&out), 1));
  return out;
}

TEST(Arithmetic, IntegersWrap) {
  const std::int32_t max32 = std::numeric_limits<std::int32_t>::max();
  const std::int64_t min64 = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(one(Func::kSum, Datatype::kInt32, max32, 1), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(one(Func::kProd, Datatype::kInt32, 65537, 65537), 131073);
  EXPECT_EQ(one(Func::kSum, Datatype::kInt64, min64, std::int64_t{-1}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(one(Func::kProd, Datatype::kInt64, min64, std::int64_t{-1}), min64);
  EXPECT_EQ(one(Func::kMin, Datatype::kInt32, -3, 2), -3);
  EXPECT_EQ(one(Func::kMax, Datatype::kInt64, std::int64_t{-3}, std::int64_t{2}), 2);
}

TEST(Arithmetic, MinimumAndMaximumFollowIeee2019) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Func func : {Func::kMin, Func::kMax}) {
    EXPECT_TRUE(std::isnan(one(func, Datatype::kFp64, nan, 1.0)));
    EXPECT_TRUE(std::isnan(one(func, Datatype::kFp64, 1.0, nan)));
    EXPECT_TRUE(std::isnan(one(func, Datatype::kFp32, 1.0F, std::numeric_limits<float>::quiet_NaN())));
    EXPECT_EQ(std::signbit(one(func, Datatype::kFp64, 0.0, -0.0)), func == Func::kMin);
    EXPECT_EQ(std::signbit(one(func, Datatype::kFp32, -0.0F, 0.0F)), func == Func::kMin);
    EXPECT_TRUE(std::signbit(one(func, Datatype::kFp32, -0.0F, -0.0F)));
  }
  EXPECT_EQ(one(Func::kMin, Datatype::kFp32, -1.5F, 2.0F), -1.5F);
  EXPECT_EQ(one(Func::kMax, Datatype::kFp32, -1.5F, 2.0F), 2.0F);
}

TEST(Arithmetic, SubnormalsAreKept) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(one(Func::kSum, Datatype::kFp32, tiny, tiny), 2 * tiny);
  EXPECT_NE(one(Func::kSum, Datatype::kFp32, tiny, tiny), 0.0F);
  EXPECT_EQ(one(Func::kSum, Datatype::kFp16, std::uint16_t{1}, std::uint16_t{1}), 2);
  EXPECT_EQ(one(Func::kSum, Datatype::kBf16, std::uint16_t{1}, std::uint16_t{0x8002}), 0x8001);
}

TEST(Arithmetic, NarrowIntegersWrapToo) {
  EXPECT_EQ(one(Func::kSum, Datatype::kInt8, std::int8_t{127}, std::int8_t{2}), -127);
  EXPECT_EQ(one(Func::kProd, Datatype::kUint8, std::uint8_t{17}, std::uint8_t{17}), 33);
  EXPECT_EQ(one(Func::kProd, Datatype::kUint16, std::uint16_t{65535}, std::uint16_t{65535}), 1);
  EXPECT_EQ(one(Func::kProd, Datatype::kInt16, std::int16_t{-32768}, std::int16_t{-1}), -32768);
  EXPECT_EQ(one(Func::kMax, Datatype::kUint32, 0x80000000U, 1U), 0x80000000U);
  EXPECT_EQ(one(Func::kMin, Datatype::kUint64, std::uint64_t{1} << 63U, std::uint64_t{1}), 1U);
  EXPECT_EQ(one(Func::kMin, Datatype::kInt8, std::int8_t{-128}, std::int8_t{1}), -128);
}

TEST(Arithmetic, LogicAndBits) {
  EXPECT_EQ(one(Func::kLogicalAnd, Datatype::kInt32, 4, 3), 1);
  EXPECT_EQ(one(Func::kLogicalAnd, Datatype::kInt32, 4, 0), 0);
  EXPECT_EQ(one(Func::kLogicalOr, Datatype::kUint64, std::uint64_t{0}, std::uint64_t{1} << 40U), 1U);
  EXPECT_EQ(one(Func::kLogicalOr, Datatype::kInt16, std::int16_t{0}, std::int16_t{0}), 0);
  EXPECT_EQ(one(Func::kLogicalXor, Datatype::kInt8, std::int8_t{2}, std::int8_t{-5}), 0);
  EXPECT_EQ(one(Func::kLogicalXor, Datatype::kInt8, std::int8_t{0}, std::int8_t{-5}), 1);
  EXPECT_EQ(one(Func::kBitwiseAnd, Datatype::kInt32, 12, 10), 8);
  EXPECT_EQ(one(Func::kBitwiseOr, Datatype::kUint16, std::uint16_t{12}, std::uint16_t{10}), 14);
  EXPECT_EQ(one(Func::kBitwiseXor, Datatype::kByte, std::byte{12}, std::byte{10}), std::byte{6});
  // A truth value may be any byte, and becomes 0 or 1.
  for (const auto& [func, both, single, none] :
       {std::tuple{Func::kLogicalAnd, 1, 0, 0}, std::tuple{Func::kBitwiseAnd, 1, 0, 0}, std::tuple{Func::kMin, 1, 0, 0},
        std::tuple{Func::kLogicalOr, 1, 1, 0}, std::tuple{Func::kBitwiseOr, 1, 1, 0}, std::tuple{Func::kMax, 1, 1, 0},
        std::tuple{Func::kLogicalXor, 0, 1, 0}, std::tuple{Func::kBitwiseXor, 0, 1, 0}}) {
    EXPECT_EQ(one(func, Datatype::kBool, std::uint8_t{2}, std::uint8_t{4}), both) << name_of(func);
    EXPECT_EQ(one(func, Datatype::kBool, std::uint8_t{0}, std::uint8_t{4}), single) << name_of(func);
    EXPECT_EQ(one(func, Datatype::kBool, std::uint8_t{0}, std::uint8_t{0}), none) << name_of(func);
  }
}

TEST(Arithmetic, ComplexProductsRoundEveryOperation) {
  using C = std::array<double, 2>;
  EXPECT_EQ(one(Func::kSum, Datatype::kComplex128, C{1, 2}, C{3, -5}), (C{4, -3}));
  EXPECT_EQ(one(Func::kProd, Datatype::kComplex128, C{1, 2}, C{3, -5}), (C{13, 1}));
  // (1 + e)(1 - e) rounds to 1 - e^2 in a fused operation, and to 1 otherwise.
  const double e = 0x1p-30;
  EXPECT_EQ(one(Func::kProd, Datatype::kComplex128, C{1 + e, 1}, C{1 - e, 1}), (C{0, 2}));
  using S = std::array<float, 2>;
  EXPECT_EQ(one(Func::kProd, Datatype::kComplex64, S{0, 1}, S{0, 1}), (S{-1, 0}));
}

TEST(Arithmetic, PairsKeepTheLowerIndexOfEqualValues) {
  struct Pair {
    double value;
    std::int32_t index;
    std::uint32_t padding;
    bool operator==(const Pair&) const = default;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto min = [](Pair a, Pair b) { return one(Func::kMinloc, Datatype::kFp64Int32, a, b); };
  const auto max = [](Pair a, Pair b) { return one(Func::kMaxloc, Datatype::kFp64Int32, a, b); };
  EXPECT_EQ(min({1, 7, 9}, {2, 3, 9}), (Pair{1, 7, 0}));
  EXPECT_EQ(max({1, 7, 9}, {2, 3, 9}), (Pair{2, 3, 0}));
  EXPECT_EQ(min({2, 7, 9}, {2, 3, 9}), (Pair{2, 3, 0}));
  EXPECT_EQ(max({2, -7, 9}, {2, 3, 9}), (Pair{2, -7, 0}));
  EXPECT_EQ(min({0.0, 1, 0}, {-0.0, 5, 0}).index, 5);
  EXPECT_EQ(max({0.0, 5, 0}, {-0.0, 1, 0}).index, 5);
  for (const auto& take : {std::function(min), std::function(max)}) {
    EXPECT_TRUE(std::isnan(take({nan, 4, 0}, {1, 1, 0}).value));
    EXPECT_EQ(take({1, 1, 0}, {nan, 4, 0}).index, 4);
    EXPECT_EQ(take({nan, 9, 0}, {nan, 4, 0}).index, 4);
  }
  using I = std::array<std::int64_t, 2>;
  EXPECT_EQ(one(Func::kMinloc, Datatype::kInt64Int64, I{-1, 4}, I{-1, 3}), (I{-1, 3}));
  using F = std::array<std::int32_t, 2>;
  EXPECT_EQ(one(Func::kMaxloc, Datatype::kInt32Int32, F{-1, 4}, F{-2, 3}), (F{-1, 4}));
}

TEST(Arithmetic, MeansDivideOnceAndRoundOnce) {
  const auto mean_of = [](Datatype dtype, auto value, std::uint32_t ranks) {
    EXPECT_TRUE(
        mean(dtype, reinterpret_cast<const std::byte*>(&value), reinterpret_cast<std::byte*>(&value), 1, ranks));
    return value;
  };
  EXPECT_EQ(mean_of(Datatype::kFp64, 1.0, 3), 1.0 / 3);
  EXPECT_EQ(mean_of(Datatype::kFp32, 1.0F, 3), 1.0F / 3);
  EXPECT_EQ(mean_of(Datatype::kFp16, std::uint16_t{0x3c00}, 3), arithmetic::narrow_fp16(1.0F / 3).bits);
  EXPECT_EQ(mean_of(Datatype::kBf16, std::uint16_t{0x3f80}, 3), arithmetic::narrow_bf16(1.0F / 3).bits);
  EXPECT_EQ(mean_of(Datatype::kComplex64, std::array<float, 2>{1, -5}, 3), (std::array<float, 2>{1.0F / 3, -5.0F / 3}));
  EXPECT_EQ(mean_of(Datatype::kComplex128, std::array<double, 2>{1, -5}, 7),
            (std::array<double, 2>{1.0 / 7, -5.0 / 7}));
  std::byte untouched{9};
  EXPECT_FALSE(mean(Datatype::kInt32, &untouched, &untouched, 1, 2));
  EXPECT_EQ(untouched, std::byte{9});
}

TEST(Arithmetic, WhatIsNotDefinedIsRefused) {
  std::byte a{1};
  std::byte out{7};
  EXPECT_FALSE(combine(Func::kSum, Datatype::kByte, &a, &a, &out, 1));
  EXPECT_FALSE(combine(Func::kNone, Datatype::kInt32, &a, &a, &out, 0));
  EXPECT_FALSE(combine(Func::kBitwiseAnd, Datatype::kFp32, &a, &a, &out, 0));
  EXPECT_FALSE(combine(Func::kMin, Datatype::kComplex64, &a, &a, &out, 0));
  EXPECT_FALSE(combine(Func::kSum, Datatype::kFp32Int32, &a, &a, &out, 0));
  EXPECT_FALSE(fold_step(Func::kMinloc, Datatype::kFp32, false, &out, &a, 1));
  EXPECT_EQ(out, std::byte{7});
  std::size_t defined = 0;
  for (const Datatype dtype : kAllDatatype) {
    for (const Func func : kAllFunc) defined += is_defined(func, dtype) ? 1 : 0;
  }
  EXPECT_EQ(defined, 8U * 10 + 4 * 4 + 2 * 2 + 8 + 3 + 4 * 2);
}

// Long, unaligned and in-place arrays give what single elements give.
TEST(Arithmetic, ArraysEqualElements) {
  std::mt19937_64 random(7);
  for (const Datatype dtype : kAllDatatype) {
    const std::size_t size = bytes_of(dtype);
    for (const Func func : kAllFunc) {
      if (!is_defined(func, dtype)) continue;
      const std::size_t count = 389;
      std::vector<std::byte> a(count * size + 1);
      std::vector<std::byte> b(count * size + 1);
      for (std::byte& byte : a) byte = static_cast<std::byte>(random());
      for (std::byte& byte : b) byte = static_cast<std::byte>(random());
      std::vector<std::byte> single(count * size + 1);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(combine(func, dtype, &a[1 + i * size], &b[1 + i * size], &single[1 + i * size], 1));
      }
      // NaN results may differ in payload between vector and scalar code; inputs with NaN are compared as NaN.
      const auto same = [&](const std::byte* x, const std::byte* y) {
        if (std::memcmp(x, y, size) == 0) return true;
        bool both = false;
        arithmetic::with_element(dtype, [&](auto element) {
          using Element = decltype(element);
          Element p;
          Element q;
          std::memcpy(&p, x, size);
          std::memcpy(&q, y, size);
          using Carrier = arithmetic::Carrier<Element>;
          const auto u = Carrier::in(p);
          const auto v = Carrier::in(q);
          const auto alike = [](auto s, auto t) { return std::memcmp(&s, &t, sizeof s) == 0 || (s != s && t != t); };
          if constexpr (arithmetic::kIsComplex<Element>) {
            both = alike(u.re, v.re) && alike(u.im, v.im);
          } else if constexpr (arithmetic::kIsLocated<Element>) {
            both = alike(u.value, v.value) && u.index == v.index;
          } else if constexpr (std::is_floating_point_v<typename Carrier::type>) {
            both = u != u && v != v;
          }
        });
        return both;
      };
      for (const int in_place : {0, 1, 2}) {
        std::vector<std::byte> x = a;
        std::vector<std::byte> y = b;
        std::vector<std::byte> out(count * size + 1);
        std::byte* target = in_place == 0 ? &out[1] : (in_place == 1 ? &x[1] : &y[1]);
        ASSERT_TRUE(combine(func, dtype, &x[1], &y[1], target, count));
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_TRUE(same(target + i * size, &single[1 + i * size])) << name_of(dtype) << " " << name_of(func) << i;
        }
      }
    }
  }
}

TEST(Arithmetic, FoldRoundsOnce) {
  // 2048 + 1 + 1 in binary16: rounding each step loses both ones, rounding once does not.
  const std::uint16_t big = arithmetic::narrow_fp16(2048.0F).bits;
  const std::uint16_t unit = arithmetic::narrow_fp16(1.0F).bits;
  const auto bytes = [](const std::uint16_t& value) { return reinterpret_cast<const std::byte*>(&value); };
  std::uint16_t stepwise = one(Func::kSum, Datatype::kFp16, big, unit);
  stepwise = one(Func::kSum, Datatype::kFp16, stepwise, unit);
  EXPECT_EQ(arithmetic::widen(Fp16{stepwise}), 2048.0F);
  std::byte accumulator[4];
  ASSERT_EQ(accumulator_bytes(Datatype::kFp16), 4U);
  fold_begin(Datatype::kFp16, bytes(big), accumulator, 1);
  ASSERT_TRUE(fold_step(Func::kSum, Datatype::kFp16, false, accumulator, bytes(unit), 1));
  ASSERT_TRUE(fold_step(Func::kSum, Datatype::kFp16, true, accumulator, bytes(unit), 1));
  std::uint16_t once = 0;
  fold_end(Datatype::kFp16, accumulator, reinterpret_cast<std::byte*>(&once), 1);
  EXPECT_EQ(arithmetic::widen(Fp16{once}), 2050.0F);
}

}  // namespace
}  // namespace unisono
