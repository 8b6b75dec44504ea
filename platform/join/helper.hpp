// Functions of others that know no deadline.
#pragma once

#include <condition_variable>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "network/wait_hook.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

/// What a thread of its own brings. Copies are of the same one.
template <class Result>
class Helper {
 public:
  /// Runs `work` in a thread of its own, or here if the system has none to give. It must not throw, and owns all that
  /// it looks at: the waiting thread may have gone.
  explicit Helper(const std::function<Result()>& work) {
    // The thread is not interrupted: signals are for those of the program.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([shared = shared_, work] {
        const WaitHook::Quiet quiet;  // the program's hook is for the program's threads
        shared->bring(work());
      }).detach();
    } catch (const std::system_error&) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      shared_->bring(work());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  /// Nothing if it is not there by the deadline. It may be asked for again.
  std::optional<Result> result(Deadline deadline) const {
    std::unique_lock lock(shared_->mutex);
    WaitHook::wait_until(shared_->changed, lock, deadline, [this] { return shared_->result.has_value(); });
    return shared_->result;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result> result;

    void bring(Result brought) {
      const std::scoped_lock lock(mutex);
      result = std::move(brought);
      changed.notify_all();
    }
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace unisono::join
