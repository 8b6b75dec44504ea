#include "engine/call_queue.hpp"

#include <algorithm>

#include "core/footprint.hpp"
#include "core/log.hpp"
#include "core/signature.hpp"
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
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// How long a rank that has seen a mismatch waits for the other side to say what it called.
constexpr std::chrono::milliseconds kMismatchPatience{1000};
/// How long a call waits before it looks at the flight records of those that it waits for, and how long between looks.
constexpr std::chrono::milliseconds kComparePatience{100};
/// How long a rank that is asked whether it has entered a call has to answer.
constexpr std::chrono::milliseconds kAnswerPatience{100};
/// Words of params up to which their memory is kept for a later call. An alltoallv has four for each rank.
constexpr std::size_t kMostKeptWords = 1024;
/// Members of a communicator up to which all are asked.
constexpr std::uint32_t kAllAsked = 64;

std::string milliseconds(std::chrono::microseconds time) {
  const auto text = std::to_string(time.count() / 1000);
  return time.count() % 1000 == 0 ? text + " ms" : std::to_string(time.count()) + " us";
}

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

void CallQueue::mismatch(CallState& call, std::uint32_t peer) {
  if (call.finished || call.mismatch_waits || compare(call, peer)) return;
  Communicator& communicator = *call.communicator;
  call.mismatch_peer = peer;
  if (communicator.hardware_peers) {  // which cannot say what they called
    throw Error(ErrorCode::kMismatchedCall, mismatch_text(call));
  }
  if (blocks_.communicators->seen(communicator, peer, call.sequence)) {
    fail(call, ErrorCode::kMismatchedCall, mismatch_text(call));
    return;
  }
  call.mismatch_waits = true;
  call.mismatch_until = blocks_.poe->now() + kMismatchPatience;
  Header header = blocks_.tx->header(call, peer, MessageType::kControl);
  header.tag = static_cast<std::uint32_t>(Control::kMismatch);
  header.offset = 1;
  blocks_.tx->control(communicator, peer, header,
                      arguments(call.call, call.algorithm, call.operation, call.post_scale));
}

/// What is known of a peer whose message is none of this call, once no difference of the two has been seen.
std::string CallQueue::mismatch_text(const CallState& call) const {
  const Communicator& communicator = *call.communicator;
  const std::string own = arguments(call.call, call.algorithm, call.operation, call.post_scale);
  const std::string peer = "rank " + std::to_string(call.mismatch_peer) + " called ";
  if (!communicator.hardware_peers && blocks_.communicators->seen(communicator, call.mismatch_peer, call.sequence)) {
    return peer + own + ", as this rank (" + std::to_string(communicator.rank) + ") did; " + left_over_text(call);
  }
  return peer + "something else; this rank (" + std::to_string(communicator.rank) + ") called " + own;
}

/// Ends the call if this rank's calls and those of a peer are seen to differ, in this call or in one before it.
bool CallQueue::compare(CallState& call, std::uint32_t peer) {
  Communicator& communicator = *call.communicator;
  if (call.space != CallState::Space::kCollective || communicator.hardware_peers) return false;
  const std::optional<CallDifference> differs = blocks_.communicators->difference(communicator, peer);
  if (!differs) return false;
  std::string text = describe(communicator, *differs);
  if (differs->sequence != call.sequence) text += " (found by " + describe(call) + ")";
  finish(call, ErrorCode::kMismatchedCall, text);
  blocks_.communicators->revoke(communicator, ErrorCode::kMismatchedCall, text, true);
  return true;
}

/// A call that has waited for a while looks whether the ranks that it waits for are in the same call.
bool CallQueue::compare_awaited(CallState& call, Clock::time_point now) {
  if (!call.started || call.space != CallState::Space::kCollective || call.mismatch_waits) return false;
  if (now - call.submitted < kComparePatience || now < call.compare_next) return false;
  call.compare_next = now + kComparePatience;
  std::vector<std::uint32_t> awaited;
  Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string&) { awaited.push_back(rank); });
  if (std::any_of(awaited.begin(), awaited.end(), [&](std::uint32_t rank) { return compare(call, rank); })) return true;
  return awaits_in_vain(call, awaited);
}

