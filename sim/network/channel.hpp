// What a network is made of inside: links, queues, and what waits in them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/network/network.hpp"

namespace unisono::sim {

/// A frame at a place where it waits to go on: in the queue of a switch, or at the node that receives it.
struct Network::Entry {
  Frame* frame = nullptr;
  Entry* next = nullptr;
  Channel* from = nullptr;
  std::uint32_t arrived = 0, sent = 0;  ///< words
  std::uint8_t lane = 0;                ///< by which it came
  bool whole = false;                   ///< must have arrived as a whole before it goes on
  bool judged = false;                  ///< its session has taken it
};

struct Network::Queue {
  Entry* head = nullptr;
  Entry* tail = nullptr;
  std::uint64_t bytes = 0;

  void append(Entry* entry) {
    if (tail != nullptr)
      tail->next = entry;
    else
      head = entry;
    tail = entry;
    bytes += entry->frame->bytes;
  }
  Entry* take() {
    Entry* entry = head;
    head = entry->next;
    if (head == nullptr) tail = nullptr;
    bytes -= entry->frame->bytes;
    return entry;
  }
};

/// A link, from the switch queues that feed it to its far end.
struct Network::Channel {
  /// A frame on the wire. The last one may not have been sent to its end yet.
  struct Passage {
    Frame* frame = nullptr;
    std::uint8_t lane = 0;
    bool lost = false, duplicate = false;
    std::uint32_t delay = 0;
  };
  struct Return {
    std::uint64_t cycle = 0;
    std::uint32_t bytes = 0;
    std::uint8_t lane = 0;
  };

  const LinkPlan* plan = nullptr;
  std::uint32_t index = 0;
  Serialiser clock;
  std::uint32_t latency = 0;
  std::uint32_t slot = 0;  ///< number of this link among those into its switch
  bool credited = false;   ///< nothing is begun without room at the far end

  // Where frames wait: a queue for each lane by which they will leave and each link by which they came.
  std::uint32_t inputs = 0;
  std::vector<Queue> queues;           ///< [lane * inputs + slot]
  std::vector<std::uint64_t> waiting;  ///< [lane * words + slot / 64]: queues that are not empty
  std::uint32_t waiting_words = 0, waiting_frames = 0;
  Entry* current = nullptr;  ///< being sent
  std::uint32_t current_queue = 0;
  std::array<std::uint32_t, 2> turn{};  ///< the input that is looked at first
  std::uint32_t last_lane = 0;
  Entry* pushed = nullptr;          ///< of the unit in the switch; the rest of its frame follows
  std::uint64_t queued_bytes = 0;   ///< all
  std::uint64_t limited_bytes = 0;  ///< those that had to find room here
  std::uint64_t blocked_since = kNever;

  // On the wire.
  Ring<std::uint64_t> arrivals;  ///< cycles, one for each word
  Ring<Passage> passages;
  // At the far end.
  Entry* entry = nullptr;  ///< of the frame that is arriving; null: it goes nowhere
  std::uint32_t word = 0;  ///< of it that have arrived
  bool giving = false;     ///< it is given to a unit word by word
  std::array<std::int64_t, 2> room{};
  Ring<Return> returns;

  Random random;
  bool down = false;
  LinkCounters counters;

  std::uint64_t& dropped(Drop cause) { return counters.dropped[static_cast<std::size_t>(cause)]; }

  /// The queue whose turn it is, or -1. `blocked`: one had its turn, but there is no room for its frame. Nobody on the
  /// same lane may overtake it then, or large frames could wait for ever.
  int next(std::uint32_t lanes, bool& blocked) const {
    blocked = false;
    if (waiting_frames == 0) return -1;
    for (std::uint32_t i = 1; i <= lanes; ++i) {
      const std::uint32_t lane = (last_lane + i) % lanes;
      const std::uint64_t* bits = waiting.data() + std::size_t{lane} * waiting_words;
      const std::uint32_t first = turn[lane];
      // The word of `first` is looked at twice: from its bit on, and at the end up to it.
      bool stopped = false;
      for (std::uint32_t w = 0; w <= waiting_words && !stopped; ++w) {
        const std::uint32_t at = (first / 64 + w) % waiting_words;
        std::uint64_t found = bits[at];
        if (w == 0) found &= ~std::uint64_t{0} << (first % 64);
        if (w == waiting_words) found &= ~(~std::uint64_t{0} << (first % 64));
        for (; found != 0 && !stopped; found &= found - 1) {
          const std::uint32_t queue = lane * inputs + at * 64 + static_cast<std::uint32_t>(std::countr_zero(found));
          const Entry& head = *queues[queue].head;
          if (head.whole && head.arrived < head.frame->words) continue;
          if (!credited || room[lane] >= std::int64_t{head.frame->bytes}) return static_cast<int>(queue);
          stopped = true;
        }
      }
      blocked = blocked || stopped;
    }
    return -1;
  }
};

/// Whether a frame on a link is for the unit in the switch at its end.
inline bool Network::ends_in_unit(const Channel& channel, const Frame& frame) const {
  return frame.destination >= topology_.nodes && !channel.plan->to.is_node &&
         topology_.switch_of[frame.destination] == channel.plan->to.index;
}

/// Sets of links, a bit for each.
inline void set(std::vector<std::uint64_t>& bits, std::uint32_t index) {
  bits[index / 64] |= std::uint64_t{1} << (index % 64);
}
inline void clear(std::vector<std::uint64_t>& bits, std::uint32_t index) {
  bits[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}
template <class F>
void for_each(const std::vector<std::uint64_t>& bits, F&& visit) {
  for (std::size_t w = 0; w < bits.size(); ++w) {
    for (std::uint64_t found = bits[w]; found != 0; found &= found - 1)
      visit(static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(found)));
  }
}

}  // namespace unisono::sim
