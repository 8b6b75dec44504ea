// A fibre: a function with a stack of its own, which runs until it suspends itself and goes on where it did.
//
// Kernels run as fibres, so that many of them share a core and one that waits costs nothing. Boost.Context's switch
// saves the registers that a call must keep, and nothing else; the sanitizers are told of every switch.
#pragma once

#include <cstddef>
#include <functional>

namespace unisono::kernels {

/// Not thread-safe: one thread at a time resumes it, not always the same.
class Fibre {
 public:
  /// `body` must not throw. Throws Error(kOutOfMemory) if there is no memory for the stack.
  explicit Fibre(std::function<void()> body, std::size_t stack_bytes = kStackBytes);
  /// One that has not ended is not unwound: what is on its stack is dropped.
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Runs it until it suspends itself, or ends. Not from a fibre, nor after its end.
  void resume();
  /// Only from the fibre itself: returns when it is resumed.
  void suspend();
  bool ended() const { return ended_; }

  /// Address space of a stack; memory is used as far as it is touched. Kernels have arrays that are memory of the chip.
  static constexpr std::size_t kStackBytes = std::size_t{8} << 20U;

 private:
  /// What the C++ library keeps for a thread of exceptions that are being handled.
  struct Handled {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static void start(void* self);
  friend struct FibreEntry;
  void exchange_handled();

  std::function<void()> body_;
  std::byte* memory_;
  std::size_t bytes_;
  void* context_ = nullptr;  ///< where it goes on
  void* resumer_ = nullptr;  ///< where who has resumed it does
  bool ended_ = false;
  Handled handled_;
  // For the sanitizers: stacks and fibres of both sides.
  void* fake_stack_ = nullptr;
  void* resumer_fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_bytes_ = 0;
  void* tsan_ = nullptr;
  void* resumer_tsan_ = nullptr;
};

}  // namespace unisono::kernels
