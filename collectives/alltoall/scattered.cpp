// Scattered all-to-all: all messages at once.
//
// Source: MPICH's scattered all-to-all (staggered non-blocking messages). Cost: (P-1) alpha +
// (P-1) n beta, n bytes a block; the latencies overlap.
//
// Sends go to r+1, r+2, ... and arrivals are awaited from r-1, r-2, ..., so that no rank is everybody's
// first. None waits for another: sends read the input, arrivals write different blocks. The window
// keeps 16 exchanges in flight; the rank that is furthest behind can always go on, because those it
// exchanges with have come as far.
//
// In place, dst is first copied to scratch whole; sends read the copy, and they and the arrivals wait
// for that one local move.
#include "collectives/alltoall/alltoall.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t alltoall_scattered_scratch_bytes(const Call& call) {
  return call.in_place && call.size > 1 ? call.size * call.count * element_bytes(call) : 0;
}

std::uint32_t alltoall_scattered_steps(const Call& call) { return steps_for(2 * call.size); }

void alltoall_scattered_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint32_t exchanges = static_cast<std::uint32_t>(kMovesPerStep) / 2;
  for (std::uint32_t s = step * exchanges; s < size && s < (step + 1) * exchanges; ++s) {
    if (s == 0) {
      if (!call.in_place) {
        emit(Build(call).take(input(call) + call.rank * block).keep(dst(call.rank * block)).count(call.count));
      } else if (size > 1) {
        emit(Build(call).take(dst()).keep(scratch()).count(size * call.count));
      }
      continue;
    }
    const std::uint32_t to = plus(call.rank, s, size);
    const std::uint32_t from = minus(call.rank, s, size);
    const std::uint32_t copy = call.in_place ? emit.moves() : 0;  // distance of the copy, the first move
    const Place source = call.in_place ? scratch() : input(call);
    emit(Build(call).take(source + to * block).send(to, s).count(call.count).after(copy));
    emit(Build(call).arrive(from, s).keep(dst(from * block)).count(call.count).after(call.in_place ? copy + 1 : 0));
  }
}

}  // namespace unisono::collectives
