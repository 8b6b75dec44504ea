// Trees of members and switches that the checker looks at.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tree.hpp"

namespace unisono::reference {

/// Up to so many members, every tree is looked at.
inline constexpr std::uint32_t kMembersOfAllTrees = 6;

/// Trees with virtual ranks. Up to kMembersOfAllTrees members: every shape of a tree of so many switches, those with
/// one child among them, with members in rank order and in an order that is drawn; else 6 drawn ones. Some members
/// share ports. Pure in its arguments.
std::vector<const CallTree*> trees_to_check(std::uint32_t members, std::uint32_t switches, std::uint64_t seed);

}  // namespace unisono::reference
