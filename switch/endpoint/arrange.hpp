// What the ranks of a new communicator tell its first rank, and what that arranges with the switches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "switch/endpoint/keeper.hpp"
#include "switch/endpoint/plan.hpp"
#include "switch/endpoint/settings.hpp"

namespace unisono::slots {

/// Of one rank. The same bytes on all machines.
struct MemberCard {
  std::uint64_t addresses = 0;    ///< a digest of the list of addresses
  std::uint64_t near = 0;         ///< bit n: the n-th address is in a network of its own; the first 64 only
  std::uint64_t up_to_bytes = 0;  ///< that it wants; 0: as advised
  std::uint32_t longest = 0;      ///< datagram, bytes, on the way to every switch
  std::uint8_t able = 0;          ///< it can have calls carried
  std::uint8_t stable = 0;        ///< see AggregationSettings
  std::uint8_t reserved[2] = {};
};
static_assert(sizeof(MemberCard) == 32);

/// An address that was looked up.
struct SwitchPlace {
  tcp::Address address;
  unsigned scope = 0;
};

/// The card of this rank. `places` are those of all addresses.
MemberCard card_of(const AggregationSettings& settings, std::span<const SwitchPlace> places);

/// For people and for the switches' lists.
struct Wanted {
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  PoolId job{};
  std::string job_name;
};

/// What all are to do. Several switches with one above them in common form a tree, each rank below one that is near it;
/// if several are, or none is, ranks are dealt out to them in blocks. Switches with none in common share each vector.
/// Never throws: what goes wrong is the plan's refusal.
Plan arrange(const AggregationSettings& settings, Keeper& keeper, const Wanted& wanted,
             std::span<const MemberCard> cards, join::Deadline deadline);

}  // namespace unisono::slots
