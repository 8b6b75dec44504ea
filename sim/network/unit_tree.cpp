#include "sim/network/unit_tree.hpp"

#include <algorithm>
#include <limits>

#include "core/text.hpp"
#include "core/tree_table.hpp"

namespace unisono::sim {
namespace {

class Layer {
 public:
  Layer(const Topology& topology, std::span<const std::uint32_t> nodes) : topology_(topology), nodes_(nodes) {}

  UnitTree lay() {
    if (topology_.units.empty()) return refused("the network has no units");
    if (nodes_.empty()) return refused("there are no nodes");
    for (const std::uint32_t node : nodes_) {
      if (node >= topology_.nodes) return refused(formatted("there is no node{}", node));
      for (const UnitPlace& unit : topology_.units) {
        if (unit.at.is_node && unit.address == node) return refused(unit.name + " is a unit itself");
      }
    }
    find_top();
    hang_all();
    Child root = trimmed(top_);
    if (root.is_node) root = {false, top_, 0};  // a single node: the top has one child
    const std::uint32_t levels = levels_below(root.index);
    if (levels > kMostTreeLevels) {
      return refused(formatted("from a node to {} there would be {} units, and {} are the most",
                               topology_.units[top_].name, levels, kMostTreeLevels));
    }
    made_.hangs.resize(nodes_.size());
    write(root.index, kNoUnit);
    return std::move(made_);
  }

 private:
  struct Child {
    bool is_node = false;
    std::uint32_t index = 0;   ///< a rank, or a unit
    std::uint32_t lowest = 0;  ///< rank of all below
  };

  static UnitTree refused(std::string why) {
    UnitTree none;
    none.reason = std::move(why);
    return none;
  }

  std::uint32_t home(std::uint32_t unit) const { return topology_.switch_of[topology_.units[unit].address]; }

  void find_top() {
    std::vector<std::uint64_t> members(topology_.switches);
    for (const std::uint32_t node : nodes_) ++members[topology_.switch_of[node]];
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t unit = 0; unit < topology_.units.size(); ++unit) {
      const std::vector<std::uint32_t> links = links_to(home(unit));
      std::uint64_t sum = topology_.units[unit].at.is_node ? nodes_.size() : 0;
      for (std::uint32_t s = 0; s < topology_.switches; ++s) sum += members[s] * links[s];
      if (sum >= least) continue;
      least = sum;
      top_ = unit;
    }
  }

  /// From each switch to this one. The ways of all shapes are shortest ones.
  std::vector<std::uint32_t> links_to(std::uint32_t to) const {
    std::vector<std::uint32_t> found(topology_.switches, kNoUnit), order = {to};
    found[to] = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::uint32_t next : topology_.neighbours[order[i]]) {
        if (found[next] != kNoUnit) continue;
        found[next] = found[order[i]] + 1;
        order.push_back(next);
      }
    }
    return found;
  }

  /// The first unit on the way from a switch to the top; what is in the switch itself counts with `inclusive`.
  std::uint32_t next_unit(std::uint32_t at, bool inclusive) const {
    const std::uint32_t end = home(top_);
    for (bool first = true;; first = false) {
      if ((!first || inclusive) && topology_.unit_in[at] != kNoUnit) return topology_.unit_in[at];
      if (at == end) return top_;  // at a node
      const std::vector<std::uint32_t>& ways = topology_.ways[std::size_t{at} * topology_.switches + end];
      const auto unit = std::find_if(ways.begin(), ways.end(), [this](std::uint32_t link) {
        return topology_.unit_in[topology_.links[link].to.index] != kNoUnit;
      });
      at = topology_.links[unit != ways.end() ? *unit : ways.front()].to.index;
    }
  }

  void hang_all() {
    below_.resize(topology_.units.size());
    std::vector<bool> hung(topology_.units.size());
    hung[top_] = true;
    for (std::uint32_t rank = 0; rank < nodes_.size(); ++rank) {
      std::uint32_t unit = next_unit(topology_.switch_of[nodes_[rank]], true);
      below_[unit].push_back({true, rank, rank});
      while (!hung[unit]) {
        hung[unit] = true;
        const std::uint32_t above = next_unit(home(unit), false);
        below_[above].push_back({false, unit, rank});
        unit = above;
      }
    }
  }

  /// What a unit is in the tree: itself, with its children in order; or its only child.
  Child trimmed(std::uint32_t unit) {
    std::vector<Child>& below = below_[unit];
    for (Child& child : below) {
      if (!child.is_node) child = trimmed(child.index);
    }
    std::sort(below.begin(), below.end(), [](const Child& a, const Child& b) { return a.lowest < b.lowest; });
    if (below.size() == 1) return below.front();
    return {false, unit, below.front().lowest};
  }

  std::uint32_t levels_below(std::uint32_t unit) const {
    std::uint32_t most = 0;
    for (const Child& child : below_[unit]) {
      if (!child.is_node) most = std::max(most, levels_below(child.index));
    }
    return most + 1;
  }

  void write(std::uint32_t unit, std::uint32_t parent) {
    const auto place = static_cast<std::uint32_t>(made_.units.size());
    made_.units.push_back(unit);
    made_.parent.push_back(parent);
    made_.text += '(';
    for (const Child& child : below_[unit]) {
      if (made_.text.back() != '(') made_.text += ' ';
      if (child.is_node) {
        made_.text += formatted("{}", child.index);
        made_.hangs[child.index] = place;
      } else {
        write(child.index, place);
      }
    }
    made_.text += ')';
  }

  const Topology& topology_;
  std::span<const std::uint32_t> nodes_;
  std::uint32_t top_ = 0;
  std::vector<std::vector<Child>> below_;  ///< by unit
  UnitTree made_;
};

}  // namespace

UnitTree lay_tree(const Topology& topology, std::span<const std::uint32_t> nodes) {
  return Layer(topology, nodes).lay();
}

}  // namespace unisono::sim
