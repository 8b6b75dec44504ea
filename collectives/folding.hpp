// Folding any number of parties to a power of two, as recursive halving and doubling want it.
// Freestanding.
#pragma once

#include <cstdint>

#include "collectives/powers.hpp"

namespace unisono::build {

/// The part of one party in an exchange among `parties` of them, 0 .. parties-1.
///
/// With 2^rounds the greatest power of two within `parties` and `extra` the parties beyond it, the
/// first 2 extra parties pair up: the even one hands its operand to the odd one and rests, and gets the
/// result from it in the end. The 2^rounds that remain are renumbered in order, so that each virtual
/// number stands for one or two consecutive parties and order of operands is kept
/// (Thakur, Rabenseifner and Gropp, IJHPCA 2005).
struct Folding {
  std::uint32_t rounds;          ///< exchanges of each virtual party
  std::uint32_t extra;           ///< parties that rest
  bool rests;                    ///< this one does; its partner is party + 1
  bool hosts;                    ///< it works for party - 1 as well
  std::uint32_t virtual_number;  ///< meaningless for a party that rests

  static constexpr Folding of(std::uint32_t party, std::uint32_t parties) {
    const std::uint32_t rounds = log2_floor(parties);
    const std::uint32_t extra = parties - (std::uint32_t{1} << rounds);
    const bool paired = party < 2 * extra;
    return {rounds, extra, paired && party % 2 == 0, paired && party % 2 == 1, paired ? party / 2 : party - extra};
  }

  /// The party that has a virtual number.
  constexpr std::uint32_t party(std::uint32_t number) const { return number < extra ? 2 * number + 1 : number + extra; }
};

}  // namespace unisono::build
