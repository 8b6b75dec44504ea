// Which words of a stream are there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/udp/frames.hpp"

namespace unisono::udp {

/// A bit for each 64-byte word of a ring. Marking a word twice is as marking it once, so neither end must remember what
/// pieces the stream was cut into.
class WordMap {
 public:
  WordMap() = default;
  /// For a ring of so many bytes, a power of two that is at least 4096.
  explicit WordMap(std::size_t bytes) : bits_(bytes / kWord / 64) {}

  /// Both must lie within a ring's length of the frontier.
  void mark(std::uint64_t begin, std::uint64_t end) {
    each(begin, end, [](std::uint64_t& word, std::uint64_t mask) {
      word |= mask;
      return true;
    });
  }
  bool has(std::uint64_t begin, std::uint64_t end) {
    bool all = true;
    each(begin, end, [&](std::uint64_t word, std::uint64_t mask) {
      all = all && (word & mask) == mask;
      return all;
    });
    return all;
  }
  /// The end of what is there from `frontier` on, at most `most`; forgets that it is there, for the ring will come
  /// round.
  std::uint64_t advance(std::uint64_t frontier, std::uint64_t most) {
    while (frontier < most) {
      std::uint64_t& word = bits_[(frontier / kWord / 64) & (bits_.size() - 1)];
      const unsigned first = frontier / kWord % 64;
      const unsigned here = static_cast<unsigned>(std::countr_one(word >> first));
      if (here == 0) break;
      word &= ~mask_of(first, here);
      frontier += std::uint64_t{here} * kWord;
      if (first + here < 64) break;
    }
    return frontier;
  }

 private:
  static std::uint64_t mask_of(unsigned first, std::uint64_t count) {
    return (count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << first;
  }
  template <class Act>
  void each(std::uint64_t begin, std::uint64_t end, Act act) {
    std::uint64_t at = begin / kWord;
    const std::uint64_t last = end / kWord;
    while (at < last) {
      const unsigned first = at % 64;
      const std::uint64_t count = std::min<std::uint64_t>(64 - first, last - at);
      if (!act(bits_[(at / 64) & (bits_.size() - 1)], mask_of(first, count))) return;
      at += count;
    }
  }

  std::vector<std::uint64_t> bits_;
};

}  // namespace unisono::udp
