#include "driver/observe.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX, not C
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/process.hpp"
#include "driver/housekeeping.hpp"
#include "engine/flight_report.hpp"
#include "network/shm/segment.hpp"

namespace unisono::driver {
namespace {

std::string text_of(std::span<const cclo::ObservedEndpoint> endpoints, Observation what) {
  const auto now = std::chrono::steady_clock::now();
  if (what == Observation::kTable) return cclo::flight_table(endpoints, now);
  if (what == Observation::kCounters) return cclo::counters_table(endpoints);
  return cclo::flight_report(
      endpoints, what == Observation::kHistory ? cclo::ReportDetail::kHistory : cclo::ReportDetail::kNow, now);
}

/// The characters in a word, which ranks write: what cannot be told in a line of text is replaced.
std::string text_in(std::uint64_t word) {
  std::string text;
  for (; word != 0; word >>= 8U) {
    const char character = static_cast<char>(word & 0xffU);
    text += character <= ' ' || character > '~' ? '?' : character;
  }
  return text;
}

/// The endpoints of a job as its memory shows them.
std::vector<cclo::ObservedEndpoint> endpoints_of(const shm::Segment& segment) {
  std::vector<cclo::ObservedEndpoint> found;
  for (std::uint32_t endpoint = 0; endpoint < segment.size(); ++endpoint) {
    const shm::EndpointBlock& block = segment.endpoint(endpoint);
    const auto state = block.state.load(std::memory_order_acquire);
    const std::uint32_t pid = block.pid.load(std::memory_order_relaxed);
    const std::uint64_t start_time = block.start_time.load(std::memory_order_relaxed);
    cclo::ObservedEndpoint seen;
    seen.name = "pid " + std::to_string(pid);
    if (segment.geometry().one_process != 0) seen.name += " (thread)";
    if (state == shm::EndpointState::kAbsent) {
      seen.name = "endpoint " + std::to_string(endpoint);
      seen.condition = "has not joined";
    } else if (state == shm::EndpointState::kLeft) {
      seen.condition = "has left";
    } else if (!ProcessWatch(pid, start_time).running()) {
      seen.condition = "has died";
    } else {
      seen.condition = condition_of(pid, start_time);
    }
    seen.records = segment.records(endpoint);
    seen.counters = &segment.counters(endpoint);
    const std::uint64_t seat = block.seat.load(std::memory_order_acquire);
    seen.rank = seat == 0 ? endpoint : static_cast<std::uint32_t>(seat);
    seen.of = static_cast<std::uint32_t>(seat >> 32U);
    seen.network = text_in(block.network.load(std::memory_order_relaxed));
    found.push_back(std::move(seen));
  }
  return found;
}

}  // namespace

std::string observe(const Poe& poe, Observation what) { return text_of(cclo::endpoints_of(poe), what); }

namespace {

Error refusal(std::uint32_t pid, const std::string& why) {
  return Error(ErrorCode::kInvalidArgument, "process " + std::to_string(pid) + ": " + why);
}

/// Calls `use(descriptor)` with the memory of each job of a process, open for what `flags` say. What `use` throws is
/// thrown if it could not be used of any job. Throws Error(kInvalidArgument) if there is none.
template <class Use>
void for_each_job(std::uint32_t pid, int flags, Use&& use) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(opendir(folder.c_str()), closedir);
  if (open_folder == nullptr) {
    if (errno == ENOENT) {
      const bool there = kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
      throw refusal(pid, there ? "it cannot be looked at: /proc does not show it" : "there is none of that number");
    }
    throw refusal(pid, "it cannot be looked at: " + std::generic_category().message(errno) +
                           " (it must belong to the same user)");
  }
  std::string fault;
  bool used = false;
  while (const dirent* entry = readdir(open_folder.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string path = folder + "/" + entry->d_name;
    char link[64];
    const ssize_t length = readlink(path.c_str(), link, sizeof link);
    if (length <= 0 || std::string(link, static_cast<std::size_t>(length)) != "/memfd:unisono (deleted)") continue;
    const int descriptor = open(path.c_str(), flags | O_CLOEXEC);
    if (descriptor < 0) {
      fault = "its job's memory cannot be opened: " + std::generic_category().message(errno);
      continue;
    }
    try {
      use(descriptor);
      used = true;
    } catch (const Error& error) {
      fault = error.what();
    }
    close(descriptor);
  }
  if (!used) throw refusal(pid, fault.empty() ? "it has no job of Unisono" : fault);
}

}  // namespace

std::string observe_process(std::uint32_t pid, Observation what) {
  std::string text;
  int jobs = 0;
  for_each_job(pid, O_RDONLY, [&](int descriptor) {
    const auto segment = shm::Segment::observe(descriptor);
    const std::string own = text_of(endpoints_of(*segment), what);
    struct stat status {};
    if (what == Observation::kTable && fstat(descriptor, &status) == 0) {
      text += "job\t" + std::to_string(status.st_ino) + "\n";
    } else if (++jobs > 1) {
      text += what == Observation::kCounters ? "\n" : "\nanother job of this process:\n";
    }
    text += own;
  });
  return text;
}

void order_settings(std::uint32_t pid, const unisono_settings& given) {
  if (given.without_lanes != 0 || given.offload != 0 || given.determinism != 0 || given.algorithms != nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "lanes, offload, determinism and algorithms cannot be set from outside, for ranks that differ in them "
                "for a moment would fail; sizes and the deadline can");
  }
  // Refuses what no engine takes.
  EngineSettings settings;
  RuleChoice none;
  none.made = true;
  apply(given, settings, none);
  NativeEngine::capabilities_of(settings);
  for_each_job(pid, O_RDWR, [&](int descriptor) {
    const auto segment = shm::Segment::attach(descriptor);
    JobOrders& orders = segment->orders();
    const auto order = [](auto& word, auto value) {
      if (value != 0) word.store(value, std::memory_order_relaxed);
    };
    order(orders.eager_limit, given.eager_limit);
    order(orders.segment_bytes, given.segment_bytes);
    order(orders.rx_buffer_count, given.rx_buffer_count);
    if (given.timeout_seconds != 0) {
      orders.timeout_us.store(static_cast<std::uint64_t>(settings.timeout.count()), std::memory_order_relaxed);
    }
  });
}

void order_reset(std::uint32_t pid) {
  for_each_job(pid, O_RDWR, [](int descriptor) {
    shm::Segment::attach(descriptor)->orders().resets.fetch_add(1, std::memory_order_relaxed);
  });
}

}  // namespace unisono::driver
