#include "collectives/tuning.hpp"

#include <array>
#include <cstddef>

#include "core/crc32c.hpp"

namespace unisono {

std::uint32_t hash_of(std::span<const Rule> rules) {
  std::uint32_t hash = 0;
  for (const Rule& rule : rules) {
    std::array<std::uint8_t, 32> packed{};
    std::size_t end = 0;
    const auto put = [&](std::uint64_t value, std::size_t bytes) {
      for (std::size_t i = 0; i < bytes; ++i) packed[end++] = static_cast<std::uint8_t>(value >> (8 * i));
    };
    put(rule.min_bytes, 8);
    put(rule.max_bytes, 8);
    put(rule.min_ranks, 4);
    put(rule.max_ranks, 4);
    put(rule.position, 2);
    put(static_cast<std::uint64_t>(rule.groups), 1);
    put(static_cast<std::uint64_t>(rule.direct), 1);
    put(static_cast<std::uint64_t>(rule.crowded), 1);
    // Tables from before there were radices, hosts, and switches, keep their hashes.
    if (rule.radix != 0 || rule.hosts != Which::kAll || rule.switches) put(rule.radix, 1);
    if (rule.hosts != Which::kAll || rule.switches) put(static_cast<std::uint64_t>(rule.hosts), 1);
    if (rule.switches) put(1, 1);
    hash = crc32c(std::span(packed).first(end), hash);
  }
  return hash;
}

}  // namespace unisono
