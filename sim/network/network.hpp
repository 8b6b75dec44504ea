// The network of a simulated cluster, word by word.
//
// Time is counted in cycles of the nodes' clock. In every cycle the cluster lets each node look at the network and act
// (`can_push`, `push`, `front`, `pop`), then calls `tick`, which ends the cycle. What a node does in a cycle is seen by
// no other node in that cycle, so the order of the nodes does not matter.
//
// A word that is pushed in cycle c begins on the wire when the link is free, at c at the earliest, takes its bytes
// divided by the rate, and arrives `propagation` later, in the next whole cycle. A node may be two cycles ahead of its
// link, as with the queue of a MAC, so that a link is kept busy by a node that offers a word per cycle. A switch sends
// it on when `switch_latency` has passed as well and the next link is free: frames are cut through, unless the next
// link is faster than the one they come by, for then it would run dry. A frame that has begun holds its link to the
// end, also while its sender pauses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "sim/network/carrier.hpp"
#include "sim/network/config.hpp"
#include "sim/network/counters.hpp"
#include "sim/network/frame.hpp"
#include "sim/network/random.hpp"
#include "sim/network/rate.hpp"
#include "sim/network/ring.hpp"
#include "sim/network/sessions.hpp"
#include "sim/network/topology.hpp"
#include "sim/network/unit.hpp"

namespace unisono::sim {

/// A frame that has been sent on a link, with its last byte; for captures.
struct Captured {
  std::uint64_t cycle = 0;  ///< in which the last word was begun
  std::uint32_t link = 0;
  std::uint32_t source = 0, destination = 0;
  std::uint16_t port = 0;
  std::span<const std::byte> data;  ///< valid during the call
  bool damaged = false;             ///< on this link or before
  bool lost = false;                ///< on this link
};

class Network final : public Carrier {
 public:
  /// Cycles by which a node may be ahead of its link.
  static constexpr std::uint64_t kAhead = 2;

  /// Throws Error(kInvalidArgument) that names the key which does not fit.
  explicit Network(const NetworkConfig& config);
  ~Network() override;

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t mtu() const override { return config_.mtu; }

  /// Whether `push` takes a word of this node in this cycle: one word per cycle, as far as the link keeps up. With
  /// pause, a frame's first word also needs room for a frame of the mtu at the end of the link.
  bool can_push(std::uint32_t node) const override;
  Pushed push(std::uint32_t node, const SentWord& word) override;
  /// The word that the node receives in this cycle, or null. The same one until it is popped; one is popped per cycle.
  const ReceivedWord* front(std::uint32_t node) override;
  void pop(std::uint32_t node) override;

  /// Ends the cycle.
  void tick() override;
  std::uint64_t cycle() const override { return now_; }
  /// Ticks, from now on, that do nothing at all as long as no node pushes or pops: no word arrives anywhere and no
  /// `can_push` becomes true. 0 while a node has a word to pop. kNever: nothing is under way.
  std::uint64_t next_event() const override;
  /// As that many ticks; at most `next_event()`.
  void skip(std::uint64_t cycles) override;
  /// Frames pushed, or begun to be pushed, and neither popped nor dropped. Those wholly dropped in time leave it later.
  std::size_t under_way() const override { return pool_.used(); }

  /// Units, those in switches first, in the order of switches, then those at nodes. Those in switches have the
  /// addresses from `nodes()` on; one at a node has its node's, and `push`, `front` and `pop` are not for that node.
  std::uint32_t units() const { return static_cast<std::uint32_t>(units_.size()); }
  const UnitPlace& unit(std::uint32_t unit) const { return topology_.units.at(unit); }
  /// What takes the frames of a unit; they are taken and forgotten until there is something.
  void attach(std::uint32_t unit, Unit& device);
  /// Sends a copy of a frame of 1 .. mtu bytes. It is never refused: it waits in a queue of the unit, which has no
  /// bound, one for each link out of a switch. May be called between ticks, and by `Unit::take` of the same unit.
  /// Throws Error(kInvalidArgument) if there is no such destination, or no such unit, or for a wrong length.
  void send_from(std::uint32_t unit, std::uint32_t destination, std::uint16_t port, std::span<const std::byte> frame);
  /// A word of a frame of a unit in a switch, of which the rest follows, one frame after the other on each link. It
  /// waits as those of `send_from` do, and leaves before the rest is here, except to a link that is faster than the
  /// unit's 64 bytes a cycle. Throws as `send_from`.
  void push_from(std::uint32_t unit, const SentWord& word);
  /// Frames that a unit has sent, and has taken.
  std::uint64_t unit_sent(std::uint32_t unit) const { return units_.at(unit).sent; }
  std::uint64_t unit_taken(std::uint32_t unit) const { return units_.at(unit).taken; }

