#include "engine/dmp.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/fast_path.hpp"
#include "engine/kernel_run.hpp"
#include "engine/kernels.hpp"
#include "engine/move_stream.hpp"
#include "engine/plugins.hpp"
#include "engine/rbm.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// Shorter messages are copied: that takes less than going on with them another time.
constexpr std::uint64_t kWorthLending = std::uint64_t{16} * 1024;

/// The ranks of a peer field: one, or a list of the constant pool.
std::span<const std::uint32_t> ranks_of(const Program& program, const std::uint32_t& peer, PeerMode mode) {
  if (mode == PeerMode::kRank) return {&peer, 1};
  return {program.pool.data() + peer + 1, program.pool[peer]};
}

std::string move_name(const MoveState& move) { return "move " + std::to_string(move.index); }

std::uint64_t param(const CallState& call, std::uint64_t offset) { return call.params[offset / 8]; }

/// The move that enters the window as the call's n-th, n = 0, 1, 2, ...; it stays until it has left the window.
const Move& move_of(CallState& call, std::uint32_t n) {
  const CheckedProgram& checked = *call.program;
  if (checked.made_by == nullptr) return checked.program.moves[n];
  if (call.stream == nullptr) call.stream = std::make_unique<MoveStream>();
  if (n == 0) call.stream->begin(checked);
  return call.stream->next();
}

/// The message of a move whose result goes to a stream port of a peer.
std::shared_ptr<PortMessage>& to_port_of(const CallState& call, const MoveState& state) {
  return call.streams->to_ports[state.index % kWindow];
}

}  // namespace

bool Dmp::exists(const CallState& call, const MoveState& move) {
  // Point to point, neither end knows the count of the other, so there is always a message.
  return move.count != 0 || move.move->signal || call.space == CallState::Space::kPointToPoint;
}

void Dmp::resolve(const CallState& call, MoveState& state) {
  const Move& m = *state.move;
  state.count = m.count_indirect ? param(call, m.count) : m.count;
  const std::uint64_t element = bytes_of(m.dtype);
  if (state.count > kMaxCount) {
    throw Error(ErrorCode::kInvalidCount, move_name(state) + " has an indirect count of " +
                                              std::to_string(state.count) + "; the largest is " +
                                              std::to_string(kMaxCount));
  }
  state.bytes = state.count * element;
  const auto place = [&](const Operand& operand, const char* what) -> std::byte* {
    const Binding& region = call.regions[static_cast<std::size_t>(operand.region)];
    const std::uint64_t offset = operand.indirect ? param(call, operand.offset) : operand.offset;
    if (state.bytes == 0) return nullptr;
    if (offset > region.bytes || state.bytes > region.bytes - offset) {
      throw Error(operand.indirect || m.count_indirect ? ErrorCode::kInvalidCount : ErrorCode::kBufferTooSmall,
                  move_name(state) + ": " + what + " is " + std::to_string(state.bytes) + " bytes at byte " +
                      std::to_string(offset) + " of " + name_of(operand.region) + ", which has " +
                      std::to_string(region.bytes) + " bytes");
    }
    return region.data == nullptr ? nullptr : region.data + offset;  // without memory it is a stream
  };
  state.op0 = m.op0.kind == OperandKind::kMemory ? place(m.op0, "op0") : nullptr;
  state.op1 = m.op1.kind == OperandKind::kMemory ? place(m.op1, "op1") : nullptr;
  state.local = m.local.kind == OperandKind::kMemory ? place(m.local, "the local result") : nullptr;
  for (const std::byte* operand : {state.op0, state.op1}) {
    if (operand == nullptr || state.local == nullptr || operand == state.local) continue;
    if (operand < state.local + state.bytes && state.local < operand + state.bytes) {
      throw Error(ErrorCode::kMalformedProgram,
                  move_name(state) + ": an operand and the local result overlap without being the same");
    }
  }
}

