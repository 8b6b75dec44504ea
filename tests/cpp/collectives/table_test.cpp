// The table of algorithms, and the choice among them.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "collectives/tuning.hpp"
#include "core/group_table.hpp"
#include "core/tree_table.hpp"

namespace unisono::testing_programs {
namespace {

TEST(Table, IsGroupedInOrderOfCollectives) {
  for (std::size_t i = 1; i < algorithms().size(); ++i) {
    EXPECT_LE(algorithms()[i - 1].collective, algorithms()[i].collective) << position_name(static_cast<int>(i));
  }
}

TEST(Table, NamesEachAlgorithmOnce) {
  std::set<std::pair<Collective, std::string>> names;
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_TRUE(names.emplace(algorithm.collective, algorithm.name).second)
        << name_of(algorithm.collective) << " " << algorithm.name;
  }
}

TEST(Table, FitsTheCallDescriptor) {
  CallDescriptor descriptor;
  EXPECT_LE(algorithms().size(), std::size_t{decltype(descriptor.algorithm)(~0U)});
}

TEST(Table, DescribesEveryAlgorithm) {
  for (const Algorithm& algorithm : algorithms()) {
    SCOPED_TRACE(std::string(name_of(algorithm.collective)) + " " + algorithm.name);
    EXPECT_FALSE(std::string(algorithm.name).empty());
    EXPECT_FALSE(std::string(algorithm.source).empty());
    EXPECT_FALSE(std::string(algorithm.cost).empty());
    EXPECT_EQ(std::string(algorithm.summary).back(), '.');
    EXPECT_NE(algorithm.steps, nullptr);
    EXPECT_NE(algorithm.step, nullptr);
    EXPECT_EQ(algorithm.admits == nullptr, std::string(algorithm.restriction).empty());
    EXPECT_EQ(algorithm.params_words == nullptr, algorithm.fill_params == nullptr);
  }
}

TEST(Table, HasAnAlgorithmForEveryCollective) {
  for (const Collective collective : kAllCollective) {
    bool found = false;
    for (const Algorithm& algorithm : algorithms()) found |= algorithm.collective == collective;
    EXPECT_EQ(found, collective != Collective::kProgram) << name_of(collective);
  }
}

TEST(Table, FindsByName) {
  for (const int position : all_positions()) {
    const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(position)];
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name), position) << position_name(position);
  }
  EXPECT_EQ(find_algorithm(Collective::kAllreduce, "rin"), -1);
  EXPECT_EQ(find_algorithm(Collective::kAllreduce, "rings"), -1);
  EXPECT_EQ(find_algorithm(Collective::kAllreduce, ""), -1);
  EXPECT_EQ(find_algorithm(Collective::kBarrier, "ring"), -1);
  EXPECT_EQ(find_algorithm(Collective::kProgram, "direct"), -1);
}

TEST(Choice, AdmitsEveryCallAndLooksAtAgreedFieldsOnly) {
  for (const Collective collective : kAllCollective) {
    if (collective == Collective::kProgram) continue;
    for (const std::uint32_t size : {1U, 2U, 3U, 4U, 7U, 8U, 16U, 33U, 64U, 1000U}) {
      for (const std::uint64_t count : {0ULL, 1ULL, 100ULL, 5'000ULL, 60'000ULL, 1'000'000ULL, (1ULL << 40) - 1}) {
        for (const std::uint32_t group : {0U, 1U, 4U, 64U}) {
          for (const Datatype dtype : {Datatype::kFp16, Datatype::kFp64}) {
            Call call = make_call(collective, size, 0);
            call.count = collective == Collective::kBarrier ? 0 : count;
            call.dtype = collective == Collective::kBarrier ? Datatype::kNone : dtype;
            call.group_size = group;
            SCOPED_TRACE(std::string(name_of(collective)) + ", " + std::to_string(size) + " ranks, count " +
                         std::to_string(count) + ", group " + std::to_string(group));
            const int chosen = choose_algorithm(call);
            ASSERT_GE(chosen, 0);
            const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(chosen)];
            ASSERT_EQ(algorithm.collective, collective);
            ASSERT_TRUE(algorithm.admits == nullptr || algorithm.admits(call));
            for (const std::uint32_t rank : {size / 2, size - 1}) {
              call.rank = rank;
              ASSERT_EQ(choose_algorithm(call), chosen) << "on rank " << rank;
            }
          }
        }
      }
    }
  }
}