  std::uint32_t links() const { return static_cast<std::uint32_t>(channels_.size()); }
  const std::string& link_name(std::uint32_t link) const;
  /// The link of that name. Throws Error(kInvalidArgument).
  std::uint32_t link_named(std::string_view name) const;
  LinkCounters counters(std::uint32_t link) const;
  /// Frames that a node has pushed to their end, and popped to theirs.
  /// (Of nodes that are units `unit_sent` and `unit_taken` count.)
  std::uint64_t pushed(std::uint32_t node) const { return nodes_[node].pushed; }
  std::uint64_t delivered(std::uint32_t node) const { return nodes_[node].delivered; }
  const Topology& topology() const { return topology_; }
  /// Sessions that have broken, in the order in which that was noticed; with `sessions` in the configuration only.
  const std::vector<BrokenSession>& broken_sessions() const override { return sessions_.broken(); }

  /// Called for every frame on every link, when its last word is begun. Empty: none.
  void capture(std::function<void(const Captured&)> hook) { hook_ = std::move(hook); }

 private:
  struct Channel;
  struct Entry;
  struct Queue;
  struct Node {
    Channel* up = nullptr;
    Channel* down = nullptr;
    Frame* pushing = nullptr;
    std::uint32_t word = 0;
    std::uint64_t may_push = 0, may_pop = 0;  ///< cycles
    Queue* received = nullptr;
    std::uint64_t received_bytes = 0;
    ReceivedWord shown;
    std::array<std::byte, kWordBytes> flipped;
    std::uint64_t pushed = 0, delivered = 0;
  };
  struct AttachedUnit {
    Unit* device = nullptr;
    std::uint64_t sent = 0, taken = 0;
    // At a node.
    std::vector<std::byte> data;  ///< of the frame that comes
    Ring<Frame*> waiting;         ///< to go
  };
  struct Delayed {
    std::uint64_t release, order;
    Channel* channel;
    Frame* frame;
    std::uint8_t lane;
    bool operator>(const Delayed& other) const {
      return release != other.release ? release > other.release : order > other.order;
    }
  };

  Frame* make_frame(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t bytes);
  /// The next word of the frame that a node pushes, which is in the frame, leaves.
  void push_next(std::uint32_t node);
  void begin(Channel& channel, Frame& frame, std::uint8_t lane);
  void transmit(Channel& channel, Frame& frame, std::uint32_t word);
  bool choose(Channel& channel);
  void send_waiting(Channel& channel);
  void arrive(Channel& channel);
  Entry* enter(Channel& channel, Frame* frame, std::uint8_t lane);
  void append(Channel& out, std::uint32_t lane, std::uint32_t slot, Entry* entry);
  void enter_whole(Channel& channel, Frame* frame, std::uint8_t lane);
  void discard(Channel& channel, Frame* frame, std::uint8_t lane);
  /// Why the node does not get a frame of which it has seen nothing.
  std::optional<Drop> refusal_of(Entry& entry);
  void return_room(Channel& channel, std::uint8_t lane, std::uint32_t bytes);
  void change_state(Channel& channel);
  std::uint64_t next_work() const;
  inline bool ends_in_unit(const Channel& channel, const Frame& frame) const;
  void take_in(Channel& channel, Frame* frame, std::uint8_t lane);
  AttachedUnit& unit_at_end(const Channel& channel);
  bool takes_words(const Channel& channel);
  std::optional<Drop> refusal_by_unit(const Frame& frame);
  void give_word(Channel& channel, const Frame& frame);
  Frame* make_unit_frame(std::uint32_t unit, std::uint32_t destination, std::uint16_t port, std::size_t bytes);
  Entry* append_unit_frame(Channel& out, Frame* frame);
  void serve_units_at_nodes();
  bool units_can_push() const;
  bool units_are_busy() const;
  void tick_units();
  Entry* take_entry();
  void free_entry(Entry* entry);

  NetworkConfig config_;
  Topology topology_;
  Sessions sessions_;
  FramePool pool_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Node> nodes_;
  std::vector<AttachedUnit> units_;
  std::size_t first_at_node_ = 0;  ///< of the units
  std::vector<std::unique_ptr<Queue>> receive_queues_;
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* free_entries_ = nullptr;
  std::vector<std::uint64_t> sending_, carrying_, returning_;  ///< a bit for each link that has something of the kind
  std::priority_queue<Delayed, std::vector<Delayed>, std::greater<>> delayed_;
  std::uint64_t delays_ = 0;
  struct Change {
    std::uint64_t cycle;
    std::uint32_t link;
  };
  std::vector<Change> changes_;  ///< of links going down and up, by cycle
  std::size_t next_change_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t quiet_until_ = 0;  ///< ticks before this cycle have nothing to do
  bool worked_ = false;
  std::function<void(const Captured&)> hook_;
};

}  // namespace unisono::sim
