#include "network/tcp/tcp_network.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "network/tcp/card.hpp"

namespace unisono::tcp {

namespace {

/// So many connections are asked one by one; of more, only those that the kernel names.
constexpr std::size_t kFew = 4;
/// Newcomers and slow events are looked for in every so manieth poll while few connections are asked one by one.
constexpr std::uint32_t kBetweenLooks = 32;
/// A peer that has proven itself on a connection of its own will be here by then.
constexpr std::chrono::seconds kPatienceForPeer{10};
constexpr std::chrono::seconds kPatienceAtEnd{1};

// Tags of what is watched: the kind above, a number below.
constexpr unsigned kKindShift = 56;
constexpr std::uint64_t kOfListener = std::uint64_t{1} << kKindShift;
constexpr std::uint64_t kOfSession = std::uint64_t{2} << kKindShift;
constexpr std::uint64_t kOfAttempt = std::uint64_t{3} << kKindShift;
constexpr std::uint64_t kNumber = (std::uint64_t{1} << kKindShift) - 1;

}  // namespace

TcpNetwork::TcpNetwork(const TcpSettings& settings)
    : settings_(settings),
      pid_(static_cast<std::uint32_t>(getpid())),
      fork_generation_(fork_generation()),
      own_(own_addresses()),
      listener_(settings.first_port, settings.last_port) {
  if (settings_.tls) Tls::load();
  const Address route = settings_.towards ? route_to(*settings_.towards) : Address{};
  for (const OwnAddress& own : in_order(chosen_by(settings_.interfaces, own_), settings_.towards ? &route : nullptr)) {
    own_chosen_.push_back(own.address);
  }
}

TcpNetwork::~TcpNetwork() {
  if (fork_generation() != fork_generation_ || !met_) return;
  try {
    leave();
  } catch (const Error&) {
    // Peers will find the connections closed.
  }
}

std::vector<std::byte> TcpNetwork::card() const {
  Card card{port(), own_chosen_, settings_.tls};
  for (Address& address : card.addresses) address.port = port();
  return encode_card(card);
}

void TcpNetwork::meet(NetworkMembers members) {
  check_process();
  for (std::size_t i = 0; i < members.cards.size(); ++i) {
    if (members.cards[i].empty()) continue;
    try {
      decode_card(members.cards[i]);
    } catch (const Error& error) {
      throw Error(ErrorCode::kBootstrap, formatted("the card of endpoint {} on {}, which says where it listens, {}", i,
                                                   i < members.hosts.size() ? members.hosts[i] : "?", error.what()));
    }
  }
  members.hosts.resize(members.cards.size(), "?");
  check_security(members);
  members_ = std::move(members);
  sessions_.resize(members_.cards.size());
  const auto size = static_cast<std::uint32_t>(members_.cards.size());
  // A user who chose interfaces expects no connections at others.
  listener_.admit(members_.key, {members_.self, 0, size, settings_.tls},
                  settings_.interfaces.empty() ? std::vector<Address>{} : own_chosen_);
  listener_.listen_with(watch_, kOfListener);
  met_ = true;
}

void TcpNetwork::check_process() const {
  if (fork_generation() == fork_generation_) return;
  throw Error(ErrorCode::kWrongProcess,
              formatted("the network of endpoint {} belongs to process {} and was used in process {}, a child of fork",
                        members_.self, pid_, getpid()));
}

void TcpNetwork::check_peer(std::uint32_t peer) const {
  if (peer < sessions_.size() && peer != members_.self && !members_.cards[peer].empty()) return;
  throw Error(ErrorCode::kInternal, formatted("endpoint {} is not reached by tcp from endpoint {} of {}", peer,
                                              members_.self, sessions_.size()));
}

const std::string& TcpNetwork::host_of(std::uint32_t endpoint) const { return members_.hosts[endpoint]; }

TcpNetwork::Session& TcpNetwork::make_session(std::uint32_t peer) {
  check_peer(peer);
  sessions_[peer] = std::make_unique<Session>();
  sessions_[peer]->peer = peer;
  sessions_[peer]->connection.land_in(landings_, peer);
  ++sessions_in_use_;
  return *sessions_[peer];
}

TcpNetwork::Session& TcpNetwork::session(std::uint32_t peer) {
  check_process();
  if (peer < sessions_.size() && sessions_[peer] != nullptr) [[likely]]
    return *sessions_[peer];
  Session& made = make_session(peer);
  made.attempt = std::make_unique<Attempt>(decode_card(members_.cards[peer]).addresses, own_, settings_.patience);
  connecting_.push_back(&made);
  advance(made, Clock::now());
  pass_deadlines(Clock::now());
  return made;
}

std::byte* TcpNetwork::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  return session(peer).connection.reserve(lane, bytes);
}

