#include "sim/native/frame_poe.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/header.hpp"
#include "core/text.hpp"

namespace unisono::sim {
namespace {

constexpr std::size_t words_of(std::size_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes; }

}  // namespace

FramePoe::FramePoe(Carrier& network, std::uint32_t node, std::uint32_t nodes, std::uint64_t clock_khz,
                   std::uint64_t delay)
    : network_(network),
      node_(node),
      nodes_(nodes),
      clock_khz_(clock_khz),
      delay_(delay),
      sessions_(std::size_t{2} * nodes) {}

std::uint32_t FramePoe::max_payload(Lane lane) const {
  const std::uint32_t most = lane == Lane::kData ? kMostData : kMostControl;
  return std::min(most, network_.mtu() - static_cast<std::uint32_t>(kHeaderBytes)) / 64 * 64;
}

std::byte* FramePoe::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  Session& to = session(peer, lane);
  // What is sent to oneself waits where it arrives.
  if ((peer == node_ ? to.arrived.size() : to.waiting) >= kMostWaiting) {
    to.refused = true;
    return nullptr;
  }
  // One word more, so that there is an address also where there is no payload.
  to.reserved.resize(words_of(kHeaderBytes + bytes) + 1);
  return to.reserved[1].bytes.data();
}

void FramePoe::commit(std::uint32_t peer, Lane lane, const Header& header) {
  Session& to = session(peer, lane);
  Header sealed = header;
  sealed.magic = kMagic;
  sealed.version = kWireVersion;
  sealed.session_sequence = to.sequence++;
  seal(sealed);
  Frame frame;
  frame.words = std::exchange(to.reserved, {});
  frame.destination = peer;
  frame.bytes = static_cast<std::uint32_t>(kHeaderBytes) + header.segment_bytes;
  frame.words.resize(words_of(frame.bytes));
  frame.leaves = network_.cycle() + delay_;
  if (peer == node_) {
    frame.words.erase(frame.words.begin());
    to.arrived.push_back({sealed, std::move(frame.words)});
    ++activity_;
    return;
  }
  const HeaderWords encoded = encode(sealed);
  static_assert(sizeof encoded == kWordBytes);
  std::memcpy(frame.words[0].bytes.data(), encoded.data(), sizeof encoded);
  ++to.waiting;
  leaving_[lane == Lane::kControl ? 1 : 0].push_back(std::move(frame));
}

bool FramePoe::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  const Session& from = session(peer, lane);
  if (from.arrived.empty()) return false;
  const Message& oldest = from.arrived.front();
  incoming.header = oldest.header;
  const auto* data = oldest.payload.empty() ? nullptr : oldest.payload.front().bytes.data();
  incoming.payload = {data, oldest.header.segment_bytes};
  return true;
}

void FramePoe::release(std::uint32_t peer, Lane lane) {
  Session& from = session(peer, lane);
  from.arrived.pop_front();
  if (peer == node_ && from.refused) {
    from.refused = false;
    ++activity_;
  }
}

void FramePoe::wait(std::uint32_t /*seen*/, std::chrono::microseconds /*at_most*/) {
  throw Error(ErrorCode::kInternal, formatted("node {}: its engine waits inside a cycle", node_));
}

std::chrono::steady_clock::time_point FramePoe::now() const {
  // Cycles to nanoseconds in two steps: the product of all three would overflow after an hour.
  const std::uint64_t cycle = network_.cycle();
  const std::uint64_t nanoseconds = cycle / clock_khz_ * 1'000'000 + cycle % clock_khz_ * 1'000'000 / clock_khz_;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

std::string FramePoe::describe(std::uint32_t peer) const { return formatted("node {}", peer); }

void FramePoe::exchange_words() {
  take_word();
  send_word();
}

void FramePoe::send_word() {
  if (!network_.can_push(node_)) return;
  if (sending_.words.empty()) {
    // Control goes before data, between frames.
    for (const std::uint16_t port : {std::uint16_t{1}, std::uint16_t{0}}) {
      auto& queue = leaving_[port];
      if (queue.empty() || queue.front().leaves > network_.cycle()) continue;
      sending_ = std::move(queue.front());
      queue.pop_front();
      sending_port_ = port;
      sent_words_ = 0;
      break;
    }
    if (sending_.words.empty()) return;
  }
  SentWord word;
  word.data = sending_.words[sent_words_].bytes.data();
  word.last = sent_words_ + 1 == sending_.words.size();
  word.bytes = word.last ? sending_.bytes - sent_words_ * kWordBytes : kWordBytes;
  word.destination = sending_.destination;
  word.frame_bytes = sending_.bytes;
  word.port = sending_port_;
  if (const Pushed result = network_.push(node_, word); result != Pushed::kTaken) {
    throw Error(ErrorCode::kInternal, formatted("node {}: the network refused a word to node {}: {}", node_,
                                                word.destination, name_of(result)));
  }
  ++sent_words_;
  if (!word.last) return;
  ++counters_.sent;
  Session& to = session(sending_.destination, sending_port_ != 0 ? Lane::kControl : Lane::kData);
  --to.waiting;
  if (to.refused) {
    to.refused = false;
    ++activity_;
  }
  sending_ = {};
}

void FramePoe::take_word() {
  const ReceivedWord* word = network_.front(node_);
  if (word == nullptr) return;
  if (word->first) {
    receiving_ = {};
    receiving_.destination = word->source;
    receiving_.bytes = word->frame_bytes;
    receiving_.words.reserve(words_of(word->frame_bytes));
    receiving_port_ = word->port;
  }
  std::memcpy(receiving_.words.emplace_back().bytes.data(), word->data, word->bytes);
  bad_ = word->damaged;
  const bool last = word->last;
  network_.pop(node_);
  if (last) arrive();
}

void FramePoe::arrive() {
  const std::uint32_t source = receiving_.destination;
  std::vector<Word> words = std::exchange(receiving_.words, {});
  const bool whole =
      !bad_ && source < nodes_ && receiving_.bytes >= kHeaderBytes && words.size() == words_of(receiving_.bytes);
  HeaderWords encoded{};
  if (whole) std::memcpy(encoded.data(), words[0].bytes.data(), sizeof encoded);
  if (!whole || check_header(encoded) != HeaderFault::kNone) {
    ++counters_.dropped;
    return;
  }
  const Header header = decode_header(encoded);
  if (header.trailer || header.segment_bytes != receiving_.bytes - kHeaderBytes) {
    ++counters_.dropped;
    return;
  }
  ++counters_.received;
  words.erase(words.begin());
  session(source, receiving_port_ != 0 ? Lane::kControl : Lane::kData).arrived.push_back({header, std::move(words)});
  ++activity_;
}

}  // namespace unisono::sim
