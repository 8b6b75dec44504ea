// One agreement among the ranks of a large communicator, along trees: each rank says and hears O(log P) words.
//
// The lowest rank that has not ended leads. All ranks stand in a binomial tree, by their positions among those that the
// leader does not know to have ended. Words go
//
//   up     what each rank, and those below it, give (`kWord`);
//   down   what the leader makes of it, which every rank takes over (`kPropose`);
//   up     that they have (`kAck`);
//   down   that all have: it is the answer (`kCommit`).
//
// Who finds that a rank below it has ended says so on the way up, and the leader begins a new *ballot*, with a tree
// without those that are known to have ended: it asks anew (`kAsk`), or proposes the same anew. If the leader ends, the
// lowest rank that is left leads, and proposes what it had taken over itself, if it had; its ballots come after all of
// the leader before. A rank takes no part in a ballot once it has heard of a later one.
//
// Why all get the same, also those that end afterwards. The system's word on which ranks have ended is right: so every
// rank that lives is in every tree. An answer is given only after all in the tree have taken it over. So a rank that
// leads later has taken it over, and proposes no other. Nothing that a rank had sent before it ended need arrive. (This
// is Paxos with "all that live" for a majority: then the new leader is one of every majority, and need not ask.)
//
// Why nobody waits for ever. A rank looks whether those ended that it waits for: those below it, and the one above it.
// If that one has ended it turns to the next above that lives, or if there is none to the lowest rank that lives, which
// is itself or finds that it has to lead (`kOrphan`). A rank with an answer gives it at once to all that may wait for
// it: those that were ever below it, or have turned to it, the one above it, and every rank that says anything else. So
// of those that have no answer the lowest one leads, and all below it go along with it or tell it the answer.
//
// A rank that has its answer need say nothing more, unless a rank ends before all have theirs: then those that turn to
// it, or whom it is to lead, wait until it is in the library again, or ends.
//
// The paper "Practical scalable consensus for pseudo-synchronous distributed systems" (Herault et al., SC'15) has two
// ways along the tree instead of four, and returns after the second one: then ranks that end with an answer may have
// been the only ones to know it, and the others agree on another one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/tree_word.hpp"

namespace unisono::cclo {

/// What it needs of others.
class TreeLinks {
 public:
  virtual ~TreeLinks() = default;
  TreeLinks() = default;
  TreeLinks(const TreeLinks&) = delete;
  TreeLinks& operator=(const TreeLinks&) = delete;

  virtual void send(std::uint32_t rank, const TreeWord& word) = 0;
  /// Whether a rank has ended, and all that it had sent has been handed over. May hand words over meanwhile.
  virtual bool ended(std::uint32_t rank) = 0;
};

/// One rank's part in one agreement. Not thread-safe.
class TreeAgreement {
 public:
  /// `out`: those that are known to have ended by all ranks alike, in the agreements before.
  TreeAgreement(std::uint32_t rank, std::vector<bool> out, TreeLinks& links);

  /// This rank's word; once. What it hears before is kept, and passed on as far as that is possible.
  void begin(std::uint32_t purpose, std::uint64_t value, std::uint64_t number);
  bool begun() const { return begun_; }
  void receive(std::uint32_t from, const TreeWord& word);
  /// Looks whether those have ended that it waits for, and goes on accordingly. Called again and again by who waits.
  void look();

  /// The answer, once there is one.
  const TreeAnswer* answer() const { return decided_ ? &*adopted_ : nullptr; }
  /// What it has taken over, be it the answer or not.
  const TreeAnswer* adopted() const { return adopted_ ? &*adopted_ : nullptr; }
  /// The ranks that it waits for.
  std::vector<std::uint32_t> awaited() const;

 private:
  enum class Phase : std::uint8_t { kGather, kPropose };

  std::uint32_t leader() const { return members_.front(); }
  bool leads() const { return leader() == rank_; }
  std::uint32_t parent() const { return members_[position_ & (position_ - 1)]; }
  std::vector<std::uint32_t> children_of(std::uint32_t position) const;
  std::vector<std::uint32_t> missing() const;
  std::uint32_t above() const;
  bool knows_more_ended() const;
  void note_ended(const std::vector<bool>& those);
  void enter(Ballot ballot, std::vector<bool> out, Phase phase);
  void lead(Ballot ballot);
  TreeWord word(TreeWord::Kind kind) const;
  void tell_below(TreeWord::Kind kind);
  TreeWord gathered() const;
  void react();
  bool gather();
  bool propose();
  void decide(const TreeAnswer& answer, std::optional<std::uint32_t> from);

  const std::uint32_t rank_;
  TreeLinks& links_;
  std::vector<bool> known_ended_;  ///< by rank

  bool begun_ = false;
  std::uint32_t purpose_ = 0;
  std::uint64_t value_ = 0, number_ = 0;

  Ballot ballot_;                       ///< the latest that it has heard of
  std::vector<bool> out_;               ///< who is not in its tree
  std::vector<std::uint32_t> members_;  ///< who is, in rising order
  std::uint32_t position_ = 0;          ///< in `members_`
  Phase phase_ = Phase::kGather;
  std::map<std::uint32_t, TreeWord> replies_;  ///< of the phase, by child
  bool replied_ = false;                       ///< this rank has said what it has to in the phase
  std::optional<std::uint32_t> turned_to_;     ///< in this ballot
  std::set<std::uint32_t> hearers_;            ///< who was below it in any ballot, or has turned to it

  std::optional<TreeAnswer> adopted_;
  bool decided_ = false;
};

}  // namespace unisono::cclo
