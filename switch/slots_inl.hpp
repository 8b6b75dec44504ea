// What BasicPool does. Included by slots.cpp, and by tests that take a rule away.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "core/facts.hpp"
#include "engine/kernels.hpp"
#include "switch/buffering.hpp"
#include "switch/slots.hpp"

namespace unisono::slots {

template <Rules kRules>
PoolShape BasicPool<kRules>::checked(PoolShape shape) {
  const auto refuse = [&shape](const std::string& text) {
    throw Error(ErrorCode::kInvalidArgument,
                "the pool of communicator " + std::to_string(shape.communicator) + " in a switch: " + text);
  };
  if (!std::has_single_bit(shape.slots) || shape.slots > kMaxSlots) {
    refuse(std::to_string(shape.slots) + " slots; allowed is a power of two up to " + std::to_string(kMaxSlots));
  }
  if (shape.payload_bytes == 0 || shape.payload_bytes % 16 != 0) {
    refuse(std::to_string(shape.payload_bytes) + " bytes of payload; allowed is a multiple of 16 from 16 on");
  }
  if (shape.children.empty() || shape.children.size() > kMaxRanks) refuse("there must be 1 to 2^24 children");
  if (shape.generation == 0) refuse("generation 0 means that none is known; they begin at 1");
  for (std::size_t i = 0; i < shape.children.size(); ++i) {
    const Child& child = shape.children[i];
    if (child.ranks == 0) refuse("child " + std::to_string(i) + " has no ranks");
    if (i > 0 && child.first < shape.children[i - 1].first + shape.children[i - 1].ranks) {
      refuse("ranks of child " + std::to_string(i) + " begin at " + std::to_string(child.first) +
             ", which is not behind those of the child before it; a fold in listed order is one in the order of ranks");
    }
  }
  if (buffer_bytes(shape.slots, shape.payload_bytes) < shape.least_buffer) {
    refuse(std::to_string(shape.slots) + " slots of " + std::to_string(shape.payload_bytes) +
           " bytes hold less than the " + std::to_string(shape.least_buffer) +
           " bytes per child that come in while a tree of this depth answers (ACiS, eq. 3.1); take more slots");
  }
  return shape;
}

template <Rules kRules>
BasicPool<kRules>::BasicPool(const PoolShape& shape, Outlet& outlet)
    : shape_(checked(shape)),
      outlet_(outlet),
      turns_(shape_.slots, members()),
      versions_(std::size_t{2} * shape_.slots),
      data_(pool_bytes(shape_.slots, shape_.payload_bytes, members(), shape_.keeps_order)),
      places_(shape_.keeps_order ? members() : 1),
      operands_(places_),
      generation_(shape_.generation),
      resumed_bits_((members() + 63) / 64),
      incarnations_(members()) {
  turns_.reset(0);
}

template <Rules kRules>
std::byte* BasicPool<kRules>::place(std::size_t version, std::uint32_t child) {
  return data_.data() + (version * places_ + child) * shape_.payload_bytes;
}

template <Rules kRules>
std::span<const std::byte> BasicPool<kRules>::value(std::size_t version) {
  const SlotFrame& said = versions_[version].said;
  return {place(version, 0), std::size_t{said.count} * bytes_of(said.dtype)};
}

template <Rules kRules>
bool BasicPool<kRules>::is_below(std::uint32_t child, std::uint32_t rank) const {
  const Child& one = shape_.children[child];
  return rank - one.first < one.ranks;
}

/// Whether a child's contribution to such a turn has data.
template <Rules kRules>
bool BasicPool<kRules>::carries(const SlotFrame& said, std::uint32_t child) const {
  return said.count != 0 && (combines(said.opcode) || is_below(child, said.root));
}

/// Whether a child is sent the data of the result.
template <Rules kRules>
bool BasicPool<kRules>::gets(const SlotFrame& said, std::uint32_t child) const {
  if (said.count == 0) return false;
  switch (said.opcode) {
    case Collective::kAllreduce:
      return true;
    case Collective::kReduce:
    case Collective::kReduceScatter:
      return is_below(child, said.root);
    default:  // bcast and allgather: all but the one rank that gave it
      return shape_.children[child].ranks > 1 || !is_below(child, said.root);
  }
}

template <Rules kRules>
SlotFrame BasicPool<kRules>::head_down(SlotKind kind, std::uint32_t child) const {
  SlotFrame head{};
  head.kind = kind;
  head.generation = generation_;
  head.communicator = shape_.communicator;
  head.epoch = shape_.epoch;
  head.member = child;
  return head;
}

template <Rules kRules>
SlotFrame BasicPool<kRules>::head_up(SlotKind kind) const {
  SlotFrame head = head_down(kind, *shape_.uplink);
  head.generation = generation_above_;
  return head;
}

template <Rules kRules>
void BasicPool<kRules>::from_child(const FrameView& frame) {
  const SlotFrame& head = frame.head;
  if (head.communicator != shape_.communicator || head.epoch != shape_.epoch || head.member >= members()) {
    ++counters_.faults;
    return;
  }
  if (head.kind == SlotKind::kRefuse) {
    if (state_ != State::kRefused) refuse(refusal_in(frame), true);
    return;
  }
  if (head.kind != SlotKind::kContribute && head.kind != SlotKind::kResume) {
    ++counters_.faults;
    return;
  }
  if (state_ == State::kRefused) {
    send_refusal(head.member);
    return;
  }
  if (head.generation > generation_) {
    ++counters_.faults;
    return;
  }
  const bool old = head.generation < generation_ && (kRules.generation || head.kind == SlotKind::kResume);
  if (old) {
    if (head.generation != 0) ++counters_.late;
    outlet_.down(head_down(SlotKind::kRenew, head.member), {});
    return;
  }
  if (head.kind == SlotKind::kResume) {
    resume(frame);
  } else if (state_ == State::kRunning) {
    contribute(frame);
  } else {
    ++counters_.late;
  }
}

template <Rules kRules>
void BasicPool<kRules>::contribute(const FrameView& frame) {
  const SlotFrame& head = frame.head;
  if (head.slot != turns_.slot_of(head.turn) || head.second != turns_.is_second(head.turn)) {
    ++counters_.faults;
    return;
  }
  const Verdict verdict = turns_.look(head.turn, head.member);
  const std::size_t version = turns_.version_of(head.turn);
  switch (verdict) {
    case Verdict::kLate:
      ++counters_.late;
      return;
    case Verdict::kAhead:
      ++counters_.faults;
      return;
    case Verdict::kDuplicate:
      ++counters_.duplicates;
      answer(version, head.member);
      return;
    case Verdict::kFirst:
    case Verdict::kFurther:
      break;
  }
  if (awaits_operators_ && combines(head.opcode) && is_user(head.func) && operator_of(head.func).element_bytes == 0) {
    ++counters_.late;
    return;
  }
  if (!sound(frame, verdict)) return;
  if (verdict == Verdict::kFirst) {
    versions_[version].said = head;
    versions_[version].said_by = head.member;
    versions_[version].unserved = 0;
    if constexpr (kRules.first_overwrites) versions_[version].data = false;
  }
  keep(version, frame);
  ++counters_.contributions;
  if (turns_.set(head.turn, head.member, verdict)) gathered(version);
}

template <Rules kRules>
void BasicPool<kRules>::set_operator(Func func, PoolOperator op) {
  if (is_user(func))
    operators_[static_cast<std::size_t>(func) - static_cast<std::size_t>(Func::kUser0)] = std::move(op);
}

template <Rules kRules>
const PoolOperator& BasicPool<kRules>::operator_of(Func func) const {
  return operators_[static_cast<std::size_t>(func) - static_cast<std::size_t>(Func::kUser0)];
}

/// Whether a turn is folded when it is complete, in listed order.
template <Rules kRules>
bool BasicPool<kRules>::ordered(const SlotFrame& head) {
  return combines(head.opcode) && (is_user(head.func) || !folds_in_any_order(head.func, head.dtype));
}

/// Whether a contribution can be taken; if not, the pool is closed, for the members' calls differ.
template <Rules kRules>
bool BasicPool<kRules>::sound(const FrameView& frame, Verdict verdict) {
  const SlotFrame& head = frame.head;
  const std::uint32_t rank = shape_.children[head.member].first;
  if (verdict == Verdict::kFurther) {
    const Version& version = versions_[turns_.version_of(head.turn)];
    if (!agrees(version.said, version.said_by, head)) return false;
  } else if (combines(head.opcode)) {
    const auto func = static_cast<std::uint64_t>(head.func);
    const auto dtype = static_cast<std::uint64_t>(head.dtype);
    const bool has = is_user(head.func) ? operator_of(head.func).element_bytes == bytes_of(head.dtype)
                                        : cclo::combine_kernel(head.func, head.dtype) != nullptr;
    if (!has || (!shape_.keeps_order && ordered(head))) {
      refuse({has ? SlotField::kOrder : SlotField::kOperator, head.call, rank, rank, func, dtype}, true);
      return false;
    }
  }
  // What a turn has must fit, whoever carries it: of a turn that no child carries, it comes from above.
  const std::uint64_t all = std::uint64_t{head.count} * bytes_of(head.dtype);
  const std::uint64_t bytes = carries(head, head.member) ? all : 0;
  const bool fits = all <= shape_.payload_bytes;
  if (!fits || frame.payload.size() != bytes) {
    refuse({SlotField::kPayload, head.call, rank, rank, fits ? frame.payload.size() : all,
            fits ? bytes : shape_.payload_bytes},
           true);
    return false;
  }
  return true;
}

template <Rules kRules>
bool BasicPool<kRules>::agrees(const SlotFrame& said, std::uint32_t said_by, const SlotFrame& head) {
  const auto differs = [&](SlotField field, auto first, auto second) {
    if (first == second) return false;
    refuse({field, said.call, shape_.children[said_by].first, shape_.children[head.member].first,
            static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)},
           true);
    return true;
  };
  return !differs(SlotField::kCall, said.call, head.call) && !differs(SlotField::kOpcode, said.opcode, head.opcode) &&
         !differs(SlotField::kFunc, said.func, head.func) && !differs(SlotField::kDtype, said.dtype, head.dtype) &&
         !differs(SlotField::kTotal, said.total, head.total) && !differs(SlotField::kCount, said.count, head.count) &&
         !differs(SlotField::kRoot, said.root, head.root) && !differs(SlotField::kFactor, said.factor, head.factor);
}

