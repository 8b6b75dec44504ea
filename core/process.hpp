// Processes: whether one still runs, and whether this one is a child of fork.
#pragma once

#include <cstdint>
#include <string>

namespace unisono {

/// When a process was started, in clock ticks since boot; 0 if it is gone or unreadable. Together with
/// the pid it names a process for good, for the kernel reuses pids.
std::uint64_t start_time_of(std::uint32_t pid);
/// The same of this process, read once.
std::uint64_t own_start_time();

/// What the system says of a process that is not simply at work: stopped, traced, ended; empty if it is, or if it is
/// not known, or another process has its number now.
std::string condition_of(std::uint32_t pid, std::uint64_t start_time);

/// Counts the forks between the loading of the library and this process: unequal numbers mean that an
/// object was made in an ancestor. One relaxed load.
std::uint32_t fork_generation();

/// Watches another process. Not thread-safe.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  /// Watches process `pid`, started at `start_time`; by pidfd, or by /proc where descriptors or the
  /// kernel do not suffice.
  ProcessWatch(std::uint32_t pid, std::uint64_t start_time);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  /// Whether a process was named.
  bool watching() const { return pid_ != 0; }
  /// Whether it still runs; a process that has ended but was not waited for does not.
  bool running() const;

 private:
  std::uint32_t pid_ = 0;
  std::uint64_t start_time_ = 0;
  int descriptor_ = -1;
};

}  // namespace unisono
