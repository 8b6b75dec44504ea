#include "sim/cluster/team.hpp"

#include <algorithm>
#include <utility>
#ifdef __linux__
#include <sched.h>
#endif

namespace unisono::sim {
namespace {

/// Some microseconds: longer than what is done between two cycles, shorter than a thread's turn on a processor.
constexpr int kSpins = 400;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Until the value is no longer `old`; returns it.
std::uint32_t await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

unsigned usable_processors() {
#ifdef __linux__
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

Team::Team(std::uint32_t items, unsigned threads, std::function<void(std::uint32_t)> work)
    : items_(items), work_(std::move(work)), state_(std::make_unique<Item[]>(items)) {
  for (unsigned thread = 1; thread < std::min(threads, items); ++thread) {
    others_.emplace_back([this, thread] { serve(thread); });
  }
}

Team::~Team() {
  ending_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& other : others_) other.join();
}

void Team::run() {
  if (others_.empty()) {
    for (std::uint32_t item = 0; item < items_; ++item) work_(item);
    return;
  }
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t round = round_.fetch_add(1, std::memory_order_release) + 1;
  round_.notify_all();
  take_part(0, round);
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != items_;) done = await_change(done_, done);
  if (!failed_.load(std::memory_order_relaxed)) return;
  failed_.store(false, std::memory_order_relaxed);
  std::exception_ptr first;
  for (std::uint32_t item = items_; item-- > 0;) {
    if (auto error = std::exchange(state_[item].error, nullptr)) first = error;
  }
  std::rethrow_exception(first);
}

void Team::take_part(unsigned thread, std::uint32_t round) {
  const auto begin = static_cast<std::uint32_t>(std::uint64_t{items_} * thread / threads());
  for (std::uint32_t i = 0; i < items_; ++i) {
    const std::uint32_t number = (begin + i) % items_;
    Item& item = state_[number];
    // Fails too where this thread is late: the round in which it is has been claimed, and others after it.
    std::uint32_t before = round - 1;
    if (!item.round.compare_exchange_strong(before, round, std::memory_order_acq_rel)) continue;
    try {
      work_(number);
    } catch (...) {
      item.error = std::current_exception();
      failed_.store(true, std::memory_order_relaxed);
    }
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == items_) done_.notify_one();
  }
}

void Team::serve(unsigned thread) {
  for (std::uint32_t round = 0;;) {
    round = await_change(round_, round);
    if (ending_.load(std::memory_order_relaxed)) return;
    take_part(thread, round);
  }
}

}  // namespace unisono::sim
