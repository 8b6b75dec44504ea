// What a datagram looks like. Little-endian; every field is at a multiple of its size, and payload at a multiple of 64.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/generated/spec.hpp"
#include "network/poe.hpp"
#include "network/secret.hpp"

namespace unisono::udp {

static_assert(std::endian::native == std::endian::little, "frames are copied to and from memory as they are");

/// Of everything in this file.
inline constexpr std::uint32_t kProtocol = 1;

/// Of each lane, the least and most bytes of its stream come in words of so many.
inline constexpr std::size_t kWord = 64;
inline constexpr std::size_t kLanes = 2;
inline constexpr std::size_t index_of(Lane lane) { return lane == Lane::kData ? 0 : 1; }
inline constexpr std::size_t in_words(std::size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

inline constexpr std::uint32_t kMaxPayload[kLanes] = {64 * 1024, 1024};

/// The first byte of every datagram.
enum class Kind : std::uint8_t { kHello = 1, kChallenge = 2, kProof = 3, kData = 4, kAck = 5 };

using Tag = std::array<std::byte, 16>;

/// A piece of one lane's stream. Without one it asks for an acknowledgement, and nothing else.
struct DataFrame {
  Kind kind = Kind::kData;
  std::uint8_t lane = 0;
  std::uint16_t bytes = 0;   ///< of the piece, which follows the frame; a multiple of 64
  std::uint32_t source = 0;  ///< the endpoint that sends
  std::uint64_t number = 0;  ///< of the datagram, from 1; never used twice, also if the piece is sent again
  std::uint64_t offset = 0;  ///< of the piece in its stream; a multiple of 64
  std::array<std::uint64_t, 3> reserved{};
  Tag tag{};  ///< over the 48 bytes before and the piece
};
static_assert(sizeof(DataFrame) == 64);

/// Numbers of datagrams that have come: the largest, and which of those before it.
inline constexpr std::size_t kAckBits = 256;
struct AckFrame {
  Kind kind = Kind::kAck;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t source = 0;                    ///< the endpoint that acknowledges
  std::uint64_t number = 0;                    ///< of this frame, from 1
  std::uint64_t largest = 0;                   ///< 0: nothing has come yet, but the session is there
  std::array<std::uint64_t, kLanes> limits{};  ///< each lane's stream may be sent up to here
  std::uint32_t delay_us = 0;                  ///< since the largest came
  std::uint32_t reserved_too = 0;
  Tag tag{};  ///< over the 48 bytes before and the bits
  /// Bit i of word w: whether number `largest - 1 - (64 w + i)` has come.
  std::array<std::uint64_t, kAckBits / 64> before{};
};
static_assert(sizeof(AckFrame) == 96);

/// What both frames have in common: what the tag covers, where it is, and what it counts by.
inline constexpr std::size_t kTagAt = 48;
inline constexpr std::size_t kHeadBytes = 64;

struct HelloFrame {
  Kind kind = Kind::kHello;
  std::array<char, 3> magic{'U', 'N', 'I'};
  std::uint32_t protocol = kProtocol;
  std::uint32_t wire = kWireVersion;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t size = 0;     ///< endpoints of the job
  std::uint32_t attempt = 0;  ///< which of the peer's addresses it was sent to
  std::uint32_t reserved = 0;
  Nonce nonce{};
  Digest proof{};  ///< over the 48 bytes before
};
static_assert(sizeof(HelloFrame) == 80);

struct ChallengeFrame {
  Kind kind = Kind::kChallenge;
  std::array<char, 3> magic{'U', 'N', 'I'};
  std::uint32_t protocol = kProtocol;
  std::uint32_t wire = kWireVersion;
  std::uint32_t from = 0;     ///< who challenges
  std::uint32_t attempt = 0;  ///< the hello's
  std::array<std::uint32_t, 3> reserved{};
  Nonce nonce{};
  Digest proof{};  ///< over the hello and the 48 bytes before
};
static_assert(sizeof(ChallengeFrame) == 80);

struct ProofFrame {
  HelloFrame hello{};  ///< as it was, but of this kind
  Nonce nonce{};       ///< the challenge's
  Digest proof{};      ///< over the hello and the nonce
};
static_assert(sizeof(ProofFrame) == 128);

template <class Frame>
std::span<const std::byte> bytes_of(const Frame& frame) {
  return std::as_bytes(std::span(&frame, 1));
}
/// A private copy of the frame at the begin of a datagram; nothing if that is too short, or of another kind.
template <class Frame>
std::optional<Frame> frame_in(std::span<const std::byte> datagram, Kind kind) {
  if (datagram.size() < sizeof(Frame) || datagram[0] != static_cast<std::byte>(kind)) return std::nullopt;
  Frame frame;
  std::memcpy(&frame, datagram.data(), sizeof frame);
  return frame;
}

}  // namespace unisono::udp
