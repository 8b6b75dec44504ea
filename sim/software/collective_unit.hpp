// Broadcast and reduction at a port: stands between the port's ends and the transport while one is open, and opens the
// ends itself. It speaks as unisono_smi_collective, _bcast and _reduce do (docs/rtl/smi_collectives.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/kernels.hpp"
#include "kernels/smi_node.hpp"
#include "sim/software/packet.hpp"
#include "sim/software/receiving_end.hpp"
#include "sim/software/sending_end.hpp"
#include "sim/software/tree_credits.hpp"

namespace unisono::sim::software {

/// Not thread-safe.
class CollectiveUnit {
 public:
  /// Places for packets of a neighbour: of the queue in front of the port, and of one for each child of a reduction.
  struct Windows {
    std::uint32_t port = 252;
    std::uint32_t child = 128;
  };
  CollectiveUnit(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, Windows windows);

  /// A control packet of a tree has come for this port.
  void told(const Header& by, const Control& control) { credits_.told(by, control); }
  bool active() const { return active_; }
  /// It has something to tell that the transport has not taken.
  bool speaks() const { return credits_.speaks(); }

  /// Takes an opening beat, and opens the ends; only while these are closed.
  void open(const kernels::UnitOpen& unit, SendingEnd& sender, ReceivingEnd& receiver);
  /// What a cycle is computed with.
  struct Surroundings {
    kernels::PushEnd& push;
    kernels::PopEnd& pop;
    SendingEnd& sender;
    ReceivingEnd& receiver;
    std::deque<Packet>& arrived;  ///< data for this port
    PacketSink& data;             ///< out of it
    PacketSink& control;
  };
  /// One cycle, while it is active.
  void cycle(Surroundings around);
  /// Lets control packets go that are left; also while it is not active.
  void tell(PacketSink& control) { credits_.tell(control); }

 private:
  bool top() const { return unit_.root == rank_; }
  std::size_t children() const { return unit_.place.children.size(); }
  void broadcast(std::deque<Packet>& from, PacketSink& data);
  void sort_out(std::deque<Packet>& arrived, kernels::PopEnd& pop);
  void reduce(PacketSink& data);
  Packet combined(const std::vector<std::deque<Packet>*>& streams, std::uint32_t count, bool last) const;

  const std::uint32_t rank_;
  const PacketFormat format_;
  const Windows windows_;
  TreeCredits credits_;
  bool active_ = false;
  bool done_ = false;  ///< the last packet of the message has left
  kernels::UnitOpen unit_;
  cclo::CombineKernel combine_ = nullptr;

  std::deque<Packet> pushed_;                 ///< out of the sending end
  std::deque<Packet> popped_;                 ///< into the receiving end
  std::vector<std::deque<Packet>> of_child_;  ///< reduction: packets that were not used up

  // Broadcast: who has the packet at the head.
  std::vector<bool> has_;
  bool own_has_ = false;
};

}  // namespace unisono::sim::software
