// Scan by doubling distances, for any number of ranks.
//
// Source: Hillis and Steele, "Data parallel algorithms", CACM 1986.
// Cost: ceil(log2 P) (alpha + n beta + n gamma).
//
// After round k a rank holds the sum of the 2^(k+1) ranks that end with it (fewer at the left edge).
// In round k it gets from rank - 2^k the sum of the 2^k ranks before its own 2^k, puts it to the left
// of its own, and in the same move passes the new sum on to rank + 2^(k+1). A rank whose sum is
// complete sends it to all that still need it, at once.
//
// Each round reads its own partial sum and overwrites it element by element (segment dependency on the
// round before). Only the operand of the first send is read by another move: in place it would be
// overwritten by the first sum, so there the partial sums stand in scratch and only the last round
// writes dst, after the first send has completed. That cannot lock: a send waits for arrivals of
// higher ranks only, and the first arrival of a rank waits for nothing, except on rank 1, whose first
// round is its last, and which waits for rank 2.
//
// Each pair exchanges one message, so one tag serves.
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/scan/scan.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// Rounds in which the rank gets something: as many as there are powers of two up to its number.
constexpr std::uint32_t rounds(const Call& call) { return log2_ceil(call.rank + 1); }

// The complete sum goes to rank + 2^j for all j from `rounds` on that stay within the communicator.
void send_complete(Build& move, Emit& emit, const Call& call) {
  const std::uint32_t first = rounds(call);
  const std::uint32_t reach = log2_ceil(call.size - call.rank);  // powers of two below size - rank
  send_to(move, emit, reach > first ? reach - first : 0, 0,
          [&](std::uint32_t i) { return call.rank + (std::uint32_t{1} << (first + i)); });
}

}  // namespace

std::uint64_t scan_recursive_doubling_scratch_bytes(const Call& call) {
  return call.in_place && rounds(call) > 1 ? call.count * element_bytes(call) : 0;
}

namespace {

std::uint32_t rounds_of(const Call& call) { return 1 + rounds(call); }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t last = rounds(call);
  const bool sends_operand = call.rank > 0 && call.rank + 1 < call.size;
  Build move(call);
  move.count(call.count);
  if (s == 0) {
    if (call.rank == 0) {
      if (call.size == 1 && call.in_place) return;
      move.take(input(call));
      if (!call.in_place) move.keep(dst());
      send_complete(move, emit, call);
      emit(move);
    } else if (sends_operand) {
      emit(move.take(input(call)).send(call.rank + 1, 0));
    }
    return;
  }
  const Place partial = call.in_place ? scratch() : dst();
  move.take(s == 1 ? input(call) : partial)
      .arrive(call.rank - (std::uint32_t{1} << (s - 1)), 0)
      .arrival_first()
      .keep(s == last ? dst() : partial);
  if (s > 1) move.stream_after(1);
  if (s == last) {
    if (call.in_place && sends_operand) move.after(last);
    send_complete(move, emit, call);
  } else if (const std::uint32_t reach = std::uint32_t{1} << s; reach < call.size - call.rank) {
    move.send(call.rank + reach, 0);
  }
  emit(move);
}

}  // namespace

std::uint32_t scan_recursive_doubling_steps(const Call& call) { return steps_for(rounds_of(call), 1); }

void scan_recursive_doubling_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 1, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
