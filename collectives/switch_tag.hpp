// What a switch reads in the step tag of a message, for it holds no programs. Freestanding.
//
// Header and tag together say what the switch's entry of a communicator needs (switch/entry.hpp): communicator,
// datatype and lengths stand in the header, the rest here. So the tags are those of any program, and still no message
// has a field of its own for switches.
#pragma once

#include <cstdint>

#include "core/call.hpp"

namespace unisono {

/// The fields of a tag. `place` is a position in the order of the tree: of the root of bcast, reduce and gather, of the
/// member whose block it is in the others, and 0 where neither matters. Of communicators with more than kTagPlaces
/// members it is cut, and switches that read tags cannot carry them.
struct SwitchTag {
  bool result = false;  ///< of a fold, on its way down
  Collective opcode = Collective::kNop;
  Func func = Func::kNone;
  std::uint32_t place = 0;

  friend constexpr bool operator==(const SwitchTag&, const SwitchTag&) = default;
};

inline constexpr std::uint32_t kTagPlaces = 1U << 13U;

constexpr std::uint32_t encode(const SwitchTag& tag) {
  return (tag.result ? 1U : 0U) | static_cast<std::uint32_t>(tag.opcode) << 1U |
         static_cast<std::uint32_t>(tag.func) << 6U | (tag.place & (kTagPlaces - 1)) << 11U;
}

constexpr SwitchTag decode_switch_tag(std::uint32_t tag) {
  return {(tag & 1U) != 0, static_cast<Collective>(tag >> 1U & 31U), static_cast<Func>(tag >> 6U & 31U), tag >> 11U};
}

static_assert(encode({true, static_cast<Collective>(31), static_cast<Func>(31), kTagPlaces - 1}) == kMaxTag);

namespace build {

/// Of what goes up, or on; and of the result of a fold, on its way down.
constexpr std::uint32_t tag_up(const Call& call, std::uint32_t place = 0) {
  return encode(SwitchTag{false, call.collective, call.func, place});
}
constexpr std::uint32_t tag_down(const Call& call, std::uint32_t place = 0) {
  return encode(SwitchTag{true, call.collective, call.func, place});
}
/// Of one of many blocks that go to one place, and have no operator: the low bits of its number stand there, so that
/// one is not taken for another.
constexpr std::uint32_t tag_block(const Call& call, std::uint32_t place, std::uint32_t block) {
  return encode(SwitchTag{false, call.collective, static_cast<Func>(block % 32), place});
}

}  // namespace build
}  // namespace unisono
