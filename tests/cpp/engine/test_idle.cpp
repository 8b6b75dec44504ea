// What ranks cost that do nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

/// Kilobytes of this process that are in memory, shared pages included.
std::uint64_t resident_kilobytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word) {
    if (word == "Rss:") {
      std::uint64_t found = 0;
      file >> found;
      return found;
    }
  }
  return 0;
}

TEST(Idle, SixtyFourRanksTakeLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  const std::uint64_t before = resident_kilobytes();
  ASSERT_GT(before, 0U);
  std::atomic<std::uint64_t> most{0};
  run_ranks(64, quick_settings(), [&](Rank& self) {
    self.run(request<std::int32_t>(Collective::kBarrier, 0));
    std::vector<std::int32_t> mine(1, static_cast<std::int32_t>(self.rank)), sum(1);
    CallRequest allreduce = request<std::int32_t>(Collective::kAllreduce, 1, 0, Func::kSum);
    allreduce.src = bind(mine);
    allreduce.dst = bind(sum);
    self.run(allreduce);
    EXPECT_EQ(sum[0], 64 * 63 / 2);
    self.run(request<std::int32_t>(Collective::kBarrier, 0));
    if (self.rank == 0) most = resident_kilobytes();
  });
  EXPECT_LT(most - before, 128U * 1024) << "kilobytes for 64 ranks that have called twice";
  RecordProperty("kilobytes", std::to_string(most - before));
  std::printf("64 ranks: %llu kB\n", static_cast<unsigned long long>(most - before));
}

}  // namespace
}  // namespace unisono::test
