// Frames between a member and a switch that aggregates, as bytes (docs/switch-protocol.md, "Frames").
//
// A frame is 64 bytes of header (SlotFrame), then the payload, then, if there is a payload, a CRC-32C of it, all
// little-endian. The header has a checksum of its own, so that hardware may route a frame before its payload has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/generated/spec.hpp"

namespace unisono::slots {

/// `member` of a frame that goes to all children, and of what waits for the switch above.
inline constexpr std::uint32_t kEveryone = 0xffffffffU;
/// Bytes of the checksum behind a payload.
inline constexpr std::size_t kTrailerBytes = 4;
/// Bytes of the payload of a frame that refuses.
inline constexpr std::size_t kRefusalBytes = kSlotRefusalWords * 8;

/// A frame as it came; `payload` lies in the datagram.
struct FrameView {
  SlotFrame head{};
  std::span<const std::byte> payload;
};

/// What is wrong with a datagram.
enum class FrameFault : std::uint8_t {
  kNone = 0,
  kTooShort,      ///< no whole header
  kBadMagic,      ///< no frame of this protocol
  kOtherVersion,  ///< of another version of it
  kBadChecksum,   ///< the header was altered on its way
  kMalformed,     ///< reserved bits, an unknown enumerator, or fields that its kind does not have
  kBadLength,     ///< header and length of the datagram or of the payload do not fit
  kBadPayload,    ///< the payload was altered on its way
};

/// What a fault means, as the end of a sentence that begins "the frame".
const char* meaning_of(FrameFault fault);

/// Whether slots carry a collective: barrier, bcast, reduce, allreduce, reduce_scatter and allgather.
constexpr bool carried(Collective collective) {
  return collective == Collective::kBarrier || collective == Collective::kBcast || collective == Collective::kReduce ||
         collective == Collective::kAllreduce || collective == Collective::kReduceScatter ||
         collective == Collective::kAllgather;
}
/// Whether the contributions to its turns are combined. In the others one rank's data is passed on.
constexpr bool combines(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kAllreduce ||
         collective == Collective::kReduceScatter;
}

/// Takes a datagram apart. Only a frame without fault may be used; nothing beyond the datagram is read. Thread-safe.
FrameFault parse(std::span<const std::byte> datagram, FrameView& frame);

/// Whether two frames say the same of their turn, and of where it stands.
constexpr bool same_turn(const SlotFrame& a, const SlotFrame& b) {
  return a.turn == b.turn && a.call == b.call && a.opcode == b.opcode && a.func == b.func && a.dtype == b.dtype &&
         a.total == b.total && a.count == b.count && a.root == b.root && a.factor == b.factor && a.slot == b.slot &&
         a.second == b.second;
}

/// Bytes of a frame with such a payload.
constexpr std::size_t frame_bytes(std::size_t payload_bytes) {
  return kSlotFrameBytes + payload_bytes + (payload_bytes != 0 ? kTrailerBytes : 0);
}

/// Writes a frame to `out`, which has frame_bytes(payload.size()) bytes or more, and gives their number. Magic,
/// version, bytes and checksums are set here. `payload` has at most 65535 bytes, and may not overlap `out`.
/// Thread-safe.
std::size_t write(SlotFrame head, std::span<const std::byte> payload, std::span<std::byte> out);

/// The payload of a frame that refuses, and back. `refusal_in` is for frames without fault.
std::array<std::byte, kRefusalBytes> bytes_of(const SlotRefusal& refusal);
SlotRefusal refusal_in(const FrameView& frame);
/// "call 3: rank 0 says count 4, rank 2 says count 8; all ranks must say the same".
std::string sentence_of(const SlotRefusal& refusal);

}  // namespace unisono::slots
