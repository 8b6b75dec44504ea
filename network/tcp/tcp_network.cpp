#include "network/tcp/tcp_network.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
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
/// A connection to which nothing came in so many looks is quiet, until something comes. Further ones of a session are
/// then left to the kernel to name; if it is the first one of a session among several, the kernel names them all, for
/// one question then costs less than one for each.
constexpr std::uint32_t kQuiet = 64;

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
    const std::string_view host = i < members.hosts.size() ? std::string_view(members.hosts[i]) : "?";
    if (members.cards[i].front() == kSeveralCards) {
      throw Error(ErrorCode::kBootstrap, formatted("endpoint {} on {} is reached by several networks, this endpoint by "
                                                   "tcp alone: set UNISONO_TRANSPORT alike on all ranks",
                                                   i, host));
    }
    try {
      decode_card(members.cards[i]);
    } catch (const Error& error) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("the card of endpoint {} on {}, which says where it listens, {}", i, host, error.what()));
    }
  }
  members.hosts.resize(members.cards.size(), "?");
  check_security(members);
  members_ = std::move(members);
  sessions_.resize(members_.cards.size());
  const auto size = static_cast<std::uint32_t>(members_.cards.size());
  // A user who chose interfaces expects no connections at others.
  const auto key_of_session = [this](std::uint32_t peer) {
    return sessions_[peer] == nullptr ? std::nullopt : sessions_[peer]->key;
  };
  listener_.admit(members_.key, {members_.self, 0, size, settings_.tls, settings_.connections}, key_of_session,
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

std::byte* TcpNetwork::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  return session(peer).bundle.reserve(lane, bytes);
}

void TcpNetwork::commit(std::uint32_t peer, Lane lane, const Header& header) {
  Session& to = session(peer);
  to.bundle.commit(lane, header, holds_);
  prepare(to, lane, header);
  sent(to);
}

void TcpNetwork::sent(Session& to) {
  for (std::size_t number = 0; number < to.bundle.size(); ++number) {
    Strand& by = to.bundle.at(number);
    if (!by.connection.has_output()) continue;
    if (holds_ && number == 0 && by.connection.state() == Connection::State::kOpen) {
      held_.push_back(&by);
    } else {
      watch_strand(by);
    }
  }
}

bool TcpNetwork::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  Session& to = session(peer);
  prepare(to, lane, header);
  if (!to.bundle.send(lane, header, payload, holds_)) return false;
  sent(to);
  return true;
}

Sent TcpNetwork::lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) {
  Session& to = session(peer);
  if (!headers.empty()) prepare(to, Lane::kData, headers.front());
  const Sent result = to.bundle.lend(headers, payload);
  if (result == Sent::kNo) return result;
  for (std::size_t number = 0; number < to.bundle.size(); ++number) {
    Strand& by = to.bundle.at(number);
    if (by.connection.has_output()) watch_strand(by);
  }
  return result;
}

bool TcpNetwork::lends(std::uint32_t peer) const {
  return peer < sessions_.size() && sessions_[peer] != nullptr && sessions_[peer]->bundle.lends();
}

std::optional<std::uint32_t> TcpNetwork::settle() {
  for (const auto& session : sessions_) {
    if (session != nullptr) session->bundle.settle();
  }
  return std::nullopt;
}

bool TcpNetwork::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  check_process();
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) return false;
  Session& from = *sessions_[peer];
  if (from.bundle.peek(lane, incoming)) return true;
  if (from.bundle.fault().empty()) [[likely]]
    return false;
  retire_all(from);
  throw Error(ErrorCode::kCorruptMessage, formatted("endpoint {} on {} sent endpoint {} what is no message: {}", peer,
                                                    host_of(peer), members_.self, from.bundle.fault()));
}

void TcpNetwork::release(std::uint32_t peer, Lane lane) {
  check_process();
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) {
    throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  }
  Strand& from = sessions_[peer]->bundle.release(lane);
  // What came while there was no room for it is asked for again.
  if (from.connection.state() == Connection::State::kOpen && (from.watched & EPOLLIN) == 0) watch_strand(from);
}

void TcpNetwork::add_talkers(std::vector<std::uint32_t>& peers) {
  std::erase_if(talking_, [](Session* session) {
    if (!session->bundle.talks()) session->talking = false;
    return !session->talking;
  });
  for (const Session* session : talking_) peers.push_back(session->peer());
}

void TcpNetwork::land_in(Landings* landings) {
  landings_ = landings;
  for (const auto& session : sessions_) {
    if (session != nullptr) session->bundle.land_in(landings, session->peer());
  }
}

void TcpNetwork::watch_strand(Strand& strand) {
  Connection& connection = strand.connection;
  const bool open = connection.state() == Connection::State::kOpen;
  if (!open && connection.state() != Connection::State::kSecuring) [[unlikely]]
    return;
  // Messages are no output as long as the ends agree on TLS.
  const bool output = open ? connection.has_output() : connection.has_sealed();
  const std::uint32_t events = (connection.has_room() ? EPOLLIN : 0U) | (output ? EPOLLOUT : 0U);
  if (events == strand.watched) [[likely]]
    return;
  if ((events & EPOLLIN & ~strand.watched) != 0) tell_unread(strand);
  watch_.set(connection.descriptor(), tag_of(kOfSession, strand), events, strand.watched);
}

