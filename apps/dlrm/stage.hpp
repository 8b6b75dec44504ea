// What the kernels of the recommendation model are made of, as hardware has it: multipliers that are busy for so many
// cycles, and the ends of stream ports, a word in each cycle and direction. All that a kernel does in one cycle stands
// in one round of its loop; none of it waits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unisono/kernel.hpp>
#include <unisono/kernel_export.hpp>

namespace dlrm {

using Fixed = std::int32_t;             ///< fixed point: 16 bits of fraction
inline constexpr unsigned kLanes = 16;  ///< elements of a word
inline constexpr std::uint32_t kFraction = 16;
inline constexpr std::uint32_t kMostOutputs = 2048;  ///< of a layer, or of its part on one node
using Lanes = std::array<Fixed, kLanes>;

/// Kernels have a clock of their own, slower than the engine's.
inline constexpr std::uint64_t kKernelMhz = 115, kEngineMhz = 250;
/// Cycles of that clock.
inline std::uint64_t now() { return unisono::kernel::cycle() * kKernelMhz / kEngineMhz; }
/// Ends a round of a kernel's loop: a cycle of its clock. One that has nothing to do but to wait for others says so.
inline void end_cycle(bool works) {
  if (!works) return unisono::kernel::poll();
  const std::uint64_t cycle = unisono::kernel::cycle();
  unisono::kernel::tick(((now() + 1) * kEngineMhz + kKernelMhz - 1) / kKernelMhz - cycle);
}

/// A sum of products, 2 * kFraction bits of fraction, as an element. Cut, not rounded.
inline Fixed fixed_of(std::int64_t sum) { return static_cast<Fixed>(sum >> kFraction); }

/// Words that wait on the chip.
class Queue {
 public:
  bool empty() const { return count_ == 0; }
  std::uint32_t count() const { return count_; }
  Fixed at(std::uint32_t i) const { return ring_[(first_ + i) % kMostOutputs]; }
  /// Elements that find room.
  std::uint32_t room() const { return kMostOutputs - count_; }
  /// Whole words, for which there is room.
  void put(std::span<const Fixed> elements) {
    for (const Fixed element : elements) ring_[(first_ + count_++) % kMostOutputs] = element;
  }
  /// Only if it is not empty.
  const Fixed* front() const { return &ring_[first_]; }
  void pop() {
    first_ = (first_ + kLanes) % kMostOutputs;
    count_ -= kLanes;
  }

 private:
  std::array<Fixed, kMostOutputs> ring_{};
  std::uint32_t first_ = 0, count_ = 0;
};

/// What is given to a port: a word in a cycle, as far as the port takes it.
class Outlet : public Queue {
 public:
  explicit Outlet(const unisono::kernel::DataStream& to) : data_(to, {}) {}

  /// One cycle; whether a word has gone.
  bool step() {
    if (empty() || data_.push_some(front(), sizeof(Lanes)) == 0) return false;
    pop();
    ++moved_;
    return true;
  }
  /// Words that have gone.
  std::uint64_t moved() const { return moved_; }

 private:
  unisono::kernel::Data data_;
  std::uint64_t moved_ = 0;
};

/// What comes from a port: two words at most stand here, so that one can come in each cycle.
class Inlet {
 public:
  explicit Inlet(const unisono::kernel::DataStream& from) : data_({}, from) {}

  /// One cycle; whether something has come. Words that are taken behind it make room for the next cycle only.
  bool step() {
    if (bytes_ == sizeof words_) return false;
    const std::uint64_t come =
        data_.pull_some(reinterpret_cast<std::byte*>(words_.data()) + bytes_, sizeof words_ - bytes_);
    bytes_ += come;
    return come != 0;
  }
  bool has_word() const { return bytes_ >= sizeof(Lanes); }
  /// Only if it has one.
  Lanes take() {
    const Lanes word = words_[0];
    std::copy(words_.begin() + 1, words_.end(), words_.begin());
    bytes_ -= sizeof word;
    ++moved_;
    return word;
  }
  /// Words that were taken.
  std::uint64_t moved() const { return moved_; }

 private:
  unisono::kernel::Data data_;
  std::array<Lanes, 3> words_{};
  std::uint64_t bytes_ = 0, moved_ = 0;
};

/// A layer, or the part of it on one node: sums += W x, by columns, so that an input is multiplied when it comes. Its
/// multipliers do so many products in a cycle, all of one word of inputs before the next.
class Layer {
 public:
  /// `weights`: a column behind the other.
  Layer(std::span<const Fixed> weights, std::uint32_t inputs, std::uint32_t products_per_cycle)
      : weights_(weights),
        inputs_(inputs),
        outputs_(static_cast<std::uint32_t>(weights.size() / inputs)),
        rate_(products_per_cycle) {}

