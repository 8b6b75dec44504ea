#include "network/shm/store_pace.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace unisono::shm {
namespace {

constexpr std::uint64_t kBytes = 32768;
/// Ticks of a store of kBytes that is just not slow.
constexpr std::uint64_t kQuick = kBytes * kMillisecondTicks / StorePace::kSlowBytes;
constexpr std::uint64_t kSlow = 6 * kQuick;

/// Stores on a machine where an ordinary store takes `ordinary` ticks, and one past the caches `past`. Says for each
/// whether it went past the caches.
std::vector<bool> stores(StorePace& pace, std::uint32_t count, std::uint64_t ordinary, std::uint64_t past) {
  std::vector<bool> ways;
  for (std::uint32_t i = 0; i < count; ++i) {
    ways.push_back(pace.past_caches());
    pace.took(ways.back() ? past : ordinary, kBytes);
  }
  return ways;
}

std::uint32_t past_of(const std::vector<bool>& ways) {
  std::uint32_t past = 0;
  for (const bool way : ways) past += way ? 1 : 0;
  return past;
}

TEST(StorePace, QuickStoresStayOrdinary) {
  StorePace pace;
  EXPECT_EQ(past_of(stores(pace, 10'000, kQuick, 1)), 0U);
}

TEST(StorePace, LoneDelaysChangeNothing) {
  StorePace pace;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(past_of(stores(pace, StorePace::kSlowStores - 1, 1000 * kSlow, 1)), 0U);
    EXPECT_EQ(past_of(stores(pace, 1, kQuick, 1)), 0U);
  }
}

TEST(StorePace, SlowStoresGoPastTheCachesExceptForALookNowAndThen) {
  StorePace pace;
  const std::vector<bool> ways = stores(pace, 10 * (StorePace::kTurnStores + 1), kSlow, kSlow / 2);
  for (std::uint32_t i = 0; i < ways.size(); ++i) {
    const std::uint32_t after = i - StorePace::kSlowStores;
    EXPECT_EQ(ways[i], i >= StorePace::kSlowStores && after % (StorePace::kTurnStores + 1) != StorePace::kTurnStores)
        << i;
  }
}

TEST(StorePace, CoresThatMoveTogetherAreFoundWithinATurn) {
  StorePace pace;
  EXPECT_GT(past_of(stores(pace, 1000, kSlow, kSlow / 2)), 900U);
  const std::vector<bool> ways = stores(pace, StorePace::kTurnStores + 1000, kQuick / 2, kSlow / 2);
  EXPECT_LE(past_of(ways), StorePace::kTurnStores);
  EXPECT_FALSE(ways.back());
  // And moved apart again.
  EXPECT_GT(past_of(stores(pace, 1000, kSlow, kSlow / 2)), 900U);
}

TEST(StorePace, AWayThatGainsNothingIsTriedSeldom) {
  StorePace pace;
  const std::uint32_t period = StorePace::kSlowStores + StorePace::kTrialStores + StorePace::kRestStores;
  EXPECT_EQ(past_of(stores(pace, 10 * period, kSlow, kSlow)), 10 * StorePace::kTrialStores);
}

TEST(StorePace, TimesWhatItStores) {
  StorePace pace;
  std::vector<bool> ways;
  const auto slow = [&](bool past_caches) {
    ways.push_back(past_caches);
    for (const std::uint64_t begin = ticks(); ticks() - begin < (past_caches ? 0 : 4 * kMillisecondTicks);) continue;
  };
  for (std::uint32_t i = 0; i < StorePace::kSlowStores + 10; ++i) pace.store(kBytes, slow);
  for (std::uint32_t i = 0; i < ways.size(); ++i) EXPECT_EQ(ways[i], i >= StorePace::kSlowStores) << i;
}

}  // namespace
}  // namespace unisono::shm