void Dmp::enter(CallState& call) {
  const Program& program = call.program->program;
  MoveState& state = call.move(call.entered);
  const Move& m = move_of(call, call.entered);
  state.state = MoveState::State::kEntered;
  state.put_pending = false;
  state.way = MoveState::Way::kMessages;
  state.lent = state.write = 0;
  state.index = call.entered++;
  state.move = &m;
  state.count = state.bytes = state.done = 0;
  state.op0 = state.op1 = nullptr;
  state.local = nullptr;
  state.in = state.out = {};
  state.ports.clear();
  state.parts.clear();
  if (m.kind != MoveKind::kMove) return;
  // What no move can change is looked up now, so that messages known not to exist take no turn.
  const bool known = !call.program->writes_params;
  if (known) resolve(call, state);
  if (known && !exists(call, state)) return;
  if (call.streams) [[unlikely]]
    attach_streams(call, state);
  if (m.op1.kind == OperandKind::kArrival) {
    for (const std::uint32_t peer : ranks_of(program, m.arrival.peer, m.arrival.mode)) {
      Port& port = state.ports.emplace_back();
      port.peer = peer;
      port.ordinal = call.pairs[peer].arrivals_entered++;
    }
  } else if (m.op1.kind == OperandKind::kRemoteMemory) {
    Port& port = state.ports.emplace_back();
    port.peer = m.arrival.peer;
    port.remote_memory = true;
  }
  if (m.remote.kind == RemoteKind::kMessage) {
    for (const std::uint32_t peer : ranks_of(program, m.remote.peer, m.remote.mode)) {
      Part& part = state.parts.emplace_back();
      part.peer = peer;
      part.ordinal = call.pairs[peer].sends_entered++;
    }
  }
}

StreamAccess Dmp::access(CallState& call, StreamSide side, std::uint32_t port) {
  CallStreams::Use& use = call.streams->use(side, port);
  return {&blocks_.streams->queue(side, port), side, static_cast<std::uint8_t>(port), use.entered++};
}

void Dmp::attach_streams(CallState& call, MoveState& state) {
  const Move& m = *state.move;
  const auto port_of = [&](const Operand& operand, StreamSide side) -> std::optional<std::uint32_t> {
    if (operand.kind == OperandKind::kStream) return static_cast<std::uint32_t>(operand.offset);
    if (operand.kind != OperandKind::kMemory) return std::nullopt;
    const CallStreams::Bound* const bound = call.streams->direct(operand.region, side);
    return bound == nullptr ? std::nullopt : std::optional<std::uint32_t>(bound->port);
  };
  const auto first = port_of(m.op0, StreamSide::kToEngine);
  const auto second = port_of(m.op1, StreamSide::kToEngine);
  if (first || second) state.in = access(call, StreamSide::kToEngine, first ? *first : *second);
  state.in_second = !first;
  if (const auto port = port_of(m.local, StreamSide::kToKernel)) {
    state.out = access(call, StreamSide::kToKernel, *port);
  }
}

bool Dmp::has_turn(const CallState& call, const StreamAccess& access) const {
  if (access.queue == nullptr) return true;
  return blocks_.streams->has_turn(access.side, access.port, call.id) &&
         call.streams->use(access.side, access.port).done == access.ordinal;
}

std::uint64_t Dmp::streamable(const CallState& call, const MoveState& state) const {
  if (!has_turn(call, state.in) || !has_turn(call, state.out)) return 0;
  std::uint64_t bytes = state.bytes - state.done;
  if (state.in.queue != nullptr) bytes = std::min(bytes, state.in.queue->here());
  if (state.out.queue != nullptr) bytes = std::min(bytes, state.out.queue->room());
  return bytes - bytes % bytes_of(state.move->dtype);
}

void Dmp::streamed(CallState& call, MoveState& state, std::uint64_t bytes) {
  call.streams->moved += bytes;
  if (state.in.queue != nullptr) {
    state.in.queue->taken(bytes);
    call.streams->use(state.in.side, state.in.port).bytes += bytes;
  }
  if (state.out.queue != nullptr) {
    state.out.queue->put(bytes);
    call.streams->use(state.out.side, state.out.port).bytes += bytes;
  }
}

