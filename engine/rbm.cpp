#include "engine/rbm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/footprint.hpp"
#include "core/signature.hpp"
#include "engine/call_queue.hpp"
#include "engine/counters.hpp"
#include "engine/dmp.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// Whether sequence number a comes before b.
bool before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

/// Segments that a landing ring holds: one to receive while others are used.
constexpr std::uint64_t kLandingSegments = 4;
/// The same where a message takes longer, and several segments go at once, or a write of several.
constexpr std::uint64_t kLandingSegmentsOfSockets = 16;

/// Bytes of a buffer for so many: a power of two, at least a cache line, so that messages of about one length share
/// buffers and a short one takes little.
constexpr std::uint64_t buffer_for(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 64;
  return std::bit_ceil(std::max(bytes, kLeast));
}

template <class T>
void erase(std::vector<T*>& list, T* item) {
  list.erase(std::remove(list.begin(), list.end(), item), list.end());
}

}  // namespace

// ---------------------------------------------------------------------------------------------- memory

std::byte* Rbm::allocate(std::uint64_t bytes) {
  for (Pool& pool : pools_) {
    if (pool.bytes != bytes || pool.free.empty()) continue;
    std::byte* buffer = pool.free.back();
    pool.free.pop_back();
    return buffer;
  }
  Memory& made = memory_.emplace_back();
  made.bytes = std::make_unique<std::byte[]>(std::max<std::uint64_t>(bytes, 1));
  if (bytes >= kWorthWriting) made.lasts.emplace(made.bytes.get(), bytes);
  return made.bytes.get();
}

void Rbm::recycle(std::byte* buffer, std::uint64_t bytes) {
  for (Pool& pool : pools_) {
    if (pool.bytes == bytes) {
      pool.free.push_back(buffer);
      return;
    }
  }
  pools_.push_back({bytes, {buffer}});
}

Message* Rbm::new_message(const Header& header) {
  if (free_messages_.empty()) {
    messages_.push_back(std::make_unique<Message>());
    free_messages_.push_back(messages_.back().get());
  }
  Message* message = free_messages_.back();
  free_messages_.pop_back();
  *message = Message{};
  message->header = header;
  return message;
}

void Rbm::free_message(Message* message) {
  if (message->buffer != nullptr) recycle(message->buffer, message->buffer_bytes);
  message->buffer = nullptr;
  free_messages_.push_back(message);
}

void Rbm::return_credits(Communicator& communicator, std::uint32_t peer, std::uint64_t bytes) {
  const std::uint32_t buffers = communicator.buffers_for(bytes);
  Peer& state = communicator.peers[peer];
  state.held -= buffers;
  state.owed += buffers;
  blocks_.tx->return_credits(communicator, peer);
}

// ------------------------------------------------------------------------------------- arrivals issued

/// Whether the sender has asked for a grant of this message, whose turn it is. Engines in hardware do not number their
/// messages: a request stands behind all that its sender has sent before.
bool Rbm::is_requested(const Communicator& communicator, const Pair& pair, const Port& port) {
  return pair.requested && pair.request_ordinal == (communicator.hardware_peers ? pair.finished : port.ordinal);
}

bool Rbm::issue(CallState& call, MoveState& move, Port& port, std::byte* place) {
  Communicator& communicator = *call.communicator;
  if (port.remote_memory) return open(call, move, port, place);
  if (call.space == CallState::Space::kPointToPoint) {
    port.state = Port::State::kOpen;
    Posted& posted = call.posted;
    posted.wanted = call.wanted;
    posted.call = &call;
    posted.move = &move;
    posted.port = &port;
    if (UnexpectedMessage* message = communicator.matcher.post(posted)) {
      bind(call, move, port, static_cast<Message*>(message));
    }
    return true;
  }
  Pair& pair = call.pairs[port.peer];
  port.sequence = call.sequence;
  pair.head_move = &move;
  pair.head_port = &port;
  if (port.total > communicator.agreed.eager_limit || is_requested(communicator, pair, port)) {
    if (port.total <= communicator.agreed.eager_limit && pair.request_bytes != port.total) {
      if (CallQueue::counts_by_rank(call)) {
        throw Error(ErrorCode::kMismatchedCall,
                    blocks_.calls->counts_text(call, port.peer, pair.request_bytes, port.total));
      }
      throw Error(ErrorCode::kMalformedProgram,
                  "move " + std::to_string(move.index) + " expects " + std::to_string(port.total) + " bytes of rank " +
                      std::to_string(port.peer) + ", which sends " + std::to_string(pair.request_bytes));
    }
    if (!open(call, move, port, place)) return false;
    pair.requested = false;
    return true;
  }
  port.state = Port::State::kOpen;
  if (!pair.eager.empty()) {
    Message* message = pair.eager.front();
    pair.eager.erase(pair.eager.begin());
    take(call, move, port, message);
  }
  return true;
}

