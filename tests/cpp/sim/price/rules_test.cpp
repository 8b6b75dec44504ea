// Rules by price: what a job in a simulated network chooses.
#include "sim/price/rules.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/facts.hpp"
#include "sim/model/calls.hpp"
#include "sim/price/price.hpp"
#include "sim/price/served.hpp"

namespace unisono::sim {
namespace {

constexpr const char* kStar = "aggregation = ais@switch0";

NetworkConfig network_of(const std::string& text, std::uint32_t ranks) {
  NetworkConfig network = parse_network(text);
  network.nodes = nodes_with_units(network, ranks);
  network.policy = Policy::kPause;
  return network;
}

/// A job, and the rules that it has.
struct Job {
  Job(const std::string& text, std::uint32_t of_ranks, bool hardware = false)
      : switches(hardware ? costs_of_rtl_switch() : costs_of_switch()),
        parameters(measure(engine, switches)),
        network(network_of(text, of_ranks)),
        ways(network),
        ranks(of_ranks),
        rules(rules_by_price({ways, parameters, engine, of_ranks, hardware})) {}

  /// What a communicator of the first ranks takes, served by switches or not.
  std::string choice(Collective collective, std::uint32_t size, std::uint64_t bytes, bool carried) const {
    Call call = plain_call(collective, size, bytes, Datatype::kFp32);
    if (carried) call.tree = served(ways.topology(), size, false).tree;
    const Choice made = choose(call, {rules});
    return made.rule == nullptr ? "no rule" : algorithms()[static_cast<std::size_t>(made.position)].name;
  }

  EndpointCosts engine, switches;
  Parameters parameters;
  NetworkConfig network;
  Ways ways;
  std::uint32_t ranks;
  std::vector<Rule> rules;
};

std::vector<Collective> priced() {
  std::vector<Collective> found;
  for (const Collective collective : kAllCollective) {
    const CollectiveFacts facts = facts_of(collective);
    if (facts.kind == CallKind::kCollective && !facts.vectors) found.push_back(collective);
  }
  return found;
}

TEST(RulesByPrice, DecideOfEveryCall) {
  const Job job(kStar, 7);
  for (const Collective collective : priced()) {
    for (std::uint32_t size = 2; size <= job.ranks; ++size) {
      for (const std::uint64_t bytes : {0U, 4U, 1000U, 100'000U, 40'000'000U}) {
        for (const bool carried : {false, true}) {
          const std::string chosen = job.choice(collective, size, bytes, carried);
          EXPECT_NE(chosen, "no rule") << name_of(collective) << ", " << size << " ranks, " << bytes << " bytes";
          if (!carried) EXPECT_NE(chosen, "switch");
        }
      }
    }
  }
}

TEST(RulesByPrice, NameWhatIsCheapest) {
  const Job job(kStar, 8);
  for (const Collective collective : priced()) {
    for (const std::uint64_t bytes : {64U, 4096U, 8192U, 65536U}) {
      const Price all = price(job.network, plain_call(collective, job.ranks, bytes, Datatype::kFp32), {},
                              job.parameters, job.engine, job.switches, {job.rules}, std::chrono::steady_clock::now());
      ASSERT_TRUE(all.rule.has_value());
      const auto chosen = std::find_if(all.candidates.begin(), all.candidates.end(),
                                       [&](const Candidate& one) { return one.algorithm == all.choice; });
      ASSERT_NE(chosen, all.candidates.end());
      EXPECT_LE(chosen->closed, 1.011 * all.candidates.front().closed) << name_of(collective) << " " << bytes;
    }
  }
}

TEST(RulesByPrice, TellFromWhichLengthOnSwitchesPay) {
  const Job job(kStar, 8);
  // A block goes to each rank by a message of its own: a gather gains nothing by switches, an all-reduce does.
  EXPECT_EQ(job.choice(Collective::kAllreduce, 8, 64, true), "switch");
  EXPECT_EQ(job.choice(Collective::kAllreduce, 8, 1 << 20, true), "switch");
  EXPECT_NE(job.choice(Collective::kAllreduce, 8, 64, false), "switch");
  EXPECT_NE(job.choice(Collective::kAlltoall, 8, 64, true), "switch");
  const std::string among = job.choice(Collective::kAllgather, 8, 1 << 20, true);
  EXPECT_NE(among, "switch");
  EXPECT_EQ(job.choice(Collective::kAllgather, 8, 1 << 20, false), among);
}

TEST(RulesByPrice, AreEqualForEqualJobs) {
  const Job one(kStar, 6), other(kStar, 6), slower("gbps = 10\naggregation = ais@switch0", 6);
  EXPECT_EQ(one.rules, other.rules);
  EXPECT_NE(one.rules, slower.rules);
  // Those of a collective are those that it has among all.
  std::vector<Rule> allgather;
  for (const Rule& rule : one.rules) {
    if (algorithms()[rule.position].collective == Collective::kAllgather && rule.min_ranks == 6) {
      allgather.push_back(rule);
    }
  }
  EXPECT_EQ(rules_by_price({one.ways, one.parameters, one.engine, 6}, Collective::kAllgather), allgather);
}

TEST(RulesByPrice, SayNothingOfGroups) {
  const Job job(kStar, 8);
  Call call = plain_call(Collective::kAllreduce, 8, 64, Datatype::kFp32);
  call.group_size = 4;
  EXPECT_STREQ(algorithms()[static_cast<std::size_t>(choose(call, {job.rules}).position)].name, "two_level");
}

TEST(RulesByPrice, KnowWhichSwitchesServe) {
  const auto reason = [](const std::string& text, std::uint32_t ranks, bool hardware) {
    return served(make_topology(network_of(text, ranks)), ranks, hardware).reason;
  };
  using testing::HasSubstr;
  EXPECT_EQ(reason(kStar, 8, true), "");
  EXPECT_EQ(reason(kStar, 9, false), "");
  EXPECT_THAT(reason(kStar, 9, true), HasSubstr("switch0 has 9 neighbours; switches in hardware have 8 ports"));
  EXPECT_THAT(reason("topology = leaf_spine\nleaves = 12\nspines = 1\naggregation = ais@leaf*", 60, false),
              HasSubstr("an engine's table has 64 places"));
  EXPECT_THAT(reason("", 4, false), HasSubstr("no units"));
  const Job job(kStar, 9, true);
  for (const Rule& rule : job.rules) {
    if (algorithms()[rule.position].switched) EXPECT_LE(rule.max_ranks, 8U);
  }
}

}  // namespace
}  // namespace unisono::sim
