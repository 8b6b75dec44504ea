// Groups of ranks, for algorithms of two levels. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"
#include "core/groups.hpp"

namespace unisono::build {

/// Groups are ranges of ranks: the call's group_size ranks each, of which the last may be smaller, or those of its
/// list. None, or one as large as the communicator, makes one group. Of a list whose groups are no ranges, ranks here
/// mean positions; by_position.hpp writes programs for it.
class Levels {
 public:
  explicit constexpr Levels(const Call& call)
      : Levels(call.size, call.group_size != 0 && call.group_size < call.size ? call.group_size : call.size,
               call.groups) {}
  /// Groups of `group` ranks.
  constexpr Levels(std::uint32_t size, std::uint32_t group, GroupsOfCall list = {})
      : size_(size), group_(group), list_(list) {}

  constexpr std::uint32_t groups() const { return list_ != nullptr ? list_->groups : (size_ + group_ - 1) / group_; }
  constexpr std::uint32_t group_of(std::uint32_t rank) const {
    return list_ != nullptr ? list_->group_at[rank] : rank / group_;
  }
  constexpr std::uint32_t first(std::uint32_t group) const {
    return list_ != nullptr ? list_->first[group] : group * group_;
  }
  constexpr std::uint32_t end(std::uint32_t group) const {
    if (list_ != nullptr) return list_->first[group + 1];
    return size_ - first(group) < group_ ? size_ : first(group) + group_;
  }
  constexpr std::uint32_t members(std::uint32_t group) const { return end(group) - first(group); }
  /// Most members of a group.
  constexpr std::uint32_t most_members() const {
    if (list_ == nullptr) return group_;
    std::uint32_t most = 0;
    for (std::uint32_t group = 0; group < list_->groups; ++group) {
      most = members(group) > most ? members(group) : most;
    }
    return most;
  }
  /// Member i of a group without one of its members, i = 0 .. members-2.
  constexpr std::uint32_t other(std::uint32_t group, std::uint32_t without, std::uint32_t i) const {
    const std::uint32_t rank = first(group) + i;
    return rank < without ? rank : rank + 1;
  }

 private:
  std::uint32_t size_;
  std::uint32_t group_;
  [[no_unique_address]] GroupsOfCall list_;
};

}  // namespace unisono::build
