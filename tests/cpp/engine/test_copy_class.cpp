#include <gtest/gtest.h>

#include <cstdio>

#include "engine/copy_class.hpp"
#include "engine/copy_probe.hpp"

namespace unisono::cclo {
namespace {

TEST(CopyProbe, TimesBothWaysOfEveryCollectiveAndLength) {
  const auto times = probe_copies();
  ASSERT_TRUE(times.has_value());
  for (const CopyTimes& entry : *times) {
    std::printf("%-10s %8llu bytes: kernel %8.1f us, cells %8.1f us\n", name_of(entry.collective),
                static_cast<unsigned long long>(entry.bytes), entry.kernel_us, entry.cells_us);
    EXPECT_GT(entry.kernel_us, 0);
    EXPECT_LT(entry.kernel_us, 1e6);
    EXPECT_GT(entry.cells_us, 0);
    EXPECT_LT(entry.cells_us, 1e6);
  }
}

}  // namespace
}  // namespace unisono::cclo
