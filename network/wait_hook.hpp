// A function of the program's that is called in every wait: for a second progress engine, such as a library below this
// one or beside it, that must be driven while a thread waits here.
//
// Where there is none, a wait loads one word as it begins to wait, and nothing else is different.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>

namespace unisono {

/// The process's hook. Thread-safe.
///
/// Every thread that waits calls it, with no lock held, at least each `kInterval` as far as the system lets it run; so
/// waits do not sleep longer than that. A wait that ends before it is due may call nothing, one in some tens must. Of
/// threads that wait at once, one at a time is in it; the others wait on.
class WaitHook {
 public:
  using Function = void (*)(void* context);
  /// Calls the function; null: only the wait does.
  using Runner = void (*)(Function function, void* context);
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::microseconds kInterval{10};

  /// Sets the function of waits that begin from now on; null: none. Returns when no other thread is in the one before.
  static void install(Function function, void* context, Runner runner = nullptr);

  /// Whether waits of this thread must call it.
  static bool installed() { return any_hook.load(std::memory_order_relaxed) && !quiet(); }
  /// Calls it, unless a thread is in it, this one included.
  static void call();
  /// Sleeps for `kInterval`, and not for the system's slack of timers beyond it.
  static void nap();
  /// What std::this_thread::sleep_for does, with calls. No lock may be held.
  static void sleep_for(std::chrono::microseconds time);
  /// What condition.wait_until(lock, until, ready) does, with calls for which the lock is released.
  template <class Lock, class Ready>
  static bool wait_until(std::condition_variable& condition, Lock& lock, Clock::time_point until, Ready&& ready) {
    while (!ready()) {
      const bool hooked = installed();
      if (hooked) {
        lock.unlock();
        call();
        lock.lock();
        if (ready()) return true;
      }
      const Clock::time_point now = Clock::now();
      if (now >= until) return false;
      // A hook that is set later is found out about; a time beyond the clock's end would be none for the system.
      constexpr std::chrono::milliseconds kLook{100};
      condition.wait_for(lock, std::min<Clock::duration>(until - now, hooked ? Clock::duration(kInterval) : kLook));
    }
    return true;
  }

  /// While it lives, waits of this thread call nothing: because it holds a lock, or waits for itself only.
  class Quiet {
   public:
    Quiet() : before_(quiet()) { quiet() = true; }
    ~Quiet() { quiet() = before_; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    bool before_;
  };

 private:
  static bool& quiet() {
    static constinit thread_local bool value = false;
    return value;
  }

  static std::atomic<bool> any_hook;
};

}  // namespace unisono
