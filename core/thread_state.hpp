// What a thread is in the middle of, as far as every call asks.
//
// In one place: in a shared library the address of a variable of a thread is found by calling a function, which costs a
// tenth of what a call without a wait takes, and once is enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace unisono {

struct ThreadState {
  bool in_user_op = false;      ///< inside a function of the user; see user_op.hpp
  bool has_sentence = false;    ///< the sentence of its last error may not be empty; see driver/interface.hpp
  std::uint8_t callbacks = 0;   ///< of which kinds it is inside one; see driver/callbacks.hpp
  std::array<void*, 8> last{};  ///< by kind of handles, what it asked for last; see driver/handles.hpp
};

/// The calling thread's.
inline ThreadState& thread_state() {
  static constinit thread_local ThreadState state;
  return state;
}

}  // namespace unisono
