// What ranks send each other, as far as a prediction knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cost/predict.hpp"

namespace unisono::cost {

/// Times in the order in which they are used up.
class Times {
 public:
  bool empty() const { return first_ == all_.size(); }
  const Time& front() const { return all_[first_]; }
  void push_back(const Time& time) { all_.push_back(time); }
  void pop_front() { ++first_; }

 private:
  std::vector<Time> all_;
  std::size_t first_ = 0;
};

/// What one rank sends another.
struct Lane {
  struct Message {
    std::uint32_t pieces = 1;
    bool inline_payload = true;
    std::vector<Time> arrived;   ///< by piece that has been sent
    std::vector<Time> released;  ///< by piece that has been read
  };
  std::vector<Message> messages;
  std::uint32_t sent = 0;      ///< whole messages
  std::uint32_t consumed = 0;  ///< whole messages
  std::uint32_t expected = 0;  ///< messages that the receiver's program takes
  Times space;                 ///< when cells became free again, oldest first
  std::uint32_t free_pieces = 0;
  Times line_space;
  std::uint32_t free_lines = 0;
};

/// The lanes of all pairs that say something; of thousands of ranks few pairs do.
class Lanes {
 public:
  /// What there is room for in each at first.
  Lanes(std::uint32_t pieces, std::uint32_t lines) : pieces_(pieces), lines_(lines) {}

  /// The number of a pair's lane, which there is from now on.
  std::uint32_t number(std::uint32_t from, std::uint32_t to) {
    const auto next = static_cast<std::uint32_t>(lanes_.size());
    const auto [found, is_new] = numbers_.try_emplace(std::uint64_t{from} << 32U | to, next);
    if (is_new) {
      Lane& lane = lanes_.emplace_back();
      lane.free_pieces = pieces_;
      lane.free_lines = lines_;
    }
    return found->second;
  }
  /// Valid until `number` has made another one.
  Lane& operator[](std::uint32_t number) { return lanes_[number]; }

 private:
  std::uint32_t pieces_, lines_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  ///< by sender << 32 | receiver
};

}  // namespace unisono::cost
