// The fast path of a communicator whose members share memory: collective calls as lowered programs over lanes.
//
// A blocking call that has been made before needs no lock, clock, allocation, hash or virtual call here: its plan is
// found by comparing a few words, and its steps run in the caller's thread. Everything slow (deadlines, revocation,
// dead peers, other calls of the engine) is looked at by a Watch, once in so many polls of a wait.
//
// A set of lanes carries its calls one after the other, in the order of the calls. Large calls have one set; call n, if
// it is small, has set n modulo shm::kSmallSets, so that as many are in flight at once, and a large one beside
// them. Calls that do not block wait in the queue of their set and are advanced by the engine. Calls of different sets
// do not wait for each other: each set is what a whole communicator's lanes would be.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"
#include "engine/asking.hpp"
#include "engine/call_order.hpp"
#include "engine/engine.hpp"
#include "engine/live.hpp"
#include "engine/lower.hpp"
#include "engine/plan.hpp"
#include "engine/point_to_point.hpp"
#include "engine/recorder.hpp"
#include "engine/windows.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/shm_poe.hpp"

namespace unisono::cclo {

/// Thrown inside the engine: the user named an algorithm with direct access, and not all regions can be reached. All
/// ranks find this alike, and nothing of the call is left on the lanes.
struct Unreachable {};

/// Where the regions of a rank's call are, as it shows them to its peers; or what is known of those of all ranks.
struct Shown {
  std::uint64_t src = 0;  ///< as shm::Reach has it; 0: no bytes of it are used
  std::uint64_t dst = 0;
  bool copies = true;     ///< the rank reaches ordinary memory of every member by kernel copy
  bool in_place = false;  ///< the root's call is, where only the root acts on that
  bool ordinary = false;  ///< some region is ordinary memory, shown for kernel copy
  bool nowhere = false;   ///< some region cannot be reached at all

  /// No region.
  static Shown nothing() {
    Shown shown;
    shown.src = shown.dst = shm::Reach::kNone;
    return shown;
  }
  void note(std::uint64_t word) {
    nowhere = nowhere || word == shm::Reach::kNone;
    ordinary = ordinary || shm::Reach::by_copy(word);
  }
  /// Whether all regions can be reached by all ranks.
  bool reachable() const { return !nowhere && (!ordinary || copies); }
};

/// What one launch of a plan binds on the lanes.
struct LaneLaunch {
  Binding src, dst;
  // Of a plan that varies:
  std::uint64_t count = 0;                  ///< of the call
  std::span<const std::uint64_t> params{};  ///< as the algorithm's `fill_params` leaves them
};

/// A call on the lanes that may be advanced bit by bit. Used again for the next call.
struct LaneCall {
  enum class Phase : std::uint8_t { kWaiting, kAddresses, kRunning, kDone };
  const Plan* plan = nullptr;
  LaneLaunch launch;  ///< its params stay where they are until the call has ended
  Phase phase = Phase::kWaiting;
  std::uint32_t sequence = 0;
  std::uint32_t digest = 0;       ///< of this call and all before it
  Shown own, all;                 ///< where the regions are
  std::vector<bool> shown, seen;  ///< by rank: addresses sent, received
  bool asks = false;              ///< where all regions are
  bool permits = false;           ///< in this round nothing is shown but that kernel copy is permitted
  std::vector<std::byte> scratch;
  Flight flight;
  bool straight = false;     ///< the form in which it flies
  std::uint32_t set = 0;     ///< of lanes
  LaneCall* next = nullptr;  ///< in the queue of its set
};

class FastPath {
 public:
  /// A blocking call in progress.
  struct Blocking {
    const Plan* plan = nullptr;  ///< null for a send or receive:
    Call transfer;
    Wanted wanted;         ///< and this is what it takes, if it is a receive,
    bool anybody = false;  ///< of which any of `awaited` may send it, rather than all
    std::uint32_t tag = 0;
    std::uint64_t count = 0;                  ///< of a plan that varies,
    std::span<const std::uint64_t> params{};  ///< likewise; they stay until the call has ended
    std::uint32_t sequence = 0;
    CallId registered = 0;  ///< number under which the engine watches it; 0: not yet
    RecordMark mark;        ///< in the flight record
    const char* phase = "";
    std::vector<std::uint32_t> awaited;  ///< ranks
  };

