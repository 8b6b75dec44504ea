// Two-level all-to-all: within groups from rank to rank, between groups through their leaders.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000, for an all-to-all.
// Cost, with groups of g, n bytes a block: (g-1) (alpha + n beta) and, at a leader, 2 (alpha + (g-1) (P-g) n beta)
// and g (P-g) n bytes copied within, (P/g - 1) (alpha + g^2 n beta) between.
//
// Members of a group exchange their blocks for one another as in scattered all-to-all. What they have for
// others they hand to the first rank of their group, the leader: the blocks on either side of the group's own,
// two messages. The leader turns what it has collected, so that behind one another stand, for each rank of
// another group, the blocks of all members. Leaders exchange them, as one message for each two, and hand
// each member what came for it: from each group a range of blocks, straight to its place in dst.
//
// Phases follow one another: exchange within, collect, turn, exchange between, hand out. Within a phase
// sends and arrivals wait for nothing but the phases before, and of these for those of the own rank only whose
// peers are no further on; so waiting goes back phase by phase. The leader collects rows of P blocks, one of
// each member, in scratch. When they have been turned, into as many blocks behind them, what other leaders
// send lands where they stood.
//
// In place, every rank first copies dst to scratch whole, a leader to its row; sends read the copy, and what
// arrives waits for it. With one group this is scattered all-to-all.
#include "collectives/alltoall/alltoall.hpp"
#include "collectives/build.hpp"
#include "collectives/by_position.hpp"
#include "collectives/levels.hpp"
#include "collectives/order.hpp"
#include "collectives/powers.hpp"
#include "core/divide.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kDown = 1;
constexpr std::uint32_t kBetween = 2;
constexpr std::uint32_t kWithin = 3;

struct Shape {
  Levels levels;
  std::uint32_t size;
  std::uint32_t group;
  std::uint32_t leader;   ///< the group's first rank
  std::uint32_t end;      ///< behind its last one
  std::uint32_t members;  ///< the leader included
  std::uint32_t others;   ///< groups
  std::uint32_t ranges;   ///< on either side of the group, where there are ranks
  bool leads;             ///< and has something to do for it

  explicit constexpr Shape(const Call& call)
      : levels(call),
        size(call.size),
        group(levels.group_of(call.rank)),
        leader(levels.first(group)),
        end(levels.end(group)),
        members(end - leader),
        others(levels.groups() - 1),
        ranges((leader != 0 ? 1 : 0) + (end != size ? 1 : 0)),
        leads(call.rank == leader && others != 0) {}

  /// Range i of the ranks of other groups.
  constexpr std::uint32_t range_begin(std::uint32_t i) const { return i == 0 && leader != 0 ? 0 : end; }
  constexpr std::uint32_t range_end(std::uint32_t i) const { return i == 0 && leader != 0 ? leader : size; }
  /// Blocks that are turned: of all members, for all ranks of other groups.
  constexpr std::uint32_t turned() const { return members * (size - members); }

  // Moves of each phase; the first move, before them all, is a copy.
  constexpr std::uint32_t within() const { return 2 * (members - 1); }
  constexpr std::uint32_t collecting() const { return leads ? (members - 1) * ranges : ranges; }
  constexpr std::uint32_t turning() const { return leads ? turned() : 0; }
  constexpr std::uint32_t between() const { return leads ? 2 * others : 0; }
  constexpr std::uint32_t handing() const { return leads ? others * members : others; }
  constexpr std::uint32_t moves() const { return 1 + within() + collecting() + turning() + between() + handing(); }
};

/// The leader's areas: rows of members, or what other leaders sent; and the blocks that it sends to them.
struct Areas {
  std::uint64_t block;  // bytes
  std::uint64_t row;
  std::uint64_t turned;

  Areas(const Call& call, const Shape& shape)
      : block(call.count * element_bytes(call)), row(call.size * block), turned(shape.members * row) {}

  Place in_row(std::uint32_t member, std::uint32_t rank) const { return scratch(member * row + rank * block); }
  /// What is for `rank`, a block of each member, one behind the other.
  Place outgoing(const Shape& shape, std::uint32_t rank) const {
    return scratch(turned + rank * block * shape.members);
  }
  /// What came from a group for a member.
  Place incoming(const Shape& shape, std::uint32_t group, std::uint32_t member) const {
    const std::uint64_t from = shape.levels.first(group);
    return scratch((from * shape.members + std::uint64_t{member} * shape.levels.members(group)) * block);
  }
};

