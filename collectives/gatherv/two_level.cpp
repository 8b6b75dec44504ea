// Two-level gatherv: within groups, then from their leaders to the root.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, with a count per rank.
// Cost, with groups of g: 2 alpha + N beta, N bytes in all, in P/g + g - 2 messages at the root, and N bytes
// copied there.
//
// As two-level gather, but the root's blocks may lie anywhere, and a message must be one range of memory. So
// leaders pack their group's blocks in scratch, the root takes ranges in there and copies each block to its
// place; blocks of its own group come straight to their places. Where blocks stand in scratch and how long
// ranges are is read from params (GroupParams), for every rank knows all counts.
//
// Arrivals write different places and wait for nothing; a leader's message waits for all that is in it, a
// copy for the arrival that brought its range. Waiting goes from the root towards the members only. The root
// posts all arrivals before it unpacks, so that they can land at the same time.
#include "collectives/build.hpp"
#include "collectives/gatherv/gatherv.hpp"
#include "collectives/group_params.hpp"
#include "collectives/levels.hpp"
#include "collectives/powers.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader
  std::uint32_t others;   ///< groups
  bool root;

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        leader(group == levels.group_of(call.root) ? call.root : levels.first(group)),
        members(levels.members(group) - 1),
        others(levels.groups() - 1),
        root(call.rank == call.root) {}
};

/// Own block; each member; then each group at the root and each block of them, or the message up.
std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  if (call.rank != shape.leader) return 1;
  return 1 + shape.members + (shape.root ? shape.others + call.size - shape.members - 1 : 1);
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const Levels& levels = shape.levels;
  const auto home = [&](std::uint32_t rank) { return indirect(Region::kDst, call.size + rank); };
  const auto packed = [&](std::uint32_t rank) { return GroupParams::packed(call, rank); };
  std::uint32_t count = call.rank;
  Build move(call);
  if (call.rank != shape.leader) {
    move.take(src()).send(shape.leader, 0);
  } else if (s <= shape.members) {
    if (s == 0) {
      if (shape.root && call.in_place) return;
      move.take(src());
    } else {
      count = levels.other(shape.group, call.rank, s - 1);
      move.arrive(count, 0);
    }
    move.keep(shape.root ? home(count) : packed(count));
  } else if (!shape.root) {
    count = GroupParams::group_total(call, shape.group);
    move.take(packed(call.rank)).send(call.root, 0).after_all(emit.moves());
  } else if (s -= 1 + shape.members; s < shape.others) {
    const std::uint32_t group = s < shape.group ? s : s + 1;
    const std::uint32_t first = levels.first(group);
    count = GroupParams::group_total(call, group);
    move.arrive(first, 0).keep(packed(first));
  } else {
    s -= shape.others;
    const std::uint32_t rank = s < levels.first(shape.group) ? s : s + shape.members + 1;
    const std::uint32_t group = levels.group_of(rank);
    const std::uint32_t nth = group < shape.group ? group : group - 1;
    const std::uint32_t arrival = (call.in_place ? 0 : 1) + shape.members + nth;
    count = rank;
    move.take(packed(rank)).keep(home(rank)).after(emit.moves() - arrival);
  }
  emit(move.count_at(count));
}

}  // namespace

bool gatherv_two_level_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint64_t gatherv_two_level_scratch_bytes(const Call& call) {
  const Shape shape(call);
  const bool collects = call.rank == shape.leader && shape.others != 0;
  return collects ? call.count * element_bytes(call) : 0;
}

std::uint32_t gatherv_two_level_params_words(const Call& call) { return GroupParams::words(call); }

void gatherv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
  GroupParams::fill(call, words);
}

std::uint32_t gatherv_two_level_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call))); }

void gatherv_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, rounds_of(call, shape), 1, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
