#include "network/tcp/connection.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::tcp {

namespace {

/// More than this is not held back.
constexpr std::size_t kMostHeld = 1024;

}  // namespace

void Connection::open(Socket socket, std::uint16_t port, std::unique_ptr<Tls> tls) {
  socket_ = std::move(socket);
  tls_ = std::move(tls);
  Address listener = remote_address(socket_.get());
  // The kernel takes the loopback to any address of its own.
  if (listener.loopback() || local_address(socket_.get()).bytes == listener.bytes) set_loopback_options(socket_);
  listener.port = port;
  pulse_.begin(listener);
  state_ = tls_ == nullptr ? State::kOpen : State::kSecuring;
}

bool Connection::secure() {
  if (state_ != State::kSecuring) return true;
  switch (tls_->shake_hands()) {
    case Tls::Progress::kUnderWay:
      return false;
    case Tls::Progress::kDone:
      state_ = State::kOpen;
      return true;
    case Tls::Progress::kFailed:
      break;
  }
  end(State::kDead, tls_->fault());
  return true;
}

void Connection::end(State state, std::string cause) {
  state_ = state;
  cause_ = std::move(cause);
  forget_lent();
  data_.clear();
  control_.clear();
  // Also if a child of fork has the socket, too.
  if (socket_.valid()) shutdown(socket_.get(), SHUT_RDWR);
}

void Connection::break_off(std::string cause) {
  if (state_ <= State::kOpen) end(State::kDead, std::move(cause));
}

std::byte* Connection::reserve(Lane lane, std::uint32_t bytes) {
  if (state_ > State::kOpen || mute_) return nullptr;
  std::byte* const place = ring(lane).reserve(bytes);
  if (place == nullptr) wants_room_ = true;
  return place;
}

bool Connection::hold_back(std::size_t bytes) {
  if (!spoke_ || held_ + bytes > kMostHeld) return false;
  held_ += bytes;
  return true;
}

void Connection::commit(Lane lane, const Header& header, bool holds) {
  if (state_ > State::kOpen || mute_) return;  // it broke meanwhile: nobody will get the message
  const bool goes = !queues() || held_ != 0;
  ring(lane).commit(header);
  if (!goes || state_ != State::kOpen) return;
  if (!holds || !hold_back(sizeof(HeaderWords) + header.segment_bytes)) send();
}

bool Connection::send(Lane lane, const Header& header, std::span<const std::byte> payload, bool holds) {
  if (state_ > State::kOpen || mute_) return false;
  FrameRing& own = ring(lane);
  std::byte* const place = own.reserve(static_cast<std::uint32_t>(payload.size()));
  if (place == nullptr) {
    wants_room_ = true;
    return false;
  }
  const bool open = state_ == State::kOpen;
  // Whether nothing before it waits for the kernel, so that it may go now; and not alone.
  const bool may_go = open && (!queues() || held_ != 0);
  const bool goes = may_go && !(holds && hold_back(sizeof(HeaderWords) + payload.size()));
  const bool follows = goes && queues();
  const HeaderWords words = own.seal(header);
  std::size_t sent = 0;
  if (goes && !follows) {
    spoke_ = true;
    sent = send_frame(words, payload);
    if (mute_) return true;  // it broke: nobody will get the message
    if (sent == sizeof words + payload.size()) return true;
  }
  const std::size_t of_payload = sent > sizeof words ? sent - sizeof words : 0;
  if (payload.size() != of_payload) {
    std::memcpy(place + of_payload, payload.data() + of_payload, payload.size() - of_payload);
  }
  own.enqueue(words, sent);
  if (follows) send();
  return true;
}

void Connection::share(std::uint32_t& outgoing, std::uint32_t& incoming, bool only_data) {
  data_.count_in(outgoing);
  arrivals_.share(incoming, only_data);
}

bool Connection::is_free() {
  if (state_ != State::kOpen || mute_) return false;
  if (held_ != 0) send();
  return !queues();
}

Sent Connection::lend(std::span<const Header> headers, const std::byte* payload) {
  if (!is_free()) {
    wants_room_ = true;
    return Sent::kNo;
  }
  lent_.frames = std::min(headers.size(), lent_.words.size());
  for (std::size_t i = 0; i < lent_.frames; ++i) lent_.words[i] = data_.number(headers[i]);
  lent_.payload = payload;
  spoke_ = true;
  if (send_lent() || mute_) return Sent::kWhole;
  return Sent::kLent;
}

