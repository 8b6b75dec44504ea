// Who waits for whom, in words.
#pragma once

#include <functional>
#include <string>

#include "reference/finding.hpp"
#include "reference/lowered.hpp"

namespace unisono::reference {

/// Why a move does not go on.
struct Wait {
  std::string text;
  Node next = kNowhere;    ///< the move that would have to go on first
  bool unmatched = false;  ///< there is none: a message has no partner
};

/// Follows what moves wait for, from `start` on, until one repeats, which closes a circle, or waits for none.
Finding explain_waits(const Lowered& lowered, Node start, const std::function<Wait(Node)>& why);

}  // namespace unisono::reference
