// Somebody else who carries out collective calls of the native engine, beside its programs: a switch that aggregates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/call.hpp"

namespace unisono {

class KernelRun;
struct Binding;
struct CallRequest;
struct CallResult;

/// Calls that a carrier makes itself, under the engine's lock.
class CallStarter {
 public:
  using Listener = std::function<void(const CallResult&)>;
  /// Starts a call. Its number is forgotten when it has ended; `listener` hears of it then, without the lock. Throws
  /// Error, and has started nothing then.
  virtual void start(const CallRequest& request, Listener listener) = 0;
  /// Whether a message of any rank with this tag waits on a communicator: the rank.
  virtual std::optional<std::uint32_t> look_for(std::uint32_t communicator, std::uint32_t tag) = 0;
  /// Frees a communicator that the carrier has made. Its calls have ended then, and use no memory any more.
  virtual void free(std::uint32_t communicator) = 0;

 protected:
  ~CallStarter() = default;
};

/// All of its functions are called under the engine's lock; they are short, do not throw and do not use the engine but
/// for the starter.
class CallCarrier {
 public:
  /// A call that has passed all checks and is about to be submitted. Either it is carried: the run begins when the
  /// call does, and the call ends with it (kernel_run.hpp). Or null: the engine executes its program. All members must
  /// decide alike. `post_scale`: of CallRequest; not applied, but members that give different ones must be told.
  virtual std::shared_ptr<KernelRun> carry(std::uint32_t communicator, const Call& call, double post_scale,
                                           const Binding& src, const Binding& dst) = 0;
  /// A round of progress. Whether anything was done.
  virtual bool progress(CallStarter& starter) = 0;
  /// A communicator has been freed. What the carrier has made for it the carrier frees, now or later.
  virtual void freed(CallStarter& starter, std::uint32_t communicator) = 0;

 protected:
  ~CallCarrier() = default;
};

}  // namespace unisono
