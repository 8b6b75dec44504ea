// A first-in-first-out queue in one block of memory, which grows when it is full.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace unisono::sim {

template <class T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& front() { return slots_[head_ & mask()]; }
  const T& front() const { return slots_[head_ & mask()]; }
  T& back() { return slots_[(tail_ - 1) & mask()]; }
  /// The element `index` places behind the front.
  T& operator[](std::size_t index) { return slots_[(head_ + index) & mask()]; }

  void push(T value) {
    if (size() == slots_.size()) grow();
    slots_[tail_++ & mask()] = std::move(value);
  }
  void pop() { ++head_; }

 private:
  std::size_t mask() const { return slots_.size() - 1; }
  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : 2 * slots_.size());
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace unisono::sim
