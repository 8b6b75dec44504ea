#include "sim/software/software_node.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>

namespace unisono::sim {

using software::Control;
using software::Header;
using software::Packet;

SoftwareNode::SoftwareNode(const kernels::SmiNodeSettings& settings)
    : CabledNode(settings),
      units_(settings.units),
      format_(settings.packet_bytes),
      transport_(software::Tables(own_routes().image, {kLinks, kVirtualChannels, static_cast<int>(settings.ports)}),
                 format_, {kLinkDepth, kEndpointDepth, settings.delay}) {
  for (std::uint32_t port = 0; port < settings.ports; ++port) {
    ends_.push_back({{rank_, ranks_, format_, kEndpointDepth - 4},
                     {rank_, ranks_, format_, kEndpointDepth / 4},
                     {rank_, ranks_, format_, {kEndpointDepth - 4, kChildDepth}},
                     false,
                     false});
  }
}

bool SoftwareNode::broadcasts(std::uint32_t port) const { return units_.broadcast(port); }

bool SoftwareNode::reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const {
  return units_.reduce(port, dtype, func);
}

/// One cycle of a port: its ends, or its unit and those.
void SoftwareNode::clock(std::size_t port) {
  const auto number = static_cast<int>(port);
  const auto ports = static_cast<int>(ends_.size());
  Ends& ends = ends_[port];
  for (std::deque<Packet>& told = transport_.control(number); !told.empty(); told.pop_front()) {
    const Header by = format_.header(told.front());
    const Control control = software::control_of(told.front());
    if (control.tree) {
      ends.unit.told(by, control);
    } else {
      ends.sender.told(by, control);
      ends.receiver.told(by, control);
    }
  }
  software::EndpointSink data(transport_, number, now_), control(transport_, ports + number, now_);
  kernels::UnitEnd& joint = unit[port];
  if (joint.opening && !ends.unit.active() && !ends.sender.active() && !ends.sender.speaks() &&
      !ends.receiver.active()) {
    joint.opening = false;
    ends.pushes = joint.pushes;
    ends.pops = joint.pops;
    ends.unit.open(joint.open, ends.sender, ends.receiver);
  }
  if (ends.unit.active()) {
    ends.unit.cycle({push[port], pop[port], ends.sender, ends.receiver, transport_.data(number), data, control});
    // Those ends are open until the unit has nothing more to do.
    push[port].active = ends.unit.active() && ends.pushes;
    pop[port].active = ends.unit.active() && ends.pops;
  } else {
    ends.receiver.cycle(pop[port], transport_.data(number), control);
    ends.sender.cycle(push[port], data);
  }
  ends.unit.tell(control);
  if (ends.sender.speaks() || ends.unit.speaks() || ends.unit.active()) stay_awake();
}

void SoftwareNode::evaluate() {
  for (int link = 0; link < kLinks; ++link) {
    const CableRecord* const record = arriving(link);
    if (record == nullptr) continue;
    transport_.signals(link, record->freed, record->up != 0);
    if (record->valid == 0) continue;
    Packet packet;
    std::copy_n(record->words, packet_bytes_ / sizeof record->words[0], packet.words.begin());
    transport_.arrive(link, record->channel, packet);
  }
  transport_.deliver(now_);
  for (std::size_t port = 0; port < ends_.size(); ++port) clock(port);
  for (int link = 0; link < kLinks; ++link) {
    if (!has_cable(link)) continue;
    software::Transport::Leaving next;
    if (wire_takes(link) && transport_.leave(link, now_, next)) {
      send(link, static_cast<std::uint8_t>(next.channel), next.packet.words.data());
    }
  }
  // A place that becomes free in this cycle is told of in it, as all packets have moved that do.
  for (int link = 0; link < kLinks; ++link) {
    if (has_cable(link)) leaving(link).freed = static_cast<std::uint8_t>(transport_.freed(link));
  }
  if (transport_.busy()) stay_awake();
}

}  // namespace unisono::sim
