#include "network/udp/udp_network.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "network/tcp/card.hpp"

namespace unisono::udp {

namespace {

constexpr std::size_t kControlRing = std::size_t{64} * 1024;
constexpr std::chrono::seconds kPatienceAtEnd{1};
constexpr std::size_t kMostCard = 120;
/// What one poll takes at most before it does other things.
constexpr int kMostReads = 32;

/// The longest piece of a datagram of so many bytes.
std::size_t piece_of(std::size_t datagram) { return (datagram - sizeof(DataFrame)) / kWord * kWord; }

}  // namespace

UdpNetwork::UdpNetwork(const UdpSettings& settings)
    : settings_(settings),
      pid_(static_cast<std::uint32_t>(getpid())),
      fork_generation_(fork_generation()),
      own_(tcp::own_addresses()),
      port_(settings.impairment) {
  const tcp::Address route = settings_.towards ? tcp::route_to(*settings_.towards) : tcp::Address{};
  const auto chosen = tcp::chosen_by(settings_.interfaces, own_);
  for (const tcp::OwnAddress& own : tcp::in_order(chosen, settings_.towards ? &route : nullptr)) {
    own_chosen_.push_back(own.address);
  }
  fill_random(nonce_secret_);
}

UdpNetwork::~UdpNetwork() {
  if (fork_generation() != fork_generation_ || !met_) return;
  try {
    leave();
  } catch (const Error&) {
    // Peers will not get it.
  }
}

std::vector<std::byte> UdpNetwork::card() const {
  tcp::Card card{port(), own_chosen_};
  for (tcp::Address& address : card.addresses) address.port = port();
  return tcp::encode_card(card, kMostCard);
}

void UdpNetwork::meet(NetworkMembers members) {
  check_process();
  for (std::size_t i = 0; i < members.cards.size(); ++i) {
    if (members.cards[i].empty()) continue;
    try {
      tcp::decode_card(members.cards[i]);
    } catch (const Error& error) {
      throw Error(ErrorCode::kBootstrap, formatted("the card of endpoint {} on {}, which says where it takes "
                                                   "datagrams, {}",
                                                   i, i < members.hosts.size() ? members.hosts[i] : "?", error.what()));
    }
  }
  members_ = std::move(members);
  members_.hosts.resize(members_.cards.size(), "?");
  outgoing_.resize(members_.cards.size());
  incoming_.resize(members_.cards.size());
  refusals_.belong_to(members_.self, port());
  // A user who chose interfaces expects no peer at others.
  if (!settings_.interfaces.empty()) port_.tell_destinations();
  watch_.set(port_.descriptor(), 1, EPOLLIN, watched_);
  met_ = true;
}

void UdpNetwork::check_process() const {
  if (fork_generation() == fork_generation_) return;
  throw Error(ErrorCode::kWrongProcess,
              formatted("the network of endpoint {} belongs to process {} and was used in process {}, a child of fork",
                        members_.self, pid_, getpid()));
}

void UdpNetwork::check_peer(std::uint32_t peer) const {
  if (peer < outgoing_.size() && peer != members_.self && !members_.cards[peer].empty()) return;
  throw Error(ErrorCode::kInternal, formatted("endpoint {} is not reached by udp from endpoint {} of {}", peer,
                                              members_.self, outgoing_.size()));
}

UdpNetwork::Outgoing& UdpNetwork::outgoing(std::uint32_t peer) {
  check_process();
  if (Outgoing* const there = known(peer)) [[likely]]
    return *there;
  check_peer(peer);
  outgoing_[peer] = std::make_unique<Outgoing>(
      Outgoing{peer, Sender(piece_of(Batch::kMostBytes), settings_.ring_bytes, kControlRing)});
  Outgoing& made = *outgoing_[peer];
  calling_.push_back(&made);
  std::vector<Caller::Place> places;
  for (tcp::Address& address : tcp::decode_card(members_.cards[peer]).addresses) {
    const unsigned scope = address.link_local() ? tcp::scope_for(address, own_) : 0;
    places.push_back({std::move(address), scope});
  }
  now_ = Clock::now();
  const Pair pair{members_.self, peer, static_cast<std::uint32_t>(outgoing_.size())};
  made.caller.emplace(members_.key, pair, std::move(places), now_);
  call(made);
  arm();
  return made;
}

std::size_t UdpNetwork::room() const {
  constexpr std::size_t kLeastRing = std::size_t{128} * 1024;
  return std::max(kLeastRing, std::min(settings_.ring_bytes, std::bit_floor(port_.memory() / 2)));
}

std::byte* UdpNetwork::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  Outgoing& to = outgoing(peer);
  return to.over ? nullptr : to.sender.stream(lane).reserve(bytes);
}

