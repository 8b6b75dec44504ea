// Two-level scatterv: the mirror image of two-level gatherv.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, with a count per rank.
// Cost, with groups of g: 2 alpha + N beta, N bytes in all, in P/g + g - 2 messages at the root, and N bytes
// copied there.
//
// The root packs the blocks of another group in scratch and sends them to its first rank as one message, which
// hands each member its block; the root leads its own group, whose blocks go out from where they stand. Where
// blocks stand in scratch and how long ranges are is read from params (GroupParams), for every rank knows all
// counts.
//
// Packing writes different places and waits for nothing; a packed message waits for the copies just before it,
// all that leaves another leader for what arrived there. Waiting goes from the members towards the root only.
// In place the root's own block stays where it is.
#include "collectives/build.hpp"
#include "collectives/group_params.hpp"
#include "collectives/levels.hpp"
#include "collectives/powers.hpp"
#include "collectives/scatterv/scatterv.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

struct Shape {
  Levels levels;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader
  bool root;

  explicit constexpr Shape(const Call& call)
      : levels(call),
        group(levels.group_of(call.rank)),
        leader(group == levels.group_of(call.root) ? call.root : levels.first(group)),
        members(levels.members(group) - 1),
        root(call.rank == call.root) {}

  /// Each rank of other groups at the root, or what comes from there.
  constexpr std::uint32_t rounds_before_members(const Call& call) const { return root ? call.size - members - 1 : 1; }
  /// And each member, own block.
  constexpr std::uint32_t rounds(const Call& call) const {
    return call.rank == leader ? rounds_before_members(call) + members + 1 : 1;
  }
};

/// A block of another group to its place in scratch; and when it was the group's last one, the group's message.
void pack(const Call& call, const Levels& levels, std::uint32_t rank, Emit& emit) {
  const std::uint32_t group = levels.group_of(rank);
  const std::uint32_t first = levels.first(group);
  const Place home = indirect(Region::kSrc, call.size + rank);
  emit(Build(call).take(home).keep(GroupParams::packed(call, rank)).count_at(rank));
  if (rank + 1 != levels.end(group)) return;
  Build out(call);
  out.take(GroupParams::packed(call, first)).send(first, 0).count_at(GroupParams::group_total(call, group));
  emit(out.after_all(levels.members(group)));
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const std::uint32_t begin = shape.rounds_before_members(call);
  const auto place = [&](std::uint32_t rank) {
    return shape.root ? indirect(Region::kSrc, call.size + rank) : GroupParams::packed(call, rank);
  };
  if (s < begin && shape.root) {
    const std::uint32_t first = shape.levels.first(shape.group);
    pack(call, shape.levels, s < first ? s : s + shape.members + 1, emit);
    return;
  }
  std::uint32_t count = call.rank;
  Build move(call);
  if (call.rank != shape.leader) {
    move.arrive(shape.leader, 0).keep(dst());
  } else if (s < begin) {
    count = GroupParams::group_total(call, shape.group);
    move.arrive(call.root, 0).keep(place(call.rank));
  } else {
    const bool own = s == begin + shape.members;
    if (own && shape.root && call.in_place) return;
    if (!own) count = shape.levels.other(shape.group, call.rank, s - begin);
    move.take(place(count)).after(shape.root ? 0 : emit.moves());  // a leader's arrival is its first move
    if (own) {
      move.keep(dst());
    } else {
      move.send(count, 0);
    }
  }
  emit(move.count_at(count));
}

}  // namespace

bool scatterv_two_level_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint64_t scatterv_two_level_scratch_bytes(const Call& call) {
  const Shape shape(call);
  const bool packs = call.rank == shape.leader && shape.levels.groups() > 1;
  return packs ? call.count * element_bytes(call) : 0;
}

std::uint32_t scatterv_two_level_params_words(const Call& call) { return GroupParams::words(call); }

void scatterv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.send_counts, arguments.send_displacements, words);
  GroupParams::fill(call, words);
}

std::uint32_t scatterv_two_level_steps(const Call& call) { return steps_for(Shape(call).rounds(call), 2); }

void scatterv_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, shape.rounds(call), 2, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
