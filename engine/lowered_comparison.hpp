// Whether what `lower` has made of a program is that program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/program.hpp"
#include "engine/lower.hpp"

namespace unisono::cclo {

/// What went wrong in a run or with a lowered program.
struct LoweredFault {
  enum class Kind : std::uint8_t {
    kDeadlock,     ///< ranks wait for each other
    kMismatch,     ///< tag or length of a message are not what the receiver awaits
    kLeftOver,     ///< messages that nobody took
    kOutOfBounds,  ///< an access outside a region, or to a rank that does not exist
    kNotTheMoves,  ///< the lowered form does not hold each move once, as it is
    kOrder,        ///< a step comes before what it must follow
  };
  /// A move that is concerned.
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t step = 0;  ///< of the straight form, or the move itself in the windowed form
    std::vector<std::uint32_t> moves;
  };
  Kind kind = Kind::kDeadlock;
  std::string text;  ///< complete, with ranks, steps and moves
  std::vector<Place> places;
};

/// What the comparison of a lowered program with its program gives.
struct LoweredCheck {
  std::optional<LoweredFault> fault;
  std::vector<std::vector<std::uint32_t>> moves;  ///< by step: the moves it stands for
};

/// `program` with the counts and offsets of `params` in place of those that it reads from there: what a launch with
/// these params runs.
Program with_params(Program program, std::span<const std::uint64_t> params);

/// Whether `lowered` is `program` of rank `rank` of `size`: each move stands in both forms once and unchanged, and the
/// steps are in an order that dependencies (segment dependencies read as full ones), the window and the order of each
/// pair's messages allow.
LoweredCheck compare_lowered(const Program& program, const LoweredProgram& lowered, std::uint32_t rank,
                             std::uint32_t size);

}  // namespace unisono::cclo
