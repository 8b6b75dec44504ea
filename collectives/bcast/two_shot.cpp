// Two-shot broadcast: the root gives each rank a share of the vector, and each sends its own to all others.
//
// Source: both halves are one-round exchanges of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2
// (P-1 ports); together the broadcast of Barnett, Payne, van de Geijn and Watts, JPDC 1996. Cost: 2 alpha + (1 + 1/R) n
// beta with R rows.
//
// The root sends every byte once and receives none. A long vector is cut into rows: the root sends the last rank's
// share last, and all others wait for what that rank sends on, so it should be short. Every byte of dst is written by
// one arrival. Arrivals wait for nothing. A rank sends its piece in as many moves as there are others, beside taking
// theirs at the same distance: so its peers have come as far, and none is everybody's first.
#include "collectives/bcast/bcast.hpp"
#include "collectives/build.hpp"
#include "collectives/rows.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

Rows rows_of(const Call& call) { return {call, call.size - 1, 8}; }

// Of a row: the root's sends; another's own piece, and for each other rank a send and an arrival.
std::uint32_t moves_of(const Call& call) { return call.rank == call.root ? call.size - 1 : 2 * call.size - 3; }

}  // namespace

std::uint32_t bcast_two_shot_steps(const Call& call) {
  return call.size == 1 ? 0 : steps_for(rows_of(call).rows() * moves_of(call));
}

void bcast_two_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t shares = call.size - 1;
  const std::uint32_t own = minus(call.rank, call.root, call.size) - 1;  // not on the root
  const auto rank_of = [&](std::uint32_t share) { return plus(call.root, share + 1, call.size); };
  const Rows rows = rows_of(call);
  rows.each_move(step, moves_of(call), [&](std::uint32_t row, std::uint32_t i) {
    const auto place = [&](std::uint32_t share) { return dst(rows.begin(row + share)); };
    const auto count = [&](std::uint32_t share) { return rows.count(row + share); };
    Build move(call);
    if (call.rank == call.root) {
      emit(move.take(place(i)).send(rank_of(i), 0).count(count(i)));
    } else if (i == 0) {
      emit(move.arrive(call.root, 0).keep(place(own)).count(count(own)));
    } else if (i % 2 == 1) {
      const std::uint32_t to = plus(own, i / 2 + 1, shares);
      move.take(place(own)).send(rank_of(to), 1).count(count(own));
      emit(move.stream_after(i < kWindow ? i : 0));  // further back all have completed
    } else {
      const std::uint32_t from = minus(own, i / 2, shares);
      emit(move.arrive(rank_of(from), 1).keep(place(from)).count(count(from)));
    }
  });
}

}  // namespace unisono::collectives
