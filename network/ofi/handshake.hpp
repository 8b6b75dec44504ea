// How two endpoints that have each other's address prove to each other that they are of the job, where nobody can tell
// from whom a datagram comes. Bytes only.
//
//   Hello   who it is, whom it wants, a nonce. Repeated until it is answered.
//   Proof   the same, the nonce of the other end, and a digest over all of it.
//
// Either end begins, or both do. An end that gets a hello answers with a proof; the end that gets the first right proof
// answers with one that says so (`verified`). An end may send messages once the other end has said so, for then what it
// sends will be taken. Answers go to the address on the peer's card, never to where a question came from.
//
// A proof is of use in this one handshake only: it covers both nonces, who speaks, and to whom. All frames of a session
// carry a token of their direction, a digest over the same; it is not in the handshake, so that only the two ends know
// it. Both frames keep their layout in all versions, so that two versions of the library can tell each other so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "network/network.hpp"
#include "network/secret.hpp"

namespace unisono::ofi {

/// Of this handshake and these frames.
inline constexpr std::uint32_t kProtocol = 3;

/// What both frames of a handshake begin with.
struct Greeting {
  std::array<char, 8> magic;
  std::uint32_t protocol;
  std::uint32_t wire;  ///< version of the message header
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t size;      ///< endpoints of the job
  std::uint32_t verified;  ///< 1: the other end has proven itself to this one
  Nonce nonce;
};
struct Hello {
  Greeting head;
};
static_assert(sizeof(Hello) == 48);
struct Proof {
  Greeting head;
  Nonce answered;  ///< of the other end
  Digest digest;
};
static_assert(sizeof(Proof) == 96);

std::optional<Hello> read_hello(std::span<const std::byte> bytes);
std::optional<Proof> read_proof(std::span<const std::byte> bytes);

/// Who talks to whom.
struct Ends {
  std::uint32_t self = 0;
  std::uint32_t peer = 0;
  std::uint32_t size = 0;
};
/// Why a greeting is not for endpoint `self` of `size`; empty if it may be.
std::string fault_of(const Greeting& head, std::uint32_t self, std::uint32_t size);

/// One end's side of it, with one peer.
class Handshake {
 public:
  Handshake(const JobKey& key, const Ends& ends, const Nonce& nonce);

  Hello hello() const;
  /// Somebody who says that he is the peer asks for a proof. Why he gets none, in words that follow who he says he is;
  /// empty if he does.
  std::string got(const Hello& hello);
  /// Why a proof is none, in words that follow who sent it; empty if it is right, or is one of before.
  std::string got(const Proof& proof);

  /// Whether a proof is to be sent.
  bool owes_proof() const { return owed_; }
  Proof proof() const;
  /// It is owed no more.
  void proof_sent() { owed_ = false; }

  /// The peer has proven itself: what has its token is from it.
  bool proven() const { return proven_; }
  /// The peer has said that this end has proven itself to it.
  bool confirmed() const { return confirmed_; }
  /// Of a proven peer, which version it speaks if that is another one; else empty.
  const std::string& other_version() const { return other_version_; }

  /// What frames to the peer carry, and frames from it. Only if proven.
  std::uint64_t token_out() const { return token_out_; }
  std::uint64_t token_in() const { return token_in_; }

 private:
  Greeting greeting(const std::array<char, 8>& magic) const;
  std::uint64_t token(std::uint32_t from, std::uint32_t to, const Nonce& first, const Nonce& second) const;

  JobKey key_;
  Ends ends_;
  Nonce nonce_;
  Nonce peers_{};  ///< the peer's, or of the last who said that he is the peer
  bool owed_ = false;
  bool proven_ = false;
  bool confirmed_ = false;
  std::uint64_t token_out_ = 0;
  std::uint64_t token_in_ = 0;
  std::string other_version_;
};

}  // namespace unisono::ofi
