// Pairwise all-to-allv: one exchange at a time, everybody with another partner.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005 (its pairwise all-to-all), with counts. Cost: (P-1) alpha + (P-1) m beta, m bytes
// in the largest block.
//
// Schedule and waiting are those of pairwise all-to-all. What a rank sends to a peer is as long as what
// that peer receives from it, so an empty block is neither sent nor awaited.
//
// In place the blocks of two partners are equally long, and what arrives lands in scratch until the
// exchange is done. A rank sees its own counts only, and they differ between ranks; so the size of
// scratch is the count of the call, a bound of all blocks that the ranks have agreed on. There is one
// landing block: an arrival waits for the copy of the exchange before, which waits for its own exchange
// in an earlier round; so waiting ends.
#include "collectives/alltoallv/alltoallv.hpp"
#include "collectives/alltoallv/layout.hpp"
#include "collectives/build.hpp"
#include "collectives/partners.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool alltoallv_pairwise_admits(const Call& call) { return !call.in_place || call.count != kUnknownCount; }

std::uint64_t alltoallv_pairwise_scratch_bytes(const Call& call) {
  return call.in_place && call.size > 1 ? call.count * element_bytes(call) : 0;
}

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const AlltoallvLayout layout(call);
  if (call.in_place) {
    const std::uint32_t partner = partner_in_round(call.rank, s, call.size);
    if (partner == call.rank) return;
    const bool first = emit.moves() == 0;
    const std::uint32_t count = layout.recv_count(partner);
    const Place mine = layout.target(partner);
    // Sends wait for the arrival of the exchange before, arrivals for its copy.
    emit(Build(call).take(mine).send(partner, s).count_at(count).after(first ? 0 : 2));
    emit(Build(call).arrive(partner, s).keep(scratch()).count_at(count).after(first ? 0 : 2));
    emit(Build(call).take(scratch()).keep(mine).count_at(count).after(1).after(2));
    return;
  }
  if (s == 0) {
    emit(Build(call)
             .take(layout.source(call.rank))
             .keep(layout.target(call.rank))
             .count_at(layout.recv_count(call.rank)));
    return;
  }
  const Exchange with = exchange_in_step(call.rank, s, call.size);
  const std::uint32_t wait = s > 1 ? 1 : 0;
  emit(Build(call).take(layout.source(with.to)).send(with.to, s).count_at(layout.send_count(with.to)).after(wait));
  emit(Build(call).arrive(with.from, s).keep(layout.target(with.from)).count_at(layout.recv_count(with.from)));
}

}  // namespace

std::uint32_t alltoallv_pairwise_steps(const Call& call) { return steps_for(rounds_of(call), 3); }

void alltoallv_pairwise_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 3, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
