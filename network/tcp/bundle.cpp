#include "network/tcp/bundle.hpp"

#include <algorithm>
#include <array>

#include "core/text.hpp"

namespace unisono::tcp {

void Bundle::widen(std::uint32_t count, Landings* landings) {
  outgoing_ = first_.connection.next_outgoing();
  incoming_ = first_.connection.next_incoming();
  first_.connection.share(outgoing_, incoming_, false);
  reserved_ = &first_.connection;
  for (std::uint32_t number = 1; number < count; ++number) {
    Strand& one = *more_.emplace_back(std::make_unique<Strand>());
    one.peer = first_.peer;
    one.number = number;
    one.connection.share(outgoing_, incoming_, true);
    one.connection.land_in(landings, one.peer);
  }
}

Bundle::State Bundle::state_of_all() const {
  bool dead = false;
  bool comes = false;
  for (std::size_t i = 0; i < size(); ++i) {
    const State state = at(i).connection.state();
    dead = dead || state == State::kDead;
    // Of the others, one that was never made is no part of the session.
    comes = comes || state == State::kOpen || state == State::kSecuring || (i == 0 && state == State::kNew);
  }
  if (comes) return first_.connection.state() < State::kOpen ? first_.connection.state() : State::kOpen;
  return dead ? State::kDead : State::kLeft;
}

void Bundle::break_off(const std::string& cause) {
  if (cause_.empty()) cause_ = cause;
  for (std::size_t i = 0; i < size(); ++i) at(i).connection.break_off(cause);
}

bool Bundle::is_ending() const {
  return std::any_of(more_.begin(), more_.end(),
                     [](const auto& one) { return one->connection.state() == State::kDead; }) ||
         (!more_.empty() && first_.connection.state() == State::kDead);
}

bool Bundle::end_together() {
  // A peer that lives may go on to send: not all of it is awaited.
  constexpr int kMostTurns = 64;
  bool came = false;
  for (std::size_t i = 0; i < size() && cause_.empty(); ++i) {
    if (at(i).connection.state() == State::kDead) cause_ = at(i).connection.cause();
  }
  for (std::size_t i = 0; i < size(); ++i) {
    Connection& one = at(i).connection;
    for (int turn = 0; turn < kMostTurns && one.receive(); ++turn) came = true;
    if (one.state() != State::kOpen || one.has_room()) one.break_off(cause_);
  }
  return came;
}

bool Bundle::takes_data() const {
  for (std::size_t i = 0; i < size(); ++i) {
    const Connection& one = at(i).connection;
    if (one.state() > State::kOpen || one.mute()) return false;
  }
  return true;
}

template <class Take>
bool Bundle::hand_out(Take&& take) {
  for (const bool waits : {false, true}) {
    for (std::size_t i = 0; i < size(); ++i) {
      const std::size_t number = (turn_ + i) % size();
      Connection& one = at(number).connection;
      if (one.state() != State::kOpen || one.is_free() == waits || !take(one)) continue;
      turn_ = (number + 1) % size();
      return true;
    }
  }
  return false;
}

std::byte* Bundle::reserve(Lane lane, std::uint32_t bytes) {
  if (more_.empty() || lane == Lane::kControl) return first_.connection.reserve(lane, bytes);
  if (!takes_data()) return nullptr;
  reserved_ = &first_.connection;
  if (bytes < kSpread) return first_.connection.reserve(lane, bytes);
  std::byte* place = nullptr;
  hand_out([&](Connection& one) {
    place = one.reserve(lane, bytes);
    if (place != nullptr) reserved_ = &one;
    return place != nullptr;
  });
  return place;
}

void Bundle::commit(Lane lane, const Header& header, bool holds) {
  if (more_.empty() || lane == Lane::kControl || reserved_ == &first_.connection) {
    return first_.connection.commit(lane, header, holds);
  }
  reserved_->commit(lane, header);
}

bool Bundle::send(Lane lane, const Header& header, std::span<const std::byte> payload, bool holds) {
  if (more_.empty() || lane == Lane::kControl) [[likely]]
    return first_.connection.send(lane, header, payload, holds);
  if (!takes_data()) return false;
  if (payload.size() < kSpread) return first_.connection.send(lane, header, payload, holds);
  return hand_out([&](Connection& one) { return one.send(lane, header, payload, false); });
}

Sent Bundle::lend(std::span<const Header> headers, const std::byte* payload) {
  if (more_.empty()) [[likely]]
    return first_.connection.lend(headers, payload);
  if (!takes_data()) return Sent::kNo;
  std::array<Connection*, kMostConnections> free{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < size() && !lends(); ++i) {
    Connection& one = at((turn_ + i) % size()).connection;
    if (one.is_free()) free[count++] = &one;
  }
  if (count == 0) {
    for (std::size_t i = 0; i < size(); ++i) at(i).connection.want_room();
    return Sent::kNo;
  }
  turn_ = (turn_ + 1) % size();
  // Each takes frames that lie together, by one system call.
  count = std::min(count, headers.size());
  for (std::size_t i = 0, begin = 0; i < count; ++i) {
    const std::size_t frames = headers.size() / count + (i < headers.size() % count ? 1 : 0);
    const auto part = headers.subspan(begin, frames);
    // One that breaks here breaks the session: what was not sent is awaited by nobody.
    free[i]->lend(part, payload);
    for (const Header& header : part) payload += header.segment_bytes;
    begin += frames;
  }
  return lends() ? Sent::kLent : Sent::kWhole;
}

bool Bundle::lends() const {
  return first_.connection.lends() ||
         std::any_of(more_.begin(), more_.end(), [](const auto& one) { return one->connection.lends(); });
}

void Bundle::settle() {
  for (std::size_t i = 0; i < size(); ++i) at(i).connection.settle();
}

bool Bundle::peek(Lane lane, Incoming& incoming) {
  if (more_.empty() || lane == Lane::kControl) [[likely]]
    return first_.connection.peek(lane, incoming);
  // One that drops a message passes the turn on, perhaps to one that was asked before.
  std::uint32_t asked_for = 0;
  do {
    asked_for = incoming_;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::size_t number = (from_ + i) % size();
      if (!at(number).connection.peek(lane, incoming)) continue;
      from_ = number;
      return true;
    }
  } while (asked_for != incoming_);
  examine_gap();
  return false;
}

