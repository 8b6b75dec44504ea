// The order of reductions: which algorithms have one that depends on nothing but the ranks.
#include "reference/reduction_order.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "collectives/tuning.hpp"
#include "core/error.hpp"
#include "core/tree_table.hpp"

namespace unisono::reference {
namespace {

Call call_of(Collective collective, std::uint32_t ranks, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.func = Func::kSum;
  call.dtype = Datatype::kFp32;
  call.size = ranks;
  call.count = count;
  return call;
}

const Algorithm& algorithm(Collective collective, const char* name) {
  return algorithms()[static_cast<std::size_t>(find_algorithm(collective, name))];
}

/// One switch above so many members, which stand in for it.
const CallTree* star(std::uint32_t ranks) {
  std::string text;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) text += (rank == 0 ? "(" : " ") + std::to_string(rank);
  return parse_tree(text + ")", true);
}

// What stable_rules() promises, for every number of ranks up to 17 and of elements around every threshold of blocks.
TEST(ReductionOrder, OfStableRulesDependsOnRanksOnly) {
  for (const Rule& rule : stable_rules()) {
    const Algorithm& chosen = algorithms()[rule.position];
    for (std::uint32_t ranks = 1; ranks <= 17; ++ranks) {
      for (const std::uint32_t root : {0U, ranks - 1}) {
        std::map<std::uint64_t, std::uint64_t> hashes;
        for (const std::uint64_t count : {1, 2, 3, 5, 16, 17, 64, 100}) {
          Call call = call_of(chosen.collective, ranks, count);
          if (chosen.collective == Collective::kReduce) call.root = root;
          if (chosen.switched) call.tree = star(ranks);
          for (const bool in_place : {false, true}) {
            call.in_place = in_place;
            const ReductionOrder order = reduction_order(chosen, call);
            EXPECT_EQ(order.orders, 1U) << chosen.name << " " << ranks << " " << count;
            hashes[order.hash] = count;
          }
        }
        EXPECT_EQ(hashes.size(), 1U) << name_of(chosen.collective) << " " << chosen.name << " " << ranks << " ranks";
      }
    }
  }
}

TEST(ReductionOrder, EveryReductionHasAStableRule) {
  for (const Collective collective : {Collective::kReduce, Collective::kAllreduce, Collective::kReduceScatter,
                                      Collective::kScan, Collective::kExscan}) {
    for (const std::uint64_t count : {1ULL, 1000ULL, 100'000'000ULL}) {
      for (const bool direct : {false, true}) {
        for (const bool crowded : {false, true}) {
          Call call = call_of(collective, 8, count);
          call.direct = direct;
          call.group_size = 4;
          const Choice choice = choose(call, {stable_rules(), crowded});
          ASSERT_NE(choice.rule, nullptr);
          EXPECT_EQ(choice.rule, choose(call_of(collective, 8, 7), {stable_rules(), false}).rule);
        }
      }
    }
  }
}

// The measure tells apart what it must: a ring begins at another rank in each of its blocks, flat folds in rank order.
TEST(ReductionOrder, TellsAlgorithmsApart) {
  const Call call = call_of(Collective::kAllreduce, 4, 64);
  EXPECT_EQ(reduction_order(algorithm(Collective::kAllreduce, "ring"), call).orders, 4U);
  const ReductionOrder flat = reduction_order(algorithm(Collective::kAllreduce, "flat"), call);
  const ReductionOrder doubling = reduction_order(algorithm(Collective::kAllreduce, "recursive_doubling"), call);
  const ReductionOrder tree = reduction_order(algorithm(Collective::kAllreduce, "reduce_bcast"), call);
  EXPECT_EQ(flat.orders, 1U);
  EXPECT_NE(flat.hash, doubling.hash);
  EXPECT_EQ(doubling.hash, tree.hash);  // the same brackets, if the ranks are a power of two
  Call direct = call;
  direct.direct = true;
  EXPECT_EQ(reduction_order(algorithm(Collective::kAllreduce, "direct"), direct).hash, flat.hash);
  EXPECT_NE(reduction_order(algorithm(Collective::kAllreduce, "flat"), call_of(Collective::kAllreduce, 5, 64)).hash,
            flat.hash);
  // Where a ring's blocks begin depends on the number of elements.
  const Algorithm& ring = algorithm(Collective::kAllreduce, "ring");
  EXPECT_NE(reduction_order(ring, call_of(Collective::kAllreduce, 4, 6)).hash,
            reduction_order(ring, call_of(Collective::kAllreduce, 4, 9)).hash);
  EXPECT_THROW(reduction_order(algorithm(Collective::kBcast, "linear"), call_of(Collective::kBcast, 4, 6)), Error);
}

}  // namespace
}  // namespace unisono::reference
