// The datagrams that carry slot frames over UDP, and the tag by which each end knows that the other has made them.
//
//   0-7   the pool: the first eight bytes of its id
//   8-15  a number that grows with each datagram of one end of a link; ends that begin anew begin with the clock's
//         nanoseconds, so no number has two contents
//   16-19 a stamp, by which the lower end learns how long datagrams are on their way (path_time.hpp)
//   20-23 0
//   24-39 tag, over bytes 0-23 and the frame
//   40-   a slot frame
//
// A link lies between a switch and one node below it. Both directions have keys of their own, made of the pool's
// secret, the name of the upper switch and the position below it.
//
// A datagram that comes again is harmless, since the protocol of slots takes duplicates, however late. But whoever
// learns an address from datagrams must learn it only from one with a larger number than all before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "network/secret.hpp"
#include "network/udp/tagger.hpp"
#include "switch/frame.hpp"

namespace unisono::slots {

inline constexpr std::size_t kEnvelopeBytes = 40;
/// Tags are made over whole pieces of 32 bytes: behind a datagram so much memory is overwritten with zeros.
inline constexpr std::size_t kEnvelopeSlack = 32;

/// Bytes of a datagram with such a payload.
constexpr std::size_t datagram_bytes(std::size_t payload_bytes) { return kEnvelopeBytes + frame_bytes(payload_bytes); }

enum class Direction : std::uint8_t { kUp, kDown };

/// What a datagram says before it is proven: which pool, and which position, so that the key can be found.
struct Labels {
  std::uint64_t pool = 0;
  std::uint64_t number = 0;
  std::uint32_t member = 0;  ///< of the frame
  std::uint32_t stamp = 0;
};
/// Nothing if it is too short.
std::optional<Labels> labels_of(std::span<const std::byte> datagram);

/// One direction of a link. `seal` is for one thread at a time.
class Envelope {
 public:
  Envelope() = default;
  Envelope(const Digest& pool_secret, std::uint64_t pool, const std::string& upper, std::uint32_t position,
           Direction direction);

  /// Writes a datagram to `out`, which has datagram_bytes(payload.size()) + kEnvelopeSlack bytes or more, and gives its
  /// length.
  std::size_t seal(const SlotFrame& head, std::span<const std::byte> payload, std::span<std::byte> out,
                   std::uint32_t stamp);
  /// Whether the other end has made a datagram; then `frame` is what it holds, and lies in it. Behind the datagram
  /// there are kEnvelopeSlack bytes of the caller's.
  bool open(std::span<std::byte> datagram, FrameView& frame) const;

 private:
  udp::Tagger tagger_;
  std::uint64_t pool_ = 0;
  std::uint64_t number_ = 0;
};

/// The number of a pool in datagrams.
std::uint64_t number_of_pool(std::span<const std::byte, 16> id);

}  // namespace unisono::slots