bool Connection::send_lent() {
  std::array<iovec, 2 * Poe::kMostLent> pieces;
  std::size_t count = 0;
  std::size_t at = lent_.before;
  for (std::size_t i = lent_.next; i < lent_.frames; ++i) {
    const std::size_t gone = i == lent_.next ? lent_.sent : 0;
    const std::size_t of_payload = gone - std::min(gone, sizeof(HeaderWords));
    const std::size_t bytes = lent_.bytes_of(i);
    if (gone < sizeof(HeaderWords)) {
      pieces[count++] = {reinterpret_cast<std::byte*>(lent_.words[i].data()) + gone, sizeof(HeaderWords) - gone};
    }
    // The system's structure has no constant form; the kernel only reads.
    pieces[count++] = {const_cast<std::byte*>(lent_.payload) + at + of_payload, bytes - of_payload};
    at += bytes;
  }
  std::size_t sent = send_pieces(std::span(pieces).first(count));
  if (mute_) return false;
  while (lent_.waits()) {
    const std::size_t bytes = lent_.bytes_of(lent_.next);
    const std::size_t part = std::min(sizeof(HeaderWords) + bytes - lent_.sent, sent);
    lent_.sent += part;
    sent -= part;
    if (lent_.sent < sizeof(HeaderWords) + bytes) return false;
    lent_.sent = 0;
    lent_.before += bytes;
    ++lent_.next;
  }
  forget_lent();
  freed_ = true;
  return true;
}

void Connection::forget_lent() {
  lent_.frames = lent_.next = lent_.before = lent_.sent = 0;
  lent_.payload = nullptr;
  lent_.kept.reset();
}

void Connection::settle() {
  if (!lends()) return;
  std::size_t bytes = 0;
  for (std::size_t i = lent_.next; i < lent_.frames; ++i) bytes += lent_.bytes_of(i);
  try {
    lent_.kept = allocate_aligned(std::max<std::size_t>(bytes, 1));
  } catch (const Error& error) {
    break_off(formatted("a message to it could not be completed: {}", error.what()));
    return;
  }
  std::memcpy(lent_.kept.get(), lent_.payload + lent_.before, bytes);
  lent_.payload = lent_.kept.get();
  lent_.before = 0;
}

std::size_t Connection::send_frame(const HeaderWords& words, std::span<const std::byte> payload) {
  // A short frame costs less in one piece than the kernel's look at two.
  constexpr std::size_t kShort = 448;
  if (payload.size() <= kShort) {
    std::array<std::byte, sizeof words + kShort> frame;
    std::memcpy(frame.data(), words.data(), sizeof words);
    if (!payload.empty()) std::memcpy(frame.data() + sizeof words, payload.data(), payload.size());
    iovec whole{frame.data(), sizeof words + payload.size()};
    return send_pieces({&whole, 1});
  }
  // The system's structure has no constant form; the kernel only reads.
  std::array<iovec, 2> pieces{{{const_cast<HeaderWords::value_type*>(words.data()), sizeof words},
                               {const_cast<std::byte*>(payload.data()), payload.size()}}};
  return send_pieces(pieces);
}

