// One connection to a peer: what waits to be sent, what has come, and the socket between, once there is one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/header.hpp"
#include "network/poe.hpp"
#include "network/tcp/arrivals.hpp"
#include "network/tcp/frame_ring.hpp"
#include "network/tcp/pulse.hpp"
#include "network/tcp/socket.hpp"
#include "network/tcp/tls.hpp"

namespace unisono::tcp {

/// Frames over a stream. Control frames go before data frames that wait, but never inside one. Messages may be
/// committed before there is a socket; they wait. Nothing blocks. The stream may be encrypted: then it opens once both
/// ends have agreed on that.
class Connection {
 public:
  enum class State : std::uint8_t {
    kNew,       ///< no socket yet
    kSecuring,  ///< the ends agree on how to encrypt
    kOpen,      ///< messages go and come
    kLeft,      ///< the peer has said farewell
    kDead,      ///< broken; see `cause`
  };

  State state() const { return state_; }
  /// Why it broke, in words that follow the peer's name.
  const std::string& cause() const { return cause_; }

  /// Takes a socket whose handshake is over, to a peer that listens on `port`. The caller then sends; with `tls`, which
  /// is of this socket, he calls `secure` before, until the connection is open.
  void open(Socket socket, std::uint16_t port, std::unique_ptr<Tls> tls = nullptr);
  /// Goes on to agree on how to encrypt, if that is what it does. True if it has come to an end, be it good or bad.
  bool secure();
  /// Ends it, for a reason of others.
  void break_off(std::string cause);
  int descriptor() const { return socket_.get(); }
  /// Whether it is open, but takes nothing any more, as its end will tell.
  bool mute() const { return mute_; }

  /// From now on there are other connections of this session, which count what goes and what comes together with this
  /// one; both numbers live as long as this. `only_data`: the control lane is on another one.
  void share(std::uint32_t& outgoing, std::uint32_t& incoming, bool only_data);
  /// The numbers of the next data messages, out and in.
  std::uint32_t next_outgoing() const { return data_.sequence(); }
  std::uint32_t next_incoming() { return arrivals_.next_data(); }
  /// See Arrivals.
  bool waits_for_others() { return arrivals_.waits_for_others(); }

  std::byte* reserve(Lane lane, std::uint32_t bytes);
  /// Sends at once if nothing waits before it, and it is not held. Held is what would be a second short frame since the
  /// last `receive`: it waits for `send`, or for more that makes it worth a system call.
  void commit(Lane lane, const Header& header, bool holds = false);
  /// Both in one: what the kernel takes at once goes there from the caller's memory. False if there is no room for what
  /// it does not take.
  bool send(Lane lane, const Header& header, std::span<const std::byte> payload, bool holds = false);
  /// Whether nothing waits here that goes before a message; what is held back is sent.
  bool is_free();
  /// Somebody wants room here: `room_became_free` tells.
  void want_room() { wants_room_ = true; }
  /// See Poe.
  Sent lend(std::span<const Header> headers, const std::byte* payload);
  bool lends() const { return lent_.waits() && lent_.kept == nullptr; }
  void settle();
  bool peek(Lane lane, Incoming& incoming) { return arrivals_.peek(lane, incoming); }
  void release(Lane lane) { arrivals_.release(lane); }
  /// See Poe::land_in; the peer's number is for those questions.
  void land_in(Landings* landings, std::uint32_t peer) { arrivals_.land_in(landings, peer); }
  /// Whether `peek` may give a message, or there is a fault to tell of.
  bool talks() const { return arrivals_.talks(); }
  /// What is wrong with what came after the last message that can be peeked; empty if nothing.
  const std::string& fault() const { return arrivals_.fault(); }

