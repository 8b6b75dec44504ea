// The cost model against computation by hand.
#include "cost/predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectives/build.hpp"
#include "core/error.hpp"
#include "core/tree_table.hpp"
#include "cost/tune.hpp"

namespace unisono::cost {
namespace {

using build::Build;

/// Numbers that no sum of others happens to equal.
Machine odd_machine() {
  Machine machine;
  machine.line = 53;
  machine.issue = 7;
  machine.segment = 31;
  machine.sync = 17;
  machine.yield = 701;
  machine.copy = {0.02, 0.04, 0.10};
  machine.cross = {0.05, 0.09, 0.14};
  machine.reduce = 0.03;
  machine.reduce_half = 0.07;
  machine.near_bytes = 1 << 20U;
  machine.shared_bytes = 16 << 20U;
  machine.cores = 0;
  return machine;
}

Call call_of(Collective collective, std::uint32_t size, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.size = size;
  call.count = count;
  call.dtype = collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  const bool reduces = collective == Collective::kReduce || collective == Collective::kAllreduce ||
                       collective == Collective::kReduceScatter || collective == Collective::kScan ||
                       collective == Collective::kExscan;
  if (reduces) call.func = Func::kSum;
  return call;
}

const Algorithm& algorithm(Collective collective, const char* name) {
  const int position = find_algorithm(collective, name);
  EXPECT_GE(position, 0) << name;
  return algorithms()[static_cast<std::size_t>(position)];
}

double total(Call call, const char* name, const Machine& machine) {
  const Algorithm& found = algorithm(call.collective, name);
  call.direct = found.direct;
  return predict(call, found, machine).time.total;
}

void expect_parts_add_up(const Time& time) {
  EXPECT_NEAR(time.latency + time.copy + time.reduce + time.sync, time.total, 1e-9 * time.total + 1e-9);
}

TEST(Predict, APing) {
  const Machine m = odd_machine();
  // The root issues and publishes a line, which travels; the other issues and reads one word at hand into dst. The
  // payload of a line costs nothing beside it, but what is read from and written to memory does.
  const Prediction ping = predict(call_of(Collective::kBcast, 2, 2), algorithm(Collective::kBcast, "linear"), m);
  EXPECT_DOUBLE_EQ(ping.time.total, m.issue + 8 * m.copy[0] / 2 + m.line + m.issue + 8 * m.copy[0] / 2);
  EXPECT_DOUBLE_EQ(ping.time.copy, 8 * m.copy[0]);
  EXPECT_DOUBLE_EQ(ping.time.latency, m.line + 2 * m.issue);
  EXPECT_EQ(ping.time.sync, 0);
  EXPECT_EQ(ping.messages, 1U);
  EXPECT_EQ(ping.message_bytes, 8U);
  EXPECT_EQ(ping.moves, 2U);
}

TEST(Predict, AnExchange) {
  const Machine m = odd_machine();
  const Prediction barrier =
      predict(call_of(Collective::kBarrier, 2, 0), algorithm(Collective::kBarrier, "dissemination"), m);
  EXPECT_DOUBLE_EQ(barrier.time.total, m.issue + m.line + m.issue);
  EXPECT_EQ(barrier.messages, 2U);
  // Eight ranks: three rounds, one after the other.
  EXPECT_DOUBLE_EQ(total(call_of(Collective::kBarrier, 8, 0), "dissemination", m), 3 * (m.issue + m.line + m.issue));

  // Each sends its operand, and combines the other's with its own.
  const std::uint64_t bytes = 1024;
  const Prediction sum = predict(call_of(Collective::kAllreduce, 2, bytes / 4),
                                 algorithm(Collective::kAllreduce, "recursive_doubling"), m);
  const double cell = m.cross[0] - m.copy[0] / 2;
  const double send = m.issue + m.segment + bytes * (m.copy[0] / 2 + cell);
  const double take = m.issue + m.segment + bytes * (m.copy[0] + cell + m.reduce);
  EXPECT_NEAR(sum.time.total, send + m.line + take, 1e-9);
  EXPECT_NEAR(sum.time.reduce, bytes * m.reduce, 1e-9);
  expect_parts_add_up(sum.time);
}

/// Hosts by rank.
Machine odd_machine_on(std::vector<std::uint32_t> host_of) {
  return for_hosts(odd_machine(), {11'003, 2'011, 0.25, 503, 307}, std::move(host_of));
}

TEST(Predict, APingToAnotherHost) {
  for (const bool far : {true, false}) {
    const Machine m = odd_machine_on({0, far ? 1U : 0U});
    const double cell = m.cross[0] - m.copy[0] / 2;
    const Prediction ping = predict(call_of(Collective::kBcast, 2, 2), algorithm(Collective::kBcast, "linear"), m);
    const double ends = 2 * (m.issue + (far ? m.network.message : m.network.near_message));
    const double way = far ? m.network.latency : m.network.near_latency;
    EXPECT_NEAR(ping.time.latency, ends + way, 1e-9);
    EXPECT_NEAR(ping.time.copy, 8 * (m.copy[0] + 2 * cell) + (far ? 8 * m.network.byte : 0), 1e-9);
    expect_parts_add_up(ping.time);
  }
}

TEST(Predict, TheRanksOfAHostShareItsWayOutAndItsWayIn) {
  constexpr std::uint64_t kElements = 20'000;  // less than a segment
  const Call call = call_of(Collective::kBcast, 4, kElements);
  std::vector<RankWork> work(4);
  for (const std::uint8_t sender : {0, 1}) {
    work[sender].program.moves.push_back(Build(call).take(build::src()).count(kElements).send(sender + 2U, 0));
    work[sender + 2U].program.moves.push_back(Build(call).arrive(sender, 0).keep(build::dst()).count(kElements));
  }
  const auto time = [&](std::vector<std::uint32_t> host_of) {
    return predict(work, false, odd_machine_on(std::move(host_of))).time.total;
  };
  const double alone = time({0, 1, 2, 3});
  const double more = 4 * kElements * odd_machine_on({0, 1}).network.byte;
  EXPECT_NEAR(time({0, 0, 1, 2}), alone + more, 1e-6) << "out of one host";
  EXPECT_NEAR(time({0, 1, 2, 2}), alone + more, 1e-6) << "into one host";
  EXPECT_NEAR(time({0, 0, 1, 1}), alone + more, 1e-6);
  EXPECT_LT(time({0, 1, 0, 1}), alone) << "each to a rank of its own host";
}

TEST(Predict, ADirectCallEntersFirst) {
  const Machine m = odd_machine();
  Call call = call_of(Collective::kBcast, 2, 1024);
  call.direct = true;
  // Half by each: the root writes 2048 bytes into the other's memory, the other reads 2048 from the root's; then a
  // signal each way.
  const double half = m.issue + 2048 * (m.copy[0] / 2 + m.cross[0] - m.copy[0] / 2);
  const Prediction bcast = predict(call, algorithm(Collective::kBcast, "direct"), m);
  EXPECT_NEAR(bcast.time.total, m.sync + m.line + half + m.issue + m.line + m.issue, 1e-9);
  EXPECT_DOUBLE_EQ(bcast.time.sync, m.sync + m.line);
  EXPECT_EQ(bcast.remote_bytes, 4096U);
  EXPECT_EQ(bcast.message_bytes, 0U);
  expect_parts_add_up(bcast.time);
}

TEST(Predict, APipelineOverlaps) {
  Machine m = odd_machine();
  m.near_bytes = m.shared_bytes = std::uint64_t{1} << 40U;
  const Call call = call_of(Collective::kBcast, 3, 16 * m.segment_bytes / 4);
  const double piece_cost = m.issue + m.segment + m.segment_bytes * m.cross[0];
  const double forward = 2 * (m.issue + m.segment) + m.segment_bytes * (m.cross[0] + (m.cross[0] - m.copy[0] / 2));
  const double time = total(call, "chain", m);
  // The middle of the chain does the most for a piece and never rests; before and behind it the pipeline fills and
  // drains.
  EXPECT_NEAR(time, piece_cost + m.line + 16 * forward + m.line + piece_cost, 1e-6);
}

TEST(Predict, BackPressureHoldsTheSender) {
  // A sender of eight segments, and a receiver that does something else first: no more than the lane holds goes ahead.
  Machine m = odd_machine();
  Call call = call_of(Collective::kBcast, 2, 0);
  const std::uint64_t elements = m.segment_bytes / 4;
  RankWork sender;
  RankWork receiver;
  call.rank = 0;
  sender.program.moves.push_back(Build(call).take(build::src()).count(8 * elements).send(1, 0));
  receiver.program.moves.push_back(Build(call).take(build::src()).keep(build::dst()).count(100 * elements));
  receiver.program.moves.push_back(Build(call).arrive(0, 0).keep(build::dst()).count(8 * elements).after(1));
  const std::vector<RankWork> both{sender, receiver};
  const double narrow = predict(both, false, m).time.total;
  m.lane_segments = 8;
  const double wide = predict(both, false, m).time.total;
  const double take = m.issue + m.segment + m.segment_bytes * m.cross[0];
  const double busy =
      predict(std::vector<RankWork>{RankWork{}, RankWork{{{receiver.program.moves[0]}, {}, 0, 0}, {}, 0}}, false, m)
          .time.total;
  EXPECT_NEAR(wide, busy + 8 * take, 1e-6) << "all was there when the receiver came";
  EXPECT_GE(narrow, wide);
}

TEST(Predict, SharedCoresTakeTurns) {
  Machine m = odd_machine();
  const Call call = call_of(Collective::kBarrier, 4, 0);
  const double apart = total(call, "dissemination", m);
  m.cores = 2;
  const double crowded = total(call, "dissemination", m);
  EXPECT_GT(crowded, apart + m.yield);
  m.cores = 1;
  EXPECT_GT(total(call, "dissemination", m), crowded);
  // A single rank shares its core with nobody.
  EXPECT_EQ(total(call_of(Collective::kBarrier, 1, 0), "dissemination", m), 0);
}

TEST(Predict, DataThatIsFurtherAwayCostsMore) {
  Machine m = odd_machine();
  const Call call = call_of(Collective::kAllreduce, 4, 100'000);
  const double near = total(call, "ring", m);
  m.near_bytes = 1;
  const double shared = total(call, "ring", m);
  m.shared_bytes = 1;
  const double memory = total(call, "ring", m);
  EXPECT_LT(near, shared);
  EXPECT_LT(shared, memory);
}

TEST(Predict, HalfPrecisionHasItsOwnPrice) {
  const Machine m = odd_machine();
  Call call = call_of(Collective::kReduce, 2, 1024);
  const double single = predict(call, algorithm(Collective::kReduce, "linear"), m).time.reduce;
  EXPECT_NEAR(single, 4096 * m.reduce, 1e-9);
  call.dtype = Datatype::kBf16;
  call.count = 2048;
  EXPECT_NEAR(predict(call, algorithm(Collective::kReduce, "linear"), m).time.reduce, 4096 * m.reduce_half, 1e-9);
}

TEST(Predict, RefusesWhatDoesNotEnd) {
  Call call = call_of(Collective::kBcast, 2, 1);
  RankWork waits;
  waits.program.moves.push_back(Build(call).arrive(1, 0).keep(build::dst()).count(1));
  EXPECT_THROW(predict(std::vector<RankWork>{waits, RankWork{}}, false, odd_machine()), Error);
}

class EveryAlgorithm : public testing::TestWithParam<int> {};

// A piece that comes a little later may find its rank busy with another one, so more bytes can end a little earlier
// where many moves compete for one core, or a rank gives its core on a turn too early. Two ranks
// with a core each have none of this.
TEST_P(EveryAlgorithm, TakesLongerForMore) {
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(GetParam())];
  for (const std::uint32_t ranks : {2U, 3U, 5U, 8U}) {
    for (const std::uint32_t cores : {0U, 2U}) {
      Machine machine = for_ranks(odd_machine(), ranks, cores != 0);
      machine.cores = cores;
      double before = 0;
      std::uint32_t priced = 0;
      for (std::uint64_t count = ranks; count <= (std::uint64_t{4} << 20U); count *= 2) {
        Call call = call_of(algorithm.collective, ranks, count);
        call.direct = algorithm.direct;
        if (algorithm.switched)
          call.tree = parse_tree(ranks == 2   ? "(0 1)"
                                 : ranks == 3 ? "(0 1 2)"
                                 : ranks == 5 ? "((0 1) (2 3) 4)"
                                              : "((0 1 2) (3 4) 5 (6 7))",
                                 true);
        if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
        const Prediction found = predict(call, algorithm, machine);
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(cores) + " cores, count " +
                     std::to_string(count));
        expect_parts_add_up(found.time);
        double slack = 1e-12 * before;
        if (ranks != 2) slack = 0.12 * before;
        if (ranks > cores && cores != 0) slack += 0.15 * before + 2 * machine.yield;  // which rank has its turn changes
        EXPECT_GE(found.time.total, before - slack);
        EXPECT_EQ(found.time, predict(call, algorithm, machine).time) << "the same question has the same answer";
        if (algorithm.collective != Collective::kBarrier) {
          EXPECT_GE(found.time.total, static_cast<double>(count) * 4 / ranks * machine.copy[0] / 2)
              << "less than reading a share";
        }
        EXPECT_GE(found.time.total, machine.line);
        before = std::max(before, found.time.total);
        ++priced;
        if (algorithm.collective == Collective::kBarrier) break;
      }
      EXPECT_TRUE(priced > 0 || ranks != 2);
    }
  }
}

std::vector<int> collectives_only() {
  std::vector<int> positions;
  for (std::size_t i = 0; i < algorithms().size(); ++i) {
    if (algorithms()[i].collective >= Collective::kBcast) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryAlgorithm, testing::ValuesIn(collectives_only()), [](const auto& instance) {
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(instance.param)];
  return std::string(name_of(algorithm.collective)) + "_" + algorithm.name;
});

}  // namespace
}  // namespace unisono::cost
