// Two-level all-gather: to the leaders of groups, around the ring of leaders, back into the groups.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups of g: alpha + (g-1) n beta within, (P/g - 1) alpha + (P - g) n beta between, alpha + P n beta
// within, n bytes a block; the last two overlap.
//
// The first rank of a group, its leader, collects the group's blocks in their place of dst, a range. The
// ranges travel once around the ring of leaders, who take each in and pass it on, to the right and to
// their members in one move, element by element as it comes. Each place of dst is written once there, so
// taking in waits for nothing (as in ring all-gather, and why it is a move of its own); the group's own
// range leaves when all of it has arrived. A member's own block comes back to it with that range, after it
// has been read.
#include "collectives/allgather/allgather.hpp"
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kRange = 1;  // the range of step t

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        leader(levels.first(group)),
        members(levels.members(group) - 1) {}
};

/// Own block; the members' at the leader; each range.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  return 1 + (call.rank == shape.leader ? shape.members : 0) + shape.levels.groups();
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const Levels& levels = shape.levels;
  const std::uint32_t groups = levels.groups();
  const bool leads = call.rank == shape.leader;
  if (s == 0) {
    Build own(call);
    own.take(input(call, call.rank * block)).count(call.count);
    if (!leads) {
      emit(own.send(shape.leader, kUp));
    } else if (!call.in_place) {
      emit(own.keep(dst(call.rank * block)));
    }
    return;
  }
  if (leads && s <= shape.members) {
    const std::uint32_t member = shape.leader + s;
    emit(Build(call).arrive(member, kUp).keep(dst(member * block)).count(call.count));
    return;
  }
  const std::uint32_t t = s - 1 - (leads ? shape.members : 0);
  const std::uint32_t group = minus(shape.group, t, groups);
  const Place range = dst(levels.first(group) * block);
  const std::uint64_t count = levels.members(group) * call.count;
  if (!leads) {
    emit(Build(call).arrive(shape.leader, kRange + t).keep(range).count(count));
    return;
  }
  const std::uint32_t before = emit.moves();
  if (t > 0) {
    emit(Build(call).arrive(levels.first(minus(shape.group, 1, groups)), kRange + t - 1).keep(range).count(count));
  }
  const std::uint32_t right = t + 1 < groups ? 1 : 0;
  if (right + shape.members == 0) return;
  Build on(call);
  on.take(range).count(count);
  if (t > 0) {
    on.stream_after(1);
  } else {
    on.after_all(before);
  }
  send_to(on, emit, right + shape.members, kRange + t, [&](std::uint32_t i) {
    return i < right ? levels.first(plus(shape.group, 1, groups)) : shape.leader + 1 + i - right;
  });
  emit(on);
}

}  // namespace

std::uint32_t allgather_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call)), 2); }

void allgather_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 2, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
