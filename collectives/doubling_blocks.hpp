// Which blocks travel in a round of Bruck's all-gather. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::build {

/// What one rank sends in round k: blocks first .. first+count-1, cut where they pass from P-1 to 0.
/// The receiver means the same blocks, so both ends cut alike.
struct DoublingBlocks {
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t before_wrap;

  static constexpr DoublingBlocks sent_by(std::uint32_t rank, std::uint32_t k, std::uint32_t size) {
    const std::uint32_t have = std::uint32_t{1} << k;
    const std::uint32_t count = have < size - have ? have : size - have;
    return {rank, count, size - rank < count ? size - rank : count};
  }
  /// What `rank` receives in round k: its right neighbour at distance 2^k has sent it.
  static constexpr DoublingBlocks taken_by(std::uint32_t rank, std::uint32_t k, std::uint32_t size) {
    return sent_by(plus(rank, std::uint32_t{1} << k, size), k, size);
  }
  constexpr std::uint32_t after_wrap() const { return count - before_wrap; }
  constexpr std::uint32_t messages() const { return after_wrap() > 0 ? 2 : 1; }
};

/// Position of the first arrival of round k in a program that has `before` moves before its rounds, and
/// in each round first all sends, then all arrivals.
constexpr std::uint32_t first_arrival_of_round(std::uint32_t rank, std::uint32_t k, std::uint32_t size,
                                               std::uint32_t before) {
  std::uint32_t position = before;
  for (std::uint32_t j = 0; j < k; ++j) {
    position += DoublingBlocks::sent_by(rank, j, size).messages() + DoublingBlocks::taken_by(rank, j, size).messages();
  }
  return position + DoublingBlocks::sent_by(rank, k, size).messages();
}

/// Makes `move`, at position `here`, wait for all arrivals of the rounds before k and for move `own`,
/// which puts the rank's own block into its place.
constexpr void after_rounds(Build& move, std::uint32_t here, std::uint32_t rank, std::uint32_t k, std::uint32_t size,
                            std::uint32_t own, std::uint32_t before) {
  for (std::uint32_t j = 0; j < k; ++j) {
    const std::uint32_t arrival = first_arrival_of_round(rank, j, size, before);
    for (std::uint32_t i = 0; i < DoublingBlocks::taken_by(rank, j, size).messages(); ++i)
      move.after(here - arrival - i);
  }
  if (k > 0) move.after(here - own);
}

}  // namespace unisono::build
