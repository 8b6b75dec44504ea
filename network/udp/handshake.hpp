// How the two ends of a new session prove to each other that they are of the job. Frames only, no sockets.
//
//   caller -> answerer   Hello      who it is, whom it wants, a nonce, and proof that it knows the key
//   answerer -> caller   Challenge  a nonce, and proof over hello and nonce
//   caller -> answerer   Proof      the hello again, and proof over hello and challenge
//   answerer -> caller   an acknowledgement of nothing, with the session's tag
//
// The answerer keeps nothing before the proof has come: its nonce is a function of the hello, of where that came from,
// and of a secret of its own, so that it can make it again. A hello that is sent again by somebody else gets that
// somebody a challenge, shorter than the proof it takes to go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "network/network.hpp"
#include "network/secret.hpp"
#include "network/udp/frames.hpp"

namespace unisono::udp {

/// The ranks at both ends.
struct Pair {
  std::uint32_t from = 0;  ///< the caller
  std::uint32_t to = 0;
  std::uint32_t size = 0;
};

HelloFrame make_hello(const JobKey& key, const Pair& pair, std::uint32_t attempt, const Nonce& nonce);
/// What is wrong with a hello to endpoint `self` of `size`; empty if nothing. Versions are not looked at.
std::string fault_of(const JobKey& key, const HelloFrame& hello, std::uint32_t self, std::uint32_t size);

/// The answerer's nonce, of its own secret, the hello and the address that it came from.
Nonce nonce_for(const Digest& secret, const HelloFrame& hello, std::span<const std::byte> address);
ChallengeFrame make_challenge(const JobKey& key, const HelloFrame& hello, const Nonce& nonce);
/// Whether it answers this hello, and is of the endpoint that the hello was for.
bool answers(const JobKey& key, const HelloFrame& hello, const ChallengeFrame& challenge);
/// Empty if both ends speak alike; else what the other one speaks, in words that follow its name.
std::string other_version(std::uint32_t protocol, std::uint32_t wire);

ProofFrame make_proof(const JobKey& key, const HelloFrame& hello, const Nonce& nonce);
/// The hello that a proof repeats.
HelloFrame hello_of(const ProofFrame& proof);
/// What is wrong with a proof to endpoint `self` of `size`, whose nonce must be the one that was given.
std::string fault_of(const JobKey& key, const ProofFrame& proof, const Nonce& given, std::uint32_t self,
                     std::uint32_t size);

/// What only the two ends of this session know.
Digest session_secret(const JobKey& key, const HelloFrame& hello, const Nonce& nonce);

}  // namespace unisono::udp
