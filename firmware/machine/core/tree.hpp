// Trees of calls: core/tree.hpp of the microcontroller, which stands before the other in the compiler's search path.
// All that a member must know of a tree is the switch above it: trees whose order is not that of the ranks are not told
// to an engine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono {

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

/// The switch above this rank, as a rank.
struct TreeOfCall {
  std::uint32_t above = 0;  ///< 0: there is no tree

  constexpr bool operator==(std::nullptr_t) const { return above == 0; }
  friend constexpr bool operator==(const TreeOfCall&, const TreeOfCall&) = default;
};

struct TreeInRankOrder {
  static constexpr bool in_rank_order = true;
};

inline constexpr TreeInRankOrder kTreeInRankOrder{};

/// What algorithms ask of a tree beside a place in it.
constexpr const TreeInRankOrder* pointer_to(TreeOfCall /*tree*/) { return &kTreeInRankOrder; }

}  // namespace unisono
