// What carries frames between the nodes of a simulated cluster, word by word: the network, or cables.
//
// Time is counted in cycles of the nodes' clock. In every cycle the cluster lets each node look and act (`can_push`,
// `push`, `front`, `pop`), then calls `tick`, which ends the cycle. What a node does in a cycle is seen by no other
// node in that cycle, so the order of the nodes does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/frame.hpp"
#include "sim/network/sessions.hpp"

namespace unisono::sim {

/// A word that a node sends. Destination, length and port are read from the first word of a frame.
struct SentWord {
  const std::byte* data = nullptr;   ///< copied
  std::uint32_t bytes = kWordBytes;  ///< all words but the last are full
  bool last = false;
  std::uint32_t destination = 0;
  std::uint32_t frame_bytes = 0;  ///< payload of the whole frame, 1 .. mtu
  std::uint16_t port = 0;         ///< carried unchanged, as a UDP port is
};

/// A word that a node receives. The data is valid until `pop`.
struct ReceivedWord {
  const std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  bool first = false, last = false;
  bool damaged = false;  ///< with `last`: the frame was cut off while it arrived, and must not be used
  std::uint32_t source = 0;
  std::uint32_t frame_bytes = 0;
  std::uint16_t port = 0;
};

/// What became of a pushed word. Of a refused one nothing was taken.
enum class Pushed : std::uint8_t {
  kTaken,
  kBusy,           ///< `can_push` is false
  kTooLong,        ///< the frame is longer than the mtu
  kNoDestination,  ///< no such address, or the sender itself
  kWrongLength,    ///< words and `last` do not make up `frame_bytes`, or that is 0
};
const char* name_of(Pushed result);

class Carrier {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  virtual ~Carrier() = default;
  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  /// The longest payload of a frame.
  virtual std::uint32_t mtu() const = 0;

  /// Whether `push` takes a word of this node in this cycle.
  virtual bool can_push(std::uint32_t node) const = 0;
  virtual Pushed push(std::uint32_t node, const SentWord& word) = 0;
  /// The word that the node receives in this cycle, or null. The same one until it is popped; one is popped per cycle.
  virtual const ReceivedWord* front(std::uint32_t node) = 0;
  virtual void pop(std::uint32_t node) = 0;

  /// Ends the cycle.
  virtual void tick() = 0;
  virtual std::uint64_t cycle() const = 0;
  /// Ticks, from now on, that do nothing at all as long as no node pushes or pops. kNever: nothing is under way.
  virtual std::uint64_t next_event() const = 0;
  /// As that many ticks; at most `next_event()`.
  virtual void skip(std::uint64_t cycles) = 0;
  /// Frames pushed, or begun to be pushed, and neither popped nor dropped.
  virtual std::size_t under_way() const = 0;

  /// Sessions that have broken, in the order in which that was noticed.
  virtual const std::vector<BrokenSession>& broken_sessions() const = 0;
  /// Sentences about what went wrong and is told nowhere else; for the end of a run.
  virtual std::vector<std::string> complaints() const { return {}; }
};

}  // namespace unisono::sim
