// Counts up to the largest that a move can have: what is allowed is found wanting for its buffers only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "tests/cpp/driver/ranks.hpp"

namespace unisono::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kSize = 3;

struct Limit {
  unisono_collective collective;
  bool blocks;  ///< the count is that of one of as many blocks as ranks
  bool reduces;
};
constexpr Limit kLimits[] = {
    {UNISONO_BCAST, false, false},        {UNISONO_REDUCE, false, true},    {UNISONO_ALLREDUCE, false, true},
    {UNISONO_REDUCE_SCATTER, true, true}, {UNISONO_ALLGATHER, true, false}, {UNISONO_GATHER, true, false},
    {UNISONO_SCATTER, true, false},       {UNISONO_ALLTOALL, true, false},  {UNISONO_SCAN, false, true},
    {UNISONO_EXSCAN, false, true},        {UNISONO_SEND, false, false},     {UNISONO_RECV, false, false},
};

unisono_call call_of(unisono_collective collective, bool reduces) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = collective;
  call.datatype = UNISONO_COMPLEX128;
  call.op = reduces ? UNISONO_SUM : 0;
  return call;
}

/// The code with which a call is refused, which needs nobody else.
int refused(const Communicator& world, const unisono_call& call) { return unisono_run(world.handle(), &call); }

TEST(Limits, EveryCountUpToTheLargestIsAllowed) {
  on_ranks(kSize, [](const Communicator& world) {
    std::array<std::byte, 64> little{};
    for (const Limit& limit : kLimits) {
      SCOPED_TRACE(limit.collective);
      const std::uint64_t most = limit.blocks ? kMaxCount / kSize : kMaxCount;
      unisono_call call = call_of(limit.collective, limit.reduces);
      call.root = world.rank();  // so that every rank has both buffers
      call.src = little.data();
      call.dst = little.data() + 32;
      call.src_bytes = call.dst_bytes = 32;
      for (const std::uint64_t count : {most, most - 1, std::uint64_t{1} << 38U, std::uint64_t{1} << 32U}) {
        call.count = static_cast<std::int64_t>(count);
        EXPECT_EQ(refused(world, call), static_cast<int>(ErrorCode::kBufferTooSmall)) << unisono_last_error();
        EXPECT_THAT(unisono_last_error(), HasSubstr("holds 2 elements"));
      }
      for (const std::uint64_t count : {most + 1, most * 2, std::uint64_t{1} << 62U}) {
        call.count = static_cast<std::int64_t>(count);
        EXPECT_EQ(refused(world, call), static_cast<int>(ErrorCode::kInvalidCount));
        EXPECT_THAT(unisono_last_error(), HasSubstr("0 to " + std::to_string(most)));
      }
    }
  });
}

TEST(Limits, CountsOfRanksAddUpToTheLargest) {
  on_ranks(kSize, [](const Communicator& world) {
    std::array<std::byte, 64> little{};
    for (const auto collective :
         {UNISONO_GATHERV, UNISONO_SCATTERV, UNISONO_ALLGATHERV, UNISONO_ALLTOALLV, UNISONO_REDUCE_SCATTERV}) {
      SCOPED_TRACE(static_cast<int>(collective));
      unisono_call call = call_of(collective, collective == UNISONO_REDUCE_SCATTERV);
      call.root = world.rank();
      call.src = little.data();
      call.dst = little.data() + 32;
      call.src_bytes = call.dst_bytes = 32;
      // One rank has all there can be; the others nothing.
      for (std::uint32_t whose = 0; whose < kSize; ++whose) {
        std::vector<std::int64_t> counts(kSize, 0);
        counts[whose] = static_cast<std::int64_t>(kMaxCount);
        call.send_counts = call.recv_counts = counts.data();
        EXPECT_EQ(refused(world, call), static_cast<int>(ErrorCode::kBufferTooSmall)) << unisono_last_error();
        ++counts[(whose + 1) % kSize];
        EXPECT_EQ(refused(world, call), static_cast<int>(ErrorCode::kInvalidCount));
        EXPECT_THAT(unisono_last_error(), HasSubstr("add up to 1099511627776"));
      }
      const std::vector<std::int64_t> counts{1, 1, 1};
      const std::vector<std::int64_t> far{0, 1, std::int64_t{1} << 41U};
      call.send_counts = call.recv_counts = counts.data();
      call.send_displacements = call.recv_displacements = far.data();
      EXPECT_EQ(refused(world, call), static_cast<int>(ErrorCode::kInvalidCount));
    }
  });
}

// Nothing to send, to receive, or both, on some ranks or on all: the others are served.
TEST(Limits, NothingMayBeAnybodysShare) {
  on_ranks(kSize, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    for (std::uint32_t pattern = 0; pattern < 1U << kSize; ++pattern) {
      std::vector<std::int64_t> counts;
      for (std::uint32_t rank = 0; rank < kSize; ++rank)
        counts.push_back((pattern >> rank & 1U) != 0 ? std::int64_t{rank} + 2 : 0);
      std::int64_t total = 0;
      for (const std::int64_t count : counts) total += count;
      const std::vector<std::int32_t> own(static_cast<std::size_t>(counts[r]), static_cast<std::int32_t>(r) + 1);
      std::vector<std::int32_t> expected;
      for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        expected.insert(expected.end(), static_cast<std::size_t>(counts[rank]), static_cast<std::int32_t>(rank) + 1);
      }
      std::vector<std::int32_t> all(static_cast<std::size_t>(total), -1);
      world.allgatherv(own, all, {counts});
      EXPECT_EQ(all, expected);
      std::vector<std::int32_t> gathered(r == 1 ? all.size() : 0, -1);
      world.gatherv(own, gathered, {counts}, 1);
      if (r == 1) {
        EXPECT_EQ(gathered, expected);
      }
      std::vector<std::int32_t> back(own.size(), -1);
      world.scatterv(gathered, back, {counts}, 1);
      EXPECT_EQ(back, own);
      for (const char* name : {"pairwise", "ring", "linear"}) {
        std::vector<std::int32_t> sum(own.size(), -1);
        world.reduce_scatterv(expected, sum, {counts}, Op::kSum, {.algorithm = name});
        EXPECT_EQ(sum, std::vector<std::int32_t>(own.size(), 3 * (static_cast<std::int32_t>(r) + 1))) << name;
      }
      // Rank r sends counts[r] elements to everybody.
      const std::vector<std::int64_t> sends(kSize, counts[r]);
      const std::vector<std::int32_t> copies(kSize * own.size(), static_cast<std::int32_t>(r) + 1);
      world.alltoallv(copies, all, {sends}, {counts});
      EXPECT_EQ(all, expected);
    }
  });
}

}  // namespace
}  // namespace unisono::test
