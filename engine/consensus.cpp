#include "engine/consensus.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "core/text.hpp"
#include "engine/communicators.hpp"
#include "engine/rx.hpp"
#include "engine/state.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

// What travels: the value, the number, these marks, and a bit for each rank that is gone; behind a cut also for each
// that has vanished, and for each that is known to have ended.
constexpr std::uint64_t kCut = 1, kApart = 2, kDecided = 4;
constexpr std::size_t kNumbers = 3 * sizeof(std::uint64_t);

std::size_t bytes_of_bits(std::uint32_t ranks) { return (ranks + 7) / 8; }
std::size_t word_bytes(std::uint32_t ranks, bool cut) { return kNumbers + (cut ? 3 : 1) * bytes_of_bits(ranks); }

void join(std::vector<bool>& own, const std::vector<bool>& other) {
  if (own.size() < other.size()) own.resize(other.size());
  for (std::size_t rank = 0; rank < other.size(); ++rank) own[rank] = own[rank] || other[rank];
}

void join(Agreed& own, const Agreed& other) {
  own.value &= other.value;
  own.number = std::max(own.number, other.number);
  own.apart = own.apart || other.apart;
  join(own.gone, other.gone);
  join(own.ended, other.ended);
}

/// "ranks 0-2, 5 on 2 hosts", or "rank 3 on 1 host".
std::string text_of_ranks(const std::vector<bool>& those, const Communicator& communicator, const Poe& poe) {
  const auto size = static_cast<std::uint32_t>(those.size());
  std::set<std::uint32_t> hosts;
  std::string text;
  std::uint32_t count = 0;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (!those[rank]) continue;
    ++count;
    hosts.insert(poe.host_of(communicator.peers.endpoint(rank)));
    if (rank != 0 && those[rank - 1]) continue;
    std::uint32_t last = rank;
    while (last + 1 < size && those[last + 1]) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(rank);
    if (last != rank) text += "-" + std::to_string(last);
  }
  return formatted("{}{} on {} host{}", count == 1 ? "rank " : "ranks ", text, hosts.size(),
                   hosts.size() == 1 ? "" : "s");
}

}  // namespace

Consensus::Consensus(const Blocks& blocks, Communicator& communicator)
    : blocks_(blocks),
      communicator_(communicator),
      vanished_(communicator.size, false),
      ended_(communicator.size, false),
      agreed_gone_(communicator.size, false) {}

bool Consensus::fits(std::uint32_t ranks, std::uint32_t payload) {
  return word_bytes(ranks, true) <= payload && (ranks <= kMostTold || TreeWord::most_bytes(ranks) <= payload);
}

Consensus::Word Consensus::decode(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) const {
  const std::uint32_t ranks = communicator_.size;
  std::uint64_t marks = 0;
  if (payload.size() >= kNumbers) std::memcpy(&marks, payload.data() + 2 * sizeof marks, sizeof marks);
  const bool cut = (marks & kCut) != 0;
  if (payload.size() != word_bytes(ranks, cut) || header.offset > ranks) {
    throw Error(ErrorCode::kCorruptMessage,
                "rank " + std::to_string(peer) + " sent a word for an agreement of " + std::to_string(payload.size()) +
                    " bytes, round " + std::to_string(header.offset) + "; " + std::to_string(word_bytes(ranks, cut)) +
                    " bytes and rounds up to " + std::to_string(ranks) + " are allowed");
  }
  Word word;
  word.purpose = header.signature;
  word.cut = cut;
  word.decided = (marks & kDecided) != 0;
  word.said.apart = (marks & kApart) != 0;
  std::memcpy(&word.said.value, payload.data(), sizeof word.said.value);
  std::memcpy(&word.said.number, payload.data() + sizeof word.said.value, sizeof word.said.number);
  const std::byte* bits = payload.data() + kNumbers;
  const auto take = [&](std::vector<bool>& those) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      those.push_back((std::to_integer<unsigned>(bits[rank / 8]) >> rank % 8 & 1U) != 0);
    }
    bits += bytes_of_bits(ranks);
  };
  take(word.said.gone);
  if (cut) {
    take(word.said.vanished);
    take(word.said.ended);
  }
  return word;
}

