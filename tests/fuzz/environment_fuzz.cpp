// What users write into variables of the environment: the job's description, and pinned algorithms.
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "cost/pins.hpp"
#include "network/shm/segment.hpp"
#include "platform/join/job.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A line for each variable; one that is missing or empty is not set.
  constexpr const char* kNames[] = {"UNISONO_SIZE",           "UNISONO_RANK", "UNISONO_RENDEZVOUS", "UNISONO_SECRET",
                                    "UNISONO_JOIN_TIMEOUT_S", "UNISONO_JOIN", "UNISONO_JOIN_HOSTS"};
  std::string_view rest = text;
  for (const char* name : kNames) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string value(rest.substr(0, end).substr(0, rest.substr(0, end).find('\0')));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }
  try {
    const JobEnvironment job = JobEnvironment::from_environment();
    claim(job.size >= 1 && job.size <= kMaxJobSize && job.rank < job.size, "ranks count from 0 to size-1");
    claim(job.timeout.count() > 0, "no wait without a deadline");
    const bool by_file = job.meeting == MeetingPlace::kFile && !job.file.empty();
    const bool by_socket = job.rendezvous.empty() != job.addresses.empty() && job.secret.size() >= 16;
    claim(job.size == 1 || by_file || by_socket, "nobody joins without a place, and at a socket without the secret");
    claim(job.hosts_of_ranks.empty() || job.hosts_of_ranks.size() == job.size, "each rank is on a host");
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap, "a description is refused as such");
    const char* secret = std::getenv("UNISONO_SECRET");
    const std::string message = error.what();
    // A short secret may be part of a message by chance, and the fuzzer learns the words of messages.
    const bool telling = secret != nullptr && std::strlen(secret) > 15 && std::strchr(secret, ' ') == nullptr &&
                         std::strstr(secret, "UNISONO") == nullptr;
    // What another variable holds is quoted, and may be anything.
    if (telling && message.starts_with("environment variable UNISONO_SECRET is")) {
      claim(message.find(secret) == std::string::npos, "the secret is in no message");
    }
  }
  try {
    for (const Rule& rule : cost::parse_pins(text)) {
      claim(rule.position < algorithms().size(), "a pin names an algorithm");
      claim(rule.radix == 0 || algorithms()[rule.position].default_radix != 0, "what has a radix takes one");
      claim(rule.min_bytes <= rule.max_bytes, "a range does not end before it begins");
    }
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnknownAlgorithm,
          "a pin is refused as such");
  }
  return 0;
}
