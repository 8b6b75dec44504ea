// The protocol of slots on networks that lose, double, delay and reorder, with switches that restart: results are those
// of the fold in listed order, bit for bit, and each rule of the protocol is needed.
#include "tests/cpp/switch/simulation.hpp"

#include <gtest/gtest.h>

#include <string>

namespace unisono::slots {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Faults kNoFaults{};
constexpr Faults kLossy{.loss = 0.05, .copies = 0.05, .late = 0.05};
constexpr Faults kRestarting{.loss = 0.02, .copies = 0.05, .late = 0.05, .restarts = 4};

SlotCall call(Collective collective, Func func, Datatype dtype, std::uint64_t count, std::uint32_t root = 0) {
  SlotCall one;
  one.collective = collective;
  one.func = func;
  one.dtype = dtype;
  one.count = count;
  one.root = root;
  return one;
}

/// Calls of every kind, one behind the other, with sequences of their own.
std::vector<SlotCall> every_kind(std::uint32_t ranks) {
  std::vector<SlotCall> calls{
      call(Collective::kAllreduce, Func::kSum, Datatype::kFp32, 1000),
      call(Collective::kBarrier, Func::kNone, Datatype::kNone, 0),
      call(Collective::kReduce, Func::kProd, Datatype::kFp64, 77, ranks - 1),
      call(Collective::kAllreduce, Func::kMax, Datatype::kInt16, 333),
      call(Collective::kAllreduce, Func::kSum, Datatype::kInt64, 1),
      call(Collective::kBcast, Func::kNone, Datatype::kByte, 1001, ranks / 2),
      call(Collective::kReduceScatter, Func::kSum, Datatype::kFp32, 21),
      call(Collective::kAllgather, Func::kNone, Datatype::kUint32, 19),
      call(Collective::kAllreduce, Func::kSum, Datatype::kFp64, 0),
      call(Collective::kAllreduce, Func::kSum, Datatype::kFp32, 400),
  };
  for (std::uint32_t i = 0; i < calls.size(); ++i) calls[i].sequence = 100 + 2 * i;
  return calls;
}

Plan plan(const Tree& tree, const Faults& faults) {
  Plan plan;
  plan.tree = tree;
  plan.faults = faults;
  plan.calls = every_kind(tree.size());
  return plan;
}

Tree flat(std::uint32_t ranks) { return {ranks, {}}; }

TEST(Slots, GiveTheFoldInListedOrder) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 8U, 33U, 65U, 130U}) {
    Simulation simulation(plan(flat(ranks), kNoFaults), ranks);
    EXPECT_EQ(simulation.run(), "") << ranks << " ranks";
  }
}

TEST(Slots, LossCopiesAndDelaysChangeNothing) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    Plan one = plan(flat(2 + seed % 7), kLossy);
    one.slots = 1U << (seed % 4);
    one.rounds_ahead = 1 + seed % 3;
    Simulation simulation(one, seed);
    EXPECT_EQ(simulation.run(), "") << "seed " << seed;
    EXPECT_GT(simulation.repeated(), 0U);
  }
}

TEST(Slots, OtherBusyWindowsChangeNothing) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    Plan one = plan(flat(2 + seed % 5), seed % 3 == 0 ? kNoFaults : seed % 3 == 1 ? kLossy : kRestarting);
    one.slots = 16U << (seed % 3);
    one.others = true;
    Simulation simulation(one, seed);
    EXPECT_EQ(simulation.run(), "") << "seed " << seed;
  }
}

TEST(Slots, SwitchesThatRestartChangeNothing) {
  std::uint64_t resumed = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Plan one = plan(flat(2 + seed % 5), kRestarting);
    one.slots = 1U << (seed % 4);
    one.rounds_ahead = 1 + seed % 3;
    Simulation simulation(one, seed);
    EXPECT_EQ(simulation.run(), "") << "seed " << seed;
    resumed += simulation.resumed();
  }
  EXPECT_GT(resumed, 80U) << "generations that began while there was something to do";
}

TEST(Slots, ALinkThatOthersBeginToUseIsNotFilledWithRepeats) {
  const auto repeated = [](std::uint64_t count, std::size_t calls, unsigned slower) {
    Plan one = plan(flat(4), kNoFaults);
    one.slots = 64;
    one.link = {.frame = microseconds(20), .slow_from = milliseconds(50), .slower = slower};
    one.calls.assign(calls, call(Collective::kAllreduce, Func::kSum, Datatype::kFp32, count));
    Simulation simulation(one, slower);
    EXPECT_EQ(simulation.run(), "");
    return simulation.repeated();
  };
  for (const unsigned slower : {1U, 2U, 4U, 10U, 100U}) {
    EXPECT_LT(repeated(1600, 40, slower), 4 * 4000 / 20) << "100 turns a call, " << slower << " times as long";
    EXPECT_LT(repeated(1, 1000, slower), 4 * 1000 / 10) << "one turn a call, " << slower << " times as long";
  }
}

TEST(Slots, MoreMembersThanAWordHasBits) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Simulation simulation(plan(flat(67), kRestarting), seed);
    EXPECT_EQ(simulation.run(), "") << "seed " << seed;
  }
}

TEST(Slots, SwitchesAreMembersOfSwitches) {
  const Tree two{0, {flat(3), flat(2)}};
  const Tree uneven{2, {flat(1), Tree{1, {flat(2), flat(33)}}}};
  for (const Tree& tree : {two, uneven}) {
    Simulation simulation(plan(tree, kNoFaults), 1);
    EXPECT_EQ(simulation.run(), "");
  }
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    Simulation lossy(plan(two, kLossy), seed);
    EXPECT_EQ(lossy.run(), "") << "seed " << seed;
    Simulation restarting(plan(seed % 8 == 0 ? uneven : two, kRestarting), seed);
    EXPECT_EQ(restarting.run(), "") << "seed " << seed;
  }
}

/// How many of 40 runs went wrong.
template <Rules kRules>
unsigned found_wrong(std::string& how) {
  unsigned found = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Plan one = plan(flat(3), kRestarting);
    one.slots = 2;
    const std::string wrong = Simulation<kRules>(one, seed).run();
    if (wrong.empty()) continue;
    ++found;
    how = wrong;
  }
  return found;
}

TEST(Slots, NoRuleCanBeLeftOut) {
  std::string how;
  EXPECT_EQ(found_wrong<Rules{}>(how), 0U) << how;
  const auto expect = [&how](unsigned found, const char* rule) {
    EXPECT_GT(found, 0U) << "a switch without this rule was not found wrong: " << rule;
    std::printf("  without %-16s %2u of 40 runs are wrong, for instance: %s\n", rule, found, how.c_str());
  };
  expect(found_wrong<Rules{.second_version = false}>(how), "second_version");
  expect(found_wrong<Rules{.clears_other = false}>(how), "clears_other");
  expect(found_wrong<Rules{.first_overwrites = false}>(how), "first_overwrites");
  expect(found_wrong<Rules{.whole_turn = false}>(how), "whole_turn");
  expect(found_wrong<Rules{.closes = false}>(how), "closes");
  expect(found_wrong<Rules{.generation = false}>(how), "generation");
  expect(found_wrong<Rules{.answers = false}>(how), "answers");
}

}  // namespace
}  // namespace unisono::slots
