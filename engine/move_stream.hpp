// The moves of a long program, made one generation step at a time as they enter the window.
//
// A program of a thousand ranks has thousands of moves, which would take hundreds of kilobytes for each call that a
// communicator remembers. An algorithm is a pure function, and the window holds kWindow moves: so a plan keeps what
// makes the moves, and each launch makes them again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/algorithm.hpp"
#include "core/emit.hpp"
#include "engine/validate.hpp"

namespace unisono::cclo {

/// Moves up to which a program is kept as it is.
inline constexpr std::size_t kMostKeptMoves = 128;

/// Allocates nothing. Not thread-safe.
class MoveStream {
 public:
  MoveStream() = default;
  MoveStream(const MoveStream&) = delete;
  MoveStream& operator=(const MoveStream&) = delete;

  /// Begins with the first move of a program without moves (CheckedProgram::made_by), which must live until the last
  /// `next`.
  void begin(const CheckedProgram& program);
  /// The next move, one of program.move_count. It stays where it is until kWindow more have been taken. Throws
  /// Error(kInternal) if the algorithm makes fewer than there were when it was examined, or too many in one step.
  const Move& next();

 private:
  static void put(void* context, const Move& move);

  /// When a step is made all moves before it have been taken, so kWindow of them stay.
  static constexpr std::size_t kPlaces = kWindow + kMovesPerStep;

  const CheckedProgram* program_ = nullptr;
  std::uint32_t steps_ = 0;
  std::uint32_t step_ = 0;   ///< the next one to be made
  std::uint32_t made_ = 0;   ///< moves
  std::uint32_t taken_ = 0;  ///< of these
  Emit emit_{EmitSink{}};
  std::array<Move, kPlaces> moves_;  ///< move n at n % kPlaces
};

}  // namespace unisono::cclo
