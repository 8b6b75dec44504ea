// Two-level all-gatherv: to the leaders of groups, around the ring of leaders, back into the groups.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, with a count per rank.
// Cost, with groups of g, N bytes in all: alpha within, (P/g - 1) alpha + N beta between, alpha + N beta within,
// and N bytes copied; the last two overlap.
//
// As two-level all-gather, but blocks may lie anywhere in dst, and a message must be one range of memory. So
// ranges travel through scratch, where all blocks stand packed in order of rank, and in the end each rank
// copies the blocks to their places. Where blocks stand in scratch and how long ranges are is read from params
// (GroupParams), for every rank knows all counts.
//
// Each place of scratch is written once, so taking in waits for nothing; passing on follows it element by
// element, the group's own range leaves when all of it has arrived, and copies wait for what brought their
// range. In place a rank's own block stays where it is.
#include "collectives/allgatherv/allgatherv.hpp"
#include "collectives/group_params.hpp"
#include "collectives/levels.hpp"
#include "collectives/order.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kRange = 1;  // the range of step t

struct Shape {
  Levels levels;
  std::uint32_t size;
  std::uint32_t groups;
  std::uint32_t group;
  std::uint32_t leader;
  std::uint32_t members;  ///< beside the leader
  bool leads;

  explicit constexpr Shape(const Call& call)
      : levels(call),
        size(call.size),
        groups(levels.groups()),
        group(levels.group_of(call.rank)),
        leader(levels.first(group)),
        members(levels.members(group) - 1),
        leads(call.rank == leader) {}

  constexpr Place home(std::uint32_t rank) const { return indirect(Region::kDst, size + rank); }

  /// Own block; the members' at the leader; each range; then each block to its place.
  constexpr std::uint32_t rounds() const { return 1 + (leads ? members : 0) + groups + size; }

  /// Moves before the ranges.
  constexpr std::uint32_t before_ranges() const { return leads ? 1 + members : 1; }
  /// Position of the arrival of the range of step t. At a leader there is none of step 0, but its sending stands there,
  /// and then arrivals and sendings by turns.
  constexpr std::uint32_t arrival(std::uint32_t t) const { return before_ranges() + (leads ? 2 * t - 1 : t); }
};

/// Passes the range of step t on; a leader takes it in before, if it is another group's.
void pass_on(const Call& call, const Shape& shape, std::uint32_t t, Place range, std::uint32_t count, Emit& emit) {
  const std::uint32_t right = t + 1 < shape.groups ? 1 : 0;
  if (right + shape.members == 0) return;
  Build on(call);
  on.take(range).count_at(count);
  if (t > 0) {
    on.stream_after(1);
  } else {
    on.after_all(emit.moves());
  }
  send_to(on, emit, right + shape.members, kRange + t, [&](std::uint32_t i) {
    return i < right ? shape.levels.first(plus(shape.group, 1, shape.groups)) : shape.leader + 1 + i - right;
  });
  emit(on);
}

void round_of(const Call& call, const Shape& shape, std::uint32_t s, Emit& emit) {
  const Levels& levels = shape.levels;
  const std::uint32_t members = shape.leads ? shape.members : 0;  // from whom something arrives
  if (s > members && s <= members + shape.groups) {
    const std::uint32_t t = s - 1 - members;
    const std::uint32_t group = minus(shape.group, t, shape.groups);
    const Place range = GroupParams::packed(call, levels.first(group));
    const std::uint32_t count = GroupParams::group_total(call, group);
    if (!shape.leads || t > 0) {
      const std::uint32_t from = shape.leads ? levels.first(minus(shape.group, 1, shape.groups)) : shape.leader;
      emit(Build(call).arrive(from, kRange + t - (shape.leads ? 1 : 0)).keep(range).count_at(count));
    }
    if (shape.leads) pass_on(call, shape, t, range, count, emit);
    return;
  }
  std::uint32_t rank = call.rank;
  Build move(call);
  if (s == 0) {
    move.take(call.in_place ? shape.home(rank) : src());
    if (shape.leads) {
      move.keep(GroupParams::packed(call, rank));
    } else {
      move.send(shape.leader, kUp);
    }
  } else if (s <= members) {
    rank = shape.leader + s;
    move.arrive(rank, kUp).keep(GroupParams::packed(call, rank));
  } else {
    // Blocks of the own group first, then in the order in which ranges arrive.
    rank = minus(call.rank, s - 1 - members - shape.groups, shape.size);
    if (rank == call.rank && call.in_place) return;
    const std::uint32_t t = minus(shape.group, levels.group_of(rank), shape.groups);
    move.take(GroupParams::packed(call, rank)).keep(shape.home(rank));
    if (shape.leads && t == 0) {
      after_positions(move, emit, 0, shape.before_ranges());
    } else {
      move.after(emit.moves() - shape.arrival(t));
    }
  }
  emit(move.count_at(rank));
}

}  // namespace

bool allgatherv_two_level_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint64_t allgatherv_two_level_scratch_bytes(const Call& call) { return call.count * element_bytes(call); }

std::uint32_t allgatherv_two_level_params_words(const Call& call) { return GroupParams::words(call); }

void allgatherv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
  GroupParams::fill(call, words);
}

std::uint32_t allgatherv_two_level_steps(const Call& call) { return steps_for(Shape(call).rounds(), 2); }

void allgatherv_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, shape.rounds(), 2, [&](std::uint32_t round) { round_of(call, shape, round, emit); });
}

}  // namespace unisono::collectives
