// The k-nomial tree of gather and its like. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/radix.hpp"

namespace unisono::build {

/// One rank's place in the k-nomial tree whose ranks are counted from the root on. A node's parent has the node's
/// number with its lowest digit to the base k that is not 0 made 0. The subtree of a node is the `span` ranks that
/// follow it, itself first, and those of its children follow one another in order; with k = 2 this is `Subtree`.
struct KnomialSubtree {
  static constexpr std::uint32_t kUsualRadix = 4;

  std::uint32_t size;      ///< ranks of the communicator
  std::uint32_t root;      ///< rank of the tree's root
  std::uint32_t relative;  ///< this node, counted from the root
  std::uint32_t span;      ///< ranks in its subtree
  std::uint32_t radix;
  std::uint32_t above;  ///< the power of the radix by which the parent's number can be divided; 0 for the root

  static constexpr KnomialSubtree of(const Call& call) {
    return at(call, call.size, call.root, minus(call.rank, call.root, call.size));
  }
  /// A node of a tree over `size` ranks by the call's radix.
  static constexpr KnomialSubtree at(const Call& call, std::uint32_t size, std::uint32_t root, std::uint32_t relative) {
    return at(size, root, relative, radix_of(call, kUsualRadix));
  }
  static constexpr KnomialSubtree at(std::uint32_t size, std::uint32_t root, std::uint32_t relative,
                                     std::uint32_t radix) {
    if (relative == 0) return {size, root, relative, size, radix, 0};
    std::uint32_t power = 1;
    while (relative % (power * radix) == 0) power *= radix;
    const std::uint32_t rest = size - relative;
    return {size, root, relative, power > rest ? rest : power, radix, power * radix};
  }

  constexpr bool is_root() const { return relative == 0; }
  constexpr bool is_leaf() const { return span == 1; }
  constexpr std::uint32_t children() const {
    std::uint32_t count = 0;
    for (std::uint32_t power = 1; power < span; power *= radix) {
      const std::uint32_t level = (span - 1) / power;  // how many places of this level lie in the subtree
      count += level < radix - 1 ? level : radix - 1;
      if (power > span / radix) break;  // the next power would pass the span, and perhaps 32 bits
    }
    return count;
  }
  /// Child n, counted from the nearest on: all levels but the last have radix-1 of them.
  constexpr KnomialSubtree child(std::uint32_t n) const {
    const std::uint32_t others = radix - 1;
    return at(size, root, relative + (n % others + 1) * power_of(radix, n / others), radix);
  }
  constexpr KnomialSubtree parent() const { return at(size, root, relative - relative % above, radix); }

  constexpr std::uint32_t rank() const { return plus(root, relative, size); }
  /// As Subtree::before_wrap.
  constexpr std::uint32_t before_wrap() const { return size - rank() < span ? size - rank() : span; }
};

}  // namespace unisono::build
