// The worked cases at 5 and 8 ranks: each is proven, and docs/worked-cases.md shows their moves as they are.
// To write the page anew, set UNISONO_WORKED_CASES to its path and run this test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "reference/checker.hpp"
#include "reference/interpreter.hpp"
#include "reference/text.hpp"

namespace unisono::reference {
namespace {

struct Case {
  Collective collective;
  const char* algorithm;
  std::uint64_t count;
  std::uint32_t group_size;
};

constexpr Case kCases[] = {
    {Collective::kAllreduce, "ring", 16, 0},         {Collective::kAllreduce, "recursive_doubling", 16, 0},
    {Collective::kAllreduce, "rabenseifner", 16, 0}, {Collective::kAllreduce, "two_level", 16, 3},
    {Collective::kAlltoallv, "pairwise", 2, 0},      {Collective::kBcast, "binomial", 65536, 0},
    {Collective::kScatterv, "binomial", 2, 0},
};

std::string page() {
  std::ostringstream out;
  out << "# Worked cases\n\nThe moves of rank 1, as recorded, for 5 and 8 ranks of fp32. Each case is proven by the "
         "[checker](checker.md) on all ranks; this page is compared with the programs by "
         "`tests/cpp/reference/worked_cases_test.cpp`. A streaming tree reduction and persistent replay are worked in "
         "`findings_test.cpp` beside it.\n";
  for (const Case& c : kCases) {
    const int position = find_algorithm(c.collective, c.algorithm);
    if (position < 0) {
      ADD_FAILURE() << "no " << name_of(c.collective) << " " << c.algorithm;
      continue;
    }
    for (const std::uint32_t size : {5U, 8U}) {
      Call call;
      call.collective = c.collective;
      call.func = is_reduction(c.collective) ? Func::kSum : Func::kNone;
      call.dtype = Datatype::kFp32;
      call.size = size;
      call.count = c.count;
      call.group_size = c.group_size;
      std::vector<VectorCounts> vectors;
      if (is_vector(c.collective)) vectors = example_counts(call, CountPattern::kVaried, 1);
      const Job job = make_job(algorithms()[static_cast<std::size_t>(position)], call, vectors);
      if (c.count < 1000) {
        const CheckReport report = check_job(job, 50);
        EXPECT_TRUE(report.ok()) << report.text();
      } else {
        EXPECT_FALSE(Interpreter(job).run_symbols(Policy::least_permissive()).finding);
      }
      out << "\n## " << describe(job) << "\n\n```\n" << describe_program(job.programs[1]) << "```\n";
    }
  }
  return out.str();
}

TEST(WorkedCases, ThePageShowsTheProgramsAsTheyAre) {
  const std::string fresh = page();
  if (const char* path = std::getenv("UNISONO_WORKED_CASES")) std::ofstream(path) << fresh;
  const auto file = std::filesystem::path(UNISONO_SOURCE_DIR) / "docs/worked-cases.md";
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
  std::ostringstream kept;
  kept << std::ifstream(file).rdbuf();
  EXPECT_EQ(kept.str(), fresh) << "docs/worked-cases.md is out of date; see the top of this test";
}

}  // namespace
}  // namespace unisono::reference