  /// What a waiting call leaves to the engine.
  class Watch {
   public:
    virtual ~Watch() = default;
    Watch() = default;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    /// Called once in a while as long as a blocking call waits. Throws Error to end the call. Returns when it wants to
    /// be called again at the latest.
    virtual std::chrono::steady_clock::time_point look(FastPath& fast_path, Blocking& call) = 0;
    /// A lane brought something that is not of this call. Does not return.
    [[noreturn]] virtual void fault(FastPath& fast_path, Blocking& call, const LaneFault& fault) = 0;
    /// A call has ended in an error of this rank's own: the other ranks are told.
    virtual void failed(FastPath& fast_path, const Error& error) = 0;
    /// A call that was registered has completed.
    virtual void completed(FastPath& fast_path, Blocking& call) = 0;
  };

  FastPath(shm::ShmPoe& network, Watch& watch, std::uint32_t number, std::uint16_t epoch, std::uint32_t rank,
           std::span<const std::uint32_t> endpoints, std::uint32_t eager_limit, std::shared_ptr<CallOrder> order,
           std::shared_ptr<LastNumber> last, std::shared_ptr<CallRecorder> recorder, std::shared_ptr<PlanCache> plans);

  std::uint32_t number() const { return number_; }
  /// The collective call that the thread which asks is in.
  const Blocking& blocking() const { return blocking_; }
  /// On what its plans depend.
  const shm::CopyFrom& copy_from() const { return segment_->geometry().copy_from; }

  /// Carries out a blocking call that says no more than its words: a collective whose plan is in front; a short send; a
  /// receive whose message comes soon, of `received` bytes; a put or get of a window that can be reached. False, having
  /// done nothing, if it is not such a call or something stands in its way: it goes through the engine, which checks
  /// it. Throws what the call ends with.
  bool try_run(const Request& request, std::uint64_t& received) {
    const Call& call = request.call;
    static_assert(Collective::kSend < Collective::kRecv && Collective::kRecv < Collective::kPut &&
                  Collective::kPut < Collective::kGet);
    if (call.collective >= Collective::kSend && call.collective <= Collective::kGet)
      return call.collective <= Collective::kRecv ? try_transfer(request, received) : try_window(request);
    if (!claim()) [[unlikely]]
      return false;
    const Plan* plan = plans_->front(call);
    if (plan == nullptr || !fits(plan->src_bytes, plan->dst_bytes, request.src, request.dst) || unavailable())
        [[unlikely]] {
      release();
      return try_as_member(request, received);
    }
    run_known(*plan, request.src.data, request.dst.data);
    return true;
  }

  /// The same of a send or receive that does not block: a short send, or a receive whose message is there.
  bool try_start(const Request& request, std::uint64_t& received);
  /// As `try_run`, of a v-collective, with its counts.
  bool try_vectors(const Request& request, const VectorArguments& counts);

  /// A blocking send or receive. Returns the bytes received. Throws what it ends with. Not under the engine's lock.
  std::uint64_t run_transfer(Transfer& op, std::uint64_t count);
  /// Enters a send or receive that does not block, if the lanes are not there yet before all that follow. Under the
  /// engine's lock.
  void post_transfer(Transfer& op);
  /// Advances what concerns the peer of such an operation; of one for anybody, what concerns all peers, once in a
  /// `round` of all calls. Returns whether anything was done.
  bool step_transfer(const Transfer& op, std::uint32_t round);
  /// The message that a receive would get now, which stays; looks at what has come first. Under the engine's lock.
  std::optional<MessageStatus> probe(const Wanted& wanted);
  /// Messages that nobody has asked for, in words; empty if there are none. Bytes that are kept of them.
  std::string unexpected_text() const;
  std::uint64_t kept() const;
  /// Ends an operation whose call has ended; if it had not ended itself, its buffer is shielded, with what `shield` has
  /// to say.
  std::string withdraw_transfer(Transfer& op);

  /// The members' windows.
  Windows& windows() { return windows_; }
  /// Before the user may take his window for granted again, for the communicator has failed or is freed: nobody gets at
  /// it any more, but for ranks that were stopped, which are waited for a second.
  void end_window() { windows_.hide(kPatience, true); }

  /// What a call that ended with Unreachable ends with.
  static Error unreachable(const Plan& plan);

