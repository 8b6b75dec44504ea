// Every algorithm of the table through the checker, and on numbers against the definition of its collective.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/arithmetic.hpp"
#include "core/operators.hpp"
#include "reference/checker.hpp"
#include "reference/expectation.hpp"
#include "reference/interpreter.hpp"

namespace unisono::reference {
namespace {

std::string test_name(const ::testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(name_of(info.param->collective)) + "_" + info.param->name;
}

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
  return all;
}

class EveryAlgorithm : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, IsProvenAndSampled) {
  const CheckReport report = check_algorithm(*GetParam());
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.calls, 0U);
  EXPECT_GT(report.schedules, 100U);
  RecordProperty("proven_calls", std::to_string(report.calls));
  RecordProperty("random_schedules", std::to_string(report.schedules));
}

// Beside the usual sizes: groups of one rank, one group of all, more ranks to a group than there are, and groups on
// communicators of fewer than four.
TEST_P(EveryAlgorithm, IsProvenWithGroupsOfAnySize) {
  if (std::strcmp(GetParam()->name, "two_level") != 0) return;
  for (std::uint32_t size = 1; size <= 9; ++size) {
    CheckOptions options;
    options.ranks = {size};
    options.group_sizes = {0, 1, 2, 3, 5, size, size + 1};
    options.group_lists = true;
    options.schedules = 4;
    const CheckReport report = check_algorithm(*GetParam(), options);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_GT(report.calls, 0U);
  }
}

// So that the proof above is one of groups of any kind.
TEST(GroupsToCheck, AreOfSeveralSizesAndOfAnyRanks) {
  std::size_t unequal = 0;
  std::size_t scattered = 0;
  for (const Algorithm& algorithm : algorithms()) {
    const std::string name = algorithm.name;
    EXPECT_EQ(algorithm.grouped, name == "two_level" || name == "multi_leader") << name;
    std::size_t lists = 0;
    for (const CheckedCall& checked : calls_to_check(algorithm, 7, {})) {
      if (checked.call.groups == nullptr) continue;
      ++lists;
      ++(checked.call.groups->rank_at == nullptr ? unequal : scattered);
    }
    EXPECT_EQ(lists != 0, algorithm.grouped) << algorithm.name;
  }
  EXPECT_GT(unequal, 100U);
  EXPECT_GT(scattered, 300U);
}

// Elements on which every operator is exact in every datatype, different on every rank and at every index.
template <class Element>
std::vector<std::byte> elements(std::uint32_t rank, std::uint64_t count, Func func, std::uint64_t salt) {
  std::vector<std::byte> bytes(count * sizeof(Element));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t hash = (rank * 0x9e3779b97f4a7c15ULL + i * 0xd1342543de82ef95ULL + salt) >> 40U;
    const int value = func == Func::kProd ? (hash % 3 == 0 ? -1 : (hash % 3 == 1 ? 2 : 1))
                                          : static_cast<int>(hash % 15) - 7 + static_cast<int>(rank % 3);
    Element element{};
    if constexpr (arithmetic::kIsComplex<Element>) {
      // Gaussian integers, for products units and 2, so that every order gives the same bits.
      element.re = static_cast<decltype(element.re)>(func == Func::kProd ? (value == 1 ? 0 : value) : value);
      element.im = static_cast<decltype(element.im)>(func == Func::kProd ? (value == 1 ? 1 : 0) : value * 3 % 5);
    } else if constexpr (arithmetic::kIsLocated<Element>) {
      element.value = static_cast<decltype(element.value)>(value);
      element.index = static_cast<decltype(element.index)>(hash % 7 * 16 + rank);
    } else if constexpr (std::is_same_v<Element, arithmetic::Bool>) {
      element.byte = static_cast<std::uint8_t>(value > 0 ? value : 0);
    } else if constexpr (std::is_same_v<Element, arithmetic::Fp16>) {
      element = arithmetic::narrow_fp16(static_cast<float>(value));
    } else if constexpr (std::is_same_v<Element, arithmetic::Bf16>) {
      element = arithmetic::narrow_bf16(static_cast<float>(value));
    } else {
      element = static_cast<Element>(value);
    }
    std::memcpy(&bytes[i * sizeof(Element)], &element, sizeof(Element));
  }
  return bytes;
}

std::vector<std::byte> bytes_for(const Job& job, std::uint32_t rank, Region region) {
  std::vector<std::byte> bytes;
  const std::uint64_t salt = 77 * (static_cast<std::uint64_t>(region) + 1);
  const std::uint32_t element_size = std::max<std::uint32_t>(1, bytes_of(job.dtype));
  const std::uint64_t count = job.bytes(rank, region) / element_size;
  if (!arithmetic::with_element(
          job.dtype, [&](auto element) { bytes = elements<decltype(element)>(rank, count, job.call.func, salt); })) {
    for (std::uint64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(rank * 31 + i * 7 + salt));
  }
  return bytes;
}

