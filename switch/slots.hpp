// The switch's side of aggregation: a pool of slots for one communicator (docs/switch-protocol.md).
//
// A switch is a virtual rank: its children, ranks or other switches, contribute to numbered turns, and all of them get
// the result of a turn when the last of them has contributed. The pool has no socket, no clock and no thread: frames
// are given to it, and it gives frames to its outlet. What is lost is repeated by members, which do have clocks.
//
// It is a template over the protocol's rules, so that tests can take one of them away; everybody else uses `Pool`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "switch/frame.hpp"
#include "switch/rules.hpp"
#include "switch/turns.hpp"

namespace unisono::slots {

/// A member of a switch: a rank, or another switch with the ranks below it. Ranks count in the order in which the tree
/// lists them.
struct Child {
  std::uint32_t first = 0;  ///< lowest rank below it
  std::uint32_t ranks = 1;  ///< how many, without a gap
};

/// What is fixed when a communicator's pool is made.
struct PoolShape {
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  std::uint32_t slots = 64;             ///< a power of two, at most kMaxSlots; the same in all switches of a tree
  std::uint16_t payload_bytes = 1344;   ///< of data in a frame at most; a multiple of 16, the same in the whole tree
  bool keeps_order = true;              ///< there is room for every child's share, so that any operator may be folded
  std::uint64_t generation = 1;         ///< larger than that of every earlier pool of this communicator in this switch
  std::vector<Child> children;          ///< in listed order, which is the order of folds
  std::optional<std::uint32_t> uplink;  ///< the position of this switch at the switch above, if there is one
  std::uint64_t least_buffer = 0;       ///< bytes per child that slots must hold (ACiS, eq. 3.1; buffering.hpp)
};

/// An operator of a user, by which a pool folds.
struct PoolOperator {
  std::uint32_t element_bytes = 0;  ///< 0: there is none
  /// out = a op b for so many elements; `out` may be `a`. Takes its instructions from `budget`. False: it was stopped.
  std::function<bool(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count,
                     std::uint64_t& budget)>
      fold{};
};

/// Instructions by which a turn is folded in which so many elements come in, of all children together. A pool is folded
/// under the lock of its thread, which others' pools share: so a turn takes half a millisecond of the interpreter, or
/// a little more, or, where very many elements come, what those of one datagram take for each datagram that has come.
constexpr std::uint64_t fold_budget(std::uint64_t elements) {
  constexpr std::uint64_t kForOne = 4096;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 19U;
  constexpr std::uint64_t kForOneOfMany = 32;
  return std::min(elements * kForOne, std::max(kMost, elements * kForOneOfMany));
}

/// Where a pool's frames go. The payload is valid during the call only, in which the pool must not be used.
class Outlet {
 public:
  virtual ~Outlet() = default;
  /// To one child; `head.member` is its position.
  virtual void down(const SlotFrame& head, std::span<const std::byte> payload) = 0;
  /// The same frame to all children; `head.member` is kEveryone.
  virtual void down_all(const SlotFrame& head, std::span<const std::byte> payload) = 0;
  /// To the switch above; only if the pool has an uplink.
  virtual void up(const SlotFrame& head, std::span<const std::byte> payload) = 0;
};

/// What a pool has seen, for those who look why it is slow.
struct PoolCounters {
  std::uint64_t contributions = 0;  ///< taken
  std::uint64_t results = 0;        ///< turns that were completed
  std::uint64_t duplicates = 0;     ///< contributions that had come before
  std::uint64_t late = 0;           ///< frames of turns or generations that are over
  std::uint64_t faults = 0;         ///< frames that no member sends which keeps to the protocol
  std::uint64_t generations = 0;    ///< begun since the pool was made
};

/// The pool. Memory is allocated at construction only, and depends on the shape, not on messages or calls. Not
/// thread-safe: one thread at a time.
template <Rules kRules = Rules{}>
class BasicPool {
 public:
  enum class State : std::uint8_t {
    kResuming,  ///< not all members know this generation yet
    kRunning,
    kRefused,  ///< members did not agree; nothing is aggregated any more
  };

  /// Throws Error(kInvalidArgument) if the shape is not allowed. `outlet` must outlive the pool.
  BasicPool(const PoolShape& shape, Outlet& outlet);

