// Two-level barrier: within groups, between their leaders, back into the groups.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups: 2 alpha within, ceil(log2) of their number times alpha between.
//
// Members signal the first rank of their group, its leader; leaders go through a dissemination barrier
// when all members have; then they let them go. Signals wait for what they stand for, arrivals for nothing.
#include "collectives/barrier/barrier.hpp"
#include "collectives/build.hpp"
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kDown = 1;
constexpr std::uint32_t kRound = 2;

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader
  std::uint32_t rounds;   ///< between leaders

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        leader(levels.first(group)),
        members(levels.members(group) - 1),
        rounds(log2_ceil(levels.groups())) {}
};

/// Signals up, rounds, signals down.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  return call.rank == shape.leader ? shape.rounds + 2 : 1;
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  if (call.rank != shape.leader) {
    emit(Build(call).send(shape.leader, kUp).signal());
    emit(Build(call).arrive(shape.leader, kDown).signal());
    return;
  }
  const auto member = [&](std::uint32_t i) { return shape.leader + 1 + i; };
  const std::uint32_t here = emit.moves();
  if (s == 0) {
    if (shape.members == 0) return;
    Build await(call);
    arrive_from(await, emit, shape.members, kUp, member);
    emit(await.signal());
    return;
  }
  if (s <= shape.rounds) {
    const std::uint32_t round = s - 1;
    const std::uint32_t groups = shape.levels.groups();
    const std::uint32_t distance = std::uint32_t{1} << round;
    Build signal(call);
    signal.send(shape.levels.first(plus(shape.group, distance, groups)), kRound + round).signal();
    for (std::uint32_t back = 1; back < 2 * round; back += 2) signal.after(back);  // all signals awaited so far
    if (shape.members != 0) signal.after(here);                                    // those of the members
    emit(signal);
    emit(Build(call).arrive(shape.levels.first(minus(shape.group, distance, groups)), kRound + round).signal());
    return;
  }
  if (shape.members == 0) return;
  Build release(call);
  send_to(release, emit, shape.members, kDown, member);
  for (std::uint32_t back = 1; back < 2 * shape.rounds; back += 2) release.after(back);
  emit(release.signal().after(here));
}

}  // namespace

std::uint32_t barrier_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call)), 2); }

void barrier_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  if (call.size == 1) return;
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 2, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
