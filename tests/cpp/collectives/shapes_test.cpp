// The shapes that algorithms share: trees, folding to a power of two, cuts.
#include <gtest/gtest.h>

#include <vector>

#include "collectives/direct.hpp"
#include "collectives/folding.hpp"
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
