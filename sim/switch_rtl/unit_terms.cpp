#include "sim/switch_rtl/unit_terms.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {

namespace {

/// Positions of the members below a node follow one another.
struct Span {
  std::uint32_t first, count;
};

Span span_of(const CallTree& tree, std::uint32_t node) {
  if (node < tree.members) return {tree.position[node], 1};
  const std::uint32_t number = node - tree.members;
  Span all{tree.members, 0};
  for (std::uint32_t i = tree.first[number]; i < tree.first[number + 1]; ++i) {
    const Span below = span_of(tree, tree.children[i]);
    all.first = std::min(all.first, below.first);
    all.count += below.count;
  }
  return all;
}

}  // namespace

UnitTerms unit_terms(const SwitchEntry& entry, const std::function<std::uint32_t(std::uint32_t)>& port_of) {
  const CallTree& tree = *entry.tree;
  const std::uint32_t node = tree.members + entry.number;
  const auto refuse = [&](const std::string& reason) { throw Error(ErrorCode::kInvalidArgument, reason); };
  if (entry.segment_bytes > SwitchModel::kBufferBytes) {
    refuse(formatted("segments of {} bytes; switches in hardware have room for {}", entry.segment_bytes,
                     SwitchModel::kBufferBytes));
  }
  if (entry.rx_buffers > SwitchModel::kEagerBuffers) {
    refuse(formatted("{} receive buffers for each peer; switches in hardware have {}", entry.rx_buffers,
                     SwitchModel::kEagerBuffers));
  }
  UnitTerms terms;
  terms.communicator = entry.communicator;
  terms.epoch = entry.epoch;
  terms.members = tree.members;
  const Span all = span_of(tree, node);
  terms.first = all.first;
  terms.count = all.count;
  terms.shares = tree.first[entry.number + 1] - tree.first[entry.number];
  terms.rank = node;
  terms.eager_limit = entry.eager_limit;
  terms.segment_bytes = entry.segment_bytes;
  terms.credits = entry.rx_buffers;
  terms.neighbours.resize(SwitchModel::kPorts);
  const auto add = [&](std::uint32_t neighbour, Span span) {
    const std::uint32_t port = port_of(entry.addresses[neighbour]);
    if (port >= SwitchModel::kPorts) {
      refuse(formatted("a neighbour is behind port {}; switches in hardware have {} ports", port, SwitchModel::kPorts));
    }
    UnitTerms::Port& at = terms.neighbours[port];
    if (at.used)
      refuse("several of its ranks or switches are behind one port; switches in hardware tell only one apart");
    at = {true, neighbour >= tree.members, span.first, span.count, neighbour, entry.addresses[neighbour]};
    return port;
  };
  std::uint32_t last = 0;
  for (std::uint32_t i = tree.first[entry.number]; i < tree.first[entry.number + 1]; ++i) {
    const std::uint32_t port = add(tree.children[i], span_of(tree, tree.children[i]));
    if (i == tree.first[entry.number]) {
      terms.first_port = port;
    } else if (port < last) {
      refuse("its ranks do not stand in the order of the ports; switches in hardware fold in that order");
    }
    last = port;
  }
  terms.ports = last - terms.first_port + 1;
  if (all.count != tree.members) {
    terms.up = add(tree.parent[node], {0, 0});
    if (*terms.up > terms.first_port && *terms.up < last) {
      refuse("the way up leaves between its ranks' ports; switches in hardware need it before or behind them");
    }
  }
  return terms;
}

}  // namespace unisono::sim
