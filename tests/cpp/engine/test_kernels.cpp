// The kernels against core/arithmetic.hpp, bit for bit, for every instruction set that this CPU has.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <array>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/arithmetic.hpp"
#include "engine/kernels.hpp"

namespace unisono::cclo {
namespace {

using Bytes = std::vector<std::byte>;

struct Operator {
  Func func;
  Datatype dtype;
};

std::string text_of(const Operator& op) { return std::string(name_of(op.func)) + " of " + name_of(op.dtype); }

std::vector<Operator> operators() {
  std::vector<Operator> all;
  for (unsigned dtype = 0; dtype < 64; ++dtype) {
    for (unsigned func = 0; func < 256; ++func) {
      const Operator op{static_cast<Func>(func), static_cast<Datatype>(dtype)};
      if (!is_known(op.func) || !is_known(op.dtype)) continue;
      std::byte nothing{};
      if (combine(op.func, op.dtype, &nothing, &nothing, &nothing, 0)) all.push_back(op);
    }
  }
  return all;
}

/// Runs the test once for each instruction set. Most tests are of one datatype each.
class KernelsOfAll : public testing::Test {
 protected:
  void TearDown() override { choose(0); }

  static void choose(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  template <class Body>
  static void on_every_target(Body body) {
    choose(0);
    const std::string best = kernel_target();
    std::set<std::string> seen;
    for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
      choose(rest & -rest);
      if (!seen.insert(kernel_target()).second) continue;
      SCOPED_TRACE(kernel_target());
      body();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(seen.contains(best));
  }
};

/// A number within an element, and where it stands.
struct Part {
  Datatype dtype;
  std::size_t offset;
};

std::vector<Part> parts_of(Datatype dtype) {
  switch (dtype) {
    case Datatype::kComplex64:
      return {{Datatype::kFp32, 0}, {Datatype::kFp32, 4}};
    case Datatype::kComplex128:
      return {{Datatype::kFp64, 0}, {Datatype::kFp64, 8}};
    case Datatype::kFp32Int32:
      return {{Datatype::kFp32, 0}, {Datatype::kInt32, 4}};
    case Datatype::kFp64Int32:
      return {{Datatype::kFp64, 0}, {Datatype::kInt32, 8}, {Datatype::kUint32, 12}};
    case Datatype::kInt32Int32:
      return {{Datatype::kInt32, 0}, {Datatype::kInt32, 4}};
    case Datatype::kInt64Int64:
      return {{Datatype::kInt64, 0}, {Datatype::kInt64, 8}};
    default:
      return {{dtype, 0}};
  }
}

class Kernels : public KernelsOfAll, public testing::WithParamInterface<Datatype> {};

INSTANTIATE_TEST_SUITE_P(Datatypes, Kernels, testing::ValuesIn(kAllDatatype.begin() + 1, kAllDatatype.end()),
                         [](const auto& given) { return std::string(name_of(given.param)); });

template <class T>
bool both_nan(const std::byte* a, const std::byte* b) {
  T x;
  T y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  if constexpr (std::is_floating_point_v<T>) {
    return x != x && y != y;
  } else {
    const float u = arithmetic::widen(x);
    const float v = arithmetic::widen(y);
    return u != u && v != v;
  }
}

/// Equal bits, or both NaN, number by number.
bool same(Datatype dtype, const std::byte* a, const std::byte* b) {
  for (const Part& part : parts_of(dtype)) {
    const std::byte* x = a + part.offset;
    const std::byte* y = b + part.offset;
    if (std::memcmp(x, y, bytes_of(part.dtype)) == 0) continue;
    const bool nan = (part.dtype == Datatype::kFp16 && both_nan<arithmetic::Fp16>(x, y)) ||
                     (part.dtype == Datatype::kBf16 && both_nan<arithmetic::Bf16>(x, y)) ||
                     (part.dtype == Datatype::kFp32 && both_nan<float>(x, y)) ||
                     (part.dtype == Datatype::kFp64 && both_nan<double>(x, y));
    if (!nan) return false;
  }
  return true;
}

std::string hex(const std::byte* data, std::size_t bytes) {
  std::string text;
  for (std::size_t i = bytes; i-- > 0;) {
    std::array<char, 3> digits;
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(data[i]));
    text += digits.data();
  }
  return text;
}

void expect_same(const Operator& op, const std::byte* expected, const std::byte* got, std::uint64_t count,
                 std::span<const std::byte* const> inputs) {
  const std::size_t size = bytes_of(op.dtype);
  if (std::memcmp(expected, got, count * size) == 0) return;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (same(op.dtype, expected + i * size, got + i * size)) continue;
    std::string of;
    for (const std::byte* input : inputs) of += " " + hex(input + i * size, size);
    FAIL() << text_of(op) << ", element " << i << " of " << count << ": " << hex(got + i * size, size) << " instead of "
           << hex(expected + i * size, size) << " from" << of;
  }
}

template <class T>
void append(Bytes& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Values of a number at which something may happen: zeros, least and greatest of each kind, ones, ties, infinities,
/// NaN.
Bytes special_numbers(Datatype dtype) {
  Bytes bytes;
  const auto floats = [&](auto zero, std::uint64_t infinity, int mantissa) {
    using Bits = decltype(zero);
    const std::uint64_t ulp = 1;
    const std::uint64_t one = (infinity >> (mantissa + 1)) << mantissa;
    for (const std::uint64_t magnitude :
         {std::uint64_t{0}, ulp, ulp + 1, (ulp << mantissa) - 1, ulp << mantissa, (ulp << mantissa) + 1, one - 1, one,
          one + 1, one + (ulp << (mantissa - 1)), one - (ulp << mantissa), infinity - 1, infinity - 2,
          infinity - (ulp << mantissa), infinity, infinity + 1, infinity + (ulp << (mantissa - 1))}) {
      append(bytes, static_cast<Bits>(magnitude));
      append(bytes, static_cast<Bits>(magnitude | std::uint64_t{1} << (8 * sizeof(Bits) - 1)));
    }
  };
  switch (dtype) {
    case Datatype::kFp16:
      floats(std::uint16_t{}, 0x7c00, 10);
      break;
    case Datatype::kBf16:
      floats(std::uint16_t{}, 0x7f80, 7);
      break;
    case Datatype::kFp32:
      floats(std::uint32_t{}, 0x7f800000, 23);
      break;
    case Datatype::kFp64:
      floats(std::uint64_t{}, 0x7ff0000000000000, 52);
      break;
    default:
      for (const std::uint64_t value : {0ULL,
                                        1ULL,
                                        2ULL,
                                        3ULL,
                                        0x7fULL,
                                        0x80ULL,
                                        0xffULL,
                                        0x7fffULL,
                                        0x8000ULL,
                                        0xffffULL,
                                        0x7fffffffULL,
                                        0x80000000ULL,
                                        0x80000001ULL,
                                        0xffffffffULL,
                                        0x100000000ULL,
                                        0x7fffffffffffffffULL,
                                        0x8000000000000000ULL,
                                        0x8000000000000001ULL,
                                        0xffffffff00000000ULL,
                                        0xffffffffffffffffULL}) {
        const std::size_t at = bytes.size();
        bytes.resize(at + bytes_of(dtype));
        std::memcpy(bytes.data() + at, &value, bytes_of(dtype));
      }
  }
  return bytes;
}

/// A number: uniform bits, or of a magnitude like the others', or special.
void fill_number(std::mt19937_64& random, Datatype dtype, const Bytes& special, std::byte* at) {
  const std::size_t size = bytes_of(dtype);
  const std::uint64_t bits = random();
  if (bits >> 62U == 0) {
    std::memcpy(at, special.data() + (bits % (special.size() / size)) * size, size);
    return;
  }
  if (bits >> 62U == 1) {
    const std::uint64_t more = random();
    std::memcpy(at, &more, size);
    return;
  }
  const double value = static_cast<double>(static_cast<std::int64_t>(bits << 2U)) * 0x1p-60;
  const auto number = static_cast<std::int64_t>(bits % 2001) - 1000;
  arithmetic::with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    if constexpr (std::is_same_v<Element, arithmetic::Fp16>) {
      element = arithmetic::narrow_fp16(static_cast<float>(value));
    } else if constexpr (std::is_same_v<Element, arithmetic::Bf16>) {
      element = arithmetic::narrow_bf16(static_cast<float>(value));
    } else if constexpr (std::is_floating_point_v<Element>) {
      element = static_cast<Element>(value);
    } else {
      std::memcpy(at, &number, size);
      return;
    }
    std::memcpy(at, &element, size);
  });
}

