// How long data is stored where another core reads it: by ordinary stores, or past the caches.
//
// Ordinary stores are faster where a line travels quickly between two cores, for then the reader finds the data in a
// cache. Where it travels slowly (cores on different dies, or a virtual machine whose cores the host has moved apart)
// every store first fetches a line that the reader has read: 64 KiB took 33 µs instead of 5 on an AMD EPYC (Zen 4), and
// past the caches 10. Cores move while a job runs, so a sender times what it stores, and does what is faster at
// present. Readers need not know.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ticks.hpp"

namespace unisono::shm {

/// The way of storing for one reader, found by the times of what was stored. One user at a time.
class StorePace {
 public:
  static constexpr std::uint64_t kLeastBytes = 4096;  ///< shorter data is stored in the ordinary way, and not timed
  /// So few bytes in about a millisecond are slow. Where lines travel quickly, three times as many are usual.
  static constexpr std::uint64_t kSlowBytes = 8'000'000;
  static constexpr std::uint32_t kSlowStores = 3;     ///< in succession, before the other way is tried: no single delay
  static constexpr std::uint32_t kTrialStores = 4;    ///< past the caches, before the ways are compared
  static constexpr std::uint32_t kTurnStores = 256;   ///< past the caches, before an ordinary one is timed again
  static constexpr std::uint32_t kRestStores = 4096;  ///< ordinary ones after a trial that gained too little

  bool past_caches() const { return past_left_ != 0; }

  /// Stores by `store(past_caches)`, and learns from how long that takes. At least kLeastBytes.
  template <class Store>
  void store(std::uint64_t bytes, Store&& store) {
    const std::uint64_t begin = ticks();
    store(past_caches());
    took(ticks() - begin, bytes);
  }

  /// Learns that storing so many bytes, at least kLeastBytes, as `past_caches` said took so many ticks.
  void took(std::uint64_t elapsed, std::uint64_t bytes) {
    if (past_caches()) {
      took_past(elapsed * kUnit / bytes);
    } else if (rest_ != 0) [[unlikely]] {
      --rest_;
    } else if (elapsed * kSlowBytes <= bytes * kMillisecondTicks) [[likely]] {
      slow_ = 0;
      ordinary_ = kNone;
    } else {
      took_slowly(elapsed * kUnit / bytes);
    }
  }

 private:
  static constexpr std::uint64_t kUnit = 4096;  ///< a cost is the ticks of so many bytes
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  void took_slowly(std::uint64_t cost) {
    ordinary_ = std::min(ordinary_, cost);
    if (++slow_ < kSlowStores) return;
    past_ = kNone;
    past_left_ = kTurnStores;
  }
  void took_past(std::uint64_t cost) {
    past_ = std::min(past_, cost);
    --past_left_;
    if (past_left_ == kTurnStores - kTrialStores && past_ > ordinary_ / 4 * 3) {
      past_left_ = 0;
      rest_ = kRestStores;
      slow_ = 0;
      ordinary_ = kNone;
    } else if (past_left_ == 0) {
      slow_ = kSlowStores - 1;  // one slow ordinary store is enough to go on
    }
  }

  std::uint32_t slow_ = 0;                         ///< ordinary stores in succession that were slow
  std::uint32_t past_left_ = 0;                    ///< stores past the caches before the next ordinary one
  std::uint32_t rest_ = 0;                         ///< ordinary stores that are not looked at
  std::uint64_t ordinary_ = kNone, past_ = kNone;  ///< least costs in the present comparison
};

}  // namespace unisono::shm
