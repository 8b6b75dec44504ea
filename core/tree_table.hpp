// The trees of all communicators of this process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tree.hpp"

namespace unisono {

/// What hangs below a switch.
struct Attachment {
  std::uint32_t node = 0;  ///< a member's rank, or the number of members plus a switch's number
  std::uint32_t port = 0;  ///< of the switch; processes of one host share theirs
};

/// Most switches on the way from a member to the top, the top among them.
inline constexpr std::uint32_t kMostTreeLevels = 12;

/// The tree in which `below[s]` hangs below switch s, in the order in which it folds. Thread-safe. The tree lives as
/// long as the process. Throws Error(kInvalidArgument), which names the edge, if a node hangs twice or below itself, is
/// none, or stands in no relation to the others; if a switch has nothing below it; or if there are too many levels.
const CallTree* find_tree(std::uint32_t members, const std::vector<std::vector<Attachment>>& below, bool stand_in);

/// The same tree, with or without virtual ranks.
const CallTree* find_tree(const CallTree& like, bool stand_in);

/// The tree of a text as text_of writes it; switches count in the order of their brackets, each child has a port of its
/// own. Throws Error(kInvalidArgument) if it is none, and says where.
const CallTree* parse_tree(const std::string& text, bool stand_in);

/// As people write it, each switch a pair of brackets: "((0 1) (2 3) 4)".
std::string text_of(const CallTree& tree);

}  // namespace unisono
