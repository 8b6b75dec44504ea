// The objects behind the handles of the C interface.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "driver/allocations.hpp"
#include "driver/handles.hpp"
#include "driver/offload.hpp"
#include "driver/spare_memory.hpp"
#include "engine/engine.hpp"
#include "network/loop/loop_job.hpp"
#include "network/shm/segment.hpp"
#include "platform/join/job.hpp"
#include "switch/endpoint/aggregation.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {

/// What carries out a job's calls; the same on all its ranks.
enum class Platform : std::uint8_t {
  kNative = 0,      ///< this library's own engine
  kFunctional = 1,  ///< the native engine behind the registers of a device
  kRtl = 2,         ///< a Verilated node of a simulated cluster
};
/// As UNISONO_PLATFORM and `unisono run --platform` have it.
const char* name_of(Platform platform);

/// An endpoint's network and engine. A thread that works with them holds a reference, so that leaving the
/// job takes nothing from under a thread that still waits.
struct Endpoint {
  std::unique_ptr<Poe> poe;
  std::unique_ptr<Engine> engine;                   ///< destroyed before its network
  std::unique_ptr<slots::Aggregation> aggregation;  ///< goes first; null: no calls are carried by switches
};

/// What a context's rules for algorithms are made of.
struct RuleChoice {
  int determinism = 0;                    ///< of the C interface; 0: what the environment says
  std::optional<std::string> algorithms;  ///< pins; none: what the environment says
  bool made = false;                      ///< whether rules have been made of it
};

/// One endpoint of a job. Thread-safe.
class Context {
 public:
  /// Makes the engine and the communicator of all ranks (number 0) from all members' capabilities.
  Context(std::unique_ptr<Poe> poe, const EngineSettings& settings,
          std::span<const std::vector<std::byte>> all_capabilities);
  /// The same with an engine that is there already.
  Context(std::unique_ptr<Poe> poe, std::unique_ptr<Engine> engine, const Agreement& agreed);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The engine and network; throws Error(kWrongProcess) after `close`.
  std::shared_ptr<Endpoint> endpoint() const;
  /// Leaves the job: cancels what is in flight. Later uses fail; a second close does too. Throws
  /// Error(kMismatchedCall), having left, if ranks are found to have called differently; `how`: not after an error of
  /// the user's, whose rank has called less.
  enum class Leaving : std::uint8_t { kCompared, kAfterError };
  void close(Leaving how = Leaving::kCompared);
  /// `function` runs at the begin of `close`, while everything can still be used; it gets whether the job is left in
  /// order, and not after an error.
  void before_close(std::function<void(bool in_order)> function);

  /// Numbers of communicators: a lower bound of what is free here, and the attempt to take one. What is taken is not
  /// below what was proposed for it: where no proposal stands, nothing is kept of numbers that were used.
  std::uint32_t propose_number(std::uint32_t reserve);
  void end_proposal(std::uint32_t proposed) noexcept;
  bool claim_number(std::uint32_t number);
  /// Whether it was taken.
  bool release_number(std::uint32_t number);
  /// All that are taken.
  std::vector<std::uint32_t> numbers() const;

  /// Handles of its communicators but the world's, which outlive it until they are freed. `keep_handle`: false, having
  /// done nothing, once the context was closed.
  bool keep_handle(std::uint64_t handle);
  void drop_handle(std::uint64_t handle);
  /// All of them, when it is closed.
  std::set<std::uint64_t> take_handles();

  /// What the context was joined with. On a native engine, has calls carried by switches from then on, if that is asked
  /// for: collective over the job.
  void begin_with(RuleChoice choice);
  /// Has the calls of a new communicator carried by switches, where that can be: collective over its members, who all
  /// have it. Throws Error.
  void arrange_carriers(std::uint32_t communicator, std::span<const std::uint32_t> endpoints) const;
  /// The switches that do, in words; empty: none. Throws Error.
  std::string carrier_of(std::uint32_t communicator) const;
  RuleChoice rule_choice() const;
  /// Changes settings, for communicators that are made later. Throws Error.
  void configure(const unisono_settings& given);

