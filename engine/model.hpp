// Runs the lowered programs of all ranks of one call in one thread, on numbers, without shared memory: the executor of
// executor.hpp, as it runs live, on channels that are queues and with the arithmetic of core/arithmetic.hpp.
//
// This is how it is proven that what `lower` makes cannot wait in a circle. A lane is a queue per ordered pair of
// ranks. The straight form is run as the engine runs it: strictly step by step, waiting for every message. The
// windowed form advances every move of the window that can go on, segment by segment.
//
// One run proves all of them: a lane has one writer and one reader, so what can go on still can after anybody else
// has gone on, and all schedules end in the same state. If that state is the end of all programs, none can stick.
//
// Lanes that end at a rank which runs the straight form are as long as needed: LaneChannels::holds sees to that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/lowered_comparison.hpp"

namespace unisono::cclo {

/// How the ranks execute, and what the lanes between them hold.
struct LaneModel {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  std::uint64_t segment_bytes = kUnlimited;  ///< longer messages are cut; whole elements at least
  std::uint64_t lines = kUnlimited;          ///< segments that a lane holds
  std::uint64_t bytes = kUnlimited;          ///< payload that it holds, or one segment if that is more
  std::vector<bool> windowed;                ///< by rank; others, and all if it is empty, run the straight form
  bool straight_is_limited = false;          ///< lanes of straight ranks have limits too, which the engine never allows
  enum class Loans : std::uint8_t { kNever, kTaken, kDeclined };
  Loans loans = Loans::kNever;  ///< whether windowed ranks lend what they can, and what becomes of that

  /// All ranks run the straight form.
  static LaneModel straight() { return {}; }
  /// All ranks run the windowed form, and each lane holds one segment.
  static LaneModel windowed_with_one_segment(std::uint32_t ranks, std::uint64_t segment_bytes,
                                             Loans loans = Loans::kNever) {
    return {segment_bytes, 1, kUnlimited, std::vector<bool>(ranks, true), false, loans};
  }
};

/// What one rank brings into a run: its lowered program, and its regions as the call binds them.
struct LoweredRank {
  const LoweredProgram* program = nullptr;
  std::vector<std::byte> src, dst;
  std::vector<std::byte> window{};
};

struct LoweredRun {
  std::optional<LoweredFault> fault;
  std::uint64_t segments = 0;  ///< executed
};

/// Runs the programs of all ranks; leaves src, dst and window of each as the call would. `moves_of` gives for each rank
/// and step the moves that it stands for, as LoweredCheck::moves; it may be empty, and is used for messages only.
LoweredRun run_lowered(std::span<LoweredRank> ranks, const LaneModel& model,
                       std::span<const std::vector<std::vector<std::uint32_t>>> moves_of = {});

}  // namespace unisono::cclo
