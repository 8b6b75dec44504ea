// Two-level scan: within groups, along their last ranks, back into the groups; in rank order.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, on the linear scan.
// Cost, with groups of g: g alpha + 2 n (beta + gamma) + (g-2) n beta within, (P/g - 1) alpha + n (beta + gamma)
// between; segments stream.
//
// Each group is a line of ranks, as in linear scan, all lines at the same time. The last rank of a group,
// its tail, ends up with the sum of the group. Tails are a line, too: a tail takes in the sum of all groups
// before, gives it to the other members, puts it to the left of the group's sum and passes the result on.
// A member puts what it gets to the left of its own prefix. With one group this is linear scan.
//
// The prefix is replaced element by element as it appears, for the move that makes it sends it on as well;
// in place the first member sends its operand without making anything, and replaces it when that has left.
// Waiting goes from the end of a line to its begin, and from the members to the tails before them.
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"
#include "collectives/scan/scan.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

/// What is added to a tail's sum passes through the tail, for others want it.
bool hands_down(const Call& call) {
  const Levels levels(call);
  const std::uint32_t group = levels.group_of(call.rank);
  return group != 0 && call.rank + 1 == levels.end(group) && levels.members(group) > 1;
}

}  // namespace

std::uint64_t scan_two_level_scratch_bytes(const Call& call) {
  return hands_down(call) ? call.count * element_bytes(call) : 0;
}

std::uint32_t scan_two_level_steps(const Call& /*call*/) { return 1; }

void scan_two_level_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const Levels levels(call);
  const std::uint32_t group = levels.group_of(call.rank);
  const std::uint32_t first = levels.first(group);
  const std::uint32_t tail = levels.end(group) - 1;
  const bool begins = call.rank == first;
  const bool ends = call.rank == tail;
  const bool later = group != 0;                      // groups stand before this one
  const bool goes_on = ends && tail + 1 < call.size;  // and after it
  const std::uint32_t next = goes_on ? levels.end(group + 1) - 1 : 0;

  const bool alone = begins && ends;
  {  // The prefix within the group; of a tail that is alone, or of the first group, it is the whole one.
    Build move(call);
    move.take(input(call)).count(call.count);
    const bool changes = !begins || (alone && later);  // the rank before is in the group, or is a tail
    if (changes) move.arrive(call.rank - 1, 0).arrival_first();
    if (changes || !call.in_place) move.keep(dst());
    if (!ends) {
      move.send(call.rank + 1, 0);
    } else if (goes_on && (alone || !later)) {
      move.send(next, 0);
    } else if (!changes && call.in_place) {
      return;  // one rank
    }
    emit(move);
  }
  if (!later || alone) return;
  if (ends) {
    Build down(call);
    down.arrive(first - 1, 0).keep(scratch()).count(call.count);
    send_to(down, emit, tail - first, 0, [&](std::uint32_t i) { return first + i; });
    emit(down);
    Build whole(call);
    whole.take(scratch()).with(dst()).keep(dst()).count(call.count).stream_after(1).stream_after(2);
    if (goes_on) whole.send(next, 0);
    emit(whole);
    return;
  }
  Build whole(call);
  whole.take(dst()).arrive(tail, 0).arrival_first().keep(dst()).count(call.count);
  if (begins && call.in_place) {
    whole.after(1);
  } else {
    whole.stream_after(1);
  }
  emit(whole);
}

}  // namespace unisono::collectives
