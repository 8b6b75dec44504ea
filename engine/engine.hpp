// The engine (CCLO): carries out calls for one endpoint. The native one executes their programs itself.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/tuning.hpp"
#include "core/call.hpp"
#include "core/error.hpp"
#include "core/group_table.hpp"
#include "core/program.hpp"
#include "engine/carrier.hpp"
#include "network/poe.hpp"

namespace unisono {

/// Memory bound to a region.
struct Binding {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// Housekeeping settings of an endpoint. Communicators use the least of all members' values.
struct EngineSettings {
  std::uint32_t eager_limit = 8192;               ///< bytes of the largest eager message
  std::uint32_t segment_bytes = 32768;            ///< bytes of the largest segment
  std::uint32_t rx_buffer_count = 32;             ///< receive buffers per peer for eager messages that come early
  std::chrono::microseconds timeout{60'000'000};  ///< default deadline of a call
  /// What becomes of calls whose deadline has passed.
  enum class Deadlines : std::uint8_t { kFail, kWarn, kOff };
  Deadlines deadlines = Deadlines::kFail;
  bool lanes = true;                               ///< use the memory that members share, where there is some
  std::shared_ptr<const std::vector<Rule>> rules;  ///< of the choice of algorithms, before this library's own; or null
  /// Members may be engines in hardware, which take less than the protocol permits: see "Among engines in hardware" in
  /// docs/engine.md. All members say the same. Without lanes.
  bool hardware_peers = false;
  bool aggregates = false;  ///< see Agreement::aggregates
};

class KernelRun;

/// Number of a call of this endpoint, never reused; 0 is none.
using CallId = std::uint64_t;

/// What this rank does with the buffers of a call right before it begins, when it has been admitted, and right after it
/// has succeeded and before anybody sees that it has. Both may run under the engine's lock: they are short, do not
/// throw and do not use the engine.
class CallHooks {
 public:
  virtual ~CallHooks() = default;
  CallHooks() = default;
  CallHooks(const CallHooks&) = delete;
  CallHooks& operator=(const CallHooks&) = delete;
  virtual void before() = 0;
  /// `received_bytes`: of a recv.
  virtual void after(std::uint64_t received_bytes) = 0;
};

/// What is known of a message.
struct MessageStatus {
  std::uint32_t source = 0;  ///< rank
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;
  Datatype dtype = Datatype::kNone;  ///< of its elements, as the sender has them
};

/// What a front door says of a call, field for field; of most calls that is all. Buffers must stay valid until the call
/// has completed.
struct Request {
  std::uint32_t communicator = 0;
  std::uint32_t tag = 0;            ///< user tag (send, recv)
  Call call;                        ///< rank, size and groups are filled in by the engine
  std::uint64_t window_offset = 0;  ///< put, get: byte offset in the peer's window
  Binding src;
  Binding dst;
};

/// A request, and what few calls ask for beside.
struct CallRequest : Request {
  int algorithm = -1;                        ///< position in algorithms(), or -1 for automatic choice
  const VectorArguments* vectors = nullptr;  ///< v-collectives; copied at submission
  /// What a call descriptor has bound, for the engine behind a device's registers: memory for scratch, and the params
  /// as `Algorithm::fill_params` leaves them, copied at submission (`vectors` is then not looked at). Null: the engine
  /// provides its own.
  Binding scratch;
  Binding params;
  std::shared_ptr<const Program> program;  ///< for Collective::kProgram: this rank's program
  bool lanes_carry = false;                ///< what cclo::lanes_carry says of the programs of all ranks
  std::span<const CallId> wait_for;        ///< calls of this endpoint that must complete before
  std::chrono::microseconds timeout{0};    ///< 0 = the communicator's
  std::shared_ptr<CallHooks> hooks;        ///< null: none
  /// By what the hooks multiply the result of a reduction; 1: by nothing. It changes nothing but what the ranks
  /// compare.
  double post_scale = 1;
  const char* operation = nullptr;  ///< of a program of the library: what the user called; lives for ever
  bool reserved_tag = false;        ///< `tag` is one of the library's own, above kMaxUserTag
  bool any_source = false;          ///< recv: of whichever rank; `call.root` is 0
  bool any_tag = false;             ///< recv: with whichever tag; `tag` is 0
  bool probe = false;               ///< recv: waits until there is such a message, and leaves it there
  MessageStatus* status = nullptr;  ///< of `run`, recv: what came; null: nobody asks
  /// Stream ports in the place of src and dst; -1: memory. Of a send, `dst_port` is the peer's: no receive is needed.
  std::int8_t src_port = -1;
  std::int8_t dst_port = -1;

