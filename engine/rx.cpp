#include "engine/rx.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/text.hpp"
#include "engine/call_queue.hpp"
#include "engine/communicators.hpp"
#include "engine/consensus.hpp"
#include "engine/counters.hpp"
#include "engine/dmp.hpp"
#include "engine/rbm.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// Messages of one lane taken before the next peer has its turn.
constexpr int kBurst = 32;

bool inside(const Binding& window, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= window.bytes && bytes <= window.bytes - offset;
}

/// Where a grant lets this rank write past the peer's engine: its payload, if there is one.
Reach reach_in(std::uint32_t peer, std::span<const std::byte> payload) {
  Reach reach;
  if (payload.size() == sizeof reach) {
    std::memcpy(&reach, payload.data(), sizeof reach);
  } else if (!payload.empty()) {
    throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " sent a grant of " +
                                                std::to_string(payload.size()) + " payload bytes; it has " +
                                                std::to_string(sizeof reach) + ", or none");
  }
  return reach;
}

}  // namespace

bool Rx::drain(Look look) {
  const std::uint32_t activity = blocks_.poe->activity();
  if (look == Look::kIfTold && drained_ && activity == drained_at_) return blocks_.communicators->end_broken();
  drained_ = false;
  bool any = false;
  bool all = true;
  const auto take = [&](std::uint32_t endpoint) {
    const int taken = take_from(endpoint);
    any = any || taken != 0;
    all = all && taken < kBurst;
  };
  // The network changes its list while messages are taken, and a handler may come here again.
  if (const auto talkers = blocks_.poe->talkers()) {
    std::vector<std::uint32_t> endpoints = std::move(endpoints_);
    endpoints.assign(talkers->begin(), talkers->end());
    for (const std::uint32_t endpoint : endpoints) take(endpoint);
    endpoints_ = std::move(endpoints);
  } else {
    for (std::uint32_t endpoint = 0; endpoint < blocks_.poe->size(); ++endpoint) take(endpoint);
  }
  drained_ = all;
  drained_at_ = activity;
  return blocks_.communicators->end_broken() || any;
}

