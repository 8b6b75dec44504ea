#include "engine/tree_agreement.hpp"

#include <algorithm>
#include <utility>

namespace unisono::cclo {

using Kind = TreeWord::Kind;

TreeAgreement::TreeAgreement(std::uint32_t rank, std::vector<bool> out, TreeLinks& links)
    : rank_(rank), links_(links), known_ended_(out) {
  const auto first = static_cast<std::uint32_t>(std::find(out.begin(), out.end(), false) - out.begin());
  enter({first, 0}, std::move(out), Phase::kGather);
}

void TreeAgreement::enter(Ballot ballot, std::vector<bool> out, Phase phase) {
  ballot_ = ballot;
  out_ = std::move(out);
  out_.resize(known_ended_.size(), false);
  members_.clear();
  for (std::uint32_t rank = 0; rank < out_.size(); ++rank) {
    if (rank == rank_) position_ = static_cast<std::uint32_t>(members_.size());
    if (!out_[rank] || rank == rank_) members_.push_back(rank);
  }
  note_ended(out_);
  phase_ = phase;
  replies_.clear();
  replied_ = false;
  turned_to_.reset();
  for (const std::uint32_t child : children_of(position_)) hearers_.insert(child);
}

void TreeAgreement::note_ended(const std::vector<bool>& those) {
  for (std::uint32_t rank = 0; rank < those.size(); ++rank) {
    if (those[rank] && rank != rank_) known_ended_[rank] = true;
  }
}

// The parent of a position is what is left without its lowest bit.
std::vector<std::uint32_t> TreeAgreement::children_of(std::uint32_t position) const {
  std::vector<std::uint32_t> children;
  for (std::uint32_t bit = 1; (position & bit) == 0 && position + bit < members_.size(); bit <<= 1U) {
    children.push_back(members_[position + bit]);
  }
  return children;
}

std::vector<std::uint32_t> TreeAgreement::missing() const {
  std::vector<std::uint32_t> children = children_of(position_);
  std::erase_if(children, [&](std::uint32_t child) { return known_ended_[child] || replies_.count(child) != 0; });
  return children;
}

/// The next above it that is not known to have ended; if there is none, the lowest such rank, which may be this one.
std::uint32_t TreeAgreement::above() const {
  for (std::uint32_t position = position_; position != 0;) {
    position &= position - 1;
    if (!known_ended_[members_[position]]) return members_[position];
  }
  return *std::find_if(members_.begin(), members_.end(),
                       [&](std::uint32_t rank) { return rank == rank_ || !known_ended_[rank]; });
}

bool TreeAgreement::knows_more_ended() const {
  return std::any_of(members_.begin(), members_.end(), [&](std::uint32_t rank) { return known_ended_[rank]; });
}

TreeWord TreeAgreement::word(Kind kind) const {
  TreeWord word;
  word.kind = kind;
  word.ballot = ballot_;
  const bool up = kind == Kind::kWord || kind == Kind::kAck;
  word.ended = kind == Kind::kOrphan ? known_ended_ : out_;
  if (up) {  // of those that are not in the tree the one above knows
    for (std::uint32_t rank = 0; rank < out_.size(); ++rank) word.ended[rank] = known_ended_[rank] && !out_[rank];
  }
  if (kind == Kind::kPropose || kind == Kind::kCommit) word.answer = *adopted_;
  return word;
}

void TreeAgreement::tell_below(Kind kind) {
  for (const std::uint32_t child : children_of(position_)) {
    if (!known_ended_[child]) links_.send(child, word(kind));
  }
}

void TreeAgreement::lead(Ballot ballot) {
  enter(ballot, known_ended_, adopted_ ? Phase::kPropose : Phase::kGather);
  tell_below(adopted_ ? Kind::kPropose : Kind::kAsk);
}

void TreeAgreement::begin(std::uint32_t purpose, std::uint64_t value, std::uint64_t number) {
  begun_ = true;
  purpose_ = purpose;
  value_ = value;
  number_ = number;
  react();
}

/// The word of this rank and of all below it that have answered.
TreeWord TreeAgreement::gathered() const {
  TreeWord all = word(Kind::kWord);
  all.purpose = purpose_;
  all.answer.value = value_;
  all.answer.number = number_;
  for (const auto& [child, reply] : replies_) {
    all.answer.value &= reply.answer.value;
    all.answer.number = std::max(all.answer.number, reply.answer.number);
    if (all.answer.differ) continue;
    if (reply.answer.differ) {
      all.answer.differ = true;
      all.answer.ranks = reply.answer.ranks;
      all.answer.purposes = reply.answer.purposes;
    } else if (reply.purpose != purpose_) {
      all.answer.differ = true;
      all.answer.ranks = {rank_, child};
      all.answer.purposes = {purpose_, reply.purpose};
    }
  }
  return all;
}

void TreeAgreement::react() {
  while (!decided_ && (phase_ == Phase::kGather ? gather() : propose())) {
  }
}

/// One step; true if another one may be possible.
bool TreeAgreement::gather() {
  if (!begun_ || !missing().empty()) return false;
  if (!leads()) {
    if (!replied_) links_.send(parent(), gathered());
    replied_ = true;
    return false;
  }
  if (knows_more_ended()) {
    lead({rank_, ballot_.attempt + 1});
    return true;
  }
  adopted_ = gathered().answer;
  adopted_->gone = out_;
  phase_ = Phase::kPropose;
  replies_.clear();
  tell_below(Kind::kPropose);
  return true;
}

bool TreeAgreement::propose() {
  if (!missing().empty()) return false;
  if (!leads()) {
    if (!replied_) links_.send(parent(), word(Kind::kAck));
    replied_ = true;
    return false;
  }
  if (knows_more_ended()) {
    lead({rank_, ballot_.attempt + 1});
    return true;
  }
  decide(TreeAnswer(*adopted_), std::nullopt);
  return false;
}

void TreeAgreement::decide(const TreeAnswer& answer, std::optional<std::uint32_t> from) {
  adopted_ = answer;
  adopted_->gone.resize(known_ended_.size(), false);
  decided_ = true;
  // In place of a child that has ended, those below it.
  std::vector<std::uint32_t> positions{position_};
  while (!positions.empty()) {
    const std::uint32_t position = positions.back();
    positions.pop_back();
    for (std::uint32_t bit = 1; (position & bit) == 0 && position + bit < members_.size(); bit <<= 1U) {
      const std::uint32_t child = members_[position + bit];
      if (known_ended_[child]) {
        positions.push_back(position + bit);
      } else {
        hearers_.insert(child);
      }
    }
  }
  if (!leads()) hearers_.insert(parent());
  for (const std::uint32_t hearer : hearers_) {
    if (hearer != from && !known_ended_[hearer]) links_.send(hearer, word(Kind::kCommit));
  }
}

void TreeAgreement::receive(std::uint32_t from, const TreeWord& said) {
  if (decided_) {
    if (said.kind != Kind::kCommit) links_.send(from, word(Kind::kCommit));
    return;
  }
  switch (said.kind) {
    case Kind::kCommit:
      decide(said.answer, from);
      return;
    case Kind::kAsk:
      if (!ballot_.before(said.ballot)) return;
      enter(said.ballot, said.ended, Phase::kGather);
      tell_below(Kind::kAsk);
      break;
    case Kind::kPropose:
      if (said.ballot.before(ballot_) || (said.ballot == ballot_ && phase_ == Phase::kPropose)) return;
      enter(said.ballot, said.ended, Phase::kPropose);
      adopted_ = said.answer;
      adopted_->gone.resize(known_ended_.size(), false);
      tell_below(Kind::kPropose);
      break;
    case Kind::kWord:
    case Kind::kAck:
      note_ended(said.ended);
      if (said.ballot != ballot_ || (said.kind == Kind::kWord) != (phase_ == Phase::kGather)) return;
      replies_[from] = said;
      break;
    case Kind::kOrphan:
      note_ended(said.ended);
      hearers_.insert(from);
      break;
  }
  react();
}

void TreeAgreement::look() {
  // Words may be handed over at each question, so everything is looked at anew after it.
  for (const std::uint32_t child : missing()) {
    if (!known_ended_[child] && links_.ended(child)) known_ended_[child] = true;
  }
  react();
  while (!decided_ && !leads()) {
    const std::uint32_t next = above();
    if (next == rank_) {
      lead({rank_, 0});
      react();
      return;
    }
    if (links_.ended(next)) {
      known_ended_[next] = true;
      continue;
    }
    if (decided_ || leads() || next != above()) continue;
    if (next != parent() && turned_to_ != next) {
      turned_to_ = next;
      links_.send(next, word(Kind::kOrphan));
    }
    return;
  }
}

std::vector<std::uint32_t> TreeAgreement::awaited() const {
  if (decided_) return {};
  std::vector<std::uint32_t> ranks = missing();
  if (ranks.empty() && !leads()) ranks.push_back(above());
  return ranks;
}

}  // namespace unisono::cclo
