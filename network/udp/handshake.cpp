#include "network/udp/handshake.hpp"

#include <cstring>

#include "core/text.hpp"

namespace unisono::udp {

namespace {

constexpr std::size_t kProven = 48;

template <class Frame>
std::span<const std::byte> head_of(const Frame& frame) {
  return bytes_of(frame).first(kProven);
}

Digest proof_of(const JobKey& key, const HelloFrame& hello) { return digest_of(key, "udp hello", {head_of(hello)}); }

Digest proof_of(const JobKey& key, const HelloFrame& hello, const ChallengeFrame& challenge) {
  return digest_of(key, "udp challenge", {head_of(hello), head_of(challenge)});
}

Digest proof_of(const JobKey& key, const HelloFrame& hello, const Nonce& nonce) {
  return digest_of(key, "udp proof", {head_of(hello), nonce});
}

constexpr std::array<char, 3> kMagicText{'U', 'N', 'I'};

}  // namespace

HelloFrame make_hello(const JobKey& key, const Pair& pair, std::uint32_t attempt, const Nonce& nonce) {
  HelloFrame hello;
  hello.from = pair.from;
  hello.to = pair.to;
  hello.size = pair.size;
  hello.attempt = attempt;
  hello.nonce = nonce;
  hello.proof = proof_of(key, hello);
  return hello;
}

std::string fault_of(const JobKey& key, const HelloFrame& hello, std::uint32_t self, std::uint32_t size) {
  if (hello.magic != kMagicText) return "is no hello";
  if (!equal(hello.proof, proof_of(key, hello))) return "has not proven to be of this job";
  if (hello.to != self || hello.size != size || hello.from >= size || hello.from == self) {
    return formatted("says that it is endpoint {} of {} and wants endpoint {}; this is endpoint {} of {}", hello.from,
                     hello.size, hello.to, self, size);
  }
  return {};
}

Nonce nonce_for(const Digest& secret, const HelloFrame& hello, std::span<const std::byte> address) {
  const Digest digest = digest_of(secret, "udp nonce", {head_of(hello), address});
  Nonce nonce;
  std::memcpy(nonce.data(), digest.data(), nonce.size());
  return nonce;
}

ChallengeFrame make_challenge(const JobKey& key, const HelloFrame& hello, const Nonce& nonce) {
  ChallengeFrame challenge;
  challenge.from = hello.to;
  challenge.attempt = hello.attempt;
  challenge.nonce = nonce;
  challenge.proof = proof_of(key, hello, challenge);
  return challenge;
}

bool answers(const JobKey& key, const HelloFrame& hello, const ChallengeFrame& challenge) {
  return challenge.magic == kMagicText && challenge.from == hello.to && challenge.attempt == hello.attempt &&
         equal(challenge.proof, proof_of(key, hello, challenge));
}

std::string other_version(std::uint32_t protocol, std::uint32_t wire) {
  if (protocol == kProtocol && wire == kWireVersion) return {};
  return formatted("speaks version {} of the datagrams and {} of the message header; this library speaks {} and {}",
                   protocol, wire, kProtocol, kWireVersion);
}

ProofFrame make_proof(const JobKey& key, const HelloFrame& hello, const Nonce& nonce) {
  ProofFrame proof;
  proof.hello = hello;
  proof.hello.kind = Kind::kProof;
  proof.nonce = nonce;
  proof.proof = proof_of(key, hello, nonce);
  return proof;
}

HelloFrame hello_of(const ProofFrame& proof) {
  HelloFrame hello = proof.hello;
  hello.kind = Kind::kHello;
  return hello;
}

std::string fault_of(const JobKey& key, const ProofFrame& proof, const Nonce& given, std::uint32_t self,
                     std::uint32_t size) {
  const HelloFrame hello = hello_of(proof);
  if (std::string fault = fault_of(key, hello, self, size); !fault.empty()) return fault;
  if (given != proof.nonce) return "repeats a challenge that is not this process's";
  if (!equal(proof.proof, proof_of(key, hello, proof.nonce))) return "has not proven to be of this job";
  return {};
}

Digest session_secret(const JobKey& key, const HelloFrame& hello, const Nonce& nonce) {
  return digest_of(key, "udp session", {head_of(hello), nonce});
}

}  // namespace unisono::udp