/// Puts a contribution's data where it belongs: into the result so far if order changes nothing, else to its own place.
template <Rules kRules>
void BasicPool<kRules>::keep(std::size_t version, const FrameView& frame) {
  const SlotFrame& head = frame.head;
  if (frame.payload.empty()) return;
  Version& held = versions_[version];
  const bool in_order = ordered(head);
  // No more than members * payload is ever stored of a turn (buffering.hpp).
  if (frame.payload.size() > shape_.payload_bytes || (in_order && head.member >= places_)) {
    throw Error(ErrorCode::kInternal, "a contribution lies beyond its place in a slot");
  }
  if (!in_order && held.data && combines(head.opcode)) {
    cclo::combine_kernel(head.func, head.dtype)(place(version, 0), frame.payload.data(), place(version, 0), head.count);
  } else {
    std::memcpy(place(version, in_order ? head.member : 0), frame.payload.data(), frame.payload.size());
  }
  held.data = true;
}

/// The last contribution has come.
template <Rules kRules>
void BasicPool<kRules>::gathered(std::size_t version) {
  const SlotFrame& said = versions_[version].said;
  if (versions_[version].data && combines(said.opcode) && is_user(said.func)) {
    if (!fold_by_operator(version)) return;
  } else if (versions_[version].data && ordered(said)) {
    for (std::uint32_t child = 0; child < members(); ++child) operands_[child] = place(version, child);
    std::byte* const result = place(version, 0);
    cclo::reduce_kernel(said.func, said.dtype)(operands_.data(), members(), &result, 1, said.count, false);
  }
  if (shape_.uplink) {
    send_up(version);
  } else {
    finished(version);
  }
}

