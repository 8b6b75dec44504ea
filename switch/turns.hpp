// Which members have contributed to the turns that a pool of slots holds. No data, no I/O.
//
// Turn t uses slot t mod S, and of that slot version (t div S) mod 2. After SwitchML (Sapio et al., NSDI 2021,
// algorithms 3 and 4), with bitmaps of any width and whole numbers of turns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "switch/rules.hpp"

namespace unisono::slots {

/// What a contribution is to the turn that it names.
enum class Verdict : std::uint8_t {
  kFirst,      ///< to a turn that nobody has contributed to
  kFurther,    ///< to a turn that is being gathered
  kDuplicate,  ///< its member has contributed already
  kLate,       ///< its turn is over
  kAhead,      ///< no member that keeps to the protocol sends it yet
};

/// The bitmaps of a pool. Allocates at construction only.
///
/// Invariant: when a turn has its first contribution, no bit of its version is set. For every member has contributed to
/// the turn before in this slot, which cleared its bit here, or nobody has contributed to any. So a contribution costs
/// one step on one pair of words, however many members there are: no bitmap is ever wiped but at `reset`.
template <Rules kRules = Rules{}>
class SlotTurns {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// `slots` is a power of two, `members` at least 1.
  SlotTurns(std::uint32_t slots, std::uint32_t members)
      : slots_(slots),
        members_(members),
        words_((members + 63) / 64),
        versions_(std::size_t{2} * slots),
        bits_(std::size_t{2} * slots * words_) {}

  /// Forgets everything; the first turn will be `begin`.
  void reset(std::uint64_t begin) {
    begin_ = begin;
    versions_.assign(versions_.size(), Version{});
    bits_.assign(bits_.size(), 0);
  }

  std::uint32_t slots() const { return slots_; }
  std::uint64_t begin() const { return begin_; }
  std::uint32_t slot_of(std::uint64_t turn) const { return static_cast<std::uint32_t>(turn & (slots_ - 1)); }
  bool is_second(std::uint64_t turn) const { return (turn & slots_) != 0; }
  /// Of a turn's version, from 0 to 2 slots - 1.
  std::size_t version_of(std::uint64_t turn) const {
    return std::size_t{2} * slot_of(turn) + (kRules.second_version && is_second(turn) ? 1 : 0);
  }
  /// The turn that a version holds, or kNever.
  std::uint64_t held(std::size_t version) const { return versions_[version].turn; }
  std::uint32_t present(std::size_t version) const { return versions_[version].present; }
  /// All members have contributed, though some may have gone on to the next turn of this slot.
  bool complete(std::size_t version) const { return versions_[version].complete; }
  /// The result is there, and members may go on.
  bool done(std::size_t version) const { return versions_[version].done; }
  void set_done(std::size_t version) { versions_[version].done = true; }

  Verdict look(std::uint64_t turn, std::uint32_t member) const {
    const std::size_t own = version_of(turn);
    const Version& version = versions_[own];
    if constexpr (!kRules.whole_turn) {
      if (has(own, member)) return Verdict::kDuplicate;
      return version.present == 0 ? Verdict::kFirst : Verdict::kFurther;
    }
    if (version.turn == turn) {
      if (has(own, member)) return Verdict::kDuplicate;
      // A member without a bit in a complete turn has gone on, so it has the result. Taken for a further contribution,
      // its late frame would clear its bit in the turn that it has gone on to.
      return kRules.closes && version.complete ? Verdict::kLate : Verdict::kFurther;
    }
    if (turn < begin_ || (version.turn != kNever && turn < version.turn)) return Verdict::kLate;
    if (turn - begin_ < slots_) return Verdict::kFirst;
    const Version& before = versions_[version_of(turn - slots_)];
    return before.turn == turn - slots_ && before.done ? Verdict::kFirst : Verdict::kAhead;
  }

  /// Takes a first or further contribution: sets the member's bit and clears it in the slot's other version, in one
  /// step. True if it was the last that the turn lacked.
  bool set(std::uint64_t turn, std::uint32_t member, Verdict verdict) {
    const std::size_t own = version_of(turn);
    if (verdict == Verdict::kFirst) begin_turn(own, turn);
    std::uint64_t& word = bits(own, member);
    const std::uint64_t mask = std::uint64_t{1} << (member % 64);
    if ((word & mask) == 0) ++versions_[own].present;
    word |= mask;
    if constexpr (kRules.second_version && kRules.clears_other) {
      std::uint64_t& other = bits(own ^ 1U, member);
      if ((other & mask) != 0) --versions_[own ^ 1U].present;
      other &= ~mask;
    }
    if (versions_[own].present != members_) return false;
    versions_[own].complete = true;
    return true;
  }

  bool has(std::size_t version, std::uint32_t member) const {
    return (bits_[word_of(version, member)] >> (member % 64) & 1U) != 0;
  }
  /// The lowest member that has contributed, or has not; `members` if there is none.
  std::uint32_t lowest(std::size_t version, bool present) const {
    for (std::uint32_t word = 0; word < words_; ++word) {
      const std::uint64_t bits = bits_[word_of(version, word * 64)];
      const std::uint64_t wanted = present ? bits : ~bits;
      if (wanted != 0) return std::min(word * 64 + static_cast<std::uint32_t>(std::countr_zero(wanted)), members_);
    }
    return members_;
  }

 private:
  struct Version {
    std::uint64_t turn = kNever;
    std::uint32_t present = 0;
    bool complete = false;
    bool done = false;
  };

  void begin_turn(std::size_t own, std::uint64_t turn) {
    Version& version = versions_[own];
    version.turn = turn;
    version.complete = false;
    version.done = false;
    if constexpr (!kRules.second_version) {
      for (std::uint32_t word = 0; word < words_; ++word) bits_[word_of(own, word * 64)] = 0;
      version.present = 0;
    } else if constexpr (kRules.clears_other && kRules.whole_turn && kRules.generation && kRules.closes) {
      if (version.present != 0) throw Error(ErrorCode::kInternal, "a slot's version begins a turn with bits set");
    }
  }
  /// Both versions' words of the same members lie side by side.
  std::size_t word_of(std::size_t version, std::uint32_t member) const {
    return (version / 2 * words_ + member / 64) * 2 + version % 2;
  }
  std::uint64_t& bits(std::size_t version, std::uint32_t member) { return bits_[word_of(version, member)]; }

  std::uint32_t slots_;
  std::uint32_t members_;
  std::uint32_t words_;
  std::uint64_t begin_ = 0;
  std::vector<Version> versions_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace unisono::slots