  /// Drops plans, if there are more than should be and nobody begins a call now. Under the engine's lock.
  void trim_plans();
  /// Runs a plan in this thread. False, having done nothing, if calls are queued or another thread is at it. With
  /// `remember`, `try_run` finds the plan from now on. Not under the engine's lock.
  bool run(const std::shared_ptr<const Plan>& plan, const LaneLaunch& launch, bool remember);

  /// The plan of a small call that says no more than its words, if that is in front and the call may begin; or null.
  std::shared_ptr<const Plan> plan_at_hand(const Request& request);
  /// `try_run` and `plan_at_hand` find the plan from now on, if nobody has claimed the lanes now.
  void remember(const std::shared_ptr<const Plan>& plan);

  /// Enters a call that does not block; it takes its place in the order of calls here.
  void enqueue(LaneCall& call);
  /// Whether others go before it in its set.
  bool behind(const LaneCall& call) const { return queues_[call.set].first != &call; }
  /// Takes it out, in whatever state. What `shield` has to say, if that was needed.
  std::string dequeue(LaneCall& call);
  /// Advances a queued call, if it is the oldest of its set. Returns whether anything was done. Throws LaneFault,
  /// Unreachable or Error.
  bool step(LaneCall& call);
  /// Ranks that a queued call waits for.
  void for_each_awaited(const LaneCall& call, const std::function<void(std::uint32_t)>& use);

  /// Ends the use of the lanes: calls in progress find out through their Watch, later ones are not taken.
  void close() { closed_.store(true, std::memory_order_relaxed); }
  /// The algorithm of the last call, or null.
  const Algorithm* last_algorithm() const;
  /// Before buffers are given back after an error: closes, forbids every access to the memory of others on all ranks,
  /// and waits until nobody is at it. A rank that does not let go (because it was stopped) is waited for a second; then
  /// `dst` gets pages of its own, so that what that rank may still write ends nowhere. Where it cannot get them, being
  /// ordinary memory that the kernel copies to, returns a sentence about it for the error.
  std::string shield(std::byte* dst, std::uint64_t bytes);
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  bool unavailable() const {
    return closed_.load(std::memory_order_relaxed) || queued_.load(std::memory_order_relaxed) != 0;
  }

  static bool fits(std::uint64_t src_bytes, std::uint64_t dst_bytes, const Binding& src, const Binding& dst) {
    if (src_bytes != 0 && (src.data == nullptr || src.bytes < src_bytes)) return false;
    if (dst_bytes != 0 && (dst.data == nullptr || dst.bytes < dst_bytes)) return false;
    return src_bytes == 0 || dst_bytes == 0 || src.data + src_bytes <= dst.data || dst.data + dst_bytes <= src.data;
  }

  static constexpr std::chrono::milliseconds kPatience{1000};  ///< with a rank at this one's memory after an error

  /// What a send or receive says, if it is one of few bytes that nothing stands in the way of.
  struct ShortTransfer {
    bool sends = false;
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
  };
  std::optional<ShortTransfer> short_transfer(const Request& request) const;
  bool try_transfer(const Request& request, std::uint64_t& received);
  bool try_window(const Request& request);
  /// The same without what the root alone says: in place, where another rank's word is not heard.
  [[gnu::noinline]] bool try_as_member(const Request& request, std::uint64_t& received);
  bool claim();
  void release();
  void run_known(const Plan& plan, std::byte* src, std::byte* dst);
  template <bool kVaries>
  void run_claimed(const Plan& plan, const LaneLaunch& launch);
  void bind(const LaneProgram& program, const LaneLaunch& launch);
  [[gnu::noinline]] void await_straight(LiveRank& live);
  void run_windowed(const LoweredProgram& program, LiveRank& live);
  [[gnu::noinline]] bool lends(const Plan& plan, const LaneLaunch& launch, const LoweredProgram& program) const;
  /// What a v-collective leaves on a lane, because ranks count differently, is found by the next call there: so many
  /// calls after it have its set. Ranks find this alike.
  static constexpr std::uint32_t kCareful = 4;
  /// The set of lanes of a call that takes its number now; asked once for each. `varies`: its plan does.
  std::uint32_t next_set(const Plan& plan, std::uint32_t sequence, bool varies) {
    if (varies) {
      careful_ = kCareful;
      return kLargeSet;
    }
    if (careful_ != 0) [[unlikely]] {
      --careful_;
      return kLargeSet;
    }
    return plan.first_set | (sequence & plan.set_mask);
  }
  bool try_open(std::uint32_t set);
  bool unlink(LaneCall& call);
  void begin(LaneCall& call);
  bool tell_addresses(LaneCall& call, bool& any);
  static void bind_regions(LiveRank& live, std::byte* src, std::byte* dst, std::byte* scratch) {
    live.values.regions[static_cast<std::size_t>(Region::kSrc)] = src;
    live.values.regions[static_cast<std::size_t>(Region::kDst)] = dst;
    live.values.regions[static_cast<std::size_t>(Region::kScratch)] = scratch;
  }
  /// The lanes of large calls, the only ones that show addresses.
  LiveRank& large() { return *sets_[kLargeSet]; }
  const LaneProgram* exchange_addresses(const Plan& plan, const LaneLaunch& launch);
  Shown exchange(const Plan& plan, const Shown& own);
  bool must_permit(const Plan& plan, const Shown& all) const;
  void show(LaneCall& call, const Shown& own);
  bool exchanges_again(LaneCall& call);
  bool copies_all();