  std::shared_ptr<KernelRun> kernel;  ///< of a nop: the call ends when this kernel of the user does (kernel_run.hpp)

  bool streams() const { return src_port >= 0 || dst_port >= 0; }
  /// Whether it asks for nothing that a request has no words for. (A program and the like come with operations that
  /// are never without them.)
  bool plain() const {
    return algorithm == -1 && call.radix == 0 && !call.direct && wait_for.empty() && timeout.count() == 0 &&
           hooks == nullptr && post_scale == 1 && kernel == nullptr && !streams() && !reserved_tag && !any_source &&
           !any_tag && !probe && status == nullptr;
  }
};

/// What became of a call.
struct CallResult {
  bool complete = false;
  ErrorCode code = ErrorCode::kOk;
  std::string message;               ///< empty on success
  std::uint64_t received_bytes = 0;  ///< of a recv
  MessageStatus status{};            ///< of a recv
  bool still_written = false;        ///< a rank that was stopped may still write to the call's destination
};

/// Cores, by number; those beyond its length are counted with the lower ones.
using CoreMask = std::array<std::uint64_t, 4>;

/// What one member brings to, or a communicator has after, agreement.
struct Agreement {
  std::uint64_t capability = 0;  ///< encoded Capability, intersection over members
  std::uint32_t eager_limit = 0;
  std::uint32_t segment_bytes = 0;
  std::uint32_t rx_buffer_count = 0;
  std::uint32_t algorithm_hash = 0;  ///< of the algorithm table; must be equal
  std::uint32_t tuning_hash = 0;     ///< of the rules that come before this library's own; must be equal
  std::uint32_t quota = 0;           ///< cores' worth of time that is granted, rounded down; the least of all
  CoreMask cores{};                  ///< where the members may run, all together
  bool aggregates = false;           ///< asks switches to carry calls, if all members do
};

/// What a collective call ran with. Null before there was one, and for programs of the user.
struct LastAlgorithm {
  const Algorithm* algorithm = nullptr;
  bool automatic = false;  ///< the user named none
};

/// A communicator as its engine sees it.
struct CommunicatorState {
  std::uint32_t number = 0;
  std::uint16_t epoch = 0;
  Agreement agreed;  ///< segments as they are on this network
  std::chrono::microseconds timeout{0};
  std::uint64_t calls = 0;  ///< begun on this rank
  std::uint64_t kept = 0;   ///< bytes of short messages on lanes that no receive has asked for
  bool lanes = false;       ///< messages in memory that all members share
  bool revoked = false;
  std::string carrier{};  ///< of a device: which switches serve its collectives, or none and why; empty: it knows none
};

/// What the members of a communicator that are left have agreed on.
struct Agreed {
  std::uint64_t value = 0;       ///< the bits that the values of all have in common
  std::uint64_t number = 0;      ///< the largest of all
  std::vector<bool> gone;        ///< by rank: it has died, left or vanished, and has not taken part
  std::vector<bool> ended{};     ///< by rank: its process is known to have ended, or it has left
  std::vector<bool> vanished{};  ///< by rank: it has not answered some member of this part, and may live on elsewhere
  bool apart = false;            ///< some member is of a part that does not go on
};

namespace cclo {
class FastPath;
}

/// How one who serves many engines sleeps for all of them at once: for each, until a word of it changes.
struct Bell {
  const std::atomic<std::uint32_t>* word = nullptr;  ///< in memory that other processes write, too
  std::uint32_t armed = 0;                           ///< what it holds as long as nothing has come
  std::chrono::steady_clock::time_point look{};      ///< when the engine wants to be served again at the latest
};

/// How an engine was left by the thread that serves it.
enum class Served : std::uint8_t {
  kIdle,       ///< no call is in flight
  kBusy,       ///< something was done; there may be more to do
  kElsewhere,  ///< a thread of the program waits, and drives it
  kArmed,      ///< nothing to do until its bell rings
  kLater,      ///< nothing to do until `look`; its bell is not armed
};

/// One endpoint's engine: this library's own (`NativeEngine`), or one on a device. Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// What this engine brings to an agreement, on its network.
  virtual Agreement capabilities() const = 0;

