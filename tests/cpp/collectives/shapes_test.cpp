// The shapes that algorithms share: trees, folding to a power of two, cuts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/direct.hpp"
#include "collectives/folding.hpp"
#include "collectives/knomial.hpp"
#include "collectives/levels.hpp"
#include "collectives/record.hpp"
#include "collectives/subtree.hpp"

namespace unisono::build {
namespace {

TEST(SubtreeShape, PartitionsItselfAmongItsChildren) {
  for (std::uint32_t size = 1; size <= 70; ++size) {
    for (std::uint32_t v = 0; v < size; ++v) {
      const Subtree node = Subtree::at(size, 0, v);
      std::uint32_t next = v + 1;  // children's intervals follow one another without a gap
      for (std::uint32_t i = 0; i < node.children(); ++i) {
        const Subtree child = node.child(i);
        ASSERT_EQ(child.relative, next) << "size " << size << ", node " << v;
        ASSERT_EQ(child.parent().relative, v) << "size " << size << ", node " << v;
        next += child.span;
      }
      ASSERT_EQ(next, v + node.span) << "size " << size << ", node " << v;
    }
    ASSERT_EQ(Subtree::at(size, 0, 0).span, size);
  }
}

TEST(KnomialShape, PartitionsItselfAmongItsChildren) {
  for (const std::uint32_t radix : {2U, 3U, 4U, 7U, 16U, 255U}) {
    for (std::uint32_t size = 1; size <= 300; size = size < 70 ? size + 1 : size + 23) {
      for (std::uint32_t v = 0; v < size; ++v) {
        SCOPED_TRACE(std::to_string(size) + " ranks, radix " + std::to_string(radix) + ", node " + std::to_string(v));
        const KnomialSubtree node = KnomialSubtree::at(size, 0, v, radix);
        std::uint32_t next = v + 1;
        for (std::uint32_t i = 0; i < node.children(); ++i) {
          const KnomialSubtree child = node.child(i);
          ASSERT_EQ(child.relative, next);
          ASSERT_EQ(child.parent().relative, v);
          next += child.span;
        }
        ASSERT_EQ(next, v + node.span);
      }
      ASSERT_EQ(KnomialSubtree::at(size, 0, 0, radix).span, size);
    }
  }
  // The largest communicators: no power of the radix may pass 32 bits.
  for (const std::uint32_t radix : {2U, 3U, 128U, 255U}) {
    const std::uint32_t size = (1U << 24U) - 1;
    const KnomialSubtree root = KnomialSubtree::at(size, 0, 0, radix);
    const KnomialSubtree last = root.child(root.children() - 1);
    EXPECT_EQ(last.relative + last.span, size) << "radix " << radix;
    EXPECT_EQ(last.parent().relative, 0U);
  }
}

TEST(KnomialShape, OfRadixTwoIsBinomial) {
  const auto at = [](Collective collective, const char* name) -> const Algorithm& {
    return algorithms()[static_cast<std::size_t>(find_algorithm(collective, name))];
  };
  struct Pair {
    Collective collective;
    const char* general;
    const char* binary;
  };
  constexpr Pair kPairs[] = {
      {Collective::kBcast, "knomial", "binomial"},         {Collective::kReduce, "knomial", "binomial"},
      {Collective::kGather, "knomial", "binomial"},        {Collective::kScatter, "knomial", "binomial"},
      {Collective::kAllreduce, "knomial", "reduce_bcast"},
  };
  for (const auto& [collective, general, binary] : kPairs) {
    for (const std::uint32_t size : {1U, 2U, 3U, 5U, 8U, 13U, 33U}) {
      for (const std::uint32_t root : {0U, size / 2, size - 1}) {
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          Call call;
          call.collective = collective;
          call.dtype = Datatype::kFp32;
          call.func =
              collective == Collective::kReduce || collective == Collective::kAllreduce ? Func::kSum : Func::kNone;
          call.size = size;
          call.root = collective == Collective::kAllreduce ? 0 : root;
          call.rank = rank;
          call.count = 11;
          const Program two = record(at(collective, binary), call);
          call.radix = 2;
          ASSERT_EQ(record(at(collective, general), call), two) << name_of(collective) << ", " << size << " ranks";
        }
      }
    }
  }
}

TEST(LevelsShape, GroupsCoverAllRanksOnce) {
  for (const std::uint32_t size : {1U, 2U, 5U, 8U, 9U}) {
    for (std::uint32_t group = 0; group <= size + 1; ++group) {
      Call call;
      call.size = size;
      call.group_size = group;
      const Levels levels(call);
      std::uint32_t next = 0;
      for (std::uint32_t g = 0; g < levels.groups(); ++g) {
        ASSERT_EQ(levels.first(g), next);
        ASSERT_GT(levels.members(g), 0U);
        for (std::uint32_t rank = next; rank < levels.end(g); ++rank) ASSERT_EQ(levels.group_of(rank), g);
        next = levels.end(g);
      }
      ASSERT_EQ(next, size);
    }
  }
}

TEST(FoldingShape, RenumbersInOrderAndServesEveryone) {
  for (std::uint32_t parties = 1; parties <= 70; ++parties) {
    std::vector<std::uint32_t> served(parties, 0);
    std::uint32_t next = 0;
    for (std::uint32_t party = 0; party < parties; ++party) {
      const Folding folding = Folding::of(party, parties);
      ASSERT_LE(std::uint32_t{1} << folding.rounds, parties);
      ASSERT_GT(std::uint32_t{2} << folding.rounds, parties);
      if (folding.rests) {
        ASSERT_TRUE(Folding::of(party + 1, parties).hosts) << parties << " parties, party " << party;
        continue;
      }
      ++served[party];
      if (folding.hosts) ++served[party - 1];
      ASSERT_EQ(folding.virtual_number, next++) << parties << " parties, party " << party;
      ASSERT_EQ(folding.party(folding.virtual_number), party) << parties << " parties";
    }
    ASSERT_EQ(next, std::uint32_t{1} << Folding::of(0, parties).rounds) << parties << " parties";
    ASSERT_EQ(served, std::vector<std::uint32_t>(parties, 1)) << parties << " parties";
  }
}

TEST(SplitShape, CutsEvenlyWithoutGaps) {
  for (const std::uint64_t total : {0ULL, 1ULL, 5ULL, 64ULL, 1000ULL, (1ULL << 40) - 1}) {
    for (std::uint32_t parts = 1; parts <= 17; ++parts) {
      const Split split{total, parts};
      std::uint64_t next = 0;
      for (std::uint32_t part = 0; part < parts; ++part) {
        ASSERT_EQ(split.begin(part), next) << total << " in " << parts;
        ASSERT_LE(split.count(0) - split.count(part), 1U) << total << " in " << parts;
        next += split.count(part);
      }
      ASSERT_EQ(next, total) << "in " << parts;
    }
  }
}

TEST(LineSplitShape, CutsEvenlyAtWholeLines) {
  for (const std::uint64_t element : {1ULL, 2ULL, 4ULL, 8ULL, 16ULL}) {
    for (const std::uint64_t total : {0ULL, 1ULL, 5ULL, 63ULL, 64ULL, 65ULL, 1000ULL, (1ULL << 40) - 1}) {
      for (std::uint32_t parts = 1; parts <= 17; ++parts) {
        const LineSplit split{total, element, parts};
        std::uint64_t next = 0;
        for (std::uint32_t part = 0; part < parts; ++part) {
          ASSERT_EQ(split.begin(part), next) << total << " of " << element << " bytes in " << parts;
          next += split.count(part);
          // Only the last part that has anything may end within a line.
          ASSERT_TRUE(next == total || split.offset(part + 1) % 64 == 0) << total << " in " << parts;
          ASSERT_LE((split.count(0) - split.count(part)) * element, 127U) << total << " in " << parts;
        }
        ASSERT_EQ(next, total) << "in " << parts;
      }
    }
  }
}

}  // namespace
}  // namespace unisono::build
