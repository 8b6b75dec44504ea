// The TLB of shared memory: what is known, what makes room, and who waits for a walk.
#include "sim/memory/tlb.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <stdexcept>

namespace unisono::sim {
namespace {

TEST(Tlb, CostsNothingWithoutEntries) {
  Tlb tlb({.entries = 0});
  EXPECT_EQ(tlb.wait(5, 1 << 30U), 0U);
}

TEST(Tlb, KnowsAPageAfterItsWalk) {
  Tlb tlb({.entries = 2, .page_bytes = 4096, .miss_cycles = 100});
  EXPECT_EQ(tlb.wait(10, 4096), 100U);
  EXPECT_EQ(tlb.wait(50, 8191), 60U) << "the walk that is under way is waited for";
  EXPECT_EQ(tlb.wait(60, 8192), 150U) << "one walk at a time";
  EXPECT_EQ(tlb.wait(200, 4096), 0U);
  EXPECT_EQ(tlb.wait(210, 8200), 0U);
  EXPECT_EQ(tlb.wait(300, 0), 100U);
  EXPECT_EQ(tlb.wait(500, 8192), 0U) << "used after the other one";
  EXPECT_EQ(tlb.wait(600, 4096), 100U) << "the page used least recently has made room";
  EXPECT_EQ(tlb.counters().misses, 4U);
  EXPECT_EQ(tlb.counters().hits, 4U);
}

TEST(Tlb, LeavesAddressesBelowItsRangeAlone) {
  Tlb tlb({.entries = 4, .page_bytes = 4096, .miss_cycles = 9, .from = 1 << 20U});
  EXPECT_EQ(tlb.wait(0, (1 << 20U) - 1), 0U);
  EXPECT_EQ(tlb.wait(0, 1 << 20U), 9U);
}

TEST(Tlb, RefusesPagesOfOtherSizes) {
  EXPECT_THROW(Tlb({.entries = 1, .page_bytes = 5000}), std::invalid_argument);
  EXPECT_THROW(Tlb({.entries = 1, .page_bytes = 2048}), std::invalid_argument);
}

TEST(Tlb, ReplacesAsAListThatIsLookedThroughWould) {
  constexpr unsigned kEntries = 5, kMiss = 37;
  Tlb tlb({.entries = kEntries, .page_bytes = 4096, .miss_cycles = kMiss});
  struct Page {
    std::uint64_t number, known;
  };
  std::list<Page> pages;
  std::uint64_t cycle = 0, free = 0;
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    cycle += random() % 60;
    const std::uint64_t number = random() % 9;
    std::uint64_t known = 0;
    bool found = false;
    for (auto page = pages.begin(); page != pages.end(); ++page) {
      if (page->number != number) continue;
      known = page->known;
      pages.erase(page);
      found = true;
      break;
    }
    if (!found) known = free = std::max(cycle, free) + kMiss;
    pages.push_front({number, known});
    if (pages.size() > kEntries) pages.pop_back();
    ASSERT_EQ(tlb.wait(cycle, number * 4096 + random() % 4096), known > cycle ? known - cycle : 0) << i;
  }
}

}  // namespace
}  // namespace unisono::sim
