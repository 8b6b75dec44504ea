// Call queue: admits calls, chains them, watches their deadlines, and keeps their results.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/blocks.hpp"
#include "engine/call_comparison.hpp"
#include "engine/state.hpp"
#include "engine/windows.hpp"

namespace unisono::cclo {

struct LaneFault;
struct LaneLaunch;

class CallQueue {
 public:
  explicit CallQueue(const Blocks& blocks) : blocks_(blocks) {}

  /// An empty call with a number of its own, not yet in the queue. Throws Error(kCapacity).
  CallState& create();
  /// Gives an empty call back after an argument was refused.
  void abandon(CallState& call);
  /// Enters the call. Collective calls take their sequence number here; point-to-point ones when they start.
  void submit(CallState& call);
  /// Submits a small collective call that goes over lanes (`call.lane`) and follows no other; does what can be done of
  /// it now.
  void submit_at_once(CallState& call);
  /// Has the network give back what it has of memory of this rank's. If a peer may still write there, the words that an
  /// error says of it; else empty. `memory`: what it is.
  std::string settle(const Communicator& communicator, const char* memory);
  /// Gives a call what it needs to go over lanes.
  static void take_lane(CallState& call, const LaneLaunch& launch);
  /// Enters a call in its communicator's flight record; of a collective, sequence and signature are known.
  static void begin_record(CallState& call);
  /// Takes note of a blocking call that runs on the lanes in a thread of its own: its deadline and its peers are
  /// watched from now on. It has its sequence number already.
  void watch(CallState& call);
  /// A watched call has completed.
  void complete(CallId id);
  /// What a lane brought for `call` is not of it.
  void lane_fault(CallState& call, const LaneFault& fault);

  /// Whether `id` was ever given out.
  bool known(CallId id) const;
  /// The result; complete with success if it was forgotten. Throws Error(kInvalidArgument) if never given out.
  const CallResult& result(CallId id) const;
  void forget(CallId id);
  /// Gives the result of a call that has ended, and forgets it; false if it has not.
  bool take(CallId id, CallResult& result);
  /// Somebody wants to hear of a call; see Engine::when_complete.
  void when_complete(CallId id, Engine::Listener listener);
  /// The listeners to call once the engine's lock has been given back, each with its result.
  using Reports = std::vector<std::pair<Engine::Listener, CallResult>>;
  Reports take_reports() { return std::exchange(reports_, {}); }
  bool has_reports() const { return !reports_.empty(); }
  /// Whether no call is in flight but those that threads of their own advance.
  bool idle() const;
  /// The call as long as it has not ended, else null.
  CallState* in_flight(CallId id) { return record(id).id == id ? record(id).call : nullptr; }

  /// Starts and steps calls. Returns whether anything was done.
  bool progress();
  /// Steps the calls of a communicator that go over lanes and have started.
  void progress_lanes(const Communicator& communicator);
  /// Steps a call over lanes that has started: a collective after those before it on its lanes.
  void progress_shared(CallState& call);
  /// Deadlines, dead peers and what else time brings. Returns whether a call ended.
  bool examine(Clock::time_point now);
  /// When `examine` must run again at the latest.
  Clock::time_point next_deadline() const;
  /// When it must run again at the latest for one call; the end of time if that has ended.
  Clock::time_point next_event(CallId id);

  /// Runs `work`, an activity for a call; what it throws becomes the call's result.
  template <class Work>
  void guard(CallState& call, Work&& work) {
    if (call.finished) return;
    try {
      work();
    } catch (const Error& error) {
      fail(call, error.code(), error.what());
    } catch (const std::bad_alloc&) {
      fail(call, ErrorCode::kOutOfMemory, "no memory was left for it");
    }
  }
  /// Ends a call in error and, unless it concerns this rank alone, revokes its communicator. `what` is
  /// completed by the call's description.
  void fail(CallState& call, ErrorCode code, const std::string& what, bool revoke = true);
  /// Ends all calls of a communicator.
  void fail_all(Communicator& communicator, ErrorCode code, const std::string& what);
  /// Notes what another rank called instead of `call`, and answers it if `answer`.
  void on_mismatch(Communicator& communicator, std::uint32_t peer, const Header& header, const std::string& text);
  /// A peer's signature differs from ours. The call ends, at once if the flight records tell which call differs, else
  /// when the peer has said what it called.
  void mismatch(CallState& call, std::uint32_t peer);

