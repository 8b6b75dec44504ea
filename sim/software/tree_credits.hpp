// Credits between a node of a tree and its neighbours: the places that those have told of to whom packets go, and the
// control packets by which this node tells those that send to it. It keeps the rules of unisono_smi_tree
// (docs/rtl/smi_collectives.md); but each packet is taken and made at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/smi_node.hpp"
#include "sim/software/packet.hpp"
#include "sim/software/sink.hpp"

namespace unisono::sim::software {

/// Of one port; not thread-safe. Neighbours are numbered: the children in their order, then the parent.
class TreeCredits {
 public:
  TreeCredits(std::uint32_t rank, std::uint32_t ranks, PacketFormat format);

  /// A collective begins here. `down`: packets go from the parent to the children, else the other way. `window`:
  /// packets that this node holds for each neighbour that sends to it.
  void open(const kernels::UnitOpen& unit, bool down, std::uint32_t window);
  void close() { active_ = false; }

  /// A control packet of a tree has come for this port.
  void told(const Header& by, const Control& control);
  /// Gives the control packets that are due.
  void tell(PacketSink& sink);
  /// It has something to tell.
  bool speaks() const;

  /// Whether a neighbour has opened its end, and has a place.
  bool may(std::size_t neighbour) const { return neighbours_[neighbour].places != 0; }
  /// A packet goes to a neighbour that may have it.
  void spend(std::size_t neighbour) { --neighbours_[neighbour].places; }
  /// One of a neighbour's has been used up here.
  void free(std::size_t neighbour) { ++neighbours_[neighbour].freed; }

 private:
  struct Neighbour {
    std::uint32_t rank = 0;
    bool to = false;           ///< packets go there; else they come from there
    bool begun = false;        ///< to: it has opened its end
    bool opened = false;       ///< from: it knows that this node has
    std::uint32_t places = 0;  ///< to
    std::uint32_t freed = 0;   ///< from: packets of which it does not know
  };
  /// What a rank has told before this node opened its end.
  struct First {
    bool there = false;
    std::uint32_t places = 0;
    Opening opening{};
  };
  void begin(Neighbour& neighbour);
  bool due(const Neighbour& neighbour) const;

  const std::uint32_t rank_;
  const PacketFormat format_;
  bool active_ = false;
  std::uint32_t port_ = 0;
  std::uint32_t window_ = 0;
  Opening mine_{};
  std::vector<Neighbour> neighbours_;
  std::vector<First> firsts_;         ///< by rank
  std::deque<std::uint32_t> warned_;  ///< ranks that are to be told that the ends differ
};

}  // namespace unisono::sim::software
