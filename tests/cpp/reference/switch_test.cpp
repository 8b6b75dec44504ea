// Trees of members and switches: what is no tree is refused by its edge, the programs of switches are right with one
// slot, in the order of members that stand in for them, and mistakes in them are found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/tree_table.hpp"
#include "reference/checker.hpp"
#include "reference/interpreter.hpp"
#include "reference/mutate.hpp"
#include "reference/reduction_order.hpp"
#include "reference/trees.hpp"

namespace unisono::reference {
namespace {

std::string refusal(std::uint32_t members, const std::vector<std::vector<Attachment>>& below) {
  try {
    find_tree(members, below, false);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Tree, WhatIsNoneIsRefusedByItsEdge) {
  EXPECT_EQ(refusal(3, {{{0, 0}, {1, 1}, {4, 2}}, {{2, 0}}}), "");
  EXPECT_NE(refusal(2, {{{0, 0}, {3, 1}}, {{1, 0}, {2, 1}}}).find("switch 1 - switch 0: this edge closes a circle"),
            std::string::npos);
  EXPECT_NE(refusal(1, {{{0, 0}, {1, 1}}}).find("switch 0 - switch 0: this edge closes a circle"), std::string::npos);
  EXPECT_NE(refusal(3, {{{0, 0}, {1, 1}, {4, 2}}, {{2, 0}, {1, 1}}})
                .find("switch 1 - rank 1: rank 1 hangs below switch 0 already"),
            std::string::npos);
  EXPECT_NE(refusal(3, {{{0, 0}, {4, 1}, {4, 2}}, {{1, 0}, {2, 1}}})
                .find("switch 0 - switch 1: switch 1 hangs below switch 0 already"),
            std::string::npos);
  EXPECT_NE(refusal(2, {{{0, 0}, {5, 1}}, {{1, 0}}}).find("switch 0 - node 5"), std::string::npos);
  EXPECT_NE(refusal(3, {{{0, 0}, {1, 1}}}).find("rank 2 hangs below no switch"), std::string::npos);
  EXPECT_NE(refusal(2, {{{0, 0}}, {{1, 0}}}).find("switch 0 and switch 1 both hang below none"), std::string::npos);
  EXPECT_NE(refusal(2, {{{0, 0}, {1, 1}}, {}}).find("nothing hangs below switch 1"), std::string::npos);
  std::vector<std::vector<Attachment>> deep;
  for (std::uint32_t s = 0; s < kMostTreeLevels; ++s) deep.push_back({{2 + s, 0}});
  deep.push_back({{0, 0}});
  EXPECT_NE(refusal(1, deep).find("at most 12 levels"), std::string::npos);
}

TEST(Tree, IsReadAsItIsWritten) {
  for (const char* const text : {"(0)", "(0 1 2)", "((0 1) (2 3))", "(4 ((2) 0 3) 1)", "(((1 0)))"}) {
    EXPECT_EQ(text_of(*parse_tree(text, false)), text);
    EXPECT_EQ(text_of(*parse_tree(text, true)), text);
  }
  EXPECT_EQ(parse_tree("(0  (1 2))", false), parse_tree("(0 (1 2))", false));
  EXPECT_NE(parse_tree("(0 1)", false), parse_tree("(0 1)", true));
  EXPECT_TRUE(parse_tree("((0 1) 2)", false)->in_rank_order);
  EXPECT_FALSE(parse_tree("((0 2) 1)", false)->in_rank_order);
  for (const char* const text :
       {"", "0 1", "(0 1", "(0 1) 2", "(0 a)", "(0 -1)", "(0 99999999999)", "()", "(0 0)", "(1)", "((0) ())", ")"}) {
    EXPECT_THROW(parse_tree(text, false), Error) << text;
  }
  try {
    parse_tree(")", false);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no bracket that opens at character 1"), std::string::npos)
        << error.what();
  }
}

// Trees with so many leaves and inner nodes, brothers told apart: the numbers of Narayana.
TEST(Tree, ChildrenStandInEveryOrder) {
  const auto texts = [](std::uint32_t members, std::uint32_t switches) {
    std::set<std::string> found;
    for (const CallTree* const tree : trees_in_all_orders(members, switches)) found.insert(text_of(*tree));
    return found;
  };
  EXPECT_EQ(texts(2, 2), (std::set<std::string>{"((0 1))", "((0) 1)", "(0 (1))"}));
  EXPECT_EQ(texts(1, 4).size(), 1U);
  EXPECT_EQ(texts(4, 2).size(), 10U);
  EXPECT_EQ(texts(5, 3).size(), 105U);
  EXPECT_EQ(texts(6, 1).size(), 1U);
  EXPECT_EQ(texts(6, 5).size(), 5292U);
  EXPECT_EQ(texts(6, 3).count("((0 (1 2)) 3 4 5)"), 1U);
  EXPECT_TRUE(trees_in_all_orders(kMembersOfAllTrees + 1, 2).empty());
}

std::vector<const Algorithm*> switched() {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.switched) found.push_back(&algorithm);
  }
  return found;
}

Call call_of(const Algorithm& algorithm, const CallTree* tree, Datatype dtype, std::uint64_t count) {
  Call call;
  call.collective = algorithm.collective;
  call.func = is_reduction(call.collective) ? Func::kSum : Func::kNone;
  call.dtype = call.collective == Collective::kBarrier ? Datatype::kNone : dtype;
  call.size = tree->members;
  call.root = tree->members / 2;
  call.count = call.collective == Collective::kBarrier ? 0 : count;
  call.tree = tree;
  return call;
}

TEST(Switch, EveryAlgorithmIsProven) {
  ASSERT_EQ(switched().size(), 8U);
  for (const Algorithm* const algorithm : switched()) {
    CheckOptions options;
    options.ranks = {1, 2, 3, 4, 9};
    options.switches = {1, 2, 3};
    options.schedules = 3;
    options.mixes = 1;
    const CheckReport report = check_algorithm(*algorithm, options);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_GT(report.trees, 50U);
    EXPECT_EQ(report.any != 0, is_reduction(algorithm->collective)) << report.text();
  }
}

TEST(Switch, AllOrdersOfChildrenAreCheckedIfSwitchesAreAskedFor) {
  const auto& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "switch"))];
  const auto orders = [&](const CheckOptions& options) {
    std::set<std::string> texts;
    for (const CheckedCall& checked : calls_to_check(algorithm, 4, options)) {
      if (!checked.sampled && !checked.call.tree->stand_in) texts.insert(text_of(*checked.call.tree));
    }
    return texts;
  };
  CheckOptions options;
  EXPECT_TRUE(orders(options).empty());
  options.switches = {3};
  EXPECT_EQ(orders(options).size(), 50U);
}