  /// The collective call of a sequence number, or null.
  static CallState* find(Communicator& communicator, std::uint32_t sequence);
  /// The send of a pair sequence number to a peer, or null.
  static CallState* find_send(Communicator& communicator, std::uint32_t peer, std::uint32_t sequence);
  /// The message that a receive would get now, which stays there.
  static std::optional<MessageStatus> look_for(Communicator& communicator, const Wanted& wanted);
  /// What a put or get of which `is_one_sided` reaches for.
  static bool is_one_sided(const CallState& call);
  static WindowAccess access_of(const CallState& call);
  /// "allreduce (communicator 0, sequence 5, algorithm ring)"
  static std::string describe(const CallState& call);
  /// "bcast (communicator 0, rank 0, sequence 3): ", and how it differs.
  static std::string describe(const Communicator& communicator, const CallDifference& difference);
  /// A message of a collective call has come that this rank has ended without it: of one with counts by rank, they do
  /// not agree, and nobody shall go on.
  void left_over(Communicator& communicator, std::uint32_t peer, const Header& header);
  /// That this rank and a peer count a block differently.
  std::string counts_text(const CallState& call, std::uint32_t peer) const;
  /// "allreduce of 17 fp32 by sum"
  static std::string arguments(const Call& call, const Algorithm* algorithm, const char* operation, double post_scale);
  static std::string left_over_text(const CallState& call);
  std::string mismatch_text(const CallState& call) const;
  /// Whether ranks may have given it counts that do not agree.
  static bool counts_by_rank(const CallState& call);
  /// That they have, for a message of a peer has another length than this rank awaits.
  std::string counts_text(const CallState& call, std::uint32_t peer, std::uint64_t came, std::uint64_t awaited) const;

  /// Calls that ended since the last look, so that waiting threads can be told.
  bool take_ended();

 private:
  struct Record {
    CallId id = 0;
    CallState* call = nullptr;  ///< null once it has ended
    CallResult result;
    std::vector<Engine::Listener> listeners;
  };

  static constexpr unsigned kSlotBits = 20;

  void enter(CallState& call);
  bool advance(CallState& call);
  bool take_streams(CallState& call);
  bool give_streams(CallState& call);
  void leave_streams(CallState& call, ErrorCode code, const std::string& message);
  bool ready(CallState& call);
  static bool in_turn(const CallState& call);
  bool start(CallState& call);
  void finish(CallState& call, ErrorCode code, std::string message);
  void sweep();
  void probe(CallState& call, Clock::time_point now);
  static std::vector<std::uint32_t> asked_of(const CallState& call);
  bool look_for_dead(CallState& call);
  std::string gone(CallState& call, std::uint32_t rank);
  bool compare(CallState& call, std::uint32_t peer);
  bool compare_all(CallState& call);
  bool compare_awaited(CallState& call, Clock::time_point now);
  bool awaits_in_vain(CallState& call, std::span<const std::uint32_t> awaited);
  static bool records_own_count(const CallState& call);
  void record_wait(const CallState& call, Clock::time_point now) const;
  std::string awaited_streams(const CallState& call) const;
  std::string phase(const CallState& call, std::string text) const;
  Record& record(CallId id) { return records_[id & ((CallId{1} << kSlotBits) - 1)]; }
  const Record& record(CallId id) const { return records_[id & ((CallId{1} << kSlotBits) - 1)]; }

  const Blocks& blocks_;
  std::vector<Record> records_;
  std::vector<std::uint32_t> free_records_;
  CallId counter_ = 0;
  std::vector<std::unique_ptr<CallState>> storage_;
  std::vector<CallState*> free_calls_;
  std::vector<CallState*> active_;
  Reports reports_;
  bool ended_ = false;
  bool swept_ = true;
  std::uint32_t look_ = 0;   ///< number of the present `examine`
  std::uint32_t round_ = 0;  ///< number of the present `progress`
  CallResult forgotten_{true, ErrorCode::kOk, {}, 0, {}};
};

}  // namespace unisono::cclo