bool Rbm::open(CallState& call, MoveState& move, Port& port, std::byte* place) {
  if (free_begin_ == free_slots_.size()) {
    if (slots_.size() == kWindowSlot) return false;
    slots_.emplace_back();
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_slots_[free_begin_++];
  if (free_begin_ >= 1024) {
    free_slots_.erase(free_slots_.begin(), free_slots_.begin() + static_cast<std::ptrdiff_t>(free_begin_));
    free_begin_ = 0;
  }
  Slot& slot = slots_[index];
  slot.call = &call;
  slot.move = &move;
  slot.port = &port;
  port.slot = index;
  if (place != nullptr || port.total == 0) {
    port.state = Port::State::kDirect;
    port.landing = place;
    port.landing_bytes = port.total;
  } else {
    port.state = Port::State::kLanding;
    const std::uint32_t endpoint = call.communicator->peers.endpoint(port.peer);
    const bool several = blocks_.poe->takes_loans(endpoint) || blocks_.poe->takes_writes(endpoint);
    const std::uint64_t ring =
        (several ? kLandingSegmentsOfSockets : kLandingSegments) * call.communicator->segment_bytes;
    const std::uint64_t segment = call.communicator->longest_segment(port.peer, port.total);
    port.landing_bytes = std::min(ring / segment * segment, buffer_for(port.total));
    port.landing = allocate(port.landing_bytes);
  }
  port.limit = std::min(port.total, port.landing_bytes);
  show(call, port);
  if (!port.remote_memory) {
    blocks_.tx->grant(call, port, slot.generation);
    return true;
  }
  Header header = blocks_.tx->header(*call.communicator, port.peer, MessageType::kControl);
  header.tag = static_cast<std::uint32_t>(Control::kGet);
  header.dtype = move.move->dtype;
  header.offset = call.window_offset + move.move->remote_address.offset;
  header.message_bytes = port.total;
  header.token_slot = static_cast<std::uint16_t>(index);
  header.token_generation = slot.generation;
  // The limit has a field of its own in no header; it is in the payload, if not all may come, and before a reach.
  std::array<char, sizeof port.limit + sizeof port.reach> payload;
  std::memcpy(payload.data(), &port.limit, sizeof port.limit);
  std::memcpy(payload.data() + sizeof port.limit, &port.reach, sizeof port.reach);
  const std::size_t length = port.reach ? payload.size() : port.limit == port.total ? 0 : sizeof port.limit;
  blocks_.tx->control(*call.communicator, port.peer, header, {payload.data(), length});
  return true;
}

/// Lets the sender write to the landing area, where the network can do that.
void Rbm::show(const CallState& call, Port& port) {
  port.reach = {};
  const std::uint32_t endpoint = call.communicator->peers.endpoint(port.peer);
  if (port.total < kWorthWriting || call.communicator->hardware_peers || !blocks_.poe->takes_writes(endpoint)) return;
  port.reach = blocks_.poe->show(endpoint, {port.landing, port.landing_bytes}).value_or(Reach{});
}

void Rbm::close(const CallState& call, Port& port) {
  const bool written = port.received == port.total;
  if (port.reach) {
    blocks_.poe->hide(call.communicator->peers.endpoint(port.peer), port.reach, written);
    // The peer may still be at it: nobody else gets the buffer.
    if (!written && port.state == Port::State::kLanding) withheld_.push_back({port.landing, port.landing_bytes});
  }
  const bool withheld = port.reach && !written;
  port.reach = {};
  Slot& slot = slots_[port.slot];
  ++slot.generation;
  slot.call = nullptr;
  free_slots_.push_back(port.slot);
  if (port.state == Port::State::kLanding && !withheld) recycle(port.landing, port.landing_bytes);
  port.landing = nullptr;
}

void Rbm::settled(bool by_all) {
  for (const Withheld& one : withheld_) {
    if (by_all) {
      recycle(one.buffer, one.bytes);
      continue;
    }
    // Never used again, and never freed: also after this engine's end the peer may write there.
    for (Memory& memory : memory_) {
      if (memory.bytes.get() == one.buffer) static_cast<void>(memory.bytes.release());
    }
  }
  withheld_.clear();
}

std::span<const std::byte> Rbm::readable(const Port& port) {
  if (port.view_bytes != 0) return {port.view, port.view_bytes};
  const std::uint64_t bytes = port.received - port.consumed;
  switch (port.state) {
    case Port::State::kEager:
      return {port.message != nullptr ? port.message->buffer + port.consumed : nullptr, bytes};
    case Port::State::kDirect:
      return {port.landing + port.consumed, bytes};
    case Port::State::kLanding: {
      const std::uint64_t at = port.consumed % port.landing_bytes;
      return {port.landing + at, std::min(bytes, port.landing_bytes - at)};
    }
    default:
      return {};
  }
}

void Rbm::consume(CallState& call, Port& port, std::uint64_t bytes) {
  port.consumed += bytes;
  if (port.view_bytes != 0) {
    port.view += bytes;
    port.view_bytes -= bytes;
  }
  if (port.consumed == port.total) {
    finish(call, port);
    return;
  }
  // Half a ring of new space is worth a message.
  if (port.state == Port::State::kLanding && port.limit < port.total &&
      port.consumed + port.landing_bytes - port.limit >= port.landing_bytes / 2) {
    // Whole segments, also when a part of one has been used: a sender may send no less.
    const std::uint64_t segment = call.communicator->longest_segment(port.peer, port.total);
    port.limit = std::min(port.total, port.consumed / segment * segment + port.landing_bytes);
    blocks_.tx->grant(call, port, slots_[port.slot].generation);
  }
}

void Rbm::finish(CallState& call, Port& port) {
  Communicator& communicator = *call.communicator;
  if (port.state == Port::State::kEager) {
    if (port.message != nullptr && port.received == port.total) {
      if (PeerQueues* const queues = communicator.peers[port.peer].queued.get()) erase(queues->incoming, port.message);
      if (call.pairs[port.peer].incoming == port.message) call.pairs[port.peer].incoming = nullptr;
      free_message(port.message);
    }
    port.message = nullptr;
    return_credits(communicator, port.peer, port.total);
  } else if (port.state == Port::State::kLanding || port.state == Port::State::kDirect) {
    close(call, port);
  }
  port.state = Port::State::kDone;
  if (port.remote_memory) return;
  Pair& pair = call.pairs[port.peer];
  if (pair.head_port == &port) pair.head_port = nullptr;
  ++pair.finished;
  end_ordinal(port.ordinal, pair.arrivals_done, pair.arrivals_skipped);
}

// ----------------------------------------------------------------------------------------- messages in

void Rbm::check(const CallState& call, const MoveState& move, const Port& port, const Header& header) const {
  if (call.space == CallState::Space::kPointToPoint) return;
  if (CallQueue::counts_by_rank(call) && header.tag == move.move->arrival.tag && header.message_bytes != port.total) {
    throw Error(ErrorCode::kMismatchedCall,
                blocks_.calls->counts_text(call, port.peer, header.message_bytes, port.total));
  }
  if (header.tag != move.move->arrival.tag || header.message_bytes != port.total) {
    throw Error(ErrorCode::kMalformedProgram,
                "move " + std::to_string(move.index) + " expects " + std::to_string(port.total) +
                    " bytes with step tag " + std::to_string(move.move->arrival.tag) + " of rank " +
                    std::to_string(port.peer) + ", which sends " + std::to_string(header.message_bytes) +
                    " bytes with step tag " + std::to_string(header.tag));
  }
}

void Rbm::keep(const Communicator& communicator, Message& message, std::uint64_t offset,
               std::span<const std::byte> payload) {
  if (payload.empty()) return;
  if (message.buffer == nullptr) {
    // All that comes of the message is within these (`on_eager`, `check_order`), and no more than its credits stand
    // for.
    message.buffer_bytes = std::min(
        std::uint64_t{communicator.buffers_for(message.header.message_bytes)} * communicator.agreed.eager_limit,
        buffer_for(message.header.message_bytes));
    blocks_.counters->count(NativeCounter::kSegmentsBuffered);
    message.buffer = allocate(message.buffer_bytes);
  }
  std::memcpy(message.buffer + offset, payload.data(), payload.size());
}

void Rbm::take(CallState& call, MoveState& move, Port& port, Message* message) {
  check(call, move, port, message->header);
  port.state = Port::State::kEager;
  port.arrived = true;
  port.message = message;
  port.received = message->received;
  message->call = &call;
  message->move = &move;
  message->port = &port;
}

void Rbm::store(CallState& call, Port& port, std::uint64_t offset, std::span<const std::byte> payload) {
  if (port.state == Port::State::kEager) {
    keep(*call.communicator, *port.message, offset, payload);
    return;
  }
  while (!payload.empty()) {
    const std::uint64_t place = offset % port.landing_bytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(payload.size(), port.landing_bytes - place);
    // The network may have put it there (`landing`).
    if (port.landing + place != payload.data()) std::memcpy(port.landing + place, payload.data(), bytes);
    payload = payload.subspan(bytes);
    offset += bytes;
  }
}

/// The next segment of an arrival. The move is offered it where it lies; only what it cannot use now is stored.
void Rbm::feed(CallState& call, MoveState& move, Port& port, std::span<const std::byte> payload) {
  const std::uint64_t offset = port.received;
  const bool waits = port.consumed != offset;  // behind data that is stored already
  if (waits) {
    store(call, port, offset, payload);
  } else {
    port.view = payload.data();
    port.view_bytes = payload.size();
  }
  port.arrived = true;
  port.received += payload.size();
  if (move.state == MoveState::State::kStarted) blocks_.dmp->advance(call, move);
  port.view_bytes = 0;
  if (waits || port.state == Port::State::kDone) return;
  store(call, port, port.consumed, payload.subspan(port.consumed - offset));
}

void Rbm::on_eager(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  const std::uint64_t end = header.offset + incoming.payload.size();
  const std::uint64_t longest = communicator.longest_eager(header.point_to_point);
  if (header.message_bytes > longest || end > header.message_bytes || header.first != (header.offset == 0) ||
      header.last != (end == header.message_bytes)) {
    throw Error(ErrorCode::kCorruptMessage, "an eager segment of rank " + std::to_string(peer) + " has bytes " +
                                                std::to_string(header.offset) + " to " + std::to_string(end) + " of " +
                                                std::to_string(header.message_bytes) + "; the eager limit is " +
                                                std::to_string(longest));
  }
  if (header.first) {
    Peer& state = communicator.peers[peer];
    const std::uint32_t buffers = communicator.buffers_for(header.message_bytes);
    if (state.held + buffers > communicator.agreed.rx_buffer_count) {
      throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " sent an eager message without credit");
    }
    state.held += buffers;
  }
  if (header.point_to_point) {
    eager_point_to_point(communicator, peer, incoming);
  } else {
    eager_collective(communicator, peer, incoming);
  }
}

