// Plans: what of a call is equal from one launch to the next, and the one cache of them that a communicator has.
//
// A call is admitted (admit.hpp) to a plan and to what its launch binds. A plan is made once: the algorithm is chosen,
// its program generated, examined and, where the communicator has lanes, lowered.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/tuning.hpp"
#include "core/call.hpp"
#include "core/footprint.hpp"
#include "core/program.hpp"
#include "core/signature.hpp"
#include "engine/lower.hpp"
#include "engine/recorder.hpp"
#include "engine/validate.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/segment.hpp"

namespace unisono::cclo {

/// Which algorithm the last collective call of a communicator runs with, written by the thread that begins the call.
/// The position in the table of algorithms plus one, and a bit for the automatic choice; 0 before there was one.
struct LastNumber {
  static constexpr std::uint32_t kAutomatic = std::uint32_t{1} << 31U;
  static std::uint32_t of(const Algorithm* algorithm, bool automatic) {
    const auto position = algorithm == nullptr ? 0 : static_cast<std::uint32_t>(algorithm - algorithms().data()) + 1;
    return position | (automatic ? kAutomatic : 0);
  }
  std::atomic<std::uint32_t> number{0};
};

/// A program ready to run on the lanes.
struct LaneProgram {
  const Algorithm* algorithm = nullptr;
  std::uint32_t number = 0;  ///< of the algorithm and how it was chosen, as LastNumber has it
  std::uint32_t factor = 0;  ///< short_factor_bits of post_scale
  /// What CallRecord::algorithm says of it.
  std::uint64_t recorded() const { return number | std::uint64_t{factor} << 32U; }
  /// If it has indirect parts, each launch writes its own; the thread that has claimed the lanes does, and runs it
  /// then.
  mutable LoweredProgram lowered;
};

/// What tells calls apart whose count is equal and whose algorithm is not named, as one word. Fields that the operation
/// does not use are 0, as in a plan.
constexpr std::uint64_t head_of(const Call& call) {
  return static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.func) << 8U |
         static_cast<std::uint64_t>(call.dtype) << 16U | std::uint64_t{call.in_place} << 24U |
         std::uint64_t{call.root} << 32U;
}

/// In the head of a plan that varies: no call of fixed count is taken for it.
inline constexpr std::uint64_t kVaryingHead = std::uint64_t{1} << 25U;

/// The sets of lanes of a communicator's collective calls: those that small calls take in turn, then that of large
/// ones.
inline constexpr std::uint8_t kLargeSet = shm::kSmallSets;
inline constexpr std::uint32_t kSets = shm::kSmallSets + 1;
static_assert((shm::kSmallSets & (shm::kSmallSets - 1)) == 0);

/// Everything about a call that does not change from one to the next. What a blocking call on the lanes looks at
/// comes first.
struct alignas(64) Plan {
  std::uint64_t head = 0;       ///< of `call`
  Call call;                    ///< as it runs: with the radix, and direct access, of its algorithm
  std::uint64_t src_bytes = 0;  ///< that the call binds on this rank; 0 for v-collectives, whose counts say it
  std::uint64_t dst_bytes = 0;
  std::uint32_t signature = 0;
  bool lanes = false;            ///< the call runs on the lanes: `plain` or `direct` is lowered
  bool shows_addresses = false;  ///< the ranks tell each other where their regions are; the same on all ranks
  bool must_be_direct = false;   ///< the user named an algorithm with direct access
  bool may_copy = false;         ///< kernel copy is worth its while; the same on all ranks
  bool lends = false;            ///< long messages of `plain` may be lent (loans.hpp): no rank combines what comes
  /// The set of lanes (FastPath) that call n takes is `first_set | (n & set_mask)`; the same on all ranks. Calls that
  /// take sets in turn write nothing that two launches would share.
  std::uint8_t first_set = kLargeSet;
  std::uint8_t set_mask = 0;
  /// A v-collective: the count differs from launch to launch, within `counts`. Where that is kUnknownCount, what a
  /// launch calls its count is this rank's own, for records.
  bool varies = false;
  RecordEntry record;
  LaneProgram plain;
  LaneProgram direct;                    ///< algorithm null: there is none
  const Algorithm* algorithm = nullptr;  ///< of `checked`; null for programs of the user
  std::uint32_t number = 0;              ///< of `algorithm`: its position in the table plus one
  std::shared_ptr<const CheckedProgram> checked;
  std::shared_ptr<const Program> user;  ///< that `checked` was made of; keeps its address
  std::uint64_t least_lent = 0;         ///< bytes of messages in ordinary memory that are lent; the same on all ranks
  std::vector<std::array<std::uint64_t, 2>> peer_bytes;  ///< by rank: of its src and dst; empty if nothing is direct