int Rx::take_from(std::uint32_t endpoint) {
  if (blocks_.communicators->broken(endpoint)) return 0;
  int most = 0;
  Incoming incoming;
  try {
    for (const Lane lane : {Lane::kControl, Lane::kData}) {
      int taken = 0;
      while (taken < kBurst && blocks_.poe->peek(endpoint, lane, incoming)) {
        dispatch(endpoint, incoming);
        blocks_.poe->release(endpoint, lane);
        most = std::max(most, ++taken);
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptMessage) throw;
    blocks_.communicators->broke(endpoint, error.what());
  }
  return most;
}

void Rx::dispatch(std::uint32_t endpoint, const Incoming& incoming) {
  const Header& header = incoming.header;
  if (header.magic != kMagic || header.version != kWireVersion || header.segment_bytes != incoming.payload.size()) {
    throw Error(ErrorCode::kCorruptMessage,
                "a message of " + blocks_.poe->describe(endpoint) + " has magic " + std::to_string(header.magic) +
                    ", version " + std::to_string(header.version) + " and " + std::to_string(header.segment_bytes) +
                    " bytes in a payload of " + std::to_string(incoming.payload.size()));
  }
  Communicator* communicator = blocks_.communicators->find(header.communicator, header.epoch);
  if (communicator == nullptr) {
    blocks_.communicators->hold(endpoint, incoming);
    return;
  }
  const bool member = header.source < communicator->peers.endpoints().size() &&
                      header.destination == communicator->rank &&
                      communicator->peers.endpoint(header.source) == endpoint;
  if (!member) {
    const std::string text = blocks_.poe->describe(endpoint) + " sent a message of rank " +
                             std::to_string(header.source) + " to rank " + std::to_string(header.destination) +
                             ", which are not the two ends' ranks";
    blocks_.communicators->revoke(*communicator, ErrorCode::kCorruptMessage, text, true);
    return;
  }
  accept(*communicator, incoming);
}

void Rx::count(const Incoming& incoming) {
  blocks_.counters->count(NativeCounter::kSegmentsReceived);
  blocks_.counters->count(NativeCounter::kBytesReceived, incoming.payload.size());
}

void Rx::accept(Communicator& communicator, const Incoming& incoming) {
  const Header& header = incoming.header;
  const std::uint32_t peer = header.source;
  communicator.peers[peer].credits += header.credits;
  if (header.type == MessageType::kControl && header.tag == static_cast<std::uint32_t>(Control::kAgree)) {
    blocks_.communicators->consensus(communicator).on_word(peer, header, incoming.payload);
    return;
  }
  if (communicator.revoked) return;
  try {
    switch (header.type) {
      case MessageType::kEager:
        count(incoming);
        blocks_.rbm->on_eager(communicator, peer, incoming);
        break;
      case MessageType::kWrite:
        count(incoming);
        if (header.token_slot == kWindowSlot) {
          on_put(communicator, peer, incoming);
        } else {
          blocks_.rbm->on_write(communicator, peer, incoming);
        }
        break;
      case MessageType::kRequest:
        if (header.token_slot == kWindowSlot) {
          on_put_request(communicator, peer, header);
        } else {
          blocks_.rbm->on_request(communicator, peer, header);
        }
        break;
      case MessageType::kGrant:
        if (header.token_slot == kWindowSlot) {
          on_put_grant(communicator, peer, header, reach_in(peer, incoming.payload));
        } else {
          blocks_.rbm->on_grant(communicator, peer, header, reach_in(peer, incoming.payload));
        }
        break;
      case MessageType::kDone:
        blocks_.counters->count(NativeCounter::kSegmentsReceived);
        if (header.token_slot == kWindowSlot) {
          on_put_written(communicator, peer, header);
        } else {
          blocks_.rbm->on_done(communicator, peer, header);
        }
        break;
      case MessageType::kCredit:
        break;
      case MessageType::kControl:
        on_control(communicator, peer, incoming);
        break;
      default:
        throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " sent a message of type " +
                                                    name_of(header.type) + ", which this engine does not take");
    }
  } catch (const Error& error) {
    blocks_.communicators->revoke(communicator, error.code(), error.what(), true);
  } catch (const std::bad_alloc&) {
    blocks_.communicators->revoke(communicator, ErrorCode::kOutOfMemory,
                                  "a message of rank " + std::to_string(peer) + " found no memory", true);
  }
}

void Rx::on_control(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  const std::string text(reinterpret_cast<const char*>(incoming.payload.data()), incoming.payload.size());
  switch (static_cast<Control>(header.tag)) {
    case Control::kRevoke:
      // That a member has died is the reason on every rank.
      // So is a mismatch everybody's. Other errors are the reporting rank's own.
      {
        const ErrorCode code = error_code(header.token_generation);
        const bool shared = code == ErrorCode::kPeerDead || code == ErrorCode::kMismatchedCall;
        blocks_.communicators->revoke(communicator, shared ? code : ErrorCode::kRevoked,
                                      header.offset == 0 ? "rank " + std::to_string(peer) + " reported: " + text : text,
                                      false);
      }
      break;
    case Control::kReject: {
      CallState* call = CallQueue::find_send(communicator, peer, header.sequence);
      if (call != nullptr) {
        blocks_.calls->fail(*call, error_code(header.token_generation),
                            "rank " + std::to_string(peer) + " refused it: " + text, false);
      }
      break;
    }
    case Control::kGet:
      on_get(communicator, peer, incoming);
      break;
    case Control::kGetMore:
      for (GetJob& job : communicator.gets) {
        if (job.peer == peer && job.token_slot == header.token_slot &&
            job.token_generation == header.token_generation) {
          job.limit = std::min(job.total, header.message_bytes);
        }
      }
      break;
    case Control::kGetFailed:
      blocks_.rbm->on_get_failed(communicator, peer, header, text);
      break;
    case Control::kPutDone:
      on_put_done(communicator, peer, header, text);
      break;
    case Control::kProbe: {
      const bool entered = static_cast<std::int32_t>(header.sequence - communicator.order->next()) < 0;
      if (!entered) break;
      Header answer = blocks_.tx->header(communicator, peer, MessageType::kControl);
      answer.tag = static_cast<std::uint32_t>(Control::kEntered);
      answer.sequence = header.sequence;
      blocks_.tx->control(communicator, peer, answer);
      break;
    }
    case Control::kEntered: {
      CallState* call = CallQueue::find(communicator, header.sequence);
      if (call != nullptr) call->pairs[peer].heard = true;
      break;
    }
    case Control::kMismatch:
      blocks_.calls->on_mismatch(communicator, peer, header, text);
      break;
    default:
      throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " sent a control message of kind " +
                                                  std::to_string(header.tag) + "; known are 1 to 10");
  }
}

