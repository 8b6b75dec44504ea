#include "driver/joining.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "platform/join/caller.hpp"

namespace unisono::driver {
namespace {

using join::Deadline;

double seconds_until(Deadline deadline) {
  return std::max(std::chrono::duration<double>(deadline - join::Clock::now()).count(), 0.0);
}

/// Calls a function of the program's, which is written in whatever language: nothing that it throws goes further.
template <class Function>
int called(const char* name, Function&& function) {
  try {
    return function();
  } catch (...) {
    throw Error(ErrorCode::kBootstrap, formatted("the caller's {} has thrown an exception", name));
  }
}

void check(const char* name, int result) {
  if (result != 0)
    throw Error(ErrorCode::kBootstrap, formatted("the caller's {} has failed: it returned {}", name, result));
}

join::CallerFunctions functions_of(const unisono_join_functions& given) {
  join::CallerFunctions made;
  if (given.all_gather != nullptr) {
    made.all_gather = [given](std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) {
      check("all_gather", called("all_gather", [&] {
              return given.all_gather(given.user, own.data(), own.size(), all.data(), seconds_until(deadline));
            }));
    };
    return made;
  }
  made.put = [given](const std::string& key, std::span<const std::byte> value, Deadline deadline) {
    check("put", called("put", [&] {
            return given.put(given.user, key.c_str(), value.data(), value.size(), seconds_until(deadline));
          }));
  };
  made.get = [given](const std::string& key, std::span<std::byte> value,
                     Deadline deadline) -> std::optional<std::size_t> {
    std::size_t bytes = 0;
    const int result = called("get", [&] {
      return given.get(given.user, key.c_str(), value.data(), value.size(), &bytes, seconds_until(deadline));
    });
    if (result == UNISONO_JOIN_LATE) return std::nullopt;
    check("get", result);
    return bytes;
  };
  return made;
}

}  // namespace

JobEnvironment job_of(const unisono_join_functions& functions) {
  const auto refuse = [](const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument, "unisono_join_functions: " + text);
  };
  const bool store = functions.put != nullptr && functions.get != nullptr;
  const bool half = !store && (functions.put != nullptr || functions.get != nullptr);
  if (half || store == (functions.all_gather != nullptr)) {
    refuse("either all_gather is to be given, or put and get together");
  }
  if (functions.size == 0 || functions.size > kMaxJobSize) {
    refuse(formatted("size is {}; allowed are 1 to {}", functions.size, kMaxJobSize));
  }
  if (functions.rank >= functions.size) {
    refuse(formatted("rank is {} of {}; ranks count from 0", functions.rank, functions.size));
  }
  constexpr double kLongest = 7 * 24 * 3600.0;
  const double seconds = functions.timeout_seconds;
  if (!(seconds >= 0 && seconds <= kLongest)) {
    refuse(formatted("timeout_seconds is {}; allowed are 0 (what the environment says) to {}", seconds, kLongest));
  }
  JobEnvironment environment = JobEnvironment::without_job();
  environment.rank = functions.rank;
  environment.size = functions.size;
  environment.meeting = MeetingPlace::kCaller;
  environment.caller = std::make_shared<const join::CallerFunctions>(functions_of(functions));
  if (seconds != 0) environment.timeout = std::chrono::milliseconds(std::max(1LL, std::llround(seconds * 1000)));
  return environment;
}

}  // namespace unisono::driver