  /// Makes a communicator of the listed endpoints, in order of rank; this endpoint must be among
  /// them. All members make it with the same number and epoch and the same agreed values (the
  /// intersection of all capabilities, see `agree`), and the same groups. Throws Error.
  virtual void create_communicator(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
                                   const Agreement& agreed, const Grouping& grouping = {}) = 0;
  /// This rank makes no further collective call on it. Throws Error(kMismatchedCall), and revokes it, if a member is
  /// known to have called otherwise; engines that cannot know it do nothing. To be freed next in any case.
  virtual void conclude(std::uint32_t /*number*/) {}
  /// Frees it. Calls in flight on it fail with kFreedCommunicator. Throws Error if there is none.
  virtual void free_communicator(std::uint32_t number) = 0;
  /// Of numbers below this one no communicator is made here any more: nothing need be kept of those that were freed.
  virtual void settle_numbers(std::uint32_t below) noexcept = 0;
  /// What people call a communicator, in errors and in its flight record, where the engine has one; empty: nothing.
  virtual void name_communicator(std::uint32_t communicator, const std::string& name) = 0;
  /// Default deadline of calls on a communicator.
  virtual void set_timeout(std::uint32_t communicator, std::chrono::microseconds timeout) = 0;
  virtual std::uint32_t rank(std::uint32_t communicator) const = 0;
  virtual std::uint32_t size(std::uint32_t communicator) const = 0;

  /// Binds the memory that peers may put into and get from on this communicator.
  virtual void bind_window(std::uint32_t communicator, Binding window) = 0;

