#include "switch/service/give_way.hpp"

#include <gtest/gtest.h>

namespace unisono::slots {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(GiveWay, SleepsForAWhileBesideSomebodyWhoComputes) {
  GiveWay give_way;
  const GiveWay::Time begin = GiveWay::Clock::now();
  EXPECT_TRUE(give_way.is_of_use(begin));
  give_way.note(begin, begin + microseconds(200));  // eight ranks that wait, too
  EXPECT_TRUE(give_way.is_of_use(begin + microseconds(200)));

  const GiveWay::Time back = begin + milliseconds(4);
  give_way.note(begin + milliseconds(1), back);
  EXPECT_FALSE(give_way.is_of_use(back));
  EXPECT_FALSE(give_way.is_of_use(back + milliseconds(50)));
  EXPECT_TRUE(give_way.is_of_use(back + milliseconds(200))) << "it must be tried again";
}

TEST(GiveWay, SleepsForAWhileWhereNobodyRuns) {
  GiveWay give_way;
  GiveWay::Time now = GiveWay::Clock::now();
  const auto yield = [&](std::chrono::nanoseconds took) {
    give_way.note(now, now + took);
    now += took;
  };
  for (int i = 0; i < 20; ++i) {
    for (int alone = 0; alone < 7; ++alone) yield(std::chrono::nanoseconds(300));
    yield(microseconds(5));  // somebody
    ASSERT_TRUE(give_way.is_of_use(now));
  }
  for (int alone = 0; alone < 8; ++alone) {
    EXPECT_TRUE(give_way.is_of_use(now));
    yield(std::chrono::nanoseconds(300));
  }
  EXPECT_FALSE(give_way.is_of_use(now));
  EXPECT_TRUE(give_way.is_of_use(now + milliseconds(10))) << "others may come";
}

TEST(GiveWay, LetsOthersRunUntilThen) {
  GiveWay give_way;
  const GiveWay::Time now = GiveWay::Clock::now();
  EXPECT_TRUE(give_way());
  give_way.note(now, now + std::chrono::seconds(10));
  EXPECT_FALSE(give_way()) << "nobody is let run";
}

}  // namespace
}  // namespace unisono::slots
