// Trees of calls: core/tree.hpp of the microcontroller, which stands before the other in the compiler's search path.
// Its calls have none, so what looks at trees takes neither memory nor time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono {

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

struct CallTree {
  std::uint32_t members;
  std::uint32_t switches;
  bool stand_in;
  bool in_rank_order;
  const std::uint32_t* parent;
  const std::uint32_t* first;
  const std::uint32_t* children;
  const std::uint32_t* port;
  const std::uint32_t* order;
  const std::uint32_t* position;
};

/// Never a tree.
struct TreeOfCall {
  constexpr bool operator==(std::nullptr_t) const { return true; }
  constexpr const CallTree* operator->() const { return nullptr; }
  friend constexpr bool operator==(const TreeOfCall&, const TreeOfCall&) = default;
};

constexpr const CallTree* pointer_to(TreeOfCall /*tree*/) { return nullptr; }

}  // namespace unisono
