#include "switch/frame.hpp"

#include <array>
#include <cstring>

#include "core/crc32c.hpp"
#include "core/crc32c_long.hpp"

namespace unisono::slots {
namespace {

using Words = std::array<std::uint64_t, kSlotFrameWords>;

std::uint32_t checksum_of(const Words& words) { return crc32c_words(words, kSlotFrameBytes - 4); }

std::uint32_t checksum_of(std::span<const std::byte> payload) { return crc32c_long(payload); }

/// Whether a frame has only the fields that its kind has.
bool fields_fit(const SlotFrame& head) {
  const bool of_turn = head.kind == SlotKind::kContribute || head.kind == SlotKind::kResult;
  if (of_turn) {
    if (!carried(head.opcode)) return false;
    if (combines(head.opcode) != (head.func != Func::kNone)) return false;
    if (head.factor != 0 && !combines(head.opcode)) return false;
    return head.opcode != Collective::kBarrier || (head.count == 0 && head.total == 0 && head.dtype == Datatype::kNone);
  }
  if (head.opcode != Collective{} || head.func != Func::kNone || head.dtype != Datatype::kNone || head.call != 0 ||
      head.factor != 0) {
    return false;
  }
  const bool waits = head.kind == SlotKind::kMissing;
  if (!waits && (head.count != 0 || head.root != 0 || head.slot != 0 || head.second)) return false;
  if (head.kind != SlotKind::kResume && head.kind != SlotKind::kBegin && head.total != 0) return false;
  return head.kind != SlotKind::kNone;
}

/// Whether the payload is as long as a frame of its kind may have it.
bool length_fits(const SlotFrame& head) {
  switch (head.kind) {
    case SlotKind::kContribute:
    case SlotKind::kResult:
      return head.bytes == 0 || head.bytes == std::uint64_t{head.count} * bytes_of(head.dtype);
    case SlotKind::kRefuse:
      return head.bytes == kRefusalBytes;
    default:
      return head.bytes == 0;
  }
}

std::string value_of(SlotField field, std::uint64_t value) {
  switch (field) {
    case SlotField::kOpcode:
      return name_of(static_cast<Collective>(value));
    case SlotField::kFunc:
      return name_of(static_cast<Func>(value));
    case SlotField::kDtype:
      return name_of(static_cast<Datatype>(value));
    default:
      return std::string(name_of(field)) + " " + std::to_string(value);
  }
}

}  // namespace

const char* meaning_of(FrameFault fault) {
  switch (fault) {
    case FrameFault::kNone:
      return "is sound";
    case FrameFault::kTooShort:
      return "is shorter than its header";
    case FrameFault::kBadMagic:
      return "does not begin with the magic number";
    case FrameFault::kOtherVersion:
      return "is of another version of the protocol";
    case FrameFault::kBadChecksum:
      return "does not match the checksum of its header";
    case FrameFault::kMalformed:
      return "has reserved bits set, an unknown enumerator, or fields that its kind does not have";
    case FrameFault::kBadLength:
      return "is not as long as its header says";
    case FrameFault::kBadPayload:
      return "does not match the checksum of its payload";
  }
  return "?";
}

FrameFault parse(std::span<const std::byte> datagram, FrameView& frame) {
  if (datagram.size() < kSlotFrameBytes) return FrameFault::kTooShort;
  Words words;
  std::memcpy(words.data(), datagram.data(), sizeof words);
  const SlotFrame head = decode_slot_frame(words);
  if (head.magic != kSlotMagic) return FrameFault::kBadMagic;
  if (head.version != kSlotProtocol) return FrameFault::kOtherVersion;
  if (head.checksum != checksum_of(words)) return FrameFault::kBadChecksum;
  if (!well_formed_slot_frame(words) || !fields_fit(head)) return FrameFault::kMalformed;
  if (!length_fits(head) || datagram.size() != frame_bytes(head.bytes)) return FrameFault::kBadLength;
  const auto payload = datagram.subspan(kSlotFrameBytes, head.bytes);
  if (head.bytes != 0) {
    std::uint32_t trailer = 0;
    std::memcpy(&trailer, datagram.data() + kSlotFrameBytes + head.bytes, sizeof trailer);
    if (trailer != checksum_of(payload)) return FrameFault::kBadPayload;
  }
  if (head.kind == SlotKind::kRefuse) {
    std::array<std::uint64_t, kSlotRefusalWords> refusal;
    std::memcpy(refusal.data(), payload.data(), sizeof refusal);
    if (!well_formed_slot_refusal(refusal)) return FrameFault::kMalformed;
  }
  frame = {head, payload};
  return FrameFault::kNone;
}

std::size_t write(SlotFrame head, std::span<const std::byte> payload, std::span<std::byte> out) {
  head.magic = kSlotMagic;
  head.version = kSlotProtocol;
  head.bytes = static_cast<std::uint16_t>(payload.size());
  head.checksum = 0;
  Words words = encode(head);
  words.back() |= std::uint64_t{checksum_of(words)} << 32U;
  std::memcpy(out.data(), words.data(), sizeof words);
  if (payload.empty()) return sizeof words;
  std::memcpy(out.data() + sizeof words, payload.data(), payload.size());
  const std::uint32_t trailer = checksum_of(payload);
  std::memcpy(out.data() + sizeof words + payload.size(), &trailer, sizeof trailer);
  return frame_bytes(payload.size());
}

std::array<std::byte, kRefusalBytes> bytes_of(const SlotRefusal& refusal) {
  const auto words = encode(refusal);
  std::array<std::byte, kRefusalBytes> bytes;
  std::memcpy(bytes.data(), words.data(), sizeof bytes);
  return bytes;
}

SlotRefusal refusal_in(const FrameView& frame) {
  std::array<std::uint64_t, kSlotRefusalWords> words{};
  std::memcpy(words.data(), frame.payload.data(), sizeof words);
  return decode_slot_refusal(words);
}

std::string sentence_of(const SlotRefusal& refusal) {
  const std::string call = "call " + std::to_string(refusal.call) + ": ";
  const std::string first = "rank " + std::to_string(refusal.first);
  switch (refusal.field) {
    case SlotField::kOperator:
    case SlotField::kOrder: {
      const std::string operation = std::string(name_of(static_cast<Func>(refusal.first_value))) + " of " +
                                    name_of(static_cast<Datatype>(refusal.second_value));
      return call + first + " asks for " + operation +
             (refusal.field == SlotField::kOperator
                  ? ", which the switch does not have; let the ranks do this call themselves"
                  : ", whose bits depend on the order, and the switch has no memory to keep the order; give its pool "
                    "room for it, or let the ranks do this call themselves");
    }
    case SlotField::kPayload:
      return call + first + " sends " + std::to_string(refusal.first_value) + " bytes of payload in a turn that has " +
             std::to_string(refusal.second_value) + " from it";
    case SlotField::kFactor:
      return call + first + " and rank " + std::to_string(refusal.second) +
             " give different factors of the result (post_scale); all ranks must give the same";
    default:
      return call + first + " says " + value_of(refusal.field, refusal.first_value) + ", rank " +
             std::to_string(refusal.second) + " says " + value_of(refusal.field, refusal.second_value) +
             "; all ranks must say the same";
  }
}

}  // namespace unisono::slots
