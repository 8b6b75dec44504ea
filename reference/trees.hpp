// Trees of members and switches that the checker looks at.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tree.hpp"

namespace unisono::reference {

/// Up to so many members, every shape is looked at.
inline constexpr std::uint32_t kMembersOfAllTrees = 6;

/// Trees with virtual ranks. Up to kMembersOfAllTrees members: every shape of a tree of so many switches, those with
/// one child among them, but for the order of children, which stand in two: members before switches, with ranks in
/// order; and switches before members, with ranks in an order that is drawn. Else 6 drawn trees. Some members share
/// ports. Pure in its arguments. At most 12 switches, and one less than members and one; each more takes several times
/// as long.
std::vector<const CallTree*> trees_to_check(std::uint32_t members, std::uint32_t switches, std::uint64_t seed);

/// The same shapes with the children of each switch in every order, ranks counting up from left to right. None beyond
/// kMembersOfAllTrees members.
std::vector<const CallTree*> trees_in_all_orders(std::uint32_t members, std::uint32_t switches);

}  // namespace unisono::reference
