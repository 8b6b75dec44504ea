// The sending end of a channel at a port: packs elements into packets, and counts the receiver's credits. It keeps the
// rules of unisono_smi_push (docs/rtl/smi_push.md), and says the same in the same packets; but a packet takes no cycle
// to be made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/smi_node.hpp"
#include "sim/software/messages.hpp"
#include "sim/software/packet.hpp"
#include "sim/software/sink.hpp"

namespace unisono::sim::software {

/// Not thread-safe.
class SendingEnd {
 public:
  /// `window`: places that a receiver's queue has for one sender with credits.
  SendingEnd(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, std::uint32_t window);

  /// A control packet has come for this port.
  void told(const Header& by, const Control& control);
  /// One cycle: takes what kernels offer at `end`, and gives packets to `sink`.
  void cycle(kernels::PushEnd& end, PacketSink& sink);
  /// Opens it for packets into a tree, so that no peer has an end of this channel. With strict, and without credits,
  /// packets are whole: packet i begins with the same element at every end, whoever flushes. One that leaves before it
  /// is full keeps its elements here, and one with the same and more follows it.
  void open_tree(const kernels::PortOpen& channel);
  /// A channel is open, until its last packet has been given.
  bool active() const { return active_; }
  /// It has something to say that the sink has not taken yet.
  bool speaks() const { return speaks_ != Speaks::kNothing; }

 private:
  enum class Speaks : std::uint8_t { kNothing, kAsks, kDiffers };
  void open(const kernels::PortOpen& open);
  void begin();
  void close();
  bool fits(std::uint32_t count) const;
  void speak();
  void take(kernels::PushEnd& end);
  void emit(const kernels::PushEnd& end);
  bool whole() const { return channel_.strict && !channel_.credits; }
  std::uint32_t full() const { return format_.payload_bytes() >> channel_.size << channel_.size; }

  const std::uint32_t rank_;
  const PacketFormat format_;
  const std::uint32_t most_places_;

  kernels::PortOpen channel_;
  bool active_ = false;
  bool tree_ = false;
  std::size_t shown_ = 0;         ///< whole: bytes of what is held that have left in a packet that was not full
  std::uint32_t left_ = 0;        ///< elements that were not taken yet
  std::vector<std::byte> held_;   ///< those that were, and have not left
  bool flush_ = false;            ///< what is held leaves before anything else is taken
  std::uint32_t idle_ = 0;        ///< cycles without an element
  std::uint32_t unanswered_ = 0;  ///< cycles without credits
  Speaks speaks_ = Speaks::kNothing;
  std::uint8_t spoken_ = 0;  ///< the message of which it speaks

  // Credits of the channel.
  bool begun_ = false;        ///< the receiver has opened its end
  std::uint32_t places_ = 0;  ///< for packets
  std::uint64_t window_ = 0;  ///< elements that strict mode lets go

  // By rank: what receivers have told before a channel to them was opened.
  struct Receiver {
    bool first = false;  ///< that it has opened its end
    bool asked = false;  ///< for an element, behind that
    std::uint8_t message = 0;
    Opening opening{};
  };
  std::vector<Receiver> receivers_;
  Messages messages_;
  PacketSink* sink_ = nullptr;  ///< of the cycle that is computed
};

}  // namespace unisono::sim::software