/// Folds a turn by an operator of a user. False, and the pool is closed, if the operator was stopped.
template <Rules kRules>
bool BasicPool<kRules>::fold_by_operator(std::size_t version) {
  const SlotFrame said = versions_[version].said;
  const PoolOperator& op = operator_of(said.func);
  std::byte* const result = place(version, 0);
  std::uint64_t budget = fold_budget(std::uint64_t{said.count} * members());
  for (std::uint32_t child = 1; child < members(); ++child) {
    if (op.fold(result, place(version, child), result, said.count, budget)) continue;
    const std::uint32_t rank = shape_.children[child].first;
    refuse({SlotField::kOperator, said.call, rank, rank, static_cast<std::uint64_t>(said.func),
            static_cast<std::uint64_t>(said.dtype)},
           true);
    return false;
  }
  return true;
}

template <Rules kRules>
void BasicPool<kRules>::finished(std::size_t version) {
  turns_.set_done(version);
  ++counters_.results;
  const Version& held = versions_[version];
  bool all = true;
  bool none = true;
  for (std::uint32_t child = 0; child < members(); ++child) {
    const bool data = held.data && gets(held.said, child);
    all = all && data;
    none = none && !data;
  }
  if (all || none) {
    send_result(version, kEveryone);
  } else {
    for (std::uint32_t child = 0; child < members(); ++child) send_result(version, child);
  }
}

