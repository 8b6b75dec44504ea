#include "driver/observe.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "engine/flight_report.hpp"
#include "network/shm/process.hpp"
#include "network/shm/segment.hpp"

namespace unisono::driver {
namespace {

std::string text_of(std::span<const cclo::ObservedEndpoint> endpoints, Observation what) {
  const auto now = std::chrono::steady_clock::now();
  if (what == Observation::kTable) return cclo::flight_table(endpoints, now);
  return cclo::flight_report(
      endpoints, what == Observation::kHistory ? cclo::ReportDetail::kHistory : cclo::ReportDetail::kNow, now);
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
    } else if (!shm::ProcessWatch(pid, start_time).running()) {
      seen.condition = "has died";
    } else {
      seen.condition = shm::condition_of(pid, start_time);
    }
    seen.records = segment.records(endpoint);
    found.push_back(std::move(seen));
  }
  return found;
}

}  // namespace

std::string observe(const Poe& poe, Observation what) { return text_of(cclo::endpoints_of(poe), what); }

std::string observe_process(std::uint32_t pid, Observation what) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument, "process " + std::to_string(pid) + ": " + why);
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(opendir(folder.c_str()), closedir);
  if (open_folder == nullptr) {
    if (errno == ENOENT) throw refuse("there is none of that number");
    throw refuse("it cannot be looked at: " + std::generic_category().message(errno) +
                 " (it must belong to the same user)");
  }
  std::string text;
  std::string fault;
  int jobs = 0;
  while (const dirent* entry = readdir(open_folder.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string path = folder + "/" + entry->d_name;
    char link[64];
    const ssize_t length = readlink(path.c_str(), link, sizeof link);
    if (length <= 0 || std::string(link, static_cast<std::size_t>(length)) != "/memfd:unisono (deleted)") continue;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      fault = "its job's memory cannot be read: " + std::generic_category().message(errno);
      continue;
    }
    try {
      const auto segment = shm::Segment::observe(descriptor);
      const std::string own = text_of(endpoints_of(*segment), what);
      struct stat status {};
      if (what == Observation::kTable && fstat(descriptor, &status) == 0) {
        text += "job\t" + std::to_string(status.st_ino) + "\n";
      } else if (++jobs > 1) {
        text += "\nanother job of this process:\n";
      }
      text += own;
    } catch (const Error& error) {
      fault = error.what();
    }
    close(descriptor);
  }
  if (text.empty()) throw refuse(fault.empty() ? "it has no job of Unisono" : fault);
  return text;
}

}  // namespace unisono::driver