  template <class End>
  void fail_shielded(std::byte* dst, std::uint64_t bytes, End&& end);
  [[noreturn]] void await_verdict(Blocking& blocking);
  bool try_open();
  bool claim_and_open();
  bool progress_all();
  LiveRank& open(Blocking& blocking, std::uint32_t set);
  bool asks(const Plan& plan);
  void found(const Plan& plan, bool reachable);
  Shown own_addresses(const Plan& plan, std::byte* src, std::byte* dst);
  bool show_address(std::uint32_t peer, const Shown& own);
  bool see_address(std::uint32_t peer, const Plan& plan, Shown& all);

  template <class Ready>
  void await(Ready&& ready, std::uint32_t peer);
  template <class Name>
  std::chrono::steady_clock::time_point look_naming(Name&& name, Blocking& blocking);
  template <class Ready, class Name>
  void await_naming(Ready&& ready, Name&& name, Blocking& blocking);
  [[gnu::noinline]] void await_line(shm::LaneSender& lane, std::uint32_t peer);

  shm::ShmPoe& network_;
  Watch& watch_;
  std::uint32_t number_;
  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint32_t eager_limit_;
  bool one_process_ = false;  ///< all members are threads of this process: every address is reachable
  std::atomic<bool> opened_{false};
  std::shared_ptr<CallOrder> order_;
  std::shared_ptr<LastNumber> last_;
  std::shared_ptr<PlanCache> plans_;
  std::shared_ptr<shm::Segment> segment_;
  LaneTraffic traffic_;
  Windows windows_;
  std::shared_ptr<CallRecorder> recorder_;
  shm::LaneSet lanes_;
  shm::TouchGuard guard_;
  std::array<std::unique_ptr<LiveRank>, kSets> sets_;  ///< each once it is needed
  std::uint32_t careful_ = 0;                          ///< calls that still have the set of large ones, see `next_set`
  std::unique_ptr<PointToPoint> point_to_point_;
  std::mutex early_mutex_;
  std::vector<Transfer*> early_;  ///< entered before the lanes were there, oldest first
  std::uint32_t polled_in_ = 0;   ///< round of all calls in which all peers were looked at

  std::atomic<bool> busy_{false};
  std::atomic<bool> closed_{false};
  std::atomic<std::uint32_t> queued_{0};
  std::vector<std::uint32_t> endpoints_;  ///< by rank

  // Of the blocking call in progress.
  Flight flight_;
  Blocking blocking_;
  std::vector<ReachableRegions> reachable_;
  std::vector<std::byte> scratch_;
  std::array<Asking, 2> asking_;  ///< of calls that the kernel copies for, and of others
  Launcher launcher_;
  std::vector<std::uint64_t> params_;  ///< of a v-collective

  struct Queue {
    LaneCall* first = nullptr;
    LaneCall* last = nullptr;
  };
  std::array<Queue, kSets> queues_;  ///< by set
  CopyableRegions copyable_;         ///< of the thread that has claimed the lanes
  std::optional<bool> copies_;       ///< every member's ordinary memory can be copied; empty: not tried yet
  bool permitted_ = false;           ///< all members have permitted it, see `must_permit`
};

}  // namespace unisono::cclo