void fill(std::mt19937_64& random, Datatype dtype, std::byte* data, std::uint64_t count) {
  for (const Part& part : parts_of(dtype)) {
    const Bytes special = special_numbers(part.dtype);
    for (std::uint64_t i = 0; i < count; ++i) {
      fill_number(random, part.dtype, special, data + i * bytes_of(dtype) + part.offset);
    }
  }
}

/// Special elements: all of numbers; of what has parts, each special of the first part with some of the others.
Bytes specials(Datatype dtype) {
  const std::vector<Part> parts = parts_of(dtype);
  const Bytes first = special_numbers(parts[0].dtype);
  if (parts.size() == 1) return first;
  std::mt19937_64 random(6);
  const std::size_t size = bytes_of(dtype);
  const std::size_t part = bytes_of(parts[0].dtype);
  const std::size_t count = 3 * (first.size() / part);
  Bytes bytes(count * size);
  fill(random, dtype, bytes.data(), count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes.data() + i * size, first.data() + i / 3 * part, part);
  return bytes;
}

/// The fold by definition.
Bytes folded(const Operator& op, std::span<const std::byte* const> sources, std::uint64_t count) {
  Bytes accumulator(count * accumulator_bytes(op.dtype) + 1);
  Bytes out(count * bytes_of(op.dtype) + 1);
  fold_begin(op.dtype, sources[0], accumulator.data(), count);
  for (const std::byte* source : sources.subspan(1)) {
    EXPECT_TRUE(fold_step(op.func, op.dtype, false, accumulator.data(), source, count));
  }
  fold_end(op.dtype, accumulator.data(), out.data(), count);
  return out;
}

