// The objects behind the handles of the C interface.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "driver/allocations.hpp"
#include "driver/handles.hpp"
#include "engine/engine.hpp"
#include "platform/native/job.hpp"
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

/// An endpoint's network and engine. Whoever works with them holds a reference, so that leaving the
/// job takes nothing from under a thread that still waits.
struct Endpoint {
  std::unique_ptr<Poe> poe;
  std::unique_ptr<Engine> engine;  ///< destroyed before its network
};

/// One endpoint of a job. Thread-safe.
class Context {
 public:
  /// Makes the engine and the communicator of all ranks (number 0) from all members' offers.
  Context(std::unique_ptr<Poe> poe, const EngineSettings& settings, std::span<const std::vector<std::byte>> offers);
  /// The same with an engine that is there already.
  Context(std::unique_ptr<Poe> poe, std::unique_ptr<Engine> engine, const Agreement& agreed);

  /// The engine and network; throws Error(kWrongProcess) after `close`.
  std::shared_ptr<Endpoint> endpoint() const;
  /// Leaves the job: cancels what is in flight. Later uses fail; a second close does too.
  void close();

  /// Numbers of communicators: a lower bound of what is free here, and the attempt to take one.
  std::uint32_t propose_number(std::uint32_t reserve);
  bool claim_number(std::uint32_t number);
  void release_number(std::uint32_t number);

  /// Memory that peers on this machine can reach; see unisono_allocate. Throws Error.
  Allocation allocate(std::uint64_t bytes) const;

  std::uint64_t world_handle = 0;  ///< set once, before the context is seen by anybody

 private:
  void begin(std::unique_ptr<Poe> poe, std::unique_ptr<Engine> engine, const Agreement& agreed);

  mutable std::mutex mutex_;
  std::shared_ptr<Endpoint> endpoint_;
  std::uint32_t next_number_ = 1;
  std::set<std::uint32_t> numbers_{0};
};

/// A communicator of a context.
struct Communicator {
  std::shared_ptr<Context> context;
  std::uint32_t number = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t group_size = 0;
  std::vector<std::uint32_t> endpoints;    ///< by rank
  std::shared_ptr<cclo::Express> express;  ///< null if calls go through the engine only
};

/// A call in flight, or its result.
class Request {
 public:
  Request(std::shared_ptr<Communicator> communicator, CallId id, std::uint64_t element_bytes, bool receives);

  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  CallId id() const { return id_; }

  /// The result if there is one; makes progress.
  std::optional<CallResult> test();
  /// Waits for the result; the call's own deadline bounds it.
  CallResult wait();
  /// Waits for the result, but not longer than `at_most`.
  std::optional<CallResult> wait_at_most(std::chrono::microseconds at_most);
  /// The result if it is known already; without progress.
  std::optional<CallResult> known() const;
  /// Elements of a completed recv. Throws Error for other calls.
  std::int64_t received() const;

 private:
  CallResult settle(Engine& engine, CallResult result);
  template <class Ask>
  std::optional<CallResult> ask(Ask&& ask);

  const std::shared_ptr<Communicator> communicator_;
  const CallId id_;
  const std::uint64_t element_bytes_;
  const bool receives_;
  mutable std::mutex mutex_;
  std::optional<CallResult> result_;
};

/// A job of threads, and the place where its members exchange their offers.
class SharedJob {
 public:
  explicit SharedJob(std::uint32_t size);
  std::uint32_t size() const { return size_; }
  /// Joins as one rank: collective over the job, bounded by `timeout`. Throws Error(kBootstrap).
  std::unique_ptr<Poe> join(std::uint32_t rank, std::vector<std::byte> offer, std::chrono::milliseconds timeout,
                            std::vector<std::vector<std::byte>>& offers);

 private:
  const std::uint32_t size_;
  ThreadJob job_;
  std::mutex mutex_;
  std::condition_variable joined_;
  std::vector<std::vector<std::byte>> offers_;
  std::vector<bool> taken_;
  std::uint32_t count_ = 0;
};

/// One program for each rank.
struct ProgramSet {
  std::vector<std::shared_ptr<const Program>> ranks;
  std::vector<std::array<std::uint64_t, 5>> region_bytes;  ///< by rank and Region: what the programs run on
};

using Contexts = Handles<Context, HandleKind::kContext>;
using Communicators = Handles<Communicator, HandleKind::kCommunicator>;
using Requests = Handles<Request, HandleKind::kRequest>;
using ThreadJobs = Handles<SharedJob, HandleKind::kThreadJob>;
using Programs = Handles<ProgramSet, HandleKind::kProgram>;

/// Bytes of one member's packed offer.
inline constexpr std::size_t kOfferBytes = 72;
/// What one member brings to the agreement of its job, as bytes. `node` is the transport's address of its device.
std::vector<std::byte> pack_offer(const Agreement& offer, Platform platform = Platform::kNative,
                                  std::uint32_t node = 0);
/// The nodes in packed offers, by endpoint.
std::vector<std::uint32_t> nodes_of(std::span<const std::vector<std::byte>> offers);
/// Agreement over packed offers. Throws Error(kBootstrap) on one of another version or platform.
Agreement agree_on(std::span<const std::vector<std::byte>> offers);

/// Collective over `parent`; null for a negative colour.
std::shared_ptr<Communicator> split(const std::shared_ptr<Communicator>& parent, std::int64_t colour, std::int64_t key,
                                    std::uint32_t group_size);

/// The bits that `value` has in common on all ranks that are left; collective over them, also on a revoked
/// communicator. `timeout` 0: the communicator's. Throws Error.
std::uint64_t agree(const Communicator& communicator, std::uint64_t value, std::chrono::microseconds timeout);
/// The ranks that have died or left, as far as this one can see. Not collective.
std::vector<std::uint32_t> failed_ranks(const Communicator& communicator);
/// A communicator of the ranks that are left, in their order; collective over them, also on a revoked communicator.
std::shared_ptr<Communicator> shrink(const std::shared_ptr<Communicator>& parent, std::chrono::microseconds timeout);

/// Runs a call on the communicator to its end. Throws its error.
void run_to_end(const Communicator& communicator, const CallRequest& request);

/// A call of the C interface that passed all checks, ready to be submitted.
struct CheckedCall {
  CallRequest request;
  std::vector<std::uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
  std::vector<std::uint64_t> params;   ///< of a neighbour exchange
  std::vector<std::int64_t> bytes[4];  ///< of an exchange with a datatype for each pair: its layout in bytes
  VectorArguments vectors;
  std::vector<CallId> wait_for;
};

/// Checks every argument before anything is sent; throws Error that says what was given and what is
/// allowed. `checked` must stay where it is until the request has been submitted.
void check_call(const Communicator& communicator, const unisono_call& call, CheckedCall& checked);

/// Reads a program file (docs/program-files.md). Throws Error(kMalformedProgram).
ProgramSet parse_programs(std::span<const std::byte> bytes);

/// Seconds as given by the user, to microseconds; throws Error unless 0 <= seconds <= 10 years.
std::chrono::microseconds duration_of(double seconds, const char* what);

}  // namespace unisono::driver
