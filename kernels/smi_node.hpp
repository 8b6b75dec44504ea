// What kernels of a rank see of a node of SMI's transport: the ends of channels at its ports, and the clock.
//
// The node is there when a job has cables (`unisono run --cables`). It is hardware that is simulated, in a library that
// is loaded, or it is in software (sim/software); it is part of this process, and exchanges what goes over the cables
// with the nodes of the other ranks. Not thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono::kernels {

/// What an end of a channel is opened with: unisono_smi_pkg::open_t.
struct PortOpen {
  std::uint32_t peer = 0;  ///< rank in the job
  std::uint32_t port = 0;
  std::uint32_t count = 0;   ///< elements
  std::uint32_t size = 0;    ///< an element has 1 << size bytes
  bool credits = false;      ///< the sender waits until it is told of room
  bool strict = false;       ///< with credits: at most `window` elements are under way
  std::uint32_t window = 0;  ///< of strict
  std::uint32_t lanes = 0;   ///< the receiver's: elements of a word; 0: as many as fit
};

/// What a receiver complains of when a message has ended: unisono_smi_pkg::complaint_t.
struct PortComplaint {
  bool foreign = false;  ///< a packet of another rank than the peer's came, and was left out
  std::uint32_t src = 0;
  std::uint32_t expected = 0;
  std::uint32_t got = 0;
};

inline constexpr std::size_t kPortWordBytes = 32;
inline constexpr std::size_t kPortElementBytes = 8;  ///< of the longest element that a node knows

/// A place in a tree of ranks of the job.
struct PortTree {
  std::optional<std::uint32_t> parent;  ///< none at the root
  std::vector<std::uint32_t> children;  ///< at most 4, in the order in which a reduction combines them
};

/// What a collective is opened with at the units of a port: unisono_smi_pkg::collective_t.
struct UnitOpen {
  enum class Kind : std::uint8_t { kBroadcast = 2, kReduce = 5 };
  Kind kind = Kind::kBroadcast;
  bool bare = false;       ///< reduce, root: its own elements stay with the kernel
  std::uint32_t root = 0;  ///< rank in the job
  std::uint32_t port = 0;
  std::uint32_t count = 0;  ///< elements
  std::uint32_t size = 0;   ///< an element has 1 << size bytes
  std::uint32_t dtype = 0;  ///< reduce; numbers of the specification
  std::uint32_t func = 0;
  std::uint32_t lanes = 0;  ///< of a word that is popped
  PortTree place;
};

/// The units of a port. Kernels set `opening` and `open`, and which end of the port the unit opens.
struct UnitEnd {
  bool opening = false;
  bool pushes = false;
  bool pops = false;
  UnitOpen open;
};

/// The sending end of a port. Kernels set `opening` and `open`, or `valid` and a word; the node takes them.
struct PushEnd {
  bool opening = false;  ///< `open` is offered
  bool active = false;   ///< a channel is open, until its last packet has gone
  bool valid = false;    ///< a word is offered
  bool flush = false;    ///< a packet leaves behind it
  std::uint32_t count = 0;
  PortOpen open;
  std::array<std::byte, kPortWordBytes> word{};
};

/// The receiving end. Kernels set `opening` and `open`, or `ready`; the node gives words.
struct PopEnd {
  bool opening = false;
  bool active = false;      ///< a channel is open, until its last element was given
  bool ready = false;       ///< a word is taken in this cycle if there is one; false again when it came
  std::uint32_t count = 0;  ///< elements of the word that came and was not looked at; 0: none
  PortOpen open;
  std::array<std::byte, kPortWordBytes> word{};
  std::optional<PortComplaint> complaint;
};

/// What the two ends of a channel tell each other beside the hardware, so that a program whose ends differ hears of it.
struct ChannelCard {
  std::uint64_t sequence = 0;  ///< of the channel, among those of its port and ranks, from 1; 0: none
  std::uint64_t count = 0;
  std::uint32_t dtype = 0;
  std::uint32_t kind = 0;
  std::uint32_t func = 0;
  std::uint32_t root = 0;
  std::uint32_t protocol = 0;  ///< 0 eager, 1 credits, 2 strict, 3 units of collectives
  std::uint32_t window = 0;
  std::uint64_t communicator = 0;
};

