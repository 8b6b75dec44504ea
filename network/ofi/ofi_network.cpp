#include "network/ofi/ofi_network.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace unisono::ofi {

namespace {

/// A session that has something to send, for which the provider had no room, looks again after so long at the latest.
constexpr std::chrono::microseconds kPause{500};
constexpr std::size_t kSmallFrame = kFrameHead + kSmallPayload;
static_assert(kMaxControlPayload <= kSmallPayload && sizeof(Proof) <= kSmallFrame);

}  // namespace

OfiNetwork::OfiNetwork(std::unique_ptr<Endpoint> endpoint, std::chrono::milliseconds patience_at_end,
                       std::chrono::milliseconds patience_to_settle, std::chrono::milliseconds patience_for_ways,
                       std::uint64_t register_from)
    : patience_at_end_(patience_at_end),
      patience_to_settle_(patience_to_settle),
      patience_for_ways_(patience_for_ways),
      pid_(static_cast<std::uint32_t>(getpid())),
      fork_generation_(fork_generation()),
      small_out_(kSmallFrame, 64,
                 [this](std::byte* at, std::size_t bytes) { return endpoint_->add_memory(at, bytes); }),
      large_out_(kLongestFrame, 16,
                 [this](std::byte* at, std::size_t bytes) { return endpoint_->add_memory(at, bytes); }),
      receives_(kLongestFrame, 32,
                [this](std::byte* at, std::size_t bytes) { return endpoint_->add_memory(at, bytes); }),
      small_in_(kSmallFrame, 64),
      large_in_(kLongestFrame, 4),
      endpoint_(std::move(endpoint)),
      card_(endpoint_->card()),
      alarm_(endpoint_->descriptor()),
      registrations_(*endpoint_, register_from) {
  encode_card(card_);
  longest_piece_ = std::min(kLongestPiece, endpoint_->longest_write());
  post_receives();
}

OfiNetwork::~OfiNetwork() {
  if (fork_generation() != fork_generation_) {
    endpoint_->abandon();
    for (BlockPool* const pool : {&small_out_, &large_out_, &receives_}) pool->abandon();
    return;
  }
  if (met_) {
    try {
      leave();
    } catch (const Error&) {
      // Peers will find that it does not answer.
    }
  }
  shown_.clear();
  registrations_.clear();
}

void OfiNetwork::meet(NetworkMembers members) {
  check_process();
  for (std::size_t i = 0; i < members.cards.size(); ++i) {
    if (members.cards[i].empty()) continue;
    const auto whose = [&] {
      return formatted("the card of endpoint {} on {}, which says how libfabric reaches it, ", i,
                       i < members.hosts.size() ? members.hosts[i] : "?");
    };
    Card card;
    try {
      card = decode_card(members.cards[i]);
    } catch (const Error& error) {
      throw Error(ErrorCode::kBootstrap, whose() + error.what());
    }
    if (card.provider != card_.provider || card.protocol != card_.protocol ||
        card.protocol_version != card_.protocol_version) {
      throw Error(
          ErrorCode::kBootstrap,
          whose() + formatted("is of provider {} (protocol {}.{}), and endpoint {} has {} (protocol {}.{}): name "
                              "one that all hosts have, by UNISONO_OFI_PROVIDER",
                              card.provider, card.protocol, card.protocol_version, members.self, card_.provider,
                              card_.protocol, card_.protocol_version));
    }
  }
  members_ = std::move(members);
  members_.hosts.resize(members_.cards.size(), "?");
  sessions_.resize(members_.cards.size());
  busy_.reserve(members_.cards.size());
  met_ = true;
}

void OfiNetwork::check_process() const {
  if (fork_generation() == fork_generation_) return;
  throw Error(ErrorCode::kWrongProcess,
              formatted("the network of endpoint {} belongs to process {} and was used in process {}, a child of fork",
                        members_.self, pid_, getpid()));
}

void OfiNetwork::check_peer(std::uint32_t peer) const {
  if (peer < sessions_.size() && peer != members_.self && !members_.cards[peer].empty()) return;
  throw Error(ErrorCode::kInternal, formatted("endpoint {} is not reached by ofi from endpoint {} of {}", peer,
                                              members_.self, sessions_.size()));
}

