#include "network/loop/loop_network.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/header.hpp"
#include "core/text.hpp"

namespace unisono::loop {

namespace {

Mailbox& box_of(Job& job, std::uint32_t endpoint) {
  if (endpoint < job.size()) return job.mailbox(endpoint);
  throw Error(ErrorCode::kInvalidArgument,
              formatted("endpoint {} of a job of {} on the loop network", endpoint, job.size()));
}

/// What a card says: where the mailbox is. Nothing else than this process can make use of it.
struct Card {
  std::uint32_t process = 0;
  std::uint32_t endpoint = 0;
  std::uint64_t job = 0;
};

}  // namespace

LoopNetwork::LoopNetwork(std::shared_ptr<Job> job, std::uint32_t self)
    : job_(std::move(job)), self_(self), box_(box_of(*job_, self)) {
  if (!box_.join()) {
    throw Error(ErrorCode::kBootstrap, formatted("endpoint {} of a job on the loop network was taken before", self));
  }
}

LoopNetwork::~LoopNetwork() {
  for (auto& [peer, of] : sessions_) {
    for (const Lane lane : {Lane::kData, Lane::kControl}) drop_reserved(peer, of, lane);
  }
  if (box_.state() == Mailbox::State::kJoined) box_.set_state(Mailbox::State::kLeft);
  // Senders that wait for room, or for this endpoint, look again.
  for (const std::uint32_t sender : box_.take_senders()) job_->mailbox(sender).poke();
  for (const std::uint32_t peer : box_.known_by()) {
    if (peer != self_) job_->mailbox(peer).poke();
  }
}

std::vector<std::byte> LoopNetwork::card() const {
  const Card card{static_cast<std::uint32_t>(getpid()), self_, job_->number()};
  std::vector<std::byte> bytes(sizeof card);
  std::memcpy(bytes.data(), &card, sizeof card);
  return bytes;
}

void LoopNetwork::meet(NetworkMembers members) {
  for (std::uint32_t endpoint = 0; endpoint < members.cards.size(); ++endpoint) {
    const std::vector<std::byte>& bytes = members.cards[endpoint];
    if (bytes.empty()) continue;
    Card card;
    if (bytes.size() == sizeof card) std::memcpy(&card, bytes.data(), sizeof card);
    if (card.process != static_cast<std::uint32_t>(getpid()) || card.job != job_->number() ||
        card.endpoint != endpoint) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("endpoint {} has no mailbox in this process and job: the loop network carries messages "
                            "within a process only",
                            endpoint));
    }
  }
}

void LoopNetwork::check_peer(std::uint32_t peer) const {
  if (peer < job_->size()) return;
  throw Error(ErrorCode::kInternal, formatted("peer {} in a job of {} endpoints", peer, job_->size()));
}

LoopNetwork::Session& LoopNetwork::session(std::uint32_t peer) {
  check_peer(peer);
  const auto [found, made] = sessions_.try_emplace(peer);
  if (made) job_->mailbox(peer).know(self_);
  return found->second;
}

LoopNetwork::Session* LoopNetwork::known(std::uint32_t peer) {
  const auto found = sessions_.find(peer);
  return found == sessions_.end() ? nullptr : &found->second;
}

void LoopNetwork::drop_reserved(std::uint32_t peer, Session& of, Lane lane) {
  Message* const message = std::exchange(of.reserved[index_of(lane)], nullptr);
  if (message == nullptr) return;
  Mailbox& to = job_->mailbox(peer);
  if (to.give_room(lane, message->bytes())) {
    for (const std::uint32_t sender : to.take_senders()) job_->mailbox(sender).poke();
  }
  Message::free(message);
}

std::byte* LoopNetwork::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  if (bytes > max_payload(lane)) {
    throw Error(ErrorCode::kInternal,
                formatted("{} bytes were to be sent in one message; allowed are {}", bytes, max_payload(lane)));
  }
  Session& to = session(peer);
  drop_reserved(peer, to, lane);
  if (to.cut) return nullptr;
  const std::uint64_t most = lane == Lane::kData ? kMostData : kMostControl;
  if (!job_->mailbox(peer).take_room(self_, lane, sizeof(Message) + bytes, most)) return nullptr;
  Message* const message = Message::make(bytes);
  message->from = self_;
  message->lane = lane;
  to.reserved[index_of(lane)] = message;
  return message->payload();
}

