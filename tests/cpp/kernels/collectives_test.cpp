// Collectives of SMI: every root, lengths, ranks; data that differs on every rank and element.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <unisono/smi.hpp>
#include <vector>

#include "../driver/ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

std::int32_t value(int rank, int element) { return rank * 100003 + element * 17 - 50000; }

/// All collectives at once, each on its own port, one kernel each.
void all_at_once(std::uint32_t ranks, int count, int degree) {
  on_ranks(ranks, [&](const Communicator& world) {
    const smi::Group group(world);
    const int me = group.rank();
    const int size = group.size();
    for (int root = 0; root < size; ++root) {
      kernel::launch(group, "bcast", [=] {
        smi::BcastChannel<std::int32_t> channel(group,
                                                {.count = count, .peer = root, .port = 10 * root, .degree = degree});
        for (int i = 0; i < count; ++i) {
          std::int32_t element = me == root ? value(root, i) : -1;
          channel.bcast(element);
          ASSERT_EQ(element, value(root, i));
        }
      });
      kernel::launch(group, "reduce", [=] {
        smi::ReduceChannel<std::int32_t> channel(
            group, SMI_ADD, {.count = count, .peer = root, .port = 10 * root + 1, .degree = degree});
        for (int i = 0; i < count; ++i) {
          std::int32_t sum = 0;
          channel.reduce(value(me, i), sum);
          std::int32_t expected = 0;
          for (int rank = 0; rank < size; ++rank) expected += value(rank, i);
          if (me == root) {
            ASSERT_EQ(sum, expected) << i;
          }
        }
      });
      kernel::launch(group, "scatter", [=] {
        smi::ScatterChannel<std::int32_t> channel(
            group, {.count = count, .peer = root, .port = 10 * root + 2, .degree = degree});
        for (int i = 0; i < (me == root ? count * size : count); ++i) {
          std::int32_t element = -1;
          channel.next(value(root, i), element);
          if (me != root) {
            ASSERT_EQ(element, value(root, me * count + i));
          }
          if (me == root && i / count == me) {
            ASSERT_EQ(element, value(root, i));
          }
        }
      });
      kernel::launch(group, "gather", [=] {
        smi::GatherChannel<std::int32_t> channel(
            group, {.count = count, .peer = root, .port = 10 * root + 3, .degree = degree});
        for (int i = 0; i < (me == root ? count * size : count); ++i) {
          std::int32_t element = -1;
          channel.next(value(me, i % count), element);
          if (me == root) {
            ASSERT_EQ(element, value(i / count, i % count));
          }
        }
      });
    }
    kernel::wait_all(group);
  });
}

TEST(SmiCollectives, EveryRootLengthAndNumberOfRanks) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 8U}) {
    for (const int count : {1, 2, 28, 29}) all_at_once(ranks, count, -1);
  }
  all_at_once(4, 3000, -1);
  all_at_once(8, 10000, -1);
}

TEST(SmiCollectives, EveryAsynchronicityDegree) {
  for (const int degree : {0, 1, 13, 2048}) all_at_once(4, 100, degree);
}

TEST(SmiCollectives, BeyondSmi) {
  for (const std::uint32_t ranks : {1U, 2U, 5U, 8U}) {
    on_ranks(ranks, [](const Communicator& world) {
      const smi::Group group(world);
      constexpr int kCount = 40;
      const int me = group.rank();
      const int size = group.size();
      kernel::launch(group, "allreduce", [=] {
        smi::AllreduceChannel<double> channel(group, SMI_MAX, {.count = kCount, .port = 1});
        for (int i = 0; i < kCount; ++i) {
          double most = 0;
          channel.allreduce(-1.0 - me - i, most);
          ASSERT_EQ(most, -1.0 - i);
        }
      });
      kernel::launch(group, "allgather", [=] {
        smi::AllgatherChannel<std::int32_t> channel(group, {.count = kCount, .port = 2});
        for (int i = 0; i < kCount * size; ++i) {
          std::int32_t element = -1;
          channel.next(value(me, i % kCount), element);
          ASSERT_EQ(element, value(i / kCount, i % kCount));
        }
      });
      kernel::launch(group, "alltoall", [=] {
        smi::AlltoallChannel<std::int32_t> channel(group, {.count = kCount, .port = 3});
        for (int i = 0; i < kCount * size; ++i) {
          std::int32_t element = -1;
          channel.next(value(me, i), element);
          ASSERT_EQ(element, value(i / kCount, me * kCount + i % kCount));
        }
      });
      group.barrier(4);
      kernel::wait_all(group);
    });
  }
}

TEST(SmiCollectives, VectorForms) {
  on_ranks(4, [](const Communicator& world) {
    const smi::Group group(world);
    const auto me = static_cast<float>(group.rank());
    constexpr std::size_t kCount = 9000;
    std::vector<float> mine(kCount);
    std::vector<float> sum(kCount);
    for (std::size_t i = 0; i < kCount; ++i) mine[i] = me + static_cast<float>(i);
    smi::ReduceChannel<float> reduce(group, SMI_ADD, {.count = kCount, .peer = 2, .port = 0});
    reduce.reduce(mine, sum);
    smi::BcastChannel<float> bcast(group, {.count = kCount, .peer = 2, .port = 1});
    bcast.bcast(sum);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sum[i], 6 + 4 * static_cast<float>(i));
    smi::AllreduceChannel<float> all(group, SMI_MIN, {.count = kCount, .port = 2});
    all.allreduce(mine, sum);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(sum[i], static_cast<float>(i));
    group.finish();
    world.barrier();
  });
}

