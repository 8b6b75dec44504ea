// The message header: sealing, checking, and its compressed form. Freestanding.
//
// Every message has one *logical* header of 64 bytes (`Header`). Datagram transports carry it whole. What
// a transport's session already says need not be repeated on the wire, so there is a compressed form,
// HeaderConnection (32 bytes), for transports that deliver in order and unaltered (TCP, a shared ring):
// source, destination, session sequence, and all but the low bits of communicator and epoch are the
// session's. The message's length is in its first segment only, the offset in the others only. Eager data,
// requests, credits and control carry the signature; grant, write and done carry the token, and the low 16
// bits of the signature.
//
// HeaderLine (16 bytes) is all that a message on a lane of shared memory has: lane, communicator and order
// are known there (network/shm/lanes.hpp).
//
// **Which headers are compressible?** Exactly those that come back: `compress_…` rebuilds what it has made
// and gives nothing if that is not the header it was given. In words, a header is not compressible if
//   - magic or version is not this version's, or the header does not fit its fields;
//   - source, destination, epoch or the communicator's high bits are not the context's;
//   - the session sequence is not the context's;
//   - it names both a token and a full signature other than the context's;
//   - a first segment, a request or a grant has an offset, or another segment belongs to a message whose
//     length is not the context's;
//   - the stream port is above 255.
// Such a header travels whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/crc32c.hpp"
#include "core/generated/spec.hpp"

