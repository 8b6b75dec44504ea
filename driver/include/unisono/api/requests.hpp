// Calls in flight, and waits for one or several of them. Part of unisono.hpp, which includes it.
#ifndef UNISONO_API_REQUESTS_HPP
#define UNISONO_API_REQUESTS_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "unisono/api/buffers.hpp"
#include "unisono/unisono.h"

namespace unisono {
inline namespace api {

/// In place of the peer and of the tag of a receive, and of a probe: whichever.
inline constexpr std::int64_t kAnySource = UNISONO_ANY_SOURCE;
inline constexpr std::int64_t kAnyTag = UNISONO_ANY_TAG;

/// What is known of a message.
struct Status {
  std::uint32_t source = 0;  ///< rank that sent it
  std::int64_t tag = 0;
  std::int64_t count = 0;  ///< elements: as the receive has them; of a probe as the sender has
  std::uint64_t bytes = 0;
  unisono_datatype datatype = 0;  ///< of the sender's elements
};

namespace detail {

/// A status of the C interface, to be filled.
inline unisono_status empty_status() {
  unisono_status made{};
  made.struct_size = sizeof made;
  return made;
}
inline Status status_of(const unisono_status& from) {
  return {static_cast<std::uint32_t>(from.source), from.tag, from.count, from.bytes, from.datatype};
}

}  // namespace detail

/// A call in flight. Movable. Destroying it waits for the call (its deadline bounds the wait).
class Request {
 public:
  Request() = default;
  explicit Request(unisono_request* handle) : handle_(handle) {}
  Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      unisono_request_free(handle_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Request() { unisono_request_free(handle_); }

  /// Starts a call that was made with Options::start = false, which can be done again whenever it has ended.
  void start() { detail::check(unisono_request_start(handle_)); }
  /// Calls `function(result)` once when the call has ended, 0 for success, on the thread that makes the progress, or at
  /// once if it has ended already. It must not throw, nor wait for calls: see unisono_on_complete. In it,
  /// unisono_last_error() is the call's sentence.
  void on_complete(std::function<void(unisono_result)> function) {
    auto held = std::make_unique<std::function<void(unisono_result)>>(std::move(function));
    detail::check(unisono_on_complete(
        handle_,
        [](unisono_request*, unisono_result result, void* context) noexcept {
          const std::unique_ptr<std::function<void(unisono_result)>> own(
              static_cast<std::function<void(unisono_result)>*>(context));
          (*own)(result);
        },
        held.get()));
    static_cast<void>(held.release());  // the callback's from here on
  }
  /// Has the process's helper thread make progress until the call has ended, whether or not anybody waits for it.
  void offload() { detail::check(unisono_request_offload(handle_)); }
  /// Waits for completion. Throws the call's Error.
  void wait() { detail::check(unisono_wait(handle_)); }
  /// Makes progress; whether the call has completed. Throws the call's Error.
  bool test() {
    int complete = 0;
    detail::check(unisono_test(handle_, &complete));
    return complete != 0;
  }
  /// Elements received by a completed recv.
  std::int64_t received() const {
    std::int64_t count = 0;
    detail::check(unisono_request_count(handle_, &count));
    return count;
  }
  /// Source, tag and length of a completed recv.
  Status status() const {
    unisono_status status = detail::empty_status();
    detail::check(unisono_request_status(handle_, &status));
    return detail::status_of(status);
  }
  unisono_request* handle() const noexcept { return handle_; }

 private:
  unisono_request* handle_ = nullptr;
};

/// Ranges of requests.
template <class Range>
concept Requests = std::ranges::input_range<Range> && std::is_same_v<std::ranges::range_value_t<Range>, Request>;

namespace detail {

template <class Range>
std::vector<unisono_request*> handles_of(Range&& requests) {
  std::vector<unisono_request*> handles;
  if constexpr (std::ranges::sized_range<Range>) handles.reserve(std::ranges::size(requests));
  for (const Request& request : requests) handles.push_back(request.handle());
  return handles;
}

}  // namespace detail

/// While it lives, a function of the program is called in every wait of this process: for a second progress engine, a
/// library below or beside this one. What it may do, and when it is called: unisono_set_wait_hook. It must not throw.
/// A process has one: the last one made.
class WaitHook {
 public:
  explicit WaitHook(std::function<void()> function) : function_(std::move(function)) {
    unisono_set_wait_hook([](void* self) { static_cast<WaitHook*>(self)->function_(); }, this);
  }
  ~WaitHook() { unisono_set_wait_hook(nullptr, nullptr); }
  WaitHook(const WaitHook&) = delete;
  WaitHook& operator=(const WaitHook&) = delete;

 private:
  std::function<void()> function_;
};

/// No limit but the deadlines of the calls.
inline constexpr double kNoLimit = UNISONO_NO_LIMIT;

/// Waits until one of several requests has ended, in success or failure, for at most `seconds`; progress is made on
/// all. Returns its position; nothing if none has ended in time, or all are empty (`requests[i] = {}` takes out one
/// that is done with). The result is for requests[position].wait() to say.
template <Requests Range>
std::optional<std::size_t> wait_any(Range&& requests, double seconds = kNoLimit) {
  const auto handles = detail::handles_of(requests);
  std::size_t index = UNISONO_NONE;
  const unisono_result result = unisono_wait_any(handles.data(), handles.size(), seconds, &index);
  if (index != UNISONO_NONE) return index;
  detail::check(result);
  return std::nullopt;
}

/// The same, and returns the positions of all that have ended.
template <Requests Range>
std::vector<std::size_t> wait_some(Range&& requests, double seconds = kNoLimit) {
  const auto handles = detail::handles_of(requests);
  std::vector<std::size_t> indices(handles.size());
  std::size_t completed = 0;
  const unisono_result result =
      unisono_wait_some(handles.data(), handles.size(), seconds, indices.data(), &completed, nullptr);
  if (completed == 0) detail::check(result);
  indices.resize(completed);
  return indices;
}

/// Waits until all have ended, for at most `seconds`. Returns whether they have. Throws the error of the first that
/// failed, but not before all have ended; the results of the others are for their wait() to say.
template <Requests Range>
bool wait_all(Range&& requests, double seconds = kNoLimit) {
  const auto handles = detail::handles_of(requests);
  int complete = 0;
  const unisono_result result = unisono_wait_all(handles.data(), handles.size(), seconds, &complete, nullptr);
  if (complete != 0) detail::check(result);
  if (complete == 0 && result != 0) wait_some(requests, 0);  // throws if these are no requests to wait for
  return complete != 0;
}

/// wait_any and wait_all that only look.
template <Requests Range>
std::optional<std::size_t> test_any(Range&& requests) {
  return wait_any(requests, 0);
}
template <Requests Range>
bool test_all(Range&& requests) {
  return wait_all(requests, 0);
}

}  // namespace api
}  // namespace unisono

#endif