void TcpNetwork::commit(std::uint32_t peer, Lane lane, const Header& header) {
  Session& to = session(peer);
  to.connection.commit(lane, header, holds_);
  sent(to);
}

void TcpNetwork::sent(Session& to) {
  if (!to.connection.has_output()) return;
  if (holds_ && to.connection.state() == Connection::State::kOpen) {
    held_.push_back(&to);
  } else {
    watch_session(to);
  }
}

bool TcpNetwork::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  Session& to = session(peer);
  if (!to.connection.send(lane, header, payload, holds_)) return false;
  sent(to);
  return true;
}

Sent TcpNetwork::lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) {
  Session& to = session(peer);
  const Sent result = to.connection.lend(headers, payload);
  if (result != Sent::kNo && to.connection.has_output()) watch_session(to);
  return result;
}

bool TcpNetwork::lends(std::uint32_t peer) const {
  return peer < sessions_.size() && sessions_[peer] != nullptr && sessions_[peer]->connection.lends();
}

std::optional<std::uint32_t> TcpNetwork::settle() {
  for (const auto& session : sessions_) {
    if (session != nullptr) session->connection.settle();
  }
  return std::nullopt;
}

bool TcpNetwork::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  check_process();
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) return false;
  Connection& from = sessions_[peer]->connection;
  if (from.peek(lane, incoming)) return true;
  if (from.fault().empty()) [[likely]]
    return false;
  throw Error(ErrorCode::kCorruptMessage, formatted("endpoint {} on {} sent endpoint {} what is no message: {}", peer,
                                                    host_of(peer), members_.self, from.fault()));
}

void TcpNetwork::release(std::uint32_t peer, Lane lane) {
  check_process();
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) {
    throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  }
  Session& from = *sessions_[peer];
  from.connection.release(lane);
  // What came while there was no room for it is asked for again.
  if (from.connection.state() == Connection::State::kOpen && (from.watched & EPOLLIN) == 0) watch_session(from);
}

void TcpNetwork::add_talkers(std::vector<std::uint32_t>& peers) {
  std::erase_if(talking_, [](Session* session) {
    if (!session->connection.talks()) session->talking = false;
    return !session->talking;
  });
  for (const Session* session : talking_) peers.push_back(session->peer);
}

void TcpNetwork::land_in(Landings* landings) {
  landings_ = landings;
  for (const auto& session : sessions_) {
    if (session != nullptr) session->connection.land_in(landings, session->peer);
  }
}

void TcpNetwork::watch_session(Session& session) {
  Connection& connection = session.connection;
  const bool open = connection.state() == Connection::State::kOpen;
  if (!open && connection.state() != Connection::State::kSecuring) [[unlikely]]
    return;
  // Messages are no output as long as the ends agree on TLS.
  const bool output = open ? connection.has_output() : connection.has_sealed();
  const std::uint32_t events = (connection.has_room() ? EPOLLIN : 0U) | (output ? EPOLLOUT : 0U);
  if (events == session.watched) [[likely]]
    return;
  if ((events & EPOLLIN & ~session.watched) != 0) tell_unread(session);
  watch_.set(connection.descriptor(), kOfSession | session.peer, events, session.watched);
}

bool TcpNetwork::serve(Session& session) {
  Connection& connection = session.connection;
  if (connection.state() != Connection::State::kOpen && !secure(session)) [[unlikely]]
    return false;
  if (connection.has_output()) connection.send();
  bool news = connection.receive();
  if (news && !std::exchange(session.talking, true)) talking_.push_back(&session);
  news |= connection.room_became_free();
  if (connection.state() == Connection::State::kOpen) {
    watch_session(session);
  } else {
    retire(session);
    news = true;
  }
  return news;
}

void TcpNetwork::retire(Session& session) {
  if (std::exchange(session.over, true)) return;
  std::erase(open_, &session);
  if (session.connection.descriptor() >= 0) watch_.set(session.connection.descriptor(), 0, 0, session.watched);
  news_ = true;
}