template <class T>
bool equal_parts(const std::byte* a, const std::byte* b) {
  T x[2];
  T y[2];
  std::memcpy(x, a, sizeof x);
  std::memcpy(y, b, sizeof y);
  return x[0] == y[0] && x[1] == y[1];
}

/// Equal bits; of complex products, the order decides on the sign of zero.
bool equal(Datatype dtype, const std::byte* a, const std::byte* b) {
  if (dtype == Datatype::kComplex64) return equal_parts<float>(a, b);
  if (dtype == Datatype::kComplex128) return equal_parts<double>(a, b);
  return std::memcmp(a, b, std::max<std::uint32_t>(1, bytes_of(dtype))) == 0;
}

TEST_P(EveryAlgorithm, IsProvenWithAMeanInTheEnd) {
  const Algorithm& algorithm = *GetParam();
  if (!takes_mean(algorithm.collective)) return;
  CheckOptions options;
  options.func = Func::kAvg;
  options.ranks = {1, 2, 3, 5, 8, 13};
  options.schedules = 8;
  const CheckReport report = check_algorithm(algorithm, options);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.calls, 0U);

  // The division must wait for what still reads or writes the result, must be there, and must be there once.
  CheckOptions small;
  small.func = Func::kAvg;
  small.counts = {7};
  small.roots = {1};
  for (const CheckedCall& checked : calls_to_check(algorithm, 3, small)) {
    if (algorithm.admits != nullptr && !algorithm.admits(checked.call)) continue;
    if (is_vector(algorithm.collective) && checked.vectors[1].recv_counts[1] == 0) continue;  // nothing to divide
    for (const int mutation : {0, 1}) {
      Job job = make_job(algorithm, checked.call, checked.vectors);
      Program& program = job.programs[1];  // the root's
      ASSERT_EQ(program.moves.back().func, Func::kAvg);
      if (program.moves.size() == 1) continue;
      // What lies further back than the window has ended anyway.
      const std::size_t last = program.moves.size() - 1;
      const bool waits =
          std::any_of(program.moves.end() - 1 - static_cast<std::ptrdiff_t>(std::min<std::size_t>(last, kWindow - 1)),
                      program.moves.end() - 1, [](const Move& move) { return move.count_indirect || move.count > 0; });
      if (mutation == 0 && !waits) continue;
      if (mutation == 0) {
        program.moves.back().dependencies = 0;
      } else {
        program.moves.pop_back();
      }
      EXPECT_FALSE(check_job(job, 4).ok()) << describe(job) << ", mutation " << mutation;
    }
  }
}

TEST_P(EveryAlgorithm, GivesTheDefinedNumbers) {
  const Algorithm& algorithm = *GetParam();
  const bool reduces = is_reduction(algorithm.collective);
  std::size_t compared = 0;
  for (const Datatype dtype : kAllDatatype) {
    if (dtype == Datatype::kNone) continue;
    for (const Func func : kAllFunc) {
      const bool mean = func == Func::kAvg && takes_mean(algorithm.collective) && has_mean(dtype);
      if (reduces ? !is_defined(func, dtype) && !mean : func != Func::kSum) continue;
      CheckOptions options;
      options.dtype = dtype;
      options.func = func;
      options.counts = {algorithm.direct ? 150U : 7U};  // direct algorithms cut at cache lines
      options.roots = {1};
      for (const std::uint32_t size : {2U, 5U, 6U}) {
        for (const CheckedCall& checked : calls_to_check(algorithm, size, options)) {
          if (algorithm.admits != nullptr && !algorithm.admits(checked.call)) continue;
          const Job job = make_job(algorithm, checked.call, checked.vectors);
          std::vector<RankInput> inputs;
          for (std::uint32_t rank = 0; rank < size; ++rank) {
            inputs.push_back({bytes_for(job, rank, Region::kSrc), bytes_for(job, rank, Region::kDst),
                              bytes_for(job, rank, Region::kWindow)});
          }
          const NumberExpectation want = expected_numbers(job, inputs);
          for (const Policy& policy : {Policy::generous(), Policy::random(size)}) {
            const auto got = interpret(job, inputs, policy);
            const std::size_t element = std::max<std::uint32_t>(1, bytes_of(job.dtype));
            for (std::uint32_t rank = 0; rank < size; ++rank) {
              ASSERT_EQ(got[rank].size(), want.dst[rank].size());
              for (std::size_t i = 0; i * element < got[rank].size(); ++i) {
                if (!want.defined[rank][i]) continue;
                ASSERT_TRUE(equal(job.dtype, &got[rank][i * element], &want.dst[rank][i * element]))
                    << describe(job) << ": element " << i << " of rank " << rank;
              }
            }
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 10U);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryAlgorithm, ::testing::ValuesIn(all_algorithms()), test_name);

}  // namespace
}  // namespace unisono::reference