void Consensus::send(std::uint32_t peer, std::uint32_t number, std::uint32_t round, const Word& word) {
  std::string payload(word_bytes(communicator_.size, word.cut), '\0');
  const std::uint64_t marks = (word.cut ? kCut : 0) | (word.said.apart ? kApart : 0) | (word.decided ? kDecided : 0);
  std::memcpy(payload.data(), &word.said.value, sizeof word.said.value);
  std::memcpy(payload.data() + sizeof marks, &word.said.number, sizeof word.said.number);
  std::memcpy(payload.data() + 2 * sizeof marks, &marks, sizeof marks);
  char* bits = payload.data() + kNumbers;
  const auto put = [&](const std::vector<bool>& those) {
    for (std::uint32_t rank = 0; rank < those.size(); ++rank) {
      if (those[rank]) bits[rank / 8] = static_cast<char>(bits[rank / 8] | 1U << rank % 8);
    }
    bits += bytes_of_bits(communicator_.size);
  };
  put(word.said.gone);
  if (word.cut) {
    put(word.said.vanished);
    put(word.said.ended);
  }
  Header header = blocks_.tx->header(communicator_, peer, MessageType::kControl);
  header.tag = static_cast<std::uint32_t>(Control::kAgree);
  header.sequence = number;
  header.offset = round;
  header.signature = word.purpose;
  blocks_.tx->control(communicator_, peer, header, payload);
}

// -------------------------------------------------------------------------------------------- along a tree

bool Consensus::by_tree() const { return communicator_.size > kMostTold && !cut_; }

TreeAgreement& Consensus::tree() {
  if (!tree_) {
    tree_.emplace(communicator_.rank, agreed_gone_, links_);
    for (const auto& [peer, word] : std::exchange(early_[number_], {})) tree_->receive(peer, word);
    early_.erase(early_.begin(), early_.upper_bound(number_));
  }
  return *tree_;
}

void Consensus::Links::send(std::uint32_t rank, const TreeWord& word) {
  consensus_.send_tree_word(rank, consensus_.number_, word);
}

bool Consensus::Links::ended(std::uint32_t rank) {
  if (consensus_.cut_) return false;
  switch (consensus_.look(rank)) {
    case Seen::kEnded:
      return true;
    case Seen::kVanished:
      consensus_.lose(rank);
      return false;
    default:
      return false;
  }
}

void Consensus::send_tree_word(std::uint32_t peer, std::uint32_t number, const TreeWord& word) {
  Header header = blocks_.tx->header(communicator_, peer, MessageType::kControl);
  header.tag = static_cast<std::uint32_t>(Control::kAgree);
  header.sequence = number;
  header.signature = word.purpose;
  blocks_.tx->control(communicator_, peer, header, word.encoded(communicator_.size));
}

void Consensus::on_tree_word(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) {
  TreeWord word = TreeWord::decoded(payload, communicator_.size);
  if (communicator_.size <= kMostTold) {
    throw Error(ErrorCode::kCorruptMessage, formatted("rank {} sent a word along a tree of {} ranks; from {} on there "
                                                      "are trees",
                                                      peer, communicator_.size, kMostTold + 1));
  }
  catch_up();
  if (vanished_[peer]) tell_that_it_is_out(peer, header);
  // A rank that has not heard of all that have vanished will, and then says its word anew.
  if (cut_) return;
  const auto ahead = static_cast<std::int32_t>(header.sequence - number_);
  if (ahead == 0) {
    tree().receive(peer, word);
  } else if (ahead == 1) {
    early_[header.sequence].emplace_back(peer, std::move(word));
  } else if (ahead == -1 && tree_last_ && word.kind != TreeWord::Kind::kCommit) {
    TreeWord answer;
    answer.kind = TreeWord::Kind::kCommit;
    answer.ballot = word.ballot;
    answer.answer = *tree_last_;
    send_tree_word(peer, header.sequence, answer);
  }
}

/// True once all is agreed on; false also if somebody was found to have vanished.
bool Consensus::step_tree() {
  if (!tree().begun()) tree().begin(purpose_, own_.value, own_.number);
  if (tree().answer() == nullptr) tree().look();
  if (cut_) return false;
  const TreeAnswer* const answer = tree().answer();
  if (answer == nullptr) return false;
  if (answer->differ) raise_mismatch(*answer);
  own_.value = answer->value;
  own_.number = answer->number;
  own_.gone = answer->gone;
  return true;
}