bool TcpNetwork::serve(Strand& strand) {
  Connection& connection = strand.connection;
  Session& session = *sessions_[strand.peer];
  if (connection.state() != Connection::State::kOpen && !secure(strand)) [[unlikely]]
    return false;
  if (connection.has_output()) connection.send();
  bool news = connection.receive();
  count_quiet(strand, news);
  if (news && !std::exchange(session.talking, true)) talking_.push_back(&session);
  news |= connection.room_became_free();
  if (connection.state() == Connection::State::kOpen) [[likely]] {
    watch_strand(strand);
    if (session.bundle.size() == 1 || !session.bundle.is_ending()) [[likely]]
      return news;
  }
  conclude(session);
  return true;
}

void TcpNetwork::count_quiet(Strand& strand, bool came) {
  if (came) {
    if (strand.quiet >= kQuiet) --quiet_of(strand);
    strand.quiet = 0;
  } else if (strand.quiet < kQuiet && ++strand.quiet == kQuiet) {
    ++quiet_of(strand);
  }
}

void TcpNetwork::conclude(Session& session) {
  Bundle& bundle = session.bundle;
  if (bundle.is_ending() && bundle.end_together() && !std::exchange(session.talking, true)) {
    talking_.push_back(&session);
  }
  const bool over = bundle.state() > Connection::State::kOpen;
  for (std::size_t number = 0; number < bundle.size(); ++number) {
    Strand& one = bundle.at(number);
    if (one.connection.state() > Connection::State::kOpen) {
      retire(one);
    } else if (over) {
      do_without(one, {});  // it was never made
    } else {
      watch_strand(one);
    }
  }
  news_ = true;
}

void TcpNetwork::retire(Strand& strand) {
  if (std::exchange(strand.over, true)) return;
  drop_attempt(strand);
  std::erase(connecting_, &strand);
  if (std::erase(open_, &strand) != 0 && strand.quiet >= kQuiet) --quiet_of(strand);
  if (strand.connection.descriptor() >= 0) watch_.set(strand.connection.descriptor(), 0, 0, strand.watched);
  news_ = true;
}

void TcpNetwork::retire_all(Session& session) {
  for (std::size_t number = 0; number < session.bundle.size(); ++number) {
    Strand& one = session.bundle.at(number);
    if (one.connection.state() > Connection::State::kOpen) retire(one);
  }
}

bool TcpNetwork::poll() {
  check_process();
  if (!met_) return false;
  bool news = false;
  if (!held_.empty()) {
    for (Strand* const strand : held_) {
      strand->connection.send();
      if (strand->connection.has_output()) watch_strand(*strand);
    }
    held_.clear();
  }
  if (!unread_.empty()) [[unlikely]]
    news = poll_unread();
  const std::size_t asked = open_.size() - quiet_further_;
  const bool few = asked <= 1 || (asked <= kFew && quiet_first_ == 0);
  if (connecting_.empty() && few && !listener_.has_newcomers() && ++polls_ % kBetweenLooks != 0) {
    news |= poll_strands();
  } else {
    news |= poll_watch();
  }
  return std::exchange(news_, false) || news;
}

bool TcpNetwork::poll_strands() {
  bool news = false;
  // From the last one: one that ends takes itself out, and perhaps others of its session.
  for (std::size_t i = open_.size(); i > 0; i = std::min(i - 1, open_.size())) {
    Strand& one = *open_[i - 1];
    if (one.quiet < kQuiet || one.number == 0 || one.connection.has_output()) news |= serve(one);
  }
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
    const auto strand = [&]() -> Strand& {
      return sessions_[static_cast<std::uint32_t>(number)]->bundle.at(number >> kConnectionShift);
    };
    if (kind == kOfSession) {
      news |= serve(strand());
      continue;
    }
    slow = true;
    if (tag == Watch::kTimer) continue;
    if (kind == kOfAttempt) {
      if (strand().attempt != nullptr) advance(strand(), now);
    } else if (number == 0) {
      listener_.accept_some(watch_, now);
    } else {
      listener_.advance(
          number, watch_, now, [this](const Acceptor& proven) { return rule(proven); },
          [this](std::uint32_t peer, Socket socket, const Agreed& agreed) {
            open(sessions_[peer]->bundle.at(agreed.number), std::move(socket), TlsEnd::kServer, agreed);
          });
    }
  }
  if (slow) pass_deadlines(now);
  return news;
}

bool TcpNetwork::has_output() const {
  const auto waits = [](const Strand* strand) { return strand->connection.has_messages(); };
  return std::any_of(open_.begin(), open_.end(), waits) || std::any_of(connecting_.begin(), connecting_.end(), waits);
}

bool TcpNetwork::delivered(std::uint32_t peer) const {
  return peer >= sessions_.size() || sessions_[peer] == nullptr || !sessions_[peer]->bundle.has_messages();
}

}  // namespace unisono::tcp
