// What algorithms of two levels must know of groups when counts differ. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/levels.hpp"
#include "collectives/place.hpp"

namespace unisono::build {

/// Words of params behind the 2P of `fill_layout`: where each block begins if all are packed in order of rank (bytes,
/// P words), how many elements each group has (a word a group), and how many all have (1 word). Groups are contiguous,
/// so a group's blocks are one packed range. Of groups that are no ranges of ranks, rank means position.
struct GroupParams {
  static constexpr std::uint32_t words(const Call& call) { return total(call) + 1; }
  /// Word with the byte offset of a rank's block.
  static constexpr std::uint32_t offset(const Call& call, std::uint32_t rank) { return 2 * call.size + rank; }
  /// Word with the elements of a group.
  static constexpr std::uint32_t group_total(const Call& call, std::uint32_t group) { return 3 * call.size + group; }
  /// Word with the elements of all groups.
  static constexpr std::uint32_t total(const Call& call) { return 3 * call.size + Levels(call).groups(); }

  /// A rank's block, and with it the range of the group whose first rank it is, where all are packed.
  static constexpr Place packed(const Call& call, std::uint32_t rank) {
    return indirect(Region::kScratch, offset(call, rank));
  }

  /// Fills them from the counts in words[0 .. P).
  static void fill(const Call& call, std::uint64_t* words) {
    const Levels levels(call);
    std::uint64_t packed = 0;
    for (std::uint32_t group = 0; group < levels.groups(); ++group) {
      const std::uint64_t before = packed;
      for (std::uint32_t rank = levels.first(group); rank < levels.end(group); ++rank) {
        words[offset(call, rank)] = packed * element_bytes(call);
        packed += words[rank];
      }
      words[group_total(call, group)] = packed - before;
    }
    words[total(call)] = packed;
  }
};

}  // namespace unisono::build
