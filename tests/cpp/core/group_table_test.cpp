// Groups of ranks: sizes where they are ranges of one size, else lists, one of each in a process.
#include "core/group_table.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace unisono {
namespace {

using Numbers = std::vector<std::uint64_t>;

TEST(FindGroups, FindsNothingWhereAllAreTogetherOrEachIsAlone) {
  EXPECT_EQ(find_groups(Numbers{}).list, nullptr);
  for (const Numbers& numbers : {Numbers{7, 7, 7}, Numbers{3, 1, 2}, Numbers{5}}) {
    const Grouping found = find_groups(numbers);
    EXPECT_EQ(found.list, nullptr);
    EXPECT_EQ(found.size, 0U);
  }
}

TEST(FindGroups, FindsTheSizeOfRanges) {
  const Grouping found = find_groups(Numbers{9, 9, 9, 2, 2, 2, 4});
  EXPECT_EQ(found.list, nullptr);
  EXPECT_EQ(found.size, 3U);
  EXPECT_EQ(groups_of(found, 7), 3U);
  EXPECT_EQ(group_of(found, 6), 2U);
  EXPECT_EQ(text_of(found), "groups of 3");
}

TEST(FindGroups, RangesOfSeveralSizesAreListed) {
  const Grouping found = find_groups(Numbers{1, 1, 1, 1, 8, 8, 8, 0, 0, 0});
  ASSERT_NE(found.list, nullptr);
  EXPECT_EQ(found.size, 0U);
  EXPECT_EQ(found.list->groups, 3U);
  EXPECT_EQ(found.list->rank_at, nullptr);
  EXPECT_EQ(found.list->first[1], 4U);
  EXPECT_EQ(found.list->first[3], 10U);
  EXPECT_EQ(text_of(found), "0 1 2 3 | 4 5 6 | 7 8 9");
}

TEST(FindGroups, RanksThatWereDealtAreListed) {
  const Grouping found = find_groups(Numbers{4, 2, 4, 2, 4});
  ASSERT_NE(found.list, nullptr);
  EXPECT_EQ(text_of(found), "0 2 4 | 1 3");
  EXPECT_EQ(group_of(found, 3), 1U);
  EXPECT_EQ(groups_of(found, 5), 2U);
}

TEST(FindGroups, EqualPartitionsHaveEqualAddresses) {
  EXPECT_EQ(find_groups(Numbers{4, 2, 4, 2, 4}).list, find_groups(Numbers{0, 9, 0, 9, 0}).list);
  EXPECT_NE(find_groups(Numbers{4, 2, 4, 2, 4}).list, find_groups(Numbers{4, 2, 4, 2, 2}).list);
}

TEST(FindGroups, ListsAreConsistent) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    Numbers numbers(2 + random() % 40);
    for (auto& number : numbers) number = random() % 5;
    const Grouping found = find_groups(numbers);
    for (std::uint32_t a = 0; a < numbers.size(); ++a) {
      for (std::uint32_t b = 0; b < numbers.size(); ++b) {
        if (found.list == nullptr && found.size == 0) continue;
        EXPECT_EQ(numbers[a] == numbers[b], group_of(found, a) == group_of(found, b));
      }
    }
    if (found.list == nullptr) continue;
    const GroupList& list = *found.list;
    EXPECT_EQ(list.size, numbers.size());
    for (std::uint32_t position = 0; position < list.size; ++position) {
      const std::uint32_t rank = list.rank_at == nullptr ? position : list.rank_at[position];
      EXPECT_EQ(list.group_at[position], group_of(found, rank));
      EXPECT_GE(position, list.first[list.group_at[position]]);
      EXPECT_LT(position, list.first[list.group_at[position] + 1]);
      if (list.position_of != nullptr) {
        EXPECT_EQ(list.position_of[rank], position);
      }
    }
  }
}

}  // namespace
}  // namespace unisono