void Bundle::examine_gap() {
  bool comes = false;
  for (std::size_t i = 0; i < size(); ++i) {
    Connection& one = at(i).connection;
    if (!one.waits_for_others() || one.state() != State::kOpen) comes = true;
  }
  if (!comes && fault().empty()) {
    fault_ = formatted("the message with the number {} can come by none of its connections any more", incoming_);
  }
  if (!fault().empty()) break_off(formatted("it sent what is no message: {}", fault()));
}

Strand& Bundle::release(Lane lane) {
  Strand& from = lane == Lane::kControl ? first_ : at(from_);
  from.connection.release(lane);
  return from;
}

void Bundle::land_in(Landings* landings, std::uint32_t peer) {
  for (std::size_t i = 0; i < size(); ++i) at(i).connection.land_in(landings, peer);
}

bool Bundle::talks() const {
  return !fault_.empty() || first_.connection.talks() ||
         std::any_of(more_.begin(), more_.end(), [](const auto& one) { return one->connection.talks(); });
}

const std::string& Bundle::fault() const {
  if (!fault_.empty()) return fault_;
  for (const auto& one : more_) {
    if (!one->connection.fault().empty()) return one->connection.fault();
  }
  return first_.connection.fault();
}

bool Bundle::has_messages() const {
  return first_.connection.has_messages() ||
         std::any_of(more_.begin(), more_.end(), [](const auto& one) { return one->connection.has_messages(); });
}

void Bundle::leave() {
  for (std::size_t i = 0; i < size(); ++i) at(i).connection.leave();
}

}  // namespace unisono::tcp