/// A segment that does not begin a message continues the one that is incomplete, byte for byte: more than a
/// message has must never be stored.
void Rbm::check_order(const Message* message, std::uint32_t peer, const Header& header) {
  const bool continues = message != nullptr && message->header.message_bytes == header.message_bytes &&
                         (message->port != nullptr ? message->port->received : message->received) == header.offset;
  if (!continues && (message == nullptr || !message->discarded)) {
    throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " sent an eager segment out of order");
  }
}

void Rbm::eager_collective(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  CallState* call = CallQueue::find(communicator, header.sequence);
  if (call == nullptr) {
    if (before(header.sequence, communicator.order->next())) {  // of a call that has ended here
      if (header.last) return_credits(communicator, peer, header.message_bytes);
      if (header.first) blocks_.calls->left_over(communicator, peer, header);
      return;
    }
    Message* message = nullptr;
    PeerQueues& state = communicator.early_of(peer);
    if (header.first) {
      message = new_message(header);
      state.early.push_back(message);
    } else {
      for (Message* other : state.early) {  // of several messages of one call, the newest is incomplete
        if (other->header.sequence == header.sequence) message = other;
      }
      check_order(message, peer, header);
    }
    keep(communicator, *message, header.offset, incoming.payload);
    message->received += incoming.payload.size();
    return;
  }
  Pair& pair = call->pairs[peer];
  if (call->mismatch_waits) return;
  blocks_.calls->guard(*call, [&] {
    pair.heard = true;
    if (header.last) ++pair.ended;
    if (header.first) {
      check_signature(*call, peer, header);
      if (call->mismatch_waits) return;
      Message* message = nullptr;
      // A message that comes and goes in one segment needs no record.
      Port* port = pair.head_port;
      const bool direct = port != nullptr && port->state == Port::State::kOpen && pair.eager.empty();
      if (!direct && port != nullptr && !port->arrived &&
          (port->state == Port::State::kLanding || port->state == Port::State::kDirect)) {
        check(*call, *pair.head_move, *port, header);  // sent eagerly where a grant was awaited: the lengths differ
      }
      message = new_message(header);
      if (!header.last) pair.incoming = message;
      if (!direct) {
        keep(communicator, *message, 0, incoming.payload);
        message->received = incoming.payload.size();
        pair.eager.push_back(message);
        return;
      }
      MoveState& move = *pair.head_move;
      take(*call, move, *port, message);
      feed(*call, move, *port, incoming.payload);
      return;
    }
    Message* message = pair.incoming;
    check_order(message, peer, header);
    if (header.last) pair.incoming = nullptr;
    if (message->port != nullptr) {
      feed(*call, *message->move, *message->port, incoming.payload);
    } else {
      keep(communicator, *message, header.offset, incoming.payload);
      message->received += incoming.payload.size();
    }
  });
}

