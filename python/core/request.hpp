// Calls in flight as objects of Python, and waits for several of them.
#pragma once

#include <array>
#include <cstddef>
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
/// Dropped requests whose calls had ended and been waited for: freed without the GIL, which the next call that starts
/// releases anyway.
class EndedRequests {
 public:
  /// False if there is no room. With the GIL.
  static bool add(unisono_request* request);
  /// Whether there are some. With the GIL.
  static bool any() { return process().count_ != 0; }
  /// All that were added. With the GIL.
  static EndedRequests take() { return std::exchange(process(), {}); }
  void free() const;

 private:
  static EndedRequests& process();

  std::array<unisono_request*, 16> handles_{};
  std::size_t count_ = 0;
};

/// What is known of a message: source, tag, elements, bytes, datatype.
using StatusTuple = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint64_t, int>;
unisono_status empty_status();
StatusTuple tuple_of(const unisono_status& status);

/// One of them. Dropping it does not end its call, which keeps its buffers.
class Request {
 public:
  explicit Request(InFlight call) : call_(std::move(call)) {}
  Request(Request&& other) noexcept
      : call_(std::move(other.call_)), ended_(other.ended_), called_back_(other.called_back_) {
    other.call_.request = nullptr;
  }
  Request& operator=(Request&&) = delete;
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
  void start();
  void offload() const;
  /// Calls `function()` once, when the call has ended: in the thread of the program that makes the progress, or, if the
  /// helper thread does, or `beside`, in one that is there for this (Completions). It may wait there if `beside`.
  void on_complete(const nb::callable& function, bool beside);

 private:
  InFlight call_;
  bool ended_ = false;        ///< with success, as a wait or test has found
  bool called_back_ = false;  ///< somebody is told of its end, perhaps still
};

/// The handles of requests that a call is to follow.
std::vector<unisono_request*> handles_of(const std::vector<const Request*>& requests);

}  // namespace unisono::python