  /// Has the process's helper thread make progress on all calls, from now on, or only on those that are in flight now.
  /// `offload` throws Error(kCapacity) if there can be no such thread. `due`: see Offload::wake.
  void offload_all(bool all);
  bool offloads_all() const { return offloads_all_.load(std::memory_order_relaxed); }
  void offload(std::chrono::steady_clock::time_point due = Offload::kAtOnce);
  /// A descriptor that is readable when there may be progress to make, and its arming: see Offload. Throw Error.
  int descriptor();
  bool arm();
  /// A call has been submitted. It has its buffers from now on, so this must not fail: where there can be no thread,
  /// that is said once, and calls make progress as without it.
  void call_started() noexcept {
    if (offloads_all_.load(std::memory_order_relaxed)) offload_if_possible();
  }

  /// Memory for what calls need beside the user's buffers.
  const std::shared_ptr<SpareMemory>& spare_memory() const { return spare_memory_; }

  /// Memory that peers on this machine can reach; see unisono_allocate. Throws Error.
  Allocation allocate(std::uint64_t bytes) const;

  std::uint64_t world_handle = 0;  ///< set once, before the context is seen by anybody

 private:
  void begin(std::unique_ptr<Poe> poe, std::unique_ptr<Engine> engine, const Agreement& agreed);
  void offload_if_possible(std::chrono::steady_clock::time_point due = Offload::kAtOnce) noexcept;

  /// What the engine asks for a thread in the background, also if it outlives the context.
  struct Background {
    std::mutex mutex;
    Context* context = nullptr;  ///< null once the context was closed
  };

  mutable std::mutex mutex_;
  std::vector<std::function<void(bool)>> before_close_;
  std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<Background> background_ = std::make_shared<Background>();
  RuleChoice rule_choice_;
  std::atomic<bool> offloads_all_{false};
  /// The place with the process's helper thread. Throws Error(kCapacity); null once the context was closed.
  std::shared_ptr<Offload> helper();

  std::shared_ptr<Offload> offload_;  ///< once it is needed
  const std::shared_ptr<SpareMemory> spare_memory_ =
      std::make_shared<SpareMemory>([this](std::uint64_t bytes) { return allocate(bytes); });
  std::uint32_t next_number_ = 1;
  std::set<std::uint32_t> numbers_{0};  ///< of live communicators
  std::set<std::uint32_t> proposed_;    ///< proposals that stand; from the least on, numbers can be taken
  std::set<std::uint32_t> used_{0};     ///< live communicators, and those that were, as far as numbers can be taken
  std::uint32_t settled_ = 0;           ///< below it no number is taken any more, which the engine knows
  std::set<std::uint64_t> handles_;     ///< of live communicators but the world
};

/// Ends a proposal of a number when the attempt to take one is over.
class NumberProposal {
 public:
  NumberProposal(std::shared_ptr<Context> context, std::uint32_t proposed)
      : context_(std::move(context)), proposed_(proposed) {}
  NumberProposal(const NumberProposal&) = delete;
  NumberProposal& operator=(const NumberProposal&) = delete;
  ~NumberProposal() { context_->end_proposal(proposed_); }

 private:
  std::shared_ptr<Context> context_;
  std::uint32_t proposed_;
};

/// Frees a communicator of an engine. Throws, having freed it, Error(kMismatchedCall) if ranks are found to have called
/// differently on it.
void give_up(Engine& engine, std::uint32_t communicator);

struct Communicator;

/// What a shrink has made here, before all have agreed whether everyone could make it.
struct Shrinking {
  std::shared_ptr<Communicator> made;
  bool created = false;
  ErrorCode code = ErrorCode::kInternal;  ///< why not, if
  std::string failure;                    ///< this says so
};

/// A communicator of a context.
struct Communicator {
  std::shared_ptr<Context> context;
  std::uint32_t number = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  Grouping grouping{};
  std::vector<std::uint32_t> endpoints;       ///< by rank
  std::shared_ptr<cclo::FastPath> fast_path;  ///< null if calls go through the engine only
  std::atomic<std::uint64_t> timeout_us{0};   ///< default deadline that was agreed or set; 0: the context's

  mutable std::mutex shrinking_mutex;
  std::optional<Shrinking> shrinking;  ///< of a shrink that was cut off; the next one goes on with it

  mutable std::mutex name_mutex;
  std::string name;  ///< what people call it; empty: nothing

  std::atomic<std::uint32_t> open_groups{0};
  mutable std::mutex groups_mutex;
  std::map<std::thread::id, std::shared_ptr<class Group>> groups;  ///< open ones, by thread
};