  /// Sends what the kernel takes.
  void send();
  /// Takes what has come; true if that was anything, or the session has ended.
  bool receive();
  /// Whether anything waits to be sent.
  bool has_output() const { return has_messages() || (leaving_ && farewell_sent_ < kBye.size()); }
  bool has_messages() const { return queues() || has_sealed(); }
  /// Whether encrypted bytes wait, of messages or of what TLS says itself.
  bool has_sealed() const { return tls_ != nullptr && tls_->has_output(); }
  /// Whether bytes have come that only `receive` tells of: nothing stirs at the socket for them.
  bool holds() const { return tls_ != nullptr && state_ == State::kOpen && tls_->holds(); }
  /// Whether there is room for more to come.
  bool has_room() { return arrivals_.within_landing() || !arrivals_.room().empty(); }
  /// Once after `reserve` has given null and room became free.
  bool room_became_free();

  /// The farewell goes after all that waits; nothing may be committed afterwards.
  void leave() { leaving_ = true; }
  /// Whether nothing more goes but what the kernel has.
  bool has_said_farewell() const { return farewell_sent_ == kBye.size(); }
  /// After a farewell: whether the peer's host has all of it. Meanwhile what comes is thrown away, for the kernel
  /// would answer a close over unread bytes by taking back what is on its way.
  bool has_left();

  /// Whether the peer's host has vanished: see Pulse.
  bool gone(std::chrono::steady_clock::time_point now, std::chrono::milliseconds patience) {
    return (state_ == State::kOpen || state_ == State::kSecuring) && pulse_.gone(socket_, now, patience);
  }

  /// Bytes that it holds for messages.
  std::size_t memory() const {
    return data_.memory() + control_.memory() + arrivals_.memory() + (tls_ == nullptr ? 0 : tls_->memory());
  }

 private:
  /// Data frames that go before all others: a part of them may have gone, and their numbers are used.
  struct Lent {
    std::array<HeaderWords, Poe::kMostLent> words;
    std::size_t frames = 0;
    const std::byte* payload = nullptr;  ///< of all of them
    std::size_t next = 0;                ///< frame, of which a part waits
    std::size_t before = 0;              ///< bytes of payload of the frames before it
    std::size_t sent = 0;                ///< bytes of it that have gone, with its header
    AlignedMemory kept{};                ///< where the payload lies now if its owner wanted the memory back
    bool waits() const { return next != frames; }
    std::size_t bytes_of(std::size_t frame) const { return decode_header(words[frame]).segment_bytes; }
  };
  bool queues() const { return lent_.waits() || !data_.empty() || !control_.empty(); }
  /// Whether a frame of so many bytes is to wait.
  bool hold_back(std::size_t bytes);
  FrameRing& ring(Lane lane) { return lane == Lane::kData ? data_ : control_; }
  /// How much of a frame, or of these pieces, the kernel took.
  std::size_t send_frame(const HeaderWords& words, std::span<const std::byte> payload);
  std::size_t send_pieces(std::span<iovec> pieces);
  /// The same, encrypted; and of what was encrypted before, whether all was taken.
  std::size_t seal_pieces(std::span<const iovec> pieces);
  bool send_sealed();
  /// As recv(2), into one piece and then the other.
  ssize_t receive_into(std::span<std::byte> first, std::span<std::byte> second) const;
  /// True if all was sent that `one` and the rings have to send; false if the kernel takes no more.
  bool send_some();
  /// As that, for the frames that were lent.
  bool send_lent();
  void forget_lent();
  void send_farewell();
  void end(State state, std::string cause);
  void sending_failed(int error);
  std::string text_of_break(int error) const;

  State state_ = State::kNew;
  bool leaving_ = false;
  bool shut_ = false;
  bool mute_ = false;  ///< sending has failed; what came before can still be read
  bool wants_room_ = false;
  bool freed_ = false;
  bool spoke_ = false;    ///< something was sent since the last look for what came
  std::size_t held_ = 0;  ///< bytes that wait by choice
  std::size_t farewell_sent_ = 0;
  Socket socket_;
  std::unique_ptr<Tls> tls_;  ///< none: nothing is encrypted
  FrameRing data_{kMaxDataPayload, kMostBytes, 0};
  FrameRing control_{kMaxControlPayload, kMostBytes / 8, kControlMark};
  Lent lent_;
  Arrivals arrivals_;
  std::string cause_;
  Pulse pulse_;
};

}  // namespace unisono::tcp
