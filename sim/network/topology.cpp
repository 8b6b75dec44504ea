#include "sim/network/topology.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/network/random.hpp"

namespace unisono::sim {
namespace {

class Builder {
 public:
  explicit Builder(const NetworkConfig& config) : config_(config) {
    built_.nodes = config.nodes;
    built_.uplink.resize(config.nodes);
    built_.downlink.resize(config.nodes);
    built_.switch_of.resize(config.nodes);
  }

  Topology build() {
    switch (config_.shape) {
      case Shape::kPointToPoint:
        point_to_point();
        break;
      case Shape::kSwitch:
        one_switch();
        break;
      case Shape::kRing:
        grid({config_.nodes, 1, 1});
        break;
      case Shape::kTorus:
        torus();
        break;
      case Shape::kLeafSpine:
        leaf_spine();
        break;
      case Shape::kCables:
        refuse(
            "topology = cables: cables have no switch that finds the way, they need routes; `unisono run --carrier "
            "smi` makes them");
    }
    set_up_links();
    find_neighbours();
    place_units();
    return std::move(built_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, config_.source + ": " + what);
  }
  static Place node(std::uint32_t index) { return {true, index}; }
  static Place at_switch(std::uint32_t index) { return {false, index}; }

  std::uint32_t link(const std::string& from_name, Place from, const std::string& to_name, Place to) {
    LinkPlan plan;
    plan.name = from_name + ">" + to_name;
    plan.from = from;
    plan.to = to;
    built_.links.push_back(std::move(plan));
    return static_cast<std::uint32_t>(built_.links.size() - 1);
  }
  void attach(std::uint32_t index, std::uint32_t to, const std::string& name, bool local) {
    const std::string own = formatted("node{}", index);
    built_.uplink[index] = link(own, node(index), name, at_switch(to));
    built_.downlink[index] = link(name, at_switch(to), own, node(index));
    built_.switch_of[index] = to;
    built_.links[built_.uplink[index]].local = local;
    built_.links[built_.downlink[index]].local = local;
  }
  void set_switches(const char* name, std::uint32_t count) {
    for (std::uint32_t s = 0; s < count; ++s) built_.switch_names.push_back(formatted("{}{}", name, s));
    built_.switches = static_cast<std::uint32_t>(built_.switch_names.size());
    built_.ways.resize(std::size_t{built_.switches} * built_.switches);
  }
  std::vector<std::uint32_t>& ways(std::uint32_t at, std::uint32_t other) {
    return built_.ways[std::size_t{at} * built_.switches + other];
  }

  void point_to_point() {
    if (config_.nodes != 2) refuse(formatted("nodes: point_to_point has 2, not {}", config_.nodes));
    for (std::uint32_t n = 0; n < 2; ++n) {
      built_.uplink[n] = link(formatted("node{}", n), node(n), formatted("node{}", 1 - n), node(1 - n));
      built_.downlink[1 - n] = built_.uplink[n];
    }
  }

  void one_switch() {
    set_switches("switch", 1);
    for (std::uint32_t n = 0; n < config_.nodes; ++n) attach(n, 0, built_.switch_names[0], false);
  }

  void torus() {
    std::uint32_t columns = config_.columns, rows = config_.rows;
    const std::uint32_t planes = std::max(config_.planes, 1U), each = std::max(config_.nodes / planes, 1U);
    if (columns == 0 && rows == 0) {
      for (rows = 1; (rows + 1) * (rows + 1) <= each;) ++rows;
      while (each % rows != 0) --rows;
      columns = each / rows;
    } else if (columns == 0) {
      columns = each / rows;
    } else if (rows == 0) {
      rows = each / columns;
    }
    if (std::uint64_t{columns} * rows * planes != config_.nodes) {
      const bool three = config_.planes != 0;
      refuse(formatted("columns, rows{}: {} times {}{} is not the number of nodes, {}", three ? ", planes" : "",
                       columns, rows, three ? formatted(" times {}", planes) : "", config_.nodes));
    }
    grid({columns, rows, planes});
  }