  /// Whether it is one of those that there is room for. Else nothing but this may be called.
  bool fits() const {
    return outputs_ <= kMostOutputs && weights_.size() == std::size_t{outputs_} * inputs_ && inputs_ % kLanes == 0;
  }
  std::uint32_t outputs() const { return outputs_; }
  /// The next word of inputs may come in this cycle: the multipliers come free in it, and the last result is taken.
  bool ready() const { return taken_ < inputs_ && busy_until_ < (now() + 1) * rate_; }
  void take(const Lanes& word) {
    busy_until_ = std::max(busy_until_, now() * rate_) + std::uint64_t{kLanes} * outputs_;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Fixed* const column = &weights_[std::size_t{taken_ + lane} * outputs_];
      const std::int64_t input = word[lane];
      for (std::uint32_t row = 0; row < outputs_; ++row) sums_[row] += column[row] * input;
    }
    taken_ += kLanes;
  }
  /// All products of a vector are done.
  bool done() const { return taken_ == inputs_ && busy_until_ <= now() * rate_; }
  bool busy() const { return busy_until_ > now() * rate_; }
  /// The outputs; the next vector may come.
  std::span<const Fixed> result() {
    for (std::uint32_t row = 0; row < outputs_; ++row) result_[row] = fixed_of(std::exchange(sums_[row], 0));
    taken_ = 0;
    return {result_.data(), outputs_};
  }

 private:
  std::span<const Fixed> weights_;
  std::uint32_t inputs_, outputs_, rate_;
  std::uint32_t taken_ = 0;       ///< inputs
  std::uint64_t busy_until_ = 0;  ///< in products since cycle 0, so that parts of a cycle count
  std::array<std::int64_t, kMostOutputs> sums_{};
  std::array<Fixed, kMostOutputs> result_{};
};

/// A part of a layer that has its vector before it begins, and makes its outputs block by block: each goes on its way
/// while the next one is computed.
class BlockLayer {
 public:
  /// `weights`: a column behind the other.
  BlockLayer(std::span<const Fixed> weights, std::uint32_t inputs, std::uint32_t blocks,
             std::uint32_t products_per_cycle)
      : weights_(weights),
        inputs_(inputs),
        outputs_(static_cast<std::uint32_t>(weights.size() / inputs)),
        block_(outputs_ / blocks),
        rate_(products_per_cycle) {}

  /// Whether it is one of those that there is room for. Else nothing but this may be called.
  bool fits() const {
    return 2 * inputs_ <= kMostOutputs && weights_.size() == std::size_t{outputs_} * inputs_ && inputs_ % kLanes == 0 &&
           block_ % kLanes == 0 && block_ != 0 && outputs_ % block_ == 0;
  }
  std::uint32_t outputs() const { return outputs_; }
  std::uint32_t block() const { return block_; }
  /// Words of vectors that come; two vectors find room.
  Queue& vector() { return vector_; }
  /// One cycle. Whether a block is done: `result` must be taken before the next cycle.
  bool step() {
    if (!busy_ && vector_.count() >= inputs_) {
      busy_until_ = std::max(busy_until_, now() * rate_) + std::uint64_t{block_} * inputs_;
      busy_ = true;
    }
    return busy_ && busy_until_ <= now() * rate_;
  }
  bool busy() const { return busy_; }
  /// No block of this vector is done yet.
  bool begins() const { return row_ == 0; }
  std::span<const Fixed> result() {
    std::array<std::int64_t, kMostOutputs> sums{};
    for (std::uint32_t column = 0; column < inputs_; ++column) {
      const Fixed* const weights = &weights_[std::size_t{column} * outputs_ + row_];
      const std::int64_t input = vector_.at(column);
      for (std::uint32_t row = 0; row < block_; ++row) sums[row] += weights[row] * input;
    }
    for (std::uint32_t row = 0; row < block_; ++row) result_[row] = fixed_of(sums[row]);
    row_ += block_;
    busy_ = false;
    if (row_ == outputs_) {
      row_ = 0;
      for (std::uint32_t i = 0; i < inputs_; i += kLanes) vector_.pop();
    }
    step();  // the multipliers go on in this cycle
    return {result_.data(), block_};
  }

 private:
  std::span<const Fixed> weights_;
  std::uint32_t inputs_, outputs_, block_, rate_;
  std::uint32_t row_ = 0;
  bool busy_ = false;
  std::uint64_t busy_until_ = 0;  ///< in products since cycle 0, so that parts of a cycle count
  Queue vector_;
  std::array<Fixed, kMostOutputs> result_{};
};

/// Elements below 0 become 0.
inline Lanes rectified(Lanes word) {
  for (Fixed& element : word) element = std::max(element, 0);
  return word;
}

/// When the calls of a stream are to be given: a little ahead of their words, so that their beginning hides behind
/// computation. Few at once, for an engine carries out eight.
class Calls {
 public:
  /// So many calls, of so many words each; `ahead` of them are under way at most.
  Calls(std::uint32_t count, std::uint32_t words, std::uint32_t ahead = 2)
      : count_(count), words_(words), ahead_(ahead) {}
  /// Whether one is to be given now, when so many words have gone through the port.
  bool due(std::uint64_t moved) {
    if (given_ == count_ || given_ >= moved / words_ + ahead_) return false;
    ++given_;
    return true;
  }

 private:
  std::uint32_t count_, words_, ahead_, given_ = 0;
};

/// What kernels return whose layer has another shape.
inline constexpr int kInvalidArgument = 1;

/// Waits for the ends of commands. The code of the first that failed, or 0.
template <class... Commands>
int finish(Commands&... commands) {
  int first = 0;
  for (const int code : {static_cast<int>(commands.finalize())...}) {
    if (first == 0) first = code;
  }
  return first;
}

}  // namespace dlrm
