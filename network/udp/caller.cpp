#include "network/udp/caller.hpp"

#include <algorithm>

namespace unisono::udp {

namespace {

/// Between the first hellos to one address and to the next.
constexpr std::chrono::milliseconds kHeadStart{50};
constexpr std::chrono::milliseconds kFirstPause{20};
constexpr unsigned kMostDoublings = 4;

}  // namespace

Caller::Caller(const JobKey& key, const Pair& pair, std::vector<Place> places, Time now) : key_(key), due_(now) {
  std::uint32_t number = 0;
  for (Place& place : places) {
    Nonce nonce;
    fill_random(nonce);
    tries_.push_back({std::move(place), make_hello(key, pair, number, nonce), now + number * kHeadStart});
    ++number;
  }
}

Span Caller::pause(unsigned sent) { return kFirstPause * (1 << std::min(sent, kMostDoublings)); }

void Caller::tick(Time now, const Send& send) {
  if (now < due_) return;
  due_ = Time::max();
  if (!fault_.empty()) return;
  if (chosen_) {
    const ProofFrame proof = make_proof(key_, tries_[*chosen_].hello, nonce_);
    send(tries_[*chosen_].place, bytes_of(proof));
    due_ = now + pause(proofs_++);
    return;
  }
  for (Try& one : tries_) {
    if (one.due <= now) {
      send(one.place, bytes_of(one.hello));
      one.due = now + pause(one.sent++);
    }
    due_ = std::min(due_, one.due);
  }
}

bool Caller::challenged(const ChallengeFrame& challenge, Time now) {
  if (challenge.attempt >= tries_.size() || !answers(key_, tries_[challenge.attempt].hello, challenge)) return false;
  if (chosen_) return true;
  chosen_ = challenge.attempt;
  nonce_ = challenge.nonce;
  fault_ = other_version(challenge.protocol, challenge.wire);
  due_ = now;
  return true;
}

std::string Caller::places() const {
  std::string text;
  for (const Try& one : tries_) text += (text.empty() ? "" : ", ") + tcp::text_of(one.place.address);
  return text;
}

}  // namespace unisono::udp