TEST(SmiCollectives, TheMaximumOfNegativeNumbersIsOneOfThem) {
  on_ranks(3, [](const Communicator& world) {
    const smi::Group group(world);
    float most = 0;
    smi::ReduceChannel<float> channel(group, SMI_MAX, {.count = 1, .peer = 0, .port = 0});
    channel.reduce(-5.0F - static_cast<float>(group.rank()), most);
    if (group.rank() == 0) {
      EXPECT_EQ(most, -5.0F);
    }
    group.finish();
  });
}

TEST(SmiCollectives, ReduceTakesTheOthersInOrderAndThenTheRoot) {
  on_ranks(4, [](const Communicator& world) {
    const smi::Group group(world);
    const std::vector<float> values = {1e8F, 1.0F, -1e8F, 3.0F};
    for (int root = 0; root < 4; ++root) {
      float sum = 0;
      smi::ReduceChannel<float> channel(group, SMI_ADD, {.count = 1, .peer = root, .port = root});
      channel.reduce(values[static_cast<std::size_t>(group.rank())], sum);
      bool first = true;
      float expected = 0;
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == root) continue;
        expected = first ? values[static_cast<std::size_t>(rank)] : expected + values[static_cast<std::size_t>(rank)];
        first = false;
      }
      expected += values[static_cast<std::size_t>(root)];
      if (group.rank() == root) {
        EXPECT_EQ(sum, expected);
      }
    }
    group.finish();
    world.barrier();
  });
}

TEST(SmiCollectives, RefuseRoomThatIsTooSmallOrNotThere) {
  on_ranks(1, [](const Communicator& world) {
    const smi::Group group(world);
    std::vector<int> four(4, 1), room(4), small(3), none;
    const auto sentence_of = [](const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const std::span<const int> values = four;
    const smi::Open open{.count = 4, .peer = 0, .port = 2};
    smi::ReduceChannel<int> reduce(group, SMI_ADD, open);
    EXPECT_THAT(sentence_of([&] { reduce.reduce(values, small); }),
                HasSubstr("port 2: 4 elements are given, and there is room for 3"));
    EXPECT_THAT(sentence_of([&] { reduce.reduce(values, none); }), HasSubstr("receive is null, and this rank gets"));
    reduce.reduce(values, room);
    EXPECT_EQ(room, four);
    smi::AllreduceChannel<int> allreduce(group, SMI_ADD, open);
    EXPECT_THAT(sentence_of([&] { allreduce.allreduce(values, small); }), HasSubstr("room for 3"));
    EXPECT_THAT(sentence_of([&] { allreduce.allreduce(values, none); }), HasSubstr("receive is null"));
    smi::GatherChannel<int> gather(group, open);
    EXPECT_THAT(sentence_of([&] { gather.next(values, small); }), HasSubstr("room for 3"));
    EXPECT_THAT(sentence_of([&] { gather.next(values, none); }), HasSubstr("receive is null"));
    smi::ScatterChannel<int> scatter(group, open);
    EXPECT_THAT(sentence_of([&] { scatter.next(none, room); }), HasSubstr("send is null, and this rank gives"));
    // The block that a rank gives itself needs both.
    smi::AllgatherChannel<int> allgather(group, open);
    EXPECT_THAT(sentence_of([&] { allgather.next(none, room); }), HasSubstr("send is null in calls 0 to 3"));
    smi::AlltoallChannel<int> alltoall(group, open);
    EXPECT_THAT(sentence_of([&] { alltoall.next(none, room); }), HasSubstr("send is null, and this rank gives"));
    EXPECT_THAT(sentence_of([&] { gather.next(none, room); }), HasSubstr("send is null in calls 0 to 3"));
    EXPECT_THAT(sentence_of([&] { scatter.next(values, none); }), HasSubstr("receive is null in calls 0 to 3"));
    smi::SendChannel<int> send(group, open);
    EXPECT_THAT(sentence_of([&] { send.push(std::span<const int>(static_cast<const int*>(nullptr), 4)); }),
                HasSubstr("data is null, and elements are to be pushed"));
  });
}

TEST(SmiCollectives, NeedNoMemoryForWhatARankDoesNotGiveOrGet) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    const int me = group.rank();
    std::vector<int> own{10 + me, 20 + me, 30 + me}, left(3), right(3);
    const std::span<const int> nothing;
    smi::AllgatherChannel<int> channel(group, {.count = 3, .peer = 0, .port = 3});
    channel.next(me == 0 ? std::span<const int>(own) : nothing, left);
    EXPECT_EQ(left, (std::vector<int>{10, 20, 30}));
    try {
      if (me == 1) channel.next(nothing, right);
      EXPECT_EQ(me, 0);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("in calls 3 to 5 this rank gives itself"));
    }
    channel.next(me == 1 ? std::span<const int>(own) : nothing, right);
    EXPECT_EQ(right, (std::vector<int>{11, 21, 31}));
    world.barrier();
  });
}

}  // namespace
}  // namespace unisono::test