  /// A torus; with one row a ring. A router for every node; the shortest way along the row, then along the column, then
  /// through the planes. Of two equally short ways around, the ascending one. A dimension of two has one cable, which
  /// is the ascending way.
  void grid(const std::array<std::uint32_t, 3>& extents) {
    constexpr std::uint32_t kDimensions = 3;
    set_switches("router", config_.nodes);
    built_.channels = config_.policy == Policy::kPause ? 2 : 1;
    const auto name = [this](std::uint32_t index) { return built_.switch_names[index]; };
    for (std::uint32_t n = 0; n < config_.nodes; ++n) attach(n, n, name(n), true);
    const std::array<std::uint32_t, kDimensions> strides = {1, extents[0], extents[0] * extents[1]};
    // Ways out of each router: [dimension][0 ascending, 1 descending].
    std::vector<std::uint32_t> out(std::size_t{config_.nodes} * kDimensions * 2);
    const auto out_of = [&](std::uint32_t n, std::uint32_t dimension, std::uint32_t direction) -> std::uint32_t& {
      return out[(std::size_t{n} * kDimensions + dimension) * 2 + direction];
    };
    for (std::uint32_t n = 0; n < config_.nodes; ++n) {
      for (std::uint32_t d = 0; d < kDimensions; ++d) {
        const std::uint32_t extent = extents[d], place = n / strides[d] % extent;
        for (std::uint32_t direction = 0; direction < (extent == 1 ? 0U : extent == 2 ? 1U : 2U); ++direction) {
          const std::uint32_t next = direction == 0 ? (place + 1) % extent : (place + extent - 1) % extent;
          const std::uint32_t to = n - place * strides[d] + next * strides[d];
          const std::uint32_t made = link(name(n), at_switch(n), name(to), at_switch(to));
          built_.links[made].dimension = static_cast<std::int8_t>(d);
          built_.links[made].dateline = direction == 0 ? next == 0 : place == 0;
          out_of(n, d, direction) = made;
        }
      }
    }
    for (std::uint32_t at = 0; at < config_.nodes; ++at) {
      for (std::uint32_t to = 0; to < config_.nodes; ++to) {
        if (to == at) continue;
        std::uint32_t chosen = 0;
        for (std::uint32_t d = kDimensions; d-- > 0;) {  // the row's choice is made last, so it goes first
          const std::uint32_t extent = extents[d];
          const std::uint32_t ahead = (to / strides[d] % extent + extent - at / strides[d] % extent) % extent;
          if (ahead != 0) chosen = out_of(at, d, 2 * ahead <= extent ? 0 : 1);
        }
        ways(at, to) = {chosen};
      }
    }
  }

  /// Two levels: every leaf has a cable to every spine.
  void leaf_spine() {
    const std::uint32_t leaves = config_.leaves, spines = config_.spines;
    if (leaves == 0 || config_.nodes % leaves != 0)
      refuse(formatted("leaves: {} does not divide the nodes, {}", leaves, config_.nodes));
    if (spines == 0) refuse("spines: leaf_spine needs at least 1");
    set_switches("leaf", leaves);
    set_switches("spine", spines);
    const std::uint32_t each = config_.nodes / leaves;
    for (std::uint32_t n = 0; n < config_.nodes; ++n) attach(n, n / each, built_.switch_names[n / each], false);
    std::vector<std::uint32_t> up(std::size_t{leaves} * spines), down(std::size_t{leaves} * spines);
    for (std::uint32_t l = 0; l < leaves; ++l) {
      for (std::uint32_t s = 0; s < spines; ++s) {
        const std::string &leaf = built_.switch_names[l], &spine = built_.switch_names[leaves + s];
        up[std::size_t{l} * spines + s] = link(leaf, at_switch(l), spine, at_switch(leaves + s));
        built_.links.back().up = true;
        down[std::size_t{l} * spines + s] = link(spine, at_switch(leaves + s), leaf, at_switch(l));
      }
    }
    for (std::uint32_t l = 0; l < leaves; ++l) {
      for (std::uint32_t s = 0; s < spines; ++s) {
        ways(leaves + s, l) = {down[std::size_t{l} * spines + s]};
        ways(l, leaves + s) = {up[std::size_t{l} * spines + s]};
        for (std::uint32_t other = 0; other < leaves; ++other) {
          if (other != l) ways(l, other).push_back(up[std::size_t{l} * spines + s]);
        }
        for (std::uint32_t other = 0; other < spines; ++other) {
          if (other != s) ways(leaves + s, leaves + other).push_back(down[std::size_t{l} * spines + s]);
        }
      }
    }
  }

