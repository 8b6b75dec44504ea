// Scattered all-gather: everybody sends everybody its block, each in a move of its own.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports), in
// the order of MPICH's scattered all-to-all. Cost: alpha + (P-1) n beta, n bytes a block.
//
// As the flat all-gather, which sends to all in one move. Sends go to r+1, r+2, ... and arrivals are awaited from r-1,
// r-2, ..., at the same distance: so peers have come as far, and no rank is everybody's first. Sends read the input,
// arrivals write different blocks; none waits for another.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allgather_scattered_steps(const Call& call) { return steps_for(call.size, 2); }

void allgather_scattered_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const Place own = input(call, call.rank * block);
  each_round(step, call.size, 2, [&](std::uint32_t s) {
    if (s + 1 == call.size) {  // the own block last: nobody waits for it
      if (!call.in_place) emit(Build(call).take(own).keep(dst(call.rank * block)).count(call.count));
      return;
    }
    const std::uint32_t from = minus(call.rank, s + 1, call.size);
    emit(Build(call).take(own).send(plus(call.rank, s + 1, call.size), 0).count(call.count));
    emit(Build(call).arrive(from, 0).keep(dst(from * block)).count(call.count));
  });
}

}  // namespace unisono::collectives
