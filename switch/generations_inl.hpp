// What BasicPool does when a generation begins, and what comes from the switch above. Included by slots_inl.hpp.
#pragma once

#include <algorithm>
#include <cstring>

#include "switch/slots.hpp"

namespace unisono::slots {

template <Rules kRules>
void BasicPool<kRules>::resume(const FrameView& frame) {
  const SlotFrame& head = frame.head;
  std::uint64_t& word = resumed_bits_[head.member / 64];
  const std::uint64_t mask = std::uint64_t{1} << (head.member % 64);
  std::uint64_t& incarnation = incarnations_[head.member];
  if (head.total < incarnation) {
    ++counters_.late;
    return;
  }
  if ((word & mask) != 0 && head.total > incarnation) {
    // The child has forgotten what it had: nobody may rely on what it said before.
    incarnation = head.total;
    renewed();
    return;
  }
  if ((word & mask) == 0) {
    incarnation = head.total;
    word |= mask;
    first_ = resumed_ == 0 ? head.turn : std::min(first_, head.turn);
    if (++resumed_ == members()) {
      resumed();
    } else if (resumed_ == 1) {
      ask_missing();
    }
    return;
  }
  if (state_ == State::kRunning) {
    send_begin(head.member);
    return;
  }
  bool lowest = (word & (mask - 1)) == 0;
  for (std::uint32_t i = 0; i < head.member / 64; ++i) lowest = lowest && resumed_bits_[i] == 0;
  if (!serves(lowest, unserved_)) return;
  if (resumed_ == members()) {
    send_resume();
  } else {
    ask_missing();
  }
}

/// A new generation begins: nothing is known but who the members are.
template <Rules kRules>
void BasicPool<kRules>::renewed() {
  ++generation_;
  ++counters_.generations;
  state_ = State::kResuming;
  resumed_ = 0;
  std::fill(resumed_bits_.begin(), resumed_bits_.end(), 0);
  turns_.reset(0);
  outlet_.down_all(head_down(SlotKind::kRenew, kEveryone), {});
}

template <Rules kRules>
void BasicPool<kRules>::ask_missing() {
  for (std::uint32_t child = 0; child < members(); ++child) {
    if ((resumed_bits_[child / 64] >> (child % 64) & 1U) == 0) outlet_.down(head_down(SlotKind::kRenew, child), {});
  }
}

template <Rules kRules>
void BasicPool<kRules>::resumed() {
  if (shape_.uplink) {
    send_resume();
  } else {
    begin(first_);
  }
}

template <Rules kRules>
void BasicPool<kRules>::send_resume() {
  SlotFrame head = head_up(SlotKind::kResume);
  head.turn = first_;
  head.total = generation_;  // a switch is another incarnation when it has forgotten its turns
  outlet_.up(head, {});
}

template <Rules kRules>
void BasicPool<kRules>::begin(std::uint64_t turn) {
  turns_.reset(turn);
  state_ = State::kRunning;
  for (std::uint32_t child = 0; child < members(); ++child) send_begin(child);
}

/// To the child that has resumed, and not to one that has forgotten its turns since then, in the same generation.
template <Rules kRules>
void BasicPool<kRules>::send_begin(std::uint32_t child) {
  SlotFrame head = head_down(SlotKind::kBegin, child);
  head.turn = turns_.begin();
  head.total = incarnations_[child];
  outlet_.down(head, {});
}

template <Rules kRules>
void BasicPool<kRules>::from_parent(const FrameView& frame) {
  const SlotFrame& head = frame.head;
  if (!shape_.uplink || head.communicator != shape_.communicator || head.epoch != shape_.epoch) {
    ++counters_.faults;
    return;
  }
  if (state_ == State::kRefused) {
    // Who asks does not know it yet.
    if (head.kind != SlotKind::kRefuse) outlet_.up(head_up(SlotKind::kRefuse), bytes_of(refusal_));
    return;
  }
  if (head.kind == SlotKind::kRefuse) {
    refuse(refusal_in(frame), false);
    return;
  }
  if (head.kind == SlotKind::kRenew) {
    if (head.generation < generation_above_) return;
    const bool known = head.generation == generation_above_;
    generation_above_ = head.generation;
    if (state_ == State::kRunning) {
      // What went up is forgotten there, and what came down is no longer kept here: members give it again.
      if (!known) renewed();
    } else if (resumed_ == members()) {
      send_resume();
    } else {
      ask_missing();  // whoever is asked asks those below, who may have nothing to do and repeat nothing
    }
    return;
  }
  if (head.generation != generation_above_) {
    ++counters_.late;
    return;
  }
  if (head.kind == SlotKind::kBegin) {
    const bool meant = head.total == generation_ && state_ == State::kResuming && resumed_ == members();
    if (meant && head.turn <= first_) begin(head.turn);
    return;
  }
  if (state_ != State::kRunning) return;
  const std::size_t version = turns_.version_of(head.turn);
  if (turns_.held(version) != head.turn || !turns_.complete(version) || turns_.done(version)) return;
  if (head.kind == SlotKind::kMissing) {
    // It is this switch that the turn waits for, so what went up was lost; or another, and members shall know it now:
    // a rank that was named long ago may have made its call since then, and left.
    if (head.root == shape_.children.front().first) {
      send_up(version);
    } else if (head.root != kEveryone) {
      SlotFrame told = head_down(SlotKind::kMissing, 0);
      told.slot = head.slot;
      told.second = head.second;
      told.turn = head.turn;
      told.root = head.root;
      for (; told.member < members(); ++told.member) outlet_.down(told, {});
    }
    return;
  }
  if (head.kind != SlotKind::kResult) return;
  Version& held = versions_[version];
  if (!same_turn(held.said, head) || frame.payload.size() > shape_.payload_bytes) {
    ++counters_.faults;
    return;
  }
  held.data = !frame.payload.empty();
  if (held.data) std::memcpy(place(version, 0), frame.payload.data(), frame.payload.size());
  finished(version);
}

}  // namespace unisono::slots
