// A member's place in a tree of switches: collectives/tree_place.hpp of the microcontroller, which stands before the
// other in the compiler's search path. It sends up and takes what comes down; it is no switch, and stands in for none.
#pragma once

#include <cstdint>

#include "collectives/peers.hpp"
#include "core/facts.hpp"
#include "core/tree.hpp"

namespace unisono::build {

constexpr bool is_virtual(const Call& /*call*/) { return false; }

class TreePlace {
 public:
  /// Of a call that has a tree.
  constexpr explicit TreePlace(const Call& call) : above_(call.tree.above) {}

  static constexpr bool is_switch() { return false; }
  static constexpr bool is_idle() { return false; }
  static constexpr std::uint32_t lowest() { return kNoNode; }
  static constexpr std::uint32_t top() { return kNoNode; }
  static constexpr std::uint32_t next(std::uint32_t /*node*/) { return kNoNode; }
  static constexpr bool keeps_partial() { return false; }
  constexpr std::uint32_t above() const { return above_; }
  static constexpr std::uint32_t neighbours() { return 1; }
  constexpr std::uint32_t toward(std::uint32_t /*member*/) const { return above_; }
  static constexpr std::uint32_t member(std::uint32_t n) { return n; }
  static constexpr std::uint32_t position(std::uint32_t member) { return member; }

  static void arrive(Build& /*move*/, Emit& /*emit*/, std::uint32_t /*node*/, std::uint32_t /*tag*/) {}
  static void send_below(Build& /*move*/, Emit& /*emit*/, std::uint32_t /*tag*/) {}
  UNISONO_INLINE void send_on(Build& move, Emit& /*emit*/, std::uint32_t but, std::uint32_t tag) const {
    if (but != above_) move.send(above_, tag);
  }
  template <class Last>
  UNISONO_INLINE void fold_up(const Call& call, Emit& /*emit*/, Place operand, Place /*partial*/, std::uint32_t /*tag*/,
                              Last last) const {
    Build move(call);
    move.take(operand);
    move.count(call.count);
    last(move);
  }

 private:
  std::uint32_t above_;
};

/// For algorithms of trees.
inline bool admits_tree(const Call& call) { return !(call.tree == nullptr); }

}  // namespace unisono::build