void Rbm::eager_point_to_point(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  PeerQueues& state = communicator.peers[peer].queues();
  if (header.first) {
    Message* message = new_message(header);
    if (!header.last) state.incoming.push_back(message);
    if (take_at_once(communicator, peer, *message, incoming.payload)) return;
    keep(communicator, *message, 0, incoming.payload);
    message->received = incoming.payload.size();
    announce(communicator, peer, message);
    return;
  }
  const auto found = std::find_if(state.incoming.begin(), state.incoming.end(),
                                  [&](const Message* m) { return m->header.sequence == header.sequence; });
  Message* message = found == state.incoming.end() ? nullptr : *found;
  check_order(message, peer, header);
  if (header.last) state.incoming.erase(found);
  if (message->discarded) {
    if (!header.last) return;
    free_message(message);
    return_credits(communicator, peer, header.message_bytes);
  } else if (message->port != nullptr) {
    blocks_.calls->guard(*message->call,
                         [&] { feed(*message->call, *message->move, *message->port, incoming.payload); });
  } else {
    keep(communicator, *message, header.offset, incoming.payload);
    message->received += incoming.payload.size();
  }
}

/// A message whose turn it is, and for which a receive waits, goes there from where it lies.
bool Rbm::take_at_once(Communicator& communicator, std::uint32_t peer, Message& message,
                       std::span<const std::byte> payload) {
  Peer& of = communicator.peers[peer];
  const bool turn =
      communicator.hardware_peers || (of.queues().announced.empty() && message.header.sequence == of.next_announced);
  PostedReceive* const taker = turn ? communicator.matcher.arrive(peer, message.header.tag) : nullptr;
  if (taker == nullptr) return false;
  if (!communicator.hardware_peers) ++of.next_announced;
  message.source = peer;
  message.tag = message.header.tag;
  const Posted& posted = *static_cast<Posted*>(taker);
  blocks_.calls->guard(*posted.call, [&] {
    bind(*posted.call, *posted.move, *posted.port, &message, payload.size());
    feed(*posted.call, *posted.move, *posted.port, payload);
  });
  return true;
}

