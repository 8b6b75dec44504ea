// Groups of ranks, of any sizes and of any ranks, for algorithms of two levels. Freestanding.
#pragma once

#include <cstdint>

namespace unisono {

/// A partition of a communicator's ranks. Groups count from 0 in the order of their first ranks. Ranks have
/// *positions*: those of group 0 in rising order, then those of group 1, ... so that every group is a range of
/// positions.
///
/// Only `find_groups` (group_table.hpp) makes these, one of each partition in a process, and they are never freed:
/// equal partitions have equal addresses.
struct GroupList {
  std::uint32_t size;                ///< ranks
  std::uint32_t groups;              ///< their number: at least 2, less than `size`
  const std::uint32_t* first;        ///< by group: its first position; one more, which is `size`
  const std::uint32_t* group_at;     ///< by position
  const std::uint32_t* rank_at;      ///< by position; null if every group is a range of ranks: positions are ranks then
  const std::uint32_t* position_of;  ///< by rank; null likewise
};

/// As a call has them. (The microcontroller's calls have none.)
using GroupsOfCall = const GroupList*;

}  // namespace unisono