void LoopNetwork::commit(std::uint32_t peer, Lane lane, const Header& header) {
  Session& to = session(peer);
  Message* const message = to.reserved[index_of(lane)];
  if (message == nullptr || header.segment_bytes > message->room) {
    throw Error(ErrorCode::kInternal, formatted("a message of {} bytes was committed; reserved were {}",
                                                header.segment_bytes, message == nullptr ? 0 : message->room));
  }
  message->header = header;
  message->header.magic = static_cast<std::uint16_t>(kMagic);
  message->header.version = static_cast<std::uint8_t>(kWireVersion);
  message->header.session_sequence = to.sequence[index_of(lane)];
  message->header.checksum = 0;  // memory of this process needs none
  if (!fits(message->header)) {
    throw Error(ErrorCode::kInternal, "a header to be sent has a field that its width cannot hold");
  }
  const bool says = lane == Lane::kData || job_->may_say(self_);
  if (!says || box_.state() != Mailbox::State::kJoined || !job_->mailbox(peer).may_read()) {
    drop_reserved(peer, to, lane);  // nobody hears it
    return;
  }
  ++to.sequence[index_of(lane)];
  to.reserved[index_of(lane)] = nullptr;
  job_->mailbox(peer).put(message);
}

bool LoopNetwork::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  std::byte* const place = reserve(peer, lane, static_cast<std::uint32_t>(payload.size()));
  if (place == nullptr) return false;
  if (!payload.empty()) std::memcpy(place, payload.data(), payload.size());
  commit(peer, lane, header);
  return true;
}

bool LoopNetwork::sort() {
  MessageQueue came = box_.take();
  if (came.empty()) return false;
  while (!came.empty()) {
    Message* const message = came.pop();
    Session& of = session(message->from);
    of.came[index_of(message->lane)].push(message);
    if (!std::exchange(of.talking, true)) talking_.push_back(message->from);
  }
  return true;
}

bool LoopNetwork::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  Session* const from = known(peer);
  if (from == nullptr || from->came[index_of(lane)].empty()) return false;
  Message& message = *from->came[index_of(lane)].front();
  incoming.header = message.header;
  incoming.payload = {message.payload(), message.header.segment_bytes};
  return true;
}

void LoopNetwork::release(std::uint32_t peer, Lane lane) {
  Session* const from = known(peer);
  if (from == nullptr || from->came[index_of(lane)].empty()) {
    throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  }
  Message* const message = from->came[index_of(lane)].pop();
  const std::uint64_t bytes = message->bytes();
  Message::free(message);
  if (!box_.give_room(lane, bytes)) return;
  for (const std::uint32_t sender : box_.take_senders()) job_->mailbox(sender).poke();
}

void LoopNetwork::add_talkers(std::vector<std::uint32_t>& peers) {
  sort();  // who is looked at before it is found dead has said all by now
  std::erase_if(talking_, [&](std::uint32_t peer) {
    Session& of = sessions_[peer];
    of.talking = of.talks();
    return !of.talking;
  });
  peers.insert(peers.end(), talking_.begin(), talking_.end());
}

bool LoopNetwork::poll() {
  if (box_.state() == Mailbox::State::kEnded) throw Ended();
  box_.clear_bell();
  const std::uint32_t now = box_.activity();
  sort();
  return std::exchange(polled_, now) != now;
}

int LoopNetwork::descriptor() const {
  const int bell = box_.bell();
  if (bell < 0) {
    throw Error(ErrorCode::kCapacity, "no descriptor is left for the bell of an endpoint of the loop network");
  }
  return bell;
}

Poe::Liveness LoopNetwork::liveness(std::uint32_t peer) {
  check_peer(peer);
  if (const Session* const of = known(peer); of != nullptr && of->cut) return Poe::Liveness::kDead;
  switch (job_->mailbox(peer).state()) {
    case Mailbox::State::kLeft:
      return Poe::Liveness::kLeft;
    case Mailbox::State::kEnded:
      return Poe::Liveness::kDead;
    default:
      return Poe::Liveness::kAlive;
  }
}

Poe::Fate LoopNetwork::fate(std::uint32_t peer) {
  check_peer(peer);
  if (!job_->mailbox(peer).may_read()) return Poe::Fate::kEnded;
  const Session* const of = known(peer);
  return of != nullptr && of->cut ? Poe::Fate::kVanished : Poe::Fate::kUnknown;
}

std::string LoopNetwork::condition(std::uint32_t peer) const {
  return peer < job_->size() && job_->mailbox(peer).state() == Mailbox::State::kEnded ? "was ended" : "";
}

Trial LoopNetwork::trial(std::uint32_t peer) {
  const Session& to = session(peer);
  return to.cut || !job_->mailbox(peer).may_read() ? Trial::kFailed : Trial::kProven;
}

void LoopNetwork::end(std::uint32_t peer, const std::string& /*cause*/) { session(peer).cut = true; }

bool LoopNetwork::delivered(std::uint32_t /*peer*/) const { return true; }

std::size_t LoopNetwork::memory() const {
  constexpr std::size_t kOfNode = sizeof(std::pair<const std::uint32_t, Session>) + 2 * sizeof(void*);
  return sessions_.size() * kOfNode + sessions_.bucket_count() * sizeof(void*) +
         talking_.capacity() * sizeof talking_[0];
}

}  // namespace unisono::loop
