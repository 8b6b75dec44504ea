// Recursive doubling among leaders of groups, the common part of two algorithms. Freestanding.
#pragma once

#include "collectives/folding.hpp"
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"

namespace unisono::build {

/// What of the vector a program is about, and which member of each group leads in it: all of it, and the first one.
struct WholeVector {
  static constexpr std::uint32_t leader() { return 0; }                      ///< its position in its group
  static constexpr std::uint64_t offset(const Call& /*call*/) { return 0; }  ///< bytes
  static constexpr std::uint64_t count(const Call& call) { return call.count; }
};

/// One rank's program for an all-reduce among groups. A rank of the group, its leader, folds the members' vectors
/// in one fan-in move; the leaders use recursive doubling; a leader sends the result to its members in the move that
/// makes it. With groups of one this is plain recursive doubling.
///
/// A leader makes a sequence of values v0, v1, ...: the fold of its group, the fold of the leader that
/// rests (Folding), one per round. Round k is two moves: *give* sends the value so far to the partner,
/// *take* combines it with what arrives to the next value. Both partners compute func(lower, higher), so
/// all get the same bits, in rank order.
///
/// The take of a round must not wait for its give: under rendezvous the give completes only when the
/// partner listens, and each would wait for the other. So values alternate between dst and scratch,
/// such that the last is in dst, and a take waits for the give of the round *before*, which read the
/// memory it overwrites. That give waits for a listener one round earlier, and so on down to round 0,
/// whose take waits for nothing but local moves. In place, if round 0 would write dst while its give
/// reads it, the operand is first copied to scratch. Elsewhere dst is overwritten only by values that
/// contain the operand, so after it was read.
template <class Share>
class DoublingOf {
 public:
  /// Refers to `call`, which must outlive it.
  constexpr DoublingOf(const Call& call, const Levels& levels, const Share& share = {})
      : DoublingOf(call, levels, share, levels.group_of(call.rank), levels.groups()) {}
  /// Groups of one.
  explicit constexpr DoublingOf(const Call& call) : DoublingOf(call, Levels(call.size, 1), {}, call.rank, call.size) {}

  constexpr std::uint32_t steps() const { return steps_for(rounds(), 2); }

  constexpr std::uint64_t scratch_bytes() const {
    const bool needed = is_leader() && !folding_.rests && (copies_operand() || values() > 1);
    return needed ? count() * element_bytes(call_) : 0;
  }

  void step(std::uint32_t s, Emit& emit) const {
    each_round(s, rounds(), 2, [&](std::uint32_t r) { round_of(r, emit); });
  }

  /// Operand, fold of the group; fold of a resting leader; the rounds. Each is two moves at most.
  constexpr std::uint32_t rounds() const { return is_leader() && !folding_.rests ? 2 + folding_.rounds : 2; }

  void round_of(std::uint32_t s, Emit& emit) const {
    if (!is_leader()) {
      member(s, emit);
    } else if (folding_.rests) {
      resting(s, emit);
    } else if (s == 0) {
      fold_group(emit);
    } else if (s == 1) {
      fold_partner(emit);
    } else {
      round(s - 2, emit);
    }
  }

 private:
  // Each ordered pair of ranks exchanges one message of a kind.
  static constexpr std::uint32_t kUp = 0;
  static constexpr std::uint32_t kDown = 1;
  static constexpr std::uint32_t kRound = 2;

  constexpr bool is_leader() const { return call_.rank == leader_; }
  constexpr std::uint32_t rank_of(std::uint32_t party) const { return levels_.first(party) + share_.leader(); }
  // Member i of the group without its leader.
  constexpr std::uint32_t member_of(std::uint32_t i) const {
    return leader_ - share_.leader() + (i < share_.leader() ? i : i + 1);
  }
  constexpr std::uint64_t count() const { return share_.count(call_); }
  constexpr Place operand() const { return input(call_) + share_.offset(call_); }
  constexpr Place result() const { return dst(share_.offset(call_)); }
  constexpr std::uint32_t values() const {
    return (members_ != 0 ? 1U : 0U) + (folding_.hosts ? 1U : 0U) + folding_.rounds;
  }
  constexpr bool copies_operand() const {
    return call_.in_place && members_ == 0 && !folding_.hosts && folding_.rounds % 2 == 1;
  }
  // Where value v stands; -1 is the operand.
  constexpr Place value(std::int32_t v) const {
    if (v < 0 && !copies_operand()) return operand();
    return (static_cast<std::int32_t>(values()) - 1 - v) % 2 == 0 ? result() : scratch();
  }