TEST(Choice, AdmitsEveryInPlaceCall) {
  for (const Collective collective :
       {Collective::kReduce, Collective::kAllreduce, Collective::kScan, Collective::kExscan, Collective::kReduceScatter,
        Collective::kAllgather, Collective::kGather, Collective::kScatter, Collective::kGatherv, Collective::kScatterv,
        Collective::kAllgatherv, Collective::kAlltoall, Collective::kAlltoallv, Collective::kReduceScatterv}) {
    for (const std::uint32_t size : {1U, 2U, 5U, 64U}) {
      Call call = make_call(collective, size, 10);
      call.in_place = true;
      EXPECT_GE(choose_algorithm(call), 0) << name_of(collective) << ", " << size << " ranks";
    }
  }
}

TEST(Choice, ServesDirectCallsDirectlyAndNoOthers) {
  // Up to 4 KiB, and for more than 16 ranks, messages are quicker although memory could be reached.
  constexpr std::uint64_t kLeast = 2048 / 4;
  for (const Collective collective :
       {Collective::kBcast, Collective::kReduce, Collective::kAllreduce, Collective::kReduceScatter,
        Collective::kAllgather, Collective::kGather, Collective::kScatter, Collective::kAlltoall}) {
    for (const std::uint32_t size : {1U, 2U, 5U, 16U, 17U}) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{300}, kLeast, kLeast + 1, 50 * kLeast}) {
        for (const bool in_place : {false, true}) {
          for (const bool direct : {false, true}) {
            Call call = make_call(collective, size, count);
            call.in_place = in_place;
            call.direct = direct;
            const Algorithm& chosen = algorithms()[static_cast<std::size_t>(choose_algorithm(call))];
            EXPECT_EQ(chosen.direct, direct && size <= 16 && count > kLeast)
                << name_of(collective) << ", " << size << " ranks, count " << count << ": " << chosen.name;
          }
        }
      }
    }
  }
  // What has no direct algorithm is served by the others.
  Call call = make_call(Collective::kScan, 4, 300);
  call.direct = true;
  EXPECT_FALSE(algorithms()[static_cast<std::size_t>(choose_algorithm(call))].direct);
}

TEST(Table, SaysWhatIsDirect) {
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(algorithm.direct, std::string(algorithm.restriction).find("direct access") != std::string::npos)
        << name_of(algorithm.collective) << " " << algorithm.name;
    if (!algorithm.direct) continue;
    Call call = make_call(algorithm.collective, 2, 3);
    EXPECT_FALSE(algorithm.admits(call)) << "a call without direct access";
    call.direct = true;
    EXPECT_TRUE(algorithm.admits(call));
  }
}

std::string chosen_name(const Call& call) {
  return algorithms()[static_cast<std::size_t>(choose_algorithm(call))].name;
}

