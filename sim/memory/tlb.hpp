// Translation of addresses, as an engine pays for it that shares its host's virtual memory: a TLB, and one page walk at
// a time.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

namespace unisono::sim {

struct TlbConfig {
  unsigned entries = 0;                                ///< pages that are known at once; 0: addresses cost nothing
  std::uint64_t page_bytes = std::uint64_t{2} << 20U;  ///< a power of two, at least 4096
  unsigned miss_cycles = 250;                          ///< of a page walk
  std::uint64_t from = 0;                              ///< addresses below are not translated
};

struct TlbCounters {
  std::uint64_t hits = 0, misses = 0;
  std::uint64_t cycles = 0;  ///< that accesses have waited, in sum
};

/// Fully associative; the page that has not been used for longest makes room. A walk begins when the one before has
/// ended, and its page is known from then on; who comes for it meanwhile waits with it.
class Tlb {
 public:
  /// Throws std::invalid_argument.
  explicit Tlb(const TlbConfig& config);

  /// How many cycles an access to `address` that comes in `cycle` waits. Cycles never go back.
  std::uint64_t wait(std::uint64_t cycle, std::uint64_t address);

  const TlbConfig& config() const { return config_; }
  const TlbCounters& counters() const { return counters_; }

 private:
  struct Entry {
    std::uint64_t page;
    std::uint64_t known;  ///< from this cycle on
  };

  TlbConfig config_;
  TlbCounters counters_;
  std::list<Entry> entries_;  ///< the one used last in front
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_page_;
  std::uint64_t walker_free_ = 0;
};

}  // namespace unisono::sim
