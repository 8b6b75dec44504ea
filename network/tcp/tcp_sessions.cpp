// Sessions from the network's side: how their connections are made, how they end, and who lives.
#include <poll.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "network/tcp/card.hpp"
#include "network/tcp/tcp_network.hpp"

namespace unisono::tcp {

namespace {

/// A peer that has proven itself on a connection of its own will be here by then.
constexpr std::chrono::seconds kPatienceForPeer{10};
constexpr std::chrono::seconds kPatienceAtEnd{1};

}  // namespace

TcpNetwork::Session& TcpNetwork::make_session(std::uint32_t peer) {
  check_peer(peer);
  sessions_[peer] = std::make_unique<Session>();
  sessions_[peer]->bundle.first().peer = peer;
  sessions_[peer]->bundle.land_in(landings_, peer);
  ++sessions_in_use_;
  return *sessions_[peer];
}

TcpNetwork::Session& TcpNetwork::session(std::uint32_t peer) {
  check_process();
  if (peer < sessions_.size() && sessions_[peer] != nullptr) [[likely]]
    return *sessions_[peer];
  Session& made = make_session(peer);
  Strand& first = made.bundle.first();
  first.attempt = std::make_unique<Attempt>(decode_card(members_.cards[peer]).addresses, own_, settings_.patience);
  connecting_.push_back(&first);
  advance(first, Clock::now());
  pass_deadlines(Clock::now());
  return made;
}

void TcpNetwork::ask_for_more(Session& session) {
  if (session.bundle.state() != Connection::State::kOpen) return;
  session.widens = false;
  session.bundle.widen(session.connections, landings_);
  // The address at which the first connection was made is known to lead there.
  std::vector<Address> addresses = decode_card(members_.cards[session.peer()]).addresses;
  std::stable_partition(addresses.begin(), addresses.end(), [&](const Address& one) {
    return one.six == session.listener.six && one.bytes == session.listener.bytes;
  });
  const Clock::time_point now = Clock::now();
  for (std::size_t number = 1; number < session.bundle.size(); ++number) {
    Strand& more = session.bundle.at(number);
    more.attempt = std::make_unique<Attempt>(addresses, own_, settings_.patience);
    connecting_.push_back(&more);
    advance(more, now);
  }
  pass_deadlines(now);
}

void TcpNetwork::pass_deadlines(Clock::time_point now) {
  listener_.tidy(watch_, now);
  Clock::time_point first = unread_.empty() ? listener_.deadline() : Clock::time_point{};
  // One that fails may take others of its session along.
  for (std::size_t i = connecting_.size(); i > 0; i = std::min(i - 1, connecting_.size())) {
    Strand& strand = *connecting_[i - 1];
    if (strand.attempt != nullptr && strand.attempt->deadline() <= now) advance(strand, now);
    if (strand.awaited_until > now) continue;
    const std::string cause = formatted("on {} said that it connects to {}, and has not done so within {} s",
                                        host_of(strand.peer), host_of(members_.self), kPatienceForPeer.count());
    if (strand.number == 0) {
      give_up(*sessions_[strand.peer], cause);
    } else {
      do_without(strand, cause);
    }
  }
  for (const Strand* strand : connecting_) {
    if (strand->attempt != nullptr) first = std::min(first, strand->attempt->deadline());
    first = std::min(first, strand->awaited_until);
  }
  watch_.set_timer(first);
}

void TcpNetwork::advance(Strand& strand, Clock::time_point now) {
  Attempt& attempt = *strand.attempt;
  Session& session = *sessions_[strand.peer];
  const auto size = static_cast<std::uint32_t>(sessions_.size());
  const Ends ends{members_.self, strand.peer, size, settings_.tls, settings_.connections, strand.number};
  const JobKey& key = strand.number == 0 ? members_.key : *session.key;
  switch (attempt.advance({watch_, key, ends, tag_of(kOfAttempt, strand)}, now)) {
    case Attempt::Result::kUnderWay:
      return;
    case Attempt::Result::kOpen: {
      const Agreed agreed = attempt.agreed();
      open(strand, attempt.take(watch_), TlsEnd::kClient, agreed);
      return;
    }
    case Attempt::Result::kDuplicate:
      drop_attempt(strand);
      strand.awaited_until = now + kPatienceForPeer;
      return;
    case Attempt::Result::kFailed: {
      const std::string cause =
          attempt.final_fault().empty()
              ? formatted("on {} cannot be reached from {}: tried {}{}", host_of(strand.peer), host_of(members_.self),
                          attempt.outcome(), attempt.refused() ? "; its process has ended: see what it said" : "")
              : formatted("on {} refuses {}: it {}", host_of(strand.peer), host_of(members_.self),
                          attempt.final_fault());
      if (strand.number != 0) return do_without(strand, cause);
      if (attempt.refused()) session.fate = Poe::Fate::kEnded;
      return give_up(session, cause);
    }
  }
}

void TcpNetwork::drop_attempt(Strand& strand) {
  if (strand.attempt == nullptr) return;
  strand.attempt->close(watch_);
  strand.attempt.reset();
}

void TcpNetwork::do_without(Strand& strand, const std::string& cause) {
  drop_attempt(strand);
  strand.awaited_until = Clock::time_point::max();
  std::erase(connecting_, &strand);
  if (cause.empty() || !logs(LogLevel::kInfo)) return;
  log(LogLevel::kInfo, formatted("endpoint {} does without connection {} of {} to endpoint {}, which {}", members_.self,
                                 strand.number + 1, sessions_[strand.peer]->connections, strand.peer, cause));
}

void TcpNetwork::give_up(Session& session, const std::string& cause) {
  for (std::size_t number = 0; number < session.bundle.size(); ++number) do_without(session.bundle.at(number), {});
  session.bundle.break_off(cause);
  retire_all(session);
}

void TcpNetwork::open(Strand& strand, Socket socket, TlsEnd end, const Agreed& agreed) {
  do_without(strand, {});
  Session& session = *sessions_[strand.peer];
  const std::uint16_t port = decode_card(members_.cards[strand.peer]).port;
  if (strand.number == 0) {
    session.key = agreed.session_key;
    session.connections = agreed.connections;
    session.widens = agreed.connections > 1;
    session.listener = remote_address(socket.get());
    session.listener.port = port;
  }
  set_patience(socket, settings_.patience);
  auto tls = settings_.tls ? std::make_unique<Tls>(end, agreed.tls_secret, socket.get()) : nullptr;
  strand.connection.open(std::move(socket), port, std::move(tls));
  open_.push_back(&strand);
  if (leaving_) strand.connection.leave();
  secure(strand);
  strand.connection.send();
  watch_strand(strand);
  // Bytes may have come behind the handshake, and room have become free.
  news_ = true;
}

Ruling TcpNetwork::rule(const Acceptor& proven) {
  const std::uint32_t peer = proven.peer();
  // Of two attempts at once that of the lower endpoint stays, if the peer may regard it as the session by now. The
  // higher endpoint accepts in any case: the lower one has not accepted its attempt, or it would not have proven itself
  // here.
  if (members_.cards[peer].empty()) return Ruling::kKnown;
  if (proven.number() != 0) return rule_of_more(*sessions_[peer], proven);
  if (sessions_[peer] == nullptr) {
    Session& made = make_session(peer);
    connecting_.push_back(&made.bundle.first());
  }
  Session& session = *sessions_[peer];
  const Strand& first = session.bundle.first();
  if (first.connection.state() != Connection::State::kNew) return Ruling::kKnown;
  if (proven.objection() != Ruling::kAccepted) {
    give_up(session, formatted("on {} {}", host_of(peer), proven.fault()));
    return proven.objection();
  }
  const bool own_stays = members_.self < peer && first.attempt != nullptr && first.attempt->proven();
  return own_stays ? Ruling::kDuplicate : Ruling::kAccepted;
}

Ruling TcpNetwork::rule_of_more(Session& session, const Acceptor& proven) {
  if (proven.objection() != Ruling::kAccepted) return proven.objection();
  if (session.bundle.state() > Connection::State::kOpen || session.bundle.is_ending()) return Ruling::kKnown;
  if (proven.number() >= session.connections) return Ruling::kKnown;
  if (std::exchange(session.widens, false)) session.bundle.widen(session.connections, landings_);
  const Strand& more = session.bundle.at(proven.number());
  if (more.connection.state() != Connection::State::kNew) return Ruling::kKnown;
  const bool own_stays = members_.self < session.peer() && more.attempt != nullptr && more.attempt->proven();
  return own_stays ? Ruling::kDuplicate : Ruling::kAccepted;
}

Poe::Liveness TcpNetwork::liveness(std::uint32_t peer) {
  if (peer == members_.self) return Poe::Liveness::kAlive;
  Session& asked = session(peer);
  for (std::size_t number = 0; number < asked.bundle.size(); ++number) {
    if (!asked.bundle.at(number).connection.gone(Clock::now(), settings_.patience)) continue;
    asked.fate = Poe::Fate::kVanished;
    give_up(asked,
            formatted("has not answered for {} ms: its host or the network to it is gone", settings_.patience.count()));
  }
  switch (asked.bundle.state()) {
    case Connection::State::kLeft:
      return Poe::Liveness::kLeft;
    case Connection::State::kDead:
      return Poe::Liveness::kDead;
    default:
      return Poe::Liveness::kAlive;
  }
}

Poe::Fate TcpNetwork::fate(std::uint32_t peer) {
  switch (liveness(peer)) {
    case Poe::Liveness::kAlive:
      return Poe::Fate::kUnknown;
    case Poe::Liveness::kLeft:
      return Poe::Fate::kEnded;
    default:
      break;
  }
  Session& asked = *sessions_[peer];
  if (asked.fate == Poe::Fate::kUnknown) asked.fate = inquire(asked, Clock::now());
  return asked.fate;
}

// A connection that was closed or reset tells less than it seems to: so does a peer that lives and has given up this
// endpoint, and so do some boxes on the way.
Poe::Fate TcpNetwork::inquire(Session& session, Clock::time_point now) {
  constexpr std::chrono::milliseconds kOnceMore{100};
  // There was never a connection, so it is not known which of its addresses is the peer's.
  if (session.listener.port == 0) return Poe::Fate::kVanished;
  if (!session.question.asked()) {
    if (session.asked == Clock::time_point{}) session.asked = now;
    if (now < session.ask_not_before) return Poe::Fate::kUnknown;
    session.question.ask(session.listener);
  }
  switch (session.question.answer()) {
    case Question::Answer::kRefused:
      return Poe::Fate::kEnded;
    case Question::Answer::kNoWay:  // it may be back soon
      session.ask_not_before = now + kOnceMore;
      session.question.withdraw();
      break;
    case Question::Answer::kWelcome:
      // A process that ends closes its connections and its listener one after the other.
      if (session.asked_again) return Poe::Fate::kVanished;
      session.asked_again = true;
      session.asked = now;
      session.ask_not_before = now + kOnceMore;
      session.question.withdraw();
      return Poe::Fate::kUnknown;
    case Question::Answer::kNotAsked:
      session.question.withdraw();
      break;
    case Question::Answer::kNone:
      break;
  }
  return now - session.asked > settings_.patience / 2 ? Poe::Fate::kVanished : Poe::Fate::kUnknown;
}

std::string TcpNetwork::condition(std::uint32_t peer) const {
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) return {};
  const Session& session = *sessions_[peer];
  if (session.bundle.state() == Connection::State::kDead) return session.bundle.cause();
  const Attempt* const attempt = session.bundle.first().attempt.get();
  if (attempt == nullptr || attempt->obstacle().empty()) return {};
  return "cannot be connected to now: " + attempt->obstacle();
}

