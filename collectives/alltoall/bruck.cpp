// Bruck's all-to-all: blocks hop by powers of the radix k towards their rank.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems", IEEE TPDS 1997. Cost: ceil(log_k P) alpha +
// ceil(log_k P) P (k-1)/k n beta, n bytes a block, if a rank has k-1 ports; k is 2 if none is given.
//
// A block for rank r+j has to go the distance j; in round q all blocks whose j has the digit d > 0 at
// place q, to the base k, go the distance d k^q together: the hop d of the round. The input is first
// turned into scratch so that block j, but for the rank's own, stands at place j. The blocks of a hop are runs of k^q
// places, one run in every k^(q+1). A round packs the runs of all its hops, sends them as one message each to r + d
// k^q, receives one each from r - d k^q and unpacks. Blocks whose j has no higher digit (the first run of a hop) have
// arrived at their rank: they come from rank r-j and go straight to dst.
//
// Scratch: P places, then the outgoing messages of a round, then the incoming ones: at most P - P/k
// blocks each, rounded down.
//
// Order: rounds follow each other strictly, but for the sends. Packing waits for everything of earlier
// rounds (places are filled, the outgoing messages have left), sends for the packing, arrivals for
// everything before the sends of their own round (the incoming area has been unpacked, in place the
// input has been read), unpacking for its arrival. No arrival waits for a send of its own round, so
// waiting goes back round by round; sends and arrivals alternate, so that the window, too, only holds
// an arrival behind sends that other ranks listen to before. Dependencies name the 32 moves before; the
// window orders the rest.
#include "collectives/alltoall/alltoall.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/radix.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUsualRadix = 2;

/// The runs of blocks that travel in one hop.
struct Hop {
  std::uint32_t size;
  std::uint32_t radix;
  std::uint32_t run;    ///< blocks of a whole run
  std::uint32_t digit;  ///< times `run` is the distance they go

  constexpr std::uint32_t distance() const { return digit * run; }
  constexpr std::uint32_t place(std::uint32_t i) const { return (i * radix + digit) * run; }
  constexpr std::uint32_t runs() const { return ((size - 1) / run - digit) / radix + 1; }
  constexpr std::uint32_t blocks_of(std::uint32_t i) const {
    return size - place(i) < run ? size - place(i) : run;  // the last run may be cut
  }
  constexpr std::uint32_t blocks() const { return (runs() - 1) * run + blocks_of(runs() - 1); }
  /// The first run block by block to dst, the others to their places.
  constexpr std::uint32_t unpacking() const { return blocks_of(0) + runs() - 1; }
};

/// All hops of a round.
struct Round {
  std::uint32_t size;
  std::uint32_t radix;
  std::uint32_t run;
  std::uint32_t hops;

  constexpr Round(const Call& call, std::uint32_t q)
      : size(call.size), radix(radix_of(call, kUsualRadix)), run(power_of(radix, q)), hops((size - 1) / run) {
    if (hops > radix - 1) hops = radix - 1;
  }
  constexpr Hop hop(std::uint32_t n) const { return {size, radix, run, n + 1}; }
  constexpr std::uint32_t packing() const {
    std::uint32_t moves = 0;
    for (std::uint32_t n = 0; n < hops; ++n) moves += hop(n).runs();
    return moves;
  }
  constexpr std::uint32_t moves() const {
    std::uint32_t moves = packing() + 2 * hops;
    for (std::uint32_t n = 0; n < hops; ++n) moves += hop(n).unpacking();
    return moves;
  }
};

constexpr std::uint32_t kTurn = 2;  // moves that turn the input

std::uint32_t rounds_of(const Call& call) { return log_ceil(call.size, radix_of(call, kUsualRadix)); }

/// Blocks that leave in a round, at most: in each k places there is one that stays.
std::uint32_t most_leave(const Call& call) {
  const std::uint32_t radix = radix_of(call, kUsualRadix);
  return call.size - (call.size + radix - 1) / radix;
}

