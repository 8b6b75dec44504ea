// Counts what the engine does (network/ledger.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "network/ledger.hpp"

namespace unisono::cclo {

/// Writes the counters of one endpoint, under its engine's lock. A count is a load and a store.
class Ledger {
 public:
  /// `shared`: where others can read them; null if nobody can.
  explicit Ledger(EngineLedger* shared) : ledger_(shared != nullptr ? shared : &own_) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger() = default;

  void count(NativeCounter counter, std::uint64_t number = 1) {
    auto& word = ledger_->counters[static_cast<std::size_t>(counter)];
    word.store(word.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
  }
  std::uint64_t value(std::size_t position) const {
    return ledger_->counters[position].load(std::memory_order_relaxed);
  }

 private:
  EngineLedger own_{};
  EngineLedger* const ledger_;
};

}  // namespace unisono::cclo
