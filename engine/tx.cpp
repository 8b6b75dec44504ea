#include "engine/tx.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "engine/communicators.hpp"
#include "engine/counters.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

Header Tx::header(Communicator& communicator, std::uint32_t peer, MessageType type) const {
  Header header;
  header.magic = static_cast<std::uint16_t>(kMagic);
  header.version = static_cast<std::uint8_t>(kWireVersion);
  header.type = type;
  header.communicator = communicator.number;
  header.epoch = communicator.epoch;
  header.source = communicator.rank;
  header.destination = peer;
  return header;
}

Header Tx::header(CallState& call, std::uint32_t peer, MessageType type) const {
  Header result = header(*call.communicator, peer, type);
  result.point_to_point = call.space == CallState::Space::kPointToPoint;
  result.sequence = call.sequence;
  result.tag = call.tag;
  result.signature = call.signature;
  return result;
}

void Tx::take_credits(Communicator& communicator, std::uint32_t peer, Header& header) {
  Peer& state = communicator.peers[peer];
  header.credits = static_cast<std::uint16_t>(std::min<std::uint32_t>(state.owed, 0xffff));
  state.owed -= header.credits;
}

std::byte* Tx::reserve(const Communicator& communicator, std::uint32_t peer, std::uint64_t bytes) {
  return reserve(communicator.peers.endpoint(peer), Lane::kData, bytes);
}

std::byte* Tx::reserve(std::uint32_t endpoint, Lane lane, std::uint64_t bytes) {
  if (blocks_.communicators->broken(endpoint)) return nullptr;
  try {
    return blocks_.poe->reserve(endpoint, lane, static_cast<std::uint32_t>(bytes));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptMessage) throw;
    blocks_.communicators->broke(endpoint, error.what());
    return nullptr;
  }
}

void Tx::count_segment(const Header& header) {
  blocks_.counters->count(NativeCounter::kSegmentsSent);
  blocks_.counters->count(NativeCounter::kBytesSent, header.segment_bytes);
}

bool Tx::send(Communicator& communicator, std::uint32_t peer, Header& header, std::span<const std::byte> payload) {
  return handed_over(communicator, peer, {&header, 1}, [&](std::uint32_t endpoint) {
           return blocks_.poe->send(endpoint, Lane::kData, header, payload) ? Sent::kWhole : Sent::kNo;
         }) != Sent::kNo;
}

Sent Tx::lend(Communicator& communicator, std::uint32_t peer, std::span<Header> headers, const std::byte* payload) {
  return handed_over(communicator, peer, headers,
                     [&](std::uint32_t endpoint) { return blocks_.poe->lend(endpoint, headers, payload); });
}

bool Tx::write(Communicator& communicator, std::uint32_t peer, Header& done, const Reach& reach, std::uint64_t offset,
               std::span<const std::byte> payload, Ticket& ticket) {
  const Sent sent = handed_over(communicator, peer, {&done, 1}, [&](std::uint32_t endpoint) {
    return blocks_.poe->write(endpoint, reach, offset, done, payload, ticket) ? Sent::kLent : Sent::kNo;
  });
  if (sent == Sent::kNo) return false;
  blocks_.counters->count(NativeCounter::kBytesSent, payload.size());
  return true;
}

template <class Hand>
Sent Tx::handed_over(Communicator& communicator, std::uint32_t peer, std::span<Header> headers, Hand&& hand) {
  const std::uint32_t endpoint = communicator.peers.endpoint(peer);
  if (blocks_.communicators->broken(endpoint)) return Sent::kNo;
  const std::uint32_t owed = communicator.peers[peer].owed;
  take_credits(communicator, peer, headers.front());
  try {
    const Sent sent = hand(endpoint);
    if (sent != Sent::kNo) {
      for (const Header& header : headers) count_segment(header);
      return sent;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptMessage) throw;
    blocks_.communicators->broke(endpoint, error.what());
  }
  communicator.peers[peer].owed = owed;
  return Sent::kNo;
}

void Tx::commit(Communicator& communicator, std::uint32_t peer, Header& header) {
  take_credits(communicator, peer, header);
  count_segment(header);
  blocks_.poe->commit(communicator.peers.endpoint(peer), Lane::kData, header);
}

void Tx::control(Communicator& communicator, std::uint32_t peer, Header header, std::string_view payload) {
  payload = payload.substr(0, blocks_.poe->max_payload(Lane::kControl));
  header.segment_bytes = static_cast<std::uint32_t>(payload.size());
  header.first = true;
  header.last = true;
  // An engine in hardware may drop a control message before it looks at the credits.
  if (header.type != MessageType::kControl || !communicator.hardware_peers) take_credits(communicator, peer, header);
  const std::uint32_t endpoint = communicator.peers.endpoint(peer);
  const bool first = waiting_.empty() || waiting_.count(endpoint) == 0;
  if (first && send_control(endpoint, header, payload)) return;
  waiting_[endpoint].push_back({header, {payload.begin(), payload.end()}});
}

