// Programs for groups that are no ranges of ranks. Freestanding.
//
// Algorithms of two levels are written for groups that are ranges. Of other groups they see positions (core/groups.hpp)
// in place of ranks, in which groups are ranges again; the peers of their moves are named back. So operands are
// combined in order of position. The blocks of such a group are no range of memory: collectives whose blocks have equal
// lengths run as their forms with a count for each rank, which may stand anywhere; what these would read from params is
// known here, and written into the moves.
#pragma once

#include <cstdint>
#include <type_traits>

#include "collectives/algorithm.hpp"
#include "collectives/group_params.hpp"
#include "core/call.hpp"
#include "core/emit.hpp"
#include "core/groups.hpp"

namespace unisono::build {

/// Whether the call has groups that are no ranges of ranks.
constexpr bool is_scattered(const Call& call) { return call.groups != nullptr && call.groups->rank_at != nullptr; }

/// Whether the algorithm combines this call's operands in order of rank.
constexpr bool keeps_order(const Algorithm& algorithm, const Call& call) {
  if (algorithm.switched) return algorithm.ordered && !(call.tree == nullptr) && pointer_to(call.tree)->in_rank_order;
  return algorithm.ordered && !(algorithm.grouped && is_scattered(call));
}

/// The word of params in which this rank's own count stands, in algorithms with a count for each rank.
constexpr std::uint32_t own_count_word(const Algorithm& algorithm, const Call& call) {
  return algorithm.grouped && is_scattered(call) ? call.groups->position_of[call.rank] : call.rank;
}

/// For algorithms that need groups that are ranges.
inline bool admits_ranges(const Call& call) { return !is_scattered(call); }

/// The call by positions.
inline Call by_position(Call call) {
  call.rank = call.groups->position_of[call.rank];
  call.root = call.groups->position_of[call.root];
  call.by_position = true;
  return call;
}

/// A call whose blocks have equal lengths as one in which each has its own.
inline Call by_position_with_counts(Call call) {
  call = by_position(call);
  call.collective = call.collective == Collective::kGather      ? Collective::kGatherv
                    : call.collective == Collective::kScatter   ? Collective::kScatterv
                    : call.collective == Collective::kAllgather ? Collective::kAllgatherv
                                                                : Collective::kReduceScatterv;
  call.count *= call.size;
  return call;
}

/// What a word of params would be, if a call by_position_with_counts() had them (GroupParams).
constexpr std::uint64_t word_with_counts(const Call& call, std::uint64_t word) {
  const std::uint64_t size = call.size;
  const std::uint64_t count = call.count / size;
  const std::uint64_t block = count * element_bytes(call);
  if (word < size) return count;
  if (word < 2 * size) return call.groups->rank_at[word - size] * block;
  if (word < 3 * size) return (word - 2 * size) * block;
  const auto group = static_cast<std::uint32_t>(word - 3 * size);
  return group < call.groups->groups ? Levels(call).members(group) * count : call.count;
}

/// While it lives, code that emits moves names peers by position. Refers to the call, which is by positions.
class NamedByPosition {
 public:
  NamedByPosition(Emit& emit, const Call& call, bool with_counts = false)
      : emit_(emit), rewrite_{&call, with_counts ? move_with_counts : move_of, peer_of} {
    emit_.rewrite_by(&rewrite_);
  }
  ~NamedByPosition() { emit_.rewrite_by(nullptr); }
  NamedByPosition(const NamedByPosition&) = delete;
  NamedByPosition& operator=(const NamedByPosition&) = delete;

 private:
  static std::uint32_t peer_of(const void* context, std::uint32_t peer) {
    return static_cast<const Call*>(context)->groups->rank_at[peer];
  }
  static void move_of(const void* context, Move& move) {
    if (move.op1.kind == OperandKind::kArrival && move.arrival.mode == PeerMode::kRank) {
      move.arrival.peer = peer_of(context, move.arrival.peer);
    }
    if (move.remote.kind == RemoteKind::kMessage && move.remote.mode == PeerMode::kRank) {
      move.remote.peer = peer_of(context, move.remote.peer);
    }
  }
  static void move_with_counts(const void* context, Move& move) {
    const Call& call = *static_cast<const Call*>(context);
    move_of(context, move);
    if (move.count_indirect) {
      move.count = word_with_counts(call, move.count / 8);
      move.count_indirect = false;
    }
    for (Operand* operand : {&move.op0, &move.op1, &move.local}) {
      if (!operand->indirect) continue;
      operand->offset = word_with_counts(call, operand->offset / 8);
      operand->indirect = false;
    }
  }

  Emit& emit_;
  EmitRewrite rewrite_;
};

// The functions of an algorithm (algorithm.hpp), from those that are written for ranges. `Counts...` are those of the
// form with a length for each rank, where blocks have equal ones.

template <auto Steps>
std::uint32_t steps_by_position(const Call& call) {
  return is_scattered(call) ? Steps(by_position(call)) : Steps(call);
}
template <auto Step>
void step_by_position(const Call& call, std::uint32_t s, Emit& emit) {
  if (!is_scattered(call)) return Step(call, s, emit);
  const Call moved = by_position(call);
  const NamedByPosition named(emit, moved);
  Step(moved, s, emit);
}
template <auto ScratchBytes>
std::uint64_t scratch_by_position(const Call& call) {
  return is_scattered(call) ? ScratchBytes(by_position(call)) : ScratchBytes(call);
}
template <auto FillParams>
void fill_by_position(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  FillParams(is_scattered(call) ? by_position(call) : call, arguments, words);
}

template <auto Steps, auto CountsSteps>
std::uint32_t steps_with_counts(const Call& call) {
  return is_scattered(call) ? CountsSteps(by_position_with_counts(call)) : Steps(call);
}
template <auto Step, auto CountsStep>
void step_with_counts(const Call& call, std::uint32_t s, Emit& emit) {
  if (!is_scattered(call)) return Step(call, s, emit);
  const Call moved = by_position_with_counts(call);
  const NamedByPosition named(emit, moved, true);
  CountsStep(moved, s, emit);
}
template <auto ScratchBytes, auto CountsScratchBytes>
std::uint64_t scratch_with_counts(const Call& call) {
  if (is_scattered(call)) return CountsScratchBytes(by_position_with_counts(call));
  // By its type: comparing a function's address is no constant expression where sanitizers instrument it.
  if constexpr (std::is_null_pointer_v<decltype(ScratchBytes)>) {
    return 0;
  } else {
    return ScratchBytes(call);
  }
}
}  // namespace unisono::build
