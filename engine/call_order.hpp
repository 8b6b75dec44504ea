// The order in which a rank has made the collective calls of one communicator.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/signature.hpp"

namespace unisono::cclo {

/// Numbers the calls, and chains their signatures to a digest that two ranks share exactly if they have made the same
/// calls in the same order. Thread-safe in so far as a blocking call and one that enters a queue are told apart.
class CallOrder {
 public:
  struct Place {
    std::uint32_t sequence = 0;  ///< of the call
    std::uint32_t digest = 0;    ///< of this call and all before it
  };

  /// The number of the next call.
  std::uint32_t next() const { return static_cast<std::uint32_t>(word_.load(std::memory_order_relaxed)); }
  /// The digest of all calls so far.
  std::uint32_t digest() const { return static_cast<std::uint32_t>(word_.load(std::memory_order_relaxed) >> 32U); }

  /// Enters a call.
  Place enter(std::uint32_t signature) {
    std::uint64_t before = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(before, after(before, signature), std::memory_order_relaxed)) {
    }
    return place(before, signature);
  }
  /// The same by the only thread that enters calls now: without a locked instruction.
  Place enter_alone(std::uint32_t signature) {
    const std::uint64_t before = word_.load(std::memory_order_relaxed);
    word_.store(after(before, signature), std::memory_order_relaxed);
    return place(before, signature);
  }

 private:
  static Place place(std::uint64_t before, std::uint32_t signature) {
    return {static_cast<std::uint32_t>(before), chained(static_cast<std::uint32_t>(before >> 32U), signature)};
  }
  static std::uint64_t after(std::uint64_t before, std::uint32_t signature) {
    const Place entered = place(before, signature);
    return ((entered.sequence + std::uint64_t{1}) & 0xffffffffU) | std::uint64_t{entered.digest} << 32U;
  }

  std::atomic<std::uint64_t> word_{0};  ///< next number (32 bits), digest
};

}  // namespace unisono::cclo
