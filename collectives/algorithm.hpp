// What an algorithm is. Freestanding.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/words.hpp"
#include "core/call.hpp"
#include "core/emit.hpp"

namespace unisono {

/// One algorithm of one collective: a pure function from a call to the moves of its rank.
///
/// Generation is resumable: `step(call, s, emit)` for s = 0 .. steps(call)-1 emits the program in
/// order, at most kMovesPerStep moves a step, and keeps no state between steps, so that a small
/// controller can interleave several calls.
struct Algorithm {
  Collective collective;
  const char* name;   ///< as users write it, unique within the collective
  Words source;       ///< where the algorithm is from
  Words restriction;  ///< in words; empty if it admits every call
  Words cost;         ///< in alpha (latency), beta (per byte), gamma (per reduced byte), P, n bytes;
                      ///< sigma: all ranks enter a direct call
  Words summary;      ///< one sentence
  /// Operands are combined in rank order with no reassociation across ranks out of order, so the
  /// algorithm would be right for a non-commutative function too.
  bool ordered;
  std::uint32_t (*steps)(const Call& call);
  void (*step)(const Call& call, std::uint32_t s, Emit& emit);
  /// Bytes of the scratch region this rank needs; null for none.
  std::uint64_t (*scratch_bytes)(const Call& call) = nullptr;
  /// Whether the algorithm can serve the call; null for always. Looks only at what all ranks share.
  bool (*admits)(const Call& call) = nullptr;
  /// 64-bit words of the params region; null for none.
  std::uint32_t (*params_words)(const Call& call) = nullptr;
  /// Fills them from the call's counts and displacements (elements) on this rank.
  void (*fill_params)(const Call& call, const VectorArguments& arguments, std::uint64_t* words) = nullptr;
  /// Its moves reach src and dst of other ranks, so it admits direct calls only (`Call::direct`).
  bool direct = false;
  /// If it takes a radix (`Call::radix`), that of its name alone, not as in `knomial:8`; 1 if this depends on the call.
  std::uint8_t default_radix = 0;
  /// It looks at groups. Of groups that are no ranges of ranks it may combine operands in order of position.
  bool grouped = false;
  /// Its moves are those of members and of switches (`Call::tree`), in the order of the tree.
  bool switched = false;
};

/// All algorithms, grouped by collective in order of Collective's values. The position of an
/// algorithm in this table, plus one, is its number in a call descriptor.
std::span<const Algorithm> algorithms();

/// The table position of an algorithm, or -1.
int find_algorithm(Collective collective, const char* name);

/// Table position of the algorithm that serves `call` when the user names none. Depends only on what
/// all ranks share. -1 if no algorithm admits the call.
int choose_algorithm(const Call& call);

}  // namespace unisono
