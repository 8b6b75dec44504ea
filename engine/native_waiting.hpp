// How a thread waits in the native engine; for the files of its inside.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

#include "engine/native_engine.hpp"
#include "network/wait_hook.hpp"

namespace unisono {

namespace cclo {

/// Longest sleep of a waiting thread: how late a dead peer may be noticed.
inline constexpr std::chrono::microseconds kLongestSleep{10'000};
/// The same without shared memory in jobs of many endpoints, which may all be threads of one process: if each of a
/// thousand looked every 10 ms, nothing else would be done. Networks tell of most ends.
inline std::chrono::microseconds longest_sleep_of(const Poe& poe) {
  constexpr std::uint32_t kMany = 64;
  return poe.size() <= kMany
             ? kLongestSleep
             : std::min<std::chrono::microseconds>(kLongestSleep * (poe.size() / 32), std::chrono::milliseconds(200));
}

}  // namespace cclo

template <class Done>
void NativeEngine::Impl::wait_until(Done&& done, std::chrono::microseconds at_most, Manner manner) {
  const bool behind = manner == Manner::kBackground;
  const auto begin = Clock::now();
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(Clock::time_point::max() - begin);
  const auto end = at_most >= longest ? Clock::time_point::max() : begin + at_most;
  bool eager = true;  // to poll before it sleeps; not where a whole sleep has brought nothing
  cclo::Turn turn(*this);
  struct Present {
    explicit Present(std::uint32_t* count) : waiting(count) {
      if (waiting != nullptr) ++*waiting;
    }
    ~Present() {
      if (waiting != nullptr) --*waiting;
    }
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;
    std::uint32_t* waiting;
  };
  {
    const Present present(behind ? nullptr : &waiting);
    while (!done()) {
      const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now());
      if (rest.count() <= 0) {
        progress();  // so that even waits of no time bring the call to its end
        break;
      }
      if (behind ? driven || waiting != 0 : driven) {
        // Another thread drives: it is told of every end, and wakes one of the others when it leaves. One in the
        // background leaves at once when it is woken.
        if (shm::ShmPoe* shared = blocks.poe->shared_memory(); !behind && driven_behind && shared != nullptr) {
          shm::wake_if_parked(shared->segment()->endpoint(shared->self()));
        }
        const bool hooked = WaitHook::installed();
        if (hooked) {
          turn.unlock();
          WaitHook::call();
          turn.lock();
          if (done()) continue;
        }
        std::unique_lock<std::mutex> held(mutex, std::adopt_lock);
        ended.wait_for(held, std::min(rest, hooked ? WaitHook::kInterval : cclo::kLongestSleep));
        held.release();
        turn.tell();
        continue;
      }
      const std::uint32_t seen = blocks.poe->activity();
      if (progress()) {
        eager = true;
        turn.tell();
        continue;
      }
      const auto left = std::min(
          rest, std::chrono::duration_cast<std::chrono::microseconds>(calls.next_deadline() - blocks.poe->now()));
      driven = true;
      driven_behind = behind;
      turn.unlock();
      try {
        const auto longest_sleep = std::clamp(left, std::chrono::microseconds{1}, cclo::kLongestSleep);
        if (shm::ShmPoe* shared = blocks.poe->shared_memory()) {
          // What comes over lanes does not count as activity; only trying shows whether something has come.
          eager = shared->await(
              [&] {
                const std::lock_guard inner(mutex);
                return progress() || done() || (behind && waiting != 0);
              },
              [] { return true; }, Clock::now() + longest_sleep,
              behind ? shm::ShmPoe::Manner::kBackground : shm::ShmPoe::Manner::kForeground, eager);
        } else if (WaitHook::installed()) {
          WaitHook::call();
          blocks.poe->wait(seen, std::min(longest_sleep, WaitHook::kInterval));
        } else {
          blocks.poe->wait(seen, std::clamp(left, std::chrono::microseconds{1}, cclo::longest_sleep_of(*blocks.poe)));
        }
      } catch (...) {
        turn.lock();
        driven = driven_behind = false;
        throw;
      }
      turn.lock();
      driven = driven_behind = false;
      if (behind && waiting != 0) ended.notify_all();
      turn.tell();
    }
  }
  if (!driven) ended.notify_all();
}

}  // namespace unisono