void UdpNetwork::commit(std::uint32_t peer, Lane lane, const Header& header) {
  Outgoing& to = outgoing(peer);
  if (to.over) return;  // it ended meanwhile: nobody will get the message
  to.sender.stream(lane).commit(header);
  if (!to.open) return;
  now_ = Clock::now();
  pump(to);
  arm();
}

bool UdpNetwork::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  std::byte* const place = reserve(peer, lane, static_cast<std::uint32_t>(payload.size()));
  if (place == nullptr) return false;
  if (!payload.empty()) std::memcpy(place, payload.data(), payload.size());
  commit(peer, lane, header);
  return true;
}

bool UdpNetwork::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  check_process();
  if (peer >= incoming_.size() || incoming_[peer] == nullptr) return false;
  Receiver& from = incoming_[peer]->receiver;
  if (from.peek(lane, incoming)) return true;
  if (from.fault(lane).empty()) [[likely]]
    return false;
  throw Error(ErrorCode::kCorruptMessage, formatted("endpoint {} on {} sent endpoint {} what is no message: {}", peer,
                                                    members_.hosts[peer], members_.self, from.fault(lane)));
}

void UdpNetwork::release(std::uint32_t peer, Lane lane) {
  check_process();
  if (peer >= incoming_.size() || incoming_[peer] == nullptr) {
    throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  }
  Incomings& from = *incoming_[peer];
  from.receiver.release(lane);
  if (from.over || from.receiver.deadline() != Clock::time_point::min()) return;
  now_ = Clock::now();
  say(from);
  arm();
}

void UdpNetwork::add_talkers(std::vector<std::uint32_t>& peers) {
  for (const Incomings* const from : called_) peers.push_back(from->peer);
}

bool UdpNetwork::poll() {
  check_process();
  if (!met_) return false;
  now_ = Clock::now();
  bool came = false;
  for (int i = 0; i < kMostReads; ++i) {
    if (!port_.receive([this](const Came& one) { take(one); })) break;
    came = true;
    now_ = Clock::now();
    for (Incomings* session : called_) {
      if (!session->over) say_if_due(*session);
    }
    // Acknowledgements make room for more, which need not wait for the rest of what has come.
    for (Outgoing* session : calling_) {
      if (session->open && !session->over) pump(*session);
    }
    if (news_) break;  // somebody waits for it, and whatever else has come can wait
  }
  if (came || owes_ || now_ >= due_ || batch_of_ != nullptr) serve();
  arm();
  return std::exchange(news_, false);
}

void UdpNetwork::serve() {
  if (batch_of_ != nullptr && !send_batch()) {
    wake_at(now_ + std::chrono::milliseconds(1));
    return;
  }
  port_.tick(now_);
  due_ = port_.deadline();
  owes_ = false;
  for (Outgoing* session : calling_) {
    if (session->over) continue;
    if (!session->open) {
      call(*session);
      continue;
    }
    session->sender.tick(now_);
    pump(*session);
  }
  for (Incomings* session : called_) {
    if (session->over) continue;
    say_if_due(*session);
    due_ = std::min(due_, session->receiver.deadline());
  }
  wake_at(port_.deadline());
}

void UdpNetwork::wake_at(Clock::time_point at) { due_ = std::min(due_, at); }

void UdpNetwork::arm() {
  // The timer is left alone while it goes off early enough: a poll too many costs less than a call each.
  if (due_ >= armed_ && armed_ > now_) return;
  armed_ = due_;
  watch_.set_timer(armed_);
}

void UdpNetwork::call(Outgoing& session) {
  session.caller->tick(now_, [this](const Caller::Place& place, std::span<const std::byte> frame) {
    port_.send(port_.reachable(place.address, place.scope), frame);
  });
  wake_at(session.caller->deadline());
}

void UdpNetwork::pump(Outgoing& session) {
  std::optional<Plan> left;
  while (batch_of_ == nullptr) {
    Plan plan;
    batch_.clear();
    batch_.to = session.to;
    while (left || session.sender.next(now_, plan)) {
      if (left) plan = *std::exchange(left, std::nullopt);
      if (!batch_.takes(plan.bytes)) {
        left = plan;
        break;
      }
      DataFrame frame;
      frame.lane = plan.lane;
      frame.bytes = static_cast<std::uint16_t>(plan.bytes);
      frame.source = members_.self;
      frame.number = plan.number;
      frame.offset = plan.offset;
      const auto piece = session.sender.piece(plan);
      frame.tag = session.data.tag_of(plan.number, bytes_of(frame), piece);
      batch_.add(frame, piece);
    }
    if (batch_.count == 0) break;
    batch_of_ = &session;
    send_batch();
  }
  wake_at(batch_of_ != nullptr ? now_ + std::chrono::milliseconds(1) : session.sender.deadline(now_));
}

