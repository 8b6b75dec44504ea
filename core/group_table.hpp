// The groups of all communicators of this process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/groups.hpp"

namespace unisono {

/// How a communicator's ranks are divided. At most one of the two says something.
struct Grouping {
  std::uint32_t size = 0;           ///< ranks of a group, contiguous, the last may be smaller; 0: one level
  const GroupList* list = nullptr;  ///< groups of any kind
};

/// How many groups `size` ranks are divided into; 1 for none.
std::uint32_t groups_of(const Grouping& grouping, std::uint32_t size);
/// The group of a rank, counted in order of first ranks.
std::uint32_t group_of(const Grouping& grouping, std::uint32_t rank);

/// Groups of a list as people write them: "0 2 4 | 1 3". A size as "groups of 4".
std::string text_of(const Grouping& grouping);

/// The groups in which ranks with equal numbers are together. `numbers` by rank, of any values. Nothing if all are
/// together, or each is alone; a size if the groups are ranges of ranks of one size, of which the last may be smaller.
/// Thread-safe. The list lives as long as the process.
Grouping find_groups(std::span<const std::uint64_t> numbers);

}  // namespace unisono