/// Announcements come on two lanes; the pair sequence puts them in the order in which the sends began.
void Rbm::announce(Communicator& communicator, std::uint32_t peer, Message* message) {
  PeerQueues& state = communicator.peers[peer].queues();
  std::uint32_t& next_announced = communicator.peers[peer].next_announced;
  if (communicator.hardware_peers) {
    // They come on one lane, in that order; the sequence only tells them apart.
    deliver(communicator, peer, message);
    return;
  }
  const auto place = std::find_if(state.announced.begin(), state.announced.end(), [&](const Message* other) {
    return before(message->header.sequence, other->header.sequence);
  });
  state.announced.insert(place, message);
  while (!state.announced.empty() && state.announced.front()->header.sequence == next_announced) {
    Message* next = state.announced.front();
    state.announced.erase(state.announced.begin());
    ++next_announced;
    deliver(communicator, peer, next);
  }
}

/// Gives a message to the oldest receive that takes it, or keeps it.
void Rbm::deliver(Communicator& communicator, std::uint32_t peer, Message* message) {
  message->source = peer;
  message->tag = message->header.tag;
  PostedReceive* const taker = communicator.matcher.arrive(message->source, message->tag);
  if (taker == nullptr) {
    communicator.matcher.keep(*message);
    return;
  }
  const Posted& posted = *static_cast<Posted*>(taker);
  blocks_.calls->guard(*posted.call, [&] {
    bind(*posted.call, *posted.move, *posted.port, message);
    blocks_.dmp->advance(*posted.call, *posted.move);
  });
}