class Group;
class Request;

/// A call of the C interface that passed all checks, ready to be submitted. Stays where it is.
struct CheckedCall {
  CheckedCall() = default;
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;

  CallRequest request;
  std::vector<std::uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
  std::vector<std::uint64_t> params;   ///< of a neighbour exchange
  std::vector<std::int64_t> bytes[4];  ///< of an exchange with a datatype for each pair: its layout in bytes
  VectorArguments vectors;
  std::uint64_t element_bytes = 1;               ///< of the elements that the user counts
  std::vector<std::shared_ptr<Request>> before;  ///< requests that must complete first
  std::vector<CallId> wait_for;                  ///< of these, what is in flight, when the call is submitted
};

/// A call that was submitted, or its result. Requests of calls that were fused share one. Thread-safe.
class Flight : public std::enable_shared_from_this<Flight> {
 public:
  Flight(std::shared_ptr<Context> context, CallId id) : context_(std::move(context)), id_(id) {}
  /// One that ended before it was submitted.
  explicit Flight(CallResult result) : id_(0), result_(std::move(result)) {}

  CallId id() const { return id_; }
  /// The result if there is one; makes progress.
  std::optional<CallResult> test();
  /// Waits for the result; the call's own deadline bounds it.
  CallResult wait();
  /// Waits for the result, but not longer than `at_most`.
  std::optional<CallResult> wait_at_most(std::chrono::microseconds at_most);
  /// The result if it is known already; without progress.
  std::optional<CallResult> known() const;
  /// Whether it is.
  bool ended() const;
  /// Calls `listener` once, when the call has ended; see Engine::when_complete.
  void when_complete(std::function<void(const CallResult&)> listener);

 private:
  std::shared_ptr<Endpoint> endpoint() const;
  CallResult settle(Engine& engine, CallResult result);
  std::optional<CallResult> settled(Engine& engine);
  template <class Ask>
  std::optional<CallResult> ask(Ask&& ask);

  const std::shared_ptr<Context> context_;
  const CallId id_;
  mutable std::mutex mutex_;
  std::optional<CallResult> result_;
};

/// What a user has of a call: prepared, in a group, in flight, or ended. Thread-safe.
class Request : public std::enable_shared_from_this<Request> {
 public:
  /// `persistent`: it can be started again.
  Request(std::shared_ptr<Communicator> communicator, std::unique_ptr<CheckedCall> call, bool persistent);
  /// One of a call that is in flight already, or has ended. `element_bytes`: of a receive's.
  Request(std::shared_ptr<Communicator> communicator, std::shared_ptr<Flight> flight, Collective collective,
          std::uint64_t element_bytes);

  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  bool persistent() const { return persistent_; }
  /// The call, as long as it may still be started.
  CheckedCall& call() { return *call_; }
  /// The flight of the last start. Throws Error if there was none, or it waits for the end of its group.
  std::shared_ptr<Flight> flight() const;

  /// Starts the call; in an open group of this thread, enters it there. Throws Error, also if it is in flight.
  void start();
  /// Submits it now, which a group does for its members.
  void submit();
  /// Gives it a flight, which may be one of several calls, or a failure.
  void fly(std::shared_ptr<Flight> flight);
  /// Whether it is not in flight, without progress.
  bool idle() const;
  /// Takes it out of the group that it waits in, if it does; it is not started then.
  void leave_group();

  /// Runs `function(result)` once, when the call has ended.
  void on_complete(std::function<void(const CallResult&)> function);
  /// Whether it has ended, that is known, and nothing of it is left to be waited for.
  bool done() const;
  /// Waits until callbacks that are due or running, on other threads, have ended.
  void await_callbacks();
  /// What a completed recv has got, and the elements of that. Throws Error for other calls.
  MessageStatus status() const;
  std::int64_t received() const;
  /// Bytes of the elements that its user counts.
  std::uint64_t element_bytes() const { return element_bytes_; }

 private:
  /// How errors of its use begin.
  std::string title() const;

  const std::shared_ptr<Communicator> communicator_;
  const bool persistent_;
  const std::uint64_t element_bytes_;
  const Collective collective_;
  mutable std::mutex mutex_;
  std::condition_variable called_back_;
  std::uint32_t callbacks_ = 0;  ///< that have not ended
  std::unique_ptr<CheckedCall> call_;
  std::shared_ptr<Flight> flight_;
  std::weak_ptr<Group> group_;  ///< the one that it waits in
};

