#include "sim/memory/tlb.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace unisono::sim {

Tlb::Tlb(const TlbConfig& config) : config_(config) {
  constexpr std::uint64_t kLeastPage = 4096;  // bursts do not cross this
  if (!std::has_single_bit(config.page_bytes) || config.page_bytes < kLeastPage) {
    throw std::invalid_argument("Tlb: page_bytes must be a power of two, at least 4096");
  }
}

std::uint64_t Tlb::wait(std::uint64_t cycle, std::uint64_t address) {
  if (config_.entries == 0 || address < config_.from) return 0;
  const std::uint64_t page = address / config_.page_bytes;
  std::uint64_t known = 0;
  if (const auto found = by_page_.find(page); found != by_page_.end()) {
    ++counters_.hits;
    known = found->second->known;
    entries_.splice(entries_.begin(), entries_, found->second);
  } else {
    ++counters_.misses;
    known = walker_free_ = std::max(cycle, walker_free_) + config_.miss_cycles;
    if (entries_.size() == config_.entries) {
      by_page_.erase(entries_.back().page);
      entries_.pop_back();
    }
    entries_.push_front({page, known});
    by_page_[page] = entries_.begin();
  }
  const std::uint64_t waits = known > cycle ? known - cycle : 0;
  counters_.cycles += waits;
  return waits;
}

}  // namespace unisono::sim