bool Dmp::try_start(CallState& call, MoveState& state) {
  const Move& m = *state.move;
  for (std::uint32_t bits = m.dependencies; bits != 0; bits &= bits - 1) {
    const std::uint32_t producer = state.index - 1 - static_cast<std::uint32_t>(__builtin_ctz(bits));
    // Signed distance, for a bit may reach before what is still in the window.
    if (producer >= call.retired && call.move(producer).state != MoveState::State::kComplete) return false;
  }
  if (m.kind != MoveKind::kMove) {
    state.state = MoveState::State::kComplete;
    return true;
  }
  if (call.program->writes_params) {
    resolve(call, state);
    if (!exists(call, state)) {
      for (const Port& port : state.ports) {
        if (port.remote_memory) continue;
        Pair& pair = call.pairs[port.peer];
        end_ordinal(port.ordinal, pair.arrivals_done, pair.arrivals_skipped);
      }
      for (const Part& part : state.parts) {
        Pair& pair = call.pairs[part.peer];
        end_ordinal(part.ordinal, pair.sends_done, pair.sends_skipped);
      }
      state.ports.clear();
      state.parts.clear();
    }
  }
  for (Port& port : state.ports) port.total = state.bytes;
  state.state = MoveState::State::kStarted;
  if (m.remote.kind == RemoteKind::kStream && state.bytes != 0) {
    const auto message = std::make_shared<PortMessage>();
    message->elements.resize(state.bytes);
    to_port_of(call, state) = message;
  }
  if (m.remote.kind == RemoteKind::kMemory && state.bytes != 0) {
    if ((call.window_offset + m.remote_address.offset + state.bytes) >> 48U != 0) {
      throw Error(ErrorCode::kBufferTooSmall, move_name(state) + " puts beyond the end of any window");
    }
    Communicator& communicator = *call.communicator;
    state.put_pending = true;
    state.operation = communicator.next_operation++;
    communicator.puts.push_back({state.operation, &call, &state});
    if (state.bytes >= kWorthWriting && puts_as_is(state) && !communicator.hardware_peers &&
        blocks_.poe->takes_writes(communicator.peers.endpoint(m.remote.peer))) {
      state.way = MoveState::Way::kAsked;
      blocks_.tx->ask_for_window(communicator, m.remote.peer, state.operation,
                                 call.window_offset + m.remote_address.offset, state.bytes);
    }
  }
  return true;
}

std::uint64_t Dmp::visible(CallState& call, const MoveState& state, std::uint32_t index) {
  if (index < call.retired) return state.bytes;
  const MoveState& producer = call.move(index);
  if (producer.state == MoveState::State::kComplete) return state.bytes;
  // Segments are followed by elements, and the two moves' datatypes may differ.
  const std::uint64_t elements = producer.done / std::max<std::uint64_t>(1, bytes_of(producer.move->dtype));
  return std::min(state.bytes, elements * bytes_of(state.move->dtype));
}

bool Dmp::issue_ports(CallState& call, MoveState& state) {
  bool any = false;
  for (Port& port : state.ports) {
    if (port.state != Port::State::kTurn) continue;
    const bool turn = port.remote_memory || port.ordinal == call.pairs[port.peer].arrivals_done;
    if (!turn) continue;
    // The data may land in its final place if nothing is computed and nothing else must happen first.
    const Move& m = *state.move;
    std::byte* place = state.ports.size() == 1 && m.op0.kind == OperandKind::kNone ? state.local : nullptr;
    for (const std::uint32_t distance : {std::uint32_t{m.segment_dependency0}, std::uint32_t{m.segment_dependency1}}) {
      if (distance != 0 && visible(call, state, state.index - distance) < state.bytes) place = nullptr;
    }
    any = blocks_.rbm->issue(call, state, port, place) || any;
  }
  return any;
}

/// Whether the pair's grant is for this message. Engines in hardware do not say for which it is: they grant a pair's
/// messages in turn, but only those that are long or were asked for.
bool Dmp::granted(const Communicator& communicator, const Pair& pair, const Part& part, bool asks) {
  if (!pair.grant.given || part.eager) return false;
  if (!communicator.hardware_peers) return pair.grant.ordinal == part.ordinal;
  return part.ordinal == pair.sends_done && (part.requested || !asks);
}

std::optional<std::uint64_t> Dmp::secure(CallState& call, MoveState& state, Part& part) {
  Pair& pair = call.pairs[part.peer];
  if (part.ordinal != pair.sends_done) return std::nullopt;
  if (part.eager) return state.bytes - state.done;
  Communicator& communicator = *call.communicator;
  const bool small = state.bytes <= communicator.agreed.eager_limit;
  // A long message of a collective is granted unasked: its receiver knows that it comes. A switch does not.
  const bool to_switch = part.peer >= communicator.size;
  const bool asks = small || to_switch || call.space == CallState::Space::kPointToPoint;
  if (granted(communicator, pair, part, asks)) return pair.grant.limit - std::min(pair.grant.limit, state.done);
  if (part.requested) return std::nullopt;
  if (state.bytes <= communicator.longest_eager(call.space == CallState::Space::kPointToPoint) &&
      state.move->protocol != Protocol::kRendezvous &&
      communicator.peers[part.peer].credits >= communicator.buffers_for(state.bytes)) {
    communicator.peers[part.peer].credits -= communicator.buffers_for(state.bytes);
    part.eager = true;
    return state.bytes - state.done;
  }
  if (asks) {
    part.requested = blocks_.tx->request(call, part.peer, part.ordinal, state.bytes, *state.move);
    call.announced = call.announced || part.requested;
  }
  return std::nullopt;
}