/// The node of this rank, and what the ranks of the job have in common.
class SmiNode {
 public:
  SmiNode() = default;
  SmiNode(const SmiNode&) = delete;
  SmiNode& operator=(const SmiNode&) = delete;
  virtual ~SmiNode() = default;

  std::vector<PushEnd> push;  ///< by port
  std::vector<PopEnd> pop;
  std::vector<UnitEnd> unit;

  /// Whether the port has units for that.
  virtual bool broadcasts(std::uint32_t port) const = 0;
  virtual bool reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const = 0;
  /// This rank's place in a tree of ranks of the job, along cables as far as there are; `root` is one of the members.
  virtual PortTree tree(std::uint32_t root, const std::vector<std::uint32_t>& members) const = 0;

  /// Cycles that have passed.
  std::uint64_t now() const { return now_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint64_t clock_khz() const { return clock_khz_; }

  /// One cycle. False if the nodes at the other ends of the cables have not come so far within that time: then nothing
  /// has happened.
  virtual bool cycle(std::chrono::microseconds at_most) = 0;

  /// Kernels of this rank go on: counted over all ranks, for deadlines.
  virtual void moved() = 0;
  /// All that has moved, on all ranks.
  virtual std::uint64_t moves() const = 0;

  /// This rank has come to its next meeting.
  virtual void come() = 0;
  /// The cycle in which all ranks go on from it; nothing as long as not all have come.
  virtual std::optional<std::uint64_t> meeting() const = 0;
  /// This rank needs its clock no more; whether no rank does.
  virtual void leave() = 0;
  virtual bool all_left() const = 0;
  /// The cycles between which kernels ran here, for the report of the job.
  virtual void report(std::uint64_t begin, std::uint64_t end) = 0;

  /// Puts down what this end of a channel is; `sends` says which.
  virtual void put_card(bool sends, std::uint32_t peer, std::uint32_t port, const ChannelCard& card) = 0;
  /// What the other end has put down; nothing if that is not there.
  virtual std::optional<ChannelCard> card_of(bool sends, std::uint32_t peer, std::uint32_t port,
                                             std::uint64_t sequence) const = 0;

  /// Packets that no table knew, as a sentence; empty if there were none.
  virtual std::string strays() const = 0;

 protected:
  std::uint64_t now_ = 0;
  std::uint32_t ranks_ = 0;
  std::uint64_t clock_khz_ = 250000;
};

/// Units of collectives that the nodes of a job have. Sets are bits: of ports, and of numbers of the specification.
struct SmiUnits {
  std::uint64_t broadcasts = 0;  ///< ports
  std::uint64_t reductions = 0;  ///< ports
  std::uint64_t datatypes = 0;   ///< of reductions
  std::uint64_t funcs = 0;

  bool broadcast(std::uint32_t port) const { return (broadcasts >> port & 1U) != 0; }
  bool reduce(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const;
};

inline bool SmiUnits::reduce(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const {
  // Those of which the hardware (unisono_plugin_pkg) has products.
  constexpr std::uint64_t kProdDatatypes = 0x00fcfc;
  const bool product = func == static_cast<std::uint32_t>(Func::kProd);
  return (reductions >> port & 1U) != 0 && (datatypes >> dtype & 1U) != 0 && (funcs >> func & 1U) != 0 &&
         (!product || (kProdDatatypes >> dtype & 1U) != 0);
}

/// What a node is made with.
struct SmiNodeSettings {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  int memory = -1;              ///< descriptor of the memory that the ranks share; its owner is the caller
  const char* routes = "";      ///< folder that `unisono route -o` has written; empty: one rank, without cables
  std::uint32_t latency = 40;   ///< cycles that a packet takes from node to node
  double bytes_per_cycle = 20;  ///< that a cable carries
  std::uint64_t clock_khz = 250000;
  std::uint32_t ports = 4;
  std::uint32_t packet_bytes = 32;
  // Of a node in software; others were built for that.
  SmiUnits units;
  std::uint64_t delay = 0;  ///< cycles that pass before what its rank sends leaves
};

/// The function `unisono_smi_node_open` of the library. Null with a sentence in `why` if it cannot be made.
using SmiNodeOpen = SmiNode* (*)(const SmiNodeSettings* settings, char* why, std::size_t why_bytes);
/// Built together: the library's `unisono_smi_node_version` says this.
inline constexpr std::uint32_t kSmiNodeVersion = 3;

}  // namespace unisono::kernels
