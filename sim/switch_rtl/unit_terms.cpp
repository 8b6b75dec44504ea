#include "sim/switch_rtl/unit_terms.hpp"

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {

UnitTerms unit_terms(const SwitchEntry& entry, const std::function<std::uint32_t(std::uint32_t)>& port_of) {
  const CallTree& tree = *entry.tree;
  const std::uint32_t node = tree.members + entry.number;
  const auto refuse = [](const std::string& reason) { throw Error(ErrorCode::kInvalidArgument, reason); };
  if (entry.segment_bytes > SwitchModel::kBufferBytes) {
    refuse(formatted("segments of {} bytes; switches in hardware have room for {}", entry.segment_bytes,
                     SwitchModel::kBufferBytes));
  }
  if (entry.rx_buffers > SwitchModel::kEagerBuffers) {
    refuse(formatted("{} receive buffers for each peer; switches in hardware have {}", entry.rx_buffers,
                     SwitchModel::kEagerBuffers));
  }
  UnitTerms terms;
  terms.rank = node;
  terms.eager_limit = entry.eager_limit;
  terms.segment_bytes = entry.segment_bytes;
  terms.credits = entry.rx_buffers;
  terms.neighbours.resize(SwitchModel::kPorts);
  std::uint32_t used = 0;  // ports, a bit for each
  const auto add = [&](std::uint32_t neighbour) {
    const std::uint32_t port = port_of(entry.addresses[neighbour]);
    if (port >= SwitchModel::kPorts || (used >> port & 1U) != 0) {
      refuse(
          formatted("its ranks and switches need more ports than are free; switches in hardware have {}, one for "
                    "each neighbour of any communicator",
                    SwitchModel::kPorts));
    }
    used |= 1U << port;
    terms.neighbours[port] = {neighbour, entry.addresses[neighbour], neighbour >= tree.members};
    return port;
  };

  const slots::Positions all = slots::positions_below(tree, node);
  slots::EntryHead& head = terms.entry.head;
  head.communicator = entry.communicator;
  head.epoch = entry.epoch;
  head.members = tree.members;
  head.first = all.first;
  head.count = all.count;
  head.shares = tree.first[entry.number + 1] - tree.first[entry.number];
  for (std::uint32_t i = tree.first[entry.number]; i < tree.first[entry.number + 1]; ++i) {
    const std::uint32_t child = tree.children[i];
    const std::uint32_t port = add(child);
    if (terms.entry.ports.empty()) head.first_port = static_cast<std::uint16_t>(port);
    if (port < head.first_port + terms.entry.ports.size()) {
      refuse(
          "other communicators have its ranks in another order; switches in hardware fold in that of ports, which "
          "they give to ranks as communicators are made");
    }
    terms.entry.ports.resize(port - head.first_port);
    const slots::Positions below = slots::positions_below(tree, child);
    terms.entry.ports.push_back({below.first, below.count | (child >= tree.members ? 1U << 31U : 0U)});
  }
  head.ports = static_cast<std::uint16_t>(terms.entry.ports.size());
  if (all.count != tree.members) {
    const std::uint32_t up = add(tree.parent[node]);
    if (up >= head.first_port && up < std::uint32_t{head.first_port} + head.ports) {
      refuse(
          "other communicators have given the switch above a port between those of its ranks; switches in hardware "
          "need it before or behind them");
    }
    head.up = static_cast<std::uint16_t>(up);
  }
  return terms;
}

}  // namespace unisono::sim