/// Waits for all moves at `distance` or further back that the program has.
void after_all(Build& move, const Emit& emit, std::uint32_t distance) {
  for (; distance <= kWindow && distance <= emit.moves(); ++distance) move.after(distance);
}

void emit_of_round(const Call& call, const Round& round, std::uint32_t q, std::uint32_t i, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint64_t outgoing = call.size * block;
  const std::uint64_t incoming = outgoing + most_leave(call) * block;
  Build move(call);
  const std::uint32_t packing = round.packing();
  std::uint64_t ahead = 0;  // bytes of the hops before, in the outgoing or incoming area
  if (i < packing) {
    std::uint32_t n = 0;
    std::uint32_t left = i;
    for (; left >= round.hop(n).runs(); ++n) {
      left -= round.hop(n).runs();
      ahead += round.hop(n).blocks() * block;
    }
    const Hop hop = round.hop(n);
    move.take(scratch(hop.place(left) * block)).keep(scratch(outgoing + ahead + block * left * hop.run));
    move.count(hop.blocks_of(left) * call.count);
    after_all(move, emit, i + 1);
    emit(move);
    return;
  }
  i -= packing;
  if (i < 2 * round.hops) {
    const std::uint32_t n = i / 2;
    for (std::uint32_t before = 0; before < n; ++before) ahead += round.hop(before).blocks() * block;
    const Hop hop = round.hop(n);
    const std::uint32_t tag = q * (round.radix - 1) + n;
    move.count(hop.blocks() * call.count);
    if (i % 2 == 0) {
      move.take(scratch(outgoing + ahead)).send(plus(call.rank, hop.distance(), call.size), tag);
    } else {
      move.arrive(minus(call.rank, hop.distance(), call.size), tag).keep(scratch(incoming + ahead));
    }
    after_all(move, emit, i + 1);  // all before the first send
    emit(move);
    return;
  }
  i -= 2 * round.hops;
  std::uint32_t n = 0;
  std::uint32_t left = i;
  for (; left >= round.hop(n).unpacking(); ++n) {
    left -= round.hop(n).unpacking();
    ahead += round.hop(n).blocks() * block;
  }
  const Hop hop = round.hop(n);
  const std::uint32_t since = i + 2 * (round.hops - n) - 1;  // the arrival of the hop
  if (left < hop.blocks_of(0)) {
    const std::uint32_t from = minus(call.rank, hop.distance() + left, call.size);
    move.take(scratch(incoming + ahead + left * block)).keep(dst(from * block)).count(call.count);
    emit(move.after(since));
    return;
  }
  const std::uint32_t run = left - hop.blocks_of(0) + 1;
  move.take(scratch(incoming + ahead + block * run * hop.run)).keep(scratch(hop.place(run) * block));
  move.count(hop.blocks_of(run) * call.count);
  emit(move.after(since));
}

}  // namespace

std::uint64_t alltoall_bruck_scratch_bytes(const Call& call) {
  return call.size == 1 ? 0 : (call.size + most_leave(call) * 2) * call.count * element_bytes(call);
}

std::uint32_t alltoall_bruck_steps(const Call& call) {
  std::uint32_t moves = kTurn + 1;  // and the rank's own block
  for (std::uint32_t q = 0; q < rounds_of(call); ++q) moves += Round(call, q).moves();
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
    const std::uint32_t count = i == 0 ? size - call.rank - 1 : call.rank;  // the own block goes nowhere
    const Place from = i == 0 ? input(call) + own + block : input(call);
    emit(Build(call).take(from).keep(scratch((i == 0 ? 1 : size - call.rank) * block)).count(count * call.count));
  }
  i -= kTurn;
  for (std::uint32_t q = 0; q < rounds_of(call); ++q) {
    const Round round(call, q);
    const std::uint32_t moves = round.moves();
    for (; i < moves && left > 0; ++i, --left) emit_of_round(call, round, q, i, emit);
    if (left == 0) return;
    i -= moves;
  }
  if (i == 0 && !call.in_place) emit(Build(call).take(input(call) + own).keep(dst(own)).count(call.count));
}

}  // namespace unisono::collectives
