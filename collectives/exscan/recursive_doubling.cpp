// Exclusive scan by doubling distances, for any number of ranks.
//
// Source: Hillis and Steele, "Data parallel algorithms", CACM 1986.
// Cost: ceil(log2 P) (alpha + n beta + 2 n gamma).
//
// e is the sum of the ranks just before this one, x its operand. Before round k, e covers 2^k - 1
// ranks, so func(e, x) is what rank + 2^k needs; the sum that arrives from rank - 2^k goes to the left
// of e. A rank whose e is complete sends func(e, x) to all that still need it, at once.
//
// Moves: send x; then for each round k: e = arrival . e, and send e . x. Both follow the e they read
// element by element. A send reads e while the next round wants to write the next e; under rendezvous
// that send completes only when its receiver listens, which must not depend on this rank's listening:
// so e alternates between dst and scratch, and round k waits for the send of round k-1 alone, whose
// receiver waits for sends of round k-2, and so on down to none. The last round writes dst. In place a
// copy of x is made first; the first e follows the copy element by element.
//
// Each pair exchanges one message, so one tag serves.
#include "collectives/exscan/exscan.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// Rounds in which the rank gets something: as many as there are powers of two up to its number.
constexpr std::uint32_t rounds(const Call& call) { return log2_ceil(call.rank + 1); }

// Powers of two that lead to a rank of the communicator.
constexpr std::uint32_t reach(const Call& call) { return log2_ceil(call.size - call.rank); }

// The operand is needed after the first result has begun to arrive.
constexpr bool copies_operand(const Call& call) { return call.in_place && call.rank > 0 && reach(call) > 0; }

}  // namespace

std::uint64_t exscan_recursive_doubling_scratch_bytes(const Call& call) {
  const std::uint64_t bytes = call.count * element_bytes(call);
  return (rounds(call) > 1 ? bytes : 0) + (copies_operand(call) ? bytes : 0);
}

namespace {

std::uint32_t rounds_of(const Call& call) { return 1 + rounds(call); }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t last = rounds(call);
  const std::uint32_t targets = reach(call);
  const bool copies = copies_operand(call);
  const std::uint64_t bytes = call.count * element_bytes(call);
  const Place operand = copies ? scratch(last > 1 ? bytes : 0) : input(call);

  if (s == 0) {
    if (copies) emit(Build(call).take(dst()).keep(operand).count(call.count));
    if (targets == 0) return;
    Build move(call);
    move.take(operand).count(call.count).stream_after(copies ? 1 : 0);
    send_to(move, emit, last == 0 ? targets : 1, 0,
            [&](std::uint32_t i) { return call.rank + (std::uint32_t{1} << i); });
    emit(move);
    return;
  }

  const auto e = [&](std::uint32_t round) { return (last - round) % 2 == 0 ? dst() : scratch(); };
  Build get(call);
  get.arrive(call.rank - (std::uint32_t{1} << (s - 1)), 0).keep(e(s)).count(call.count);
  if (s == 1) {
    get.stream_after(copies ? 2 : 0);
  } else {
    // Distances: the round before sent e . x if its target exists, and so did the one before that.
    const bool sent_before = s - 1 < targets;
    get.take(e(s - 1)).arrival_first().stream_after(sent_before ? 2 : 1);
    if (s >= 3 && s - 2 < targets) get.after(sent_before ? 3 : 2);
  }
  emit(get);

  const std::uint32_t first = s;
  const std::uint32_t end = s == last ? targets : (s + 1 < targets ? s + 1 : targets);
  if (first >= end) return;
  Build give(call);
  give.take(operand).with(e(s)).arrival_first().count(call.count).stream_after(1);
  send_to(give, emit, end - first, 0, [&](std::uint32_t i) { return call.rank + (std::uint32_t{1} << (first + i)); });
  emit(give);
}

}  // namespace

std::uint32_t exscan_recursive_doubling_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void exscan_recursive_doubling_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
