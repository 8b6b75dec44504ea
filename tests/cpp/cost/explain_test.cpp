// Explanations and tables made from a machine.
#include "cost/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "core/group_table.hpp"
#include "cost/pins.hpp"
#include "cost/tune.hpp"
#include "cost/tuning_file.hpp"

namespace unisono::cost {
namespace {

Call call_of(Collective collective, std::uint32_t size, std::uint64_t bytes) {
  Call call;
  call.collective = collective;
  call.size = size;
  call.dtype = Datatype::kFp32;
  call.count = bytes / 4;
  if (collective == Collective::kAllreduce || collective == Collective::kReduce) call.func = Func::kSum;
  return call;
}

const Algorithm& at(int position) { return algorithms()[static_cast<std::size_t>(position)]; }

TEST(Explain, SortsAllCandidatesAndNamesTheRunnerUp) {
  for (const bool reachable : {false, true}) {
    for (const std::uint64_t bytes : {64ULL, 65'536ULL, 4'194'304ULL}) {
      const Explanation found = explain(call_of(Collective::kAllreduce, 4, bytes), reachable, {}, Machine{});
      ASSERT_GE(found.choice.position, 0);
      EXPECT_EQ(at(found.choice.position).direct, reachable && bytes > 4096);
      std::size_t of_collective = 0;
      for (const Algorithm& algorithm : algorithms()) of_collective += algorithm.collective == Collective::kAllreduce;
      EXPECT_EQ(found.candidates.size(), of_collective);
      for (std::size_t i = 1; i < found.candidates.size() && found.candidates[i].admitted; ++i) {
        EXPECT_LE(found.candidates[i - 1].prediction.time.total, found.candidates[i].prediction.time.total);
      }
      for (const Candidate& candidate : found.candidates) {
        const Algorithm& algorithm = at(candidate.position);
        EXPECT_EQ(candidate.admitted, !algorithm.switched && (!algorithm.direct || reachable)) << algorithm.name;
      }
      const int quickest = found.candidates.front().position;
      EXPECT_EQ(found.runner_up, quickest == found.choice.position ? found.candidates[1].position : quickest);
      EXPECT_EQ(found.asked_in_vain != 0, !reachable && bytes > 4096);
    }
  }
}

TEST(Explain, BetweenHostsChoosesAsACommunicatorThereAndPricesNothing) {
  Call call = call_of(Collective::kAllreduce, 5, 65'536);
  const std::vector<std::uint64_t> hosts{7, 7, 9, 9, 9};  // no ranges of one size
  call.groups = find_groups(hosts).list;
  ASSERT_NE(call.groups, nullptr);
  Tuning tuning;
  tuning.hosts = true;
  for (const bool reachable : {false, true}) {
    const Explanation found = explain(call, reachable, tuning, Machine{});
    EXPECT_STREQ(at(found.choice.position).name, "two_level");
    EXPECT_FALSE(found.priced);
    EXPECT_EQ(found.runner_up, -1);
    EXPECT_FALSE(found.crossover.has_value());
    EXPECT_EQ(found.crossover_stride, 0U);
    EXPECT_EQ(found.asked_in_vain, 0);
    for (const Candidate& candidate : found.candidates) {
      EXPECT_EQ(candidate.prediction.time, Time{}) << at(candidate.position).name;
      EXPECT_FALSE(candidate.admitted && at(candidate.position).direct) << at(candidate.position).name;
      if (candidate.position != found.choice.position) continue;
      // The leaders exchange what their hosts have summed.
      EXPECT_EQ(candidate.prediction.between_messages, 2U);
      EXPECT_EQ(candidate.prediction.between_bytes, 2U * 65'536);
      EXPECT_GT(candidate.prediction.messages, 2U);
    }
  }
  // One rank on each host: there are no groups, and all goes between hosts.
  call.groups = nullptr;
  const Explanation apart = explain(call, true, tuning, Machine{});
  EXPECT_STRNE(at(apart.choice.position).name, "two_level");
  for (const Candidate& candidate : apart.candidates) {
    if (candidate.position != apart.choice.position) continue;
    EXPECT_GT(candidate.prediction.messages, 0U);
    EXPECT_EQ(candidate.prediction.between_messages, candidate.prediction.messages);
  }
}

TEST(Explain, TheCrossoverIsWhereTheOrderChanges) {
  // Broadcast: by blocks and by a tree, which pass one another once.
  const std::vector<Rule> pins = parse_pins("bcast=scatter_allgather");
  for (const std::uint32_t ranks : {8U, 256U}) {
    int found_some = 0;
    for (const std::uint64_t bytes : {64ULL, 4096ULL, 1'048'576ULL}) {
      const Call call = call_of(Collective::kBcast, ranks, bytes);
      const Explanation found = explain(call, false, {pins, false}, Machine{});
      EXPECT_STREQ(at(found.choice.position).name, "scatter_allgather");
      EXPECT_EQ(found.choice.rule, pins.data());
      EXPECT_EQ(found.crossover_stride, ranks == 8 ? 2U : 16U);
      if (!found.crossover) continue;
      ++found_some;
      const auto blocks_win = [&](std::uint64_t at_bytes) {
        const Call there = call_of(Collective::kBcast, ranks, at_bytes);
        return predict(there, at(found.choice.position), Machine{}).time.total <
               predict(there, at(found.runner_up), Machine{}).time.total;
      };
      EXPECT_NE(blocks_win(bytes), blocks_win(*found.crossover)) << ranks << " " << bytes << " " << *found.crossover;
    }
    EXPECT_GT(found_some, 0) << ranks;
  }
}

TEST(Explain, ARadixIsPricedBesideTheUsualOne) {
  const Call call = call_of(Collective::kBcast, 27, 64);
  const std::vector<Rule> pins = parse_pins("bcast=knomial:9");
  const NamedAlgorithm named = algorithm_named(Collective::kBcast, "knomial:9");
  const Explanation by_pin = explain(call, false, {pins, false}, Machine{});
  const Explanation by_name = explain(call, false, {}, Machine{}, &named);
  EXPECT_EQ(by_pin.choice.rule, pins.data());
  EXPECT_EQ(by_name.choice.rule, nullptr);
  for (const Explanation& found : {by_pin, by_name}) {
    EXPECT_EQ(found.choice.position, named.position);
    EXPECT_EQ(found.choice.radix, 9);
    std::vector<std::uint8_t> radices;
    std::vector<double> times;
    for (const Candidate& candidate : found.candidates) {
      if (candidate.position != named.position) continue;
      radices.push_back(candidate.radix);
      times.push_back(candidate.prediction.time.total);
    }
    EXPECT_THAT(radices, testing::UnorderedElementsAre(0, 9));
    EXPECT_NE(times[0], times[1]);
    Call of_choice = call;
    of_choice.radix = 9;
    const double own = predict(of_choice, at(named.position), Machine{}).time.total;
    EXPECT_EQ(times[radices[0] == 9 ? 0 : 1], own);
  }
  const NamedAlgorithm direct = algorithm_named(Collective::kBcast, "direct");
  EXPECT_THROW(explain(call, false, {}, Machine{}, &direct), Error);
}

TEST(Explain, WhatNothingAdmitsHasNoChoice) {
  const Explanation found = explain(call_of(Collective::kProgram, 2, 4), false, {}, Machine{});
  EXPECT_EQ(found.choice.position, -1);
  EXPECT_TRUE(found.candidates.empty());
}

TEST(Tune, TheRulesChooseWhatIsPredictedToBeBest) {
  Machine machine;
  machine.cores = 4;
  machine.line = 400;  // far apart: fewer rounds pay for longer
  const std::vector<Rule> rules = tune(machine, 8);
  EXPECT_LT(rules.size(), 400U);
  int better = 0;
  for (const Collective collective : {Collective::kBcast, Collective::kAllreduce, Collective::kAlltoall}) {
    for (const std::uint32_t ranks : {2U, 4U, 8U}) {
      const bool crowded = ranks > machine.cores;
      const Machine own = for_ranks(machine, ranks, crowded);
      for (std::uint64_t bytes = 16; bytes <= (1U << 20U); bytes *= 4) {
        const Call call = call_of(collective, ranks, bytes);
        const auto price = [&](int position) { return predict(call, at(position), own).time.total; };
        const double tuned = price(choose_algorithm(call, {rules, crowded}));
        const double usual = price(choose_algorithm(call));
        EXPECT_LE(tuned, usual * 1.0001) << name_of(collective) << " " << ranks << " ranks " << bytes << " bytes";
        better += tuned < usual * 0.9;
        for (const Algorithm& algorithm : algorithms()) {
          if (algorithm.collective != collective || algorithm.direct) continue;
          if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
          EXPECT_LE(tuned * 0.8, predict(call, algorithm, own).time.total) << algorithm.name;
        }
      }
    }
  }
  EXPECT_GT(better, 0) << "on this machine, the built-in table must not be the best";
  TuningFile file;
  file.machine = machine;
  file.rules = rules;
  EXPECT_EQ(parse_tuning(write_tuning(file)), file);
}

std::vector<std::uint32_t> hosts_of(std::uint32_t ranks, std::uint32_t of_each) {
  std::vector<std::uint32_t> host_of;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) host_of.push_back(rank / of_each);
  return host_of;
}

TEST(Tune, TheRulesOfANetworkChooseWhatIsPredictedToBeBestOnIt) {
  const Machine machine;
  int better = 0;
  // Far away and broad; near and narrow.
  for (const Network& network : {Network{1e6, 1'000, 0.01, 300, 300}, Network{5'000, 500, 5, 300, 300}}) {
    const std::vector<Rule> rules = tune_hosts(machine, network, 8);
    EXPECT_LT(rules.size(), 400U);
    for (const Rule& rule : rules) {
      EXPECT_EQ(rule.hosts, Which::kWith);
      EXPECT_EQ(rule.crowded, Which::kWithout);
      EXPECT_FALSE(at(rule.position).direct);
      EXPECT_LE(rule.max_ranks, 8U);
      EXPECT_LE(rule.min_bytes, rule.max_bytes);
    }
    for (const Collective collective : {Collective::kBcast, Collective::kAllreduce, Collective::kReduceScatter}) {
      for (const std::uint32_t of_each : {1U, 2U, 4U}) {
        const Machine own = for_hosts(machine, network, hosts_of(8, of_each));
        for (std::uint64_t bytes = 16; bytes <= (1U << 20U); bytes *= 4) {
          Call call = call_of(collective, 8, bytes);
          call.group_size = of_each > 1 ? of_each : 0;
          const auto price = [&](int position) { return predict(call, at(position), own).time.total; };
          const double tuned = price(choose_algorithm(call, {rules, false, true, true}));
          const double usual = price(choose_algorithm(call, {{}, false, true, true}));
          EXPECT_LE(tuned, usual * 1.0001) << name_of(collective) << " " << of_each << " of each " << bytes;
          better += tuned < usual * 0.9;
        }
      }
    }
    TuningFile file;
    file.network = MeasuredNetwork{"udp", network};
    file.rules = rules;
    EXPECT_EQ(parse_tuning(write_tuning(file)), file);
  }
  EXPECT_GT(better, 0) << "on these networks, the built-in table must not be the best";
}

TEST(Tune, TwoLevelsPayWhereTheNetworkIsNarrow) {
  Call call = call_of(Collective::kAllreduce, 8, 1 << 20U);
  call.group_size = 4;
  const Machine narrow = for_hosts({}, {5'000, 500, 5, 300, 300}, hosts_of(8, 4));
  const auto price = [&](const char* name, const Machine& machine) {
    return predict(call, at(find_algorithm(call.collective, name)), machine).time.total;
  };
  EXPECT_LT(price("two_level", narrow), 0.8 * price("recursive_doubling", narrow));
  // Where the network is as good as memory, a ring is better than to add up at one rank.
  const Machine broad = for_hosts({}, {300, 300, 0.001, 300, 300}, hosts_of(8, 4));
  EXPECT_LT(price("ring", broad), price("two_level", broad));
}

TEST(Tune, RulesAreForTheirOwnCallsOnly) {
  Machine machine;
  machine.cores = 2;
  for (const Rule& rule : tune(machine, 4)) {
    EXPECT_NE(rule.direct, Which::kAll);
    EXPECT_EQ(rule.groups, Which::kWithout) << "groups have their own algorithm";
    EXPECT_EQ(rule.crowded, rule.min_ranks > 2 ? Which::kWith : Which::kWithout);
    EXPECT_TRUE(rule.direct == Which::kWith || !at(rule.position).direct);
    EXPECT_LE(rule.max_ranks, 4U);
  }
}

}  // namespace
}  // namespace unisono::cost
