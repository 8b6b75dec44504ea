#include "engine/consensus.hpp"

#include <algorithm>
#include <cstring>

#include "engine/communicators.hpp"
#include "engine/rx.hpp"
#include "engine/state.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// What travels: the value, the number, and a bit for each rank that is gone.
std::size_t word_bytes(std::uint32_t ranks) { return 2 * sizeof(std::uint64_t) + (ranks + 7) / 8; }

void join(Agreed& own, const Agreed& other) {
  own.value &= other.value;
  own.number = std::max(own.number, other.number);
  for (std::size_t rank = 0; rank < own.gone.size(); ++rank) own.gone[rank] = own.gone[rank] || other.gone[rank];
}

}  // namespace

void Consensus::on_word(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) {
  if (payload.size() != word_bytes(communicator_.size) || header.offset > communicator_.size) {
    throw Error(ErrorCode::kCorruptMessage,
                "rank " + std::to_string(peer) + " sent a word for an agreement of " + std::to_string(payload.size()) +
                    " bytes, round " + std::to_string(header.offset) + "; " +
                    std::to_string(word_bytes(communicator_.size)) + " bytes and rounds up to " +
                    std::to_string(communicator_.size) + " are allowed");
  }
  if (static_cast<std::int32_t>(header.sequence - number_) < 0) return;  // of one that is over here
  Word word;
  word.purpose = header.signature;
  std::memcpy(&word.said.value, payload.data(), sizeof word.said.value);
  std::memcpy(&word.said.number, payload.data() + sizeof word.said.value, sizeof word.said.number);
  const std::byte* bits = payload.data() + 2 * sizeof(std::uint64_t);
  for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) {
    word.said.gone.push_back((std::to_integer<unsigned>(bits[rank / 8]) >> rank % 8 & 1U) != 0);
  }
  heard_[{header.sequence, static_cast<std::uint32_t>(header.offset)}][peer] = std::move(word);
}

void Consensus::begin(std::uint32_t purpose, std::uint64_t value, std::uint64_t number) {
  if (running_) {
    throw Error(ErrorCode::kInvalidArgument,
                communicator_.title() + ": another thread of this rank is in an agreement on it");
  }
  running_ = true;
  purpose_ = purpose;
  round_ = 0;
  told_ = false;
  own_ = {value, number, std::vector<bool>(communicator_.size, false)};
}

void Consensus::tell(std::uint32_t round) {
  std::string payload(word_bytes(communicator_.size), '\0');
  std::memcpy(payload.data(), &own_.value, sizeof own_.value);
  std::memcpy(payload.data() + sizeof own_.value, &own_.number, sizeof own_.number);
  for (std::uint32_t rank = 0; rank < communicator_.size; ++rank) {
    char& byte = payload[2 * sizeof(std::uint64_t) + rank / 8];
    if (own_.gone[rank]) byte = static_cast<char>(byte | 1U << rank % 8);
  }
  for (std::uint32_t peer = 0; peer < communicator_.size; ++peer) {
    if (peer == communicator_.rank || own_.gone[peer]) continue;
    Header header = blocks_.tx->header(communicator_, peer, MessageType::kControl);
    header.tag = static_cast<std::uint32_t>(Control::kAgree);
    header.sequence = number_;
    header.offset = round;
    header.signature = purpose_;
    blocks_.tx->control(communicator_, peer, header, payload);
  }
}

/// Whether a rank has ended, and everything that it sent before has been taken.
bool Consensus::gone(std::uint32_t peer) {
  const std::uint32_t endpoint = communicator_.peers[peer].endpoint;
  if (blocks_.communicators->broken(endpoint)) {
    throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + ", " + blocks_.poe->describe(endpoint) +
                                                ", lives, but the memory shared with it is corrupt; nothing can be "
                                                "agreed on with it. End it, and try again");
  }
  if (blocks_.poe->liveness(endpoint) == Poe::Liveness::kAlive) return false;
  while (blocks_.rx->drain()) {
  }
  return true;
}

bool Consensus::step() {
  for (;;) {
    if (!told_ && (round_ == 0 || round_ == communicator_.rank + 1)) tell(round_);
    told_ = true;
    if (round_ == 0) {
      for (std::uint32_t peer = 0; peer < communicator_.size; ++peer) {
        const auto said = [&] { return heard_[{number_, 0}].count(peer) != 0; };
        if (peer == communicator_.rank || said() || own_.gone[peer]) continue;
        if (!gone(peer)) return false;
        own_.gone[peer] = !said();
      }
      for (const auto& [peer, word] : heard_[{number_, 0}]) {
        if (word.purpose != purpose_) {
          abandon();
          throw Error(ErrorCode::kMismatchedCall,
                      "rank " + std::to_string(peer) + " has called another operation of agreement on " +
                          communicator_.title() + " than this rank (" + std::to_string(communicator_.rank) +
                          "): agree and shrink must be called alike on all ranks");
        }
        join(own_, word.said);
      }
    } else if (round_ != communicator_.rank + 1) {
      const std::uint32_t speaker = round_ - 1;
      const auto& words = heard_[{number_, round_}];
      auto word = words.find(speaker);
      if (word == words.end()) {
        if (!gone(speaker)) return false;
        word = words.find(speaker);
      }
      if (word != words.end()) own_ = word->second.said;
    }
    if (round_ == communicator_.size) return true;
    ++round_;
    told_ = false;
  }
}

Agreed Consensus::take() {
  running_ = false;
  heard_.erase(heard_.begin(), heard_.upper_bound({number_, communicator_.size}));
  ++number_;
  return std::move(own_);
}

std::vector<std::uint32_t> Consensus::awaited() const {
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
