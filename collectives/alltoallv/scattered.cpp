// Scattered all-to-allv: all messages at once.
//
// Source: MPICH's scattered all-to-allv (staggered non-blocking messages). Cost: (P-1) alpha + N beta,
// N bytes at the rank that sends or receives most; the latencies overlap.
//
// Sends go to r+1, r+2, ... and arrivals are awaited from r-1, r-2, ..., so that no rank is everybody's
// first. None waits for another: sends read src, arrivals write different blocks. The window keeps 16
// exchanges in flight; the rank that is furthest behind can always go on, because those it exchanges
// with have come as far.
#include "collectives/alltoallv/alltoallv.hpp"
#include "collectives/alltoallv/layout.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool alltoallv_scattered_admits(const Call& call) { return !call.in_place; }

std::uint32_t alltoallv_scattered_steps(const Call& call) { return steps_for(2 * call.size); }

void alltoallv_scattered_step(const Call& call, std::uint32_t step, Emit& emit) {
  const AlltoallvLayout layout(call);
  const std::uint32_t exchanges = static_cast<std::uint32_t>(kMovesPerStep) / 2;
  for (std::uint32_t s = step * exchanges; s < call.size && s < (step + 1) * exchanges; ++s) {
    const std::uint32_t to = plus(call.rank, s, call.size);
    const std::uint32_t from = minus(call.rank, s, call.size);
    if (s == 0) {
      emit(Build(call).take(layout.source(to)).keep(layout.target(from)).count_at(layout.recv_count(from)));
      continue;
    }
    emit(Build(call).take(layout.source(to)).send(to, s).count_at(layout.send_count(to)));
    emit(Build(call).arrive(from, s).keep(layout.target(from)).count_at(layout.recv_count(from)));
  }
}

}  // namespace unisono::collectives