// ------------------------------------------------------------------------------------------- the window

std::string Rx::outside(const Communicator& communicator, const std::string& what) {
  const std::string window = communicator.window.data == nullptr
                                 ? "which has no window bound"
                                 : "whose window has " + std::to_string(communicator.window.bytes) + " bytes";
  return what + " of the window of rank " + std::to_string(communicator.rank) + ", " + window;
}

std::string Rx::outside(const Communicator& communicator, std::uint64_t offset, std::uint64_t bytes) {
  return outside(communicator, std::to_string(bytes) + " bytes at byte " + std::to_string(offset));
}

void Rx::on_put(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  const std::uint64_t bytes = incoming.payload.size();
  // All of a put is written or nothing: each segment says where the put ends.
  const bool fits = header.message_bytes >= header.offset && bytes <= header.message_bytes - header.offset &&
                    inside(communicator.window, 0, header.message_bytes);
  if (fits && bytes != 0) std::memcpy(communicator.window.data + header.offset, incoming.payload.data(), bytes);
  if (const auto shown = shown_for(communicator, peer, header.sequence); fits && shown != communicator.shown.end()) {
    shown->written = shown->total - (header.message_bytes - header.offset - bytes);
  }
  if (!header.last) return;
  end_put(communicator, peer, header.sequence, fits ? ErrorCode::kOk : ErrorCode::kBufferTooSmall,
          fits ? "" : outside(communicator, "bytes up to byte " + std::to_string(header.message_bytes)));
}

std::vector<ShownWindow>::iterator Rx::shown_for(Communicator& communicator, std::uint32_t peer,
                                                 std::uint32_t operation) {
  return std::find_if(communicator.shown.begin(), communicator.shown.end(),
                      [&](const ShownWindow& window) { return window.peer == peer && window.operation == operation; });
}

/// The last byte of a put has come, in whatever way.
void Rx::end_put(Communicator& communicator, std::uint32_t peer, std::uint32_t operation, ErrorCode code,
                 std::string_view text) {
  const auto found = shown_for(communicator, peer, operation);
  if (found != communicator.shown.end()) {
    // What the peer has sent by messages instead, it has sent after what it had written.
    blocks_.poe->hide(communicator.peers.endpoint(peer), found->reach, true);
    communicator.shown.erase(found);
  }
  Header answer = blocks_.tx->header(communicator, peer, MessageType::kControl);
  answer.tag = static_cast<std::uint32_t>(Control::kPutDone);
  answer.sequence = operation;
  answer.token_generation = static_cast<std::uint16_t>(code);
  blocks_.tx->control(communicator, peer, answer, text);
}

void Rx::on_put_request(Communicator& communicator, std::uint32_t peer, const Header& header) {
  blocks_.counters->count(NativeCounter::kRequestsReceived);
  if (shown_for(communicator, peer, header.sequence) != communicator.shown.end()) {
    throw Error(ErrorCode::kCorruptMessage, formatted("rank {} asked for the window of a put twice", peer));
  }
  const std::uint32_t endpoint = communicator.peers.endpoint(peer);
  std::optional<Reach> reach;
  // A put that does not fit goes by messages: the answer to the first one says what is wrong.
  if (header.message_bytes != 0 && inside(communicator.window, header.offset, header.message_bytes) &&
      blocks_.poe->takes_writes(endpoint)) {
    reach = blocks_.poe->show(endpoint, {communicator.window.data + header.offset, header.message_bytes});
  }
  if (reach) communicator.shown.push_back({peer, header.sequence, header.message_bytes, 0, *reach});
  blocks_.tx->show_window(communicator, peer, header.sequence, reach.value_or(Reach{}));
}