/// A job of threads, and the place where its members exchange their capabilities.
class SharedJob {
 public:
  /// What its members send messages by.
  enum class Carrier : std::uint8_t {
    kShm,   ///< memory that all share, as the processes of one host do
    kLoop,  ///< mailboxes; each rank counts as a host of its own
  };
  static constexpr std::uint32_t kMostOnShm = shm::kMaxEndpoints;
  static constexpr std::uint32_t kMostOnLoop = loop::Job::kMostEndpoints;

  /// Throws Error(kInvalidArgument) if it is too large.
  explicit SharedJob(std::uint32_t size, Carrier carrier = Carrier::kShm);
  std::uint32_t size() const { return size_; }
  /// Null if its members share memory.
  loop::Job* loop() const { return loop_.get(); }
  /// Joins as one rank: collective over the job, bounded by `timeout`. Throws Error(kBootstrap).
  std::unique_ptr<Poe> join(std::uint32_t rank, std::vector<std::byte> capabilities, std::chrono::milliseconds timeout,
                            std::vector<std::vector<std::byte>>& all_capabilities);

 private:
  const std::uint32_t size_;
  std::unique_ptr<ThreadJob> memory_;  ///< this,
  std::shared_ptr<loop::Job> loop_;    ///< or this
  std::mutex mutex_;
  std::condition_variable joined_;
  std::vector<std::vector<std::byte>> all_capabilities_;
  std::vector<bool> taken_;
  std::uint32_t count_ = 0;
};

/// One program for each rank.
struct ProgramSet {
  std::vector<std::shared_ptr<const Program>> ranks;
  bool lanes_carry = false;                                ///< what cclo::lanes_carry says of them
  std::vector<std::array<std::uint64_t, 5>> region_bytes;  ///< by rank and Region: what the programs run on
};

using Contexts = Handles<Context, HandleKind::kContext>;
using Communicators = Handles<Communicator, HandleKind::kCommunicator>;
using Requests = Handles<Request, HandleKind::kRequest>;
using ThreadJobs = Handles<SharedJob, HandleKind::kThreadJob>;
using Programs = Handles<ProgramSet, HandleKind::kProgram>;

/// The smallest length of segments that may be set, or agreed on, bytes.
inline constexpr std::uint32_t kLeastSegmentBytes = 64;

/// Bytes of one member's packed capabilities.
inline constexpr std::size_t kCapabilitiesBytes = 72;
/// What one member brings to the agreement of its job, as bytes. `node` is the transport's address of its device.
std::vector<std::byte> pack_capabilities(const Agreement& capabilities, Platform platform = Platform::kNative,
                                         std::uint32_t node = 0);
/// The nodes in packed capabilities, by endpoint.
std::vector<std::uint32_t> nodes_of(std::span<const std::vector<std::byte>> all_capabilities);
/// Agreement over packed capabilities, which may have come from anywhere. Throws Error(kBootstrap) on one of another
/// version or platform, or with numbers that no engine could work with, and what `agree` throws.
Agreement agree_on(std::span<const std::vector<std::byte>> all_capabilities, const MemberName& name = {});

/// What a rank wants of a communicator that is made. Of sizes and times the least hint of all members holds; lanes are
/// used if all want them.
struct CommunicatorHints {
  std::uint32_t group_size = 0;          ///< equal on all members; 0: groups are hosts, or as `group` says
  std::uint64_t group = 0;               ///< ranks with equal numbers are a group; 0 on all members: no hint
  std::uint32_t eager_limit = 0;         ///< bytes; 0, or more than the context's: the context's
  std::chrono::microseconds timeout{0};  ///< default deadline of calls; 0: the context's
  bool lanes = true;
  bool streams = false;  ///< without lanes, and algorithms that serve streams, if all members say so
  std::string name;      ///< empty: none
  /// How members of a new group tell each other: `bytes` of each to all, in their order. False: that failed. Empty: by
  /// messages of the parent.
  std::function<bool(const void* own, std::size_t bytes, void* all, double seconds)> all_gather;
};

