// Memory of 2^64 bytes that costs what was written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

namespace unisono::sim {

/// Pages come into being when they are first written; what was never written reads as zero. Addresses wrap around at
/// 2^64.
class Pages {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  void read(std::uint64_t address, std::span<std::uint8_t> bytes) const;
  void write(std::uint64_t address, std::span<const std::uint8_t> bytes);
  /// Pages that exist.
  std::size_t pages() const { return pages_.size(); }

 private:
  using Page = std::array<std::uint8_t, kPageBytes>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace unisono::sim
