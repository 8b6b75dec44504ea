// Graphs of ranks: what their ends disagree about is told, and calls along them are checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "tests/cpp/driver/ranks.hpp"

namespace unisono::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Graphs, WhoseEndsDisagreeAreRefusedEverywhere) {
  on_ranks(3, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    const auto refused = [&](std::vector<std::int64_t> sources, std::vector<std::int64_t> destinations, auto&& what) {
      try {
        world.graph(sources, destinations);
        ADD_FAILURE() << "nothing was thrown on rank " << r;
      } catch (const Error& error) {
        EXPECT_THAT(std::string(error.what()), what);
      }
    };
    refused({}, r == 1 ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{},
            AllOf(HasSubstr("rank 1 names rank 2 as a destination 2 times"),
                  HasSubstr("rank 2 names rank 1 as a source not")));
    refused(r == 0 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{}, {},
            AllOf(HasSubstr("rank 1 names rank 0 as a destination not"),
                  HasSubstr("rank 0 names rank 1 as a source once")));
    refused(r == 2 ? std::vector<std::int64_t>{0, 3} : std::vector<std::int64_t>{}, {},
            AllOf(HasSubstr("source 3 was given"), HasSubstr("ranks 0 to 2")));
    refused({}, r == 1 ? std::vector<std::int64_t>{-1} : std::vector<std::int64_t>{}, HasSubstr("destination -1"));
    world.barrier();  // nothing was left behind
  });
}

TEST(Graphs, CallsAreChecked) {
  on_ranks(1, [](const Communicator& world) {
    const std::vector<std::int64_t> self{0, 0};
    const Graph graph = world.graph(self, self);
    std::vector<float> src(4), dst(4);
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = UNISONO_ALLTOALL;
    call.datatype = UNISONO_FP32;
    call.graph = graph.handle();
    call.src = src.data();
    call.src_bytes = 16;
    call.dst = dst.data();
    call.dst_bytes = 16;
    call.count = 2;
    const unisono_call right = call;
    const auto refuses = [&](ErrorCode code, auto&& what) {
      EXPECT_EQ(unisono_run(world.handle(), &call), static_cast<int>(code));
      EXPECT_THAT(std::string(unisono_last_error()), what);
      call = right;
    };
    EXPECT_EQ(unisono_run(world.handle(), &call), 0) << unisono_last_error();
    call.collective = UNISONO_ALLREDUCE;
    refuses(ErrorCode::kInvalidArgument, HasSubstr("allgather, allgatherv, alltoall and alltoallv only"));
    call.algorithm = "ring";
    refuses(ErrorCode::kUnknownAlgorithm, HasSubstr("neighbour_alltoall: there is no algorithm"));
    call.in_place = 1;
    refuses(ErrorCode::kInvalidArgument, HasSubstr("no in-place form"));
    call.op = UNISONO_SUM;
    refuses(ErrorCode::kInvalidOp, HasSubstr("nothing is reduced"));
    call.datatype = 0;
    refuses(ErrorCode::kInvalidDatatype, HasSubstr("datatype 0"));
    call.count = -1;
    refuses(ErrorCode::kInvalidCount, HasSubstr("count -1"));
    call.count = std::int64_t{1} << 41U;
    refuses(ErrorCode::kInvalidCount, HasSubstr("allowed are 0 to"));
    call.dst_bytes = 15;
    refuses(ErrorCode::kBufferTooSmall, HasSubstr("dst holds 3 elements; the call needs 4 elements (16 bytes)"));
    call.src = nullptr;
    refuses(ErrorCode::kInvalidArgument, HasSubstr("src is null"));
    call.dst = src.data() + 1;
    call.dst_bytes = 12;
    call.count = 1;
    refuses(ErrorCode::kOverlappingBuffers, HasSubstr("overlap"));
    call.collective = UNISONO_ALLTOALLV;
    refuses(ErrorCode::kInvalidArgument, HasSubstr("send_counts is null"));
    const std::int64_t counts[] = {1, 2};
    const std::int64_t other_counts[] = {2, 1};
    const std::int64_t places[] = {0, 0};
    call.collective = UNISONO_ALLTOALLV;
    call.send_counts = counts;
    call.recv_counts = other_counts;
    refuses(ErrorCode::kInvalidCount, HasSubstr("sends itself 1 elements and receives 2"));
    call.collective = UNISONO_ALLTOALLV;
    call.send_counts = call.recv_counts = counts;
    call.recv_displacements = places;
    refuses(ErrorCode::kOverlappingBuffers, HasSubstr("blocks of edges 0 and 1 overlap"));
    const std::int64_t negative[] = {1, -2};
    call.collective = UNISONO_ALLTOALLV;
    call.send_counts = counts;
    call.recv_counts = negative;
    refuses(ErrorCode::kInvalidCount, HasSubstr("recv_counts[1] is -2"));
    const Communicator half = world.split(0);
    EXPECT_EQ(unisono_run(half.handle(), &call), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("of another communicator"));
  });
}

// The ranks disagree on what the one sends and the other receives, or on which graph the call is.
TEST(Graphs, CallsThatDoNotMatchFailOnBothSides) {
  for (const bool other_graph : {false, true}) {
    on_ranks(2, [other_graph](Communicator world) {
      world.set_timeout(20);
      const std::uint32_t r = world.rank();
      const std::vector<std::int64_t> other{1 - r};
      const std::vector<std::int64_t> twice{1 - r, 1 - r};
      const Graph once = world.graph(other, other);
      const Graph both = world.graph(twice, twice);
      const std::size_t length = other_graph ? 2 : 2 + r;
      const std::vector<float> src(length, 1);
      std::vector<float> dst(2 * length);
      try {
        world.neighbour_allgather(other_graph && r == 1 ? both : once, src, dst);
        world.barrier();
        ADD_FAILURE() << "rank " << r << " did not notice";
      } catch (const Error& error) {
        const std::string name = error.name();
        EXPECT_TRUE(name == "mismatched_call" || name == "revoked" || name == "malformed_program" ||
                    name == "truncated")
            << name << ": " << error.what();
      }
    });
  }
}

}  // namespace
}  // namespace unisono::test
