#include "doors/mpi/keeper.hpp"

#include <chrono>
#include <csignal>
#include <system_error>

namespace unisono::mpi {

namespace {

using std::chrono::microseconds;
constexpr microseconds kNap{500};
/// So many naps with nothing in flight, and it sleeps until it is woken, which costs its waker some microseconds.
constexpr int kIdleNaps = 40;

}  // namespace

void Keeper::wake() {
  const std::lock_guard lock(mutex_);
  if (!begun_) {
    begun_ = true;
    // Signals are the program's.
    sigset_t all{};
    sigset_t before{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      ends_ = true;  // calls make progress when the program calls MPI
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (!idle_) return;
  idle_ = false;
  changed_.notify_one();
}

Keeper::~Keeper() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Keeper::run() {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0;
  int empty = 0;
  while (!ends_) {
    if (empty == kIdleNaps) {
      empty = 0;
      idle_ = true;
      changed_.wait(lock, [this] { return ends_ || !idle_; });
    } else {
      changed_.wait_for(lock, kNap, [this] { return ends_; });
    }
    if (ends_) return;
    lock.unlock();
    const std::uint64_t looks = looks_.load(std::memory_order_relaxed);
    empty = take_over_(looks == seen) ? 0 : empty + 1;
    seen = looks;
    lock.lock();
  }
}

}  // namespace unisono::mpi