  /// Starts a call and returns its number. Checks every argument and throws Error before anything is
  /// sent; errors after that are the call's result.
  virtual CallId submit(const CallRequest& request) = 0;
  /// As `submit`, of a call that the caller waits for next.
  virtual CallId submit_awaited(const CallRequest& request) { return submit(request); }
  /// Starts a call that says no more than its words, if it is of a kind that the engine need not check again; 0, having
  /// done nothing, if it is not: `submit` takes it, or says what is wrong.
  virtual CallId submit_at_once(const Request& request);
  /// The result of a call that has ended, which is forgotten then; nothing if it has not, or if that cannot be told
  /// without making progress.
  virtual std::optional<CallResult> take(CallId id);
  /// `submit`, `wait` and `forget` in one. Throws what the call ends with. Returns the bytes that a recv received.
  virtual std::uint64_t run(const CallRequest& request);
  /// The message that a probe (`request.probe`) would find now, if there is one: it does not wait. Throws Error.
  virtual std::optional<MessageStatus> look_for(const CallRequest& request);
  /// What carries out the blocking calls of a communicator in the caller's thread, or null if there is no such way;
  /// remains usable for as long as the caller keeps it. A front door that has it hands its requests to that first
  /// (FastPath::try_run), which needs no look for the communicator; `run` does the same for those that have not.
  virtual std::shared_ptr<cclo::FastPath> fast_path(std::uint32_t communicator) const;
  /// What kernels do at a stream port of this engine (docs/streams.md): give bytes to calls, and take bytes from calls.
  /// Both go on until all bytes have gone through, or for `at_most`, and return how many have; they make progress on
  /// all calls meanwhile. Several threads may be at different ports; at one port and side, one at a time. Throw
  /// Error(kInvalidArgument) for a port that there is not, and Error(kUnsupported) on engines whose kernels are
  /// elsewhere. `read_stream` throws what the call that gave elements to the port has failed with.
  virtual std::uint64_t write_stream(std::uint32_t port, std::span<const std::byte> bytes,
                                     std::chrono::microseconds at_most);
  /// Whether it carries out calls with a kernel (CallRequest::kernel) all by itself; else the kernel runs in this
  /// process, and begins when the call says so.
  virtual bool runs_kernels() const { return false; }
  virtual std::uint64_t read_stream(std::uint32_t port, std::span<std::byte> bytes, std::chrono::microseconds at_most);
  /// The algorithm of the last collective call that has begun on a communicator.
  virtual LastAlgorithm last_algorithm(std::uint32_t communicator) const = 0;
  /// What a communicator's members have agreed on, and how it is.
  virtual CommunicatorState state(std::uint32_t communicator) const = 0;
  /// Changes settings; communicators that are made later are made with these. Throws Error.
  virtual void configure(const EngineSettings& settings) = 0;
  /// Those with which the next communicator would be made.
  virtual EngineSettings settings() const = 0;
  /// Its performance counters: how many there are, and each by its position.
  virtual std::size_t counters() const = 0;
  virtual const char* counter_name(std::size_t position) const = 0;
  virtual std::uint64_t counter(std::size_t position) const = 0;
  /// Makes progress and reports; the result stays available until `forget`.
  virtual CallResult test(CallId id) = 0;
  /// Progresses until the call has completed (in success or error); the call's own deadline ends it.
  CallResult wait(CallId id) { return wait(id, std::chrono::microseconds::max()); }
  /// As `wait`, but returns after `at_most` with what there is.
  virtual CallResult wait(CallId id, std::chrono::microseconds at_most) = 0;
  /// Progresses until at least one of the calls has completed, or `at_most` has passed. Returns whether one has.
  virtual bool wait_any(std::span<const CallId> ids, std::chrono::microseconds at_most) = 0;
  /// Makes progress in the background, for threads that do something else: returns true when no call is in flight and
  /// no message waits to be sent, false when `at_most` has passed. Sleeps where there is nothing to do, and makes way
  /// for every thread that waits itself.
  virtual bool drive(std::chrono::microseconds at_most) = 0;
  /// The same for one who serves many engines, without sleeping; engines without a bell sleep for `at_most`. `watched`:
  /// the bell is also of interest while no call is in flight. One at a time, and from then on its bell is armed until
  /// `disarm`, or another answer than kArmed or kBusy. Throws as `progress` does.
  virtual Served serve(Bell& bell, bool watched, std::chrono::microseconds at_most);
  virtual bool has_bell() const { return false; }
  virtual void disarm() {}
  /// `begin` is called, with no lock of the engine held, when a wait ends although messages still wait to be sent, or
  /// may have to be sent again: it has somebody else `serve` or `drive` the engine, from the given time on, until it is
  /// idle. Null: nobody. Engines that send by themselves never call it.
  using Background = std::function<void(std::chrono::steady_clock::time_point)>;
  virtual void set_background(const Background& /*begin*/) {}
  /// Hears of a call that has ended. Runs once, on the thread that made the progress or at once if the call has ended
  /// already, with no lock of the engine held. Does not throw, and does not wait for calls; it may start some.
  using Listener = std::function<void(const CallResult&)>;
  virtual void when_complete(CallId id, Listener listener) = 0;
  /// Drops a completed call's result. The buffers of a call are in use until it has completed.
  virtual void forget(CallId id) = 0;
  /// Makes progress on everything once.
  virtual void progress() = 0;

  /// Marks the communicator as failed on all reachable members.
  virtual void revoke(std::uint32_t communicator, const std::string& reason) = 0;

  /// Whether `agree` can be used.
  virtual bool recovers() const { return false; }
  /// Agrees with all members that are left, also on a revoked communicator: all get the same. `purpose` tells apart
  /// what agreements are for. Throws Error: kTimeout saying who has not come, kMismatchedCall if purposes differ,
  /// kUnsupported from engines that cannot.
  virtual Agreed agree(std::uint32_t communicator, std::uint32_t purpose, std::uint64_t value, std::uint64_t number,
                       std::chrono::microseconds timeout);
  /// By rank: whether it has died or left, as far as this endpoint can see.
  virtual std::vector<bool> gone(std::uint32_t communicator);
};

/// The engine of this library. Caller-driven: calls make progress inside `submit`, `test`, `wait` and
/// `progress`. Thread-safe by one lock.
class NativeEngine final : public Engine {
 public:
  /// `poe` must outlive the engine. Throws Error.
  NativeEngine(Poe& poe, const EngineSettings& settings);
  ~NativeEngine() override;

