// What the native engine makes of programs, checked together with them.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/finding.hpp"
#include "reference/job.hpp"

namespace unisono::driver {

/// Lowers the programs of jobs as the engine's lanes carry them, and examines the result: every move stands in it once
/// and in an order that the program allows; run on all ranks together, neither form waits in a circle, whatever a
/// lane holds; and dst and window end with the interpreter's bits. To be used as CheckOptions::also.
class LoweredChecker {
 public:
  /// What is wrong with the lowered form of a job that has been proven. Not thread-safe.
  std::optional<reference::Finding> check(const reference::Job& job);

  std::uint64_t calls() const { return calls_; }        ///< whose lowered form was checked
  std::uint64_t straight() const { return straight_; }  ///< runs in which all ranks are straight
  std::uint64_t windowed() const { return windowed_; }  ///< with every lane holding one segment
  std::uint64_t mixed() const { return mixed_; }        ///< some ranks straight, others windowed
  std::uint64_t runs() const { return straight_ + windowed_ + mixed_; }
  std::uint64_t not_carried() const {
    return not_carried_;
  }  ///< calls whose programs are not lowered: streams, casts, params that moves write

 private:
  std::uint64_t calls_ = 0, straight_ = 0, windowed_ = 0, mixed_ = 0, not_carried_ = 0;
};

}  // namespace unisono::driver