TEST_F(KernelsOfAll, ExistWhereTheOperatorIsDefined) {
  on_every_target([] {
    std::size_t found = 0;
    for (unsigned dtype = 0; dtype < 64; ++dtype) {
      for (unsigned func = 0; func < 256; ++func) {
        const auto f = static_cast<Func>(func);
        const auto d = static_cast<Datatype>(dtype);
        ASSERT_EQ(combine_kernel(f, d) == nullptr, reduce_kernel(f, d) == nullptr);
        if (combine_kernel(f, d) != nullptr) ++found;
      }
    }
    EXPECT_EQ(found, operators().size());
    for (const Operator& op : operators()) EXPECT_NE(combine_kernel(op.func, op.dtype), nullptr) << text_of(op);
  });
}

template <class Element>
void conversions_agree(Datatype narrow) {
  std::vector<Element> all(65536 + 7);
  std::vector<float> wide(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  const ConvertKernel widen = widening_kernel(narrow);
  const ConvertKernel to_narrow = narrowing_kernel(narrow);
  ASSERT_NE(widen, nullptr);
  ASSERT_NE(to_narrow, nullptr);
  widen(reinterpret_cast<const std::byte*>(all.data()), reinterpret_cast<std::byte*>(wide.data()), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float expected = arithmetic::widen(all[i]);
    ASSERT_TRUE(std::memcmp(&wide[i], &expected, 4) == 0 || (wide[i] != wide[i] && expected != expected)) << i;
  }
  // All that widening gives, and their neighbours, where rounding goes either way; and of all magnitudes.
  std::mt19937_64 random(7);
  std::vector<float> given;
  for (const float value : wide) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const std::uint32_t tie = narrow == Datatype::kFp16 ? 0x1000 : 0x8000;
    for (const std::uint32_t near : {bits, bits + 1, bits - 1, bits + tie, bits + tie + 1, bits + tie - 1}) {
      given.emplace_back();
      std::memcpy(&given.back(), &near, 4);
    }
  }
  for (int i = 0; i < 1'000'003; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    given.emplace_back();
    std::memcpy(&given.back(), &bits, 4);
  }
  std::vector<Element> got(given.size());
  to_narrow(reinterpret_cast<const std::byte*>(given.data()), reinterpret_cast<std::byte*>(got.data()), given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Element expected = arithmetic::Carrier<Element>::out(given[i]);
    ASSERT_TRUE(got[i].bits == expected.bits ||
                (given[i] != given[i] && arithmetic::widen(got[i]) != arithmetic::widen(got[i])))
        << i << " " << given[i];
  }
}

