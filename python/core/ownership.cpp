#include "python/core/ownership.hpp"

#include <string>
#include <utility>
#include <vector>

#include "python/core/errors.hpp"
#include "python/core/without_gil.hpp"

namespace unisono::python {

namespace {

/// Guarded by the GIL. Lives for ever: objects go while the interpreter ends, too.
std::vector<Dropped>& dropped() {
  static auto* all = new std::vector<Dropped>;
  return *all;
}

}  // namespace

Ownership::~Ownership() {
  if (drops_) dropped().push_back(std::move(left_));
}

void free_dropped() {
  if (dropped().empty()) return;
  std::vector<Dropped> mine;
  mine.swap(dropped());
  for (Dropped& one : mine) {
    unisono_result result = 0;
    std::string text;
    {
      const WithoutGil released;
      result = unisono_communicator_free(one.handle);
      if (result != 0) text = unisono_last_error();
    }
    if (result == static_cast<unisono_result>(ErrorCode::kInvalidArgument)) {
      dropped().push_back(std::move(one));  // inside a function of an operator, where nothing can be done
      continue;
    }
    // Others: its context was reset meanwhile, or it belongs to the parent of this process.
    if (result != static_cast<unisono_result>(ErrorCode::kMismatchedCall)) continue;
    try {
      raise(result, text);
    } catch (nb::python_error& error) {
      error.restore();
      PyErr_WriteUnraisable(nullptr);
    }
  }
}

}  // namespace unisono::python