void Tx::control(Communicator& communicator, std::uint32_t peer, Control kind, std::string_view payload) {
  Header message = header(communicator, peer, MessageType::kControl);
  message.tag = static_cast<std::uint32_t>(kind);
  control(communicator, peer, message, payload);
}

void Tx::grant(CallState& call, const Port& port, std::uint16_t generation) {
  Header message = header(call, port.peer, MessageType::kGrant);
  if (port.remote_memory) {
    message.type = MessageType::kControl;
    message.tag = static_cast<std::uint32_t>(Control::kGetMore);
  }
  message.sequence = port.sequence;
  message.offset = port.ordinal;
  message.message_bytes = port.limit;
  message.token_slot = static_cast<std::uint16_t>(port.slot);
  message.token_generation = generation;
  blocks_.counters->count(NativeCounter::kGrantsSent);
  std::array<char, sizeof(Reach)> reach;
  std::memcpy(reach.data(), &port.reach, sizeof reach);
  control(*call.communicator, port.peer, message,
          port.reach ? std::string_view(reach.data(), reach.size()) : std::string_view());
}

bool Tx::request(CallState& call, std::uint32_t peer, std::uint32_t ordinal, std::uint64_t bytes, const Move& move) {
  Header message = header(call, peer, MessageType::kRequest);
  message.dtype = move.dtype;
  // As engines in hardware have it; a switch reads there what the call is.
  if (call.space == CallState::Space::kCollective) message.tag = move.remote.tag;
  message.offset = ordinal;
  message.message_bytes = bytes;
  blocks_.counters->count(NativeCounter::kRequestsSent);
  if (!call.communicator->hardware_peers) {
    control(*call.communicator, peer, message);
    return true;
  }
  // Its place among the data says which message it is about, and the order of point-to-point messages.
  if (reserve(*call.communicator, peer, 0) == nullptr) return false;
  message.first = true;
  message.last = true;
  commit(*call.communicator, peer, message);
  return true;
}

void Tx::ask_for_window(Communicator& communicator, std::uint32_t peer, std::uint32_t operation, std::uint64_t offset,
                        std::uint64_t bytes) {
  Header message = header(communicator, peer, MessageType::kRequest);
  message.token_slot = static_cast<std::uint16_t>(kWindowSlot);
  message.sequence = operation;
  message.offset = offset;
  message.message_bytes = bytes;
  blocks_.counters->count(NativeCounter::kRequestsSent);
  control(communicator, peer, message);
}

void Tx::show_window(Communicator& communicator, std::uint32_t peer, std::uint32_t operation, const Reach& reach) {
  Header message = header(communicator, peer, MessageType::kGrant);
  message.token_slot = static_cast<std::uint16_t>(kWindowSlot);
  message.sequence = operation;
  message.message_bytes = reach.bytes;
  blocks_.counters->count(NativeCounter::kGrantsSent);
  std::array<char, sizeof(Reach)> payload;
  std::memcpy(payload.data(), &reach, sizeof reach);
  control(communicator, peer, message, reach ? std::string_view(payload.data(), payload.size()) : std::string_view());
}

void Tx::return_credits(Communicator& communicator, std::uint32_t peer) {
  const std::uint32_t worth_it = std::max<std::uint32_t>(1, communicator.agreed.rx_buffer_count / 2);
  if (communicator.peers[peer].owed < worth_it || communicator.revoked) return;
  blocks_.counters->count(NativeCounter::kCreditsSent);
  control(communicator, peer, header(communicator, peer, MessageType::kCredit));
}

bool Tx::send_control(std::uint32_t endpoint, const Header& header, std::string_view payload) {
  std::byte* space = reserve(endpoint, Lane::kControl, payload.size());
  if (space == nullptr) return blocks_.communicators->broken(endpoint);  // then it is dropped
  if (!payload.empty()) std::memcpy(space, payload.data(), payload.size());
  blocks_.poe->commit(endpoint, Lane::kControl, header);
  return true;
}

bool Tx::flush() {
  bool any = false;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto& [endpoint, queue] = *waiting;
    while (!queue.empty()) {
      const Waiting& oldest = queue.front();
      if (!send_control(endpoint, oldest.header, {oldest.payload.data(), oldest.payload.size()})) break;
      queue.pop_front();
      any = true;
    }
    waiting = queue.empty() ? waiting_.erase(waiting) : std::next(waiting);
  }
  return any;
}

}  // namespace unisono::cclo
