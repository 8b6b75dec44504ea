// Two-level scatter: the mirror image of two-level gather.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups of g: 2 alpha + (P-1) n beta, n bytes a block, in P/g + g - 2 messages at the root.
//
// A group's blocks are one range of src; its first rank takes them in as one message and hands each
// member its block. The root leads its own group. All that leaves a leader waits for what arrived there.
// Waiting goes from the members towards the root only. In place the root's own block stays where it is.
#include "collectives/build.hpp"
#include "collectives/levels.hpp"
#include "collectives/powers.hpp"
#include "collectives/scatter/scatter.hpp"

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

/// Each group at the root, or what comes from there; each member; own block.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  if (call.rank != shape.leader) return 1;
  return (call.rank == call.root ? shape.levels.groups() - 1 : 1) + shape.members + 1;
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const bool root = call.rank == call.root;
  if (call.rank != shape.leader) {
    emit(Build(call).arrive(shape.leader, 0).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t begin = root ? shape.levels.groups() - 1 : 1;  // rounds before the members'
  const auto place = [&](std::uint32_t rank) {
    return root ? src(rank * block) : scratch((rank - shape.leader) * block);
  };
  const std::uint32_t arrival = root ? 0 : emit.moves();  // the distance of a leader's arrival, its first move
  if (s < begin && root) {
    const std::uint32_t group = s < shape.group ? s : s + 1;
    const std::uint32_t first = shape.levels.first(group);
    emit(Build(call).take(src(first * block)).send(first, 0).count(shape.levels.members(group) * call.count));
  } else if (s < begin) {
    Build in(call);
    in.arrive(call.root, 0).keep(shape.members == 0 ? dst() : scratch()).count((shape.members + 1) * call.count);
    emit(in);
  } else if (s < begin + shape.members) {
    const std::uint32_t member = shape.levels.other(shape.group, call.rank, s - begin);
    emit(Build(call).take(place(member)).send(member, 0).count(call.count).after(arrival));
  } else if (root ? !call.in_place : shape.members != 0) {
    emit(Build(call).take(place(call.rank)).keep(dst()).count(call.count).after(arrival));
  }
}

}  // namespace

std::uint64_t scatter_two_level_scratch_bytes(const Call& call) {
  const Shape shape(call);
  const bool hands_on = call.rank == shape.leader && call.rank != call.root && shape.members != 0;
  return hands_on ? (shape.members + 1) * call.count * element_bytes(call) : 0;
}

std::uint32_t scatter_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call))); }

void scatter_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 1, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
