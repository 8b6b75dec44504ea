// Trees of members and switches, over which calls are aggregated in the network. Freestanding.
#pragma once

#include <cstdint>

namespace unisono {

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

/// A tree whose leaves are the members of a communicator and whose inner nodes are switches. A switch is a *virtual
/// rank*: it runs a program as members do, but has no src and no dst. Nodes count from 0: members by their ranks, then
/// switches, so switch s is rank `members` + s.
///
/// Only `find_tree` (tree_table.hpp) makes these, one of each kind in a process, and they are never freed: equal trees
/// have equal addresses.
struct CallTree {
  std::uint32_t members;
  std::uint32_t switches;         ///< at least 1
  bool stand_in;                  ///< there are no virtual ranks: members do what the switches would
  bool in_rank_order;             ///< `order` counts up
  const std::uint32_t* parent;    ///< by node; kNoNode of the top
  const std::uint32_t* first;     ///< by switch: its first child in `children`; one more, which is their end
  const std::uint32_t* children;  ///< nodes, in the order in which a switch folds what they send
  const std::uint32_t* port;      ///< by node: the port of its switch behind which it is; several may share one
  const std::uint32_t* order;     ///< members in the order of the tree, which is that of blocks on their way
  const std::uint32_t* position;  ///< by member: its place in `order`
};

/// As a call has it. (The microcontroller's calls have none.)
using TreeOfCall = const CallTree*;

constexpr const CallTree* pointer_to(TreeOfCall tree) { return tree; }

}  // namespace unisono