  void set_up_links() {
    for (LinkPlan& plan : built_.links) plan.config = config_.link;
    for (const LinkSetting& setting : config_.settings) {
      bool found = false;
      for (LinkPlan& plan : built_.links) {
        if (!matches(setting.pattern, plan.name)) continue;
        apply(plan.config, setting.key, setting.value);
        found = true;
      }
      if (!found)
        throw Error(ErrorCode::kInvalidArgument,
                    formatted("{}, line {}: {}@{}: no link has such a name; there is, for instance, {}", config_.source,
                              setting.line, setting.key, setting.pattern, built_.links.front().name));
    }
    for (LinkPlan& plan : built_.links) {
      if (plan.local) {
        // Within a card: nothing of a cable. Faults belong to cables too.
        const std::uint64_t buffer = plan.config.buffer_bytes;
        plan.config = LinkConfig{};
        plan.config.propagation = 1;
        plan.config.header_bytes = plan.config.trailer_bytes = plan.config.min_wire_bytes = 0;
        plan.config.buffer_bytes = buffer;
      }
      if (plan.config.buffer_bytes < config_.mtu)
        refuse(formatted("buffer_bytes of {}: {} do not hold a frame of the mtu, {}", plan.name,
                         plan.config.buffer_bytes, config_.mtu));
    }
    if (config_.receive_bytes < config_.mtu)
      refuse(formatted("receive_bytes: {} do not hold a frame of the mtu, {}", config_.receive_bytes, config_.mtu));
  }

  void find_neighbours() {
    built_.neighbours.resize(built_.switches);
    for (const LinkPlan& plan : built_.links) {
      if (!plan.from.is_node && !plan.to.is_node) built_.neighbours[plan.from.index].push_back(plan.to.index);
    }
    for (std::vector<std::uint32_t>& all : built_.neighbours) std::sort(all.begin(), all.end());
  }

  [[noreturn]] void refuse_unit(const UnitPattern& pattern, const std::string& why) const {
    const auto line = config_.lines.find("aggregation");
    const std::string where = line == config_.lines.end() ? "" : formatted(", line {}", line->second);
    throw Error(ErrorCode::kInvalidArgument, formatted("{}{}: aggregation: {}@{}: {}", config_.source, where,
                                                       pattern.at_node ? "aas" : "ais", pattern.pattern, why));
  }

  void place_units() {
    built_.unit_in.assign(built_.switches, kNoUnit);
    std::vector<bool> in_switch(built_.switches), at_node(config_.nodes);
    for (const UnitPattern& pattern : config_.aggregation) {
      if (built_.switches == 0) {
        refuse_unit(pattern, "point_to_point has no switch, and both of its nodes are engines; take another topology");
      }
      bool found = false;
      const std::uint32_t count = pattern.at_node ? config_.nodes : built_.switches;
      for (std::uint32_t i = 0; i < count; ++i) {
        if (!matches(pattern.pattern, pattern.at_node ? formatted("node{}", i) : built_.switch_names[i])) continue;
        found = true;
        (pattern.at_node ? at_node : in_switch)[i] = true;
      }
      if (found) continue;
      refuse_unit(pattern, pattern.at_node
                               ? formatted("no node has such a name; there is, for instance, node{}", config_.nodes - 1)
                               : formatted("no switch has such a name; there is, for instance, {}",
                                           built_.switch_names.front()));
    }
    for (std::uint32_t s = 0; s < built_.switches; ++s) {
      if (!in_switch[s]) continue;
      built_.unit_in[s] = static_cast<std::uint32_t>(built_.units.size());
      built_.units.push_back({built_.addresses(), built_.switch_names[s], at_switch(s)});
      built_.switch_of.push_back(s);
    }
    for (std::uint32_t n = 0; n < config_.nodes; ++n) {
      if (!at_node[n]) continue;
      built_.units.push_back({n, formatted("node{}", n), node(n)});
      if (n + 1 < config_.nodes && !at_node[n + 1]) refuse_order(n);
    }
    if (at_node[0]) refuse_order(0);
    set_unit_channels();
  }

