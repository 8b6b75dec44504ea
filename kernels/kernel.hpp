// A kernel: a function that runs beside others, and what became of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "kernels/task.hpp"

namespace unisono::kernels {

class NamedRun;

struct Kernel {
  Task task;
  std::shared_ptr<void> owned;  ///< what it runs on
  std::unique_ptr<Fibre> fibre;
  std::shared_ptr<NamedRun> named;  ///< null: it was not called by name
  bool forever = false;             ///< it need not end
  bool ended = false;
  bool told = false;  ///< somebody has heard of its failure
  ErrorCode code = ErrorCode::kOk;
  std::string failure;
  std::vector<Task*> waiters;
  std::uint64_t ticks = 0;  ///< cycles that it has let pass
};

}  // namespace unisono::kernels
