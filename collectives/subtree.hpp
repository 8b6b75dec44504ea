// The binomial tree of gather and scatter. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::build {

/// One rank's place in the binomial tree whose ranks are counted from the root on: the subtree of a
/// node is the `span` ranks that follow it, itself first, so that what travels is one contiguous range.
struct Subtree {
  std::uint32_t size;      ///< ranks of the communicator
  std::uint32_t root;      ///< rank of the tree's root
  std::uint32_t relative;  ///< this node, counted from the root
  std::uint32_t span;      ///< ranks in its subtree

  static constexpr Subtree of(const Call& call) {
    return at(call.size, call.root, minus(call.rank, call.root, call.size));
  }
  /// A node of a tree over `size` ranks; of the call nothing matters, unlike for KnomialSubtree.
  static constexpr Subtree at(const Call& /*call*/, std::uint32_t size, std::uint32_t root, std::uint32_t relative) {
    return at(size, root, relative);
  }
  static constexpr Subtree at(std::uint32_t size, std::uint32_t root, std::uint32_t relative) {
    const std::uint32_t lowest_bit = relative & (~relative + 1);
    const std::uint32_t rest = size - relative;
    return {size, root, relative, relative == 0 || lowest_bit > rest ? rest : lowest_bit};
  }

  constexpr bool is_root() const { return relative == 0; }
  constexpr bool is_leaf() const { return span == 1; }
  /// Child k stands 2^k after this node.
  constexpr std::uint32_t children() const { return log2_ceil(span); }
  constexpr Subtree child(std::uint32_t k) const { return at(size, root, relative + (std::uint32_t{1} << k)); }
  constexpr Subtree parent() const { return at(size, root, relative & (relative - 1)); }

  constexpr std::uint32_t rank() const { return plus(root, relative, size); }
  /// Ranks of the subtree before the one where absolute numbering returns to 0; `span` if it does not.
  /// Blocks that lie in the order of absolute ranks at the root are cut there.
  constexpr std::uint32_t before_wrap() const { return size - rank() < span ? size - rank() : span; }
};

}  // namespace unisono::build
