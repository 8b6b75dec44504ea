#include "core/group_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

namespace unisono {

namespace {

/// A list with what it points to.
struct Stored {
  GroupList list;
  std::vector<std::uint32_t> first, group_at, rank_at, position_of;
};

/// By rank: the group, counted in order of first ranks.
std::vector<std::uint32_t> in_order(std::span<const std::uint64_t> numbers) {
  std::map<std::uint64_t, std::uint32_t> known;
  std::vector<std::uint32_t> groups;
  groups.reserve(numbers.size());
  for (const std::uint64_t number : numbers) {
    groups.push_back(known.try_emplace(number, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return groups;
}

/// The size of groups that are ranges of ranks of one size, of which the last may be smaller; else 0.
std::uint32_t common_size(std::span<const std::uint32_t> groups) {
  const auto size = static_cast<std::uint32_t>(std::count(groups.begin(), groups.end(), 0U));
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    if (groups[rank] != rank / size) return 0;
  }
  return size;
}

std::unique_ptr<Stored> stored(std::span<const std::uint32_t> groups, std::uint32_t count) {
  auto made = std::make_unique<Stored>();
  made->rank_at.resize(groups.size());
  std::iota(made->rank_at.begin(), made->rank_at.end(), 0U);
  const bool ranges = std::is_sorted(groups.begin(), groups.end());
  std::stable_sort(made->rank_at.begin(), made->rank_at.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return groups[a] < groups[b]; });
  made->position_of.resize(groups.size());
  for (std::uint32_t position = 0; position < groups.size(); ++position) {
    const std::uint32_t rank = made->rank_at[position];
    made->position_of[rank] = position;
    made->group_at.push_back(groups[rank]);
    if (made->first.size() <= groups[rank]) made->first.push_back(position);
  }
  made->first.push_back(static_cast<std::uint32_t>(groups.size()));
  made->list = {static_cast<std::uint32_t>(groups.size()),
                count,
                made->first.data(),
                made->group_at.data(),
                ranges ? nullptr : made->rank_at.data(),
                ranges ? nullptr : made->position_of.data()};
  return made;
}

}  // namespace

std::uint32_t groups_of(const Grouping& grouping, std::uint32_t size) {
  if (grouping.list != nullptr) return grouping.list->groups;
  return grouping.size == 0 ? 1 : (size + grouping.size - 1) / grouping.size;
}

std::uint32_t group_of(const Grouping& grouping, std::uint32_t rank) {
  const GroupList* const list = grouping.list;
  if (list == nullptr) return grouping.size == 0 ? 0 : rank / grouping.size;
  return list->group_at[list->position_of == nullptr ? rank : list->position_of[rank]];
}

std::string text_of(const Grouping& grouping) {
  const GroupList* const list = grouping.list;
  if (list == nullptr) return grouping.size == 0 ? "one group" : "groups of " + std::to_string(grouping.size);
  std::string text;
  for (std::uint32_t position = 0; position < list->size; ++position) {
    if (position != 0) text += list->group_at[position] == list->group_at[position - 1] ? " " : " | ";
    text += std::to_string(list->rank_at == nullptr ? position : list->rank_at[position]);
  }
  return text;
}

Grouping find_groups(std::span<const std::uint64_t> numbers) {
  const std::vector<std::uint32_t> groups = in_order(numbers);
  const std::uint32_t count = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()) + 1;
  if (count < 2 || count == groups.size()) return {};
  if (const std::uint32_t size = common_size(groups); size != 0) return {size, nullptr};
  static std::mutex mutex;
  // Never destroyed: a thread may still call while the process ends.
  static auto& table = *new std::map<std::vector<std::uint32_t>, std::unique_ptr<Stored>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Stored>& found = table[groups];
  if (found == nullptr) found = stored(groups, count);
  return {0, &found->list};
}

}  // namespace unisono