/// The move at a position of the program.
void move_at(const Call& call, const Shape& shape, std::uint32_t position, Emit& emit) {
  const Levels& levels = shape.levels;
  const Areas areas(call, shape);
  const std::uint64_t block = areas.block;
  const Place source = call.in_place ? scratch() : src();
  const std::uint32_t own = call.rank - shape.leader;
  const std::uint32_t copied = call.in_place ? position : 0;  // distance of the first move, which others then wait for
  const std::uint32_t collect = 1 + shape.within();           // positions where phases begin
  const std::uint32_t turn = collect + shape.collecting();
  const std::uint32_t between = turn + shape.turning();
  const std::uint32_t hand_out = between + shape.between();
  const std::uint32_t groups = shape.others + 1;
  std::uint64_t blocks = 1;
  Build move(call);
  if (position == 0) {
    const std::uint64_t place = call.in_place ? 0 : call.rank * block;
    move.take(input(call) + place).keep(call.in_place ? scratch() : dst(place));
    if (call.in_place) blocks = call.size;
  } else if (position < collect) {
    const std::uint32_t s = (position + 1) / 2;
    const std::uint32_t to = shape.leader + plus(own, s, shape.members);
    const std::uint32_t from = shape.leader + minus(own, s, shape.members);
    move.after(copied);
    if (position % 2 == 1) {
      move.take(source + to * block).send(to, kWithin + s);
    } else {
      move.arrive(from, kWithin + s).keep(dst(from * block));
    }
  } else if (position < turn) {
    const std::uint32_t nth = shape.ranges == 2 ? (position - collect) / 2 : position - collect;
    const std::uint32_t i = position - collect - nth * shape.ranges;
    const std::uint32_t begin = shape.range_begin(i);
    blocks = shape.range_end(i) - begin;
    if (shape.leads) {
      move.arrive(shape.leader + 1 + nth, kUp).keep(areas.in_row(1 + nth, begin));
    } else {
      move.take(source + begin * block).send(shape.leader, kUp).after(copied);
    }
  } else if (position < between) {
    const std::uint32_t nth = (position - turn) / shape.members;
    const std::uint32_t member = position - turn - nth * shape.members;
    const std::uint32_t rank = nth < shape.leader ? nth : nth + shape.members;
    move.keep(areas.outgoing(shape, rank) + member * block);
    if (member == 0) {
      move.take(source + rank * block).after(copied);
    } else {
      const std::uint32_t arrivals = collect + (member - 1) * shape.ranges;
      move.take(areas.in_row(member, rank));
      after_positions(move, emit, arrivals, arrivals + shape.ranges);
    }
  } else if (position < hand_out) {
    const std::uint32_t s = (position - between) / 2 + 1;
    const bool sends = (position - between) % 2 == 0;
    const std::uint32_t group = sends ? plus(shape.group, s, groups) : minus(shape.group, s, groups);
    const std::uint32_t peer = levels.first(group);
    blocks = std::uint64_t{shape.members} * levels.members(group);
    if (sends) {
      move.take(areas.outgoing(shape, peer)).send(peer, kBetween);
    } else {
      move.arrive(peer, kBetween).keep(areas.incoming(shape, group, 0));
    }
    after_positions(move, emit, sends ? turn : 0, between);
  } else {
    const std::uint32_t s = position - hand_out;
    const std::uint32_t nth = shape.leads ? s / shape.members : s;
    const std::uint32_t group = minus(shape.group, nth + 1, groups);
    const std::uint32_t member = shape.leads ? s - nth * shape.members : own;
    blocks = levels.members(group);
    if (shape.leads) {
      move.take(areas.incoming(shape, group, member)).after(position - (between + 2 * nth + 1));
    } else {
      move.arrive(shape.leader, kDown).after(copied);
    }
    if (shape.leads && member != 0) {
      move.send(shape.leader + member, kDown);
    } else {
      move.keep(dst(levels.first(group) * block));
    }
  }
  emit(move.count(blocks * call.count));
}

}  // namespace

/// What a group sends another is a message. Of ranges of one size the first two are the largest ones.
bool alltoall_two_level_admits(const Call& call) {
  const Levels levels(call);
  if (is_scattered(call)) return false;
  if (levels.groups() == 1) return true;
  const std::uint32_t largest = levels.most_members();
  const std::uint32_t second = call.groups != nullptr ? largest : levels.members(1);
  return call.count <= divide(divide(kMaxCount, largest).quotient, second).quotient;
}

std::uint64_t alltoall_two_level_scratch_bytes(const Call& call) {
  const Shape shape(call);
  const std::uint64_t row = call.size * call.count * element_bytes(call);
  if (shape.leads) return row * 2 * shape.members;
  return call.in_place && call.size > 1 ? row : 0;
}

std::uint32_t alltoall_two_level_steps(const Call& call) {
  return call.size == 1 && call.in_place ? 0 : steps_for(Shape(call).moves());
}

void alltoall_two_level_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  each_round(step, shape.moves(), 1, [&](std::uint32_t position) { move_at(call, shape, position, emit); });
}

}  // namespace unisono::collectives
