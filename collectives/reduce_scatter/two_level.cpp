// Two-level reduce-scatter: within groups, between their leaders, back into the groups; in rank order.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups of g: 2 alpha + (g-1) (P+1) n beta + (g-1) P n gamma within, (P/g - 1) (alpha + g n beta + g n
// gamma) between, n bytes a block.
//
// The first rank of a group, its leader, folds the whole vectors of its members into scratch in one move.
// Round b then is a linear reduction, between the leaders, of the range of blocks of group b to the leader
// of b: it folds the ranges of the groups above, rising, and then those below from the left, falling, so
// operands stay in rank order. In the end it hands out the blocks of its range.
//
// Sends between leaders wait for the fold of the group only, folds for no send: the round that is furthest
// behind can always end. In place a result overwrites the begin of dst; the input there has been read, for
// it is part of the sum from which the result comes.
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kDown = 1;
constexpr std::uint32_t kRange = 2;

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader
  std::uint32_t above;    ///< groups

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        leader(levels.first(group)),
        members(levels.members(group) - 1),
        above(levels.groups() - 1 - group) {}
  /// Position of the last move that folds the own range: the group's fold, a send for each group below, up to two.
  constexpr std::uint32_t last_fold() const { return group + (above != 0 ? 1 : 0) + (group != 0 ? 1 : 0); }
};

/// Fold of the group; each range; each member, own block.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  return call.rank == shape.leader ? 1 + shape.levels.groups() + shape.members + 1 : 1;
}

void fold_range(const Call& call, const Shape& shape, Place range, std::uint64_t count, Emit& emit) {
  const Levels& levels = shape.levels;
  const std::uint32_t group = shape.group;
  const std::uint32_t before = emit.moves();
  if (shape.above != 0) {
    Build fold(call);
    fold.take(range).keep(range).count(count).after(before);
    arrive_from(fold, emit, shape.above, kRange, [&](std::uint32_t i) { return levels.first(group + 1 + i); });
    emit(fold);
  }
  if (group != 0) {
    Build fold(call);
    fold.take(range).arrival_first().keep(range).count(count);
    if (shape.above != 0) {
      fold.stream_after(1);
    } else {
      fold.after(before);
    }
    arrive_from(fold, emit, group, kRange, [&](std::uint32_t i) { return levels.first(group - 1 - i); });
    emit(fold);
  }
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  const Levels& levels = shape.levels;
  if (call.rank != shape.leader) {
    emit(Build(call).take(input(call)).send(shape.leader, kUp).count(call.size * call.count));
    emit(Build(call).arrive(shape.leader, kDown).keep(dst()).count(call.count));
    return;
  }
  if (s == 0) {
    Build fold(call);
    fold.take(input(call)).keep(scratch()).count(call.size * call.count);
    arrive_from(fold, emit, shape.members, kUp, [&](std::uint32_t i) { return shape.leader + 1 + i; });
    emit(fold);
    return;
  }
  if (s <= levels.groups()) {
    const std::uint32_t group = s - 1;
    const Place range = scratch(levels.first(group) * block);
    const std::uint64_t count = levels.members(group) * call.count;
    if (group == shape.group) {
      fold_range(call, shape, range, count, emit);
    } else {
      const std::uint32_t folded = emit.moves();
      emit(Build(call).take(range).send(levels.first(group), kRange).count(count).after(folded));
    }
    return;
  }
  const std::uint32_t since = emit.moves() - shape.last_fold();
  const std::uint32_t rank = shape.leader + (s - 1 - levels.groups());
  Build out(call);
  out.take(scratch(rank * block)).count(call.count).after(since);
  if (rank == call.rank) {
    out.keep(dst());
  } else {
    out.send(rank, kDown);
  }
  emit(out);
}

}  // namespace

std::uint64_t reduce_scatter_two_level_scratch_bytes(const Call& call) {
  return call.rank == Shape(call).leader ? call.size * call.count * element_bytes(call) : 0;
}

std::uint32_t reduce_scatter_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call)), 2); }

void reduce_scatter_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 2, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
