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
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "network/network.hpp"
#include "network/secret.hpp"

namespace unisono::tcp {

/// Of this handshake.
inline constexpr std::uint32_t kProtocol = 1;

struct Hello {
  std::array<char, 8> magic;
  std::uint32_t protocol;
  std::uint32_t wire;  ///< version of the message header
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t size;  ///< endpoints of the job
  std::uint32_t tls;   ///< 1: what follows the handshake is encrypted (see Tls), 0: it is not
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

enum class Ruling : std::uint32_t {
  kAccepted = 1,
  /// The acceptor's own attempt to connect is further: the connector waits for that.
  kDuplicate = 2,
  /// There is a session already, or has been.
  kKnown = 3,
  /// The ends speak different versions.
  kOtherVersion = 4,
  /// One end would encrypt, the other would not.
  kOtherSecurity = 5,
};
struct Verdict {
  std::array<char, 4> magic;
  Ruling ruling;
};
static_assert(sizeof(Verdict) == 8);

/// Who is on which end. Acceptors do not know the connector yet.
struct Ends {
  std::uint32_t self = 0;
  std::uint32_t peer = 0;
  std::uint32_t size = 0;
  bool tls = false;  ///< whether this end encrypts; both must
};

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
  /// Only if accepted: what both ends of this connection know, and nobody else.
  Digest tls_secret() const;

 private:
  void take_challenge();
  void take_verdict();
  void fail(std::string text, bool final);

  JobKey key_;
  Hello hello_;
  Challenge challenge_{};
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
  /// `ends.peer` is not looked at.
  Acceptor(const JobKey& key, Ends ends, const Nonce& nonce);
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
  /// Only if proven: what both ends of this connection know, and nobody else.
  Digest tls_secret() const;

 private:
  void take_hello();
  void take_proof();
  void fail(std::string text);

  JobKey key_;
  Ends ends_;
  Nonce nonce_;
  Hello hello_{};
  Challenge challenge_{};
  State state_ = State::kAwaitsHello;
  std::string fault_;
};

}  // namespace unisono::tcp
