// Cutting a vector into rows of pieces, of which a rank has one in each row. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/powers.hpp"
#include "collectives/split.hpp"
#include "core/call.hpp"

namespace unisono::build {

/// A vector cut into rows, and each row into a piece for each of `shares` ranks, in order. With one row a rank's share
/// is one piece. With several, what has come of a row goes on while the next one comes.
class Rows {
 public:
  /// As many rows as the call's radix says; without one as few as make pieces short, and at most `most`.
  constexpr Rows(const Call& call, std::uint32_t shares, std::uint32_t most)
      : element_(element_bytes(call)),
        shares_(shares),
        rows_(call.radix >= 2 ? call.radix : rows_of(call.count * element_, shares, most)),
        split_(call.count, shares * rows_) {}

  constexpr std::uint32_t rows() const { return rows_; }
  /// Bytes before a piece, and its elements. The piece of share s in row r is r * shares + s.
  constexpr std::uint64_t begin(std::uint32_t piece) const { return split_.begin(piece) * element_; }
  constexpr std::uint64_t count(std::uint32_t piece) const { return split_.count(piece); }

  /// Calls `move(row, i)` for the moves of a step, if each row has `moves` of them; `row` is its first piece.
  template <class Move>
  constexpr void each_move(std::uint32_t step, std::uint32_t moves, Move move) const {
    std::uint32_t row = 0;
    std::uint32_t first = 0;
    each_round(step, rows_ * moves, 1, [&](std::uint32_t i) {
      while (i - first >= moves) {
        row += shares_;
        first += moves;
      }
      move(row, i - first);
    });
  }

 private:
  static constexpr std::uint64_t kPiece = 8192;  // bytes; shorter ones cost more in messages than they save

  static constexpr std::uint32_t rows_of(std::uint64_t bytes, std::uint32_t shares, std::uint32_t most) {
    std::uint32_t rows = 1;
    while (rows < most && bytes > kPiece * rows * shares) ++rows;
    return rows;
  }

  std::uint64_t element_;
  std::uint32_t shares_;
  std::uint32_t rows_;
  Split split_;
};

}  // namespace unisono::build