// Sums that round, so that the order shows: bit for bit by switches and by members in their place.
TEST(Switch, MembersInTheirPlaceGiveTheSameBits) {
  std::mt19937_64 random(5);
  int different = 0;
  for (const Algorithm* const algorithm : switched()) {
    if (!is_reduction(algorithm->collective)) continue;
    for (const std::uint32_t members : {4U, 6U, 9U}) {
      for (const CallTree* const tree : trees_to_check(members, 3, 1)) {
        const Datatype dtype = random() % 2 == 0 ? Datatype::kFp32 : Datatype::kFp16;
        const Call call = call_of(*algorithm, tree, dtype, 5);
        std::vector<RankInput> inputs(members);
        for (RankInput& input : inputs) {
          input.src.resize(call.count * members * element_bytes(call));
          for (std::size_t i = 0; i < input.src.size(); i += element_bytes(call)) {
            const float value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 7.0F;
            if (dtype == Datatype::kFp32) {
              std::memcpy(&input.src[i], &value, 4);
            } else {
              // Any pattern that is finite: exponents of 16 and less.
              const auto bits = static_cast<std::uint16_t>(random() % 0x4c00 + (random() % 2 == 0 ? 0x8000 : 0));
              std::memcpy(&input.src[i], &bits, 2);
            }
          }
        }
        Call standing = call;
        standing.tree = find_tree(*tree, true);
        const auto by_switches = interpret(make_job(*algorithm, call), inputs, Policy::least_permissive());
        const auto by_members = interpret(make_job(*algorithm, standing), inputs, Policy::random(members));
        ASSERT_EQ(by_switches.size(), members + 3U);
        for (std::uint32_t rank = 0; rank < members; ++rank) {
          EXPECT_EQ(by_switches[rank], by_members[rank]) << text_of(*tree) << ", rank " << rank;
        }
        const auto order = reduction_order(*algorithm, call);
        EXPECT_EQ(order.hash, reduction_order(*algorithm, standing).hash) << text_of(*tree);
        EXPECT_EQ(order.orders, 1U);
        Call linear = call;
        linear.tree = find_tree(*parse_tree(members == 4   ? "(0 1 2 3)"
                                            : members == 6 ? "(0 1 2 3 4 5)"
                                                           : "(0 1 2 3 4 5 6 7 8)",
                                            false),
                                false);
        different += reduction_order(*algorithm, linear).hash != order.hash ? 1 : 0;
      }
    }
  }
  EXPECT_GT(different, 20);  // the hash tells trees apart
}

