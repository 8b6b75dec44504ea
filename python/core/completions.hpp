// Functions of Python that are called when calls have ended, by threads of their own.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

namespace unisono::python {

namespace nb = nanobind;

/// The queue of functions whose calls have ended, and the threads that call them. The thread that brings a call to its
/// end only adds its function: it does not wait for the GIL, and runs no Python. A thread of the queue takes the GIL
/// once for all functions that are there, and for those that come meanwhile. Thread-safe.
class Completions {
 public:
  /// What a function may do.
  enum class Waits : std::uint8_t {
    kRefused,  ///< what waits for other ranks is refused in it, as in a callback of the C interface
    kAllowed,  ///< it may wait: another thread takes over where one stays in a function
  };
  struct Counts {
    std::uint64_t called = 0;     ///< functions that have been called
    std::uint64_t gil_taken = 0;  ///< how often a thread has taken the GIL for them
    std::uint64_t waiting = 0;    ///< functions that are still to be called
  };

  /// The process's.
  static Completions& instance();
  /// In a child of fork: its parent's threads are not here, and what they were to tell is not the child's.
  static void forget();

  /// Has `function()` called, once; the reference is this object's from here on. With or without the GIL, which it does
  /// not take, but where the system refuses a thread: then the function is called by the caller.
  void add(PyObject* function, Waits waits);
  Counts counts() const;
  /// Calls what is left, and ends the threads: before the interpreter ends, which threads that ask for its GIL do not
  /// survive. Without the GIL. False if a function has not returned within `patience`.
  bool end(std::chrono::milliseconds patience);

 private:
  struct Ended {
    PyObject* function = nullptr;
    Waits waits = Waits::kRefused;
  };

  bool start();
  void summon();
  void serve();
  void call_all(std::unique_lock<std::mutex>& lock);
  bool unattended() const { return !asking_ && calling_ == 0; }

  mutable std::mutex mutex_;  ///< guards all; nobody asks for the GIL while holding it
  std::condition_variable come_;
  std::condition_variable gone_;
  std::deque<Ended> ended_;
  Counts counts_;
  std::uint32_t threads_ = 0;
  std::uint32_t idle_ = 0;      ///< threads that have nothing to do
  std::uint32_t watching_ = 0;  ///< threads that see whether another comes out of its function
  std::uint32_t calling_ = 0;   ///< threads that have the GIL, or gave it away inside a function
  bool asking_ = false;         ///< a thread is about to have the GIL
  bool ending_ = false;
};

}  // namespace unisono::python