/// A receive and its message have met, of which `more` bytes have come that are not kept.
void Rbm::bind(CallState& call, MoveState& move, Port& port, Message* message, std::uint64_t more) {
  Communicator& communicator = *call.communicator;
  const std::uint32_t peer = message->source;
  const std::uint64_t bytes = message->header.message_bytes;
  port.peer = peer;  // which a receive of any source learns here
  call.matched = true;
  call.status = {peer, message->tag, bytes, message->header.dtype};
  Pair& pair = call.pairs[peer];
  pair.heard = true;
  pair.head_move = &move;
  pair.head_port = &port;
  const bool same = signatures_agree(message->header.signature, call.signature);
  if (bytes > port.total || !same) {
    const ErrorCode code = same ? ErrorCode::kTruncated : ErrorCode::kMismatchedCall;
    const std::string text = same ? "the message of rank " + std::to_string(peer) + " has " + std::to_string(bytes) +
                                        " bytes, the receive takes at most " + std::to_string(port.total)
                                  : "the message of rank " + std::to_string(peer) + " has datatype " +
                                        name_of(message->header.dtype) + ", the receive " + name_of(call.call.dtype);
    if (message->request) {
      Header header = blocks_.tx->header(call, peer, MessageType::kControl);
      header.tag = static_cast<std::uint32_t>(Control::kReject);
      header.sequence = message->header.sequence;
      header.token_generation = static_cast<std::uint16_t>(code);
      blocks_.tx->control(communicator, peer, header, text);
      free_message(message);
    } else if (message->received + more == bytes) {
      free_message(message);
      return_credits(communicator, peer, bytes);
    } else {
      message->discarded = true;
    }
    throw Error(code, text);
  }
  port.total = bytes;
  move.bytes = bytes;
  move.count = bytes_of(move.move->dtype) == 0 ? 0 : bytes / bytes_of(move.move->dtype);
  call.received_bytes = bytes;
  if (!message->request) {
    take(call, move, port, message);
    return;
  }
  port.sequence = message->header.sequence;
  free_message(message);
  if (!open(call, move, port, move.local)) {
    throw Error(ErrorCode::kCapacity,
                "all " + std::to_string(kWindowSlot) + " landing areas of this engine are in use");
  }
}

void Rbm::on_write(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  if (header.token_slot >= slots_.size()) return;
  const Slot slot = slots_[header.token_slot];
  // A token that is no longer valid belongs to a call that has ended: the data has no place any more.
  if (slot.call == nullptr || slot.generation != header.token_generation || slot.call->communicator != &communicator ||
      slot.port->peer != peer) {
    return;
  }
  if (slot.call->mismatch_waits) return;
  blocks_.calls->guard(*slot.call, [&] {
    Port& port = *slot.port;
    if (!slot.port->remote_memory) {
      slot.call->pairs[peer].heard = true;
      if (header.last) ++slot.call->pairs[peer].ended;
      if (header.first) check(*slot.call, *slot.move, port, header);
    }
    const std::uint64_t bytes = incoming.payload.size();
    const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(slot.move->move->dtype));
    if (header.offset != port.received || bytes > port.limit - port.received || bytes % element != 0) {
      throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " wrote " + std::to_string(bytes) +
                                                  " bytes at byte " + std::to_string(header.offset) +
                                                  "; allowed are whole elements from byte " +
                                                  std::to_string(port.received) + " to " + std::to_string(port.limit));
    }
    if (port.state != Port::State::kDirect) {
      feed(*slot.call, *slot.move, port, incoming.payload);
      return;
    }
    // The network may have put it there (`landing`).
    std::byte* const place = port.landing + port.received;
    if (bytes != 0 && incoming.payload.data() != place) std::memcpy(place, incoming.payload.data(), bytes);
    port.arrived = true;
    port.received += bytes;
    if (slot.move->state == MoveState::State::kStarted) blocks_.dmp->advance(*slot.call, *slot.move);
  });
}

std::byte* Rbm::landing(std::uint32_t endpoint, const Header& header) {
  if (header.type != MessageType::kWrite || header.token_slot >= slots_.size()) return nullptr;
  const Slot& slot = slots_[header.token_slot];
  if (slot.call == nullptr || slot.generation != header.token_generation || slot.call->mismatch_waits) return nullptr;
  const Communicator& communicator = *slot.call->communicator;
  const Port& port = *slot.port;
  if (communicator.number != header.communicator || communicator.epoch != header.epoch || communicator.revoked ||
      port.peer != header.source || communicator.rank != header.destination ||
      communicator.peers.endpoint(port.peer) != endpoint) {
    return nullptr;
  }
  // Others than `on_write` takes would be refused there.
  if ((port.state != Port::State::kDirect && port.state != Port::State::kLanding) || header.offset < port.received ||
      header.offset > port.limit || header.segment_bytes > port.limit - header.offset) {
    return nullptr;
  }
  if (port.state == Port::State::kDirect) return port.landing + header.offset;
  const std::uint64_t place = header.offset % port.landing_bytes;
  return header.segment_bytes <= port.landing_bytes - place ? port.landing + place : nullptr;
}

