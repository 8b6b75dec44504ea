// For --check-skip: an engine that is evaluated in every cycle, beside one that is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/model.hpp"

namespace unisono::sim {

class Twin {
 public:
  /// Made as the other, which it is compared with and which must outlive it.
  Twin(std::uint64_t seed, const std::string& firmware, Vunisono_cclo_frame& other);

  /// One cycle, with the inputs of the other, which has been evaluated with the clock low, or rests. Throws
  /// Error(kInternal) that names node, cycle and output if they do not drive the same.
  void step(std::uint32_t node, std::uint64_t cycle);

  /// A port of both.
  struct Pair {
    const char* name;
    void* own;
    const void* other;
    std::size_t bytes;
  };

 private:
  Model model_;
  std::vector<Pair> inputs_, outputs_;
};

}  // namespace unisono::sim
