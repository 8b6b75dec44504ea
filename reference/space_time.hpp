// A run drawn: ranks downwards, time to the right.
#pragma once

#include <optional>
#include <string>

#include "reference/interpreter.hpp"

namespace unisono::reference {

/// An SVG document of a run: each rank a horizontal band, each move a box, each message an arrow. Time runs to the
/// right and counts steps of the longest chain of moves and messages, so ranks that work side by side stand side by
/// side. Moves of a rank that can overlap in time lie in lanes below each other. The moves of `finding` are red, moves
/// that never completed have dashed edges, and so have messages that nobody took; its text stands below. Pure.
std::string draw_space_time(const Lowered& lowered, const Run& run, const std::optional<Finding>& finding = {});

/// Runs a job on symbols and draws the run; one that cannot be run is drawn as the sentence that says why. `finding` is
/// what to mark, by default whatever the run itself comes upon. Pure.
std::string draw_job(const Job& job, const Policy& policy, const std::optional<Finding>& finding = {});

}  // namespace unisono::reference