Session& OfiNetwork::make_session(std::uint32_t peer) {
  check_peer(peer);
  Nonce nonce;
  fill_random(nonce);
  const auto size = static_cast<std::uint32_t>(sessions_.size());
  const Card card = decode_card(members_.cards[peer]);
  const std::uint64_t address = endpoint_->insert(card.address);
  sessions_[peer] = std::make_unique<Session>(members_.key, Ends{members_.self, peer, size}, nonce, address);
  sessions_[peer]->writes_both = (card.abilities & card_.abilities & Card::kWrites) != 0;
  in_use_.push_back(peer);
  return *sessions_[peer];
}

Session& OfiNetwork::session(std::uint32_t peer) {
  check_process();
  if (peer < sessions_.size() && sessions_[peer] != nullptr) [[likely]]
    return *sessions_[peer];
  Session& made = make_session(peer);
  make_busy(made);
  return made;
}

std::byte* OfiNetwork::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  const std::size_t index = index_of(lane);
  if (bytes > most_payload(index)) {
    throw Error(ErrorCode::kInternal,
                formatted("a message of {} bytes was to be sent; a lane takes {}", bytes, most_payload(index)));
  }
  Session& to = session(peer);
  if (to.state != Session::State::kOpen) return nullptr;
  if (!to.out[index].has_room(bytes)) {
    to.wanted[index] = to.wanted[index] == 0 ? bytes + 1 : std::min(to.wanted[index], bytes + 1);
    return nullptr;
  }
  Block*& block = to.reserved[index];
  const bool large = bytes > kSmallPayload;
  if (block != nullptr && block->large != large) give_back(std::exchange(block, nullptr));
  if (block == nullptr) {
    block = large ? large_out_.take() : small_out_.take();
    block->use = Block::Use::kMessage;
    block->large = large;
  }
  block->bytes = bytes;
  return block->frame() + kFrameHead;
}

void OfiNetwork::commit(std::uint32_t peer, Lane lane, const Header& header) {
  Session& to = session(peer);
  const std::size_t index = index_of(lane);
  Block* const block = to.reserved[index];
  if (block == nullptr || header.segment_bytes > block->bytes) {
    throw Error(ErrorCode::kInternal, formatted("a message of {} bytes was committed; reserved were {} bytes",
                                                header.segment_bytes, block != nullptr ? block->bytes : 0U));
  }
  if (to.state != Session::State::kOpen) {
    // It ended meanwhile: nobody will get the message.
    give_back(std::exchange(to.reserved[index], nullptr));
    return;
  }
  const HeaderWords words = seal(header, index, to.out[index].committed());
  to.reserved[index] = nullptr;
  std::memcpy(block->frame() + sizeof(Prefix), words.data(), sizeof words);
  block->bytes = static_cast<std::uint32_t>(kFrameHead + header.segment_bytes);
  to.out[index].commit(block, header.segment_bytes > kSmallPayload);
  if (!to.may_send() || !push_messages(to, index)) make_busy(to);
}

bool OfiNetwork::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  std::byte* const place = reserve(peer, lane, static_cast<std::uint32_t>(payload.size()));
  if (place == nullptr) return false;
  if (!payload.empty()) std::memcpy(place, payload.data(), payload.size());
  commit(peer, lane, header);
  return true;
}

bool OfiNetwork::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  check_process();
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) return false;
  const Session& from = *sessions_[peer];
  if (const Block* const block = from.in[index_of(lane)].first(); block != nullptr) {
    HeaderWords words;
    std::memcpy(words.data(), block->frame() + sizeof(Prefix), sizeof words);
    incoming.header = decode_header(words);
    incoming.header.session_sequence &= kSequenceMask;
    incoming.payload = {block->frame() + kFrameHead, block->bytes - kFrameHead};
    return true;
  }
  if (from.fault.empty()) [[likely]]
    return false;
  throw Error(ErrorCode::kCorruptMessage, formatted("endpoint {} on {} sent endpoint {} what is no message: {}", peer,
                                                    host_of(peer), members_.self, from.fault));
}