bool Dmp::reserve(CallState& call, MoveState& state, std::uint64_t bytes) {
  const Communicator& communicator = *call.communicator;
  for (Part& part : state.parts) {
    part.reserved = blocks_.tx->reserve(communicator, part.peer, bytes);
    if (part.reserved == nullptr) return false;
  }
  if (state.move->remote.kind == RemoteKind::kMemory) {
    put_space_ = blocks_.tx->reserve(communicator, state.move->remote.peer, bytes);
    if (put_space_ == nullptr) return false;
  }
  return true;
}

void Dmp::compute(const CallState& call, MoveState& state, std::uint64_t bytes) {
  const Move& m = *state.move;
  const std::byte* a = state.op0 != nullptr ? state.op0 + state.done : nullptr;
  const std::byte* b = state.op1 != nullptr ? state.op1 + state.done : nullptr;
  std::byte* local = state.local != nullptr ? state.local + state.done : nullptr;
  if (state.in.queue != nullptr) (state.in_second ? b : a) = state.in.queue->front();
  if (state.out.queue != nullptr) local = state.out.queue->back(bytes);
  std::byte* put = m.remote.kind == RemoteKind::kMemory ? put_space_ : nullptr;
  if (m.remote.kind == RemoteKind::kStream) put = to_port_of(call, state)->elements.data() + state.done;
  std::byte* first = local != nullptr ? local : !state.parts.empty() ? state.parts.front().reserved : put;

  const std::byte* result = first;
  const bool fan_in = state.ports.size() > 1;
  if (!fan_in && !state.ports.empty()) b = Rbm::readable(state.ports.front()).data();
  if (fan_in) {
    inputs_.clear();
    for (const Port& port : state.ports) inputs_.push_back(Rbm::readable(port).data());
    if (first != nullptr) plugin_fold(m.func, m.dtype, m.swap, a, inputs_, first, bytes);
  } else if (a != nullptr && b != nullptr) {
    if (first != nullptr) plugin_combine(m.func, m.dtype, m.swap, a, b, first, bytes);
  } else if (m.func == Func::kAvg) {
    if (first != nullptr)
      mean_kernel(m.dtype)(a != nullptr ? a : b, first, bytes / bytes_of(m.dtype), call.communicator->size);
  } else {
    result = a != nullptr ? a : b;  // passes through: every result is copied from the operand itself
    if (local != nullptr && local != result) std::memmove(local, result, bytes);
  }
  for (const Part& part : state.parts) {
    if (part.reserved != result) std::memcpy(part.reserved, result, bytes);
  }
  if (put != nullptr && put != result) std::memcpy(put, result, bytes);
}

/// What a segment of a message is to its receiver.
Header Dmp::header_of(CallState& call, const MoveState& state, const Part& part, std::uint64_t done,
                      std::uint64_t bytes) const {
  const Move& m = *state.move;
  Header header = blocks_.tx->header(call, part.peer, part.eager ? MessageType::kEager : MessageType::kWrite);
  if (call.space == CallState::Space::kCollective) header.tag = m.remote.tag;
  header.dtype = m.dtype;
  header.first = done == 0;
  header.last = done + bytes == state.bytes;
  header.segment_bytes = static_cast<std::uint32_t>(bytes);
  header.message_bytes = state.bytes;
  header.offset = done;
  if (!part.eager) {
    header.token_slot = call.pairs[part.peer].grant.slot;
    header.token_generation = call.pairs[part.peer].grant.generation;
  }
  return header;
}

/// Whether all that a move does is to send an operand to one rank, as it is.
bool Dmp::sends_as_is(const MoveState& state) {
  const Move& m = *state.move;
  const bool one_operand = (state.op0 != nullptr) != (state.op1 != nullptr || !state.ports.empty());
  return state.parts.size() == 1 && one_operand && state.ports.size() <= 1 && m.func != Func::kAvg &&
         state.local == nullptr && m.remote.kind != RemoteKind::kMemory && !state.streams();
}

