#include "doors/shmem/patience.hpp"

#include <sched.h>

#include <cstdio>
#include <string>
#include <thread>

#include "doors/shmem/failure.hpp"
#include "doors/shmem/job.hpp"

namespace unisono::shmem {

namespace {

constexpr auto kYields = std::chrono::microseconds(500);
constexpr auto kNap = std::chrono::microseconds(50);
constexpr auto kLook = std::chrono::milliseconds(10);

int cores() {
  static const int count = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  return count;
}

thread_local Interrupt interrupt = nullptr;

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", value);
  return text;
}

}  // namespace

bool Patience::alone() { return reach.size <= cores(); }

double Patience::waited() const {
  return begin_ == Clock::time_point{} ? 0 : std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Patience::pause_longer() {
  const Clock::time_point now = Clock::now();
  Job& job = Job::of(operation_);
  if (begin_ == Clock::time_point{}) {
    begin_ = now;
    look_ = now + kLook;
    deadline_ = job.timeout();
  }
  if (now - begin_ < kYields) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
  if (now < look_) return;
  look_ = now + kLook;
  job.look_after_peers(operation_);
  if (interrupt != nullptr && interrupt(nullptr) != 0) fail(operation_, "the wait was interrupted", "revoked");
  if (deadline_ <= 0 || waited() < deadline_) return;
  const std::string sentence =
      "waited " + seconds(deadline_) +
      " for memory of this PE that nobody has changed as it asks; see which PE should have, or "
      "raise UNISONO_SHMEM_TIMEOUT_S";
  if (!job.deadline_warns()) fail(operation_, sentence, "timeout");
  std::fprintf(stderr, "unisono shmem (PE %d): %s: %s\n", job.rank(), operation_, sentence.c_str());
  deadline_ += job.timeout();
}

void set_interrupt(Interrupt wants_to_stop) { interrupt = wants_to_stop; }

void look_after_peers(const char* operation) { Job::of(operation).look_after_peers(operation); }

}  // namespace unisono::shmem
