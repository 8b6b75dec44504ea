#include "sim/network/topology.hpp"

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
        grid(config_.nodes, 1);
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
    built_.links[built_.uplink[index]].local = local;
    built_.links[built_.downlink[index]].local = local;
  }
  void set_switches(std::uint32_t count) {
    built_.switches = count;
    built_.ways.resize(std::size_t{count} * config_.nodes);
  }
  std::vector<std::uint32_t>& ways(std::uint32_t at, std::uint32_t destination) {
    return built_.ways[std::size_t{at} * config_.nodes + destination];
  }

  void point_to_point() {
    if (config_.nodes != 2) refuse(formatted("nodes: point_to_point has 2, not {}", config_.nodes));
    for (std::uint32_t n = 0; n < 2; ++n) {
      built_.uplink[n] = link(formatted("node{}", n), node(n), formatted("node{}", 1 - n), node(1 - n));
      built_.downlink[1 - n] = built_.uplink[n];
    }
  }

  void one_switch() {
    set_switches(1);
    for (std::uint32_t n = 0; n < config_.nodes; ++n) {
      attach(n, 0, "switch0", false);
      ways(0, n) = {built_.downlink[n]};
    }
  }

  void torus() {
    std::uint32_t columns = config_.columns, rows = config_.rows;
    if (columns == 0 && rows == 0) {
      for (rows = 1; (rows + 1) * (rows + 1) <= config_.nodes;) ++rows;
      while (config_.nodes % rows != 0) --rows;
      columns = config_.nodes / rows;
    } else if (columns == 0) {
      columns = config_.nodes / rows;
    } else if (rows == 0) {
      rows = config_.nodes / columns;
    }
    if (std::uint64_t{columns} * rows != config_.nodes)
      refuse(formatted("columns, rows: {} times {} is not the number of nodes, {}", columns, rows, config_.nodes));
    grid(columns, rows);
  }

  /// A torus; with one row a ring. A router for every node; the shortest way along the row, then along the column. Of
  /// two equally short ways around, the ascending one. A dimension of two has one cable, which is the ascending way.
  void grid(std::uint32_t columns, std::uint32_t rows) {
    set_switches(config_.nodes);
    built_.channels = config_.policy == Policy::kPause ? 2 : 1;
    const auto name = [](std::uint32_t index) { return formatted("router{}", index); };
    for (std::uint32_t n = 0; n < config_.nodes; ++n) attach(n, n, name(n), true);
    const std::uint32_t extents[2] = {columns, rows};
    const std::uint32_t strides[2] = {1, columns};
    // Ways out of each router: [dimension][0 ascending, 1 descending].
    std::vector<std::uint32_t> out(std::size_t{config_.nodes} * 4);
    for (std::uint32_t n = 0; n < config_.nodes; ++n) {
      for (std::uint32_t d = 0; d < 2; ++d) {
        const std::uint32_t extent = extents[d], place = n / strides[d] % extent;
        for (std::uint32_t direction = 0; direction < (extent == 1 ? 0U : extent == 2 ? 1U : 2U); ++direction) {
          const std::uint32_t next = direction == 0 ? (place + 1) % extent : (place + extent - 1) % extent;
          const std::uint32_t to = n - place * strides[d] + next * strides[d];
          const std::uint32_t made = link(name(n), at_switch(n), name(to), at_switch(to));
          built_.links[made].dimension = static_cast<std::int8_t>(d);
          built_.links[made].dateline = direction == 0 ? next == 0 : place == 0;
          out[std::size_t{n} * 4 + std::size_t{d} * 2 + direction] = made;
        }
      }
    }
    for (std::uint32_t at = 0; at < config_.nodes; ++at) {
      for (std::uint32_t to = 0; to < config_.nodes; ++to) {
        std::uint32_t chosen = built_.downlink[at];
        for (std::uint32_t d = 2; d-- > 0;) {  // the row's choice is made last, so it goes first
          const std::uint32_t extent = extents[d];
          const std::uint32_t ahead = (to / strides[d] % extent + extent - at / strides[d] % extent) % extent;
          if (ahead != 0) chosen = out[std::size_t{at} * 4 + std::size_t{d} * 2 + (2 * ahead <= extent ? 0 : 1)];
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
    set_switches(leaves + spines);
    const std::uint32_t each = config_.nodes / leaves;
    for (std::uint32_t n = 0; n < config_.nodes; ++n) attach(n, n / each, formatted("leaf{}", n / each), false);
    std::vector<std::uint32_t> up(std::size_t{leaves} * spines), down(std::size_t{leaves} * spines);
    for (std::uint32_t l = 0; l < leaves; ++l) {
      for (std::uint32_t s = 0; s < spines; ++s) {
        const std::string leaf = formatted("leaf{}", l), spine = formatted("spine{}", s);
        up[std::size_t{l} * spines + s] = link(leaf, at_switch(l), spine, at_switch(leaves + s));
        down[std::size_t{l} * spines + s] = link(spine, at_switch(leaves + s), leaf, at_switch(l));
      }
    }
    for (std::uint32_t n = 0; n < config_.nodes; ++n) {
      for (std::uint32_t l = 0; l < leaves; ++l) {
        if (n / each == l) {
          ways(l, n) = {built_.downlink[n]};
        } else {
          for (std::uint32_t s = 0; s < spines; ++s) ways(l, n).push_back(up[std::size_t{l} * spines + s]);
        }
      }
      for (std::uint32_t s = 0; s < spines; ++s) ways(leaves + s, n) = {down[std::size_t{n / each} * spines + s]};
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

  const NetworkConfig& config_;
  Topology built_;
};

}  // namespace

std::uint32_t Topology::way(std::uint32_t at, std::uint32_t source, std::uint32_t destination,
                            std::uint32_t port) const {
  const std::vector<std::uint32_t>& candidates = ways[std::size_t{at} * nodes + destination];
  if (candidates.size() == 1) return candidates.front();
  const std::uint64_t flow = (std::uint64_t{source} << 40U) ^ (std::uint64_t{destination} << 16U) ^ port;
  return candidates[mix(flow + 0x9e3779b97f4a7c15ULL) % candidates.size()];
}

Topology make_topology(const NetworkConfig& config) { return Builder(config).build(); }

}  // namespace unisono::sim