void Consensus::raise_mismatch(const TreeAnswer& answer) {
  const std::size_t other = answer.purposes[0] == purpose_ ? 1 : 0;
  const std::uint32_t peer = answer.ranks[other];
  abandon();
  close();
  throw Error(ErrorCode::kMismatchedCall, "rank " + std::to_string(peer) +
                                              " has called another operation of agreement on " + communicator_.title() +
                                              " than this rank (" + std::to_string(communicator_.rank) +
                                              "): agree and shrink must be called alike on all ranks");
}

// -------------------------------------------------------------------------------------- everyone to everyone

void Consensus::tell_that_it_is_out(std::uint32_t peer, const Header& header) {
  Word answer{header.signature, {}, true, true};
  answer.said.vanished = vanished_;
  send(peer, header.sequence, 0, answer);
}

void Consensus::on_word(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) {
  if (TreeWord::is_one(payload)) {
    on_tree_word(peer, header, payload);
    return;
  }
  Word word = decode(peer, header, payload);
  catch_up();
  const bool is_out = word.cut && word.said.vanished[communicator_.rank];
  if (is_out) lose(peer);
  if (vanished_[peer]) {
    // It is of another part, or came back; a rank that does not know that yet would wait for this one.
    if (!is_out) tell_that_it_is_out(peer, header);
    return;
  }
  if (word.cut) {
    for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) {
      if (word.said.vanished[rank]) blocks_.communicators->lose(communicator_.peers.endpoint(rank));
    }
    catch_up();
  }
  if (static_cast<std::int32_t>(header.sequence - number_) < 0) {  // of one that is over here
    if (word.cut && !word.decided && last_ && header.sequence + 1 == number_) send(peer, header.sequence, 0, *last_);
    return;
  }
  if (word.decided) {
    answers_[header.sequence][peer] = std::move(word);
    return;
  }
  // A rank that has not heard of all that have vanished will, and then says its word anew.
  if (word.cut ? word.said.vanished != vanished_ : cut_) return;
  heard_[{header.sequence, static_cast<std::uint32_t>(header.offset)}][peer] = std::move(word);
}

void Consensus::lose(std::uint32_t peer) {
  blocks_.communicators->lose(communicator_.peers.endpoint(peer));
  catch_up();
}

void Consensus::catch_up() {
  if (!blocks_.communicators->lost_any()) return;
  bool more = false;
  for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) {
    if (rank == communicator_.rank || vanished_[rank]) continue;
    if (!blocks_.communicators->lost(communicator_.peers.endpoint(rank))) continue;
    // What is heard later is no word for it that it has not gone on before.
    note_ended(rank);
    vanished_[rank] = true;
    more = true;
  }
  if (!more) return;
  cut_ = true;
  ++beginnings_;
  heard_.clear();
  if (open_) begin_anew();
}

void Consensus::begin_anew() {
  if (const TreeAnswer* const adopted = tree_ ? tree_->adopted() : nullptr) {
    own_.value = adopted->value;
    own_.number = adopted->number;
  }
  round_ = 0;
  told_ = false;
  own_.gone = vanished_;
  own_.vanished = vanished_;
  note_ended();
  for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) {
    const std::uint32_t endpoint = communicator_.peers.endpoint(rank);
    if (vanished_[rank] && blocks_.communicators->parted_from(endpoint)) own_.apart = true;
  }
}

void Consensus::note_ended(std::uint32_t rank) {
  const std::uint32_t endpoint = communicator_.peers.endpoint(rank);
  const Poe& poe = *blocks_.poe;
  const bool near = poe.host_of(endpoint) == poe.host_of(poe.self());
  if (rank == communicator_.rank || ended_[rank] || (vanished_[rank] && !near)) return;
  ended_[rank] = blocks_.poe->fate(endpoint) == Poe::Fate::kEnded;
}

void Consensus::note_ended() {
  for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) note_ended(rank);
  join(own_.ended, ended_);
}

void Consensus::begin(std::uint32_t purpose, std::uint64_t value, std::uint64_t number) {
  if (running_) {
    throw Error(ErrorCode::kInvalidArgument,
                communicator_.title() + ": another thread of this rank is in an agreement on it");
  }
  running_ = true;
  catch_up();
  Word word{purpose, {value, number, std::vector<bool>(communicator_.size, false)}};
  if (!open_) {
    open(purpose, std::move(word.said));
  } else if (purpose != purpose_) {
    next_ = std::move(word);
  }
}

