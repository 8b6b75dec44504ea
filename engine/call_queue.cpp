#include "engine/call_queue.hpp"

#include <algorithm>

#include "core/footprint.hpp"
#include "core/text.hpp"
#include "core/user_op.hpp"
#include "engine/communicators.hpp"
#include "engine/counters.hpp"
#include "engine/dmp.hpp"
#include "engine/fast_path.hpp"
#include "engine/flight_report.hpp"
#include "engine/kernel_run.hpp"
#include "engine/rbm.hpp"
#include "engine/recorded_exchange.hpp"

namespace unisono::cclo {
namespace {

/// Words of params up to which their memory is kept for a later call. An alltoallv has four for each rank.
constexpr std::size_t kMostKeptWords = 1024;

}  // namespace

CallState::CallState() = default;
CallState::~CallState() = default;

// ------------------------------------------------------------------------------------------- numbering

CallState& CallQueue::create() {
  if (free_records_.empty()) {
    if (records_.size() == std::size_t{1} << kSlotBits) {
      throw Error(ErrorCode::kCapacity,
                  std::to_string(records_.size()) + " calls were submitted and not forgotten; that is the limit");
    }
    records_.emplace_back();
    free_records_.push_back(static_cast<std::uint32_t>(records_.size() - 1));
  }
  if (free_calls_.empty()) {
    storage_.push_back(std::make_unique<CallState>());
    free_calls_.push_back(storage_.back().get());
  }
  CallState& call = *free_calls_.back();
  free_calls_.pop_back();
  const std::uint32_t slot = free_records_.back();
  free_records_.pop_back();
  Record& entry = records_[slot];
  entry.id = (++counter_ << kSlotBits) | slot;
  entry.call = &call;
  entry.result = CallResult{};
  entry.listeners.clear();

  call.id = entry.id;
  call.communicator = nullptr;
  call.algorithm = nullptr;
  call.plan.reset();
  call.program.reset();
  call.regions = {};
  call.wait_for.clear();
  call.streams.reset();
  call.hooks.reset();
  call.kernel.reset();
  call.sequence = call.signature = call.tag = 0;
  call.operation = nullptr;
  call.announced = false;
  call.started = call.probed = call.finished = call.mismatch_waits = call.watched = false;
  call.wanted = {};
  call.probe = call.matched = call.lane_anybody = false;
  call.status = {};
  if (call.lane) call.spare_lane = std::move(call.lane);
  call.transfer.reset();
  call.lane_phase = "";
  call.lane_awaited.clear();
  call.entered = call.retired = 0;
  call.received_bytes = call.window_offset = call.window_done = 0;
  call.post_scale = 1;
  call.reaches_window = false;
  call.compare_next = {};
  call.ended_elsewhere = CallState::kNobody;
  return call;
}

void CallQueue::abandon(CallState& call) {
  free_records_.push_back(static_cast<std::uint32_t>(call.id & ((CallId{1} << kSlotBits) - 1)));
  record(call.id).id = 0;
  call.plan.reset();
  free_calls_.push_back(&call);
}

void CallQueue::submit(CallState& call) {
  Communicator& communicator = *call.communicator;
  enter(call);
  if (call.streams) {
    for (const CallStreams::Use& use : call.streams->uses) blocks_.streams->join(use.side, use.port, call.id);
  }
  blocks_.counters->count(NativeCounter::kCallsQueued);
  if (call.space != CallState::Space::kCollective) {
    begin_record(call);
    return;
  }
  std::uint32_t digest = 0;
  if (call.lane) {
    communicator.fast_path->enqueue(*call.lane);
    call.sequence = call.lane->sequence;
  } else {
    const CallOrder::Place place = communicator.order->enter(call.signature);
    call.sequence = place.sequence;
    digest = place.digest;
  }
  begin_record(call);
  // Messages show that all calls before were the same, too. Engines in hardware know the call alone.
  if (!call.lane && !communicator.hardware_peers) call.signature = digest;
  communicator.history[call.sequence % communicator.history.size()] = {
      true, call.sequence, call.call, call.algorithm, call.signature, call.operation, call.post_scale};
  guard(call, [&] { blocks_.rbm->adopt(call); });
}

void CallQueue::take_lane(CallState& call, const LaneLaunch& launch) {
  call.lane = call.spare_lane ? std::move(call.spare_lane) : std::make_unique<LaneCall>();
  call.lane->plan = call.plan.get();
  call.lane->launch = launch;
}

void CallQueue::submit_at_once(CallState& call) {
  Communicator& communicator = *call.communicator;
  blocks_.counters->count(NativeCounter::kCallsQueued);
  call.started = true;
  communicator.fast_path->enqueue(*call.lane);
  call.sequence = call.lane->sequence;
  call.mark = communicator.recorder->begin(call.plan->record, call.sequence);
  communicator.recorder->set_algorithm(call.mark, call.plan->plain.recorded());
  const auto goes_on = [&] {
    enter(call);
    guard(call, [&] { blocks_.rbm->adopt(call); });
  };
  try {
    communicator.fast_path->step(*call.lane);
  } catch (const LaneFault& fault) {
    goes_on();
    guard(call, [&] { lane_fault(call, fault); });
    return;
  } catch (const Error& error) {
    goes_on();
    fail(call, error.code(), error.what());
    return;
  } catch (const std::bad_alloc&) {
    goes_on();
    fail(call, ErrorCode::kOutOfMemory, "no memory was left for it");
    return;
  }
  if (call.lane->phase != LaneCall::Phase::kDone) {
    goes_on();
    return;
  }
  // Nobody has seen it in flight.
  communicator.recorder->end(call.mark, RecordedState::kEnded);
  Record& entry = record(call.id);
  entry.call = nullptr;
  entry.result.complete = true;
  call.finished = true;
  call.plan.reset();
  free_calls_.push_back(&call);
}

bool CallQueue::take(CallId id, CallResult& result) {
  if (!this->result(id).complete) return false;
  Record& entry = record(id);
  if (entry.id != id) {
    result = forgotten_;
    return true;
  }
  result = std::move(entry.result);
  entry.id = 0;
  free_records_.push_back(static_cast<std::uint32_t>(id & ((CallId{1} << kSlotBits) - 1)));
  return true;
}

void CallQueue::begin_record(CallState& call) {
  CallRecorder& recorder = *call.communicator->recorder;
  const bool collective = call.space == CallState::Space::kCollective;
  const std::uint64_t kind = collective                                      ? 0
                             : call.space == CallState::Space::kPointToPoint ? kRecordedPointToPoint
                                                                             : kRecordedLocal;
  const std::uint64_t flags = kind | record_flags(call.wanted) | (call.probe ? kRecordedProbe : 0);
  RecordEntry entry = RecordEntry::of(call.call, collective ? call.signature : call.tag, flags, call.post_scale);
  if (call.call.collective == Collective::kProgram) {
    entry.peer = std::uint64_t{call.signature} << 32U | recorded_exchange(call.operation);
  }
  call.mark = recorder.begin(entry, call.sequence);
  recorder.set_algorithm(call.mark, entry.algorithm | LastNumber::of(call.algorithm, false));
}

void CallQueue::watch(CallState& call) {
  call.watched = true;
  call.started = true;
  enter(call);
  call.communicator->history[call.sequence % call.communicator->history.size()] = {
      true, call.sequence, call.call, call.algorithm, 0, nullptr, call.post_scale};
  guard(call, [&] { blocks_.rbm->adopt(call); });
}

void CallQueue::complete(CallId id) {
  CallState* call = in_flight(id);
  if (call != nullptr) finish(*call, ErrorCode::kOk, {});
  sweep();
}

void CallQueue::lane_fault(CallState& call, const LaneFault& fault) {
  if (fault.mismatch) {
    mismatch(call, fault.peer);
    return;
  }
  if (!fault.refused.empty()) {
    fail(call, ErrorCode::kUnsupported, fault.refused);
    return;
  }
  if (counts_by_rank(call) && fault.came != fault.awaited) {
    fail(call, ErrorCode::kMismatchedCall, counts_text(call, fault.peer, fault.came, fault.awaited));
    return;
  }
  fail(call, ErrorCode::kCorruptMessage,
       "what rank " + std::to_string(fault.peer) + " put into shared memory is no message of this call");
}

void CallQueue::enter(CallState& call) {
  Communicator& communicator = *call.communicator;
  active_.push_back(&call);
  communicator.calls.push_back(&call);
  call.pairs.clear();
}

bool CallQueue::known(CallId id) const {
  const CallId slot = id & ((CallId{1} << kSlotBits) - 1);
  return id >> kSlotBits != 0 && id >> kSlotBits <= counter_ && slot < records_.size();
}

const CallResult& CallQueue::result(CallId id) const {
  if (!known(id)) throw Error(ErrorCode::kInvalidArgument, "no call of this endpoint has number " + std::to_string(id));
  const Record& entry = record(id);
  return entry.id == id ? entry.result : forgotten_;
}

void CallQueue::forget(CallId id) {
  if (!result(id).complete) {
    throw Error(ErrorCode::kInvalidArgument, "call " + std::to_string(id) + " is in flight; wait for it first");
  }
  if (record(id).id != id) return;
  record(id).id = 0;
  free_records_.push_back(static_cast<std::uint32_t>(id & ((CallId{1} << kSlotBits) - 1)));
}

void CallQueue::when_complete(CallId id, Engine::Listener listener) {
  const CallResult& now = result(id);
  if (now.complete) {
    reports_.emplace_back(std::move(listener), now);
  } else {
    record(id).listeners.push_back(std::move(listener));
  }
}

bool CallQueue::idle() const {
  return std::all_of(active_.begin(), active_.end(),
                     [](const CallState* call) { return call->finished || call->watched; });
}

CallState* CallQueue::find(Communicator& communicator, std::uint32_t sequence) {
  for (CallState* call : communicator.calls) {
    if (call->space == CallState::Space::kCollective && call->sequence == sequence) return call;
  }
  return nullptr;
}

CallState* CallQueue::find_send(Communicator& communicator, std::uint32_t peer, std::uint32_t sequence) {
  for (CallState* call : communicator.calls) {
    if (call->call.collective == Collective::kSend && call->started && call->call.root == peer &&
        call->sequence == sequence) {
      return call;
    }
  }
  return nullptr;
}

// -------------------------------------------------------------------------------------------- progress

bool CallQueue::is_one_sided(const CallState& call) {
  return call.call.collective == Collective::kPut || call.call.collective == Collective::kGet;
}

WindowAccess CallQueue::access_of(const CallState& call) {
  const bool stores = call.call.collective == Collective::kPut;
  return {stores, call.call.root, call.window_offset,
          call.regions[static_cast<std::size_t>(stores ? Region::kSrc : Region::kDst)].data,
          call.call.count * bytes_of(call.call.dtype)};
}

bool CallQueue::ready(CallState& call) {
  for (const CallId id : call.wait_for) {
    const CallResult& before = result(id);
    if (!before.complete) return false;
    if (before.code != ErrorCode::kOk) {
      throw Error(before.code, "it follows call " + std::to_string(id) + ", which failed: " + before.message);
    }
  }
  return true;
}

/// Among engines in hardware, point-to-point messages are told apart by the order in which they are announced.
bool CallQueue::in_turn(const CallState& call) {
  const Communicator& communicator = *call.communicator;
  if (!communicator.hardware_peers || call.call.collective != Collective::kSend) return true;
  return std::none_of(communicator.calls.begin(), communicator.calls.end(), [&](const CallState* other) {
    return other->call.collective == Collective::kSend && other->started && !other->announced &&
           other->call.root == call.call.root;
  });
}

bool CallQueue::start(CallState& call) {
  bool starts = false;
  guard(call, [&] { starts = ready(call); });
  if (!starts) return call.finished;
  if (call.streams) {
    const std::uint64_t before = call.streams->moved;
    if (!take_streams(call)) return call.streams->moved != before;
  }
  if (!in_turn(call)) return false;
  if (call.hooks) call.hooks->before();
  if (call.kernel) call.kernel->begin();
  if (call.transfer) call.communicator->fast_path->post_transfer(*call.transfer);
  call.reaches_window =
      call.communicator->fast_path != nullptr && is_one_sided(call) && call.call.count != 0 &&
      blocks_.poe->liveness(call.communicator->peers.endpoint(call.call.root)) == Poe::Liveness::kAlive;
  call.started = true;
  if (call.call.collective == Collective::kSend) {
    call.sequence = call.communicator->peers[call.call.root].next_send++;
  }
  return true;
}

bool CallQueue::progress() {
  ++round_;
  bool any = false;
  for (std::size_t i = 0; i < active_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list may grow
    CallState& call = *active_[i];
    if (call.finished || call.mismatch_waits) continue;
    if (!call.started) any = start(call) || any;
    if (!call.started || call.finished) continue;
    if (call.watched) continue;  // its own thread is at it
    any = advance(call) || any;
  }
  sweep();
  return any;
}

void CallQueue::progress_lanes(const Communicator& communicator) {
  for (std::size_t i = 0; i < active_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list may grow
    CallState& call = *active_[i];
    if (call.communicator != &communicator || !call.lane || !call.started || call.finished) continue;
    if (!call.mismatch_waits) advance(call);
  }
  sweep();
}

void CallQueue::progress_shared(CallState& call) {
  if (call.lane && call.communicator->fast_path->behind(*call.lane)) return progress_lanes(*call.communicator);
  ++round_;
  if (!call.finished) advance(call);
  sweep();
}

bool CallQueue::advance(CallState& call) {
  bool any = false;
  bool complete = false;
  if (call.kernel && call.kernel->declines()) call.kernel.reset();
  if (call.kernel) {
    ErrorCode code = ErrorCode::kOk;
    std::string sentence;
    if (!call.kernel->ended(code, sentence)) return false;
    if (code == ErrorCode::kOk) {
      finish(call, code, {});
    } else {
      fail(call, code, sentence);
    }
    return true;
  }
  if (call.streams && call.streams->gives) {
    const std::uint64_t before = call.streams->moved;
    if (!give_streams(call)) return call.streams->moved != before;
    finish(call, ErrorCode::kOk, {});
    return true;
  }
  if (call.lane) {
    guard(call, [&] {
      try {
        any = call.communicator->fast_path->step(*call.lane);
        complete = call.lane->phase == LaneCall::Phase::kDone;
      } catch (const LaneFault& fault) {
        lane_fault(call, fault);
        any = true;
      } catch (const AccessBanned&) {
        return;  // another rank has failed; its word ends this call
      } catch (const Unreachable&) {
        // Every rank finds this, so nobody waits for anybody, and the communicator stays as it is.
        const Error error = FastPath::unreachable(*call.lane->plan);
        finish(call, error.code(), error.what());
        any = true;
      }
    });
  } else if (call.probe) {
    guard(call, [&] {
      const std::optional<MessageStatus> found = look_for(*call.communicator, call.wanted);
      if (!found) return;
      call.status = *found;
      call.received_bytes = found->bytes;
      complete = true;
    });
  } else if (call.transfer) {
    guard(call, [&] {
      try {
        any = call.communicator->fast_path->step_transfer(*call.transfer, round_);
      } catch (const AccessBanned&) {
        return;  // another rank has failed; its word ends this call
      }
      complete = call.transfer->ended.load(std::memory_order_acquire);
      if (!complete) return;
      call.received_bytes = call.transfer->received;
      call.status = call.transfer->status();
      if (call.transfer->code != ErrorCode::kOk) fail(call, call.transfer->code, call.transfer->text, false);
    });
  } else if (call.reaches_window) {
    const WindowAccess access = access_of(call);
    const std::uint64_t piece = call.communicator->fast_path->windows().reach_piece(access, call.window_done);
    call.window_done += piece;
    call.reaches_window = piece != 0;
    complete = call.window_done == access.bytes;
    any = true;
  } else {
    guard(call, [&] { any = blocks_.dmp->step(call); });
    complete = !call.finished && Dmp::finished(call);
  }
  if (!complete || call.finished) return any;
  if (counts_by_rank(call)) {
    std::optional<std::uint32_t> surplus;
    call.pairs.for_each([&](std::uint32_t peer, const Pair& pair) {
      if (!pair.eager.empty()) surplus = std::min(peer, surplus.value_or(peer));
    });
    if (surplus) {
      fail(call, ErrorCode::kMismatchedCall,
           formatted("rank {} sends a message where this rank awaits none; {}", *surplus, counts_text(call, *surplus)));
      return true;
    }
  }
  if (call.streams && !give_streams(call)) {
    call.streams->gives = true;
    // Whatever comes after it on its lanes goes on.
    if (call.lane) {
      static_cast<void>(call.communicator->fast_path->dequeue(*call.lane));
      call.spare_lane = std::move(call.lane);
    }
    call.transfer.reset();
    return true;
  }
  finish(call, ErrorCode::kOk, {});
  return true;
}

std::optional<MessageStatus> CallQueue::look_for(Communicator& communicator, const Wanted& wanted) {
  if (communicator.fast_path) {
    try {
      return communicator.fast_path->probe(wanted);
    } catch (const AccessBanned&) {
      return std::nullopt;  // another rank has failed; its word ends this call
    }
  }
  const UnexpectedMessage* found = communicator.matcher.find(wanted);
  if (found == nullptr) return std::nullopt;
  const Header& header = static_cast<const Message*>(found)->header;
  return MessageStatus{found->source, found->tag, header.message_bytes, header.dtype};
}

void CallQueue::finish(CallState& call, ErrorCode code, std::string message) {
  Communicator& communicator = *call.communicator;
  std::string note;
  if (call.lane) {
    note = communicator.fast_path->dequeue(*call.lane);
    constexpr std::size_t kKeptScratch = 65536;
    if (call.lane->scratch.size() > kKeptScratch) call.lane->scratch = {};
  }
  if (call.transfer && call.started) note += communicator.fast_path->withdraw_transfer(*call.transfer);
  blocks_.rbm->release(call);
  if (call.streams) leave_streams(call, code, message);
  // What the network still takes from the call's memory it must take now.
  if (code != ErrorCode::kOk) note += settle(communicator, "the call's memory");
  communicator.calls.erase(std::find(communicator.calls.begin(), communicator.calls.end(), &call));
  auto& puts = communicator.puts;
  puts.erase(std::remove_if(puts.begin(), puts.end(), [&](const PutOperation& p) { return p.call == &call; }),
             puts.end());
  communicator.recorder->waits_no_more(call.mark);
  communicator.recorder->end(call.mark, code == ErrorCode::kOk ? RecordedState::kEnded : RecordedState::kFailed);
  if (code != ErrorCode::kOk) blocks_.counters->count(NativeCounter::kCallsFailed);
  if (call.hooks && code == ErrorCode::kOk) call.hooks->after(call.received_bytes);
  call.hooks.reset();
  if (call.kernel) call.kernel->leave();
  call.kernel.reset();
  Record& entry = record(call.id);
  entry.call = nullptr;
  entry.result.code = code;
  entry.result.still_written = !note.empty() && code != ErrorCode::kOk;
  entry.result.message = std::move(message) + note;
  entry.result.received_bytes = call.received_bytes;
  entry.result.status = call.status;
  entry.result.complete = true;
  for (Engine::Listener& listener : entry.listeners) reports_.emplace_back(std::move(listener), entry.result);
  entry.listeners.clear();
  call.finished = true;
  ended_ = true;
  swept_ = false;
}

std::string CallQueue::settle(const Communicator& communicator, const char* memory) {
  const std::optional<std::uint32_t> writes = blocks_.poe->settle();
  blocks_.rbm->settled(!writes);
  if (!writes) return {};
  std::string who = blocks_.poe->describe(*writes);
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (communicator.peers.endpoint(rank) == *writes) who = formatted("rank {}", rank);
  }
  return formatted("; {} has not said that it has stopped: what it was writing may still come to {}", who, memory);
}