/// Where the operand of a move that sends as it is goes on.
const std::byte* Dmp::operand_of(const MoveState& state) {
  return state.op0 != nullptr   ? state.op0 + state.done
         : state.op1 != nullptr ? state.op1 + state.done
                                : Rbm::readable(state.ports.front()).data();
}

/// False if there is no space for it now.
bool Dmp::send_as_is(CallState& call, MoveState& state, std::uint64_t bytes) {
  const Part& part = state.parts.front();
  Header header = header_of(call, state, part, state.done, bytes);
  if (!blocks_.tx->send(*call.communicator, part.peer, header, {operand_of(state), bytes})) return false;
  call.announced = true;
  return true;
}

/// Whether the network can take several segments at once from where they stand, for as long as it needs.
bool Dmp::can_lend(const CallState& call, const MoveState& state) const {
  return (state.op0 != nullptr || state.op1 != nullptr) && state.bytes >= kWorthLending &&
         blocks_.poe->takes_loans(call.communicator->peers.endpoint(state.parts.front().peer));
}

/// As `send_as_is`, in segments of at most so many bytes; false, too, if the network has not taken all yet.
bool Dmp::lend(CallState& call, MoveState& state, std::uint64_t bytes, std::uint64_t segment) {
  Part& part = state.parts.front();
  std::array<Header, Poe::kMostLent> headers;
  std::size_t count = 0;
  for (std::uint64_t done = 0; done < bytes; done += segment) {
    headers[count++] = header_of(call, state, part, state.done + done, std::min(segment, bytes - done));
  }
  const Sent sent = blocks_.tx->lend(*call.communicator, part.peer, std::span(headers).first(count), operand_of(state));
  call.announced = call.announced || sent != Sent::kNo;
  if (sent == Sent::kLent) part.lent = bytes;
  return sent == Sent::kWhole;
}

bool Dmp::puts_as_is(const MoveState& state) {
  const Move& m = *state.move;
  return (state.op0 != nullptr) != (state.op1 != nullptr) && state.ports.empty() && state.parts.empty() &&
         state.local == nullptr && m.func != Func::kAvg && !state.streams();
}

/// A piece that is shorter than is worth it goes by messages, which the window's owner takes as well.
bool Dmp::write_to_window(CallState& call, MoveState& state, std::uint64_t bytes) {
  if (state.way != MoveState::Way::kWrites) return false;
  const Move& m = *state.move;
  bytes = std::min(bytes, kLongestWrite);
  bytes -= bytes % bytes_of(m.dtype);
  if (bytes < kWorthWriting) return false;
  Communicator& communicator = *call.communicator;
  Header done = blocks_.tx->header(communicator, m.remote.peer, MessageType::kDone);
  done.dtype = m.dtype;
  done.sequence = state.operation;
  done.token_slot = static_cast<std::uint16_t>(kWindowSlot);
  done.first = state.done == 0;
  done.last = state.done + bytes == state.bytes;
  done.message_bytes = state.bytes;
  done.offset = state.done + bytes;
  const std::byte* const from = operand_of(state);
  if (!blocks_.tx->write(communicator, m.remote.peer, done, state.window, state.done, {from, bytes}, state.write)) {
    return false;
  }
  state.lent = bytes;
  return true;
}

const std::byte* Dmp::standing(const MoveState& state) {
  if (state.parts.size() != 1) return nullptr;
  if (sends_as_is(state)) return state.ports.empty() ? operand_of(state) : nullptr;
  // What lands in its place, and goes on from there.
  const bool passes = state.ports.size() == 1 && state.ports.front().state == Port::State::kDirect &&
                      state.ports.front().landing == state.local && state.local != nullptr && state.op0 == nullptr &&
                      !state.streams() && state.move->func != Func::kAvg &&
                      state.move->remote.kind != RemoteKind::kMemory;
  return passes ? state.local + state.done : nullptr;
}

