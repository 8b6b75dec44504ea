#include "network/ofi/handshake.hpp"

#include <cstring>

#include "core/generated/spec.hpp"
#include "core/text.hpp"

namespace unisono::ofi {

namespace {

constexpr std::array<char, 8> kHelloMagic{'U', 'N', 'I', 'O', 'F', 'I', '?', '\n'};
constexpr std::array<char, 8> kProofMagic{'U', 'N', 'I', 'O', 'F', 'I', '!', '\n'};
constexpr auto kWire = static_cast<std::uint32_t>(kWireVersion);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Digest digest_of_proof(const JobKey& key, const Proof& proof) {
  return digest_of(key, "unisono ofi proof", {bytes_of(proof.head), bytes_of(proof.answered)});
}

template <class T>
std::optional<T> read(std::span<const std::byte> bytes, const std::array<char, 8>& magic) {
  T value;
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  if (value.head.magic != magic) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Hello> read_hello(std::span<const std::byte> bytes) { return read<Hello>(bytes, kHelloMagic); }
std::optional<Proof> read_proof(std::span<const std::byte> bytes) { return read<Proof>(bytes, kProofMagic); }

std::string fault_of(const Greeting& head, std::uint32_t self, std::uint32_t size) {
  if (head.to != self) return formatted("wants endpoint {}", head.to);
  if (head.size != size) return formatted("is of a job of {} endpoints", head.size);
  if (head.from >= size || head.from == self) return formatted("says that it is endpoint {}", head.from);
  return {};
}

Handshake::Handshake(const JobKey& key, const Ends& ends, const Nonce& nonce) : key_(key), ends_(ends), nonce_(nonce) {}

Greeting Handshake::greeting(const std::array<char, 8>& magic) const {
  return {magic, kProtocol, kWire, ends_.self, ends_.peer, ends_.size, proven_ ? 1U : 0U, nonce_};
}

Hello Handshake::hello() const { return {greeting(kHelloMagic)}; }

std::string Handshake::got(const Hello& hello) {
  // A proven peer keeps its nonce; it asks again while this end's answer is on its way.
  if (proven_ && hello.head.nonce != peers_) return "wants a second session";
  peers_ = hello.head.nonce;
  owed_ = true;
  return {};
}

std::uint64_t Handshake::token(std::uint32_t from, std::uint32_t to, const Nonce& first, const Nonce& second) const {
  const Digest digest =
      digest_of(key_, "unisono ofi token", {bytes_of(from), bytes_of(to), bytes_of(first), bytes_of(second)});
  std::uint64_t token = 0;
  std::memcpy(&token, digest.data(), sizeof token);
  return token;
}

std::string Handshake::got(const Proof& proof) {
  if (proof.head.from != ends_.peer || proof.head.to != ends_.self || proof.head.size != ends_.size) {
    return "proves what nobody has asked for";
  }
  if (proof.answered != nonce_) return "answers a question that was not asked";
  if (!equal(proof.digest, digest_of_proof(key_, proof))) return "does not know the key of this job";
  // A member that is there twice: the one that came first stays.
  if (proven_ && proof.head.nonce != peers_) return "wants a second session";
  const bool first = !proven_;
  if (first) {
    proven_ = true;
    peers_ = proof.head.nonce;
    if (proof.head.protocol != kProtocol || proof.head.wire != kWire) {
      other_version_ =
          formatted("speaks version {} of the handshake and {} of the message header, this library speaks {} and {}",
                    proof.head.protocol, proof.head.wire, kProtocol, kWire);
    }
    token_out_ = token(ends_.self, ends_.peer, nonce_, peers_);
    token_in_ = token(ends_.peer, ends_.self, peers_, nonce_);
  }
  if (proof.head.verified == 1) confirmed_ = true;
  if (first || proof.head.verified != 1) owed_ = true;
  return {};
}

Proof Handshake::proof() const {
  Proof proof{greeting(kProofMagic), peers_, {}};
  proof.digest = digest_of_proof(key_, proof);
  return proof;
}

}  // namespace unisono::ofi