  /// Of a plan that varies: counts that it serves. That of `call` is the least.
  struct Counts {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
  };
  Counts counts;
  /// Where the root alone knows whether its call is in place, on the others: what runs instead of `direct` if it is,
  /// which the root shows with its addresses; and the bytes of the root's src and dst then.
  LaneProgram direct_in_place;
  std::array<std::uint64_t, 2> root_bytes_in_place{};
  double post_scale = 1;  ///< see CallRequest: the ranks compare it

  const LaneProgram& direct_for(bool root_in_place) const {
    return root_in_place && direct_in_place.algorithm != nullptr ? direct_in_place : direct;
  }

  /// Moves that stand in memory for as long as the plan is kept.
  std::size_t kept_moves() const { return lanes ? checked->move_count : checked->program.moves.size(); }

  /// What the ranks compare of a launch on the lanes: of so many elements, unless the root alone knows the counts.
  std::uint32_t signature_for(std::uint64_t count) const {
    if (!varies || call.count == kUnknownCount) return signature;
    const std::uint32_t all = chained(signature, static_cast<std::uint32_t>(count ^ count >> 32U));
    return all != 0 ? all : 1;
  }
  RecordEntry record_for(std::uint64_t count) const {
    if (!varies) return record;
    Call launched = call;
    launched.count = count;
    return RecordEntry::of(launched, signature_for(count), 0, post_scale);
  }
};

/// Sums of counts of v-collectives, in classes, for counts change from call to call: a plan serves a class. Programs
/// depend on the sum only in how much scratch they use; they are made for the largest of a class, at most an eighth
/// more than any of it. kUnknownCount is a class of its own.
constexpr std::uint64_t largest_of_class(std::uint64_t count) {
  constexpr int kBits = 4;  // that tell classes apart
  const auto width = static_cast<int>(std::bit_width(count));
  return width <= kBits || count == kUnknownCount ? count : count | ((std::uint64_t{1} << (width - kBits)) - 1);
}
constexpr std::uint64_t least_of_class(std::uint64_t count) {
  constexpr int kBits = 4;
  const auto width = static_cast<int>(std::bit_width(count));
  return width <= kBits || count == kUnknownCount ? count : count & ~((std::uint64_t{1} << (width - kBits)) - 1);
}

/// The counts around that of a v-collective which one plan serves: those of its class that choose alike; `named`: the
/// user chose the algorithm.
Plan::Counts served_with(const Call& call, bool named, const Tuning& tuning);

/// On what the plans of a communicator depend beside the call.
struct PlanTerms {
  const Capability& capability;
  const Tuning& tuning;
  std::uint32_t eager_limit = 0;
  const shm::CopyFrom* copy_from = nullptr;  ///< of the lanes; null: the communicator has none
  bool hardware_peers = false;               ///< see signed_call
  double post_scale = 1;                     ///< as they compare it
};

/// What of a call all ranks give equally. That it is in place is the root's affair alone where only the root acts on
/// it. Engines in hardware compare that as well.
constexpr Call signed_call(Call call, bool hardware_peers) {
  if (!hardware_peers && in_place_at_root(call.collective)) call.in_place = false;
  return call;
}

/// Whether lanes carry the calls of a collective at all; the same on all ranks.
bool carried_by_lanes(Collective collective);

/// Makes the plan of a call that `algorithm` admits; `named`: the user chose it. Throws what `check_program` throws.
std::shared_ptr<const Plan> make_plan(const Call& call, const Algorithm& algorithm, bool named, const PlanTerms& terms);
/// Makes the plan of a user's program; `carried`: what `lanes_carry` says of it and those of the other ranks. Throws
/// what `check_program` throws.
std::shared_ptr<const Plan> make_plan(const Call& call, const std::shared_ptr<const Program>& program,
                                      const PlanTerms& terms, bool carried);

/// The plans of a communicator: those of its last blocking calls in front, where they are found by comparing words, and
/// all others in a map. Under the engine's lock, unless another rule is given.
///
/// A plan that anybody else holds stays; of the others, those used last stay, within the bounds.
class PlanCache {
 public:
  /// Bounds of what is kept: plans, and moves with them (Plan::kept_moves).
  static constexpr std::size_t kMostPlans = 1024;
  static constexpr std::size_t kMostMoves = std::size_t{1} << 15U;

