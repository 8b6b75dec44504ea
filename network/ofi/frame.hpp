// What an endpoint sends to another one over a network of reliable datagrams: one frame in each.
//
//   prefix (32 bytes): kind, sender, token of the session, how many messages of each lane it has released
//   kMessage           the message's header (64 bytes), its payload
//   kBye               how many messages of each lane it has sent altogether
//   kStop, kStopped    a key of the peer's, or of the own memory
//   kCredit, kByeSeen  nothing more
//
// A handshake's frames have no prefix and a beginning of their own (network/ofi/handshake.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/header.hpp"
#include "network/poe.hpp"

namespace unisono::ofi {

inline constexpr std::size_t kLanes = 2;
constexpr std::size_t index_of(Lane lane) { return lane == Lane::kData ? 0 : 1; }

inline constexpr std::uint32_t kMaxDataPayload = 64 * 1024;
inline constexpr std::uint32_t kMaxControlPayload = 1024;
constexpr std::uint32_t most_payload(std::size_t lane) { return lane == 0 ? kMaxDataPayload : kMaxControlPayload; }

/// Frames of the control lane have this bit in their session sequence; each lane counts its own messages below it.
inline constexpr std::uint32_t kControlMark = 0x80000000U;
inline constexpr std::uint32_t kSequenceMask = kControlMark - 1;

enum class FrameKind : std::uint8_t {
  kMessage = 1,
  kCredit = 2,   ///< says how much was released, where no message does
  kBye = 3,      ///< the sender leaves
  kByeSeen = 4,  ///< the sender has all messages of the peer that leaves
  kStop = 5,     ///< nothing more is to be written with this key
  kStopped = 6,  ///< nothing more will be, and nothing is on its way
};

struct Prefix {
  std::array<char, 8> magic;
  FrameKind kind;
  std::array<std::uint8_t, 3> reserved;
  std::uint32_t from;
  std::uint64_t token;
  std::array<std::uint32_t, kLanes> released;
};
static_assert(sizeof(Prefix) == 32);

/// Of each lane, what the sender of a farewell has sent.
using Totals = std::array<std::uint32_t, kLanes>;

inline constexpr std::size_t kFrameHead = sizeof(Prefix) + kHeaderBytes;
inline constexpr std::size_t kLongestFrame = kFrameHead + kMaxDataPayload;

/// A frame that was taken apart. Nothing of it is believed but its form.
struct Frame {
  Prefix prefix{};
  HeaderWords words{};                   ///< of kMessage
  std::span<const std::byte> payload{};  ///< of kMessage
  Totals totals{};                       ///< of kBye
  std::uint64_t key = 0;                 ///< of kStop and kStopped
};

/// The frame in `bytes`; nothing if it has another form.
std::optional<Frame> read_frame(std::span<const std::byte> bytes);

/// Writes a prefix to the begin of `place`.
void write_prefix(std::byte* place, FrameKind kind, std::uint32_t from, std::uint64_t token,
                  const std::array<std::uint32_t, kLanes>& released);
/// Completes a header that goes out as number `sequence` of its lane. Throws Error(kInternal) if a field of it is too
/// wide.
HeaderWords seal(Header header, std::size_t lane, std::uint32_t sequence);

/// What is wrong with the header of a message with so much payload; empty if nothing.
std::string fault_of(const HeaderWords& words, std::size_t payload);

}  // namespace unisono::ofi