void Consensus::open(std::uint32_t purpose, Agreed own) {
  open_ = true;
  purpose_ = purpose;
  round_ = 0;
  told_ = false;
  own_ = std::move(own);
  if (cut_) begin_anew();
}

void Consensus::close() {
  open_ = false;
  last_ = Word{purpose_, own_, !own_.vanished.empty(), true};
  heard_.erase(heard_.begin(), heard_.upper_bound({number_, communicator_.size}));
  answers_.erase(answers_.begin(), answers_.upper_bound(number_));
  tree_last_.reset();
  if (const TreeAnswer* const answer = tree_ ? tree_->answer() : nullptr) {
    tree_last_ = *answer;
    agreed_gone_ = answer->gone;
  }
  tree_.reset();
  ++number_;
}

void Consensus::tell(std::uint32_t round) {
  const Word word{purpose_, own_, cut_, false};
  for (std::uint32_t peer = 0; peer < communicator_.size; ++peer) {
    if (peer == communicator_.rank) continue;
    // A rank that has vanished for others only, or has come back, hears that it is out.
    const bool may_hear = vanished_[peer] && round == 0 &&
                          blocks_.poe->liveness(communicator_.peers.endpoint(peer)) == Poe::Liveness::kAlive;
    if (!own_.gone[peer] || may_hear) send(peer, number_, round, word);
  }
}

Consensus::Seen Consensus::look(std::uint32_t peer) {
  const std::uint32_t endpoint = communicator_.peers.endpoint(peer);
  if (blocks_.communicators->broken(endpoint)) {
    throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + ", " + blocks_.poe->describe(endpoint) +
                                                ", lives, but the memory shared with it is corrupt; nothing can be "
                                                "agreed on with it. End it, and try again");
  }
  if (blocks_.poe->liveness(endpoint) == Poe::Liveness::kAlive) return Seen::kThere;
  const Poe::Fate fate = blocks_.poe->fate(endpoint);
  if (fate == Poe::Fate::kUnknown) return Seen::kThere;
  while (blocks_.rx->drain(Rx::Look::kInAnyCase)) {
  }
  return fate == Poe::Fate::kVanished ? Seen::kVanished : Seen::kEnded;
}

void Consensus::check_purpose(std::uint32_t peer, const Word& word) {
  if (word.purpose == purpose_) return;
  abandon();
  open_ = false;
  throw Error(ErrorCode::kMismatchedCall, "rank " + std::to_string(peer) +
                                              " has called another operation of agreement on " + communicator_.title() +
                                              " than this rank (" + std::to_string(communicator_.rank) +
                                              "): agree and shrink must be called alike on all ranks");
}

bool Consensus::join_words() {
  const std::uint64_t beginning = beginnings_;
  bool all = true;
  for (std::uint32_t peer = 0; peer < communicator_.size; ++peer) {
    const auto said = [&] { return heard_[{number_, 0}].count(peer) != 0; };
    if (peer == communicator_.rank || own_.gone[peer] || said()) continue;
    // It takes seconds until somebody has vanished, but not for one after the other.
    if (!all && blocks_.poe->in_shared_memory(communicator_.peers.endpoint(peer))) continue;
    const Seen seen = look(peer);
    if (beginnings_ != beginning) return false;
    if (seen == Seen::kThere) {
      all = false;
      continue;
    }
    if (seen == Seen::kVanished && !said()) lose(peer);
    if (beginnings_ != beginning) return false;
    own_.gone[peer] = !said();
  }
  if (!all) return false;
  for (const auto& [peer, word] : heard_[{number_, 0}]) {
    check_purpose(peer, word);
    join(own_, word.said);
  }
  // Some may have ended since they spoke, or before the others vanished, which those know.
  if (cut_) note_ended();
  return true;
}

