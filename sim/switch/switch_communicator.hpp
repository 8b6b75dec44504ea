// One communicator at one switch of the simulated network: a virtual rank that carries out its part of collective
// calls.
//
// It speaks the protocol of engines in hardware (docs/engine.md, "Among engines in hardware"), so to its members it is
// a peer like any other. What it is to do it learns from the messages: the step tag names collective, operator and
// place (collectives/switch_tag.hpp), the header the datatype and the length. From these and the tree it makes the same
// program of moves that the checker has proven, and executes it, segment by segment, in bounded memory.
//
// One rule goes beyond those of engines: a sender asks before it sends a long message to a switch, because a switch
// does not know a call before something of it has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "core/tree.hpp"
#include "sim/switch/byte_ring.hpp"

namespace unisono::sim {

/// What a switch is told when a communicator is made.
struct SwitchEntry {
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  const CallTree* tree = nullptr;
  std::uint32_t number = 0;              ///< of this switch in the tree
  std::vector<std::uint32_t> addresses;  ///< in the network, of each node of the tree: members, then switches
  // What the members have agreed.
  std::uint32_t eager_limit = 0, segment_bytes = 0, rx_buffers = 0;
};

/// Where its messages go. Header and payload are valid during the call.
class SwitchOutlet {
 public:
  virtual ~SwitchOutlet() = default;
  /// `header` lacks session sequence and checksum. `control`: on the channel for control.
  virtual void send(std::uint32_t address, bool control, const Header& header, std::span<const std::byte> payload) = 0;
  /// A number for a landing area that nobody else at this switch has; and back.
  virtual std::uint16_t take_token() = 0;
  virtual void give_token(std::uint16_t slot) = 0;
};

/// What has happened, for those who look.
struct SwitchCounters {
  std::uint64_t calls = 0;       ///< carried to their end
  std::uint64_t messages = 0;    ///< with data or a signal, that came
  std::uint64_t bytes = 0;       ///< of their payload
  std::uint64_t mismatches = 0;  ///< calls that members did not make alike
  std::uint64_t faults = 0;      ///< messages that no member sends which keeps to the protocol
};

/// Not thread-safe. Memory is bounded by the number of calls in flight (those that members have begun) and, for each,
/// of kWindowSegments segments for every child and for the result.
class SwitchCommunicator {
 public:
  /// Segments of a message that a sender may have under way. At 100 Gb/s and some hundred cycles there and back two
  /// segments of 8 KiB are on the way.
  static constexpr std::uint32_t kWindowSegments = 8;

  /// Throws Error(kInvalidArgument) if the entry fits no communicator. `outlet` must outlive this.
  SwitchCommunicator(SwitchEntry entry, SwitchOutlet& outlet);
  ~SwitchCommunicator();
  SwitchCommunicator(const SwitchCommunicator&) = delete;
  SwitchCommunicator& operator=(const SwitchCommunicator&) = delete;

  const SwitchEntry& entry() const { return entry_; }
  /// Whether the node at this address hangs below this switch, or is the switch above it.
  bool is_neighbour(std::uint32_t address) const;
  /// Takes a message whose header has been checked and names this communicator and epoch; it came from `address`.
  void take(std::uint32_t address, const Header& header, std::span<const std::byte> payload);

  const SwitchCounters& counters() const { return counters_; }
  /// A line for each call in flight: "call 3 allreduce: waits for rank 2, 5". Empty: there is none.
  std::string waiting() const;

 private:
  struct Run;
  struct Flow;
  struct Input;
  struct Neighbour {
    std::uint32_t rank = 0;
    std::uint32_t address = 0;
    std::uint32_t credit = 0;  ///< receive buffers of it that are free for this switch
    std::uint32_t owed = 0;    ///< of this switch's, that it may use again
  };
  struct Grant {
    std::uint16_t slot = 0, generation = 0;
    std::uint64_t limit = 0;
  };
  /// What came for a call of which the switch knows no more yet.
  struct EarlyGrant {
    std::uint32_t sequence = 0, neighbour = 0, signature = 0;
    Grant grant;
  };

  std::optional<std::uint32_t> neighbour_of(std::uint32_t rank) const;
  Run* find(std::uint32_t sequence);
  Run* begin(std::uint32_t neighbour, const Header& header);
  void data(Run& run, std::uint32_t neighbour, const Header& header, std::span<const std::byte> payload);
  void granted(Run& run, std::uint32_t neighbour, const Grant& grant);
  void advance(Run& run);
  bool fold(Run& run, Flow& flow);
  bool send(Run& run, Flow& flow);
  void use(Run& run, Flow& flow, std::uint64_t up_to);
  void grant(const Run& run, const Flow& flow, Input& input);
  void fail(Run& run);
  void swallow(std::uint32_t neighbour, const Header& header);
  void give_credit(std::uint32_t neighbour);
  Header header_to(std::uint32_t neighbour, MessageType type);
  Header header_to(const Run& run, const Flow& flow, std::uint32_t neighbour, MessageType type);
  void put(std::uint32_t neighbour, bool control, Header header, std::span<const std::byte> payload = {});

  const SwitchEntry entry_;
  SwitchOutlet& outlet_;
  const std::uint32_t rank_;
  std::vector<Neighbour> neighbours_;
  std::map<std::uint32_t, std::unique_ptr<Run>> runs_;  ///< by sequence
  std::vector<EarlyGrant> early_;
  std::uint16_t generation_ = 0;
  SwitchCounters counters_;
};

}  // namespace unisono::sim
