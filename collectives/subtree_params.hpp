// What a node of the binomial tree must know of its subtree when counts differ. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/subtree.hpp"

namespace unisono::build {

/// Words of params behind the 2P of `fill_layout`: where each block of the node's subtree begins if the
/// subtree is packed in the order of the tree (bytes, P words), how many elements each child's subtree
/// has (32 words), and how many this one has (1 word).
struct SubtreeParams {
  static constexpr std::uint32_t kMaxChildren = 32;

  static constexpr std::uint32_t words(const Call& call) { return 3 * call.size + kMaxChildren + 1; }
  /// Word with the byte offset of the i-th block of the subtree, 0 being the node's own.
  static constexpr std::uint32_t offset(const Call& call, std::uint32_t i) { return 2 * call.size + i; }
  /// Word with the elements of child k's subtree.
  static constexpr std::uint32_t child_total(const Call& call, std::uint32_t k) { return 3 * call.size + k; }
  /// Word with the elements of the whole subtree.
  static constexpr std::uint32_t total(const Call& call) { return 3 * call.size + kMaxChildren; }

  /// Fills them from the counts in words[0 .. P).
  static void fill(const Call& call, std::uint64_t* words) {
    const Subtree node = Subtree::of(call);
    for (std::uint32_t i = 2 * call.size; i < SubtreeParams::words(call); ++i) words[i] = 0;
    std::uint64_t packed = 0;
    for (std::uint32_t i = 0; i < node.span; ++i) {
      const std::uint64_t count = words[plus(node.rank(), i, call.size)];
      words[offset(call, i)] = packed * element_bytes(call);
      if (i > 0) words[child_total(call, log2_floor(i))] += count;
      packed += count;
    }
    words[total(call)] = packed;
  }
};

}  // namespace unisono::build
