// Two-shot all-reduce: everybody sends everybody its share of the vector, folds its own, and sends the result to all.
//
// Source: both halves are one-round exchanges of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2
// (P-1 ports); together the reduce-scatter and all-gather of Rabenseifner, 1997. Cost: 2 alpha + 2 n (P-1)/P beta + n
// (P-1)/P gamma.
//
// Two rounds, whatever P, and no more bytes than any other: where a network takes messages from many peers at once, as
// cheap as the ring and as quick as a tree of two levels. The message of a rank to itself puts its own share at its
// place in the fold. A call may ask for rows, one of which is sent on while the next is folded.
//
// In place a piece is overwritten by the result that contains it, element by element, so it has been read by then;
// nothing else touches it. Arrivals wait for nothing. Folding and sending the result are two moves: a fold that waited
// until another rank listens would wait for that rank's fold, which is the first to listen there. The first fold must
// stand in the window with all that is sent before it. Results are sent beside taking another's at the same distance,
// so peers have come as far, and none is everybody's first.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"
#include "collectives/peers.hpp"
#include "collectives/rows.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// One, unless the call asks for more: the window does not hold the moves of two.
Rows rows_of(const Call& call) { return {call, call.size, 1}; }

// Of a row: a send to each rank, itself included; the fold; for each other rank a send and an arrival.
std::uint32_t moves_of(const Call& call) { return 3 * call.size - 1; }

}  // namespace

bool allreduce_two_shot_admits(const Call& call) { return call.size < kWindow; }

std::uint32_t allreduce_two_shot_steps(const Call& call) {
  if (call.size == 1) return call.in_place ? 0 : 1;
  return steps_for(rows_of(call).rows() * moves_of(call));
}

void allreduce_two_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint32_t rank = call.rank;
  if (size == 1) {
    emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const Rows rows = rows_of(call);
  rows.each_move(step, moves_of(call), [&](std::uint32_t row, std::uint32_t i) {
    const auto place = [&](std::uint32_t share) { return dst(rows.begin(row + share)); };
    const auto count = [&](std::uint32_t share) { return rows.count(row + share); };
    Build move(call);
    if (i < size) {  // the own share last
      const std::uint32_t to = plus(rank, i + 1, size);
      emit(move.take(input(call) + rows.begin(row + to)).send(to, 0).count(count(to)));
      return;
    }
    if (i == size) {
      arrive_from(move, emit, size, 0, [](std::uint32_t from) { return from; });
      emit(move.keep(place(rank)).count(count(rank)));
      return;
    }
    const std::uint32_t back = i - size;  // to the fold
    if (back % 2 == 1) {
      move.take(place(rank)).send(plus(rank, back / 2 + 1, size), 1).count(count(rank));
      emit(move.stream_after(back < kWindow ? back : 0));  // further back all have completed
    } else {
      const std::uint32_t from = minus(rank, back / 2, size);
      emit(move.arrive(from, 1).keep(place(from)).count(count(from)));
    }
  });
}

}  // namespace unisono::collectives
