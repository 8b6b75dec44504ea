// The receiving end of a channel at a port: unpacks packets into words of elements, tells the sender of room, and
// compares the counts of both ends. It keeps the rules of unisono_smi_pop (docs/rtl/smi_pop.md), and says the same in
// the same packets; but an element takes no cycle to be unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/smi_node.hpp"
#include "sim/software/messages.hpp"
#include "sim/software/packet.hpp"
#include "sim/software/sink.hpp"

namespace unisono::sim::software {

/// Not thread-safe.
class ReceivingEnd {
 public:
  /// `batch`: packets after which the sender is told of their places.
  ReceivingEnd(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, std::uint32_t batch);

  /// A control packet has come for this port.
  void told(const Header& by, const Control& control);
  /// One cycle: takes packets of the port, gives at most a word at `end`, and control packets to `sink`.
  void cycle(kernels::PopEnd& end, std::deque<Packet>& packets, PacketSink& sink);
  /// Opens it for packets out of a tree, so that the peer has no end of this channel. With strict, and without credits,
  /// packets are whole: one that is not full may come again with the same elements and more.
  void open_tree(const kernels::PortOpen& channel);
  /// A channel is open, until its last element was given.
  bool active() const { return active_; }

 private:
  void open(const kernels::PortOpen& open);
  void close();
  void tell();
  bool unpack(kernels::PopEnd& end, std::deque<Packet>& packets);
  bool hand_over(kernels::PopEnd& end);
  bool whole() const { return channel_.strict && !channel_.credits; }

  const std::uint32_t rank_;
  const PacketFormat format_;
  const std::uint32_t batch_;

  kernels::PortOpen channel_;
  bool active_ = false;
  bool tree_ = false;
  std::uint32_t lanes_ = 0;  ///< elements of a word
  std::uint32_t left_ = 0;   ///< expected elements that no packet has brought yet
  std::uint32_t got_ = 0;    ///< elements that packets have brought

  // The packet that is being given.
  Packet packet_;
  std::uint32_t given_ = 0;  ///< elements of it
  std::uint32_t part_ = 0;   ///< those that are left of it
  bool last_ = false;
  std::uint32_t before_ = 0;  ///< whole: elements of the next packet that have come in one that was not full

  // What the sender has not been told yet.
  bool first_ = false;   ///< that this end is open
  bool asked_ = false;   ///< strict, window 0: an element was asked for, and has not come
  bool answer_ = false;  ///< without credits: somebody waits for some
  std::uint32_t packets_ = 0;
  std::uint32_t elements_ = 0;

  // By rank: a sender waits for credits, and for which message.
  struct Sender {
    bool waits = false;
    std::uint8_t message = 0;
  };
  std::vector<Sender> senders_;
  Messages messages_;
  PacketSink* sink_ = nullptr;  ///< of the cycle that is computed
};

}  // namespace unisono::sim::software
