// The receiving end of a channel at a port: unpacks packets into words of elements, tells the sender of room, and
// compares the counts of both ends. It keeps the rules of unisono_smi_pop (docs/rtl/smi_pop.md), and says the same in
// the same packets; but an element takes no cycle to be unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/smi_node.hpp"
#include "sim/software/messages.hpp"
#include "sim/software/packet.hpp"
#include "sim/software/transport.hpp"

namespace unisono::sim::software {

/// Not thread-safe.
class ReceivingEnd {
 public:
  /// `batch`: packets after which the sender is told of their places.
  ReceivingEnd(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, std::uint32_t batch);

  /// A control packet has come for this port.
  void told(const Header& by, const Control& control);
  /// One cycle: takes packets of the port from the transport, gives at most a word at `end`, and gives control packets
  /// to a sending endpoint of the transport.
  void cycle(kernels::PopEnd& end, Transport& transport, int endpoint, std::uint64_t now);

 private:
  void open(const kernels::PortOpen& open);
  void close();
  void tell();
  bool unpack(kernels::PopEnd& end, std::deque<Packet>& packets);
  bool hand_over(kernels::PopEnd& end);

  const std::uint32_t rank_;
  const PacketFormat format_;
  const std::uint32_t batch_;

  kernels::PortOpen channel_;
  bool active_ = false;
  std::uint32_t lanes_ = 0;  ///< elements of a word
  std::uint32_t left_ = 0;   ///< expected elements that no packet has brought yet
  std::uint32_t got_ = 0;    ///< elements that packets have brought

  // The packet that is being given.
  Packet packet_;
  std::uint32_t given_ = 0;  ///< elements of it
  std::uint32_t part_ = 0;   ///< those that are left of it
  bool last_ = false;

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

  // Where control packets go in the cycle that is computed.
  Transport* transport_ = nullptr;
  int endpoint_ = 0;
  std::uint64_t now_ = 0;
};

}  // namespace unisono::sim::software