/// Of a call whose counts the root alone knows, nothing tells that two ranks count differently where one of them has
/// nothing to send: a rank that waits for one that has ended this call waits in vain. What such a rank has sent before
/// can be seen when its record says so, and has been looked at by the next time.
bool CallQueue::awaits_in_vain(CallState& call, std::span<const std::uint32_t> awaited) {
  if (!counts_at_root(call.call.collective) || blocks_.poe->shared_memory() == nullptr) return false;
  const std::uint32_t before = std::exchange(call.ended_elsewhere, CallState::kNobody);
  // The root has the counts of all at the begin of the params, and every other rank shows its own in its record.
  const bool counts = call.communicator->rank == call.call.root && call.params.size() >= call.communicator->size &&
                      records_own_count(call);
  for (const std::uint32_t rank : awaited) {
    const std::optional<SeenCall> seen = blocks_.communicators->seen(*call.communicator, rank, call.sequence);
    if (seen && counts && seen->count != call.params[rank]) {
      fail(call, ErrorCode::kMismatchedCall,
           counts_text(call, rank) + ", and " + std::to_string(call.params[rank]) + " as the root has it");
      return true;
    }
    if (!seen || seen->state != RecordedState::kEnded) continue;
    if (rank == before) {
      fail(call, ErrorCode::kMismatchedCall,
           "rank " + std::to_string(rank) + " has ended this call, in which this rank still waits for it; " +
               counts_text(call, rank));
      return true;
    }
    call.ended_elsewhere = rank;
  }
  return false;
}

void CallQueue::left_over(Communicator& communicator, std::uint32_t peer, const Header& header) {
  const std::uint32_t sequence = header.sequence;
  const PastCall& past = communicator.history[sequence % communicator.history.size()];
  if (communicator.revoked || communicator.hardware_peers || !past.valid || past.sequence != sequence) return;
  // Of another call it is the peer that finds out, or has: it has something to wait for.
  const bool counts = facts_of(past.call.collective).vectors || past.operation != nullptr;
  if (!counts || !signatures_agree(header.signature, past.signature)) return;
  const std::string text = std::string(past.operation != nullptr ? past.operation : name_of(past.call.collective)) +
                           " (" + communicator.title() + ", rank " + std::to_string(communicator.rank) + ", sequence " +
                           std::to_string(sequence) + "): rank " + std::to_string(peer) +
                           " sends a message, and this rank, which has ended the call, awaits none; " +
                           (counts_at_root(past.call.collective)
                                ? "they have given different counts for the block of rank " +
                                      std::to_string(communicator.rank == past.call.root ? peer : communicator.rank)
                                : "the counts that they have given do not agree");
  blocks_.communicators->revoke(communicator, ErrorCode::kMismatchedCall, text, true);
}

bool CallQueue::counts_by_rank(const CallState& call) {
  return facts_of(call.call.collective).vectors || call.operation != nullptr;
}

std::string CallQueue::counts_text(const CallState& call, std::uint32_t peer, std::uint64_t came,
                                   std::uint64_t awaited) const {
  return "rank " + std::to_string(peer) + " sends " + std::to_string(came) + " bytes where this rank awaits " +
         std::to_string(awaited) + "; " + counts_text(call, peer);
}

/// Whether the count in a gatherv's or scatterv's record is that of the rank's own block. An algorithm that needs the
/// sum of all counts has that sum in its call, and so in the record, on every rank alike.
bool CallQueue::records_own_count(const CallState& call) {
  if (call.communicator->hardware_peers) return false;
  Call unknown = call.call;
  unknown.count = kUnknownCount;
  return call.algorithm != nullptr && (call.algorithm->admits == nullptr || call.algorithm->admits(unknown));
}

/// That this rank and a peer count differently; of a gatherv or scatterv, one of them is the root.
std::string CallQueue::counts_text(const CallState& call, std::uint32_t peer) const {
  const std::uint32_t own = call.communicator->rank;
  if (!counts_at_root(call.call.collective)) {
    return "the counts that ranks " + std::to_string(std::min(own, peer)) + " and " +
           std::to_string(std::max(own, peer)) + " have given do not agree";
  }
  const bool at_root = own == call.call.root;
  const std::optional<SeenCall> seen = blocks_.communicators->seen(*call.communicator, peer, call.sequence);
  const std::uint32_t other = at_root ? peer : own;
  std::string text = "rank " + std::to_string(other) + " and the root, rank " + std::to_string(call.call.root) +
                     ", have given different counts for the block of rank " + std::to_string(other);
  if (!records_own_count(call)) return text;
  if (!at_root) return text + ": that of rank " + std::to_string(other) + " is " + std::to_string(call.call.count);
  if (!seen) return text;
  return text + ": that of rank " + std::to_string(other) + " is " + std::to_string(seen->count);
}

/// Why what comes from a rank that called the same is none of this call's.
std::string CallQueue::left_over_text(const CallState& call) {
  return counts_by_rank(call) ? "the counts that they have given, in this call or in one before it, do not agree"
                              : "something of an earlier call was left over: the counts given to it do not agree";
}

