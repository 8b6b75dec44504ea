// A run drawn: ranks downwards, time to the right.
#pragma once

#include <optional>
#include <string>

#include "reference/interpreter.hpp"

namespace unisono::reference {

/// An SVG document of a run recorded with events: each rank a horizontal band, each move a box from its start to its
/// completion (open to the right if it never completed), each message an arrow from the sender's first element to the
/// arrival's. The moves of `finding` are red. Moves of a rank that overlap in time lie in lanes below each other. Pure.
std::string draw_space_time(const Lowered& lowered, const Run& run, const std::optional<Finding>& finding = {});

}  // namespace unisono::reference