  /// What tells plans apart: the call as it was asked for, before an algorithm was chosen for it.
  struct Key {
    Call call;
    const void* source = nullptr;  ///< the algorithm that the user named, or the user's program; null: neither
    std::uint32_t op = 0;          ///< identity of an operator of the user, whose number may come to mean another one
    std::uint64_t factor = 0;      ///< factor_bits of post_scale
    bool operator==(const Key&) const = default;
  };

  /// The plan of a call, or null.
  std::shared_ptr<const Plan> find(const Key& key);
  void insert(const Key& key, std::shared_ptr<const Plan> plan);
  /// Whether there are more plans than should be.
  bool full() const { return entries_.size() > kMostPlans || moves_ > kMostMoves; }
  /// Drops plans until the bounds are kept, or all that are left are in use. With the lanes claimed, if there are any:
  /// nobody begins a call meanwhile.
  void trim();
  std::size_t size() const { return entries_.size(); }

  // Of who has claimed the lanes; no lock.

  /// The plan of a call whose algorithm is not named, if it is in front; or null.
  const Plan* front(const Call& call) const {
    const Plan* plan = front_[slot_of(call)].get();
    return plan != nullptr && plan->head == head_of(call) && plan->call.count == call.count ? plan : nullptr;
  }
  std::shared_ptr<const Plan> front_to_keep(const Call& call) const {
    return front(call) != nullptr ? front_[slot_of(call)] : nullptr;
  }
  /// The same of a v-collective of `count` elements.
  const Plan* front_of_class(const Call& call, std::uint64_t count) const {
    const Plan* plan = front_of_classes_[class_slot_of(call, count)].get();
    const bool serves = plan != nullptr && plan->head == (head_of(call) | kVaryingHead) &&
                        count >= plan->counts.least && count <= plan->counts.most;
    return serves ? plan : nullptr;
  }
  /// Puts a plan in front. Not one with an operator of the user, whose number may come to mean another one, nor one
  /// with a factor.
  void remember(const std::shared_ptr<const Plan>& plan) {
    const Call& call = plan->call;
    (plan->varies ? front_of_classes_[class_slot_of(call, call.count)] : front_[slot_of(call)]) = plan;
  }

  /// Notes plan and count of a call as it takes its number. By who has claimed the lanes, or under the engine's lock.
  /// `kVaries`: the plan does.
  template <bool kVaries>
  void note(std::uint32_t sequence, const Plan& plan, std::uint64_t count) {
    Past& entry = past_[sequence % kPast];
    entry.sequence.store(sequence, std::memory_order_relaxed);
    if constexpr (kVaries) entry.count.store(count, std::memory_order_relaxed);
    entry.plan.store(&plan, std::memory_order_release);
  }
  /// One of the last calls, and its plan, or null if it is no longer known. Good for as long as the lock is held.
  struct PastLaunch {
    const Plan* plan = nullptr;
    Call call;
  };
  PastLaunch past(std::uint32_t sequence) const;

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kClassSlots = 256;
  static constexpr std::size_t kPast = 16;

  static std::size_t slot_of(const Call& call) {
    return (static_cast<std::size_t>(call.collective) * 5 + call.count + (call.count >> 6U) + call.root) % kSlots;
  }

  /// Neighbouring classes have neighbouring slots, and roots far ones: counts about a mean, and roots in turn, meet
  /// none.
  static std::size_t class_slot_of(const Call& call, std::uint64_t count) {
    const auto width = static_cast<std::size_t>(std::bit_width(count));
    const std::uint64_t in_width = width <= 4 ? count : count >> (width - 4);
    return (width * 8 + in_width + std::size_t{call.root} * 19 + static_cast<std::size_t>(call.collective) * 37) %
           kClassSlots;
  }

  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    Key key;
    std::shared_ptr<const Plan> plan;
  };
  struct Past {
    std::atomic<const Plan*> plan{nullptr};
    std::atomic<std::uint32_t> sequence{0};
    std::atomic<std::uint64_t> count{0};
  };

  std::array<std::shared_ptr<const Plan>, kSlots> front_;
  std::array<std::shared_ptr<const Plan>, kClassSlots> front_of_classes_;
  std::array<Past, kPast> past_{};  ///< by sequence
  std::list<Entry> entries_;        ///< used last comes first
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> index_;
  std::size_t moves_ = 0;  ///< kept with the plans in `entries_`
};

}  // namespace unisono::cclo
