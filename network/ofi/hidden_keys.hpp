// Keys that must not be used any more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace unisono::ofi {

/// The last keys of a peer's memory that it has hidden while writes might come: a sender that still has one in a grant
/// must not use it. As many as calls in flight between two ends, many times over.
class HiddenKeys {
 public:
  static constexpr std::size_t kMost = 256;
  void add(std::uint64_t key) {
    if (has(key)) return;
    if (keys_.size() < kMost) {
      keys_.push_back(key);
    } else {
      keys_[next_++ % kMost] = key;
    }
  }
  bool has(std::uint64_t key) const { return std::find(keys_.begin(), keys_.end(), key) != keys_.end(); }

 private:
  std::vector<std::uint64_t> keys_;
  std::size_t next_ = 0;
};

}  // namespace unisono::ofi
