// Sentences about ranks that have not come.
#include "platform/join/ranks_in_words.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace unisono::join {
namespace {

using Ranks = std::vector<std::uint32_t>;
using Hosts = std::vector<std::string>;

TEST(RanksInWords, WithoutHosts) {
  EXPECT_EQ(ranks_have(Ranks{3}, {}), "rank 3 has");
  EXPECT_EQ(ranks_have(Ranks{1, 3}, {}), "ranks 1 and 3 have");
  EXPECT_EQ(ranks_have(Ranks{1, 2, 5}, {}), "ranks 1, 2 and 5 have");
}

TEST(RanksInWords, ByHost) {
  const Hosts hosts{"a", "a", "b", "b", "a"};
  EXPECT_EQ(ranks_have(Ranks{2}, hosts), "rank 2 on b has");
  EXPECT_EQ(ranks_have(Ranks{1, 2, 3}, hosts), "rank 1 on a, ranks 2 and 3 on b have");
  EXPECT_EQ(ranks_have(Ranks{1, 2, 3, 4}, hosts), "ranks 1 and 4 on a, ranks 2 and 3 on b have");
  // Of some it is not known.
  EXPECT_EQ(ranks_have(Ranks{1, 2, 5}, Hosts{"", "", "node4"}), "ranks 1 and 5, rank 2 on node4 have");
}

TEST(RanksInWords, ManyAreNotAllListed) {
  Ranks ranks(20);
  std::iota(ranks.begin(), ranks.end(), 1);
  EXPECT_EQ(ranks_have(ranks, {}), "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 16 and 4 more have");
  EXPECT_EQ(ranks_have(std::span(ranks).first(17), Hosts(21, "a")),
            "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 16 on a and 1 more have");
}

}  // namespace
}  // namespace unisono::join
