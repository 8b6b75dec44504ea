// Closed forms beside the simulation of calls that nothing was fitted to.
#include "sim/price/price.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/facts.hpp"
#include "sim/model/calls.hpp"
#include "sim/price/loggp.hpp"
#include "sim/price/rules.hpp"
#include "sim/price/served.hpp"

namespace unisono::sim {
namespace {

NetworkConfig network_of(const std::string& text, std::uint32_t ranks) {
  NetworkConfig network = parse_network(text);
  network.nodes = nodes_with_units(network, ranks);
  network.policy = Policy::kPause;
  return network;
}

Price price_of(const std::string& text, Collective collective, std::uint32_t ranks, std::uint64_t bytes,
               const std::vector<std::string>& names = {}, const JobRules& job = {}) {
  static const EndpointCosts engine, switches = costs_of_switch();
  static const Parameters parameters = measure(engine, switches);
  return price(network_of(text, ranks), plain_call(collective, ranks, bytes, Datatype::kFp32), names, parameters,
               engine, switches, job);
}

std::vector<std::string> names_of(Collective collective) {
  std::vector<std::string> names;
  for (const Algorithm& one : algorithms()) {
    if (one.collective == collective) names.emplace_back(one.name);
  }
  return names;
}

/// Those of a job, for communicators of all ranks.
std::vector<Rule> rules_of(const std::string& text, std::uint32_t ranks, Collective collective) {
  static const EndpointCosts engine;
  static const Parameters parameters = measure(engine, costs_of_switch());
  const Ways ways(network_of(text, ranks));
  return rules_by_price({ways, parameters, engine, ranks}, collective);
}

std::string choice_without_rules(const std::string& text, Collective collective, std::uint32_t ranks,
                                 std::uint64_t bytes) {
  Call call = plain_call(collective, ranks, bytes, Datatype::kFp32);
  const Served switches = served(make_topology(network_of(text, ranks)), ranks, false);
  if (switches.reason.empty()) call.tree = switches.tree;
  return algorithms()[static_cast<std::size_t>(choose_algorithm(call))].name;
}

/// Below which such a part of them lies.
double quantile(std::vector<double> of, double part) {
  std::sort(of.begin(), of.end());
  return of[static_cast<std::size_t>(part * static_cast<double>(of.size() - 1))];
}

const Candidate& candidate(const Price& price, const std::string& name) {
  return *std::find_if(price.candidates.begin(), price.candidates.end(),
                       [&](const Candidate& one) { return one.algorithm == name; });
}

// docs/network-prices.md has these figures.
TEST(Price, ClosedFormsAreCloseToWhatIsSimulated) {
  std::vector<double> loggp, logcn;
  std::size_t calls = 0, good = 0, by_price = 0, by_default = 0;
  const std::string fabric =
      "topology = leaf_spine\nleaves = 6\nspines = 3\ngbps = 200\ngbps@node* = 100\nswitch_latency = 60\n"
      "aggregation = ais@leaf*|ais@spine1";
  for (const std::string& text :
       {std::string("aggregation = ais@switch0"), fabric, std::string("topology = torus\naggregation = ais@*")}) {
    for (const Collective collective :
         {Collective::kBarrier, Collective::kBcast, Collective::kReduce, Collective::kAllreduce,
          Collective::kReduceScatter, Collective::kAllgather, Collective::kGather, Collective::kScatter,
          Collective::kAlltoall, Collective::kScan}) {
      const CollectiveFacts facts = facts_of(collective);
      for (const std::uint32_t ranks : {6U, 12U, 18U, 24U, 48U}) {
        const std::vector<Rule> rules = rules_of(text, ranks, collective);
        for (const std::uint64_t bytes : {256U, 2048U, 12288U, 40000U, 131072U}) {
          if (!facts.data && bytes != 256) continue;
          if (bytes * ranks > (facts.blocks ? 262144U : 1048576U)) continue;
          const Price price = price_of(text, collective, ranks, bytes, names_of(collective), {rules});
          const Candidate* pick = nullptr;
          for (const Candidate& one : price.candidates) {
            if (!one.refusal.empty()) continue;
            ASSERT_TRUE(one.cycles.has_value()) << one.missing;
            const auto cycles = static_cast<double>(*one.cycles);
            (one.switched ? logcn : loggp).push_back(std::abs(one.closed / cycles - 1));
            if (pick == nullptr || one.closed < pick->closed) pick = &one;
            EXPECT_GE(cycles, price.bound) << name_of(collective) << " " << one.algorithm << ", " << ranks << " ranks, "
                                           << bytes << " bytes, " << text;
          }
          ASSERT_NE(pick, nullptr);
          ++calls;
          const auto within = [](const Candidate& one, const Candidate& best) -> std::size_t {
            return static_cast<double>(*one.cycles) <= 1.05 * static_cast<double>(*best.cycles) ? 1 : 0;
          };
          good += within(*pick, price.candidates.front());
          // No job has switches whose tree engines do not know.
          const Candidate& best =
              *std::find_if(price.candidates.begin(), price.candidates.end(),
                            [&](const Candidate& one) { return !one.switched || price.unserved.empty(); });
          by_price += within(candidate(price, price.choice), best);
          by_default += within(candidate(price, choice_without_rules(text, collective, ranks, bytes)), best);
        }
      }
    }
  }
  const auto tell = [](const char* form, const std::vector<double>& errors) {
    std::printf("%s: error %.1f %% in the median, up to %.1f %% of nine in ten, of %zu programs\n", form,
                100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9), errors.size());
    EXPECT_LE(quantile(errors, 0.5), 0.10) << form;
    EXPECT_LE(quantile(errors, 0.9), 0.20) << form;
  };
  tell("LogGP", loggp);
  tell("LoGcN", logcn);
  std::printf("Within 5 %% of the quickest, of %zu calls: %zu by them, %zu by what a job takes, %zu without prices\n",
              calls, good, by_price, by_default);
  EXPECT_GE(good * 100, calls * 95);
  EXPECT_GE(by_price * 100, calls * 95);
}

TEST(Price, ParametersFollowFromCosts) {
  const EndpointCosts engine, switches = costs_of_switch();
  const Parameters usual = measure(engine, switches);
  EXPECT_EQ(usual, measure(engine, switches));
  // A call without a move: the first move's look, and the answer.
  EXPECT_EQ(usual.call, engine.first_move + engine.answer);
  EndpointCosts slower = switches;
  slower.fold += 10;
  EXPECT_EQ(measure(engine, slower).alpha.first, usual.alpha.first + 10);
  EXPECT_EQ(measure(engine, slower).send, usual.send);
  EndpointCosts sender = engine;
  sender.read += 7;
  EXPECT_EQ(measure(sender, switches).send.first, usual.send.first + 7);
  EXPECT_EQ(measure(sender, switches).alpha, usual.alpha);
}

TEST(Price, SaysWhatAJobTakesAndWhy) {
  const Price by_switch = price_of("aggregation = ais@switch0", Collective::kAllreduce, 8, 4096);
  EXPECT_EQ(by_switch.choice, "switch");
  EXPECT_EQ(by_switch.candidates.front().algorithm, "switch");
  EXPECT_EQ(by_switch.tree, "(0 1 2 3 4 5 6 7)");
  const LogcnTerms& terms = by_switch.candidates.front().terms;
  EXPECT_EQ(terms.switches, 1U);
  EXPECT_DOUBLE_EQ(terms.total(), by_switch.candidates.front().closed);
  EXPECT_GT(by_switch.candidates.front().busy_share, 0.05);
  EXPECT_LE(by_switch.candidates.front().busy_share, 1);

  const Price without = price_of("", Collective::kAllreduce, 8, 4096);
  EXPECT_EQ(without.tree, "");
  EXPECT_THAT(without.reason, testing::HasSubstr("by the built-in rules"));
  for (const Candidate& one : without.candidates) EXPECT_FALSE(one.switched);
  // What switches do not carry runs among the ranks.
  EXPECT_THAT(price_of("aggregation = ais@switch0", Collective::kAlltoall, 4, 64).reason,
              testing::HasSubstr("switches do not carry it"));
  // A ring of 26 routers has a way of 13 units.
  const Price far = price_of("topology = ring\naggregation = ais@*", Collective::kAllreduce, 26, 64);
  EXPECT_THAT(far.reason, testing::HasSubstr("12 are the most"));
  EXPECT_THAT(candidate(far, "switch").refusal, testing::HasSubstr("12 are the most"));
}

TEST(Price, SaysWhatItHasNotSimulated) {
  const EndpointCosts engine, switches = costs_of_switch();
  const Call call = plain_call(Collective::kAllreduce, 32, 1 << 20, Datatype::kFp32);
  const Price late = price(network_of("", 32), call, {"ring"}, measure(engine, switches), engine, switches, {},
                           std::chrono::steady_clock::now());
  ASSERT_EQ(late.candidates.size(), 1U);
  EXPECT_FALSE(late.candidates[0].cycles.has_value());
  EXPECT_GT(late.candidates[0].closed, 0);
  EXPECT_THAT(late.candidates[0].missing, testing::HasSubstr("the time was up"));
}

TEST(Price, LeavesOutWhatIsFarOff) {
  const Price all = price_of("aggregation = ais@*", Collective::kAllreduce, 32, 64);
  const Candidate& ring = candidate(all, "ring");
  EXPECT_FALSE(ring.cycles.has_value());
  EXPECT_THAT(ring.missing, testing::HasSubstr("times as long as the quickest"));
  EXPECT_GT(ring.closed, kFarOff * all.candidates.front().closed);
  EXPECT_TRUE(candidate(price_of("", Collective::kAllreduce, 32, 64, {"ring"}), "ring").cycles.has_value());
}

TEST(Price, RefusesWhatIsNone) {
  const auto refusal = [](auto&& run) -> std::string {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "runs";
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([] { price_of("", Collective::kAllreduce, 4, 64, {"best"}); }),
              HasSubstr("allreduce has no algorithm best"));
  EXPECT_THAT(refusal([] { price_of("", Collective::kAllreduce, 129, 64); }), HasSubstr("128 are the most"));
  EXPECT_THAT(refusal([] { price_of("", Collective::kAllreduce, 4, 6); }), HasSubstr("6 bytes are no whole number"));
  EXPECT_THAT(candidate(price_of("", Collective::kAllreduce, 4, 64, {"switch"}), "switch").refusal,
              HasSubstr("no units"));
}

}  // namespace
}  // namespace unisono::sim
