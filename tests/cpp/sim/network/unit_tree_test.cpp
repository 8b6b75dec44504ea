// Trees of units over networks.
#include "sim/network/unit_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/tree_table.hpp"
#include "sim/network/random.hpp"

namespace unisono::sim {
namespace {

UnitTree laid(const std::string& text, std::vector<std::uint32_t> nodes = {}) {
  const Topology topology = make_topology(parse_network(text));
  if (nodes.empty()) {
    std::uint32_t engines = topology.nodes;
    for (const UnitPlace& unit : topology.units) engines -= unit.at.is_node ? 1 : 0;
    nodes.resize(engines);
    std::iota(nodes.begin(), nodes.end(), 0U);
  }
  return lay_tree(topology, nodes);
}

TEST(UnitTree, AsOneDrawsIt) {
  const std::string fabric = "topology = leaf_spine\nnodes = 8\nleaves = 4\nspines = 2\naggregation = ";
  EXPECT_EQ(laid("nodes = 4\naggregation = ais@switch0").text, "(0 1 2 3)");
  // In leaves only, one is leaf and top at once.
  EXPECT_EQ(laid(fabric + "ais@leaf*").text, "(0 1 (2 3) (4 5) (6 7))");
  EXPECT_EQ(laid(fabric + "ais@leaf*|ais@spine1").text, "((0 1) (2 3) (4 5) (6 7))");
  EXPECT_EQ(laid(fabric + "ais@spine*").text, "(0 1 2 3 4 5 6 7)");
  // Leaves without a unit hang their nodes higher.
  EXPECT_EQ(laid(fabric + "ais@leaf0|ais@leaf2|ais@spine0").text, "((0 1) 2 3 (4 5) 6 7)");
  // A leaf with one member of the job adds nothing. Ranks are places in the list.
  EXPECT_EQ(laid(fabric + "ais@leaf*", {0, 2, 3}).text, "(0 1 2)");
  EXPECT_EQ(laid(fabric + "ais@leaf*|ais@spine0", {7, 0, 1, 6, 5}).text, "((0 3) (1 2) 4)");
  EXPECT_EQ(laid(fabric + "ais@leaf*", {5}).text, "(0)");
  // In a ring of eight all tops are equally near; router4's node goes the ascending way around.
  EXPECT_EQ(laid("topology = ring\nnodes = 8\naggregation = ais@*").text, "(0 (1 (2 3)) (((4 5) 6) 7))");
  EXPECT_EQ(laid("topology = ring\nnodes = 8\naggregation = ais@router0|ais@router6").text, "(0 1 2 3 (4 5 6) 7)");
  EXPECT_EQ(laid("topology = ring\nnodes = 8\naggregation = ais@router0|ais@router4").text, "(0 1 2 3 4 5 6 7)")
      << "nobody else passes router4 on the way to router0";
  // In a torus the way leads along the row first: each column is folded in row 0.
  EXPECT_EQ(laid("topology = torus\nnodes = 9\naggregation = ais@*").text, "(0 1 2 (3 4 5) (6 7 8))");
  EXPECT_EQ(laid("topology = torus\nnodes = 8\nplanes = 2\naggregation = ais@*").text, "(0 1 (2 3) (4 5 (6 7)))")
      << "router0 folds its row, the other row of its plane, and the other plane";
  // At nodes: one unit for all, the nearest.
  EXPECT_EQ(laid("nodes = 5\naggregation = aas@node4").text, "(0 1 2 3)");
  EXPECT_EQ(laid(fabric + "ais@leaf*|aas@node7").text, "(0 1 (2 3) (4 5) 6)");
  EXPECT_EQ(laid(fabric + "aas@node7|ais@leaf3", {0, 1, 6}).text, "(0 1 2)");
}

TEST(UnitTree, NamesItsUnits) {
  const UnitTree tree = laid(
      "topology = leaf_spine\nnodes = 8\nleaves = 4\nspines = 2\naggregation = ais@leaf*|ais@spine1", {6, 7, 1, 0, 2});
  EXPECT_EQ(tree.text, "((0 1) (2 3) 4)");
  EXPECT_EQ(tree.units, (std::vector<std::uint32_t>{4, 3, 0})) << "spine1, leaf3, leaf0";
  EXPECT_EQ(tree.parent, (std::vector<std::uint32_t>{kNoUnit, 0, 0}));
  EXPECT_EQ(tree.hangs, (std::vector<std::uint32_t>{1, 1, 2, 2, 0}));
}

TEST(UnitTree, SaysWhyThereIsNone) {
  EXPECT_EQ(laid("nodes = 3").reason, "the network has no units");
  EXPECT_EQ(laid("nodes = 3\naggregation = aas@node2", {0, 2}).reason, "node2 is a unit itself");
  EXPECT_EQ(laid("nodes = 3\naggregation = ais@*", {0, 3}).reason, "there is no node3");
  EXPECT_EQ(lay_tree(make_topology(parse_network("aggregation = ais@*")), {}).reason, "there are no nodes");
  EXPECT_EQ(laid("topology = ring\nnodes = 24\naggregation = ais@*").reason, "");
  EXPECT_EQ(laid("topology = ring\nnodes = 26\naggregation = ais@*").reason,
            "from a node to router0 there would be 13 units, and 12 are the most");
}

/// Switches on the way between two, as the network would go.
std::vector<std::uint32_t> way_of(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> way = {from};
  while (way.back() != to) {
    const std::vector<std::uint32_t>& ways = topology.ways[std::size_t{way.back()} * topology.switches + to];
    way.push_back(topology.links[ways.front()].to.index);
  }
  return way;
}

TEST(UnitTree, IsOneForAnyNodesAnywhere) {
  Random random(5);
  for (const char* shape :
       {"topology = ring\nnodes = 9\n", "topology = torus\nnodes = 24\ncolumns = 6\n", "topology = torus\nnodes = 36\n",
        "topology = torus\nnodes = 30\nplanes = 5\n", "topology = leaf_spine\nnodes = 20\nleaves = 5\nspines = 3\n",
        "topology = switch\nnodes = 12\n"}) {
    const Topology bare = make_topology(parse_network(shape));
    for (int i = 0; i < 60; ++i) {
      std::string units;
      for (const std::string& name : bare.switch_names) {
        if (random.below(2) == 0) units += (units.empty() ? "ais@" : "|ais@") + name;
      }
      if (units.empty()) units = "ais@*";
      const Topology topology = make_topology(parse_network(shape + ("aggregation = " + units)));
      std::vector<std::uint32_t> nodes(topology.nodes);
      std::iota(nodes.begin(), nodes.end(), 0U);
      for (std::size_t n = nodes.size(); n > 1; --n) std::swap(nodes[n - 1], nodes[random.below(n)]);
      nodes.resize(2 + random.below(nodes.size() - 1));
      SCOPED_TRACE(shape + units);
      const UnitTree tree = lay_tree(topology, nodes);
      ASSERT_EQ(tree.reason, "");
      EXPECT_EQ(lay_tree(topology, nodes).text, tree.text);
      // The text says the same as the rest.
      const CallTree* read = parse_tree(tree.text, false);
      ASSERT_EQ(read->members, nodes.size());
      ASSERT_EQ(read->switches, tree.units.size());
      for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
        EXPECT_EQ(read->parent[rank], read->members + tree.hangs[rank]);
      }
      EXPECT_EQ(tree.parent[0], kNoUnit);
      std::vector<std::uint32_t> children(tree.units.size());
      for (std::uint32_t u = 0; u < tree.units.size(); ++u) {
        if (u > 0) {
          EXPECT_EQ(read->parent[read->members + u], read->members + tree.parent[u]);
          ++children[tree.parent[u]];
        }
      }
      for (const std::uint32_t unit : tree.hangs) ++children[unit];
      for (std::uint32_t u = 0; u < tree.units.size(); ++u) EXPECT_GE(children[u], 2U);
      // The top is nearest, or all came to it by one unit; and what is above a unit is on its way.
      const auto sum = [&](std::uint32_t unit) {
        std::size_t links = 0;
        for (const std::uint32_t node : nodes) {
          links += way_of(topology, topology.switch_of[node], topology.units[unit].at.index).size() - 1;
        }
        return links;
      };
      for (std::uint32_t unit = 0; unit < topology.units.size(); ++unit) EXPECT_GE(sum(unit), sum(tree.units[0]));
      if (topology.links.back().dimension < 0) continue;
      const std::uint32_t top = topology.units[tree.units[0]].at.index;
      for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
        const auto way = way_of(topology, topology.switch_of[nodes[rank]], top);
        const std::uint32_t at = topology.units[tree.units[tree.hangs[rank]]].at.index;
        EXPECT_NE(std::find(way.begin(), way.end(), at), way.end());
      }
      for (std::uint32_t u = 1; u < tree.units.size(); ++u) {
        const auto way = way_of(topology, topology.units[tree.units[u]].at.index, top);
        EXPECT_NE(std::find(way.begin() + 1, way.end(), topology.units[tree.units[tree.parent[u]]].at.index),
                  way.end());
      }
    }
  }
}

}  // namespace
}  // namespace unisono::sim