Trial TcpNetwork::trial(std::uint32_t peer) {
  switch (session(peer).bundle.state()) {
    case Connection::State::kNew:
      return Trial::kUnanswered;
    case Connection::State::kSecuring:
      return Trial::kAnswered;
    case Connection::State::kOpen:
      return Trial::kProven;
    default:
      return Trial::kFailed;
  }
}

void TcpNetwork::end(std::uint32_t peer, const std::string& cause) {
  Session& ended = session(peer);
  if (ended.bundle.state() > Connection::State::kOpen) return;
  give_up(ended, cause);
}

void TcpNetwork::leave() {
  const Clock::time_point deadline = Clock::now() + kPatienceAtEnd;
  leaving_ = true;
  // Nobody needs further connections any more, but for those that the peer may regard as made: their end without a
  // farewell would be taken for a failure.
  for (const auto& session : sessions_) {
    if (session == nullptr) continue;
    session->widens = false;
    session->bundle.leave();
    for (std::size_t number = 1; number < session->bundle.size(); ++number) {
      Strand& more = session->bundle.at(number);
      if (more.attempt == nullptr || !more.attempt->proven()) do_without(more, {});
    }
  }
  // Peers that get messages by a connection that is not there yet are waited for, too, and those with which TLS is
  // being agreed on: they would take an end before that for a failure.
  const auto still_connecting = [&] {
    const auto waits = [](const Strand* strand) { return strand->number != 0 || strand->connection.has_messages(); };
    const auto secures = [](const Strand* strand) {
      return strand->connection.state() == Connection::State::kSecuring;
    };
    return std::any_of(connecting_.begin(), connecting_.end(), waits) ||
           std::any_of(open_.begin(), open_.end(), secures);
  };
  for (;;) {
    while (still_connecting() && Clock::now() < deadline) {
      poll_watch();
      pollfd sleep{watch_.descriptor(), POLLIN, 0};
      if (still_connecting()) ::poll(&sleep, 1, 1);
    }
    bool all_left = true;
    for (Strand* strand : open_) {
      strand->connection.send();
      all_left = strand->connection.has_left() && all_left;
    }
    if (all_left || Clock::now() >= deadline) break;
    ::poll(nullptr, 0, 1);
  }
  for (Strand* strand : connecting_) drop_attempt(*strand);
}

}  // namespace unisono::tcp
