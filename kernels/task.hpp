// Tasks: who can wait. A kernel that runs as a fibre, or a thread of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/fibre.hpp"

namespace unisono::kernels {

struct Task;

/// What a task waits for. Sentences are made of it only if nothing goes on.
struct Wait {
  enum class Kind : std::uint8_t { kNone, kPush, kPop, kRead, kWrite, kKernel };
  Kind kind = Kind::kNone;
  std::uint32_t communicator = 0;  ///< push, pop: number
  std::uint32_t port = 0;          ///< push, pop
  std::uint32_t peer = 0;          ///< push, pop: rank
  std::uint64_t element = 0;       ///< push, pop: which one, from 1
  std::uint64_t count = 0;         ///< push, pop: of how many
  const char* name = nullptr;      ///< read, write: of the queue; kernel: of the kernel
  const Task* towards = nullptr;   ///< read, write, kernel: who could end it, where that is known
};

/// Belongs to one rank. Everything but `ready` is its driver's.
struct Task {
  std::string name;
  Fibre* fibre = nullptr;  ///< null: a thread of the program
  std::atomic<bool> ready{true};
  bool polls = false;   ///< it looks again whenever nobody else can go on
  bool failed = false;  ///< it does not go on: what went wrong is known
  Wait wait;
};

}  // namespace unisono::kernels