bool Consensus::step() {
  for (;;) {
    catch_up();
    const std::uint64_t beginning = beginnings_;
    if (by_tree()) {
      if (!step_tree()) {
        if (beginnings_ != beginning) continue;
        return false;
      }
    } else if (const auto answer = answers_.find(number_); answer != answers_.end()) {
      const auto& [peer, word] = *answer->second.begin();  // those of others are the same
      check_purpose(peer, word);
      own_ = word.said;
      round_ = communicator_.size;
    } else {
      if (!told_ && (round_ == 0 || round_ == communicator_.rank + 1)) tell(round_);
      told_ = true;
      if (round_ == 0) {
        if (!join_words()) {
          if (beginnings_ != beginning) continue;
          return false;
        }
      } else if (const std::uint32_t speaker = round_ - 1; speaker != communicator_.rank && !vanished_[speaker]) {
        const auto word = [&]() -> const Word* {
          const auto& words = heard_[{number_, round_}];
          const auto own = words.find(speaker);
          return own == words.end() ? nullptr : &own->second;
        };
        if (word() == nullptr) {
          const Seen seen = look(speaker);
          if (seen == Seen::kThere) {
            for (const std::uint32_t endpoint : communicator_.peers.endpoints()) {
              if (!blocks_.poe->in_shared_memory(endpoint)) blocks_.poe->liveness(endpoint);
            }
            return false;
          }
          if (beginnings_ == beginning && seen == Seen::kVanished && word() == nullptr) lose(speaker);
          if (beginnings_ != beginning) continue;
        }
        if (const Word* const said = word(); said != nullptr) own_ = said->said;
      }
      if (round_ != communicator_.size) {
        ++round_;
        told_ = false;
        continue;
      }
    }
    if (!next_) return true;
    close();
    open(next_->purpose, std::move(next_->said));
    next_.reset();
  }
}

Agreed Consensus::take() {
  running_ = false;
  close();
  judge(own_);
  return std::move(own_);
}

// The larger part goes on, of two that are equal that with the lowest rank. Each part counts all whom it does not know
// to have ended, so no two parts can both be larger than what they miss.
void Consensus::judge(const Agreed& agreed) {
  if (agreed.vanished.empty()) return;
  std::vector<bool> here(communicator_.size), missing(communicator_.size), ended(communicator_.size);
  std::uint32_t lowest = communicator_.size;
  for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) {
    here[rank] = !agreed.gone[rank];
    missing[rank] = agreed.vanished[rank] && !agreed.ended[rank];
    ended[rank] = !here[rank] && !missing[rank];
    if (!ended[rank]) lowest = std::min(lowest, rank);
  }
  const auto present = std::count(here.begin(), here.end(), true);
  const auto absent = std::count(missing.begin(), missing.end(), true);
  if (absent == 0) return;
  if (!agreed.apart && (present > absent || (present == absent && here[lowest]))) return;
  std::string first;
  for (std::uint32_t rank = communicator_.size; rank-- > 0;) {
    const std::uint32_t endpoint = communicator_.peers.endpoint(rank);
    if (!missing[rank]) continue;
    blocks_.communicators->part_from(endpoint);
    first = formatted("rank {}, {}", rank, blocks_.poe->describe(endpoint));
  }
  const auto dead = std::count(ended.begin(), ended.end(), true);
  throw Error(
      ErrorCode::kPartitioned,
      formatted(
          "agreement on {} (rank {}): the network is cut. From here {} can be reached, and {} cannot (the first is "
          "{}){}. {}; this one must end, as the others may go on: exit the program",
          communicator_.title(), communicator_.rank, text_of_ranks(here, communicator_, *blocks_.poe),
          text_of_ranks(missing, communicator_, *blocks_.poe), first,
          dead == 0 ? "" : formatted(", and {} known to have ended", text_of_ranks(ended, communicator_, *blocks_.poe)),
          agreed.apart ? "This part was left behind before"
                       : "The larger part goes on, of two equal ones that with the lowest rank"));
}

std::vector<std::uint32_t> Consensus::awaited() const {
  if (by_tree()) return tree_ ? tree_->awaited() : std::vector<std::uint32_t>{};
  std::vector<std::uint32_t> ranks;
  if (round_ != 0) return {round_ - 1};
  const auto words = heard_.find({number_, 0});
  for (std::uint32_t peer = 0; peer < communicator_.size; ++peer) {
    const bool said = words != heard_.end() && words->second.count(peer) != 0;
    if (peer != communicator_.rank && !said && !own_.gone[peer]) ranks.push_back(peer);
  }
  return ranks;
}

}  // namespace unisono::cclo
