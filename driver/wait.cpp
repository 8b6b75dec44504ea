// Waiting for one, some or all of several requests.
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "driver/callbacks.hpp"
#include "driver/interface.hpp"

namespace unisono::driver {

namespace {

using Clock = std::chrono::steady_clock;

/// The live entries of an array of requests, and what is known of them.
class Several {
 public:
  Several(unisono_request* const* requests, std::size_t count) {
    if (requests == nullptr && count != 0) throw Error(ErrorCode::kInvalidArgument, "the array of requests is null");
    for (std::size_t i = 0; i < count; ++i) {
      if (requests[i] == nullptr) continue;
      const auto request = request_of(requests[i]);
      const std::shared_ptr<Context>& context = request->communicator()->context;
      if (context_ && context_ != context) {
        throw Error(ErrorCode::kInvalidArgument, "request " + std::to_string(i) +
                                                     " belongs to another context than those before it; wait for the "
                                                     "requests of each context by themselves");
      }
      context_ = context;
      entries_.push_back({i, request->flight(), {}});
    }
  }

  bool empty() const { return entries_.empty(); }

  /// Waits until at least one has ended.
  void wait_any(std::chrono::microseconds at_most) {
    std::vector<CallId> ids;
    bool ended = false;
    for (Entry& entry : entries_) {
      entry.result = entry.flight->known();
      ended = ended || entry.result;
      if (!entry.result) ids.push_back(entry.flight->id());
    }
    if (ids.empty()) return;
    try {
      context_->endpoint()->engine->wait_any(ids, ended ? std::chrono::microseconds(0) : at_most);
    } catch (const Error&) {
      // The context was closed: the look below says so of each.
    }
    for (Entry& entry : entries_) {
      if (!entry.result) entry.result = outcome(*entry.flight, std::chrono::microseconds(0));
    }
  }

  /// Waits until all have ended.
  void wait_all(std::chrono::microseconds at_most) {
    const bool limited = at_most != std::chrono::microseconds::max();
    const auto begin = limited ? Clock::now() : Clock::time_point();
    for (Entry& entry : entries_) {
      auto left = at_most;
      if (limited) {
        const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
        left = std::max(at_most - passed, std::chrono::microseconds(0));
      }
      entry.result = outcome(*entry.flight, left);
    }
  }

  bool all() const {
    return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.result.has_value(); });
  }
  /// Calls `use(position, result)` for those that have ended.
  template <class Use>
  void for_each_ended(Use&& use) const {
    for (const Entry& entry : entries_) {
      if (entry.result) use(entry.position, *entry.result);
    }
  }

 private:
  struct Entry {
    std::size_t position;
    std::shared_ptr<Flight> flight;
    std::optional<CallResult> result;
  };

  /// A call that can no longer be asked for has ended, with the reason.
  static std::optional<CallResult> outcome(Flight& flight, std::chrono::microseconds at_most) {
    try {
      return flight.wait_at_most(at_most);
    } catch (const Error& error) {
      return CallResult{true, error.code(), error.what(), 0, error.still_written()};
    }
  }

  std::shared_ptr<Context> context_;
  std::vector<Entry> entries_;
};

/// `seconds` of the interface; callbacks may only look.
std::chrono::microseconds limit_of(double seconds, const char* function) {
  const bool unlimited = seconds == UNISONO_NO_LIMIT;
  const auto limit = unlimited ? std::chrono::microseconds::max() : duration_of(seconds, "seconds", "only look");
  if (limit.count() != 0) Callbacks::refuse(function);
  return limit;
}

void tell(unisono_result* results, std::size_t count, const Several& several) {
  if (results == nullptr) return;
  std::fill(results, results + count, 0);
  several.for_each_ended([&](std::size_t position, const CallResult& result) {
    results[position] = static_cast<unisono_result>(result.code);
  });
}

void throw_first_failure(const Several& several) {
  several.for_each_ended([](std::size_t, const CallResult& result) { throw_if_failed(result); });
}

}  // namespace

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_wait_any(unisono_request* const* requests, size_t count, double seconds, size_t* index) {
  return guarded([&] {
    std::size_t& found = output(index, "index");
    found = UNISONO_NONE;
    const auto limit = limit_of(seconds, "unisono_wait_any");
    Several several(requests, count);
    if (several.empty()) return;
    several.wait_any(limit);
    several.for_each_ended([&](std::size_t position, const CallResult& result) {
      if (found != UNISONO_NONE) return;
      found = position;
      throw_if_failed(result);
    });
  });
}

unisono_result unisono_wait_some(unisono_request* const* requests, size_t count, double seconds, size_t* indices,
                                 size_t* completed, unisono_result* results) {
  return guarded([&] {
    std::size_t& found = output(completed, "number of completed requests");
    found = 0;
    if (count != 0) output(indices, "indices");
    const auto limit = limit_of(seconds, "unisono_wait_some");
    Several several(requests, count);
    if (!several.empty()) several.wait_any(limit);
    several.for_each_ended([&](std::size_t position, const CallResult&) { indices[found++] = position; });
    tell(results, count, several);
    throw_first_failure(several);
  });
}

unisono_result unisono_wait_all(unisono_request* const* requests, size_t count, double seconds, int* complete,
                                unisono_result* results) {
  return guarded([&] {
    int& done = output(complete, "answer");
    done = 0;
    const auto limit = limit_of(seconds, "unisono_wait_all");
    Several several(requests, count);
    several.wait_all(limit);
    done = several.all() ? 1 : 0;
    tell(results, count, several);
    throw_first_failure(several);
  });
}

unisono_result unisono_test_any(unisono_request* const* requests, size_t count, size_t* index) {
  return unisono_wait_any(requests, count, 0, index);
}

unisono_result unisono_test_all(unisono_request* const* requests, size_t count, int* complete,
                                unisono_result* results) {
  return unisono_wait_all(requests, count, 0, complete, results);
}

}  // extern "C"