std::uint64_t Dmp::write(CallState& call, MoveState& state, std::uint64_t bytes) {
  Part& part = state.parts.front();
  const Reach& reach = call.pairs[part.peer].grant.reach;
  if (part.eager || !reach || bytes < kWorthWriting) return 0;
  const std::byte* const from = standing(state);
  if (from == nullptr) return 0;
  // A ring is written by halves, so that one can be used while the other one comes.
  const std::uint64_t at = state.done % reach.bytes;
  bytes = std::min({bytes, reach.bytes - at, kLongestWrite});
  if (reach.bytes < state.bytes) bytes = std::min(bytes, std::max(kWorthWriting, reach.bytes / 2));
  bytes -= bytes % bytes_of(state.move->dtype);
  if (bytes == 0) return 0;
  Header done = header_of(call, state, part, state.done, bytes);
  done.type = MessageType::kDone;
  done.segment_bytes = 0;
  done.offset = state.done + bytes;
  if (!blocks_.tx->write(*call.communicator, part.peer, done, reach, at, {from, bytes}, part.write)) return 0;
  call.announced = true;
  return part.lent = bytes;
}

std::optional<std::uint64_t> Dmp::returned(const CallState& call, MoveState& state) const {
  Part& part = state.parts.front();
  const std::uint32_t endpoint = call.communicator->peers.endpoint(part.peer);
  if (part.write != 0 ? !blocks_.poe->done(endpoint, part.write) : blocks_.poe->lends(endpoint)) return std::nullopt;
  part.write = 0;
  return std::exchange(part.lent, 0);
}

void Dmp::commit(CallState& call, MoveState& state, std::uint64_t bytes) {
  const Move& m = *state.move;
  Communicator& communicator = *call.communicator;
  for (const Part& part : state.parts) {
    Header header = header_of(call, state, part, state.done, bytes);
    blocks_.tx->commit(communicator, part.peer, header);
    call.announced = true;
  }
  if (m.remote.kind == RemoteKind::kMemory) {
    Header header = blocks_.tx->header(communicator, m.remote.peer, MessageType::kWrite);
    header.dtype = m.dtype;
    header.sequence = state.operation;
    header.token_slot = static_cast<std::uint16_t>(kWindowSlot);
    header.last = state.done + bytes == state.bytes;
    header.segment_bytes = static_cast<std::uint32_t>(bytes);
    // Of the put the window knows only where it ends, so that every segment tells whether all of it fits.
    const std::uint64_t begin = call.window_offset + m.remote_address.offset;
    header.message_bytes = begin + state.bytes;
    header.offset = begin + state.done;
    blocks_.tx->commit(communicator, m.remote.peer, header);
  }
}

bool Dmp::advance(CallState& call, MoveState& state) {
  bool any = issue_ports(call, state);
  const Move& m = *state.move;
  if (state.bytes == 0) return advance_empty(call, state) || any;
  const std::uint64_t element = bytes_of(m.dtype);
  const bool remote = !state.parts.empty() || m.remote.kind == RemoteKind::kMemory;
  const bool as_is = sends_as_is(state);
  const bool lends = as_is && can_lend(call, state);
  const auto pass = [&](std::uint64_t bytes) {
    state.done += bytes;
    if (state.streams()) streamed(call, state, bytes);
    for (Port& port : state.ports) blocks_.rbm->consume(call, port, bytes);
    any = true;
  };
  while (state.done < state.bytes) {
    if (state.parts.size() == 1 && state.parts.front().lent != 0) {
      const std::optional<std::uint64_t> bytes = returned(call, state);
      if (!bytes) return any;
      pass(*bytes);
      continue;
    }
    if (state.lent != 0) {
      if (!blocks_.poe->done(call.communicator->peers.endpoint(m.remote.peer), state.write)) return any;
      state.write = 0;
      pass(std::exchange(state.lent, 0));
      continue;
    }
    if (state.way == MoveState::Way::kAsked) return any;
    std::uint64_t bytes = state.bytes - state.done;
    if (state.streams()) {  // first, for who holds credit or space must not wait for a kernel
      bytes = streamable(call, state);
      if (bytes == 0) return any;
    }
    bool secured = true;
    for (Part& part : state.parts) {
      const std::optional<std::uint64_t> allowed = secure(call, state, part);
      secured = secured && allowed.has_value();
      if (allowed) bytes = std::min(bytes, *allowed);
    }
    if (!secured) return any;
    for (const std::uint32_t distance : {std::uint32_t{m.segment_dependency0}, std::uint32_t{m.segment_dependency1}}) {
      if (distance == 0) continue;
      const std::uint64_t done = visible(call, state, state.index - distance);
      bytes = std::min(bytes, done - std::min(done, state.done));
    }
    for (const Port& port : state.ports) bytes = std::min<std::uint64_t>(bytes, Rbm::readable(port).size());
    if (state.parts.size() == 1 && write(call, state, bytes) != 0) continue;
    if (write_to_window(call, state, bytes)) continue;
    std::uint64_t segment = call.communicator->segment_bytes;
    if (remote) {
      if (call.communicator->hardware_peers) {
        // A peer that is there has a buffer for each whole segment that it lets come, and none for pieces.
        if (m.remote.kind == RemoteKind::kMessage) {
          segment = call.communicator->longest_segment(state.parts.front().peer, state.bytes);
        }
        segment = std::min(segment, state.bytes - state.done);
        if (bytes < segment) return any;
      } else if (m.log2_segment != 0) {
        segment = std::min(segment, std::max(element, std::uint64_t{1} << m.log2_segment));
      }
      segment -= segment % element;
      bytes = std::min(bytes, lends ? segment * Poe::kMostLent : segment);
    }
    bytes -= bytes % element;
    if (bytes == 0) return any;
    if (lends) {
      if (!lend(call, state, bytes, segment)) return any;
    } else if (as_is) {
      if (!send_as_is(call, state, bytes)) return any;
    } else {
      if (!reserve(call, state, bytes)) return any;
      compute(call, state, bytes);
      commit(call, state, bytes);
    }
    pass(bytes);
  }
  if (m.remote.kind == RemoteKind::kStream) any = send_to_port(call, state) || any;
  if (!state.put_pending) complete(call, state);
  return any;
}

