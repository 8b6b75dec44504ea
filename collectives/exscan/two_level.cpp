// Two-level exclusive scan: within groups, along their last ranks, back into the groups; in rank order.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, on the linear scan.
// Cost, with groups of g: g alpha + 2 n (beta + gamma) + (g-2) n beta within, (P/g - 1) alpha + n (beta + 2 gamma)
// between; segments stream.
//
// As two-level scan, with lines as in linear exclusive scan: a rank keeps what arrives, and sends on what
// that is with its operand to the right. The last rank of a group, its tail, takes in the sum of all groups
// before, gives it to the other members, and has its result when it has put it to the left of its own prefix.
// For the first member of a group that sum is the result. With one group this is linear exclusive scan.
//
// A member's prefix is replaced when the sum made of it has left. In place operands stand where results go,
// so who needs its operand later copies it first, and the first member of a group sends it before it listens
// to the tail. The tail listens to its line first, so waiting goes from the end of a line to its begin, and
// from the members to the tails before them.
#include "collectives/exscan/exscan.hpp"
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t first;
  std::uint32_t tail;
  bool begins;         ///< the rank stands first in its group
  bool ends;           ///< or last
  bool gets;           ///< a prefix from the rank before, along the line or, if the group is one rank, from a tail
  bool sends;          ///< its prefix with its operand
  bool hands_down;     ///< the sum of all groups before, to the members
  bool copies;         ///< the operand, in place
  std::uint32_t next;  ///< whom it sends to

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        first(levels.first(group)),
        tail(levels.end(group) - 1),
        begins(call.rank == first),
        ends(call.rank == tail),
        gets(!begins || (ends && group != 0)),
        sends(call.rank + 1 < call.size),
        hands_down(ends && !begins && group != 0),
        copies(call.in_place && gets && sends),
        next(ends && sends ? levels.end(group + 1) - 1 : call.rank + 1) {}
};

}  // namespace

std::uint64_t exscan_two_level_scratch_bytes(const Call& call) {
  const Shape shape(call);
  const std::uint64_t bytes = call.count * element_bytes(call);
  return (shape.hands_down ? bytes : 0) + (shape.copies ? bytes : 0);
}

std::uint32_t exscan_two_level_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void exscan_two_level_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const Shape shape(call);
  const std::uint32_t first = shape.first;
  const Place copy = scratch(shape.hands_down ? call.count * element_bytes(call) : 0);
  const Place operand = shape.copies ? copy : input(call);
  const auto send_on = [&] {
    emit(Build(call).take(operand).with(dst()).arrival_first().send(shape.next, 0).count(call.count).stream_after(1));
  };
  if (shape.copies) emit(Build(call).take(dst()).keep(copy).count(call.count));
  if (shape.gets) {
    emit(Build(call).arrive(call.rank - 1, 0).keep(dst()).count(call.count).stream_after(shape.copies ? 1 : 0));
  }
  if (shape.hands_down) {
    Build down(call);
    down.arrive(first - 1, 0).keep(scratch()).count(call.count);
    send_to(down, emit, shape.tail - first, 0, [&](std::uint32_t i) { return first + i; });
    emit(down);
    Build whole(call);
    emit(whole.take(scratch()).with(dst()).keep(dst()).count(call.count).stream_after(1).stream_after(2));
  }
  if (shape.gets) {
    if (shape.sends) send_on();
  } else {
    emit(Build(call).take(operand).send(shape.next, 0).count(call.count));
  }
  if (shape.ends || shape.group == 0) return;
  Build whole(call);
  whole.arrive(shape.tail, 0).keep(dst()).count(call.count).after(shape.gets || call.in_place ? 1 : 0);
  if (shape.gets) whole.take(dst()).arrival_first();
  emit(whole);
}

}  // namespace unisono::collectives