void OfiNetwork::release(std::uint32_t peer, Lane lane) {
  check_process();
  const std::size_t index = index_of(lane);
  if (peer >= sessions_.size() || sessions_[peer] == nullptr || sessions_[peer]->in[index].first() == nullptr) {
    throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  }
  Session& from = *sessions_[peer];
  give_back(from.in[index].release());
  // A message that goes there anyway says so as well; one that waits is not to wait for it.
  if (from.in[index].owes() && from.may_send()) make_busy(from);
}

void OfiNetwork::add_talkers(std::vector<std::uint32_t>& peers) {
  for (const std::uint32_t peer : in_use_) peers.push_back(peer);
}

bool OfiNetwork::poll() {
  check_process();
  if (!met_) return false;
  const bool came = take_completions();
  if (!busy_.empty()) push_all(Clock::now());
  const bool news = std::exchange(news_, false);
  if (came || news) alarm_.rouse();
  // A network that nobody uses yet is not polled until it is quiet.
  if (!came || !in_use()) rest();
  return news;
}

void OfiNetwork::rest() {
  if (!alarm_.quiet(!in_use())) return;
  const bool may_sleep = endpoint_->may_sleep();
  auto until = Clock::time_point::max();
  const Clock::time_point soon = Clock::now() + kPause;
  for (const Session* const waiting : busy_) {
    until = std::min(until, waiting->handshake.confirmed() ? soon : std::max(waiting->hello_at, soon));
  }
  if (receives_posted_ + receives_held_ < endpoint_->most_receives()) until = std::min(until, soon);
  alarm_.settle(may_sleep, until);
}

bool OfiNetwork::has_output() const {
  if (messages_posted_ != 0) return true;
  return std::any_of(busy_.begin(), busy_.end(),
                     [](const Session* session) { return session->has_messages() || !session->writes.empty(); });
}

Poe::Liveness OfiNetwork::liveness(std::uint32_t peer) {
  if (peer == members_.self) return Poe::Liveness::kAlive;
  switch (session(peer).state) {
    case Session::State::kLeft:
      return Poe::Liveness::kLeft;
    case Session::State::kDead:
      return Poe::Liveness::kDead;
    default:
      return Poe::Liveness::kAlive;
  }
}

std::string OfiNetwork::condition(std::uint32_t peer) const {
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) return {};
  const Session& session = *sessions_[peer];
  if (session.state == Session::State::kDead) return session.cause;
  return session.obstacle.empty() ? std::string() : "cannot be connected to now: " + session.obstacle;
}

Trial OfiNetwork::trial(std::uint32_t peer) {
  const Session& asked = session(peer);
  if (asked.state != Session::State::kOpen) return Trial::kFailed;
  if (asked.may_send()) return Trial::kProven;
  return asked.handshake.proven() ? Trial::kAnswered : Trial::kUnanswered;
}

void OfiNetwork::end(std::uint32_t peer, const std::string& cause) {
  check_process();
  if (peer < sessions_.size() && sessions_[peer] != nullptr) die(*sessions_[peer], cause);
}

bool OfiNetwork::delivered(std::uint32_t peer) const {
  if (peer >= sessions_.size() || sessions_[peer] == nullptr) return true;
  const Session& to = *sessions_[peer];
  return to.state != Session::State::kOpen || (!to.has_messages() && to.writes.empty() && to.posted == 0);
}

std::string OfiNetwork::places(std::uint32_t peer) const {
  return formatted("the endpoint of {} on {}", card_.provider, host_of(peer));
}

void OfiNetwork::leave() {
  const Clock::time_point deadline = Clock::now() + patience_at_end_;
  for (const auto& session : sessions_) {
    if (session == nullptr || session->state != Session::State::kOpen) continue;
    // Who never got anything, and is to get nothing, need not hear of an end.
    if (!session->handshake.proven() && !session->has_messages()) continue;
    session->owes_bye = true;
    make_busy(*session);
  }
  const auto done = [](const std::unique_ptr<Session>& session) {
    if (session == nullptr || session->state == Session::State::kDead) return true;
    if (session->owes_bye_seen || session->posted != 0) return false;
    return session->state == Session::State::kLeft ||
           (!session->owes_bye && (!session->bye_posted || session->bye_seen));
  };
  while (!std::all_of(sessions_.begin(), sessions_.end(), done) && Clock::now() < deadline) {
    if (!take_completions()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    push_all(Clock::now());
  }
}

}  // namespace unisono::ofi
