// The choice of algorithms from outside: pins, and what a call ran with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

class TuningTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("UNISONO_TUNING", "off", 1);
    unsetenv("UNISONO_ALGORITHM");
  }
  void TearDown() override {
    unsetenv("UNISONO_TUNING");
    unsetenv("UNISONO_ALGORITHM");
  }
};

/// Sums vectors that differ on every rank, and looks at every element.
void sum_up(const Communicator& world, std::size_t elements, const Options& options = {}) {
  std::vector<std::int64_t> own(elements);
  std::vector<std::int64_t> all(elements);
  for (std::size_t i = 0; i < elements; ++i) own[i] = static_cast<std::int64_t>(i * (world.rank() + 1) + world.rank());
  world.allreduce(own, all, Op::kSum, options);
  const std::int64_t ranks = world.size();
  for (std::size_t i = 0; i < elements; ++i) {
    ASSERT_EQ(all[i], static_cast<std::int64_t>(i) * ranks * (ranks + 1) / 2 + ranks * (ranks - 1) / 2);
  }
}

TEST_F(TuningTest, TellsWhatACallRanWith) {
  on_ranks(3, [](const Communicator& world) {
    EXPECT_EQ(world.last_algorithm().name, "");
    world.barrier();
    EXPECT_EQ(world.last_algorithm().name, "flat");
    EXPECT_TRUE(world.last_algorithm().automatic);
    sum_up(world, 3, {.algorithm = "reduce_bcast"});
    EXPECT_EQ(world.last_algorithm().name, "reduce_bcast");
    EXPECT_FALSE(world.last_algorithm().automatic);
    for (int again = 0; again < 3; ++again) {  // the second time, the call is known
      sum_up(world, 3);
      EXPECT_EQ(world.last_algorithm().name, "flat");
      EXPECT_TRUE(world.last_algorithm().automatic);
    }
    // Threads of one process reach each other's memory, whatever it is.
    sum_up(world, 100'000);
    EXPECT_EQ(world.last_algorithm().name, "direct");
    EXPECT_TRUE(world.last_algorithm().automatic);
    // A call that does not block, and one that takes the other way.
    std::vector<float> data(8, static_cast<float>(world.rank()));
    world.bcast_async(data, 1, {.algorithm = "chain"}).wait();
    EXPECT_EQ(data[7], 1);
    EXPECT_EQ(world.last_algorithm().name, "chain");
    const std::vector<std::int64_t> counts{1, 2, 3};
    std::vector<std::int32_t> mine(world.rank() + 1, static_cast<std::int32_t>(world.rank()));
    std::vector<std::int32_t> everything(6);
    world.allgatherv(mine, everything, {.counts = counts}, {.algorithm = "bruck"});
    EXPECT_THAT(everything, testing::ElementsAre(0, 1, 1, 2, 2, 2));
    EXPECT_EQ(world.last_algorithm().name, "bruck");
    EXPECT_FALSE(world.last_algorithm().automatic);
  });
}

TEST_F(TuningTest, MisusedTheQueryRefuses) {
  const char* name = nullptr;
  int automatic = 0;
  EXPECT_EQ(unisono_last_algorithm(nullptr, &name, &automatic), static_cast<int>(ErrorCode::kInvalidArgument));
  on_ranks(1, [](const Communicator& world) {
    const char* text = nullptr;
    EXPECT_NE(unisono_last_algorithm(world.handle(), nullptr, nullptr), 0);
    EXPECT_NE(unisono_last_algorithm(world.handle(), &text, nullptr), 0);
    EXPECT_THAT(unisono_last_error(), HasSubstr("the place for the answer is null"));
  });
}

TEST_F(TuningTest, PinsAreHonoured) {
  setenv("UNISONO_ALGORITHM", "allreduce=ring:-64K,allreduce=rabenseifner:64K-", 1);
  on_ranks(3, [](const Communicator& world) {
    sum_up(world, 5);
    EXPECT_EQ(world.last_algorithm().name, "ring");
    EXPECT_TRUE(world.last_algorithm().automatic);
    sum_up(world, 100'000);
    EXPECT_EQ(world.last_algorithm().name, "rabenseifner");
    sum_up(world, 5, {.algorithm = "two_level"});
    EXPECT_EQ(world.last_algorithm().name, "two_level") << "what a call names comes before pins";
    Communicator half = world.split(0, 0);
    sum_up(half, 5);
    EXPECT_EQ(half.last_algorithm().name, "ring");
  });
}

TEST_F(TuningTest, EveryAlgorithmCanBePinned) {
  for (const char* name :
       {"recursive_doubling", "ring", "rabenseifner", "reduce_bcast", "direct", "direct_replicated"}) {
    setenv("UNISONO_ALGORITHM", (std::string("allreduce=") + name).c_str(), 1);
    on_ranks(4, [&](const Communicator& world) {
      sum_up(world, 77);
      EXPECT_EQ(world.last_algorithm().name, name);
    });
  }
}

TEST_F(TuningTest, WrongPinsStopTheJoining) {
  setenv("UNISONO_ALGORITHM", "allreduce=rnig", 1);
  unisono_context* context = nullptr;
  EXPECT_EQ(unisono_init(nullptr, &context), static_cast<int>(ErrorCode::kUnknownAlgorithm));
  EXPECT_THAT(unisono_last_error(), HasSubstr("allreduce has no algorithm \"rnig\""));
}

}  // namespace
}  // namespace unisono::test
