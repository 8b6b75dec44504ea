// Memory that calls of a context need for a while, kept for the calls that come after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/allocations.hpp"

namespace unisono::driver {

/// Hands out pieces of memory and takes them back. They lie where peers reach them, if there is room, so that direct
/// algorithms can be chosen. What lies idle is bounded by `kKeptBytes`. Thread-safe.
class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
 public:
  static constexpr std::uint64_t kKeptBytes = std::uint64_t{64} << 20U;

  /// `allocate` gives reachable memory, or throws Error where there is none.
  explicit SpareMemory(std::function<Allocation(std::uint64_t)> allocate) : allocate_(std::move(allocate)) {}

  /// A piece in use; it goes back with this object. Aligned to 64 bytes, contents undefined.
  class Piece {
   public:
    Piece() = default;
    Piece(Piece&& other) noexcept { *this = std::move(other); }
    Piece& operator=(Piece&& other) noexcept;
    ~Piece();
    std::byte* data() const { return block_.memory; }

   private:
    friend class SpareMemory;
    std::shared_ptr<SpareMemory> owner_;
    std::uint64_t bytes_ = 0;
    Allocation block_;
  };

  /// At least `bytes`. Throws Error(kOutOfMemory).
  Piece take(std::uint64_t bytes);
  /// Bytes that lie idle.
  std::uint64_t kept() const;

  ~SpareMemory();
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;

 private:
  void give_back(std::uint64_t bytes, Allocation block) noexcept;
  static void release(Allocation& block) noexcept;

  const std::function<Allocation(std::uint64_t)> allocate_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::vector<Allocation>> idle_;  ///< by bytes, a power of two
  std::uint64_t kept_ = 0;
};

}  // namespace unisono::driver