void Rx::on_put_grant(Communicator& communicator, std::uint32_t peer, const Header& header, const Reach& reach) {
  for (const PutOperation& put : communicator.puts) {
    if (put.operation != header.sequence || put.move->move->remote.peer != peer) continue;
    if (put.move->way != MoveState::Way::kAsked) break;
    put.move->window = reach;
    put.move->way = reach.bytes == put.move->bytes ? MoveState::Way::kWrites : MoveState::Way::kMessages;
  }
}

void Rx::on_put_written(Communicator& communicator, std::uint32_t peer, const Header& header) {
  const auto window = shown_for(communicator, peer, header.sequence);
  if (window == communicator.shown.end()) return;  // another one was bound meanwhile
  if (header.offset <= window->written || header.offset > window->total) {
    throw Error(ErrorCode::kCorruptMessage,
                formatted("rank {} has written {} bytes of a put, of which {} of {} had come", peer, header.offset,
                          window->written, window->total));
  }
  blocks_.counters->count(NativeCounter::kBytesReceived, header.offset - window->written);
  window->written = header.offset;
  if (window->written == window->total) end_put(communicator, peer, header.sequence, ErrorCode::kOk, "");
}

bool Rx::close_window(Communicator& communicator, bool tells) {
  constexpr const char* kOther = "the window was bound anew";
  bool settles = false;
  std::erase_if(communicator.gets, [&](const GetJob& job) {
    // What goes by messages is copied: it ends with the communicator, or finds itself in the window that is bound.
    if (job.write == 0) return !tells;
    blocks_.poe->withdraw(communicator.peers.endpoint(job.peer), job.write);
    settles = true;
    if (tells) {
      Header header;
      header.token_slot = job.token_slot;
      header.token_generation = job.token_generation;
      refuse_get(communicator, job.peer, header, kOther);
    }
    return true;
  });
  for (const ShownWindow& window : std::exchange(communicator.shown, {})) {
    blocks_.poe->hide(communicator.peers.endpoint(window.peer), window.reach, false);
    settles = true;
    if (tells) end_put(communicator, window.peer, window.operation, ErrorCode::kBufferTooSmall, kOther);
  }
  return settles;
}

void Rx::on_put_done(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text) {
  auto& puts = communicator.puts;
  const auto put =
      std::find_if(puts.begin(), puts.end(), [&](const PutOperation& p) { return p.operation == header.sequence; });
  if (put == puts.end() || put->move->move->remote.peer != peer) return;  // its call has ended
  CallState& call = *put->call;
  MoveState& move = *put->move;
  puts.erase(put);
  if (header.token_generation != static_cast<std::uint16_t>(ErrorCode::kOk)) {
    blocks_.calls->fail(call, error_code(header.token_generation),
                        "rank " + std::to_string(peer) + " refused it: " + text, false);
    return;
  }
  move.put_pending = false;
}

void Rx::refuse_get(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text) {
  Header answer = blocks_.tx->header(communicator, peer, MessageType::kControl);
  answer.tag = static_cast<std::uint32_t>(Control::kGetFailed);
  answer.token_slot = header.token_slot;
  answer.token_generation = header.token_generation;
  answer.offset = static_cast<std::uint64_t>(ErrorCode::kBufferTooSmall);
  blocks_.tx->control(communicator, peer, answer, "rank " + std::to_string(communicator.rank) + " refused it: " + text);
}

