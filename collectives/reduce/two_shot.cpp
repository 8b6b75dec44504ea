// Two-shot reduction: every rank but the root folds a share of the vector from all, and sends it to the root.
//
// Source: both halves are one-round exchanges of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2
// (P-1 ports); together the reduction of Rabenseifner, 1997. Cost: 2 alpha + (1 + 1/R) n beta + n gamma with R rows.
//
// The root folds nothing, so it receives every byte of the result once and no more. A call may ask for rows, so that
// results come while the next row is folded. The message of a rank to itself puts its own operand at its place in the
// fold, which is in rank order.
//
// In place the root's vector is overwritten by the result, element by element, so it has been read by then. A fold goes
// to the root as it is made, so a row of the root must fit in the window: it has the arrival in it, whatever its sends
// wait for.
#include "collectives/build.hpp"
#include "collectives/peers.hpp"
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/sides.hpp"
#include "collectives/rows.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// One, unless the call asks for more: three have been slower on eight engines.
Rows rows_of(const Call& call) { return {call, call.size - 1, 1}; }

// Of a row: a send to each that folds, itself included; then the root's arrivals, or the fold.
std::uint32_t moves_of(const Call& call) { return call.rank == call.root ? 2 * (call.size - 1) : call.size; }

}  // namespace

bool reduce_two_shot_admits(const Call& call) { return call.size - 1 <= kWindow / 2; }

std::uint32_t reduce_two_shot_steps(const Call& call) {
  if (call.size == 1) return call.in_place ? 0 : 1;
  return steps_for(rows_of(call).rows() * moves_of(call));
}

void reduce_two_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  if (call.size == 1) {
    emit(Build(call).take(reduce_input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t shares = call.size - 1;
  const bool at_root = call.rank == call.root;
  const std::uint32_t own = at_root ? shares - 1 : minus(call.rank, call.root, call.size) - 1;
  const auto rank_of = [&](std::uint32_t share) { return plus(call.root, share + 1, call.size); };
  const Rows rows = rows_of(call);
  rows.each_move(step, moves_of(call), [&](std::uint32_t row, std::uint32_t i) {
    Build move(call);
    if (i < shares) {  // the own share last
      const std::uint32_t share = plus(own, i + 1, shares);
      move.take(reduce_input(call) + rows.begin(row + share)).send(rank_of(share), 0);
      emit(move.count(rows.count(row + share)));
    } else if (at_root) {
      const std::uint32_t share = i - shares;
      emit(move.arrive(rank_of(share), 1).keep(dst(rows.begin(row + share))).count(rows.count(row + share)));
    } else {
      arrive_from(move, emit, call.size, 0, [](std::uint32_t rank) { return rank; });
      emit(move.send(call.root, 1).count(rows.count(row + own)));
    }
  });
}

}  // namespace unisono::collectives