bool CallQueue::compare_all(CallState& call) {
  const Communicator& communicator = *call.communicator;
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank != communicator.rank && compare(call, rank)) return true;
  }
  return false;
}

void CallQueue::on_mismatch(Communicator& communicator, std::uint32_t peer, const Header& header,
                            const std::string& text) {
  PastCall past = communicator.history[header.sequence % communicator.history.size()];
  const auto [plan, launched] = communicator.plans->past(header.sequence);
  if (plan != nullptr && !(past.valid && past.sequence == header.sequence)) {
    past = {true, header.sequence, launched, plan->plain.algorithm, 0, nullptr, plan->post_scale};
  }
  const bool made = past.valid && past.sequence == header.sequence;
  const std::string own = made ? arguments(past.call, past.algorithm, past.operation, past.post_scale)
                               : "something that is no longer known";
  const bool entered = static_cast<std::int32_t>(header.sequence - communicator.order->next()) < 0;
  if (header.offset == 1 && entered) {
    Header answer = blocks_.tx->header(communicator, peer, MessageType::kControl);
    answer.tag = static_cast<std::uint32_t>(Control::kMismatch);
    answer.sequence = header.sequence;
    blocks_.tx->control(communicator, peer, answer, own);
  }
  CallState* call = find(communicator, header.sequence);
  if (call == nullptr) return;
  fail(*call, ErrorCode::kMismatchedCall,
       "rank " + std::to_string(peer) + " called " + text + "; this rank (" + std::to_string(communicator.rank) +
           ") called " + own + (text == own ? "; " + left_over_text(*call) : ""));
}

// ------------------------------------------------------------------------------------------------ time

Clock::time_point CallQueue::next_deadline() const {
  Clock::time_point next = Clock::time_point::max();
  for (const CallState* call : active_) {
    next = std::min(next, call->deadline);
    if (call->mismatch_waits) next = std::min(next, call->mismatch_until);
  }
  return next;
}

Clock::time_point CallQueue::next_event(CallId id) {
  const CallState* call = in_flight(id);
  if (call == nullptr) return Clock::time_point::max();
  Clock::time_point next =
      call->probed ? call->deadline : std::min(call->deadline, call->submitted + call->timeout / 2);
  if (call->mismatch_waits) next = std::min(next, call->mismatch_until);
  return next;
}

bool CallQueue::examine(Clock::time_point now) {
  if (++look_ == 0) look_ = 1;
  for (std::size_t i = 0; i < active_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list may grow
    CallState& call = *active_[i];
    if (call.finished) continue;
    if (call.mismatch_waits && now >= call.mismatch_until) {
      fail(call, ErrorCode::kMismatchedCall, mismatch_text(call));
    } else {
      if (!call.probed && now - call.submitted > call.timeout / 2) probe(call, now);
      if (compare_awaited(call, now)) continue;
      if (now >= call.deadline) {
        if (call.streams && call.streams->moved != std::exchange(call.streams->moved_before, call.streams->moved)) {
          call.deadline = now + call.timeout;  // that of a stream bounds how long nothing moves
          continue;
        }
        if (compare_all(call)) continue;
        if (!call.warns) {
          fail(call, ErrorCode::kTimeout, phase(call, "timed out after " + milliseconds(call.timeout)));
          continue;
        }
        const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - call.submitted);
        log(LogLevel::kWarn, describe(call) + ": " + phase(call, "has waited for " + milliseconds(waited)));
        call.deadline = now + call.timeout;
      }
      if (!look_for_dead(call)) record_wait(call, now);
    }
  }
  const bool ended = !swept_;
  sweep();
  return ended;
}

/// Half-way to the deadline every rank is asked whether it has entered, so that the error can say who has not; in large
/// communicators those alone that are waited for, since nobody shall have sessions to thousands. A rank that is asked
/// has time to answer, however short the deadline and however late this is.
void CallQueue::probe(CallState& call, Clock::time_point now) {
  call.probed = true;
  if (call.space != CallState::Space::kCollective || !call.started) return;
  if (call.communicator->hardware_peers) return;  // which do not answer
  call.deadline = std::max(call.deadline, now + kAnswerPatience);
  Communicator& communicator = *call.communicator;
  for (const std::uint32_t peer : asked_of(call)) {
    Header header = blocks_.tx->header(call, peer, MessageType::kControl);
    header.tag = static_cast<std::uint32_t>(Control::kProbe);
    blocks_.tx->control(communicator, peer, header);
  }
}

