#include "sim/software/tree_credits.hpp"

#include <algorithm>

namespace unisono::sim::software {

namespace {

/// Packets after which a sender is told of their places: unisono_smi_tree's.
constexpr std::uint32_t kBatch = 4;

}  // namespace

TreeCredits::TreeCredits(std::uint32_t rank, std::uint32_t ranks, PacketFormat format)
    : rank_(rank), format_(format), firsts_(ranks) {}

void TreeCredits::open(const kernels::UnitOpen& unit, bool down, std::uint32_t window) {
  active_ = true;
  port_ = unit.port;
  window_ = window;
  mine_ = {};
  mine_.kind = static_cast<int>(unit.kind);
  mine_.credits = true;
  mine_.size = static_cast<int>(unit.size);
  mine_.dtype = static_cast<int>(unit.dtype);
  mine_.func = static_cast<int>(unit.func);
  mine_.count = unit.count;
  mine_.window = unit.root;
  neighbours_.clear();
  for (const std::uint32_t child : unit.place.children) neighbours_.push_back({.rank = child, .to = down});
  if (unit.place.parent) neighbours_.push_back({.rank = *unit.place.parent, .to = !down});
  for (Neighbour& neighbour : neighbours_) {
    if (neighbour.to && firsts_[neighbour.rank].there) begin(neighbour);
  }
}

/// Its first word is there.
void TreeCredits::begin(Neighbour& neighbour) {
  First& first = firsts_[neighbour.rank];
  first.there = false;
  neighbour.begun = true;
  neighbour.places = first.places;
  // Data flows all the same; the other one names the difference, too.
  if (!(first.opening == mine_)) warned_.push_back(neighbour.rank);
}

void TreeCredits::told(const Header& by, const Control& control) {
  if (control.kind != Control::Kind::kPlaces || by.src >= firsts_.size()) return;
  const auto found = std::find_if(neighbours_.begin(), neighbours_.end(), [&](const Neighbour& neighbour) {
    return active_ && neighbour.to && neighbour.rank == by.src;
  });
  if (control.first) {
    firsts_[by.src] = {true, control.packets, control.opening};
    if (found != neighbours_.end() && !found->begun) begin(*found);
  } else if (found != neighbours_.end() && found->begun) {
    found->places += control.packets;
  }
}

bool TreeCredits::due(const Neighbour& neighbour) const {
  return active_ && !neighbour.to && (!neighbour.opened || neighbour.freed >= kBatch);
}

bool TreeCredits::speaks() const {
  return !warned_.empty() ||
         std::any_of(neighbours_.begin(), neighbours_.end(), [this](const Neighbour& each) { return due(each); });
}

void TreeCredits::tell(PacketSink& sink) {
  const auto say = [&](std::uint32_t to, const Control& control) {
    Packet packet;
    set_control(packet, control);
    format_.set_header(packet, {rank_, to, port_, Op::kSynch, 0});
    sink.give(packet);
  };
  Control control;
  control.opening = mine_;
  control.tree = true;
  control.kind = Control::Kind::kDiffer;
  for (; !warned_.empty() && sink.takes(); warned_.pop_front()) say(warned_.front(), control);
  control.kind = Control::Kind::kPlaces;
  for (Neighbour& neighbour : neighbours_) {
    if (!due(neighbour) || !sink.takes()) continue;
    control.first = !neighbour.opened;
    // The first one tells of all places; nothing has come before.
    control.packets = neighbour.opened ? neighbour.freed : window_;
    say(neighbour.rank, control);
    neighbour.opened = true;
    neighbour.freed = 0;
  }
}

}  // namespace unisono::sim::software
