#include "driver/offload.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <system_error>

#include "core/error.hpp"
#include "engine/engine.hpp"

namespace unisono::driver {

Offload::Offload(Engine& engine) : engine_(engine) {
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::error_code refused;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& failure) {
    refused = failure.code();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (refused) {
    throw Error(ErrorCode::kCapacity, "an offload thread cannot be started: " + refused.message() +
                                          " (a limit of threads or processes, or a sandbox)");
  }
}

Offload::~Offload() {
  stopping_.store(true);
  wake();
  thread_.join();
}

void Offload::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_) return;
    wanted_ = true;
  }
  called_.notify_one();
}

void Offload::serve() {
  constexpr std::chrono::milliseconds kSlice{20};
  while (!stopping_.load()) {
    {
      std::unique_lock lock(mutex_);
      called_.wait(lock, [&] { return wanted_; });
      wanted_ = false;
    }
    bool idle = false;
    while (!idle && !stopping_.load()) {
      try {
        idle = engine_.drive(kSlice);
      } catch (const Error&) {
        // Whoever waits for a call hears of it; the others go on.
        std::this_thread::sleep_for(kSlice);
      }
    }
  }
}

}  // namespace unisono::driver
