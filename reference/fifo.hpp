// First in, first out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace unisono::reference {

/// First-in first-out buffer of a channel or stream.
template <class Unit>
class Fifo {
 public:
  void push(const Unit* values, std::size_t count) {
    if (head_ > 1024 && head_ * 2 > values_.size()) {
      values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    values_.insert(values_.end(), values, values + count);
  }
  void pop(Unit* out, std::size_t count) {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(head_), count, out);
    head_ += count;
    if (head_ == values_.size()) {
      values_.clear();
      head_ = 0;
    }
  }
  std::size_t size() const { return values_.size() - head_; }
  const std::vector<Unit>& values() const { return values_; }

 private:
  std::vector<Unit> values_;
  std::size_t head_ = 0;
};

}  // namespace unisono::reference
