// Groups of ranks, for algorithms of two levels. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"

namespace unisono::build {

/// Groups are the call's group_size contiguous ranks; the last may be smaller. None, or one as large as the
/// communicator, makes one group.
class Levels {
 public:
  explicit constexpr Levels(const Call& call)
      : size_(call.size), group_(call.group_size != 0 && call.group_size < call.size ? call.group_size : call.size) {}

  constexpr std::uint32_t groups() const { return (size_ + group_ - 1) / group_; }
  constexpr std::uint32_t group_of(std::uint32_t rank) const { return rank / group_; }
  constexpr std::uint32_t first(std::uint32_t group) const { return group * group_; }
  constexpr std::uint32_t end(std::uint32_t group) const {
    return size_ - first(group) < group_ ? size_ : first(group) + group_;
  }
  constexpr std::uint32_t members(std::uint32_t group) const { return end(group) - first(group); }
  /// Member i of a group without one of its members, i = 0 .. members-2.
  constexpr std::uint32_t other(std::uint32_t group, std::uint32_t without, std::uint32_t i) const {
    const std::uint32_t rank = first(group) + i;
    return rank < without ? rank : rank + 1;
  }

 private:
  std::uint32_t size_;
  std::uint32_t group_;
};

}  // namespace unisono::build