  /// Takes a frame of a child, which `parse` has found without fault. The caller has made sure that `head.member` sent
  /// it.
  void from_child(const FrameView& frame);
  /// Takes a frame of the switch above, likewise.
  void from_parent(const FrameView& frame);

  /// From now on the pool folds by this operator where frames say user0 to ordered7, in listed order. Before, frames
  /// of that operator are as if they had not come: a switch that was started anew gets operators after its pool.
  void set_operator(Func func, PoolOperator op);
  /// Without it, and without `set_operator`, a pool refuses operators of users.
  void await_operators() { awaits_operators_ = true; }

  State state() const { return state_; }
  std::uint64_t generation() const { return generation_; }
  const PoolCounters& counters() const { return counters_; }
  /// What members did not agree on; only in state kRefused.
  const SlotRefusal& refusal() const { return refusal_; }
  /// Which children a turn that is being gathered lacks, in order; none if no slot holds it. For those who look.
  std::vector<std::uint32_t> missing(std::uint64_t turn) const;
  /// The turns that wait for children, in order. For those who look.
  std::vector<std::uint64_t> gathering() const;
  /// Which children have not resumed in this generation, in order; none once it has begun. For those who look.
  std::vector<std::uint32_t> silent() const;
  /// Bytes of data that the pool has allocated: no more is ever stored.
  std::size_t data_bytes() const { return data_.size(); }

 private:
  /// What a version of a slot holds besides bits.
  struct Version {
    SlotFrame said{};            ///< what the first contribution says of its turn, and all must say
    std::uint32_t said_by = 0;   ///< the child that said it
    bool data = false;           ///< there is data in its places
    std::uint32_t unserved = 0;  ///< duplicates since one served for all
  };

  static PoolShape checked(PoolShape shape);
  std::uint32_t members() const { return static_cast<std::uint32_t>(shape_.children.size()); }
  std::byte* place(std::size_t version, std::uint32_t child);
  std::span<const std::byte> value(std::size_t version);
  bool is_below(std::uint32_t child, std::uint32_t rank) const;
  bool carries(const SlotFrame& said, std::uint32_t child) const;
  bool gets(const SlotFrame& said, std::uint32_t child) const;

  bool serves(bool lowest, std::uint32_t& unserved) const;
  void contribute(const FrameView& frame);
  bool sound(const FrameView& frame, Verdict verdict);
  const PoolOperator& operator_of(Func func) const;
  static bool ordered(const SlotFrame& head);
  bool fold_by_operator(std::size_t version);
  bool agrees(const SlotFrame& said, std::uint32_t said_by, const SlotFrame& head);
  void keep(std::size_t version, const FrameView& frame);
  void gathered(std::size_t version);
  void finished(std::size_t version);
  void answer(std::size_t version, std::uint32_t child);
  void send_result(std::size_t version, std::uint32_t child);
  void send_up(std::size_t version);

  void resume(const FrameView& frame);
  void renewed();
  void resumed();
  void begin(std::uint64_t turn);
  void send_begin(std::uint32_t child);
  void ask_missing();
  void send_resume();
  SlotFrame head_down(SlotKind kind, std::uint32_t child) const;
  SlotFrame head_up(SlotKind kind) const;
  void refuse(const SlotRefusal& refusal, bool upwards);
  void send_refusal(std::uint32_t child);

  PoolShape shape_;
  Outlet& outlet_;
  SlotTurns<kRules> turns_;
  std::vector<Version> versions_;
  std::vector<std::byte> data_;
  std::uint32_t places_;                    ///< of each version
  std::vector<const std::byte*> operands_;  ///< of a fold
  std::array<PoolOperator, 16> operators_;  ///< of users
  bool awaits_operators_ = false;
  State state_ = State::kResuming;
  std::uint64_t generation_;
  SlotRefusal refusal_{};
  PoolCounters counters_;

  // While the pool is resuming.
  std::vector<std::uint64_t> resumed_bits_;
  std::uint32_t unserved_ = 0;  ///< resumes of those that had resumed, since one served for all
  std::uint32_t resumed_ = 0;
  std::uint64_t first_ = 0;                  ///< least turn that a member has no result of
  std::vector<std::uint64_t> incarnations_;  ///< of each child, as far as known

  std::uint64_t generation_above_ = 0;  ///< of the switch above; 0: not known
};

using Pool = BasicPool<>;
extern template class BasicPool<>;

}  // namespace unisono::slots