TEST(Switch, ReduceHasTheBitsOfAllReduceWhateverItsRoot) {
  const CallTree* const tree = parse_tree("(3 (0 4) ((2 5) 1))", false);
  std::vector<RankInput> inputs(6);
  std::mt19937 random(3);
  for (RankInput& input : inputs) {
    for (int i = 0; i < 7; ++i) {
      const float value = static_cast<float>(random() % 100000) / 7.0F;
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      input.src.insert(input.src.end(), bytes, bytes + 4);
    }
  }
  const auto by_name = [](Collective collective) -> const Algorithm& {
    return algorithms()[static_cast<std::size_t>(find_algorithm(collective, "switch"))];
  };
  const Algorithm& allreduce = by_name(Collective::kAllreduce);
  const Algorithm& reduce = by_name(Collective::kReduce);
  const auto everywhere = interpret(make_job(allreduce, call_of(allreduce, tree, Datatype::kFp32, 7)), inputs);
  for (std::uint32_t root = 0; root < 6; ++root) {
    Call call = call_of(reduce, tree, Datatype::kFp32, 7);
    call.root = root;
    EXPECT_EQ(interpret(make_job(reduce, call), inputs)[root], everywhere[root]) << root;
  }
}

// Children dropped and doubled, messages astray, moves out of their order: in switches and members alike.
TEST(Switch, MistakesAreFound) {
  int found = 0;
  int at_switches = 0;
  int dropped = 0;
  int doubled = 0;
  std::uint64_t seed = 100;
  for (const Algorithm* const algorithm : switched()) {
    for (const char* const text : {"(0 1 2 3)", "((0 1) 2 (3 4))", "((0 (3 1)) 2)"}) {
      const Job job = make_job(*algorithm, call_of(*algorithm, parse_tree(text, false), Datatype::kFp32, 3));
      ASSERT_TRUE(check_job(job, 2).ok()) << describe(job);
      for (const Mutant& mutant : make_mutants(job, 24, ++seed)) {
        // Their proof that nothing changes is for programs of ranks; here only such mistakes are made as always show.
        if (mutant.mutation == Mutation::kDropDependency || mutant.mutation == Mutation::kDropSegmentDependency ||
            mutant.mutation == Mutation::kFlipSwap || mutant.mutation == Mutation::kExchangeMoves) {
          continue;
        }
        const CheckReport report = check_job(mutant.job, 3, seed);
        EXPECT_FALSE(report.ok()) << describe(job) << "\n  not found: " << mutant.what;
        found += report.ok() ? 0 : 1;
        at_switches += mutant.rank >= job.call.size ? 1 : 0;
        dropped += mutant.mutation == Mutation::kDropPeer ? 1 : 0;
        doubled += mutant.mutation == Mutation::kDoublePeer ? 1 : 0;
      }
    }
  }
  EXPECT_GE(found, 300);
  EXPECT_GE(at_switches, 100);
  EXPECT_GE(dropped, 10);
  EXPECT_GE(doubled, 10);
}