/// Groups of endpoints, listed in order of rank: their hosts.
Grouping hosts_of(const Poe& poe, std::span<const std::uint32_t> endpoints);

/// Gives a communicator a name, or takes it away if that is empty. Throws Error.
void set_name(Communicator& communicator, std::string_view name);
std::string name_of(const Communicator& communicator);
/// For UNISONO_LOG=debug: `operation` has made it.
void log_made(const Communicator& communicator, const char* operation);

/// Collective over `parent`; null for a negative colour.
std::shared_ptr<Communicator> split(const std::shared_ptr<Communicator>& parent, std::int64_t colour, std::int64_t key,
                                    const CommunicatorHints& hints);
/// The same members in the same order. Group size and deadline are the parent's if no hint says otherwise.
std::shared_ptr<Communicator> duplicate(const std::shared_ptr<Communicator>& parent, CommunicatorHints hints);
/// Collective over `parent`; the listed ranks, in that order. Null for others.
std::shared_ptr<Communicator> subset(const std::shared_ptr<Communicator>& parent, std::span<const std::uint32_t> ranks,
                                     const CommunicatorHints& hints);
/// Collective over the listed ranks only. `tag` tells apart what several threads make at the same time.
std::shared_ptr<Communicator> create_group(const std::shared_ptr<Communicator>& parent,
                                           std::span<const std::uint32_t> ranks, std::uint32_t tag,
                                           const CommunicatorHints& hints);

/// The bits that `value` has in common on all ranks that are left; collective over them, also on a revoked
/// communicator. `timeout` 0: the communicator's. Throws Error.
std::uint64_t agree(const Communicator& communicator, std::uint64_t value, std::chrono::microseconds timeout);
/// The ranks that have died or left, as far as this one can see. Not collective.
std::vector<std::uint32_t> failed_ranks(const Communicator& communicator);
/// A communicator of the ranks that are left, in their order; collective over them, also on a revoked communicator.
std::shared_ptr<Communicator> shrink(const std::shared_ptr<Communicator>& parent, std::chrono::microseconds timeout);
/// Gives back what a shrink of it that was cut off has made.
void drop_shrinking(Communicator& communicator, Engine& engine);

/// Gives up all communicators of the context of `world`, which is revoked as well, and makes the communicator of all
/// ranks anew; collective over these. Throws Error(kPeerDead) if a rank has died or left.
std::shared_ptr<Communicator> reset(const std::shared_ptr<Communicator>& world);

/// Runs a call on the communicator to its end. Throws its error. Returns the bytes that a recv has received.
std::uint64_t run_to_end(const Communicator& communicator, const CallRequest& request);

/// Runs the body; an Error says which operation of the user it was of, before which of its calls.
template <class Body>
auto as_part_of(const char* operation, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.code(), std::string(operation) + ": " + error.what(), error.still_written());
  }
}

/// Elements in a message of so many bytes that came. Throws Error(kMismatchedCall) if they are not whole.
std::int64_t whole_elements(std::uint64_t bytes, std::uint64_t element_bytes);

/// What else a receive's tag may be, for refusals.
inline constexpr const char* kAnyTagToo = ", and any tag is -2000";
static_assert(UNISONO_ANY_TAG == -2000);

/// Checks every argument before anything is sent; throws Error that says what was given and what is
/// allowed. `checked` must stay where it is until the request has been submitted.
void check_call(const Communicator& communicator, const unisono_call& call, CheckedCall& checked);
/// Checks `element_bytes` of a call, which is not 0. `moves`: the call moves elements and computes nothing. Throws
/// Error.
void check_own_elements(const std::string& operation, const unisono_call& given, bool moves);
/// Finds out which of the calls that must complete before are in flight. Throws Error if one has failed.
void resolve_before(CheckedCall& checked);

/// Reads a program file (docs/program-files.md). Throws Error(kMalformedProgram).
ProgramSet parse_programs(std::span<const std::byte> bytes);

/// What lets other kernels go on if a kernel runs in this thread, and returns whether one does; until it is set, none
/// does. Set by kernels/, which this floor does not know.
void set_yield(bool (*yield)());

/// Seconds as given by the user, to microseconds; throws Error, which says what `zero` means, unless 0 <= seconds <= 10
/// years.
std::chrono::microseconds duration_of(double seconds, const char* what, const char* zero = "default");

}  // namespace unisono::driver
