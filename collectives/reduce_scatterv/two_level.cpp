// Two-level reduce-scatterv: within groups, between their leaders, back into the groups; in rank order.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, with a count per rank.
// Cost, with groups of g, N bytes in all, M bytes in the largest group: 2 alpha + (g-1) N (beta + gamma) within,
// (P/g - 1) (alpha + M (beta + gamma)) between, and N bytes copied.
//
// As two-level reduce-scatter, whose file explains the rounds and why waiting ends. Blocks may lie anywhere in
// the input, and a message must be one range of memory, so every rank first packs its blocks in scratch, in
// order of rank. Where they stand there and how long the ranges of groups are is read from params
// (GroupParams), for every rank knows all counts. The leader folds the members' packed vectors onto its own.
//
// In place a result overwrites input that has been packed: a rank's result is made of all vectors, its own
// included, so where there is a result its vector has left.
#include "collectives/group_params.hpp"
#include "collectives/levels.hpp"
#include "collectives/order.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatterv/layout.hpp"
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kDown = 1;
constexpr std::uint32_t kRange = 2;

struct Shape {
  Levels levels;
  std::uint32_t groups;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader
  std::uint32_t above;    ///< groups
  std::uint32_t folded;   ///< position behind the packing, and the fold of the group if there are members

  explicit constexpr Shape(const Call& call)
      : levels(call),
        groups(levels.groups()),
        group(levels.group_of(call.rank)),
        leader(levels.first(group)),
        members(levels.members(group) - 1),
        above(groups - 1 - group),
        folded(call.size + (members != 0 ? 1 : 0)) {}

  /// Behind the last move that folds the own range: a send for each group below, up to two.
  constexpr std::uint32_t summed() const {
    return above == 0 && group == 0 ? folded : folded + group + (above != 0 ? 1 : 0) + (group != 0 ? 1 : 0);
  }
};

/// Packing; then the vector up and the result down, or the fold of the group, each range, each member and the own
/// block.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  return call.size + (call.rank == shape.leader ? 1 + shape.groups + shape.members + 1 : 1);
}

/// A move on the own range, or on another, follows all that has been packed, and the fold of the group.
void after_fold(Build& move, const Call& call, const Shape& shape, const Emit& emit) {
  after_positions(move, emit, shape.members != 0 ? call.size : 0, shape.folded);
}

void fold_range(const Call& call, const Shape& shape, Place range, std::uint32_t count, Emit& emit) {
  const std::uint32_t group = shape.group;
  for (const bool rising : {true, false}) {
    const std::uint32_t several = rising ? shape.above : group;
    if (several == 0) continue;
    Build fold(call);
    fold.take(range).keep(range).count_at(count).arrival_first(!rising);
    if (!rising && shape.above != 0) {
      fold.stream_after(1);
    } else {
      after_fold(fold, call, shape, emit);
    }
    arrive_from(fold, emit, several, kRange,
                [&](std::uint32_t i) { return shape.levels.first(rising ? group + 1 + i : group - 1 - i); });
    emit(fold);
  }
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const Levels& levels = shape.levels;
  const bool leads = call.rank == shape.leader;
  if (s == call.size && leads && shape.members == 0) return;
  if (leads && s == call.size + 1 + shape.group) {
    const Place range = GroupParams::packed(call, shape.leader);
    fold_range(call, shape, range, GroupParams::group_total(call, shape.group), emit);
    return;
  }
  {
    Build move(call);
    std::uint32_t count = s;
    if (s < call.size) {
      move.take(block_of(call, s)).keep(GroupParams::packed(call, s));
    } else if (s == call.size) {
      count = GroupParams::total(call);
      move.take(scratch()).after_all(call.size);
      if (leads) {
        move.keep(scratch());
        arrive_from(move, emit, shape.members, kUp, [&](std::uint32_t i) { return shape.leader + 1 + i; });
      } else {
        move.send(shape.leader, kUp);
      }
    } else if (s -= call.size + 1; s < shape.groups) {
      count = GroupParams::group_total(call, s);
      move.take(GroupParams::packed(call, levels.first(s))).send(levels.first(s), kRange);
      after_fold(move, call, shape, emit);
    } else {
      count = shape.leader + (s - shape.groups);
      move.take(GroupParams::packed(call, count));
      if (shape.summed() == shape.folded) {
        after_fold(move, call, shape, emit);  // one group
      } else {
        move.after(emit.moves() - (shape.summed() - 1));
      }
      if (count == call.rank) {
        move.keep(dst());
      } else {
        move.send(count, kDown);
      }
    }
    emit(move.count_at(count));
  }
  if (s == call.size && !leads) emit(Build(call).arrive(shape.leader, kDown).keep(dst()).count_at(call.rank));
}

}  // namespace

std::uint64_t reduce_scatterv_two_level_scratch_bytes(const Call& call) { return call.count * element_bytes(call); }

std::uint32_t reduce_scatterv_two_level_params_words(const Call& call) { return GroupParams::words(call); }

void reduce_scatterv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
  GroupParams::fill(call, words);
}

std::uint32_t reduce_scatterv_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call)), 2); }

void reduce_scatterv_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 2, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