  void arrive_members(Build& move, Emit& emit) const {
    arrive_from(move, emit, members_, kUp, [this](std::uint32_t i) { return member_of(i); });
  }
  // Value v is kept; the last one also goes down: to the members, and to the leader that rests.
  void deliver(Build& move, Emit& emit, std::uint32_t v) const {
    move.keep(value(static_cast<std::int32_t>(v))).count(count());
    if (v + 1 < values()) return;
    const std::uint32_t hosted = folding_.hosts ? 1 : 0;
    send_to(move, emit, hosted + members_, kDown,
            [&](std::uint32_t i) { return i < hosted ? rank_of(party_ - 1) : member_of(i - hosted); });
  }

  void member(std::uint32_t s, Emit& emit) const {
    Build move(call_);
    move.count(count());
    emit(s == 0 ? move.take(operand()).send(leader_, kUp) : move.arrive(leader_, kDown).keep(result()));
  }

  void resting(std::uint32_t s, Emit& emit) const {
    const std::uint32_t host = rank_of(party_ + 1);
    Build move(call_);
    move.count(count());
    if (s == 0) {
      move.take(operand()).send(host, kUp);
      arrive_members(move, emit);
    } else {
      move.arrive(host, kDown).keep(result());
      send_to(move, emit, members_, kDown, [this](std::uint32_t i) { return member_of(i); });
    }
    emit(move);
  }

  void fold_group(Emit& emit) const {
    Build move(call_);
    move.take(operand());
    if (members_ != 0) {
      arrive_members(move, emit);
      deliver(move, emit, 0);
    } else if (copies_operand() || (values() == 0 && !call_.in_place)) {
      move.keep(values() == 0 ? result() : scratch()).count(count());
    } else {
      return;
    }
    emit(move);
  }

  void fold_partner(Emit& emit) const {
    if (!folding_.hosts) return;
    const std::uint32_t v = members_ != 0 ? 1 : 0;
    Build move(call_);
    move.take(value(static_cast<std::int32_t>(v) - 1)).arrive(rank_of(party_ - 1), kUp).arrival_first().stream_after(v);
    deliver(move, emit, v);
    emit(move);
  }

  void round(std::uint32_t k, Emit& emit) const {
    const std::uint32_t v = values() - folding_.rounds + k;  // the value this round makes
    const Place before = value(static_cast<std::int32_t>(v) - 1);
    const bool made_before = v > 0 || copies_operand();  // by the move just before this round's two
    const std::uint32_t number = folding_.virtual_number;
    const std::uint32_t other = number ^ (std::uint32_t{1} << k);
    const std::uint32_t partner = rank_of(folding_.party(other));
    emit(Build(call_).take(before).send(partner, kRound + k).count(count()).stream_after(made_before ? 1 : 0));
    Build take(call_);
    take.take(before).arrive(partner, kRound + k).arrival_first(other < number).stream_after(made_before ? 2 : 0);
    if (k > 0) take.after(3);
    deliver(take, emit, v);
    emit(take);
  }

  constexpr DoublingOf(const Call& call, const Levels& levels, const Share& share, std::uint32_t party,
                       std::uint32_t parties)
      : call_(call),
        levels_(levels),
        share_(share),
        party_(party),
        leader_(rank_of(party)),
        members_(levels.members(party) - 1),
        folding_(Folding::of(party, parties)) {}

  const Call& call_;
  Levels levels_;
  [[no_unique_address]] Share share_;
  std::uint32_t party_;    // this rank's group
  std::uint32_t leader_;   // the rank that leads it
  std::uint32_t members_;  // its other ranks
  Folding folding_;        // of the leader among the leaders
};

using Doubling = DoublingOf<WholeVector>;

}  // namespace unisono::build
