// The queues of a node, between its cables and its endpoints: what unisono_smi_transport does, without the kernels in
// between. A packet's whole way through the node is looked up when it comes, and it goes on as soon as where it leaves
// has room.
//
// Each channel of a cable, and each sending endpoint, has a queue of its own, and a packet that cannot go on holds up
// only those behind it. So what waits for what is what the proof of the tables (docs/routing.md) has, with the inner
// queues left out: no circle can come of that.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/software/packet.hpp"
#include "sim/software/tables.hpp"

namespace unisono::sim::software {

/// Of a node with cables `links`; not thread-safe. Numbers of channels are those of the cable: kind * virtual channels
/// + virtual channel.
class Transport {
 public:
  struct Depths {
    std::uint32_t link = 64;       ///< places of a channel behind a cable, at both ends of it
    std::uint32_t endpoint = 256;  ///< places in front of a receiving endpoint for data
    std::uint64_t delay = 0;       ///< cycles that a packet of this rank waits before it leaves its sending endpoint
  };
  Transport(const Tables& tables, PacketFormat format, Depths depths);

  // Cables. `freed` has a bit for each channel.
  /// What the other end of a cable signals in this cycle.
  void signals(int link, std::uint32_t freed, bool up);
  /// A packet has come; there is room, because the sender has counted the places.
  void arrive(int link, int channel, const Packet& packet);

  // Endpoints.
  /// Whether a sending endpoint takes a packet.
  bool takes(int endpoint) const;
  /// It takes one, in that cycle.
  void give(int endpoint, const Packet& packet, std::uint64_t now);
  /// Data in front of the receiving end of a port.
  std::deque<Packet>& data(int port) { return data_[static_cast<std::size_t>(port)]; }
  /// Control packets that have come for a port; who reads them takes all.
  std::deque<Packet>& control(int port) { return control_[static_cast<std::size_t>(port)]; }

  // What moves in a cycle, in this order.
  /// Packets for this node's own endpoints, and those for nobody.
  void deliver(std::uint64_t now);
  /// The packet that leaves by a cable, if one can; the caller has seen that the wire takes it.
  struct Leaving {
    Packet packet;
    int channel = 0;
  };
  bool leave(int link, std::uint64_t now, Leaving& leaving);
  /// The places that have become free since the last call, of the channels of a cable.
  std::uint32_t freed(int link);

  /// Whether packets are on their way through this node.
  bool busy() const { return held_ != 0; }
  /// Packets for nobody, as a sentence; empty if there were none.
  std::string strays() const;

 private:
  struct Entry {
    Packet packet;
    Way way;
    std::uint64_t ready = 0;  ///< cycle from which on it may leave
  };
  struct Source {
    std::deque<Entry> queue;
    std::uint64_t moved = ~std::uint64_t{0};  ///< cycle in which the last packet left it
    int link = -1;                            ///< whose channel it is; -1: of an endpoint
    int channel = 0;
  };
  bool can_move(const Source& source, std::uint64_t now) const;
  void remove(Source& source, std::uint64_t now);
  /// The number of a channel of a link, among those of all links.
  std::size_t at(int link, int channel) const {
    return static_cast<std::size_t>(link) * static_cast<std::size_t>(channels_) + static_cast<std::size_t>(channel);
  }
  std::size_t of_endpoint(int endpoint) const { return at(tables_.shape().links, endpoint); }
  std::uint32_t& places(int link, int channel) { return places_[at(link, channel)]; }

  const Tables tables_;
  const PacketFormat format_;
  const Depths depths_;
  const int channels_;
  std::vector<Source> sources_;  ///< channels of cables, then sending endpoints
  std::size_t held_ = 0;         ///< packets in all of them
  std::vector<std::deque<Packet>> data_;
  std::vector<std::deque<Packet>> control_;
  std::vector<bool> up_;               ///< by link
  std::vector<std::uint32_t> places_;  ///< free ones at the other end, by link and channel
  std::vector<std::uint32_t> freed_;   ///< by link
  std::vector<std::size_t> next_;      ///< by link: the source that is asked first, so that each has its turn
  std::uint64_t strays_ = 0;
  Header first_stray_;
};

}  // namespace unisono::sim::software
