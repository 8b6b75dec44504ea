// What has come over a connection: frames, from the bytes of a stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/header.hpp"
#include "network/poe.hpp"
#include "network/tcp/frame_ring.hpp"

namespace unisono::tcp {

inline constexpr std::uint32_t kMaxDataPayload = 64 * 1024;
inline constexpr std::uint32_t kMaxControlPayload = 1024;
/// Most memory for what has come and was not released, and for what waits to be sent, of one session.
inline constexpr std::size_t kMostBytes = std::size_t{256} * 1024;

/// Frames of the control lane have this bit in their session sequence. Each lane counts its own frames below it, so
/// control frames can overtake data frames on the sender's side.
inline constexpr std::uint32_t kControlMark = 0x80000000U;

/// The last 64 bytes of an orderly connection: no header begins so.
extern const std::array<std::byte, 64> kBye;

/// Holds the bytes that came, checks every header once, and hands out each lane's messages in order. Whatever the
/// bytes are, it accepts no more than its memory holds and no access goes outside of it.
///
/// Of the bytes held, those before `frontier_` are whole frames that were checked. Each lane has a cursor, before which
/// all its frames were released; what lies before both is free. So a lane whose messages are not taken does not hold
/// up the other one, as long as there is memory.
///
/// Of a message that goes to memory of others, the header is held, marked, and behind it the address.
///
/// A session may have several connections, each with arrivals of its own. Then the data frames of one of them have
/// gaps in their numbers, which the others fill; each is handed out in its turn among all.
class Arrivals {
 public:
  /// Where the next bytes are to be put; empty if nothing fits now, because of messages that were not released, or
  /// nothing more is to come. Throws Error(kOutOfMemory).
  std::span<std::byte> room();
  /// Where the next bytes are to be put before those of `room()`: the rest of a message in the memory that was given
  /// for it. Empty unless such a message is under way.
  std::span<std::byte> landing();
  bool within_landing() const { return landing_; }
  /// So many bytes were put into `landing()` and then `room()`. True if a message is whole now that was not before.
  bool received(std::size_t bytes);
  /// See Poe::land_in; these are the arrivals of `peer`.
  void land_in(Landings* landings, std::uint32_t peer) {
    landings_ = landings;
    peer_ = peer;
  }

  /// From now on there are other connections of this session: data are handed out when their number is `next`, which
  /// counts on with each, and lives as long as this. `only_data`: the control lane is on another one.
  void share(std::uint32_t& next, bool only_data);
  /// The number of the next data message that `peek` would give, were there no other connections.
  std::uint32_t next_data();
  /// Whether there is a data message which must wait for others that come by other connections. If its turn is over,
  /// there is a fault from now on.
  bool waits_for_others();

  /// See Poe::peek. Without a message, `fault` tells whether there can be another one.
  bool peek(Lane lane, Incoming& incoming);
  /// See Poe::release.
  void release(Lane lane);

  /// Whether messages have come that were not released, or a fault.
  bool talks() const { return cursor_[0] != frontier_ || cursor_[1] != frontier_ || !fault_.empty(); }
  /// What is wrong with what came, empty if nothing; frames before that can still be had.
  const std::string& fault() const { return fault_; }
  /// The peer has said that it sends nothing more.
  bool bye() const { return bye_; }
  /// Whether the bytes end within a frame.
  bool within_frame() const { return !bye_ && frontier_ != end_; }
  std::size_t memory() const { return capacity_; }

 private:
  static constexpr std::size_t kLanes = 2;
  static std::size_t index_of(Lane lane) { return lane == Lane::kData ? 0 : 1; }
  Header header_at(std::size_t at) const;
  /// How many bytes are held of the whole frame with this header.
  static std::size_t held_bytes(const Header& header);
  std::byte* address_at(std::size_t at) const;
  std::byte* landing_of(const Header& header) const;
  /// Begins to put the frame at the frontier where its data belong, if somebody knows where that is.
  void begin_landing(Header header);
  /// Whether the message there was put to memory that is not given for it any more.
  bool is_stray(std::size_t at) const;
  /// Whether it is the turn of the data message there.
  bool has_turn(std::size_t at) const { return next_ == nullptr || header_at(at).session_sequence == *next_; }
  /// A data message was taken, or dropped.
  void pass_turn();
  bool peeked() const { return peeked_[0] || peeked_[1]; }
  bool is_of(std::size_t lane, const Header& header) const {
    return (header.session_sequence & kControlMark) == (lane == 0 ? 0U : kControlMark);
  }
  /// Checks what stands at the frontier and moves it on; false if that is no whole frame yet, or none at all.
  bool advance_frontier();
  /// Says what is wrong with a header; empty if nothing.
  std::string examine(const HeaderWords& words, const Header& header) const;
  /// Passes frames of other lanes.
  void skip(std::size_t lane);
  /// Moves what is held to the front, into new memory if `larger` is more than there is.
  void compact(std::size_t larger);

  AlignedMemory memory_;
  std::size_t capacity_ = 0;
  std::size_t end_ = 0;
  std::size_t frontier_ = 0;
  std::size_t cursor_[kLanes]{};
  bool peeked_[kLanes]{};
  std::uint32_t sequence_[kLanes]{};
  std::size_t awaited_ = kHeaderBytes;  ///< length of the frame at the frontier, as far as known
  bool filled_ = false;                 ///< the last bytes took all the room there was
  bool bye_ = false;
  bool landing_ = false;      ///< the frame at the frontier goes to memory of others
  bool landed_last_ = false;  ///< so did the last one, so that the next one may, too
  std::size_t landed_ = 0;    ///< of its payload
  AlignedMemory nowhere_;     ///< for a payload that is awaited no more
  Landings* landings_ = nullptr;
  std::uint32_t peer_ = 0;
  std::uint32_t* next_ = nullptr;  ///< the number whose turn it is; null: this connection is the only one
  bool only_data_ = false;
  std::string fault_;
};

}  // namespace unisono::tcp
