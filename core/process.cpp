#include "core/process.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX, not C
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace unisono {
namespace {

std::atomic<std::uint32_t> generation{0};

struct ProcessStatus {
  char state = 0;  ///< 0 if it could not be read
  std::uint64_t start_time = 0;
};

ProcessStatus status_of(std::uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  // The command's name, in parentheses, may contain anything: fields count from the last one.
  const auto end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream fields(line.substr(end_of_name + 1));
  ProcessStatus status;
  fields >> status.state;  // field 3; the start time is field 22
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> status.start_time;
  return fields ? status : ProcessStatus{};
}

/// Whether two start times may be of one process: 0 is unknown (no descriptor left to read it, say).
bool may_be_same(std::uint64_t one, std::uint64_t other) { return one == 0 || other == 0 || one == other; }

}  // namespace

std::uint64_t start_time_of(std::uint32_t pid) { return status_of(pid).start_time; }

std::uint64_t own_start_time() {
  // Generation and time are one word, so that threads that are here at once find a pair that belongs together.
  static std::atomic<std::uint64_t> known{0};
  constexpr std::uint64_t kTime = (std::uint64_t{1} << 48U) - 1;
  const std::uint64_t generation = std::uint64_t{fork_generation() & 0xffffU} << 48U;
  const std::uint64_t word = known.load(std::memory_order_relaxed);
  if ((word & kTime) != 0 && (word & ~kTime) == generation) return word & kTime;
  const std::uint64_t time = start_time_of(static_cast<std::uint32_t>(getpid()));
  if (time <= kTime) known.store(generation | time, std::memory_order_relaxed);
  return time;
}

std::string condition_of(std::uint32_t pid, std::uint64_t start_time) {
  const ProcessStatus status = status_of(pid);
  if (!may_be_same(status.start_time, start_time)) return {};
  switch (status.state) {
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'Z':
    case 'X':
      return "ended";
    case 'D':
      return "waiting for a device";
    default:
      return {};
  }
}

std::uint32_t fork_generation() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

ProcessWatch::ProcessWatch(std::uint32_t pid, std::uint64_t start_time) : pid_(pid), start_time_(start_time) {
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U));
  // Opened after the pid was read: make sure that it is still the same process we now hold.
  if (descriptor_ >= 0 && !may_be_same(start_time_of(pid), start_time)) {
    close(descriptor_);
    descriptor_ = -1;
  }
}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      start_time_(other.start_time_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(start_time_, other.start_time_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

bool ProcessWatch::running() const {
  if (descriptor_ >= 0) {
    pollfd poll_one{descriptor_, POLLIN, 0};
    return poll(&poll_one, 1, 0) == 0;  // a pidfd becomes readable when its process ends
  }
  if (kill(static_cast<pid_t>(pid_), 0) != 0 && errno == ESRCH) return false;
  // An ended process keeps its pid until it is waited for, and later another may get it.
  const ProcessStatus status = status_of(pid_);
  return status.state != 'Z' && status.state != 'X' && may_be_same(status.start_time, start_time_);
}

}  // namespace unisono
