// Bruck's all-to-all: blocks hop by powers of two towards their rank.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems", IEEE TPDS 1997. Cost: ceil(log2 P) alpha +
// ceil(log2 P) P/2 n beta, n bytes a block.
//
// A block for rank r+j has to go the distance j; in round k all blocks whose j has bit k set go the
// distance 2^k together. The input is first turned into scratch so that block j stands at place j. The
// blocks of round k are runs of 2^k places, one run in every 2^(k+1). A round packs its runs, sends
// them as one message to r+2^k, receives one from r-2^k and unpacks. Blocks whose j has no higher bit
// (the first run) have arrived at their rank: they come from rank r-j and go straight to dst.
//
// Scratch: P places, then the outgoing message, then the incoming one, at most P/2 blocks each.
//
// Order: rounds follow each other strictly, but for the send. Packing waits for everything of earlier
// rounds (places are filled, the outgoing message has left), the send for the packing, the arrival for
// everything before it but the send of its own round (the incoming area has been unpacked, in place the
// input has been read), unpacking for the arrival. No arrival waits for a send of its own round, so
// waiting goes back round by round. Dependencies name the 32 moves before; the window orders the rest.
#include "collectives/alltoall/alltoall.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

/// The runs of blocks that travel in one round.
struct Round {
  std::uint32_t size;
  std::uint32_t run;  ///< blocks of a whole run, and the distance they go

  constexpr Round(std::uint32_t ranks, std::uint32_t k) : size(ranks), run(std::uint32_t{1} << k) {}
  constexpr std::uint32_t place(std::uint32_t i) const { return (2 * i + 1) * run; }
  constexpr std::uint32_t runs() const { return (size + run - 1) / (2 * run); }
  constexpr std::uint32_t blocks_of(std::uint32_t i) const {
    return size - place(i) < run ? size - place(i) : run;  // the last run may be cut
  }
  constexpr std::uint32_t blocks() const { return (runs() - 1) * run + blocks_of(runs() - 1); }
  /// Pack each run; send; arrive; the first run block by block to dst, the others to their places.
  constexpr std::uint32_t moves() const { return runs() + 2 + blocks_of(0) + runs() - 1; }
};

constexpr std::uint32_t kTurn = 2;  // moves that turn the input

/// Waits for all moves at `distance` or further back that the program has.
void after_all(Build& move, const Emit& emit, std::uint32_t distance) {
  for (; distance <= kWindow && distance <= emit.moves(); ++distance) move.after(distance);
}

void emit_of_round(const Call& call, std::uint32_t k, std::uint32_t i, Emit& emit) {
  const Round round(call.size, k);
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint64_t outgoing = call.size * block;
  const std::uint64_t incoming = outgoing + call.size / 2 * block;
  const std::uint32_t runs = round.runs();
  Build move(call);
  if (i < runs) {  // pack
    move.take(scratch(round.place(i) * block)).keep(scratch(outgoing + block * i * round.run));
    move.count(round.blocks_of(i) * call.count);
    after_all(move, emit, i + 1);
    emit(move);
    return;
  }
  i -= runs;
  if (i == 0) {
    move.take(scratch(outgoing)).send(plus(call.rank, round.run, call.size), k).count(round.blocks() * call.count);
    after_all(move, emit, 1);
    emit(move);
    return;
  }
  if (i == 1) {
    move.arrive(minus(call.rank, round.run, call.size), k).keep(scratch(incoming)).count(round.blocks() * call.count);
    after_all(move, emit, 2);
    emit(move);
    return;
  }
  i -= 2;  // unpack
  if (i < round.blocks_of(0)) {
    const std::uint32_t from = minus(call.rank, round.run + i, call.size);
    move.take(scratch(incoming + i * block)).keep(dst(from * block)).count(call.count);
    emit(move.after(i + 1));
    return;
  }
  const std::uint32_t n = i - round.blocks_of(0) + 1;
  move.take(scratch(incoming + block * n * round.run)).keep(scratch(round.place(n) * block));
  move.count(round.blocks_of(n) * call.count);
  emit(move.after(i + 1));
}

}  // namespace

std::uint64_t alltoall_bruck_scratch_bytes(const Call& call) {
  return call.size == 1 ? 0 : (call.size + call.size / 2 * 2) * call.count * element_bytes(call);
}

std::uint32_t alltoall_bruck_steps(const Call& call) {
  std::uint32_t moves = kTurn + 1;  // and the rank's own block
  for (std::uint32_t k = 0; k < log2_ceil(call.size); ++k) moves += Round(call.size, k).moves();
  return steps_for(moves);
}

void alltoall_bruck_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint64_t own = call.rank * block;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  std::uint32_t i = s * static_cast<std::uint32_t>(kMovesPerStep);
  std::uint32_t left = static_cast<std::uint32_t>(kMovesPerStep);
  for (; i < kTurn && left > 0; ++i, --left) {
    const std::uint32_t count = i == 0 ? size - call.rank : call.rank;
    const Place from = i == 0 ? input(call) + own : input(call);
    emit(Build(call).take(from).keep(scratch(i == 0 ? 0 : (size - call.rank) * block)).count(count * call.count));
  }
  i -= kTurn;
  for (std::uint32_t k = 0; k < log2_ceil(size); ++k) {
    const std::uint32_t moves = Round(size, k).moves();
    for (; i < moves && left > 0; ++i, --left) emit_of_round(call, k, i, emit);
    if (left == 0) return;
    i -= moves;
  }
  if (i == 0 && !call.in_place) emit(Build(call).take(input(call) + own).keep(dst(own)).count(call.count));
}

}  // namespace unisono::collectives