/// The result of a move is there, and goes to a port of a peer. The engine sends it as a message of its own, for no
/// move of the peer takes it. Throws Error if that could not be sent.
bool Dmp::send_to_port(const CallState& call, MoveState& state) {
  PortMessage& message = *to_port_of(call, state);
  if (!state.put_pending) {
    message.communicator = call.communicator->number;
    message.peer = state.move->remote.peer;
    message.port = state.move->remote.port;
    message.dtype = state.move->dtype;
    message.timeout = call.timeout;
    blocks_.streams->to_peers.push_back(to_port_of(call, state));
    state.put_pending = true;
    return true;
  }
  if (!message.ended) return false;
  if (message.code != ErrorCode::kOk) {
    throw Error(message.code, move_name(state) + ", to stream port " + std::to_string(message.port) + " of rank " +
                                  std::to_string(message.peer) + ": " + message.text);
  }
  state.put_pending = false;
  return true;
}

bool Dmp::advance_empty(CallState& call, MoveState& state) {
  bool ready = has_turn(call, state.in) && has_turn(call, state.out);
  for (Part& part : state.parts) ready = secure(call, state, part).has_value() && ready;
  for (const Port& port : state.ports) ready = ready && (port.arrived || port.remote_memory);
  if (!ready || (!state.parts.empty() && !reserve(call, state, 0))) return false;
  if (!state.parts.empty()) commit(call, state, 0);
  for (Port& port : state.ports) {
    if (port.state != Port::State::kDone) blocks_.rbm->finish(call, port);
  }
  complete(call, state);
  return true;
}

void Dmp::complete(CallState& call, MoveState& state) {
  for (StreamAccess* access : {&state.in, &state.out}) {
    if (access->queue != nullptr) ++call.streams->use(access->side, access->port).done;
    *access = {};
  }
  for (const Part& part : state.parts) {
    Pair& pair = call.pairs[part.peer];
    if (call.communicator->hardware_peers ? !part.eager : pair.grant.ordinal == part.ordinal) {
      pair.grant = std::exchange(pair.next_grant, {});
    }
    end_ordinal(part.ordinal, pair.sends_done, pair.sends_skipped);
  }
  state.parts.clear();
  state.state = MoveState::State::kComplete;
}

bool Dmp::step(CallState& call) {
  const std::uint32_t size = call.program->move_count;
  bool any = false;
  for (bool worked = true; worked;) {
    worked = false;
    while (call.entered < size && call.entered - call.retired < kWindow) {
      enter(call);
      worked = true;
    }
    for (std::uint32_t index = call.retired; index < call.entered; ++index) {
      MoveState& state = call.move(index);
      if (state.state == MoveState::State::kEntered) worked = try_start(call, state) || worked;
      if (state.state == MoveState::State::kStarted) worked = advance(call, state) || worked;
    }
    while (call.retired < call.entered && call.move(call.retired).state == MoveState::State::kComplete) {
      ++call.retired;
      worked = true;
    }
    any = any || worked;
  }
  return any;
}

