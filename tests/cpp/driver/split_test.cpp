// Splits: who is with whom, in which order; and that a split which fails on some fails on all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What the ranks of a communicator add up to, each with a value of its own.
std::int64_t sum_over(unisono_communicator* communicator, std::int64_t own) {
  std::int64_t total = 0;
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLREDUCE;
  call.datatype = UNISONO_INT64;
  call.op = UNISONO_SUM;
  call.count = 1;
  call.src = &own;
  call.src_bytes = sizeof own;
  call.dst = &total;
  call.dst_bytes = sizeof total;
  EXPECT_EQ(unisono_run(communicator, &call), 0) << unisono_last_error();
  return total;
}

TEST(Splits, GoByColourAndKey) {
  on_ranks(5, [](Communicator world) {
    // 0, 2 and 4 by falling key, 1 and 3 by equal keys; then rank 3 alone stays out.
    const std::uint32_t rank = world.rank();
    unisono_communicator* made = nullptr;
    ASSERT_EQ(unisono_split(world.handle(), rank % 2, rank % 2 == 0 ? -static_cast<std::int64_t>(rank) : 7, 0, &made),
              0);
    std::uint32_t own = 0, size = 0;
    ASSERT_EQ(unisono_communicator_rank(made, &own), 0);
    ASSERT_EQ(unisono_communicator_size(made, &size), 0);
    EXPECT_EQ(size, rank % 2 == 0 ? 3U : 2U);
    EXPECT_EQ(own, rank % 2 == 0 ? (4 - rank) / 2 : (rank - 1) / 2);
    EXPECT_EQ(sum_over(made, 1 << rank), rank % 2 == 0 ? 0b10101 : 0b01010);
    EXPECT_EQ(unisono_communicator_free(made), 0);

    unisono_communicator* some = nullptr;
    ASSERT_EQ(unisono_split(world.handle(), rank == 3 ? -1 : 0, 0, 0, &some), 0);
    ASSERT_EQ(some == nullptr, rank == 3);
    if (some == nullptr) return;
    EXPECT_EQ(sum_over(some, 1 << rank), 0b10111);
    EXPECT_EQ(unisono_communicator_free(some), 0);
  });
}

TEST(Splits, ThatFailOnSomeFailOnAll) {
  on_ranks(4, [](Communicator world) {
    // Ranks 0 and 1 disagree about their groups; 2 and 3, of another colour, have done nothing wrong.
    const std::uint32_t rank = world.rank();
    unisono_communicator* made = nullptr;
    const int code = unisono_split(world.handle(), rank / 2, 0, rank == 1 ? 2 : 0, &made);
    const std::string text = unisono_last_error();
    EXPECT_EQ(made, nullptr);
    if (rank < 2) {
      EXPECT_EQ(code, static_cast<int>(ErrorCode::kMismatchedCall));
      EXPECT_THAT(text, AllOf(HasSubstr("group_size is " + std::to_string(rank == 1 ? 2 : 0) + " here"),
                              HasSubstr("on rank " + std::to_string(1 - rank))));
    } else {
      EXPECT_EQ(code, static_cast<int>(ErrorCode::kUnsupported));
      EXPECT_THAT(text, HasSubstr("rank 0 of the parent could not create its communicator"));
    }
    // The parent is as good as before, and so is the next split.
    EXPECT_EQ(sum_over(world.handle(), 1 << rank), 0b1111);
    ASSERT_EQ(unisono_split(world.handle(), rank / 2, 0, 0, &made), 0) << unisono_last_error();
    EXPECT_EQ(sum_over(made, 1 << rank), rank < 2 ? 0b0011 : 0b1100);
    EXPECT_EQ(unisono_communicator_free(made), 0);
  });
}

TEST(Splits, NeedACommunicatorThatLives) {
  const ThreadJob job(1);
  Context context(job, 0);
  Communicator world = context.world();
  unisono_communicator* made = nullptr;
  ASSERT_EQ(unisono_split(world.handle(), 0, 0, 0, &made), 0);
  ASSERT_EQ(unisono_communicator_free(made), 0);
  EXPECT_EQ(unisono_split(made, 0, 0, 0, &made), static_cast<int>(ErrorCode::kFreedCommunicator));
  EXPECT_EQ(unisono_communicator_free(world.handle()), static_cast<int>(ErrorCode::kInvalidArgument));
  EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("belongs to its context"));
}

}  // namespace
}  // namespace unisono::test
