// What a switch knows of a communicator, and where it sends what it gets: the communicator table, and the control of
// collectives that looks into it (ACiS, Haghi 2023, sections 3.4.1 and 3.4.2).
//
// An entry has 32 bytes, and 8 for each port that the communicator uses, however many members it has. That is enough,
// because blocks travel in the order of the tree: what is behind a port is a range of positions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/generated/spec.hpp"
#include "core/tree.hpp"

namespace unisono::slots {

inline constexpr std::uint32_t kNoPort = 0xffff;

/// A port that leads down.
struct PortEntry {
  std::uint32_t first = 0;  ///< position of the first member behind it
  std::uint32_t word = 0;   ///< bits 0 to 30: members behind it; bit 31: a switch is

  constexpr std::uint32_t count() const { return word & 0x7fffffffU; }
  /// A switch is behind it, which sends one share for all; otherwise each member sends its own.
  constexpr bool is_switch() const { return word >> 31U != 0; }
};
static_assert(sizeof(PortEntry) == 8);

/// The part of an entry that does not grow.
struct EntryHead {
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  std::uint16_t ports = 0;       ///< entries behind the head
  std::uint32_t members = 0;     ///< of the communicator
  std::uint32_t first = 0;       ///< position of the first member below this switch
  std::uint32_t count = 0;       ///< members below it
  std::uint16_t up = kNoPort;    ///< the port that leads up; kNoPort at the top, and where nobody else is above
  std::uint16_t first_port = 0;  ///< number of the port of the first entry; the others follow
  std::uint32_t shares = 0;      ///< that a fold waits for: one of each member or switch right below
  std::uint32_t reserved = 0;
};
static_assert(sizeof(EntryHead) == 32);

/// Of one communicator at one switch.
struct Entry {
  EntryHead head;
  std::vector<PortEntry> ports;  ///< that lead down, in the order of the fold

  std::size_t bytes() const { return sizeof(EntryHead) + ports.size() * sizeof(PortEntry); }
};

/// Members below a node, which follow one another in the order of the tree: the first position, and how many.
struct Positions {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
Positions positions_below(const CallTree& tree, std::uint32_t node);

/// The entry of switch `number` of a tree. Children behind one port must follow one another in the tree, ports count up
/// from the first child's; `up` is the port that leads up, another one than these. Throws Error(kInvalidArgument) if
/// there is no such switch, or ports are no such.
Entry make_entry(const CallTree& tree, std::uint32_t number, std::uint32_t communicator, std::uint16_t epoch,
                 std::uint16_t up);

/// What comes in: which piece of which call, and from where.
struct Arriving {
  Collective opcode = Collective::kNop;
  std::uint32_t root = 0;   ///< its position; of calls that have one
  std::uint32_t block = 0;  ///< position of the member whose block it is; of calls that have blocks
  bool from_above = false;
};

/// Where it goes.
struct Action {
  enum class Kind : std::uint8_t {
    kNothing,  ///< no such piece comes this way
    kFold,     ///< wait for all shares from below, fold them, send the result
    kPass,     ///< send it on
  };
  Kind kind = Kind::kNothing;
  bool up = false;               ///< it is sent up
  std::uint32_t only = kNoPort;  ///< index of the one entry of a port to which it is sent down; kNoPort: see `below`
  bool below = false;            ///< it is sent to all below
  std::uint32_t but =
      kNoPort;  ///< with `below`: not to the member, or the switch, that it came from, behind this entry

  friend bool operator==(const Action&, const Action&) = default;
};

/// Pure in its arguments, in steps as many as there are ports: hardware compares all ranges at once.
Action action_of(const Entry& entry, const Arriving& arriving);

/// Index of the entry of the port behind which a position is; kNoPort: it is not below this switch.
std::uint32_t port_of(const Entry& entry, std::uint32_t position);

}  // namespace unisono::slots
