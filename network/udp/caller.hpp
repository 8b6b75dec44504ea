// The attempt to open a session to a peer: at all its addresses, until one answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "network/tcp/address.hpp"
#include "network/udp/handshake.hpp"
#include "network/udp/round_trip.hpp"

namespace unisono::udp {

/// Says hello to each address, a little later to each, again and again; proves itself to the first that answers, again
/// and again until the session is there. It never gives up by itself. No sockets and no clock.
class Caller {
 public:
  struct Place {
    tcp::Address address;
    unsigned scope = 0;
  };
  using Send = std::function<void(const Place& place, std::span<const std::byte> frame)>;

  Caller(const JobKey& key, const Pair& pair, std::vector<Place> places, Time now);

  /// Sends what is due.
  void tick(Time now, const Send& send);
  Time deadline() const { return due_; }
  /// True if it answers one of the hellos; then a proof is due. Later ones change nothing.
  bool challenged(const ChallengeFrame& challenge, Time now);
  bool answered() const { return chosen_.has_value(); }
  /// What the peer speaks, if it has proven itself and speaks otherwise.
  const std::string& fault() const { return fault_; }

  /// If answered: where, and what the session's keys are made of.
  const Place& place() const { return tries_[*chosen_].place; }
  Digest secret() const { return session_secret(key_, tries_[*chosen_].hello, nonce_); }
  /// "10.0.0.2:4711, [fd00::2]:4711"
  std::string places() const;

 private:
  struct Try {
    Place place;
    HelloFrame hello;
    Time due;
    unsigned sent = 0;
  };
  static Span pause(unsigned sent);

  JobKey key_;
  std::vector<Try> tries_;
  std::optional<std::size_t> chosen_;
  Nonce nonce_{};
  Time due_;
  unsigned proofs_ = 0;
  std::string fault_;
};

}  // namespace unisono::udp