/// Of whom it is to be found out whether they have entered the call, and is not known.
std::vector<std::uint32_t> CallQueue::asked_of(const CallState& call) {
  std::vector<std::uint32_t> ranks;
  const auto ask = [&](std::uint32_t rank) {
    if (rank != call.communicator->rank && !call.heard(rank)) ranks.push_back(rank);
  };
  if (call.communicator->size <= kAllAsked) {
    for (std::uint32_t rank = 0; rank < call.communicator->size; ++rank) ask(rank);
  } else {
    Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string&) { ask(rank); });
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  return ranks;
}

/// Tells in the flight record what a call waits for. One on the lanes of which a thread takes care tells it itself.
void CallQueue::record_wait(const CallState& call, Clock::time_point now) const {
  constexpr std::chrono::milliseconds kPatience{10};
  if (call.watched || call.finished || now - call.submitted < kPatience) return;
  std::string first = "is to follow another call";
  std::vector<std::uint32_t> awaited;
  if (const std::string kernel = awaited_streams(call); !kernel.empty()) {
    first = kernel;
  } else if (call.started) {
    first = "is at it";
    // A call that waits for any of several ranks does not wait for all of them.
    const bool anybody = Dmp::awaits_anybody(call);
    if (anybody) first = Dmp::awaited_message(call);
    Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string& what) {
      if (anybody) return;
      if (awaited.empty()) first = what;
      awaited.push_back(rank);
    });
  }
  call.communicator->recorder->wait(call.mark, call.submitted, first.c_str(), awaited);
}

/// Says of a rank that has died, left or is out of reach that it is so; empty of one that is there.
std::string CallQueue::gone(CallState& call, std::uint32_t rank) {
  const std::uint32_t endpoint = call.communicator->peers.endpoint(rank);
  const Poe::Liveness liveness = blocks_.poe->liveness(endpoint);
  if (liveness == Poe::Liveness::kAlive) return {};
  // What it sent before it ended is still taken, and may have come since the network was last read: only
  // what has not come at a later look is missed.
  Peer& peer = call.communicator->peers[rank];
  if (peer.gone == 0) peer.gone = look_;
  if (peer.gone == look_) return {};
  const std::string who = "rank " + std::to_string(rank) + ", " + blocks_.poe->describe(endpoint);
  if (liveness != Poe::Liveness::kDead) return who + ", has left the job";
  // A network has words for it: what it has tried, or for how long nothing has come.
  const bool far = !blocks_.poe->in_shared_memory(endpoint);
  const std::string why = far ? blocks_.poe->condition(endpoint) : std::string();
  const bool vanished = far && blocks_.poe->fate(endpoint) == Poe::Fate::kVanished;
  return who + (vanished ? ", is out of reach" : ", has died") + (why.empty() ? "" : " (" + why + ")");
}

bool CallQueue::look_for_dead(CallState& call) {
  if (!call.started) return false;
  const bool anybody = Dmp::awaits_anybody(call);
  std::string text;
  bool all = true;
  bool alive = false;
  Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string& what) {
    if (anybody ? alive : !text.empty()) return;
    const std::string words = gone(call, rank);
    all = all && !words.empty();
    if (words.empty()) {
      alive = blocks_.poe->liveness(call.communicator->peers.endpoint(rank)) == Poe::Liveness::kAlive;
    } else if (text.empty()) {
      text = anybody ? Dmp::awaited_message(call) + ", and no other rank is left to send one: " + words
                     : words + "; " + what;
    }
  });
  if (text.empty() || (anybody && !all)) return false;
  if (compare_all(call)) return true;  // it has left after other calls than this rank's
  fail(call, ErrorCode::kPeerDead, text);
  return true;
}

