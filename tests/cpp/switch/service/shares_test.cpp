// What a job may have of a switch: places for its pools, and the worker's time.
#include <gtest/gtest.h>

#include "switch/service/fair_share.hpp"
#include "switch/service/places.hpp"

namespace unisono::slots {
namespace {

PoolId job(unsigned char number) {
  PoolId id{};
  id.fill(std::byte{number});
  return id;
}

TEST(PlacesTest, CountWhatAPoolKeeps) {
  EXPECT_EQ(places_of(8, 1344, 5, true), 2U * 8 * 5);
  EXPECT_EQ(places_of(8, 1344, 5, false), 2U * 8);
  EXPECT_EQ(places_of(8, 672, 5, true), 8U * 5);
  EXPECT_EQ(places_of(64, 16, 2, true), places_of(64, 256, 2, true));  // a small payload has a slot all the same
  EXPECT_EQ(places_of(4, 1344, 1000, false), 2000U);                   // and every member has keys
}

TEST(PlacesTest, KeepAnEighthForJobsThatHaveNothing) {
  Places places(800);
  EXPECT_EQ(places.allowed(job(1)), 700U);
  EXPECT_FALSE(places.take(job(1), 701));
  EXPECT_TRUE(places.take(job(1), 700));
  EXPECT_EQ(places.allowed(job(1)), 0U);
  EXPECT_EQ(places.allowed(job(2)), 100U);
  EXPECT_TRUE(places.take(job(2), 60));
  EXPECT_EQ(places.allowed(job(2)), 40U);  // what it is short of its own part
  places.give(job(1), 700);
  // Beyond its part, a job leaves to the other what that is short of, and an eighth.
  EXPECT_EQ(places.allowed(job(1)), 800U - 60 - 40 - 100);
  EXPECT_EQ(places.used_by(job(1)), 0U);
  places.give(job(2), 60);
  EXPECT_EQ(places.used(), 0U);
}

TEST(PlacesTest, SayWhatIsPossible) {
  PoolRequest request;
  request.slots = 64;
  request.payload_bytes = 1344;
  EXPECT_EQ(possible_slots(request, 4, 255), 16U);
  EXPECT_EQ(possible_slots(request, 4, 256), 32U);
  EXPECT_EQ(possible_slots(request, 4, 100'000), 32U);  // less than what was asked
  EXPECT_EQ(possible_slots(request, 4, 31), 0U);
}

class FairShareTest : public testing::Test {
 protected:
  /// Of each ten datagrams nine are of the first job; how many of each are taken over `rounds`.
  void run(std::uint32_t rounds) {
    for (std::uint32_t i = 0; i < rounds * FairShare::kRound; ++i) {
      const bool greedy = i % 10 != 0;
      ++(greedy ? came_greedy : came_modest);
      if (shares.takes(greedy ? first : second)) ++(greedy ? greedy_taken : modest_taken);
    }
  }
  FairShare shares;
  std::uint32_t first = shares.enter(job(1));
  std::uint32_t second = shares.enter(job(2));
  std::uint32_t came_greedy = 0;
  std::uint32_t came_modest = 0;
  std::uint32_t greedy_taken = 0;
  std::uint32_t modest_taken = 0;
};

TEST_F(FairShareTest, TakesAllWhileNothingIsLost) {
  run(10);
  EXPECT_EQ(greedy_taken, came_greedy);
  EXPECT_EQ(modest_taken, came_modest);
}

TEST_F(FairShareTest, TakesFromTheGreedyOnlyWhatIsItsPart) {
  run(1);  // so that it knows who is there
  shares.press(true);
  greedy_taken = modest_taken = came_modest = 0;
  run(10);
  EXPECT_EQ(modest_taken, came_modest);
  EXPECT_LE(greedy_taken, 10 * FairShare::kRound * 5 / 8);
  EXPECT_GE(greedy_taken, 9 * FairShare::kRound * 5 / 8);
}

TEST_F(FairShareTest, TakesAllOfOneWhoIsAlone) {
  run(1);
  shares.leave(second);
  shares.press(true);
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < 3 * FairShare::kRound; ++i) taken += shares.takes(first) ? 1 : 0;
  EXPECT_GE(taken, 3 * FairShare::kRound * 5 / 8);
  taken = 0;
  for (std::uint32_t i = 0; i < FairShare::kRound; ++i) taken += shares.takes(first) ? 1 : 0;
  EXPECT_EQ(taken, FairShare::kRound);
}

TEST_F(FairShareTest, CountsAJobOnceHoweverManyPoolsItHas) {
  EXPECT_EQ(shares.enter(job(1)), first);
  shares.leave(first);
  shares.leave(second);
  EXPECT_EQ(shares.enter(job(3)), second);
  EXPECT_EQ(shares.enter(job(1)), first);
}

}  // namespace
}  // namespace unisono::slots
