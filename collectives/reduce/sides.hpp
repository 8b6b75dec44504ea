// What the algorithms of reduce share: operands, and the root between two sides. Freestanding.
#pragma once

#include "collectives/peers.hpp"

namespace unisono::build {

/// Where this rank's operand stands: in place concerns the root alone.
constexpr Place reduce_input(const Call& call) { return call.in_place && call.rank == call.root ? dst() : src(); }

/// The root's moves in a reduction that keeps rank order: its own operand, then from the right
/// `above` messages of rising rank intervals, then from the left `below` messages of falling ones:
///
///   b2 . (b1 . (((own . a1) . a2) . a3)) .
///
/// The second move reads what the first has kept, element by element, and needs no other order. The
/// arrivals have no full dependency, so both sides may come at any time.
template <class Above, class Below>
void fold_at_root(const Call& call, Emit& emit, std::uint32_t above, Above above_at, std::uint32_t below,
                  Below below_at) {
  if (above != 0 || (below == 0 && !call.in_place)) {
    Build move(call);
    move.take(reduce_input(call)).keep(dst()).count(call.count);
    arrive_from(move, emit, above, 0, above_at);
    emit(move);
  }
  if (below != 0) {
    Build move(call);
    move.take(above != 0 ? dst() : reduce_input(call)).arrival_first().keep(dst()).count(call.count);
    arrive_from(move, emit, below, 0, below_at);
    if (above != 0) move.stream_after(1);
    emit(move);
  }
}

}  // namespace unisono::build
