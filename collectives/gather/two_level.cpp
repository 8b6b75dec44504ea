// Two-level gather: within groups, then from their leaders to the root.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups of g: 2 alpha + (P-1) n beta, n bytes a block, in P/g + g - 2 messages at the root.
//
// Groups are contiguous ranks, so that a group's blocks are one range of dst. The first rank of a group
// collects them in scratch and sends them as one message; the root leads its own group, whose blocks come
// straight into their places. Arrivals write different places and wait for nothing; a leader's message
// waits for all of them. Waiting goes from the root towards the members only.
#include "collectives/build.hpp"
#include "collectives/gather/gather.hpp"
#include "collectives/levels.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        leader(group == levels.group_of(call.root) ? call.root : levels.first(group)),
        members(levels.members(group) - 1) {}
};

/// Own block; each member; then each group at the root, or the message up.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  if (call.rank != shape.leader) return 1;
  return 1 + shape.members + (call.rank == call.root ? shape.levels.groups() - 1 : 1);
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const bool root = call.rank == call.root;
  if (call.rank != shape.leader) {
    emit(Build(call).take(src()).send(shape.leader, 0).count(call.count));
    return;
  }
  const auto place = [&](std::uint32_t rank) {
    return root ? dst(rank * block) : scratch((rank - shape.leader) * block);
  };
  if (s == 0) {
    if (root ? call.in_place : shape.members == 0) return;
    emit(Build(call).take(src()).keep(place(call.rank)).count(call.count));
  } else if (s <= shape.members) {
    const std::uint32_t member = shape.levels.other(shape.group, call.rank, s - 1);
    emit(Build(call).arrive(member, 0).keep(place(member)).count(call.count));
  } else if (root) {
    const std::uint32_t nth = s - 1 - shape.members;
    const std::uint32_t group = nth < shape.group ? nth : nth + 1;
    const std::uint32_t first = shape.levels.first(group);
    emit(Build(call).arrive(first, 0).keep(dst(first * block)).count(shape.levels.members(group) * call.count));
  } else {
    const std::uint32_t before = emit.moves();
    Build up(call);
    up.take(shape.members == 0 ? src() : scratch()).send(call.root, 0).count((shape.members + 1) * call.count);
    emit(up.after_all(before));
  }
}

}  // namespace

std::uint64_t gather_two_level_scratch_bytes(const Call& call) {
  const Shape shape(call);
  const bool collects = call.rank == shape.leader && call.rank != call.root && shape.members != 0;
  return collects ? (shape.members + 1) * call.count * element_bytes(call) : 0;
}

std::uint32_t gather_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call))); }

void gather_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 1, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
