// Cycles that are left out because nothing can change in them (docs/rtl/skipping.md): nobody may be able to tell.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"
#include "sim/cluster/trace.hpp"
#include "tests/rtl/cclo/call_case.hpp"
#include "tests/rtl/cclo/job.hpp"

namespace unisono::rtl {
namespace {

/// All that can be seen of a run.
struct Course {
  std::vector<std::uint64_t> cycles;  ///< in which something had happened
  std::vector<std::vector<std::byte>> results;
  std::string counters, trace;
  double evaluated = 0;  ///< part of the engines' cycles; not compared
};

enum class Mode { kAll, kSkips, kChecks, kJumps };  ///< the last: also time of the whole cluster

sim::ClusterConfig config_of(std::uint32_t ranks, Mode mode) {
  sim::ClusterConfig config = usual(ranks);
  config.trace = true;
  config.skip = mode != Mode::kAll;
  config.check_skip = mode == Mode::kChecks;
  return config;
}

void finish(Course& course, sim::Cluster& cluster) {
  std::ostringstream counters, trace;
  sim::write_trace(trace, cluster);
  sim::write_counters(counters, cluster);
  course.counters = counters.str();
  course.trace = trace.str();
  course.cycles.push_back(cluster.cycle());
  course.evaluated = cluster.evaluated();
}

void expect_same(const Course& all, const Course& skips, const std::string& what) {
  EXPECT_EQ(skips.cycles, all.cycles) << what;
  EXPECT_TRUE(skips.results == all.results) << what << ": results differ";
  EXPECT_EQ(skips.counters, all.counters) << what;
  EXPECT_TRUE(skips.trace == all.trace) << what << ": traces differ";
}

void let_pass(sim::Cluster& cluster, std::uint64_t cycles, Mode mode) {
  for (const std::uint64_t end = cluster.cycle() + cycles; cluster.cycle() < end;) {
    if (mode == Mode::kJumps) {
      cluster.advance(end - cluster.cycle());
    } else {
      cluster.tick();
    }
  }
}

/// Calls of an algorithm, one rank of which is late. Stalling memory pauses of its own accord, and so never rests.
Course course_of(const Algorithm& algorithm, sim::ClusterConfig config, bool stalls) {
  const std::uint32_t ranks = config.network.nodes;
  if (stalls) {
    config.memory.jitter = 15;
    config.memory.stall_r = config.memory.stall_w = config.memory.stall_ar = 40;
  }
  sim::Cluster cluster(config);
  Course course;
  std::vector<sim::Host> hosts;
  for (std::uint32_t node = 0; node < ranks; ++node) hosts.emplace_back(cluster, node);
  for (sim::Host& host : hosts) host.run();
  for (sim::Host& host : hosts) host.create_communicator(kPlace, 77, ranks, {});
  std::uint32_t id = 0;
  for (const std::uint64_t count : {1U, 1500U}) {
    const Datatype dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
    const auto call = CallCase::make(algorithm, ranks, count, dtype, kPlace, ++id, count + ranks, 0);
    if (!call) continue;
    const std::uint32_t late = (ranks + id) % ranks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      call->place(cluster.node(rank), rank);
      if (rank != late) hosts[rank].submit(call->descriptor(rank));
    }
    for (int cycle = 0; cycle < 1500; ++cycle) cluster.tick();
    hosts[late].submit(call->descriptor(late));
    const auto expected = call->expected();
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(hosts[rank].completion(kLimit), std::pair(call->id(), std::uint16_t{0})) << "rank " << rank;
      course.cycles.push_back(cluster.cycle());
      course.results.push_back(call->result(cluster.node(rank), rank));
      EXPECT_TRUE(course.results.back() == expected[rank]) << "rank " << rank;
    }
  }
  finish(course, cluster);
  return course;
}

void check(const Algorithm& algorithm, std::uint32_t ranks, bool stalls) {
  const std::string what = std::string(name_of(algorithm.collective)) + " " + algorithm.name + ", " +
                           std::to_string(ranks) + " ranks" + (stalls ? ", memory that stalls" : "");
  const Course all = course_of(algorithm, config_of(ranks, Mode::kAll), stalls);
  const Course skips = course_of(algorithm, config_of(ranks, Mode::kSkips), stalls);
  expect_same(all, skips, what);
  EXPECT_EQ(all.evaluated, 1) << what;
  EXPECT_LT(skips.evaluated, 0.9) << what << ": nothing was skipped";
}

