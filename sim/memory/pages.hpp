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
  /// Has this process keep the addresses from `address` on, so many, in one piece, which it may use itself. What was
  /// written there before is lost. Throws Error(kOutOfMemory).
  std::byte* window(std::uint64_t address, std::uint64_t bytes);
  /// Pages that exist, those of a window left out.
  std::size_t pages() const { return pages_.size(); }

 private:
  struct Unmap {
    std::uint64_t bytes;
    void operator()(std::uint8_t* memory) const;
  };
  /// Where the window has an address, and how many bytes follow; null: it has none.
  std::uint8_t* in_window(std::uint64_t address, std::uint64_t& bytes) const;

  std::unique_ptr<std::uint8_t, Unmap> window_;
  std::uint64_t window_address_ = 0;
  using Page = std::array<std::uint8_t, kPageBytes>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace unisono::sim