namespace unisono {

/// Largest payload that shares a cache line with a HeaderLine, bytes.
inline constexpr std::size_t kLinePayloadBytes = kWordBytes - 8 * kHeaderLineWords;

/// Encoded form of a header.
using HeaderWords = std::array<std::uint64_t, kHeaderWords>;

/// What is wrong with a header that arrived.
enum class HeaderFault : std::uint8_t {
  kNone = 0,
  kBadMagic,      ///< not a message of Unisono
  kOtherVersion,  ///< of another wire version
  kBadChecksum,   ///< altered on its way
  kMalformed,     ///< reserved bits set, or an unknown enumerator
  kBadExtent,     ///< the segment reaches beyond its message, or first and last do not fit offset and length
};

/// What a fault means, as the end of a sentence that begins "the header".
constexpr const char* meaning_of(HeaderFault fault) {
  switch (fault) {
    case HeaderFault::kNone:
      return "is sound";
    case HeaderFault::kBadMagic:
      return "does not begin with the magic number";
    case HeaderFault::kOtherVersion:
      return "is of another wire version";
    case HeaderFault::kBadChecksum:
      return "does not match its checksum";
    case HeaderFault::kMalformed:
      return "has reserved bits set or an unknown enumerator";
    case HeaderFault::kBadExtent:
      return "names a segment that does not lie within its message";
  }
  return "?";
}

/// CRC-32C of the 60 encoded bytes before the checksum.
constexpr std::uint32_t checksum_of(const HeaderWords& words) { return crc32c_words(words, kHeaderBytes - 4); }
constexpr std::uint32_t checksum_of(const Header& header) { return checksum_of(encode(header)); }

/// A header of this wire version, everything else zero.
constexpr Header make_header(MessageType type) {
  Header header{};
  header.magic = kMagic;
  header.version = kWireVersion;
  header.type = type;
  return header;
}

/// Sets the checksum. The last thing done to a header before it is sent.
constexpr void seal(Header& header) { header.checksum = checksum_of(header); }

/// Whether the checksum is right.
constexpr bool verify(const Header& header) { return header.checksum == checksum_of(header); }

/// Whether the segment lies within its message, and `first` and `last` say so. Concerns the types that
/// carry data: eager, write, aggregate. Whether the message fits the receiver's memory is another question.
constexpr bool extent_is_sound(const Header& header) {
  if (header.type != MessageType::kEager && header.type != MessageType::kWrite &&
      header.type != MessageType::kAggregate) {
    return true;
  }
  // 48-bit plus 32-bit numbers: the sum does not overflow.
  const std::uint64_t end = header.offset + header.segment_bytes;
  if (end > header.message_bytes) return false;
  if (header.first && header.offset != 0) return false;
  return !header.last || end == header.message_bytes;
}

/// Checks a header as it arrived; `words` must be a private copy, which no peer can still change. Only a
/// header without fault may be decoded and used.
constexpr HeaderFault check_header(const HeaderWords& words) {
  const Header header = decode_header(words);
  if (header.magic != kMagic) return HeaderFault::kBadMagic;
  if (header.version != kWireVersion) return HeaderFault::kOtherVersion;
  if (header.checksum != checksum_of(words)) return HeaderFault::kBadChecksum;
  if (!well_formed_header(words)) return HeaderFault::kMalformed;
  if (!extent_is_sound(header)) return HeaderFault::kBadExtent;
  return HeaderFault::kNone;
}

/// What both ends of a session know, and a compressed header therefore need not say. Sender and receiver
/// each keep their own; they agree in all but `sequence`, which may differ by up to 2^14.
struct HeaderContext {
  std::uint32_t source = 0;       ///< rank that sends
  std::uint32_t destination = 0;  ///< rank that receives
  /// Communicator the session serves. On a session with several, any of them: its high bits stand in for
  /// those the compressed form leaves out.
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;             ///< epoch of that communicator
  std::uint32_t session_sequence = 0;  ///< of the message at hand; counts up by one on both sides
  std::uint32_t sequence = 0;          ///< a recent call or pair sequence; completes the low bits
  /// Signature of the call at hand; completes the low bits where they agree. 0 if the call is not known
  /// yet: the rebuilt header then holds the low bits only, to be compared by `signatures_agree`.
  std::uint32_t signature = 0;
  std::uint64_t message_bytes = 0;  ///< length of the message that a later segment continues
};

/// The number nearest to `expected` whose low `bits` bits are `low`, modulo 2^32. Right as long as the
/// number meant and `expected` are less than 2^(bits-1) apart.
constexpr std::uint32_t complete_sequence(std::uint32_t low, unsigned bits, std::uint32_t expected) {
  const std::uint32_t modulus = std::uint32_t{1} << bits;
  const std::uint32_t half = modulus >> 1U;
  // Distance from expected to the number meant, folded into -half .. half-1.
  const std::uint32_t ahead = (low - expected + half) & (modulus - 1);
  return expected + ahead - half;
}

namespace header_detail {

/// Most that sender and receiver contexts may differ in `sequence`.
inline constexpr std::uint32_t kSequenceSlack = std::uint32_t{1} << 14U;

/// `low` completed by the high bits of `known`.
constexpr std::uint32_t complete_bits(std::uint32_t low, unsigned bits, std::uint32_t known) {
  const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
  return (known & ~mask) | (low & mask);
}

/// `expected` if its low bits are `low`, else `low`, which then differs from it.
constexpr std::uint32_t complete_signature(std::uint32_t low, unsigned bits, std::uint32_t expected) {
  const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
  return (expected & mask) == low ? expected : low;
}

constexpr bool carries_token(MessageType type) {
  return type == MessageType::kGrant || type == MessageType::kWrite || type == MessageType::kDone;
}

/// Whether `message_or_offset` is the message's length.
constexpr bool carries_length(MessageType type, bool first) {
  return first || type == MessageType::kGrant || type == MessageType::kRequest;
}

/// The parts that every compressed header takes from its session.
constexpr Header begin_rebuild(MessageType type, const HeaderContext& context) {
  Header header = make_header(type);
  header.source = context.source;
  header.destination = context.destination;
  return header;
}

}  // namespace header_detail

/// The header whose compressed form is `compressed`, which must be well formed. The checksum is left 0:
/// the transport has already protected the header. `seal` it before it goes out on another.
constexpr Header rebuild(const HeaderConnection& compressed, const HeaderContext& context) {
  namespace d = header_detail;
  Header header = d::begin_rebuild(compressed.type, context);
  header.dtype = compressed.dtype;
  header.first = compressed.first;
  header.last = compressed.last;
  header.point_to_point = compressed.point_to_point;
  header.stream = compressed.stream;
  header.trailer = compressed.trailer;
  header.aggregate = compressed.aggregate;
  header.credits = compressed.credits;
  header.communicator = d::complete_bits(compressed.communicator, 16, context.communicator);
  header.epoch = static_cast<std::uint16_t>(d::complete_bits(compressed.epoch, 8, context.epoch));
  header.port = compressed.port;
  header.sequence = compressed.sequence;
  header.tag = compressed.tag;
  header.segment_bytes = compressed.segment_bytes;
  header.session_sequence = context.session_sequence;
  if (d::carries_length(compressed.type, compressed.first)) {
    header.message_bytes = compressed.message_or_offset;
  } else {
    header.message_bytes = context.message_bytes;
    header.offset = compressed.message_or_offset;
  }
  if (d::carries_token(compressed.type)) {
    header.token_slot = static_cast<std::uint16_t>(compressed.token_or_signature & 0xFFFFU);
    header.token_generation = static_cast<std::uint16_t>(compressed.token_or_signature >> 16U);
    header.signature = d::complete_signature(compressed.signature_low, 16, context.signature);
  } else {
    header.signature = compressed.token_or_signature;
  }
  return header;
}

/// The 32-byte form of `header`, or nothing if it must travel whole (see above). The checksum is ignored.
constexpr std::optional<HeaderConnection> compress_connection(const Header& header, const HeaderContext& context) {
  namespace d = header_detail;
  HeaderConnection compressed{};
  compressed.type = header.type;
  compressed.first = header.first;
  compressed.last = header.last;
  compressed.point_to_point = header.point_to_point;
  compressed.stream = header.stream;
  compressed.dtype = header.dtype;
  compressed.trailer = header.trailer;
  compressed.aggregate = header.aggregate;
  compressed.communicator = static_cast<std::uint16_t>(header.communicator & 0xFFFFU);
  compressed.epoch = static_cast<std::uint8_t>(header.epoch & 0xFFU);
  compressed.port = static_cast<std::uint8_t>(header.port & 0xFFU);
  compressed.credits = header.credits;
  compressed.sequence = header.sequence;
  compressed.tag = header.tag;
  compressed.segment_bytes = header.segment_bytes;
  compressed.message_or_offset = d::carries_length(header.type, header.first) ? header.message_bytes : header.offset;
  if (d::carries_token(header.type)) {
    compressed.token_or_signature = (std::uint32_t{header.token_generation} << 16U) | header.token_slot;
    compressed.signature_low = static_cast<std::uint16_t>(header.signature & 0xFFFFU);
  } else {
    compressed.token_or_signature = header.signature;
  }
  Header whole = header;
  whole.checksum = 0;
  if (!fits(compressed) || rebuild(compressed, context) != whole) return std::nullopt;
  return compressed;
}

}  // namespace unisono
