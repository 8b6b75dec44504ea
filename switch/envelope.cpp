#include "switch/envelope.hpp"

#include <array>
#include <chrono>
#include <cstring>

namespace unisono::slots {

namespace {

/// Of the frame, that the tag covers together with the envelope.
constexpr std::size_t kTagPlace = 24;
constexpr std::size_t kFrameInHead = udp::kTagAt - kTagPlace;
static_assert(kFrameInHead <= kSlotFrameBytes);

struct Covered {
  std::array<std::byte, udp::kTagAt> head;
  std::span<std::byte> rest;
};

/// What the tag of a datagram covers; zeros are written behind it.
Covered covered(std::span<std::byte> datagram) {
  Covered covered;
  std::memcpy(covered.head.data(), datagram.data(), kTagPlace);
  std::memcpy(covered.head.data() + kTagPlace, datagram.data() + kEnvelopeBytes, kFrameInHead);
  std::byte* const rest = datagram.data() + kEnvelopeBytes + kFrameInHead;
  const std::size_t bytes = datagram.size() - kEnvelopeBytes - kFrameInHead;
  const std::size_t whole = (bytes + kEnvelopeSlack - 1) / kEnvelopeSlack * kEnvelopeSlack;
  std::memset(rest + bytes, 0, whole - bytes);
  covered.rest = {rest, whole};
  return covered;
}

template <class Value>
Value value_at(std::span<const std::byte> bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::uint64_t number_of_pool(std::span<const std::byte, 16> id) { return value_at<std::uint64_t>(id, 0); }

std::optional<Labels> labels_of(std::span<const std::byte> datagram) {
  if (datagram.size() < kEnvelopeBytes + kSlotFrameBytes) return std::nullopt;
  // As the header of a frame is laid out: the position stands before the checksum, at its end.
  constexpr std::size_t kMemberAt = kEnvelopeBytes + kSlotFrameBytes - 8;
  return Labels{value_at<std::uint64_t>(datagram, 0), value_at<std::uint64_t>(datagram, 8),
                value_at<std::uint32_t>(datagram, kMemberAt), value_at<std::uint32_t>(datagram, 16)};
}

Envelope::Envelope(const Digest& pool_secret, std::uint64_t pool, const std::string& upper, std::uint32_t position,
                   Direction direction)
    : pool_(pool) {
  const auto name = std::as_bytes(std::span(upper.data(), upper.size()));
  const auto place = std::as_bytes(std::span(&position, 1));
  const Digest key = digest_of(pool_secret, "unisono switch link", {name, place});
  tagger_ = udp::Tagger(key, direction == Direction::kUp ? "up" : "down");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  number_ = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::size_t Envelope::seal(const SlotFrame& head, std::span<const std::byte> payload, std::span<std::byte> out,
                           std::uint32_t stamp) {
  const std::uint64_t number = ++number_;
  std::memcpy(out.data(), &pool_, sizeof pool_);
  std::memcpy(out.data() + 8, &number, sizeof number);
  const std::uint64_t stamped = stamp;
  std::memcpy(out.data() + 16, &stamped, sizeof stamped);
  const std::size_t bytes = kEnvelopeBytes + write(head, payload, out.subspan(kEnvelopeBytes));
  const Covered all = covered(out.first(bytes));
  const udp::Tag tag = tagger_.tag_of(number, all.head, all.rest);
  std::memcpy(out.data() + kTagPlace, tag.data(), sizeof tag);
  return bytes;
}

bool Envelope::open(std::span<std::byte> datagram, FrameView& frame) const {
  if (datagram.size() < kEnvelopeBytes + kSlotFrameBytes || datagram.size() > std::size_t{60} * 1024) return false;
  udp::Tag tag;
  std::memcpy(tag.data(), datagram.data() + kTagPlace, sizeof tag);
  const Covered all = covered(datagram);
  if (!tagger_.verify(tag, value_at<std::uint64_t>(datagram, 8), all.head, all.rest)) return false;
  return parse(datagram.subspan(kEnvelopeBytes), frame) == FrameFault::kNone;
}

}  // namespace unisono::slots