void CallQueue::sweep() {
  if (swept_) return;
  swept_ = true;
  active_.erase(std::remove_if(active_.begin(), active_.end(),
                               [&](CallState* call) {
                                 if (call->finished) {
                                   call->plan.reset();
                                   if (call->params.capacity() > kMostKeptWords) {
                                     call->params = std::vector<std::uint64_t>();
                                   }
                                   free_calls_.push_back(call);
                                 }
                                 return call->finished;
                               }),
                active_.end());
}

bool CallQueue::take_ended() {
  const bool ended = ended_;
  ended_ = false;
  return ended;
}

// --------------------------------------------------------------------------------------------- failure

void CallQueue::fail(CallState& call, ErrorCode code, const std::string& what, bool revoke) {
  if (call.finished) return;
  const std::string message = describe(call) + ": " + what;
  Communicator& communicator = *call.communicator;
  const bool shared =
      call.program->messages || call.program->remote_memory || call.space == CallState::Space::kCollective;
  // A receive that took too long a message concerns its sender alone, which has been told.
  // A probe has taken nothing.
  const bool own = call.space == CallState::Space::kPointToPoint &&
                   (call.probe || code == ErrorCode::kTruncated || code == ErrorCode::kMismatchedCall);
  if (code == ErrorCode::kTimeout || code == ErrorCode::kPeerDead) report_failure(*blocks_.poe, message);
  finish(call, code, message);
  // A collective that has ended here in error never ends elsewhere, whichever rank is to blame.
  if ((revoke || call.space == CallState::Space::kCollective) && shared && !own)
    blocks_.communicators->revoke(communicator, ErrorCode::kRevoked, message, true);
}

void CallQueue::fail_all(Communicator& communicator, ErrorCode code, const std::string& what) {
  const std::vector<CallState*> calls = communicator.calls;
  for (CallState* call : calls) {
    const std::string text = describe(*call) + ": ";
    if (call->mismatch_waits) {
      // The peer's own words may be on their way still; those of others name its call too.
      finish(*call, ErrorCode::kMismatchedCall, text + mismatch_text(*call) + " (" + what + ")");
    } else if (code == ErrorCode::kMismatchedCall) {
      finish(*call, code, what);  // which names the call that differs; this one may be right
    } else {
      finish(*call, code, text + (code == ErrorCode::kRevoked ? "the communicator was revoked: " : "") + what);
    }
  }
}

}  // namespace unisono::cclo