  /// What an engine with these settings brings to an agreement; known before there is a network, whose largest payload
  /// may still shorten the segments of a communicator. Throws Error if a setting is not allowed.
  static Agreement capabilities_of(const EngineSettings& settings);

  using Engine::wait;
  Agreement capabilities() const override;
  void create_communicator(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
                           const Agreement& agreed, const Grouping& grouping = {}) override;
  /// Switches of the network take part in its collectives as ranks behind the members, as `tree` says; `switches` are
  /// their endpoints, in the tree's order. Among engines in hardware; before the first call. Throws
  /// Error(kInvalidArgument).
  void add_switches(std::uint32_t number, const CallTree* tree, std::span<const std::uint32_t> switches);
  void conclude(std::uint32_t number) override;
  void free_communicator(std::uint32_t number) override;
  void settle_numbers(std::uint32_t below) noexcept override;
  void name_communicator(std::uint32_t communicator, const std::string& name) override;
  void set_timeout(std::uint32_t communicator, std::chrono::microseconds timeout) override;
  std::uint32_t rank(std::uint32_t communicator) const override;
  std::uint32_t size(std::uint32_t communicator) const override;
  void bind_window(std::uint32_t communicator, Binding window) override;
  CallId submit(const CallRequest& request) override;
  CallId submit_awaited(const CallRequest& request) override;
  CallId submit_at_once(const Request& request) override;
  std::optional<CallResult> take(CallId id) override;
  std::uint64_t run(const CallRequest& request) override;
  std::optional<MessageStatus> look_for(const CallRequest& request) override;
  std::shared_ptr<cclo::FastPath> fast_path(std::uint32_t communicator) const override;
  std::uint64_t write_stream(std::uint32_t port, std::span<const std::byte> bytes,
                             std::chrono::microseconds at_most) override;
  std::uint64_t read_stream(std::uint32_t port, std::span<std::byte> bytes, std::chrono::microseconds at_most) override;
  LastAlgorithm last_algorithm(std::uint32_t communicator) const override;
  CommunicatorState state(std::uint32_t communicator) const override;
  void configure(const EngineSettings& settings) override;
  EngineSettings settings() const override;
  std::size_t counters() const override;
  const char* counter_name(std::size_t position) const override;
  std::uint64_t counter(std::size_t position) const override;
  CallResult test(CallId id) override;
  CallResult wait(CallId id, std::chrono::microseconds at_most) override;
  bool wait_any(std::span<const CallId> ids, std::chrono::microseconds at_most) override;
  bool drive(std::chrono::microseconds at_most) override;
  Served serve(Bell& bell, bool watched, std::chrono::microseconds at_most) override;
  bool has_bell() const override;
  void disarm() override;
  void set_background(const Background& begin) override;
  void when_complete(CallId id, Listener listener) override;
  void forget(CallId id) override;
  void progress() override;
  void revoke(std::uint32_t communicator, const std::string& reason) override;
  bool recovers() const override;
  Agreed agree(std::uint32_t communicator, std::uint32_t purpose, std::uint64_t value, std::uint64_t number,
               std::chrono::microseconds timeout) override;
  std::vector<bool> gone(std::uint32_t communicator) override;

  /// From now on `carrier` is asked for every collective call that names no algorithm and goes by messages; null:
  /// nobody is. It lives until it is taken back.
  void set_carrier(CallCarrier* carrier);
  /// Calls `function` under the engine's lock.
  void with_lock(const std::function<void()>& function);

 private:
  class Impl;
  CallId submit(const CallRequest& request, bool awaited);
  std::uint64_t run_hooked(const CallRequest& request);

  std::unique_ptr<Impl> impl_;
};

/// How many ranks can have a core each, by what all members have said.
std::uint32_t usable_cores(const Agreement& agreed);

/// What a member is called in an error, by its position.
using MemberName = std::function<std::string(std::size_t)>;

/// Agreement over all members' capabilities. Throws Error(kUnsupported) if tables of algorithms or rules of
/// their choice differ, and names the two members. Without `name` they are "member 0", "member 1", ...
Agreement agree(std::span<const Agreement> all_capabilities, const MemberName& name = {});

}  // namespace unisono
