#include "network/wait_hook.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "core/process.hpp"

namespace unisono {

std::atomic<bool> WaitHook::any_hook{false};

namespace {

// Touched only by the thread that has the turn.
WaitHook::Function function = nullptr;
void* context = nullptr;
WaitHook::Runner runner = nullptr;

/// Whether a thread is in the hook: one more than the generation of its process, so that a turn that a thread had when
/// another one forked is no turn in the child; 0: none is.
std::atomic<std::uint32_t> turn{0};
thread_local bool mine = false;  ///< this thread has it

bool take_turn() {
  const std::uint32_t mark = fork_generation() + 1;
  std::uint32_t seen = turn.load(std::memory_order_relaxed);
  return seen != mark && turn.compare_exchange_strong(seen, mark, std::memory_order_acquire);
}

struct Turn {
  Turn() { mine = true; }
  ~Turn() {
    mine = false;
    turn.store(0, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

}  // namespace

void WaitHook::install(Function next, void* next_context, Runner next_runner) {
  const auto set = [&] {
    function = next;
    context = next_context;
    runner = next_runner;
    any_hook.store(next != nullptr, std::memory_order_relaxed);
  };
  if (mine) return set();
  while (!take_turn()) std::this_thread::yield();
  const Turn own;
  set();
}

void WaitHook::call() {
  if (!take_turn()) return;
  const Turn own;
  if (function == nullptr) return;
  if (runner != nullptr) {
    runner(function, context);
  } else {
    function(context);
  }
}

void WaitHook::nap() {
  // Timers of ordinary threads are late by up to their slack, 50 us as a rule.
  const int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  if (slack > 1) prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  constexpr timespec kTime{0, std::chrono::nanoseconds(kInterval).count()};
  nanosleep(&kTime, nullptr);
  if (slack > 1) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack), 0, 0, 0);
}

void WaitHook::sleep_for(std::chrono::microseconds time) {
  if (!installed()) {
    std::this_thread::sleep_for(time);
    return;
  }
  const Clock::time_point end = Clock::now() + time;
  do {
    call();
    nap();
  } while (installed() && Clock::now() < end);
}

}  // namespace unisono