/// Goes on from `text`: what the call waits for, who has not come, and what these do instead.
std::string CallQueue::phase(const CallState& call, std::string text) const {
  const std::string kernel = awaited_streams(call);
  if (!kernel.empty()) text += ": " + kernel;
  if (!call.started && !kernel.empty()) return text;
  if (!call.started) {
    text += " before it began: it follows call";
    for (const CallId id : call.wait_for) text += " " + std::to_string(id);
    return text + " of this rank";
  }
  if (call.kernel) {
    const std::string waits = call.kernel->waits();
    text += ": " + (waits.empty() ? "the kernel has not ended" : waits);
    if (call.call.collective == Collective::kNop) return text;
  }
  int listed = 0;
  std::string missing;
  const bool anybody = Dmp::awaits_anybody(call);
  if (anybody) text += ": " + Dmp::awaited_message(call);
  Dmp::waiting_for(call, [&](std::uint32_t, const std::string& what) {
    if (!anybody && ++listed <= 4) text += (listed == 1 ? ": " : "; ") + what;
  });
  if (listed > 4) text += "; and " + std::to_string(listed - 4) + " more";
  if (call.call.collective == Collective::kRecv) {
    const Communicator& of = *call.communicator;
    const std::string kept = of.fast_path ? of.fast_path->unexpected_text() : of.matcher.unexpected_text();
    if (!kept.empty()) text += ". Messages that no receive has asked for: " + kept;
  }
  if (call.space == CallState::Space::kCollective) {
    constexpr std::size_t kMostNamed = 64;
    const std::vector<std::uint32_t> absent = asked_of(call);
    for (std::size_t i = 0; i < std::min(absent.size(), kMostNamed); ++i) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(absent[i]);
    }
    if (absent.size() > kMostNamed) missing += formatted(", and {} more", absent.size() - kMostNamed);
    const bool all_asked = call.communicator->size <= kAllAsked;
    if (!missing.empty()) {
      text += (all_asked ? ". Not arrived: rank " : ". Not arrived, of those that it waits for: rank ") + missing;
    } else {
      text += all_asked ? ". All ranks have entered the call" : ". All ranks that it waits for have entered the call";
    }
  }
  // What they do instead.
  const Communicator& communicator = *call.communicator;
  constexpr int kMost = 4;
  int reported = 0;
  for (std::uint32_t peer = 0; peer < communicator.size && reported < kMost; ++peer) {
    const bool absent = call.space == CallState::Space::kCollective
                            ? !call.heard(peer)
                            : anybody || (peer == call.call.root && peer < communicator.size);
    if (peer == communicator.rank || !absent) continue;
    const std::uint32_t endpoint = communicator.peers.endpoint(peer);
    const std::string what = doings(*blocks_.poe, endpoint, communicator.number, communicator.epoch);
    if (what.empty()) continue;
    text += ". Rank " + std::to_string(peer) + ", " + blocks_.poe->describe(endpoint) + ": " + what;
    ++reported;
  }
  for (const std::string& conclusion : standstill(*blocks_.poe)) text += ". " + conclusion;
  return text;
}

// ------------------------------------------------------------------------------------------------ words

std::string CallQueue::describe(const CallState& call) {
  if (call.kernel && call.call.collective == Collective::kNop) {
    return formatted("kernel {} (rank {})", call.kernel->name(), call.communicator->rank);
  }
  const char* operation = call.operation != nullptr ? call.operation : name_of(call.call.collective);
  std::string text = std::string(call.probe ? "probe" : operation) + " (" + call.communicator->title() + ", rank " +
                     std::to_string(call.communicator->rank);
  if (call.space == CallState::Space::kCollective) text += ", sequence " + std::to_string(call.sequence);
  if (call.space == CallState::Space::kPointToPoint) {
    text += call.wanted.any_source ? std::string(", any source") : ", peer " + std::to_string(call.call.root);
    text += call.wanted.any_tag ? std::string(", any tag") : ", tag " + std::to_string(call.tag);
  }
  if (call.kernel) {
    text += std::string(", by ") + call.kernel->name();
  } else if (call.algorithm != nullptr && !call.probe) {
    text += std::string(", algorithm ") + call.algorithm->name;
  }
  return text + ")";
}

std::string CallQueue::describe(const Communicator& communicator, const CallDifference& difference) {
  return difference.call + " (" + communicator.title() + ", rank " + std::to_string(communicator.rank) + ", sequence " +
         std::to_string(difference.sequence) + "): the ranks' calls differ: " + difference.text;
}

std::string CallQueue::arguments(const Call& call, const Algorithm* algorithm, const char* operation,
                                 double post_scale) {
  // A program of the library has in its count what tells it from others.
  if (operation != nullptr) return std::string(operation) + "(" + name_of(call.dtype) + ")";
  std::string text = name_of(call.collective);
  if (call.dtype == Datatype::kNone) return text;
  const CollectiveFacts facts = facts_of(call.collective);
  text += "(";
  if (!facts.vectors || call.count != 0) text += std::to_string(call.count) + " ";
  text += name_of(call.dtype);
  if (call.func != Func::kNone) text += ", " + operator_name(call.func);
  if (facts.rooted || facts.kind != CallKind::kCollective) text += ", root " + std::to_string(call.root);
  if (call.in_place) text += ", in place";
  if (post_scale != 1) text += formatted(", post_scale {}", post_scale);
  if (algorithm != nullptr) text += std::string(", ") + algorithm->name;
  return text + ")";
}

}  // namespace unisono::cclo