TEST(Choice, FollowsLatencyForSmallAndBandwidthForLarge) {
  EXPECT_EQ(chosen_name(make_call(Collective::kAllreduce, 8, 2)), "flat");
  EXPECT_EQ(chosen_name(make_call(Collective::kAllreduce, 8, 25'000)), "rabenseifner");
  EXPECT_EQ(chosen_name(make_call(Collective::kAllreduce, 8, 16'000'000)), "ring");
  EXPECT_EQ(chosen_name(make_call(Collective::kBcast, 8, 100)), "binomial");
  EXPECT_EQ(chosen_name(make_call(Collective::kBcast, 8, 16'000'000)), "chain");
  EXPECT_EQ(chosen_name(make_call(Collective::kBcast, 1000, 16'000'000)), "scatter_allgather");
  EXPECT_EQ(chosen_name(make_call(Collective::kReduce, 8, 16'000'000)), "chain");
  EXPECT_EQ(chosen_name(make_call(Collective::kScan, 8, 16)), "recursive_doubling");
}

TEST(Choice, IsAnotherForLongVectorsWhereRanksAreMoreThanCores) {
  const auto chosen = [](std::uint32_t ranks, std::uint64_t count, Tuning tuning) {
    const Call call = make_call(Collective::kAllreduce, ranks, count);
    return std::string(algorithms()[static_cast<std::size_t>(choose_algorithm(call, tuning))].name);
  };
  Tuning crowded;
  crowded.crowded = true;
  EXPECT_EQ(chosen(4, 16'000'000, crowded), "reduce_bcast");
  EXPECT_EQ(chosen(16, 16'000'000, crowded), "reduce_bcast");
  EXPECT_EQ(chosen(17, 16'000'000, crowded), "ring");
  EXPECT_EQ(chosen(4, 16'000'000, {}), "ring");
  EXPECT_EQ(chosen(4, 25'000, crowded), "rabenseifner");
  EXPECT_EQ(chosen(4, 200'000, crowded), "ring");
  crowded.hosts = true;
  EXPECT_EQ(chosen(5, 16'000'000, crowded), "ring") << "the ranks of a host may have a core each";
}

TEST(Choice, UsesGroupsWhereThereAreSome) {
  Call call = make_call(Collective::kAllreduce, 8, 16);
  call.group_size = 4;
  EXPECT_EQ(chosen_name(call), "two_level");
  for (const std::uint32_t no_levels : {0U, 1U, 8U, 9U}) {
    call.group_size = no_levels;
    EXPECT_EQ(chosen_name(call), "flat") << no_levels;
  }
}

TEST(Choice, UsesListsOfGroupsAndKeepsOrderWhereItMatters) {
  Call call = make_call(Collective::kAllreduce, 7, 16);
  call.groups = find_groups(std::vector<std::uint64_t>{0, 1, 0, 1, 0, 1, 0}).list;
  EXPECT_EQ(chosen_name(call), "two_level");
  call.func = Func::kOrdered0;
  EXPECT_EQ(chosen_name(call), "flat");
  call.groups = find_groups(std::vector<std::uint64_t>{0, 0, 0, 1, 1, 1, 1}).list;
  EXPECT_EQ(chosen_name(call), "two_level");
}

TEST(Choice, SparesTheNetworkBetweenHosts) {
  Tuning hosts;
  hosts.hosts = true;
  for (const Collective collective : {Collective::kBcast, Collective::kReduce, Collective::kAllreduce,
                                      Collective::kAllgather, Collective::kBarrier}) {
    Call call = make_call(collective, 8, collective == Collective::kBarrier ? 0 : 100'000);
    call.group_size = 4;
    EXPECT_STREQ(algorithms()[static_cast<std::size_t>(choose_algorithm(call, hosts))].name, "two_level")
        << name_of(collective);
    call.group_size = 0;  // each rank on a host of its own
    EXPECT_STRNE(algorithms()[static_cast<std::size_t>(choose_algorithm(call, hosts))].name, "two_level")
        << name_of(collective);
  }
}

TEST(Choice, DividesLongSumsAmongLeadersBetweenHosts) {
  Tuning hosts;
  hosts.hosts = true;
  const auto chosen = [&](const Call& call) {
    return std::string(algorithms()[static_cast<std::size_t>(choose_algorithm(call, hosts))].name);
  };
  Call call = make_call(Collective::kAllreduce, 8, 1'000'000);
  call.group_size = 4;
  EXPECT_EQ(chosen(call), "multi_leader");
  call.func = Func::kOrdered0;
  EXPECT_EQ(chosen(call), "two_level");
  call.group_size = 0;
  EXPECT_NE(chosen(call), "multi_leader");
}

Rule rule_of(Collective collective, const char* name, std::uint64_t max_bytes = kAnyBytes) {
  Rule rule;
  rule.position = static_cast<std::uint16_t>(find_algorithm(collective, name));
  rule.max_bytes = max_bytes;
  return rule;
}

TEST(Choice, LeavesToSwitchesWhatNoRuleTakesFromThem) {
  Call call = make_call(Collective::kReduce, 4, 16);
  call.tree = parse_tree("((0 1) (2 3))", false);
  const auto chosen = [&](const std::vector<Rule>& rules) {
    const Choice choice = choose(call, {rules});
    return std::string(algorithms()[static_cast<std::size_t>(choice.position)].name) +
           (choice.rule != nullptr ? " by a rule" : "");
  };
  EXPECT_EQ(chosen({}), "switch");
  // A rule of a machine's tuning file is of calls that no switches carry.
  std::vector<Rule> rules{rule_of(Collective::kReduce, "chain", 64)};
  EXPECT_EQ(chosen(rules), "switch");
  rules[0].switches = true;
  EXPECT_EQ(chosen(rules), "chain by a rule");
  call.count = 17;
  EXPECT_EQ(chosen(rules), "switch");
  // By the switches up to so many bytes, and among the ranks beyond.
  rules = {rule_of(Collective::kReduce, "switch", 64), rule_of(Collective::kReduce, "chain")};
  rules[1].switches = true;
  EXPECT_EQ(chosen(rules), "chain by a rule");
  call.count = 16;
  EXPECT_EQ(chosen(rules), "switch by a rule");
  // A communicator without switches passes over the rule that names them, and one whose tree has another order if the
  // operands may not change places.
  call.tree = nullptr;
  EXPECT_EQ(chosen(rules), "chain by a rule");
  call.tree = parse_tree("((0 2) (1 3))", false);
  EXPECT_EQ(chosen(rules), "switch by a rule");
  call.func = Func::kOrdered0;
  rules[1].position = static_cast<std::uint16_t>(find_algorithm(Collective::kReduce, "binomial"));
  EXPECT_EQ(chosen(rules), "binomial by a rule");
  EXPECT_EQ(chosen({}), "linear by a rule") << "the library's own";
}

TEST(Choice, IsTheSwitchesOwnForStableReductions) {
  for (const Collective collective : {Collective::kReduce, Collective::kAllreduce, Collective::kReduceScatter}) {
    Call call = make_call(collective, 4, 16);
    call.tree = parse_tree("(0 1 2 3)", false);
    std::vector<Rule> rules(stable_rules().begin(), stable_rules().end());
    rules.push_back(rule_of(collective, "ring"));
    if (rules.back().position == 0xffff) rules.back() = rule_of(collective, "chain");
    rules.back().switches = true;  // a price is no reason to reduce in another order
    EXPECT_STREQ(algorithms()[static_cast<std::size_t>(choose_algorithm(call, {rules}))].name, "switch");
  }
}

TEST(Choice, KeepsCallsFromWhatCarriesThemOnlyWhereRulesNameSwitches) {
  Call call = make_call(Collective::kAllreduce, 4, 16);
  std::vector<Rule> rules{rule_of(Collective::kAllreduce, "ring", 64)};
  rules[0].switches = true;
  EXPECT_TRUE(left_to_switches(call, {}));
  EXPECT_TRUE(left_to_switches(call, {rules})) << "that of a job whose pins say nothing of switches";
  rules.push_back(rule_of(Collective::kAllreduce, "switch"));
  EXPECT_FALSE(left_to_switches(call, {rules}));
  call.count = 17;
  EXPECT_TRUE(left_to_switches(call, {rules}));
  call.collective = Collective::kReduce;
  call.count = 16;
  EXPECT_TRUE(left_to_switches(call, {rules}));
  call.collective = Collective::kAllreduce;
  rules[0].switches = false;
  EXPECT_TRUE(left_to_switches(call, {rules})) << "it is of other calls";
}

TEST(Choice, HasNothingForAUsersProgram) { EXPECT_EQ(choose_algorithm(make_call(Collective::kProgram, 4, 1)), -1); }

}  // namespace
}  // namespace unisono::testing_programs