bool Dmp::awaits_anybody(const CallState& call) {
  if (!call.wanted.any_source) return false;
  if (call.watched) return call.lane_anybody;
  return call.transfer ? call.transfer->of_anybody() : !call.matched;
}

std::string Dmp::awaited_message(const CallState& call) {
  std::string text = "waits for a message (";
  text += call.wanted.any_tag ? std::string("any tag") : "tag " + std::to_string(call.wanted.tag);
  return text + (call.wanted.any_source ? ") from any source" : ") of rank " + std::to_string(call.wanted.source));
}

void Dmp::waiting_for(const CallState& call, const std::function<void(std::uint32_t, const std::string&)>& report) {
  if (call.watched) {
    for (const std::uint32_t rank : call.lane_awaited) {
      report(rank, std::string(call.lane_phase) + " (rank " + std::to_string(rank) + ")");
    }
    return;
  }
  if (awaits_anybody(call)) {
    const Communicator& communicator = *call.communicator;
    for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
      if (rank != communicator.rank || communicator.size == 1) report(rank, awaited_message(call));
    }
    return;
  }
  if (call.probe) {
    report(call.wanted.source, awaited_message(call));
    return;
  }
  if (call.kernel) {
    const std::vector<std::uint32_t> ranks = call.kernel->awaits();
    for (const std::uint32_t rank : ranks) report(rank, call.kernel->waits());
    return;
  }
  if (call.transfer) {
    report(call.transfer->peer,
           call.transfer->sends
               ? "waits for rank " + std::to_string(call.transfer->peer) + " to take what was sent to it"
           : call.wanted.exact() ? awaited_message(call)
                                 : "waits for a message of rank " + std::to_string(call.transfer->peer));
    return;
  }
  if (call.lane) {
    call.communicator->fast_path->for_each_awaited(*call.lane, [&](std::uint32_t rank) {
      report(rank, "waits for a message of rank " + std::to_string(rank) + ", or for it to take one");
    });
    return;
  }
  for (std::uint32_t index = call.retired; index < call.entered; ++index) {
    const MoveState& state = call.window[index % kWindow];
    if (state.state != MoveState::State::kStarted) continue;
    const std::string move = move_name(state) + " of " + std::to_string(call.program->move_count);
    for (const Port& port : state.ports) {
      if (port.state == Port::State::kTurn || port.state == Port::State::kDone) continue;
      if (port.arrived && port.received == port.total) continue;
      const std::string what = port.remote_memory ? "the window"
                               : call.space == CallState::Space::kPointToPoint
                                   ? "a message (tag " + std::to_string(call.tag) + ")"
                                   : "a message (step tag " + std::to_string(state.move->arrival.tag) + ")";
      std::string text = move + " waits for " + what + " of rank " + std::to_string(port.peer);
      if (port.arrived) {
        text +=
            ", of which " + std::to_string(port.received) + " of " + std::to_string(port.total) + " bytes have come";
      }
      report(port.peer, text);
    }
    for (const Part& part : state.parts) {
      const Pair& pair = *call.pairs.find(part.peer);
      if (part.ordinal != pair.sends_done) continue;
      const bool small = state.bytes <= call.communicator->agreed.eager_limit;
      const bool asks = small || call.space == CallState::Space::kPointToPoint;
      if (!part.eager && !(granted(*call.communicator, pair, part, asks) && pair.grant.limit > state.done)) {
        report(part.peer, move + " waits for rank " + std::to_string(part.peer) + " to grant " +
                              std::to_string(state.bytes - state.done) + " bytes");
      } else if (std::all_of(state.ports.begin(), state.ports.end(), [&](const Port& port) {
                   return port.arrived && (port.received == port.total || port.received > state.done);
                 })) {
        report(part.peer, move + " waits for rank " + std::to_string(part.peer) + " to take what was sent to it");
      }
    }
    if (state.put_pending && state.move->remote.kind == RemoteKind::kStream) {
      report(state.move->remote.peer, move + " waits for rank " + std::to_string(state.move->remote.peer) +
                                          " to take what was sent to its stream port " +
                                          std::to_string(state.move->remote.port));
    } else if (state.put_pending) {
      report(state.move->remote.peer,
             move + " waits for rank " + std::to_string(state.move->remote.peer) +
                 (state.way == MoveState::Way::kAsked ? " to show its window for a put" : " to acknowledge a put"));
    }
  }
}

}  // namespace unisono::cclo
