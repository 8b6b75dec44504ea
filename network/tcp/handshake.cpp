#include "network/tcp/handshake.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/generated/spec.hpp"
#include "core/text.hpp"

namespace unisono::tcp {

static_assert(std::endian::native == std::endian::little, "messages are sent as they lie in memory");

namespace {

constexpr std::array<char, 8> kHelloMagic{'U', 'N', 'I', 'T', 'C', 'P', '?', '\n'};
constexpr std::array<char, 8> kChallengeMagic{'U', 'N', 'I', 'T', 'C', 'P', '!', '\n'};
constexpr std::array<char, 4> kVerdictMagic{'U', 'N', 'I', 'V'};
constexpr auto kWire = static_cast<std::uint32_t>(kWireVersion);

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

Digest acceptors_proof(const JobKey& key, const Hello& hello, const ChallengeHead& head) {
  return digest_of(key, "unisono tcp acceptor", {bytes_of(hello), bytes_of(head)});
}

Digest connectors_proof(const JobKey& key, const Hello& hello, const Challenge& challenge) {
  return digest_of(key, "unisono tcp connector", {bytes_of(hello), bytes_of(challenge)});
}

// A purpose of its own: a stranger that has seen proofs knows nothing of it. Both nonces are in it, so no two
// connections share it.
Digest secret_of_tls(const JobKey& key, const Hello& hello, const Challenge& challenge) {
  return digest_of(key, "unisono tcp tls", {bytes_of(hello), bytes_of(challenge)});
}

// As that; what proves further connections of the session proves nothing else.
JobKey key_of_session(const JobKey& key, const Hello& hello, const Challenge& challenge) {
  return digest_of(key, "unisono tcp session", {bytes_of(hello), bytes_of(challenge)});
}

/// How many connections both ends would have.
std::uint32_t lesser(std::uint32_t one, std::uint32_t other) {
  return std::clamp(std::min(one, other), 1U, kMostConnections);
}

Hello hello_of(const Ends& ends, const Nonce& nonce) {
  Hello hello{kHelloMagic, kProtocol, kWire, ends.self, ends.peer, ends.size, 0, 0, 0, nonce};
  hello.tls = ends.tls ? 1 : 0;
  hello.number = static_cast<std::uint8_t>(ends.number);
  hello.connections = static_cast<std::uint8_t>(ends.connections);
  return hello;
}

/// In words that follow an endpoint which encrypts, or does not.
std::string text_of_security(bool encrypts) {
  return encrypts ? "encrypts its connections by TLS, this endpoint does not: set UNISONO_TLS alike on all ranks"
                  : "does not encrypt its connections, this endpoint does: set UNISONO_TLS alike on all ranks";
}

std::string text_of_versions(std::uint32_t protocol, std::uint32_t wire) {
  return formatted("speaks version {} of the handshake and {} of the message header, this library speaks {} and {}",
                   protocol, wire, kProtocol, kWire);
}

}  // namespace

void Exchange::say(std::span<const std::byte> message) {
  std::memcpy(out_.data(), message.data(), message.size());
  out_bytes_ = message.size();
  sent_ = 0;
}

template <class T>
T Exchange::message() const {
  static_assert(sizeof(T) <= kLongest);
  T result;
  std::memcpy(&result, in_.data(), sizeof result);
  return result;
}

Connector::Connector(const JobKey& key, Ends ends, const Nonce& nonce) : key_(key), hello_(hello_of(ends, nonce)) {
  say(bytes_of(hello_));
  await(sizeof(Challenge));
}

void Connector::fail(std::string text, bool final) {
  fault_ = std::move(text);
  final_ = final;
  state_ = State::kFailed;
  await(0);
}

void Connector::got(std::size_t bytes) {
  if (!add(bytes)) return;
  if (state_ == State::kAwaitsChallenge) {
    take_challenge();
  } else if (state_ == State::kAwaitsVerdict) {
    take_verdict();
  }
}

void Connector::take_challenge() {
  challenge_ = message<Challenge>();
  if (challenge_.head.magic != kChallengeMagic) return fail("something answers that is not of Unisono", false);
  if (!equal(challenge_.proof, acceptors_proof(key_, hello_, challenge_.head))) {
    return fail("something answers that does not know the key of this job", false);
  }
  await(0);
  state_ = State::kChallenged;
}

void Connector::prove() {
  if (state_ != State::kChallenged) throw Error(ErrorCode::kInternal, "a proof was asked for without a challenge");
  say(bytes_of(Proof{connectors_proof(key_, hello_, challenge_)}));
  await(sizeof(Verdict));
  state_ = State::kAwaitsVerdict;
}

void Connector::take_verdict() {
  const auto verdict = message<Verdict>();
  await(0);
  if (verdict.magic != kVerdictMagic) return fail("answered a proof with no verdict", false);
  switch (verdict.ruling) {
    case Ruling::kAccepted:
      connections_ = lesser(hello_.connections, verdict.connections);
      state_ = State::kAccepted;
      return;
    case Ruling::kDuplicate:
      state_ = State::kDuplicate;
      return;
    case Ruling::kKnown:
      return fail("has had its one session with this endpoint", true);
    case Ruling::kOtherVersion:
      return fail(text_of_versions(challenge_.head.protocol, challenge_.head.wire), true);
    case Ruling::kOtherSecurity:
      return fail(text_of_security(hello_.tls == 0), true);
  }
  fail(formatted("answered with the unknown verdict {}", static_cast<unsigned>(verdict.ruling)), false);
}

Agreed Connector::agreed() const {
  return {hello_.number, connections_, secret_of_tls(key_, hello_, challenge_),
          key_of_session(key_, hello_, challenge_)};
}

Acceptor::Acceptor(const JobKey& key, Ends ends, const Nonce& nonce, const SessionKeys* sessions)
    : key_(key), ends_(ends), nonce_(nonce), sessions_(sessions) {
  await(sizeof(Hello));
}

void Acceptor::fail(std::string text) {
  fault_ = std::move(text);
  state_ = State::kRefused;
  await(0);
}

Ruling Acceptor::objection() const {
  if (hello_.protocol != kProtocol || hello_.wire != kWire) return Ruling::kOtherVersion;
  return hello_.tls == (ends_.tls ? 1U : 0U) ? Ruling::kAccepted : Ruling::kOtherSecurity;
}

Agreed Acceptor::agreed() const {
  return {hello_.number, lesser(hello_.connections, ends_.connections), secret_of_tls(key_, hello_, challenge_),
          key_of_session(key_, hello_, challenge_)};
}

void Acceptor::got(std::size_t bytes) {
  if (!add(bytes)) return;
  if (state_ == State::kAwaitsHello) {
    take_hello();
  } else if (state_ == State::kAwaitsProof) {
    take_proof();
  }
}

void Acceptor::take_hello() {
  hello_ = message<Hello>();
  if (hello_.magic != kHelloMagic) return fail("does not begin as one of Unisono");
  if (hello_.to != ends_.self) return fail(formatted("wants endpoint {}", hello_.to));
  if (hello_.size != ends_.size) return fail(formatted("is of a job of {} endpoints", hello_.size));
  if (hello_.from >= ends_.size || hello_.from == ends_.self) {
    return fail(formatted("says that it is endpoint {}", hello_.from));
  }
  // Of another version nothing is known but its first fields, and that it speaks another one.
  if (hello_.protocol == kProtocol && hello_.number != 0) {
    const auto key = sessions_ != nullptr && *sessions_ && hello_.number < kMostConnections ? (*sessions_)(hello_.from)
                                                                                            : std::nullopt;
    if (!key) {
      return fail(
          formatted("says that it is endpoint {}, and wants to add connection {} to a session that there is "
                    "not",
                    hello_.from, unsigned{hello_.number}));
    }
    key_ = *key;
  }
  challenge_.head = {kChallengeMagic, kProtocol, kWire, nonce_};
  challenge_.proof = acceptors_proof(key_, hello_, challenge_.head);
  say(bytes_of(challenge_));
  await(sizeof(Proof));
  state_ = State::kAwaitsProof;
}

void Acceptor::take_proof() {
  if (!equal(message<Proof>().proof, connectors_proof(key_, hello_, challenge_))) {
    return fail(formatted("says that it is endpoint {}, and does not know the key of this {}", hello_.from,
                          hello_.number == 0 || hello_.protocol != kProtocol ? "job" : "session"));
  }
  await(0);
  state_ = State::kProven;
  const Ruling ruling = objection();
  if (ruling == Ruling::kOtherVersion) fault_ = text_of_versions(hello_.protocol, hello_.wire);
  if (ruling == Ruling::kOtherSecurity) fault_ = text_of_security(hello_.tls != 0);
}

void Acceptor::rule(Ruling ruling) {
  if (state_ != State::kProven) throw Error(ErrorCode::kInternal, "a verdict was given without a proof");
  const bool accepted = ruling == Ruling::kAccepted;
  say(bytes_of(Verdict{kVerdictMagic, ruling, static_cast<std::uint16_t>(accepted ? ends_.connections : 0)}));
  state_ = State::kRuled;
}

}  // namespace unisono::tcp
