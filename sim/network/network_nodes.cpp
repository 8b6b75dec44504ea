// What nodes do with their network: words that they push and pop.
#include <cassert>
#include <cstring>
#include <optional>

#include "sim/network/channel.hpp"

namespace unisono::sim {

bool Network::can_push(std::uint32_t node) const {
  const Node& at = nodes_[node];
  if (at.may_push > now_ || at.up->clock.cycle() > now_ + kAhead) return false;
  return at.pushing != nullptr || !at.up->credited || at.up->room[0] >= std::int64_t{config_.mtu};
}

Pushed Network::push(std::uint32_t node, const SentWord& word) {
  Node& at = nodes_[node];
  if (!can_push(node)) return Pushed::kBusy;
  Frame* frame = at.pushing;
  if (frame == nullptr) {
    if (word.frame_bytes > config_.mtu) return Pushed::kTooLong;
    if (word.destination >= topology_.addresses() || word.destination == node) return Pushed::kNoDestination;
    const bool ends = word.frame_bytes <= kWordBytes;
    if (word.frame_bytes == 0 || word.last != ends || word.bytes != (ends ? word.frame_bytes : kWordBytes))
      return Pushed::kWrongLength;
    frame = make_frame(node, word.destination, word.port, word.frame_bytes);
    at.pushing = frame;
    at.word = 0;
  } else if (word.bytes != frame->word_bytes(at.word) || word.last != (at.word + 1 == frame->words)) {
    return Pushed::kWrongLength;
  }
  std::memcpy(frame->data.get() + std::size_t{at.word} * kWordBytes, word.data, word.bytes);
  push_next(node);
  return Pushed::kTaken;
}

void Network::push_next(std::uint32_t node) {
  Node& at = nodes_[node];
  Frame& frame = *at.pushing;
  if (at.word == 0) begin(*at.up, frame, 0);
  transmit(*at.up, frame, at.word);
  at.may_push = now_ + 1;
  if (++at.word == frame.words) {
    at.pushing = nullptr;
    ++at.pushed;
  }
  quiet_until_ = 0;
}

Frame* Network::make_frame(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t bytes) {
  Frame* frame = pool_.take();
  frame->source = source;
  frame->destination = destination;
  frame->bytes = bytes;
  frame->words = (bytes + kWordBytes - 1) / kWordBytes;
  frame->port = port;
  if (config_.sessions) frame->number = sessions_.send(source, destination, port);
  return frame;
}

std::optional<Drop> Network::refusal_of(Entry& entry) {
  if (entry.sent != 0) return std::nullopt;
  const Frame& frame = *entry.frame;
  if (frame.damaged) {  // since it began to arrive
    if (entry.judged) sessions_.damaged(frame.source, frame.destination, frame.port, frame.number, now_);
    return Drop::kCheck;
  }
  if (!config_.sessions || entry.judged) return std::nullopt;
  entry.judged = true;
  const auto verdict = sessions_.receive(frame.source, frame.destination, frame.port, frame.number, now_);
  return verdict == Sessions::Verdict::kPass ? std::nullopt : std::optional(Drop::kSession);
}

const ReceivedWord* Network::front(std::uint32_t node) {
  Node& at = nodes_[node];
  if (at.may_pop > now_) return nullptr;
  Entry* head = at.received->head;
  while (head != nullptr) {
    const std::optional<Drop> refusal = refusal_of(*head);
    if (!refusal) break;
    at.received->take();
    at.received_bytes -= head->frame->bytes;
    ++at.down->dropped(*refusal);
    if (head->arrived == head->frame->words)
      discard(*at.down, head->frame, head->lane);
    else
      at.down->entry = nullptr;  // `arrive` discards it with its last word
    free_entry(head);
    quiet_until_ = 0;
    head = at.received->head;
  }
  if (head == nullptr || head->sent == head->arrived) return nullptr;
  Frame& frame = *head->frame;
  if (config_.receive == Receive::kWhole && head->arrived < frame.words) return nullptr;
  ReceivedWord& shown = at.shown;
  shown.data = frame.data.get() + std::size_t{head->sent} * kWordBytes;
  shown.bytes = frame.word_bytes(head->sent);
  shown.first = head->sent == 0;
  shown.last = head->sent + 1 == frame.words;
  shown.damaged = shown.last && frame.damaged;
  shown.source = frame.source;
  shown.frame_bytes = frame.bytes;
  shown.port = frame.port;
  if (frame.flip != Frame::kNoFlip && frame.flip / 8 / kWordBytes == head->sent) {
    std::memcpy(at.flipped.data(), shown.data, shown.bytes);
    at.flipped[frame.flip / 8 % kWordBytes] ^= static_cast<std::byte>(1U << (frame.flip % 8));
    shown.data = at.flipped.data();
  }
  return &shown;
}

void Network::pop(std::uint32_t node) {
  Node& at = nodes_[node];
  Entry* head = at.received->head;
  assert(at.may_pop <= now_ && head != nullptr && head->sent < head->arrived);
  at.may_pop = now_ + 1;
  if (++head->sent < head->frame->words) return;
  at.received->take();
  const Frame& frame = *head->frame;
  at.received_bytes -= frame.bytes;
  ++(frame.damaged ? at.down->dropped(Drop::kCheck) : at.delivered);
  if (config_.sessions && frame.damaged) {
    sessions_.damaged(frame.source, frame.destination, frame.port, frame.number, now_);
  }
  discard(*at.down, head->frame, head->lane);
  free_entry(head);
  quiet_until_ = 0;
}

}  // namespace unisono::sim
