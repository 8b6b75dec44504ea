// Reads a job's description from the environment.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/shm/segment.hpp"
#include "platform/native/job.hpp"
#include "platform/native/rendezvous.hpp"

namespace unisono {
namespace {

constexpr std::size_t kMinSecret = 16;
constexpr double kLongestTimeout = 7 * 24 * 3600.0;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

[[noreturn]] void refuse(const char* name, const std::optional<std::string>& value, const std::string& allowed) {
  throw Error(ErrorCode::kBootstrap, std::string("environment variable ") + name + " is " +
                                         (value ? "\"" + *value + "\"" : "not set") + ", but should be " + allowed);
}

std::uint32_t whole_number(const char* name, std::uint32_t least, std::uint32_t most, const std::string& allowed) {
  const auto value = variable(name);
  std::uint32_t number = 0;
  if (!value) refuse(name, value, allowed);
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, number);
  if (fault != std::errc() || stop != end || number < least || number > most) refuse(name, value, allowed);
  return number;
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

std::chrono::milliseconds timeout_from(const char* name, std::chrono::milliseconds otherwise) {
  const auto value = variable(name);
  if (!value) return otherwise;
  double seconds = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, seconds);
  if (fault != std::errc() || stop != end || !std::isfinite(seconds) || seconds < 0.001 || seconds > kLongestTimeout) {
    refuse(name, value, formatted("a number of seconds from 0.001 to {}", static_cast<long>(kLongestTimeout)));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::optional<std::uint64_t> kernel_copy_from(const char* name) {
  const auto value = variable(name);
  if (!value || *value == "auto") return std::nullopt;
  if (*value == "off") return 0;
  std::uint64_t bytes = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, fault] = std::from_chars(value->data(), end, bytes);
  if (fault != std::errc() || stop != end || bytes == 0) {
    refuse(name, value,
           "auto (what this machine does faster), off, or the number of bytes from which on the kernel copies");
  }
  return bytes;
}

}  // namespace

JobEnvironment JobEnvironment::from_environment() {
  JobEnvironment environment;
  environment.timeout = timeout_from("UNISONO_JOIN_TIMEOUT_S", environment.timeout);
  environment.observer = variable("UNISONO_OBSERVER").value_or("");
  if (environment.observer.size() > rendezvous::kMaxName || !is_printable(environment.observer)) {
    refuse(
        "UNISONO_OBSERVER", environment.observer,
        formatted(
            "the name of an abstract Unix socket, at most {} printable characters (`unisono run --counters` sets it)",
            rendezvous::kMaxName));
  }
  const auto way = variable("UNISONO_STDOUT");
  if (way && *way != "lines" && *way != "blocks") {
    refuse("UNISONO_STDOUT", way, "lines (`unisono run` sets it) or blocks, which leaves C's stdout as it is");
  }
  environment.lines = way == "lines";
  environment.kernel_copy = kernel_copy_from("UNISONO_KERNEL_COPY");
  const bool described = variable("UNISONO_RANK") || variable("UNISONO_SIZE") || variable("UNISONO_RENDEZVOUS") ||
                         variable("UNISONO_SECRET");
  if (!described) return environment;

  environment.size =
      whole_number("UNISONO_SIZE", 1, shm::kMaxEndpoints,
                   formatted("the number of ranks, 1 to {} (`unisono run` sets it)", shm::kMaxEndpoints));
  environment.rank = whole_number(
      "UNISONO_RANK", 0, environment.size - 1,
      formatted("this process's rank, 0 to {} (UNISONO_SIZE is {})", environment.size - 1, environment.size));
  if (environment.size == 1) return environment;

  const auto rendezvous = variable("UNISONO_RENDEZVOUS");
  if (!rendezvous || rendezvous->empty() || rendezvous->size() > rendezvous::kMaxName || !is_printable(*rendezvous)) {
    refuse("UNISONO_RENDEZVOUS", rendezvous,
           formatted("the job's name, the same on all ranks: 1 to {} printable characters without spaces",
                     rendezvous::kMaxName));
  }
  environment.rendezvous = *rendezvous;

  const auto secret = variable("UNISONO_SECRET");
  if (!secret || secret->size() < kMinSecret || secret->size() > rendezvous::kMaxSecret || !is_hexadecimal(*secret)) {
    // The value itself must not get into logs.
    const std::string given = !secret ? "not set" : formatted("set to {} characters", secret->size());
    throw Error(ErrorCode::kBootstrap, formatted("environment variable UNISONO_SECRET is {}, but should be {} to {} "
                                                 "hexadecimal digits, the same on all ranks",
                                                 given, kMinSecret, rendezvous::kMaxSecret));
  }
  environment.secret = *secret;
  return environment;
}

void write_stdout_by_lines() {
  // In this order: what is written out leaves a buffer that is line by line.
  static_cast<void>(std::setvbuf(stdout, nullptr, _IOLBF, 0));
  static_cast<void>(std::fflush(stdout));
}

}  // namespace unisono