class Skips : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Skips, AndNothingElseIsOtherwise) {
  for (const std::uint32_t ranks : {2U, 3U, 4U}) {
    for (const bool stalls : {false, true}) check(*GetParam(), ranks, stalls);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Skips, testing::ValuesIn(CallCase::algorithms()), [](const auto& tested) {
  return std::string(name_of(tested.param->collective)) + "_" + tested.param->name;
});

/// Of that table, what is drawn for a commit.
TEST(Skip, ADrawnPartOfTheTableIsTheSame) {
  const char* given = std::getenv("UNISONO_SEED");
  std::string seed = given == nullptr ? "1" : given;
  std::seed_seq sequence(seed.begin(), seed.end());
  std::mt19937 random(sequence);
  const auto all = CallCase::algorithms();
  for (int i = 0; i < 4; ++i) {
    const auto ranks = static_cast<std::uint32_t>(2 + random() % 3);
    check(*all[random() % all.size()], ranks, random() % 2 == 0);
  }
}

/// Receives that nobody sends for, with deadlines across many microseconds, and one that is sent for in the middle.
Course deadlines(Mode mode) {
  sim::Cluster cluster(config_of(2, mode));
  Course course;
  std::vector<sim::Host> hosts;
  for (std::uint32_t node = 0; node < 2; ++node) hosts.emplace_back(cluster, node);
  for (sim::Host& host : hosts) host.run();
  for (sim::Host& host : hosts) host.create_communicator(kPlace, 77, 2, {});
  CallDescriptor call;
  call.collective = Collective::kRecv;
  call.dtype = Datatype::kInt32;
  call.communicator = kPlace;
  call.count = 16;
  call.root = 1;
  call.dst_address = sim::Node::kMemoryAddress;
  call.dst_bytes = 64;
  constexpr std::array<std::uint32_t, 5> kMicroseconds = {37, 1, 90, 38, 200};
  for (std::uint32_t i = 0; i < kMicroseconds.size(); ++i) {
    call.call_id = call.tag = i + 1;
    call.deadline_us = kMicroseconds[i];
    hosts[0].submit(call);
    let_pass(cluster, 77 * i, mode);
  }
  let_pass(cluster, 20'000, mode);
  call.collective = Collective::kSend;
  call.root = 0;
  call.tag = 5;
  call.dst_address = call.dst_bytes = 0;
  call.src_address = sim::Node::kMemoryAddress;
  call.src_bytes = 64;
  call.call_id = 9;
  hosts[1].submit(call);
  for (std::size_t i = 0; i < kMicroseconds.size(); ++i) {
    const auto [id, code] = hosts[0].completion(kLimit);
    course.cycles.insert(course.cycles.end(), {id, code, cluster.cycle()});
  }
  EXPECT_EQ(hosts[1].completion(kLimit), std::pair(std::uint32_t{9}, std::uint16_t{0}));
  finish(course, cluster);
  return course;
}

TEST(Skip, DeadlinesEndInTheSameCycle) {
  const Course all = deadlines(Mode::kAll);
  const Course skips = deadlines(Mode::kSkips);
  expect_same(all, skips, "deadlines");
  expect_same(all, deadlines(Mode::kChecks), "deadlines, checked");
  expect_same(all, deadlines(Mode::kJumps), "deadlines, with jumps");
  // Ends come in the order of the deadlines: that of 200 us ends by its message.
  constexpr auto kTimeout = static_cast<std::uint64_t>(ErrorCode::kTimeout);
  const std::vector<std::uint64_t> ends = {all.cycles[0], all.cycles[3], all.cycles[6], all.cycles[9], all.cycles[12]};
  EXPECT_EQ(ends, (std::vector<std::uint64_t>{2, 1, 4, 3, 5}));
  EXPECT_EQ(all.cycles[1], kTimeout);
  EXPECT_EQ(all.cycles[13], 0U);
  EXPECT_LT(skips.evaluated, 0.25);
}

TEST(Skip, WaitingCostsNextToNothing) {
  sim::Cluster cluster(config_of(4, Mode::kSkips));
  for (std::uint32_t node = 0; node < 4; ++node) sim::Host(cluster, node).run();
  for (int cycle = 0; cycle < 5000; ++cycle) cluster.tick();  // their tables are cleared
  const double before = cluster.evaluated() * static_cast<double>(cluster.cycle());
  const std::uint64_t begin = cluster.cycle();
  for (int cycle = 0; cycle < 100'000; ++cycle) cluster.tick();
  const double evaluated = cluster.evaluated() * static_cast<double>(cluster.cycle()) - before;
  EXPECT_LT(evaluated, 0.001 * static_cast<double>(cluster.cycle() - begin));
}

TEST(Skip, AClusterInWhichAllRestGoesOnAtOnce) {
  sim::Cluster cluster(config_of(3, Mode::kJumps));
  for (std::uint32_t node = 0; node < 3; ++node) sim::Host(cluster, node).run();
  const std::uint64_t begin = cluster.cycle();
  int steps = 0;
  for (; cluster.cycle() < begin + 1'000'000'000; ++steps) cluster.advance(begin + 1'000'000'000 - cluster.cycle());
  EXPECT_LT(steps, 10'000);
  EXPECT_EQ(cluster.cycle(), begin + 1'000'000'000);
  std::uint64_t counted = sim::Host(cluster, 2).read(exchange::kCounters);
  counted |= std::uint64_t{sim::Host(cluster, 2).read(exchange::kCounters + 4)} << 32U;
  EXPECT_GE(counted, cluster.cycle() - 100);  // in reset nothing is counted
  EXPECT_LE(counted, cluster.cycle());
}

/// A node that rests whenever its pins are silent does other things than an engine: the check must say so, and what.
TEST(Skip, AWrongClaimIsCaught) {
  sim::ClusterConfig config = config_of(2, Mode::kChecks);
  config.trust_silence = true;
  const auto* ring = CallCase::algorithms().front();
  for (const Algorithm* algorithm : CallCase::algorithms()) {
    if (algorithm->collective == Collective::kAllreduce && std::string(algorithm->name) == "ring") ring = algorithm;
  }
  try {
    course_of(*ring, config, false);
    FAIL() << "nothing was found";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("--check-skip: node "), std::string::npos) << said;
    EXPECT_NE(said.find(", cycle "), std::string::npos) << said;
    EXPECT_NE(said.find(" drives "), std::string::npos) << said;
  } catch (const std::runtime_error& error) {
    FAIL() << "found too late: " << error.what();
  }
}

}  // namespace
}  // namespace unisono::rtl