  /// The units at nodes are not the network's last nodes, or are all of them.
  [[noreturn]] void refuse_order(std::uint32_t found) const {
    for (const UnitPattern& pattern : config_.aggregation) {
      if (!pattern.at_node || !matches(pattern.pattern, formatted("node{}", found))) continue;
      refuse_unit(pattern, found == 0 ? std::string("node0 is an engine: units stand at the last nodes of a network")
                                      : formatted("node{} is an engine, and comes after node{}: units stand at the "
                                                  "last nodes of a network, so that engines count from 0",
                                                  found + 1, found));
    }
    refuse("aggregation: units stand at the last nodes of a network");
  }

  /// Only between units of two spines do frames go down and up again.
  void set_unit_channels() {
    if (config_.shape != Shape::kLeafSpine || config_.policy != Policy::kPause) return;
    std::uint32_t in_spines = 0;
    for (std::uint32_t s = config_.leaves; s < built_.switches; ++s) in_spines += built_.unit_in[s] != kNoUnit ? 1 : 0;
    if (in_spines > 1) built_.channels = 2;
  }

  const NetworkConfig& config_;
  Topology built_;
};

}  // namespace

std::uint32_t Topology::way(std::uint32_t at, std::uint32_t source, std::uint32_t destination,
                            std::uint32_t port) const {
  const std::uint32_t home = switch_of[destination];
  if (home == at) return downlink[destination];
  const std::vector<std::uint32_t>& candidates = ways[std::size_t{at} * switches + home];
  if (candidates.size() == 1) return candidates.front();
  const std::uint64_t flow = (std::uint64_t{source} << 40U) ^ (std::uint64_t{destination} << 16U) ^ port;
  return candidates[mix(flow + 0x9e3779b97f4a7c15ULL) % candidates.size()];
}

std::uint32_t units_at_nodes(const NetworkConfig& config) {
  std::uint32_t found = 0;
  for (std::uint32_t n = 0; n < config.nodes; ++n) {
    const std::string name = formatted("node{}", n);
    found += std::any_of(config.aggregation.begin(), config.aggregation.end(),
                         [&](const UnitPattern& one) { return one.at_node && matches(one.pattern, name); })
                 ? 1
                 : 0;
  }
  return found;
}

std::uint32_t nodes_with_units(const NetworkConfig& config, std::uint32_t engines) {
  const auto patterns = static_cast<std::uint32_t>(std::count_if(config.aggregation.begin(), config.aggregation.end(),
                                                                 [](const UnitPattern& one) { return one.at_node; }));
  if (patterns == 0) return engines;
  constexpr std::uint32_t kMostUnits = 64;
  std::uint32_t nodes = engines + patterns;  // if this does not fit, `make_topology` refuses it, and says why
  for (std::uint32_t units = 1; units <= kMostUnits; ++units) {
    NetworkConfig tried = config;
    tried.nodes = engines + units;
    if (units_at_nodes(tried) == units) nodes = tried.nodes;
  }
  return nodes;
}

Topology make_topology(const NetworkConfig& config) { return Builder(config).build(); }

}  // namespace unisono::sim
