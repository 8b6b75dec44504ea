// The sending end of a session: what goes next, and what must go again. No sockets and no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "network/poe.hpp"
#include "network/udp/congestion.hpp"
#include "network/udp/frames.hpp"
#include "network/udp/out_stream.hpp"
#include "network/udp/round_trip.hpp"

namespace unisono::udp {

/// A datagram to be sent: a piece of a lane's stream, or none.
struct Plan {
  std::uint64_t number = 0;
  std::uint8_t lane = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// Loss is found by acknowledgements: a datagram is lost if others that were sent well after it have come, by number
/// or by time (as in RFC 9002, of QUIC). If nothing comes at all, something is sent again so that there is an answer;
/// silence alone is no loss, for the peer may just not look.
class Sender {
 public:
  /// So many datagrams may be without an answer.
  static constexpr std::size_t kMostInFlight = 2048;
  /// The longest piece that fits every path of IPv6.
  static constexpr std::size_t kLeastPiece = 1152;

  /// Of `most_piece` bytes a datagram, from memory of `ring_bytes` for the data lane.
  Sender(std::size_t most_piece, std::size_t ring_bytes, std::size_t control_bytes);

  OutStream& stream(Lane lane) { return streams_[index_of(lane)]; }
  std::span<const std::byte> piece(const Plan& plan) const {
    return streams_[plan.lane].piece(plan.offset, plan.bytes);
  }

  /// The next datagram, which counts as sent from then on; false if none may go now.
  bool next(Time now, Plan& plan);
  /// What the peer has. True if there is room again after there was none.
  bool acknowledged(const AckFrame& frame, Time now);
  /// Does what is due. Then there may be something to send.
  void tick(Time now);
  /// When `tick` has something to do, or `next` something to give.
  Time deadline(Time now) const;
  /// Whether all that was committed has been sent, and none of it is known to be lost.
  bool all_sent() const {
    const auto gone = [](const OutStream& stream) { return stream.next() == stream.end(); };
    return lost_ == 0 && questions_ == 0 && gone(streams_[0]) && gone(streams_[1]);
  }
  /// Whether the peer has all that was committed.
  bool delivered() const { return streams_[0].delivered() && streams_[1].delivered(); }

  /// The way takes pieces of so many bytes. Before anything was sent.
  void begin(std::size_t most_piece);
  /// From now on no datagram has a longer piece.
  void shrink(std::size_t most_piece);
  std::size_t most_piece() const { return most_piece_; }

  // For tests, and for those who look why it is slow.
  std::size_t window() const { return congestion_.window(); }
  std::size_t in_flight() const { return in_flight_; }
  std::uint64_t datagrams() const { return number_; }
  std::uint64_t resent() const { return resent_; }
  const RoundTrip& round_trip() const { return round_trip_; }

 private:
  enum class State : std::uint8_t { kOver, kInFlight, kLost };
  struct Record {
    std::uint64_t number = 0;
    std::uint64_t offset = 0;
    Time sent{};
    std::uint32_t bytes = 0;
    std::uint8_t lane = 0;
    State state = State::kOver;
    bool thought_lost = false;
  };
  Record& record(std::uint64_t number) { return records_[number % kMostInFlight]; }

  void put(Time now, Plan& plan);
  bool next_lost(Plan& plan);
  bool next_new(Plan& plan);
  void next_question(Plan& plan);
  void pass_over();
  void free_oldest(Time now);
  void take(std::uint64_t number);
  void find_losses(Time now);
  /// `known`: because others have come, not for want of its place.
  void lose(Record& one, Time now, bool known);
  void note_long_loss(std::size_t bytes);
  void forget_long_losses();
  bool pace(Time now);
  double rate() const;
  Time question_at() const;

  OutStream streams_[kLanes];
  std::vector<Record> records_;
  std::size_t most_piece_;
  std::size_t most_window_;
  Congestion congestion_;
  RoundTrip round_trip_;

  std::uint64_t number_ = 0;  ///< the last one used
  std::uint64_t oldest_ = 1;  ///< before it, nothing is in flight or lost
  std::uint64_t largest_came_ = 0;
  std::uint64_t first_lost_ = 0;  ///< before it, nothing is lost
  std::size_t lost_ = 0;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t suspected_from_ = kNone;  ///< numbers from here on may come though they are thought lost
  std::size_t in_flight_ = 0;
  std::uint64_t resent_ = 0;
  std::uint64_t threshold_ = 3;  ///< a datagram is lost if one sent so much later has come
  static constexpr std::size_t kNoPiece = ~std::size_t{0};
  unsigned long_losses_ = 0;              ///< of pieces that are longer than every way takes
  std::size_t shortest_lost_ = kNoPiece;  ///< of these; nothing as long has come since
  bool window_held_ = false;

  unsigned asked_ = 0;         ///< times without an answer
  unsigned asked_closed_ = 0;  ///< times while the peer had no room
  unsigned questions_ = 0;     ///< to be sent now
  bool bare_question_ = false;
  Time last_sent_{};
  Time loss_at_ = Time::max();
  double budget_ = 0;  ///< bytes that pacing allows
  Time budget_at_{};

  // Of the acknowledgement at hand.
  std::size_t came_bytes_ = 0, came_ = 0;
  bool room_ = false;
};

}  // namespace unisono::udp
