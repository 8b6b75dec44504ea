#include "sim/software/software_node.hpp"

#include <algorithm>
#include <cstdint>

namespace unisono::sim {

using software::Control;
using software::Header;
using software::Packet;

SoftwareNode::SoftwareNode(const kernels::SmiNodeSettings& settings)
    : CabledNode(settings),
      format_(settings.packet_bytes),
      transport_(software::Tables(own_routes().image, {kLinks, kVirtualChannels, static_cast<int>(settings.ports)}),
                 format_, {kLinkDepth, kEndpointDepth, settings.delay}) {
  for (std::uint32_t port = 0; port < settings.ports; ++port) {
    senders_.emplace_back(rank_, ranks_, format_, kEndpointDepth - 4);
    receivers_.emplace_back(rank_, ranks_, format_, kEndpointDepth / 4);
  }
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
  const auto ports = static_cast<int>(senders_.size());
  for (int port = 0; port < ports; ++port) {
    const auto at = static_cast<std::size_t>(port);
    for (std::deque<Packet>& told = transport_.control(port); !told.empty(); told.pop_front()) {
      const Header by = format_.header(told.front());
      const Control control = software::control_of(told.front());
      senders_[at].told(by, control);
      receivers_[at].told(by, control);
    }
    receivers_[at].cycle(pop[at], transport_, ports + port, now_);
    senders_[at].cycle(push[at], transport_, port, now_);
    if (senders_[at].speaks()) stay_awake();
  }
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
