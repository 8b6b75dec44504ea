// Pairwise all-to-all: one exchange at a time, everybody with another partner.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: (P-1) alpha + (P-1) n beta, n bytes a block.
//
// In step s a rank exchanges with rank XOR s if P is a power of two, else sends to r+s and receives
// from r-s. A send waits for the arrival of the step before, which keeps one exchange at a time on the
// network; an arrival waits for nothing, so the waiting goes back step by step and ends.
//
// In place a block is read and written by the same exchange, so ranks must meet in pairs: partners p
// with r + p = s (mod P) do, for any P. What arrives lands in one of two blocks of scratch and is
// copied to dst when both halves of the exchange are done. An arrival waits for the copy that frees its
// landing block, two exchanges before; that copy waits for its own exchange only, whose partner is in
// the same round. Rounds are the same everywhere, so waiting goes back round by round.
#include "collectives/alltoall/alltoall.hpp"
#include "collectives/build.hpp"
#include "collectives/partners.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t alltoall_pairwise_scratch_bytes(const Call& call) {
  return call.in_place && call.size > 1 ? 2 * call.count * element_bytes(call) : 0;
}

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint32_t done = emit.moves();

  if (call.in_place) {
    const std::uint32_t partner = partner_in_round(call.rank, s, call.size);
    if (partner == call.rank) return;
    const std::uint32_t exchange = done / 3;  // of this rank: it sits out the round with itself
    const Place mine = dst(partner * block);
    const Place landing = scratch(exchange % 2 * block);
    Build send(call);
    send.take(mine).send(partner, s).count(call.count);
    if (exchange > 0) send.after(2);  // arrival of the exchange before
    emit(send);
    Build arrive(call);
    arrive.arrive(partner, s).keep(landing).count(call.count);
    if (exchange > 1) arrive.after(5);  // copy of the exchange before that
    emit(arrive);
    emit(Build(call).take(landing).keep(mine).count(call.count).after(1).after(2));
    return;
  }

  if (s == 0) {
    emit(Build(call).take(input(call) + call.rank * block).keep(dst(call.rank * block)).count(call.count));
    return;
  }
  const Exchange with = exchange_in_step(call.rank, s, call.size);
  Build send(call);
  send.take(input(call) + with.to * block).send(with.to, s).count(call.count);
  if (s > 1) send.after(1);
  emit(send);
  emit(Build(call).arrive(with.from, s).keep(dst(with.from * block)).count(call.count));
}

}  // namespace

std::uint32_t alltoall_pairwise_steps(const Call& call) { return steps_for(rounds_of(call), 3); }

void alltoall_pairwise_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 3, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