bool UdpNetwork::send_batch() {
  const Port::Result result = port_.send(batch_);
  if (result == Port::Result::kTooLong && !batch_of_->over) {
    // What the kernel has learnt of the path. What was in the batch counts as lost, and goes again.
    const std::size_t longest = Port::longest_to(batch_of_->place.address, batch_of_->place.scope);
    const std::size_t piece = piece_of(longest);
    Sender& sender = batch_of_->sender;
    sender.shrink(piece < sender.most_piece() ? piece : sender.most_piece() / 2 / kWord * kWord);
  }
  const bool waits = result == Port::Result::kWaits;
  if (!waits) batch_of_ = nullptr;
  watch_.set(port_.descriptor(), 1, waits ? EPOLLIN | EPOLLOUT : EPOLLIN, watched_);
  return !waits;
}

void UdpNetwork::say_if_due(Incomings& session) {
  if (!session.receiver.ack_due(now_)) return;
  // A message that is whole goes first: its reader may answer, and the acknowledgement leaves while it waits for more.
  if (news_ && !session.receiver.ack_presses(now_)) {
    owes_ = true;
    return;
  }
  say(session);
}

void UdpNetwork::say(Incomings& session) {
  AckFrame frame = session.receiver.ack(now_);
  frame.source = members_.self;
  frame.tag = session.acks.tag_of(frame.number, bytes_of(frame), bytes_of(frame.before));
  port_.send(session.from, bytes_of(frame));
  if (port_.deadline() < due_) wake_at(port_.deadline());
}

bool UdpNetwork::has_output() const {
  // What was sent may have to be sent again, and what has come is to be acknowledged.
  return output_due() != Clock::time_point::max();
}

UdpNetwork::Clock::time_point UdpNetwork::output_due() const {
  Clock::time_point due = Clock::time_point::max();
  for (const Outgoing* const session : calling_) {
    if (session->over || session->sender.delivered()) continue;
    // What has not been sent yet waits for acknowledgements, which only a poll takes.
    if (!session->open || batch_of_ == session || !session->sender.all_sent()) return Clock::time_point::min();
    due = std::min(due, session->sender.deadline(now_));
  }
  for (const Incomings* const session : called_) {
    if (!session->over) due = std::min(due, session->receiver.deadline());
  }
  return due;
}

Poe::Liveness UdpNetwork::liveness(std::uint32_t peer) {
  if (peer == members_.self) return Poe::Liveness::kAlive;
  const Outgoing* const session = known(peer);
  return session != nullptr && !session->cause.empty() ? Poe::Liveness::kDead : Poe::Liveness::kAlive;
}

std::string UdpNetwork::condition(std::uint32_t peer) const {
  const Outgoing* const session = known(peer);
  if (session == nullptr) return {};
  return session->cause;
}

Trial UdpNetwork::trial(std::uint32_t peer) {
  const Outgoing& session = outgoing(peer);
  if (session.over) return Trial::kFailed;
  if (session.open) return Trial::kProven;
  return session.caller->answered() ? Trial::kAnswered : Trial::kUnanswered;
}

void UdpNetwork::break_off(Outgoing& session, std::string cause) {
  session.over = true;
  session.cause = std::move(cause);
  news_ = true;
}

void UdpNetwork::end(std::uint32_t peer, const std::string& /*cause*/) {
  if (Outgoing* const session = known(peer)) session->over = true;
  if (peer < incoming_.size() && incoming_[peer] != nullptr) incoming_[peer]->over = true;
}

std::string UdpNetwork::places(std::uint32_t peer) const {
  const Outgoing* const session = known(peer);
  return session == nullptr || !session->caller ? std::string() : session->caller->places();
}

bool UdpNetwork::delivered(std::uint32_t peer) const {
  const Outgoing* const session = known(peer);
  return session == nullptr || session->over || session->sender.delivered();
}

const Sender* UdpNetwork::sender(std::uint32_t peer) const {
  const Outgoing* const session = known(peer);
  return session == nullptr ? nullptr : &session->sender;
}

void UdpNetwork::leave() {
  const Clock::time_point deadline = Clock::now() + kPatienceAtEnd;
  const auto waits = [](const Outgoing* session) { return !session->over && !session->sender.delivered(); };
  while (std::any_of(calling_.begin(), calling_.end(), waits) && Clock::now() < deadline) {
    poll();
    pollfd sleep{watch_.descriptor(), POLLIN, 0};
    ::poll(&sleep, 1, 1);
  }
  // What has come but was not acknowledged yet.
  while (port_.receive([this](const Came& one) { take(one); })) continue;
  for (Incomings* session : called_) {
    if (!session->over) say(*session);
  }
}

}  // namespace unisono::udp