void Rbm::on_done(Communicator& communicator, std::uint32_t peer, const Header& header) {
  if (header.token_slot >= slots_.size()) return;
  const Slot slot = slots_[header.token_slot];
  if (slot.call == nullptr || slot.generation != header.token_generation || slot.call->communicator != &communicator ||
      slot.port->peer != peer || slot.call->mismatch_waits) {
    return;
  }
  blocks_.calls->guard(*slot.call, [&] {
    Port& port = *slot.port;
    if (!port.remote_memory) {
      slot.call->pairs[peer].heard = true;
      if (header.last) ++slot.call->pairs[peer].ended;
      if (header.first) check(*slot.call, *slot.move, port, header);
    }
    const std::uint64_t end = header.offset;
    const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(slot.move->move->dtype));
    if (!port.reach || end <= port.received || end > port.limit || (end - port.received) % element != 0) {
      throw Error(ErrorCode::kCorruptMessage,
                  "rank " + std::to_string(peer) + " has written up to byte " + std::to_string(end) +
                      (port.reach ? "; allowed are whole elements from byte " + std::to_string(port.received) + " to " +
                                        std::to_string(port.limit)
                                  : ", and was shown no memory"));
    }
    blocks_.counters->count(NativeCounter::kBytesReceived, end - port.received);
    port.arrived = true;
    port.received = end;
    if (slot.move->state == MoveState::State::kStarted) blocks_.dmp->advance(*slot.call, *slot.move);
  });
}

void Rbm::on_get_failed(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text) {
  if (header.token_slot >= slots_.size()) return;
  const Slot slot = slots_[header.token_slot];
  if (slot.call == nullptr || slot.generation != header.token_generation || slot.call->communicator != &communicator ||
      slot.port->peer != peer) {
    return;
  }
  blocks_.calls->fail(*slot.call, error_code(header.offset), text, false);
}

// ------------------------------------------------------------------------------------ requests, grants

void Rbm::check_signature(CallState& call, std::uint32_t peer, const Header& header) {
  if (!signatures_agree(header.signature, call.signature)) blocks_.calls->mismatch(call, peer);
}

void Rbm::on_request(Communicator& communicator, std::uint32_t peer, const Header& header) {
  blocks_.counters->count(NativeCounter::kRequestsReceived);
  if (header.point_to_point) {
    Message* message = new_message(header);
    message->request = true;
    announce(communicator, peer, message);
    return;
  }
  CallState* call = CallQueue::find(communicator, header.sequence);
  if (call != nullptr) {
    blocks_.calls->guard(*call, [&] { apply_request(*call, peer, header); });
  } else if (!before(header.sequence, communicator.order->next())) {
    communicator.early_of(peer).early_control.push_back({header, {}});
  }
}

void Rbm::apply_request(CallState& call, std::uint32_t peer, const Header& header) {
  Pair& pair = call.pairs[peer];
  pair.heard = true;
  check_signature(call, peer, header);
  if (call.mismatch_waits) return;
  pair.requested = true;
  const bool numbered = !call.communicator->hardware_peers;
  pair.request_ordinal = numbered ? static_cast<std::uint32_t>(header.offset) : pair.ended;
  pair.request_bytes = header.message_bytes;
  // The arrival may have issued before; then it has been waiting for this.
  Port* port = pair.head_port;
  if (port == nullptr || port->state != Port::State::kOpen || !is_requested(*call.communicator, pair, *port)) return;
  port->state = Port::State::kTurn;
  MoveState& move = *pair.head_move;
  if (move.state == MoveState::State::kStarted) blocks_.dmp->advance(call, move);
}

void Rbm::on_grant(Communicator& communicator, std::uint32_t peer, const Header& header, const Reach& reach) {
  blocks_.counters->count(NativeCounter::kGrantsReceived);
  CallState* call = header.point_to_point ? CallQueue::find_send(communicator, peer, header.sequence)
                                          : CallQueue::find(communicator, header.sequence);
  if (call != nullptr) {
    blocks_.calls->guard(*call, [&] { apply_grant(*call, peer, header, reach); });
  } else if (!header.point_to_point && !before(header.sequence, communicator.order->next())) {
    communicator.early_of(peer).early_control.push_back({header, reach});
  }
}

void Rbm::apply_grant(CallState& call, std::uint32_t peer, const Header& header, const Reach& reach) {
  Pair& pair = call.pairs[peer];
  pair.heard = true;
  if (!header.point_to_point) check_signature(call, peer, header);
  if (call.mismatch_waits) return;
  const Grant grant{
      true, header.token_slot, header.token_generation, static_cast<std::uint32_t>(header.offset), header.message_bytes,
      reach};
  // Engines in hardware may grant the next message before this one has been sent; the token tells which is meant.
  const bool next = call.communicator->hardware_peers && pair.grant.given &&
                    (pair.grant.slot != grant.slot || pair.grant.generation != grant.generation);
  (next ? pair.next_grant : pair.grant) = grant;
}