// A switch that takes up block after block before it sends the first result down has them all in slots.
TEST(Switch, ASlotThatIsReusedEarlyIsFound) {
  const auto& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kReduceScatter, "switch"))];
  const Call call = call_of(algorithm, parse_tree("((0 1 2) 3)", false), Datatype::kFp32, 2);
  Job job = make_job(algorithm, call);
  std::vector<Move>& moves = job.programs[5].moves;  // switch 1: up and down for ranks 0 to 2, and up for rank 3
  ASSERT_EQ(moves.size(), 7U);
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.remote.tag % 2 < b.remote.tag % 2; });
  const CheckReport report = check_job(job, 0, 1, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.finding->kind, FindingKind::kDeadlock) << report.text();
  EXPECT_NE(report.finding->text.find("one slot"), std::string::npos) << report.text();
}

// Rank 0 gives its block only when it has that of rank 1. Each behind a port of its own, they get along: the switch
// takes both. Behind one port, rank 1's block stands where rank 0's comes first.
TEST(Switch, ProcessesBehindOnePortAreLookedAt) {
  const auto& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllgather, "switch"))];
  for (const char* const text : {"(0 1)", "((0) (1))"}) {
    Job job = make_job(algorithm, call_of(algorithm, parse_tree(text, false), Datatype::kFp32, 3));
    std::vector<Move>& moves = job.programs[0].moves;
    ASSERT_EQ(moves.size(), 2U);
    std::swap(moves[0], moves[1]);
    moves[1].dependencies = 1;
    Interpreter interpreter(job);
    const Policy one_slot = Policy::least_permissive().with_one_slot();
    EXPECT_FALSE(interpreter.run_symbols(one_slot).finding) << text;
    const SymbolRun shared = interpreter.run_symbols(one_slot.with_shared_ports());
    const CheckReport report = check_job(job, 0, 1, 0);
    if (job.call.tree->switches == 3) {
      EXPECT_FALSE(shared.finding) << shared.finding->text;
      EXPECT_TRUE(report.ok()) << report.text();
      continue;
    }
    ASSERT_TRUE(shared.finding);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.finding->kind, FindingKind::kDeadlock);
    EXPECT_NE(report.finding->text.find("waits for its turn at the port of ranks 0, 1: move 0 of rank 2"),
              std::string::npos)
        << report.text();
    EXPECT_NE(report.finding->text.find("behind one port)"), std::string::npos) << report.text();
  }
}

