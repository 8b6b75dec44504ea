#include "python/core/completions.hpp"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <system_error>
#include <thread>

#include "driver/callbacks.hpp"

namespace unisono::python {

namespace {

/// How long a function may take, while others are due, until another thread takes over.
constexpr std::chrono::milliseconds kPatience{2};
/// Functions that wait at one time; each has a thread.
constexpr std::uint32_t kMostThreads = 64;

std::atomic<Completions*>& current() {
  static std::atomic<Completions*> own{new Completions};  // NOLINT(cppcoreguidelines-owning-memory): for the process
  return own;
}

/// Calls it, under the GIL, and lets go of it.
void call(PyObject* function, Completions::Waits waits) {
  const auto told = [function] {
    PyObject* const result = PyObject_CallNoArgs(function);
    if (result == nullptr) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
  };
  if (waits == Completions::Waits::kAllowed) {
    told();
  } else {
    driver::Callbacks::run(told);
  }
  Py_DECREF(function);
}

/// A thread's hold of the GIL. It stays known to Python in between, which is less work than to be made known each time.
class OwnGil {
 public:
  OwnGil() = default;
  OwnGil(const OwnGil&) = delete;
  OwnGil& operator=(const OwnGil&) = delete;
  ~OwnGil() {
    if (known_ == nullptr) return;
    PyEval_RestoreThread(known_);
    PyGILState_Release(before_);
  }

  void take() {
    if (known_ != nullptr) {
      PyEval_RestoreThread(known_);
    } else {
      before_ = PyGILState_Ensure();
    }
  }
  void give() { known_ = PyEval_SaveThread(); }

 private:
  PyThreadState* known_ = nullptr;
  PyGILState_STATE before_ = PyGILState_UNLOCKED;
};

}  // namespace

Completions& Completions::instance() { return *current().load(std::memory_order_acquire); }

void Completions::forget() {
  // The old one's lock may be held for ever, by a thread of the parent.
  current().store(new Completions, std::memory_order_release);  // NOLINT(cppcoreguidelines-owning-memory)
}

void Completions::add(PyObject* function, Waits waits) {
  std::unique_lock lock(mutex_);
  ended_.push_back({function, waits});
  if (!unattended() && (asking_ || watching_ != 0)) return;  // it will be seen
  if (idle_ + watching_ != 0) {
    come_.notify_one();
    return;
  }
  if (threads_ < kMostThreads && start()) return;
  if (threads_ != 0) return;  // one of them comes back
  ended_.pop_back();
  lock.unlock();
  const nb::gil_scoped_acquire held;
  call(function, waits);
}

/// Under the lock: sees to it that a thread looks at what is left, beside the one that is in a function.
void Completions::summon() {
  if (asking_ || watching_ != 0) return;
  if (idle_ != 0) {
    come_.notify_one();
  } else if (threads_ < kMostThreads) {
    start();
  }
}

/// Under the lock. Whether there is one thread more.
bool Completions::start() {
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread([this] { serve(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void Completions::serve() {
  pthread_setname_np(pthread_self(), "unisono-tell");
  std::optional<OwnGil> gil(std::in_place);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended_.empty()) {
      if (ending_) break;
      ++idle_;
      come_.wait(lock);
      --idle_;
      continue;
    }
    if (!unattended()) {
      // Another thread is at it. Who stays in a function may wait for what is to be told by the next one.
      const std::uint64_t before = counts_.called;
      ++watching_;
      const bool goes_on =
          come_.wait_for(lock, kPatience, [&] { return ended_.empty() || unattended() || counts_.called != before; });
      --watching_;
      if (goes_on || asking_) continue;
    }
    asking_ = true;
    lock.unlock();
    gil->take();
    lock.lock();
    asking_ = false;
    ++counts_.gil_taken;
    call_all(lock);
    lock.unlock();
    gil->give();
    lock.lock();
  }
  lock.unlock();
  gil.reset();
  lock.lock();
  --threads_;
  gone_.notify_all();
}

/// Calls all that is there. Under the GIL and under the lock, which it lets go of meanwhile.
void Completions::call_all(std::unique_lock<std::mutex>& lock) {
  ++calling_;
  while (!ended_.empty()) {
    const Ended next = ended_.front();
    ended_.pop_front();
    ++counts_.called;
    // The thread that was woken for those that are left may be this one, and the function may wait for them.
    if (!ended_.empty()) summon();
    lock.unlock();
    call(next.function, next.waits);
    lock.lock();
  }
  --calling_;
}

Completions::Counts Completions::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.waiting = ended_.size();
  return counts;
}

bool Completions::end(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  ending_ = true;
  come_.notify_all();
  const bool all = gone_.wait_for(lock, patience, [&] { return threads_ == 0; });
  ending_ = false;
  return all;
}

}  // namespace unisono::python