bool TcpNetwork::poll() {
  check_process();
  if (!met_) return false;
  bool news = false;
  if (!held_.empty()) {
    for (Session* const session : held_) {
      session->connection.send();
      if (session->connection.has_output()) watch_session(*session);
    }
    held_.clear();
  }
  if (!unread_.empty()) [[unlikely]]
    news = poll_unread();
  if (connecting_.empty() && open_.size() <= kFew && !listener_.has_newcomers() && ++polls_ % kBetweenLooks != 0) {
    news |= poll_sessions();
  } else {
    news |= poll_watch();
  }
  return std::exchange(news_, false) || news;
}

bool TcpNetwork::poll_sessions() {
  bool news = false;
  // From the last one: a session that ends takes itself out.
  for (std::size_t i = open_.size(); i > 0; --i) news |= serve(*open_[i - 1]);
  return news;
}

bool TcpNetwork::poll_watch() {
  bool news = false;
  bool slow = false;
  const auto ready = watch_.ready();
  const Clock::time_point now = ready.empty() && connecting_.empty() ? Clock::time_point{} : Clock::now();
  for (const epoll_event& event : ready) {
    const std::uint64_t tag = event.data.u64;
    const std::uint64_t kind = tag & ~kNumber;
    const std::uint64_t number = tag & kNumber;
    if (kind == kOfSession) {
      news |= serve(*sessions_[number]);
      continue;
    }
    slow = true;
    if (tag == Watch::kTimer) continue;
    if (kind == kOfAttempt) {
      if (sessions_[number]->attempt != nullptr) advance(*sessions_[number], now);
    } else if (number == 0) {
      listener_.accept_some(watch_, now);
    } else {
      listener_.advance(
          number, watch_, now,
          [this](std::uint32_t peer, Ruling objection, const std::string& fault) {
            return rule(peer, objection, fault);
          },
          [this](std::uint32_t peer, Socket socket, const Digest& tls_secret) {
            open(*sessions_[peer], std::move(socket), TlsEnd::kServer, tls_secret);
          });
    }
  }
  if (slow) pass_deadlines(now);
  return news;
}

void TcpNetwork::pass_deadlines(Clock::time_point now) {
  listener_.tidy(watch_, now);
  Clock::time_point first = unread_.empty() ? listener_.deadline() : Clock::time_point{};
  for (std::size_t i = connecting_.size(); i > 0; --i) {
    Session& session = *connecting_[i - 1];
    if (session.attempt != nullptr && session.attempt->deadline() <= now) advance(session, now);
    if (session.awaited_until <= now) {
      give_up(session, formatted("on {} said that it connects to {}, and has not done so within {} s",
                                 host_of(session.peer), host_of(members_.self), kPatienceForPeer.count()));
    }
  }
  for (const Session* session : connecting_) {
    if (session->attempt != nullptr) first = std::min(first, session->attempt->deadline());
    first = std::min(first, session->awaited_until);
  }
  watch_.set_timer(first);
}

void TcpNetwork::advance(Session& session, Clock::time_point now) {
  Attempt& attempt = *session.attempt;
  const auto size = static_cast<std::uint32_t>(sessions_.size());
  switch (attempt.advance(
      {watch_, members_.key, {members_.self, session.peer, size, settings_.tls}, kOfAttempt | session.peer}, now)) {
    case Attempt::Result::kUnderWay:
      return;
    case Attempt::Result::kOpen: {
      const Digest tls_secret = attempt.tls_secret();
      open(session, attempt.take(watch_), TlsEnd::kClient, tls_secret);
      return;
    }
    case Attempt::Result::kDuplicate:
      drop_attempt(session);
      session.awaited_until = now + kPatienceForPeer;
      return;
    case Attempt::Result::kFailed:
      if (attempt.refused()) session.fate = Poe::Fate::kEnded;
      give_up(session, attempt.final_fault().empty()
                           ? formatted("on {} cannot be reached from {}: tried {}{}", host_of(session.peer),
                                       host_of(members_.self), attempt.outcome(),
                                       attempt.refused() ? "; its process has ended: see what it said" : "")
                           : formatted("on {} refuses {}: it {}", host_of(session.peer), host_of(members_.self),
                                       attempt.final_fault()));
      return;
  }
}

