// Which datagrams have come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "network/udp/frames.hpp"

namespace unisono::udp {

/// The largest number that has come, and which of the 256 before it have. What is older counts as come: it is refused,
/// and sent again under a new number if it is still wanted.
class AckWindow {
 public:
  bool has(std::uint64_t number) const {
    if (number > largest_) return false;
    if (number == largest_) return true;
    const std::uint64_t back = largest_ - number - 1;
    return back >= kAckBits || (before_[back / 64] >> (back % 64) & 1U) != 0;
  }
  /// `number` must not have come before. True if it is the one that was awaited next.
  bool add(std::uint64_t number) {
    if (number < largest_) {
      const std::uint64_t back = largest_ - number - 1;
      before_[back / 64] |= std::uint64_t{1} << (back % 64);
      return false;
    }
    const bool next = number == largest_ + 1;
    shift(number - largest_);
    largest_ = number;
    return next;
  }
  std::uint64_t largest() const { return largest_; }
  const std::array<std::uint64_t, kAckBits / 64>& before() const { return before_; }

 private:
  /// Moves the bits on by `count`, the largest number so far to the place behind the new one.
  void shift(std::uint64_t count) {
    std::array<std::uint64_t, kAckBits / 64> moved{};
    for (std::size_t word = 0; word < moved.size(); ++word) {
      const std::uint64_t to = word * 64 + count;
      if (to >= kAckBits) break;
      moved[to / 64] |= before_[word] << (to % 64);
      if (to % 64 != 0 && to / 64 + 1 < moved.size()) moved[to / 64 + 1] |= before_[word] >> (64 - to % 64);
    }
    // There is no number 0.
    if (largest_ != 0 && count <= kAckBits) moved[(count - 1) / 64] |= std::uint64_t{1} << ((count - 1) % 64);
    before_ = moved;
  }

  std::uint64_t largest_ = 0;
  std::array<std::uint64_t, kAckBits / 64> before_{};
};

}  // namespace unisono::udp
