// How the two ends of a new connection prove to each other that they are of the job. Bytes only, no sockets.
//
//   connector -> acceptor   Hello      who it is, whom it wants, a nonce
//   acceptor -> connector   Challenge  a nonce, and its proof over hello and nonce
//   connector -> acceptor   Proof      over hello and challenge
//   acceptor -> connector   Verdict    accepted, or why not
//
// Every message has one length, so nobody can claim another. A proof is of use in this one handshake only: it covers
// both nonces, who connects to whom, and which of the two speaks. Neither end believes anything, and the connector
// tells nothing but who it is, before the other end has proven itself. The first two messages keep their layout in
// all versions, so that two versions of the library can tell each other so.
//
// A session may have several connections (see Bundle). The first one makes it, and tells each end how many the other
// one would have; the lesser number holds. Each further one has a number from 1 on, and is proven by a key that only
// the two ends of the first one know: so it belongs to that session, and to no other of the same endpoints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "network/network.hpp"
#include "network/secret.hpp"

namespace unisono::tcp {

/// Of this handshake.
inline constexpr std::uint32_t kProtocol = 2;
/// Connections of one session.
inline constexpr std::uint32_t kMostConnections = 16;

struct Hello {
  std::array<char, 8> magic;
  std::uint32_t protocol;
  std::uint32_t wire;  ///< version of the message header
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t size;        ///< endpoints of the job
  std::uint16_t tls;         ///< 1: what follows the handshake is encrypted (see Tls), 0: it is not
  std::uint8_t number;       ///< which connection of the session it is; 0: the one that makes it
  std::uint8_t connections;  ///< how many the connector would have
  Nonce nonce;
};
static_assert(sizeof(Hello) == 48);

/// What of a challenge its proof covers.
struct ChallengeHead {
  std::array<char, 8> magic;
  std::uint32_t protocol;
  std::uint32_t wire;
  Nonce nonce;
};
struct Challenge {
  ChallengeHead head;
  Digest proof;
};
static_assert(sizeof(Challenge) == 64);

struct Proof {
  Digest proof;
};

enum class Ruling : std::uint16_t {
  kAccepted = 1,
  /// The acceptor's own attempt to connect is further: the connector waits for that.
  kDuplicate = 2,
  /// There is a session already, or has been; or the connection with this number.
  kKnown = 3,
  /// The ends speak different versions.
  kOtherVersion = 4,
  /// One end would encrypt, the other would not.
  kOtherSecurity = 5,
};
struct Verdict {
  std::array<char, 4> magic;
  Ruling ruling;
  std::uint16_t connections;  ///< how many the acceptor would have; 0 unless it has accepted
};
static_assert(sizeof(Verdict) == 8);

/// Who is on which end. Acceptors do not know the connector yet.
struct Ends {
  std::uint32_t self = 0;
  std::uint32_t peer = 0;
  std::uint32_t size = 0;
  bool tls = false;               ///< whether this end encrypts; both must
  std::uint32_t connections = 1;  ///< how many this end would have for one session, at most kMostConnections
  std::uint32_t number = 0;       ///< of the connection, from the connector
};

/// What the two ends of a connection have found out about it. The secrets are known to nobody else.
struct Agreed {
  std::uint32_t number = 0;
  std::uint32_t connections = 1;  ///< of the session; said by the first one
  Digest tls_secret{};
  JobKey session_key{};  ///< by which the further connections of the session are proven
};

/// The key of the session that there is, or was, with an endpoint; nothing if there has been none.
using SessionKeys = std::function<std::optional<JobKey>(std::uint32_t peer)>;

/// Bytes on their way out and in: what both ends have in common.
class Exchange {
 public:
  /// What is to be sent next, and how much of it was.
  std::span<const std::byte> output() const { return std::span(out_).subspan(sent_, out_bytes_ - sent_); }
  void sent(std::size_t bytes) { sent_ += bytes; }
  /// Where the next bytes are to be put: never more than belong to the handshake. Empty if none are awaited now.
  std::span<std::byte> wanted() { return std::span(in_).subspan(got_, in_bytes_ - got_); }

 protected:
  static constexpr std::size_t kLongest = sizeof(Challenge);
  void say(std::span<const std::byte> message);
  void await(std::size_t bytes) {
    in_bytes_ = bytes;
    got_ = 0;
  }
  /// True once all that is awaited has come.
  bool add(std::size_t bytes) {
    got_ += bytes;
    return got_ == in_bytes_;
  }
  template <class T>
  T message() const;

 private:
  std::array<std::byte, kLongest> out_{};
  std::array<std::byte, kLongest> in_{};
  std::size_t out_bytes_ = 0, sent_ = 0, in_bytes_ = 0, got_ = 0;
};

/// The end that connected.
class Connector : public Exchange {
 public:
  enum class State : std::uint8_t {
    kAwaitsChallenge,
    kChallenged,  ///< by a member of the job; goes on with `prove`
    kAwaitsVerdict,
    kAccepted,
    kDuplicate,
    kFailed,  ///< see `fault`
  };
  /// `key` is the job's for the first connection of a session, and the session's for others.
  Connector(const JobKey& key, Ends ends, const Nonce& nonce);
  /// So many bytes were put into `wanted()`.
  void got(std::size_t bytes);
  /// Only if challenged. From here on the acceptor may regard this connection as the session.
  void prove();
  State state() const { return state_; }
  /// In words that follow the address.
  const std::string& fault() const { return fault_; }
  /// Whether the other end has proven itself and said that there can be no session: no other address will do.
  bool final() const { return final_; }
  /// Only if accepted.
  Agreed agreed() const;

 private:
  void take_challenge();
  void take_verdict();
  void fail(std::string text, bool final);

  JobKey key_;
  Hello hello_;
  Challenge challenge_{};
  std::uint32_t connections_ = 1;
  State state_ = State::kAwaitsChallenge;
  std::string fault_;
  bool final_ = false;
};

/// The end that was connected to.
class Acceptor : public Exchange {
 public:
  enum class State : std::uint8_t {
    kAwaitsHello,
    kAwaitsProof,
    kProven,   ///< goes on with `rule`
    kRuled,    ///< what remains is to send the output
    kRefused,  ///< a stranger; see `fault`
  };
  /// `ends.peer` and `ends.number` are not looked at. Without `sessions`, which live as long as this, further
  /// connections of a session are refused.
  Acceptor(const JobKey& key, Ends ends, const Nonce& nonce, const SessionKeys* sessions = nullptr);
  void got(std::size_t bytes);
  /// Only if proven.
  void rule(Ruling ruling);
  State state() const { return state_; }
  /// In words that follow "a connection from" and its address.
  const std::string& fault() const { return fault_; }
  /// Who has connected, if proven.
  std::uint32_t peer() const { return hello_.from; }
  /// If proven: kAccepted if there can be a session with it; else the verdict on it, and `fault` says why.
  Ruling objection() const;
  /// Which connection of the session it is, if proven.
  std::uint32_t number() const { return hello_.number; }
  /// Only if proven.
  Agreed agreed() const;

 private:
  void take_hello();
  void take_proof();
  void fail(std::string text);

  JobKey key_;
  Ends ends_;
  Nonce nonce_;
  const SessionKeys* sessions_;
  Hello hello_{};
  Challenge challenge_{};
  State state_ = State::kAwaitsHello;
  std::string fault_;
};

}  // namespace unisono::tcp
