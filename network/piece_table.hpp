// Pieces of this process's memory, and what is known of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>

namespace unisono {

/// The pieces may overlap, and be there several times. Not thread-safe.
template <class Value>
class PieceTable {
 public:
  struct Piece {
    std::span<const std::byte> memory;
    Value value;
  };

  std::size_t size() const { return pieces_.size(); }

  /// Enters `bytes` at `memory`, at least one.
  void add(const std::byte* memory, std::uint64_t bytes, const Value& value) {
    pieces_.emplace(reinterpret_cast<std::uintptr_t>(memory), Piece{{memory, bytes}, value});
    longest_ = std::max(longest_, bytes);
  }
  /// Takes out one that was entered with the same words. False if there is none.
  bool remove(const std::byte* memory, std::uint64_t bytes, const Value& value) {
    const auto [first, last] = pieces_.equal_range(reinterpret_cast<std::uintptr_t>(memory));
    const auto found = std::find_if(first, last, [&](const auto& entry) {
      return entry.second.memory.size() == bytes && entry.second.value == value;
    });
    if (found == last) return false;
    pieces_.erase(found);
    if (pieces_.empty()) longest_ = 0;
    return true;
  }
  /// A piece that has all of these bytes, at least one.
  std::optional<Piece> around(const std::byte* memory, std::uint64_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    for (auto next = pieces_.upper_bound(begin); next != pieces_.begin();) {
      --next;
      const std::uint64_t before = begin - next->first;
      if (before >= longest_) break;  // no piece that begins so early reaches as far
      const std::uint64_t length = next->second.memory.size();
      if (before <= length && bytes <= length - before) return next->second;
    }
    return std::nullopt;
  }

 private:
  std::multimap<std::uintptr_t, Piece> pieces_;  ///< by where they begin
  std::uint64_t longest_ = 0;                    ///< of all since there was none
};

}  // namespace unisono