TEST_F(KernelsOfAll, ConversionsAreTheDefinition) {
  on_every_target([] {
    conversions_agree<arithmetic::Fp16>(Datatype::kFp16);
    conversions_agree<arithmetic::Bf16>(Datatype::kBf16);
    EXPECT_EQ(widening_kernel(Datatype::kFp32), nullptr);
    EXPECT_EQ(narrowing_kernel(Datatype::kInt32), nullptr);
  });
}

TEST_P(Kernels, AMillionElements) {
  constexpr std::uint64_t kCount = 1'000'003;
  std::mt19937_64 random(1);
  for (const Operator& op : operators()) {
    if (op.dtype != GetParam()) continue;
    const std::size_t size = bytes_of(op.dtype);
    Bytes a(kCount * size);
    Bytes b(kCount * size);
    fill(random, op.dtype, a.data(), kCount);
    fill(random, op.dtype, b.data(), kCount);
    // All pairs of special values stand at the begin.
    const Bytes special = specials(op.dtype);
    const std::size_t n = special.size() / size;
    for (std::size_t i = 0; i < n * n; ++i) {
      std::memcpy(a.data() + i * size, special.data() + i / n * size, size);
      std::memcpy(b.data() + i * size, special.data() + i % n * size, size);
    }
    Bytes expected(kCount * size);
    ASSERT_TRUE(combine(op.func, op.dtype, a.data(), b.data(), expected.data(), kCount));
    const std::array<const std::byte*, 2> sources{a.data(), b.data()};
    on_every_target([&] {
      Bytes out(kCount * size);
      combine_kernel(op.func, op.dtype)(a.data(), b.data(), out.data(), kCount);
      expect_same(op, expected.data(), out.data(), kCount, sources);
      for (const bool streaming : {false, true}) {
        std::fill(out.begin(), out.end(), std::byte{0x5a});
        std::byte* output = out.data();
        reduce_kernel(op.func, op.dtype)(sources.data(), 2, &output, 1, kCount, streaming);
        expect_same(op, expected.data(), out.data(), kCount, sources);
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST_F(KernelsOfAll, EverySixteenBitFloat) {
  for (const Operator& op : operators()) {
    if (op.dtype != Datatype::kFp16 && op.dtype != Datatype::kBf16) continue;
    const Bytes special = specials(op.dtype);
    std::mt19937_64 random(2);
    Bytes partners = special;
    partners.resize(special.size() + 2 * 30);
    fill(random, op.dtype, partners.data() + special.size(), 30);
    Bytes all;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) append(all, static_cast<std::uint16_t>(bits));
    Bytes same_everywhere(all.size());
    Bytes expected(all.size());
    Bytes out(all.size());
    const std::array<const std::byte*, 2> sources{all.data(), same_everywhere.data()};
    for (std::size_t k = 0; k < partners.size(); k += 2) {
      for (std::size_t i = 0; i < all.size(); i += 2) std::memcpy(same_everywhere.data() + i, partners.data() + k, 2);
      ASSERT_TRUE(combine(op.func, op.dtype, sources[0], sources[1], expected.data(), 0x10000));
      on_every_target([&] {
        combine_kernel(op.func, op.dtype)(sources[0], sources[1], out.data(), 0x10000);
        expect_same(op, expected.data(), out.data(), 0x10000, sources);
      });
      if (HasFatalFailure()) return;
    }
  }
}

/// An array between bytes that must stay as they are.
class Guarded {
 public:
  Guarded(std::uint64_t bytes, std::size_t misalignment)
      : bytes_(bytes), memory_(bytes + 256, std::byte{0xc3}), begin_(64) {
    begin_ += (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64 + misalignment;
  }
  std::byte* data() { return memory_.data() + begin_; }
  bool intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin_ || i >= begin_ + bytes_) && memory_[i] != std::byte{0xc3}) return false;
    }
    return true;
  }

 private:
  std::uint64_t bytes_;
  Bytes memory_;
  std::size_t begin_;
};

TEST_P(Kernels, EveryCountAndMisalignment) {
  std::mt19937_64 random(3);
  for (const Operator& op : operators()) {
    if (op.dtype != GetParam()) continue;
    const std::size_t size = bytes_of(op.dtype);
    Bytes elements(4096 * size);
    fill(random, op.dtype, elements.data(), 4096);
    on_every_target([&] {
      const CombineKernel combine_it = combine_kernel(op.func, op.dtype);
      const ReduceKernel reduce_it = reduce_kernel(op.func, op.dtype);
      for (std::uint64_t count = 0; count <= 130; ++count) {
        for (std::size_t shift = 0; shift < 64; ++shift) {
          // Each of the arrays takes every misalignment; in turn, the output is one of its own, a, or b.
          const std::uint64_t bytes = count * size;
          Guarded a(bytes, shift);
          Guarded b(bytes, (5 * shift + count) % 64);
          Guarded c(bytes, (11 * shift + 3 * count) % 64);
          const std::uint64_t from = random() % (4096 - 130);
          std::memcpy(a.data(), elements.data() + from * size, bytes);
          std::memcpy(b.data(), elements.data() + (4096 - 130 - from) * size, bytes);
          const std::array<const std::byte*, 2> sources{a.data(), b.data()};
          Bytes expected(bytes + 1);
          ASSERT_TRUE(combine(op.func, op.dtype, a.data(), b.data(), expected.data(), count));
          const std::size_t form = (shift + count) % 6;
          std::byte* out = form % 3 == 0 ? c.data() : form % 3 == 1 ? a.data() : b.data();
          if (form < 3) {
            combine_it(a.data(), b.data(), out, count);
          } else {
            reduce_it(sources.data(), 2, &out, 1, count, (shift & 1U) != 0);
          }
          expect_same(op, expected.data(), out, count, {});
          ASSERT_TRUE(a.intact() && b.intact() && c.intact()) << text_of(op) << ", " << count << " elements";
          if (HasFatalFailure()) return;
        }
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST_P(Kernels, ManySourcesAndOutputs) {
  std::mt19937_64 random(4);
  for (const Operator& op : operators()) {
    if (op.dtype != GetParam()) continue;
    const std::size_t size = bytes_of(op.dtype);
    on_every_target([&] {
      const ReduceKernel reduce_it = reduce_kernel(op.func, op.dtype);
      for (std::uint32_t n = 1; n <= 9; ++n) {
        for (std::uint32_t m = 1; m <= 4; ++m) {
          for (const std::uint64_t count : {0, 1, 7, 12, 31, 64, 130, 515}) {
            for (const bool streaming : {false, true}) {
              // The last output is the last source in half of the cases.
              const bool in_place = ((n + m + count) & 1U) != 0;
              // Like misalignment of some and another one of others, so that streaming meets both.
              const std::size_t shift = size * (random() % 64) % 64;
              std::vector<Guarded> arrays;
              for (std::uint32_t k = 0; k < n + m; ++k) {
                arrays.emplace_back(count * size, (random() & 1U) != 0 ? shift : random() % 64);
                fill(random, op.dtype, arrays.back().data(), count);
              }
              std::vector<const std::byte*> sources;
              std::vector<std::byte*> outputs;
              for (std::uint32_t k = 0; k < n; ++k) sources.push_back(arrays[k].data());
              for (std::uint32_t k = 0; k < m; ++k) outputs.push_back(arrays[n + k].data());
              if (in_place) outputs.back() = arrays[n - 1].data();
              const Bytes expected = folded(op, sources, count);
              reduce_it(sources.data(), n, outputs.data(), m, count, streaming);
              for (const std::byte* output : outputs) expect_same(op, expected.data(), output, count, {});
              for (const Guarded& array : arrays) ASSERT_TRUE(array.intact());
              ASSERT_FALSE(HasFatalFailure()) << n << " sources, " << m << " outputs, streaming " << streaming;
            }
          }
        }
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST_F(KernelsOfAll, MeansAreThoseOfTheDefinition) {
  std::mt19937_64 random(8);
  for (const Datatype dtype : kAllDatatype) {
    ASSERT_EQ(mean_kernel(dtype) != nullptr, has_mean(dtype)) << name_of(dtype);
    if (!has_mean(dtype)) continue;
    const std::size_t size = bytes_of(dtype);
    for (const std::uint64_t count : {0, 1, 12, 129, 5000}) {
      for (const std::uint32_t ranks : {1U, 2U, 3U, 7U, 16777216U}) {
        Guarded a(count * size, random() % 64);
        Guarded out(count * size, random() % 64);
        fill(random, dtype, a.data(), count);
        Bytes expected(count * size + 1);
        ASSERT_TRUE(mean(dtype, a.data(), expected.data(), count, ranks));
        mean_kernel(dtype)(a.data(), out.data(), count, ranks);
        expect_same({Func::kAvg, dtype}, expected.data(), out.data(), count, {});
        mean_kernel(dtype)(a.data(), a.data(), count, ranks);
        expect_same({Func::kAvg, dtype}, expected.data(), a.data(), count, {});
        ASSERT_TRUE(a.intact() && out.intact());
      }
    }
  }
}

TEST_F(KernelsOfAll, FactorsAreThoseOfTheDefinition) {
  std::mt19937_64 random(9);
  on_every_target([&] {
    for (const Datatype dtype : kAllDatatype) {
      ASSERT_EQ(scale_kernel(dtype) != nullptr, has_scale(dtype)) << name_of(dtype);
      if (!has_scale(dtype)) continue;
      const std::size_t size = bytes_of(dtype);
      for (const std::uint64_t count : {0, 1, 12, 129, 5000}) {
        for (const double factor : {0.3, -2.0, 0.0, 1e-7, 1e39, std::numeric_limits<double>::quiet_NaN()}) {
          Guarded a(count * size, random() % 64);
          Guarded out(count * size, random() % 64);
          fill(random, dtype, a.data(), count);
          Bytes expected(count * size + 1);
          ASSERT_TRUE(scale(dtype, a.data(), expected.data(), count, factor));
          scale_kernel(dtype)(a.data(), out.data(), count, factor);
          expect_same({Func::kAvg, dtype}, expected.data(), out.data(), count, {});
          scale_kernel(dtype)(a.data(), a.data(), count, factor);
          expect_same({Func::kAvg, dtype}, expected.data(), a.data(), count, {});
          ASSERT_TRUE(a.intact() && out.intact());
        }
      }
    }
  });
}

TEST_F(KernelsOfAll, CopiesEverywhere) {
  std::mt19937_64 random(5);
  on_every_target([&] {
    for (const std::uint64_t bytes : {0, 1, 3, 63, 64, 65, 255, 256, 257, 1000, 8192, 20001}) {
      for (std::size_t shift = 0; shift < 64; ++shift) {
        for (std::uint32_t m = 1; m <= 4; ++m) {
          for (const bool streaming : {false, true}) {
            Guarded in(bytes, (7 * shift) % 64);
            for (std::uint64_t i = 0; i < bytes; ++i) in.data()[i] = static_cast<std::byte>(random());
            const Bytes expected(in.data(), in.data() + bytes);
            std::vector<Guarded> outs;
            std::vector<std::byte*> outputs;
            outs.reserve(m);
            for (std::uint32_t k = 0; k < m; ++k) {
              outs.emplace_back(bytes, k == 1 ? (shift + 1) % 64 : shift);
              outputs.push_back(outs.back().data());
            }
            if (m == 3) outputs[2] = in.data();
            if (m == 1) {
              copy_bytes(outputs[0], in.data(), bytes, streaming);
            } else {
              copy_to_many(in.data(), outputs.data(), m, bytes, streaming);
            }
            for (const std::byte* output : outputs) {
              ASSERT_TRUE(bytes == 0 || std::memcmp(output, expected.data(), bytes) == 0)
                  << bytes << " bytes, misalignment " << shift << ", " << m << " outputs, streaming " << streaming;
            }
            for (const Guarded& out : outs) ASSERT_TRUE(out.intact());
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace unisono::cclo
