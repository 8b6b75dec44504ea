// Variables of threads that can be used to the end of the process.
//
// What is `thread_local` goes when its thread ends, in the main thread before functions of atexit and destructors of
// globals run. Those may use Unisono: a context that is global leaves its job there.
#pragma once

#include <cstddef>
#include <new>

namespace unisono {

/// The calling thread's variable of this type. It goes with the thread; who asks later gets a new one, which stays.
/// `Of` tells variables of one type apart.
template <class T, class Of = T>
T& lasting() {
  alignas(T) static constinit thread_local std::byte place[sizeof(T)] = {};
  static constinit thread_local bool there = false;
  if (!there) {
    struct End {
      ~End() {
        there = false;
        std::launder(reinterpret_cast<T*>(place))->~T();
      }
    };
    static thread_local const End end;  // once in a thread's life
    new (place) T;
    there = true;
  }
  return *std::launder(reinterpret_cast<T*>(place));
}

}  // namespace unisono
