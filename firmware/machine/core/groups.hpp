// Groups of ranks: core/groups.hpp of the microcontroller, which stands before the other in the compiler's search path.
// Its calls have groups of one size only, so what looks at lists takes neither memory nor time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono {

struct GroupList {
  std::uint32_t size;
  std::uint32_t groups;
  const std::uint32_t* first;
  const std::uint32_t* group_at;
  const std::uint32_t* rank_at;
  const std::uint32_t* position_of;
};

/// Never a list.
struct GroupsOfCall {
  constexpr bool operator==(std::nullptr_t) const { return true; }
  constexpr const GroupList* operator->() const { return nullptr; }
  friend constexpr bool operator==(const GroupsOfCall&, const GroupsOfCall&) = default;
};

}  // namespace unisono