template <Rules kRules>
void BasicPool<kRules>::send_result(std::size_t version, std::uint32_t child) {
  const Version& held = versions_[version];
  SlotFrame head = held.said;
  head.kind = SlotKind::kResult;
  head.generation = generation_;
  head.member = child;
  // To everyone goes what child 0 gets: all get the same then.
  const bool data = held.data && gets(held.said, child == kEveryone ? 0 : child);
  const auto payload = data ? value(version) : std::span<const std::byte>{};
  if (child == kEveryone) {
    outlet_.down_all(head, payload);
  } else {
    outlet_.down(head, payload);
  }
}

/// Whether a repeat is to serve for all members: one of the lowest of those that wait. It may have ended, or be cut
/// off, since it came: then one of so many of the others does. `unserved` counts these.
template <Rules kRules>
bool BasicPool<kRules>::serves(bool lowest, std::uint32_t& unserved) const {
  if (!lowest && ++unserved <= members()) return false;
  unserved = 0;
  return true;
}

/// A duplicate: its member lacks the result, or does not know that it must wait.
template <Rules kRules>
void BasicPool<kRules>::answer(std::size_t version, std::uint32_t child) {
  if (turns_.done(version)) {
    if constexpr (kRules.answers) send_result(version, child);
    return;
  }
  const SlotFrame& said = versions_[version].said;
  SlotFrame head = head_down(SlotKind::kMissing, child);
  head.slot = said.slot;
  head.second = said.second;
  head.turn = said.turn;
  head.count = members() - turns_.present(version);
  const std::uint32_t lowest = turns_.lowest(version, false);
  head.root = lowest < members() ? shape_.children[lowest].first : kEveryone;
  outlet_.down(head, {});
  if (!serves(child == turns_.lowest(version, true), versions_[version].unserved)) return;
  if (turns_.complete(version)) {
    send_up(version);
    return;
  }
  for (std::uint32_t other = lowest; other < members(); ++other) {
    if (turns_.has(version, other)) continue;
    head.member = other;
    head.root = shape_.children[other].first;
    outlet_.down(head, {});
  }
}

template <Rules kRules>
void BasicPool<kRules>::send_up(std::size_t version) {
  const Version& held = versions_[version];
  SlotFrame head = held.said;
  head.generation = generation_above_;
  head.member = *shape_.uplink;
  outlet_.up(head, held.data ? value(version) : std::span<const std::byte>{});
}

// ---- refusals ----

template <Rules kRules>
void BasicPool<kRules>::refuse(const SlotRefusal& refusal, bool upwards) {
  state_ = State::kRefused;
  refusal_ = refusal;
  send_refusal(kEveryone);
  if (upwards && shape_.uplink) outlet_.up(head_up(SlotKind::kRefuse), bytes_of(refusal_));
}

template <Rules kRules>
void BasicPool<kRules>::send_refusal(std::uint32_t child) {
  const SlotFrame head = head_down(SlotKind::kRefuse, child);
  const auto payload = bytes_of(refusal_);
  if (child == kEveryone) {
    outlet_.down_all(head, payload);
  } else {
    outlet_.down(head, payload);
  }
}

template <Rules kRules>
std::vector<std::uint32_t> BasicPool<kRules>::missing(std::uint64_t turn) const {
  std::vector<std::uint32_t> children;
  const std::size_t version = turns_.version_of(turn);
  if (turns_.held(version) != turn) return children;
  for (std::uint32_t child = 0; child < members(); ++child) {
    if (!turns_.has(version, child)) children.push_back(child);
  }
  return children;
}

template <Rules kRules>
std::vector<std::uint64_t> BasicPool<kRules>::gathering() const {
  std::vector<std::uint64_t> turns;
  for (std::size_t version = 0; version < versions_.size(); ++version) {
    const std::uint64_t turn = turns_.held(version);
    if (turn != SlotTurns<kRules>::kNever && !turns_.complete(version)) turns.push_back(turn);
  }
  std::sort(turns.begin(), turns.end());
  return turns;
}

template <Rules kRules>
std::vector<std::uint32_t> BasicPool<kRules>::silent() const {
  std::vector<std::uint32_t> children;
  for (std::uint32_t child = 0; child < members() && state_ == State::kResuming; ++child) {
    if ((resumed_bits_[child / 64] >> (child % 64) & 1U) == 0) children.push_back(child);
  }
  return children;
}

}  // namespace unisono::slots

#include "switch/generations_inl.hpp"
