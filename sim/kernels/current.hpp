// Which kernel runs in this thread.
#pragma once

#include "sim/kernels/run.hpp"

namespace unisono::sim {

/// Fibres go on in other threads, so this is asked for anew after each switch.
class CurrentRun {
 public:
  static FibreKernels::Run* get();
  static void set(FibreKernels::Run* run);
};

}  // namespace unisono::sim