// One run stands for all orders of arrivals: every schedule comes to its very expressions, though not to each other's.
TEST(Switch, OneRunStandsForAllOrders) {
  const auto& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "switch"))];
  const Job job = make_job(algorithm, call_of(algorithm, parse_tree("((0 1 2) 3 4)", false), Datatype::kInt32, 2));
  ASSERT_TRUE(uses_any(job));
  Interpreter interpreter(job);
  const auto result = [](const SymbolRun& run) { return run.memory[0][static_cast<std::size_t>(Region::kDst)]; };
  const SymbolRun all = interpreter.run_symbols(Policy::least_permissive().with_all_orders());
  std::set<std::vector<Symbol>> orders;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    orders.insert(result(interpreter.run_symbols(Policy::random(seed))));
    const SymbolRun run = interpreter.run_symbols(Policy::random(seed).with_all_orders());
    EXPECT_EQ(result(run), result(all)) << seed;
    EXPECT_FALSE(interpreter.compare(all, run, "another")) << seed;
  }
  EXPECT_GT(orders.size(), 10U);

  // Another order where none is free has the same normal form, and is found all the same.
  SymbolRun other = all;
  SymbolTable& table = interpreter.symbols();
  const Symbol first = interpreter.leaves().memory[0][static_cast<std::size_t>(Region::kSrc)];
  Symbol sum = first;
  for (std::uint32_t rank = 4; rank > 0; --rank) {
    sum = table.combine(Func::kSum, interpreter.leaves().memory[rank][static_cast<std::size_t>(Region::kSrc)], sum);
  }
  Symbol& got = other.memory[0][static_cast<std::size_t>(Region::kDst)][0];
  ASSERT_NE(got, sum);
  ASSERT_EQ(table.normal_form(got), table.normal_form(sum));
  got = sum;
  EXPECT_TRUE(interpreter.compare(all, other, "another"));
  other.all_orders = false;
  EXPECT_FALSE(interpreter.compare(all, other, "another"));
}

TEST(Switch, AnyOrderIsRefusedWhereItChangesBits) {
  const auto& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "switch"))];
  Job job = make_job(algorithm, call_of(algorithm, parse_tree("(0 1 2)", false), Datatype::kFp32, 2));
  Move& fold = job.programs[3].moves.front();
  ASSERT_EQ(fold.arrival.mode, PeerMode::kList);
  fold.arrival.mode = PeerMode::kAny;
  const CheckReport report = check_job(job, 2);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.finding->kind, FindingKind::kUnstable);
  EXPECT_NE(report.finding->text.find("sum on fp32"), std::string::npos) << report.text();

  const Job exact = make_job(algorithm, call_of(algorithm, parse_tree("(0 1 2)", false), Datatype::kInt32, 2));
  EXPECT_EQ(exact.programs[3].moves.front().arrival.mode, PeerMode::kAny);
  const CheckReport proven = check_job(exact, 20);
  EXPECT_TRUE(proven.ok()) << proven.text();
  EXPECT_EQ(proven.any, 1U);
}

TEST(Switch, NormalFormsForgetOrderAndNothingElse) {
  SymbolTable table;
  const Symbol a = table.make_leaves(0, 0, 4);
  const Symbol b = a + 1, c = a + 2, d = a + 3;
  const auto sum = [&](Symbol x, Symbol y) { return table.combine(Func::kSum, x, y); };
  const auto most = [&](Symbol x, Symbol y) { return table.combine(Func::kMax, x, y); };
  EXPECT_NE(sum(sum(a, b), c), sum(a, sum(c, b)));
  EXPECT_EQ(table.normal_form(sum(sum(a, b), c)), table.normal_form(sum(a, sum(c, b))));
  EXPECT_EQ(table.normal_form(sum(sum(d, b), sum(c, a))), table.normal_form(sum(sum(a, b), sum(c, d))));
  EXPECT_NE(table.normal_form(sum(a, a)), table.normal_form(a));
  EXPECT_NE(table.normal_form(sum(sum(a, b), b)), table.normal_form(sum(sum(a, a), b)));
  EXPECT_NE(table.normal_form(sum(a, most(b, c))), table.normal_form(most(sum(a, b), c)));
  EXPECT_EQ(table.normal_form(sum(most(c, b), a)), table.normal_form(sum(a, most(b, c))));
  EXPECT_EQ(table.normal_form(table.divide(sum(b, a))), table.normal_form(table.divide(sum(a, b))));
  EXPECT_EQ(table.normal_form(table.part(sum(b, a), 1, 2)), table.normal_form(table.part(sum(a, b), 1, 2)));
}

}  // namespace
}  // namespace unisono::reference
