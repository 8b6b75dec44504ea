// Which part of a device's memory is used for what.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace unisono {

/// Hands out pieces of [address, address + bytes), the smallest free one that fits. Not thread-safe.
class DeviceMemory {
 public:
  /// Of begin and length of every piece: a word of the widest data path.
  static constexpr std::uint64_t kAlignment = 64;

  DeviceMemory(std::uint64_t address, std::uint64_t bytes);

  /// Address of a piece, or nothing if no free one is as long. A piece of no bytes takes one unit.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  /// Gives back what `allocate` gave.
  void free(std::uint64_t address);

  std::uint64_t free_bytes() const { return free_bytes_; }
  std::uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void insert(std::uint64_t address, std::uint64_t bytes);
  void erase(std::map<std::uint64_t, std::uint64_t>::iterator piece);

  std::map<std::uint64_t, std::uint64_t> by_address_;          ///< free pieces; no two touch
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  ///< the same, as length and address
  std::map<std::uint64_t, std::uint64_t> used_;                ///< length by address
  std::uint64_t free_bytes_ = 0;
};

}  // namespace unisono