std::size_t Connection::send_pieces(std::span<iovec> pieces) {
  if (tls_ != nullptr) [[unlikely]]
    return seal_pieces(pieces);
  ssize_t sent = 0;
  do {
    if (pieces.size() == 1) {
      sent = ::send(socket_.get(), pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = pieces.size();
      sent = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) sending_failed(errno);
  return 0;
}

std::size_t Connection::seal_pieces(std::span<const iovec> pieces) {
  const std::size_t taken = tls_->send(pieces);
  if (tls_->sending_error() == 0 && tls_->fault().empty()) return taken;
  sending_failed(tls_->sending_error());
  return 0;
}

bool Connection::send_sealed() {
  const bool all = tls_->flush();
  if (tls_->sending_error() != 0) sending_failed(tls_->sending_error());
  return all && !mute_;
}

bool Connection::send_some() {
  std::array<iovec, 16> pieces;
  // A frame that has begun is completed first. Only one ring can be within a frame.
  const bool data_first = data_.within_frame();
  FrameRing& first = data_first ? data_ : control_;
  FrameRing& second = data_first ? control_ : data_;
  std::size_t count = first.gather(pieces, data_first);
  count += second.gather(std::span(pieces).subspan(count), false);
  std::size_t whole = 0;
  for (std::size_t i = 0; i < count; ++i) whole += pieces[i].iov_len;
  const std::size_t bytes = send_pieces(std::span(pieces).first(count));
  if (bytes == 0) return false;
  const std::size_t of_first = first.consume(bytes, data_first);
  if (of_first < bytes) second.consume(bytes - of_first, false);
  if (wants_room_) freed_ = true;
  return bytes == whole;
}

void Connection::send() {
  if (state_ != State::kOpen || mute_) return;
  held_ = 0;
  spoke_ = true;
  while (queues()) {
    if (lent_.waits() ? !send_lent() : !send_some()) return;
  }
  if (tls_ != nullptr && !send_sealed()) return;
  if (leaving_) send_farewell();
}

void Connection::send_farewell() {
  while (farewell_sent_ < kBye.size()) {
    // The system's structure has no constant form; the kernel only reads.
    iovec rest{const_cast<std::byte*>(kBye.data()) + farewell_sent_, kBye.size() - farewell_sent_};
    const std::size_t sent = send_pieces({&rest, 1});
    if (sent == 0) return;
    farewell_sent_ += sent;
  }
}

std::string Connection::text_of_break(int error) const {
  if (tls_ != nullptr && !tls_->fault().empty()) return tls_->fault();
  return formatted("the connection to it broke: {}", text_of_error(error));
}

void Connection::sending_failed(int error) {
  // What the peer sent before, its farewell among it, may still wait in the kernel.
  mute_ = true;
  cause_ = text_of_break(error);
  forget_lent();
  data_.clear();
  control_.clear();
}

ssize_t Connection::receive_into(std::span<std::byte> first, std::span<std::byte> second) const {
  if (tls_ != nullptr) [[unlikely]]
    return tls_->receive(first, second);
  if (first.empty()) return recv(socket_.get(), second.data(), second.size(), MSG_DONTWAIT);
  std::array<iovec, 2> pieces{{{first.data(), first.size()}, {second.data(), second.size()}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return recvmsg(socket_.get(), &message, MSG_DONTWAIT);
}

bool Connection::receive() {
  if (state_ != State::kOpen) return false;
  spoke_ = false;
  bool came = false;
  for (;;) {
    const auto landing = arrivals_.landing();
    const auto room = arrivals_.room();
    if (landing.empty() && room.empty()) return came;
    const ssize_t got = receive_into(landing, room);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return came;
      const int error = errno;
      if (has_said_farewell()) {
        end(State::kLeft, {});
      } else {
        end(State::kDead, mute_ ? cause_ : text_of_break(error));
      }
      return true;
    }
    // A peer that has read the farewell closes its end. Others of the session may still have to send what goes by them.
    if (got == 0 && has_said_farewell()) {
      end(State::kLeft, {});
      return true;
    }
    if (got == 0) {
      end(State::kDead,
          mute_ ? cause_
          : arrivals_.within_frame()
              ? "it closed the connection within a message"
              : "it closed the connection without leaving: its process has ended, or has given up this one");
      return true;
    }
    came = true;
    const bool whole = arrivals_.received(static_cast<std::size_t>(got));
    if (!arrivals_.fault().empty()) {
      end(State::kDead, formatted("it sent what is no message: {}", arrivals_.fault()));
      return true;
    }
    if (arrivals_.bye()) {
      end(State::kLeft, {});
      return true;
    }
    if (static_cast<std::size_t>(got) < landing.size() + room.size()) return true;
    if (whole && !holds()) return true;
  }
}

bool Connection::room_became_free() {
  if (!freed_) return false;
  wants_room_ = freed_ = false;
  return true;
}

bool Connection::has_left() {
  if (state_ != State::kOpen || mute_) return true;
  std::array<std::byte, 4096> thrown_away;
  for (;;) {
    const ssize_t got = recv(socket_.get(), thrown_away.data(), thrown_away.size(), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    return true;
  }
  if (has_output()) return false;
  if (!std::exchange(shut_, true)) shutdown(socket_.get(), SHUT_WR);
  int unanswered = 0;
  return ioctl(socket_.get(), SIOCOUTQ, &unanswered) != 0 || unanswered == 0;
}

}  // namespace unisono::tcp