void Rx::on_get(Communicator& communicator, std::uint32_t peer, const Incoming& incoming) {
  const Header& header = incoming.header;
  GetJob job;
  // Without a limit all of it may come at once.
  job.limit = header.message_bytes;
  const std::size_t length = incoming.payload.size();
  if (length != 0 && length != sizeof job.limit && length != sizeof job.limit + sizeof job.reach) {
    throw Error(ErrorCode::kCorruptMessage, "rank " + std::to_string(peer) + " sent a get of " +
                                                std::to_string(length) + " payload bytes; it has 32, 8, or none");
  }
  if (length != 0) std::memcpy(&job.limit, incoming.payload.data(), sizeof job.limit);
  if (length > sizeof job.limit) {
    std::memcpy(&job.reach, incoming.payload.data() + sizeof job.limit, sizeof job.reach);
  }
  if (!inside(communicator.window, header.offset, header.message_bytes)) {
    refuse_get(communicator, peer, header, outside(communicator, header.offset, header.message_bytes));
    return;
  }
  job.peer = peer;
  job.token_slot = header.token_slot;
  job.token_generation = header.token_generation;
  job.dtype = header.dtype;
  job.offset = header.offset;
  job.total = header.message_bytes;
  job.limit = std::min(job.limit, job.total);
  communicator.gets.push_back(job);
}

bool Rx::write_piece(Communicator& communicator, GetJob& job) {
  if (!job.reach) return false;
  // A ring is written by halves, as other messages are.
  const std::uint64_t at = job.sent % job.reach.bytes;
  std::uint64_t bytes = std::min({job.limit - job.sent, job.reach.bytes - at, kLongestWrite});
  if (job.reach.bytes < job.total) bytes = std::min(bytes, std::max(kWorthWriting, job.reach.bytes / 2));
  bytes -= bytes % std::max<std::uint64_t>(1, bytes_of(job.dtype));
  if (bytes < kWorthWriting || !inside(communicator.window, job.offset + job.sent, bytes)) return false;
  Header done = blocks_.tx->header(communicator, job.peer, MessageType::kDone);
  done.token_slot = job.token_slot;
  done.token_generation = job.token_generation;
  done.dtype = job.dtype;
  done.first = job.sent == 0;
  done.last = job.sent + bytes == job.total;
  done.message_bytes = job.total;
  done.offset = job.sent + bytes;
  const std::byte* const from = communicator.window.data + job.offset + job.sent;
  if (!blocks_.tx->write(communicator, job.peer, done, job.reach, at, {from, bytes}, job.write)) return false;
  job.lent = bytes;
  return true;
}

bool Rx::serve(Communicator& communicator) {
  bool any = false;
  for (std::size_t i = 0; i < communicator.gets.size();) {
    GetJob& job = communicator.gets[i];
    const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(job.dtype));
    bool refused = false;
    while (job.sent < job.limit) {
      if (job.lent != 0) {
        if (!blocks_.poe->done(communicator.peers.endpoint(job.peer), job.write)) break;
        job.write = 0;
        job.sent += std::exchange(job.lent, 0);
        any = true;
        continue;
      }
      if (write_piece(communicator, job)) {
        any = true;
        continue;
      }
      std::uint64_t bytes = std::min<std::uint64_t>(job.limit - job.sent, communicator.segment_bytes);
      bytes -= bytes % element;
      if (bytes == 0) break;
      Header header = blocks_.tx->header(communicator, job.peer, MessageType::kWrite);
      header.token_slot = job.token_slot;
      header.token_generation = job.token_generation;
      // The window may have been bound anew since the last segment.
      refused = !inside(communicator.window, job.offset + job.sent, bytes);
      if (refused) {
        refuse_get(communicator, job.peer, header, outside(communicator, job.offset + job.sent, bytes));
        break;
      }
      std::byte* space = blocks_.tx->reserve(communicator, job.peer, bytes);
      if (space == nullptr) break;
      std::memcpy(space, communicator.window.data + job.offset + job.sent, bytes);
      header.dtype = job.dtype;
      header.first = job.sent == 0;
      header.last = job.sent + bytes == job.total;
      header.segment_bytes = static_cast<std::uint32_t>(bytes);
      header.message_bytes = job.total;
      header.offset = job.sent;
      blocks_.tx->commit(communicator, job.peer, header);
      job.sent += bytes;
      any = true;
    }
    if (refused || job.sent == job.total) {
      communicator.gets.erase(communicator.gets.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return any;
}

}  // namespace unisono::cclo
