// Who may use a device: one thread after the other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "network/wait_hook.hpp"

namespace unisono {

/// A lock that serves in the order of arrival, so that a thread that waits in short slices keeps nobody out.
class TurnLock {
 public:
  void lock() {
    std::unique_lock inner(mutex_);
    const std::uint64_t own = next_++;
    turn_.wait(inner, [&] { return serving_ == own; });
  }
  void unlock() {
    {
      const std::lock_guard inner(mutex_);
      ++serving_;
    }
    turn_.notify_all();
  }
  /// Whether somebody waits for the one who has it.
  bool wanted() const {
    const std::lock_guard inner(mutex_);
    return next_ - serving_ > 1;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

/// Holds the lock of an engine, its `turns`. Once it has given that back, it calls the listeners of calls that have
/// ended, which the engine has put into `due`.
template <class Engine>
class Turn {
 public:
  explicit Turn(Engine& engine) : engine_(engine) { engine_.turns.lock(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { give_back(); }
  /// Lets others have the lock, and calls the listeners.
  void pass_on() {
    give_back();
    engine_.turns.lock();
  }
  /// Calls the hook of waits without the lock.
  void call_hook() {
    give_back();
    WaitHook::call();
    engine_.turns.lock();
  }

 private:
  void give_back() {
    const auto due = std::exchange(engine_.due, {});
    engine_.turns.unlock();
    for (const auto& [listener, result] : due) listener(result);
  }

  Engine& engine_;
};

}  // namespace unisono
