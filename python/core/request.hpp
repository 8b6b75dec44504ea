// Calls in flight as objects of Python, and waits for several of them.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "python/core/memory.hpp"
#include "python/core/outcome.hpp"
#include "python/core/ownership.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

/// A call in flight, with everything it uses.
struct InFlight {
  unisono_request* request = nullptr;
  Memory src;
  Memory dst;
  std::vector<Memory> arguments{};  ///< of a kernel
  std::vector<nb::object> used{};   ///< calls that were prepared for it, and communicators
  std::shared_ptr<Ownership> of{};  ///< the communicator of a call
};

/// Gives back what dropped requests still used, as far as their calls have ended. With the GIL. To be called before
/// another call is made.
void release_abandoned();

/// What is known of a message: source, tag, elements, bytes, datatype.
using StatusTuple = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint64_t, int>;
unisono_status empty_status();
StatusTuple tuple_of(const unisono_status& status);

/// One of them. Dropping it does not end its call, which keeps its buffers.
class Request {
 public:
  explicit Request(InFlight call) : call_(std::move(call)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();

  unisono_request* handle() const { return call_.request; }

  /// Waits up to `seconds` (negative: until the call's deadline); whether the call has completed.
  bool wait(double seconds);
  /// Makes progress; whether the call has completed.
  bool test();
  /// What a completed recv has got.
  std::int64_t received() const;
  StatusTuple status() const;

  /// Starts one that was prepared.
  void start() const;
  void offload() const;
  /// Calls `function()` once, when the call has ended: in the thread of the program that makes the progress, or, if the
  /// helper thread does, or `beside`, in one that is there for this (Completions). It may wait there if `beside`.
  void on_complete(const nb::callable& function, bool beside) const;

 private:
  InFlight call_;
};

/// The handles of requests that a call is to follow.
std::vector<unisono_request*> handles_of(const std::vector<const Request*>& requests);

}  // namespace unisono::python
