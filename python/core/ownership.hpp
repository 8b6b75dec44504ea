// Communicators that nothing in Python refers to any more.
//
// The library frees none by itself: a communicator is the program's until it is freed, or its context closed. Python's
// users drop things. What is dropped is freed when this process makes the next communicator, never by what drops it:
// that may be any line of the program, inside a function that the library has called and waits for, too.
#pragma once

#include <memory>

#include "python/core/memory.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

/// What is left of a communicator that was dropped: its window stays where it is until the communicator is freed.
struct Dropped {
  unisono_communicator* handle = nullptr;
  std::unique_ptr<Memory> window;
};

/// Held by all that uses a communicator: its object, and calls of it that have not completed. With the GIL.
class Ownership {
 public:
  /// `made`: it is the program's to free. The communicator of all ranks is its context's.
  Ownership(unisono_communicator* handle, bool made) : left_{handle, nullptr}, drops_(made) {}
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;
  ~Ownership();

  /// The program has freed it.
  void freed() {
    drops_ = false;
    left_.window.reset();
  }
  void keep_window(std::unique_ptr<Memory> window) { left_.window = std::move(window); }

 private:
  Dropped left_;
  bool drops_;
};

/// Frees what was dropped. Not collective: as the program's own free. What is found to be wrong as it is freed is
/// reported by sys.unraisablehook.
void free_dropped();

}  // namespace unisono::python