void TcpNetwork::drop_attempt(Session& session) {
  if (session.attempt == nullptr) return;
  session.attempt->close(watch_);
  session.attempt.reset();
}

void TcpNetwork::give_up(Session& session, std::string cause) {
  drop_attempt(session);
  session.awaited_until = Clock::time_point::max();
  std::erase(connecting_, &session);
  session.connection.break_off(std::move(cause));
  retire(session);
}

void TcpNetwork::open(Session& session, Socket socket, TlsEnd end, const Digest& tls_secret) {
  drop_attempt(session);
  session.awaited_until = Clock::time_point::max();
  std::erase(connecting_, &session);
  const std::uint16_t port = decode_card(members_.cards[session.peer]).port;
  session.listener = remote_address(socket.get());
  session.listener.port = port;
  set_patience(socket, settings_.patience);
  auto tls = settings_.tls ? std::make_unique<Tls>(end, tls_secret, socket.get()) : nullptr;
  session.connection.open(std::move(socket), port, std::move(tls));
  open_.push_back(&session);
  secure(session);
  session.connection.send();
  watch_session(session);
  // Bytes may have come behind the handshake, and room have become free.
  news_ = true;
}

Ruling TcpNetwork::rule(std::uint32_t peer, Ruling objection, const std::string& fault) {
  // Of two attempts at once that of the lower endpoint stays, if the peer may regard it as the session by now. The
  // higher endpoint accepts in any case: the lower one has not accepted its attempt, or it would not have proven itself
  // here.
  if (members_.cards[peer].empty()) return Ruling::kKnown;
  if (sessions_[peer] == nullptr) {
    Session& made = make_session(peer);
    connecting_.push_back(&made);
  }
  Session& session = *sessions_[peer];
  if (session.connection.state() != Connection::State::kNew) return Ruling::kKnown;
  if (objection != Ruling::kAccepted) {
    give_up(session, formatted("on {} {}", host_of(peer), fault));
    return objection;
  }
  const bool own_stays = members_.self < peer && session.attempt != nullptr && session.attempt->proven();
  return own_stays ? Ruling::kDuplicate : Ruling::kAccepted;
}

bool TcpNetwork::has_output() const {
  const auto waits = [](const Session* session) { return session->connection.has_messages(); };
  return std::any_of(open_.begin(), open_.end(), waits) || std::any_of(connecting_.begin(), connecting_.end(), waits);
}

Poe::Liveness TcpNetwork::liveness(std::uint32_t peer) {
  if (peer == members_.self) return Poe::Liveness::kAlive;
  Session& asked = session(peer);
  if (asked.connection.gone(Clock::now(), settings_.patience)) {
    asked.connection.break_off(
        formatted("has not answered for {} ms: its host or the network to it is gone", settings_.patience.count()));
    asked.fate = Poe::Fate::kVanished;
    retire(asked);
  }
  switch (asked.connection.state()) {
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
  if (session.connection.state() == Connection::State::kDead) return session.connection.cause();
  if (session.attempt == nullptr || session.attempt->obstacle().empty()) return {};
  return "cannot be connected to now: " + session.attempt->obstacle();
}

Trial TcpNetwork::trial(std::uint32_t peer) {
  switch (session(peer).connection.state()) {
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
  if (ended.connection.state() > Connection::State::kOpen) return;
  give_up(ended, cause);
}

bool TcpNetwork::delivered(std::uint32_t peer) const {
  return peer >= sessions_.size() || sessions_[peer] == nullptr || !sessions_[peer]->connection.has_messages();
}

void TcpNetwork::leave() {
  const Clock::time_point deadline = Clock::now() + kPatienceAtEnd;
  for (const auto& session : sessions_) {
    if (session != nullptr) session->connection.leave();
  }
  // Peers that get messages by a connection that is not there yet are waited for, too, and those with which TLS is
  // being agreed on: they would take an end before that for a failure.
  const auto still_connecting = [&] {
    const auto waits = [](const Session* session) { return session->connection.has_messages(); };
    const auto secures = [](const Session* session) {
      return session->connection.state() == Connection::State::kSecuring;
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
    for (Session* session : open_) {
      session->connection.send();
      all_left = session->connection.has_left() && all_left;
    }
    if (all_left || Clock::now() >= deadline) break;
    ::poll(nullptr, 0, 1);
  }
  for (Session* session : connecting_) drop_attempt(*session);
}

}  // namespace unisono::tcp
