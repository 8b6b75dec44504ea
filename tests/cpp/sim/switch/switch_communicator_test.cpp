// Switches among members: results bit for bit those of folds in the tree's order, whatever comes when; little credit,
// many segments, calls that differ.
#include "sim/switch/switch_communicator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cases.hpp"
#include "core/error.hpp"
#include "engine/kernels.hpp"

namespace unisono::sim {
namespace {

void expect_idle(const Job& job) {
  for (const auto& member : job.members) EXPECT_TRUE(member->idle());
  for (std::size_t s = 0; s < job.switches.size(); ++s) {
    EXPECT_EQ(job.switches[s]->waiting(), "");
    EXPECT_EQ(job.outlets[s]->tokens, 0);
    EXPECT_EQ(job.switches[s]->counters().faults, 0U);
    EXPECT_EQ(job.switches[s]->counters().mismatches, 0U);
  }
}

class Trees : public testing::TestWithParam<const char*> {};

TEST_P(Trees, CarryEachCollectiveOfEveryLengthAndRoot) {
  // Eager, at the limit, one segment, several windows; ends in the middle of a segment.
  for (const std::size_t count : {1U, 7U, 64U, 65U, 128U, 1000U, 5000U}) {
    for (const Collective collective : kCarried) {
      const std::uint32_t roots = facts_of(collective).rooted ? parse_tree(GetParam(), false)->members : 1;
      for (std::uint32_t root = 0; root < roots; ++root) {
        Job job(GetParam(), {}, 31 * count + root);
        const Case one{collective, count, root};
        for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) begin_on(job, rank, one, count);
        job.run();
        expect_idle(job);
        for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) expect_of(job, rank, 0, one, count);
      }
    }
  }
}

TEST_P(Trees, CarryManyCallsAtOnceWithLittleCredit) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Terms terms{64, 128, 1 + static_cast<std::uint32_t>(seed % 3)};
    Job job(GetParam(), terms, seed);
    std::mt19937_64 dice(seed);
    std::vector<Case> cases;
    for (int i = 0; i < 8; ++i) {
      cases.push_back({kCarried[dice() % std::size(kCarried)], 1 + dice() % 90,
                       static_cast<std::uint32_t>(dice() % job.tree->members)});
    }
    for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) begin_on(job, rank, cases[i], i);
    }
    job.run();
    expect_idle(job);
    for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) expect_of(job, rank, i, cases[i], i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Trees,
                         testing::Values("(0 1)", "(0 1 2 3 4)", "((0 1) (2 3))", "(0 (1 2 3) 4)",
                                         "(((0 1) 2) (3 (4 5)))", "((0 1 2) 3 (4) (5 6))"));

TEST(SwitchCommunicator, CallsThatDifferEndOnAllMembers) {
  Job job("((0 1) (2 3))", {}, 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const Call call = call_of(Collective::kAllreduce, 10, 0, *job.tree);
    job.members[rank]->call(call, rank == 2 ? 5 : 4, bytes_of_values(values_of(rank, 10, 1)),
                            std::vector<std::byte>(40));
  }
  job.run();
  for (const auto& member : job.members) EXPECT_TRUE(member->mismatched);
  EXPECT_EQ(job.switches[0]->waiting(), "call 5 allreduce: ranks called different operations\n");
}

TEST(SwitchCommunicator, SaysWhoIsMissing) {
  Job job("((0 1 2) (3 4))", {}, 1);
  for (const std::uint32_t rank : {0U, 3U, 4U}) begin_on(job, rank, {Collective::kAllreduce, 4, 0}, 1);
  job.run();
  EXPECT_EQ(job.switches[1]->waiting(), "call 5 allreduce: waits for rank 1, rank 2, switch 0\n");
  EXPECT_EQ(job.switches[2]->waiting(), "call 5 allreduce: waits for switch 0\n");
  EXPECT_EQ(job.switches[0]->waiting(), "call 5 allreduce: waits for switch 1\n");
}

TEST(SwitchCommunicator, IgnoresStrangersAndWhatIsForOthers) {
  Job job("(0 1)", {}, 1);
  Header header = make_header(MessageType::kEager);
  header.communicator = kCommunicator;
  header.epoch = kEpoch;
  header.source = 0;
  header.destination = 2;
  job.switches[0]->take(kFirstAddress + 1, header, {});  // says that it is another
  header.source = 5;
  job.switches[0]->take(kFirstAddress, header, {});
  header.source = 0;
  header.destination = 1;
  job.switches[0]->take(kFirstAddress, header, {});
  EXPECT_EQ(job.switches[0]->counters().faults, 3U);
  EXPECT_EQ(job.switches[0]->waiting(), "");
}

/// Whatever sound headers members send, in whatever order: nothing is read or written beyond its place, it is noticed,
/// and the switches go on with other calls.
TEST(SwitchCommunicator, TakesAnything) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Job job("((0 1) (2 3) 4)", {}, seed);
    std::mt19937_64 dice(seed);
    for (int i = 0; i < 200; ++i) {
      const auto [header, payload] = drawn_message(dice);
      const std::uint32_t to = header.destination - 5;
      job.switches[to]->take(kFirstAddress + header.source, header, payload);
    }
    job.run();
    std::uint64_t noticed = 0;
    for (const auto& one : job.switches) noticed += one->counters().faults + one->counters().mismatches;
    EXPECT_GT(noticed, 0U);
    const Case further{Collective::kAllreduce, 1000, 0};
    for (std::uint32_t rank = 0; rank < 5; ++rank) begin_on(job, rank, further, seed);
    job.run();
    for (std::uint32_t rank = 0; rank < 5; ++rank) expect_of(job, rank, 0, further, seed);
  }
}

TEST(SwitchCommunicator, RefusesTermsThatNobodyAgrees) {
  const CallTree* const tree = parse_tree("(0 1)", false);
  Ways ways(1);
  Job::Outlet outlet(ways, 0);
  const auto make = [&](std::uint32_t number, std::vector<std::uint32_t> addresses, std::uint32_t eager,
                        std::uint32_t segment) {
    const SwitchCommunicator made({1, 0, tree, number, std::move(addresses), eager, segment, 2}, outlet);
  };
  EXPECT_THROW(make(0, {0, 1}, 64, 128), Error);
  EXPECT_THROW(make(0, {0, 1, 2}, 64, 100), Error);
  EXPECT_THROW(make(0, {0, 1, 2}, 256, 128), Error);
  EXPECT_THROW(make(1, {0, 1, 2}, 64, 128), Error);
  EXPECT_NO_THROW(make(0, {0, 1, 2}, 64, 128));
}

}  // namespace
}  // namespace unisono::sim