void Rbm::adopt(CallState& call) {
  Communicator& communicator = *call.communicator;
  std::vector<std::uint32_t>& early_peers = communicator.early_peers;
  for (std::size_t position = 0; position < early_peers.size();) {
    const std::uint32_t peer = early_peers[position];
    PeerQueues& state = communicator.peers[peer].queues();
    for (std::size_t i = 0; i < state.early.size();) {
      Message* message = state.early[i];
      if (message->header.sequence != call.sequence) {
        ++i;
        continue;
      }
      state.early.erase(state.early.begin() + static_cast<std::ptrdiff_t>(i));
      Pair& pair = call.pairs[peer];
      pair.heard = true;
      pair.eager.push_back(message);
      if (message->received < message->header.message_bytes) {
        pair.incoming = message;
      } else {
        ++pair.ended;
      }
      check_signature(call, peer, message->header);
    }
    for (std::size_t i = 0; i < state.early_control.size();) {
      const auto [header, reach] = state.early_control[i];
      if (header.sequence != call.sequence) {
        ++i;
        continue;
      }
      state.early_control.erase(state.early_control.begin() + static_cast<std::ptrdiff_t>(i));
      if (header.type == MessageType::kGrant) {
        apply_grant(call, peer, header, reach);
      } else {
        apply_request(call, peer, header);
      }
    }
    if (position >= early_peers.size()) return;  // the communicator was revoked meanwhile
    if (state.early.empty() && state.early_control.empty()) {
      state.listed = false;
      early_peers[position] = early_peers.back();
      early_peers.pop_back();
    } else {
      ++position;
    }
  }
}

// ----------------------------------------------------------------------------------------- end of calls

void Rbm::release(CallState& call) {
  Communicator& communicator = *call.communicator;
  if (Matcher::posted(call.posted)) communicator.matcher.withdraw(call.posted);
  for (std::uint32_t index = call.retired; index < call.entered; ++index) {
    MoveState& move = call.move(index);
    for (Port& port : move.ports) {
      if (port.state == Port::State::kLanding || port.state == Port::State::kDirect) close(call, port);
      if (port.state == Port::State::kEager) {
        Message* message = port.message;
        message->port = nullptr;
        if (port.received == port.total) {
          free_message(message);
          return_credits(communicator, port.peer, port.total);
        } else if (call.space == CallState::Space::kCollective) {
          free_message(message);  // its last segment finds the call ended, and returns the credit
        } else {
          message->discarded = true;  // likewise, but it is known by its sequence number
        }
      }
      port.state = Port::State::kDone;
    }
    for (Part& part : move.parts) {
      if (part.lent != 0 && part.write != 0) {
        blocks_.poe->withdraw(communicator.peers.endpoint(part.peer), std::exchange(part.write, 0));
      }
    }
    if (move.write != 0) {
      blocks_.poe->withdraw(communicator.peers.endpoint(move.move->remote.peer), std::exchange(move.write, 0));
    }
  }
  call.pairs.for_each([&](std::uint32_t peer, Pair& pair) {
    for (Message* message : pair.eager) {
      const std::uint64_t bytes = message->header.message_bytes;
      const bool whole = message->received == bytes;
      free_message(message);
      if (whole) return_credits(communicator, peer, bytes);
    }
    pair.eager.clear();
  });
}

void Rbm::drop(Communicator& communicator) {
  while (UnexpectedMessage* unexpected = communicator.matcher.any()) {
    communicator.matcher.remove(*unexpected);
    auto* message = static_cast<Message*>(unexpected);
    if (PeerQueues* const queues = communicator.peers[message->source].queued.get()) erase(queues->incoming, message);
    free_message(message);
  }
  communicator.early_peers.clear();
  communicator.peers.for_each([&](const Peer& of) {
    if (of.queued == nullptr) return;
    PeerQueues& peer = *of.queued;
    peer.listed = false;
    for (Message* message : peer.early) free_message(message);
    for (Message* message : peer.announced) {
      erase(peer.incoming, message);
      free_message(message);
    }
    for (Message* message : peer.incoming) free_message(message);
    peer.early.clear();
    peer.announced.clear();
    peer.incoming.clear();
    peer.early_control.clear();
  });
}

}  // namespace unisono::cclo
