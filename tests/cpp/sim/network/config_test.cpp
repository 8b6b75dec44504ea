// The text that describes a network.
#include "sim/network/config.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "sim/network/cables.hpp"
#include "sim/network/network.hpp"
#include "sim/network/settings.hpp"

namespace unisono::sim {
namespace {

std::string refusal(const std::string& text) {
  try {
    const Network network(parse_network(text, "net.conf"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "taken";
}

TEST(Config, ReadsEveryKey) {
  const NetworkConfig config = parse_network(R"(
# a comment
topology = torus     # and another
nodes=12
columns = 4
rows = 3
planes = 1
clock_mhz = 322.265
mtu = 4160
switch_latency = 7
policy = pause
queue_share = 8
receive_bytes = 100000
receive = whole
frame_check = off
aggregation = aas@node11
seed = 18446744073709551615
gbps = 25.781
propagation = 9
header_bytes = 40
trailer_bytes = 12
min_wire_bytes = 0
buffer_bytes = 50000
loss = 1e-3
duplicate = 0.25
reorder = 1
reorder_cycles = 77
corrupt = 0
down = 10-20, 30 - 40
)");
  EXPECT_EQ(config.shape, Shape::kTorus);
  EXPECT_EQ(config.nodes, 12U);
  EXPECT_EQ(config.columns, 4U);
  EXPECT_EQ(config.rows, 3U);
  EXPECT_EQ(config.planes, 1U);
  EXPECT_EQ(config.clock_khz, 322'265U);
  EXPECT_EQ(config.mtu, 4160U);
  EXPECT_EQ(config.switch_latency, 7U);
  EXPECT_EQ(config.policy, Policy::kPause);
  EXPECT_EQ(config.queue_share, 8U);
  EXPECT_EQ(config.receive_bytes, 100'000U);
  EXPECT_EQ(config.receive, Receive::kWhole);
  EXPECT_FALSE(config.frame_check);
  EXPECT_EQ(config.aggregation, (std::vector<UnitPattern>{{true, "node11"}}));
  EXPECT_EQ(config.seed, ~std::uint64_t{0});
  LinkConfig link;
  link.mbps = 25'781;
  link.propagation = 9;
  link.header_bytes = 40;
  link.trailer_bytes = 12;
  link.min_wire_bytes = 0;
  link.buffer_bytes = 50'000;
  link.loss = 1e-3;
  link.duplicate = 0.25;
  link.reorder = 1;
  link.reorder_cycles = 77;
  link.down = {{10, 20}, {30, 40}};
  EXPECT_EQ(config.link, link);
}

TEST(Config, LaterLinesAndPatternsOverride) {
  const Topology built =
      make_topology(parse_network("topology = leaf_spine\nnodes = 4\nleaves = 2\nspines = 2\ngbps@*spine* = "
                                  "400\ngbps@leaf0>spine1 = 200\ngbps = 25"));
  for (const LinkPlan& link : built.links) {
    const std::uint64_t expected = link.name == "leaf0>spine1"                    ? 200'000
                                   : link.name.find("spine") != std::string::npos ? 400'000
                                                                                  : 25'000;
    EXPECT_EQ(link.config.mbps, expected) << link.name;
  }
}

TEST(Config, Patterns) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("node1>*", "node1>switch0"));
  EXPECT_FALSE(matches("node1>*", "node10>switch0"));
  EXPECT_TRUE(matches("*spine*0", "leaf1>spine10"));
  EXPECT_FALSE(matches("*spine*0", "leaf1>spine01"));
  EXPECT_TRUE(matches("a*b*c", "aXbbXc"));
  EXPECT_FALSE(matches("", "x"));
}

TEST(Config, ErrorsNameLineAndKey) {
  using testing::AllOf;
  using testing::HasSubstr;
  const auto says = [](const char* text, const char* line, const char* key) {
    EXPECT_THAT(refusal(text), AllOf(HasSubstr(line), HasSubstr(key))) << text;
  };
  says("nodes = 4\nnods = 3", "net.conf, line 2", "nods");
  says("nodes = four", "line 1", "nodes: 'four'");
  says("nodes = 1", "line 1", "2 to 4096");
  says("nodes =", "line 1", "nodes");
  says("\n\ntopology = star", "line 3", "point_to_point, switch, ring, torus, leaf_spine");
  says("gbps = 0", "line 1", "gbps");
  says("gbps = 1.0001", "line 1", "three decimals");
  says("gbps = 1e2", "line 1", "gbps");
  says("loss = 1.5", "line 1", "loss: '1.5'");
  says("loss = nan", "line 1", "loss");
  says("loss = -0.1", "line 1", "loss");
  says("down = 20-10", "line 1", "down");
  says("down = 5", "line 1", "down");
  says("down = 10-20, 20-30", "line 1", "apart");
  says("mtu = 65536", "line 1", "mtu");
  says("mtu = 100", "line 1", "128");
  says("just words", "line 1", "key = value");
  says("mtu@node0>* = 10", "line 1", "no key of a link");
  says("gbps@node0>* = fast", "line 1", "gbps: 'fast'");
  says("gbps@nobody = 10", "line 1", "nobody");
  says("seed = 18446744073709551616", "line 1", "seed");
  says("topology = point_to_point\nnodes = 3", "net.conf", "nodes");
  says("topology = torus\nnodes = 12\ncolumns = 5", "net.conf", "columns, rows");
  says("topology = torus\nnodes = 12\nplanes = 5", "net.conf",
       "columns, rows, planes: 2 times 1 times 5 is not the number of nodes, 12");
  says("topology = torus\nnodes = 12\nplanes = 13", "net.conf", "1 times 1 times 13");
  says("topology = torus\nnodes = 12\nplanes = 2\nrows = 4", "net.conf", "1 times 4 times 2");
  says("planes = 0", "line 1", "planes: '0'");
  says("topology = leaf_spine\nnodes = 12\nleaves = 5\nspines = 1", "net.conf", "leaves");
  says("topology = leaf_spine\nnodes = 12\nleaves = 4", "net.conf", "spines");
  says("buffer_bytes = 100", "net.conf", "buffer_bytes of node0>switch0");
  says("receive_bytes = 100", "net.conf", "receive_bytes");
  EXPECT_EQ(refusal("nodes = 4"), "taken");
  EXPECT_EQ(refusal(""), "taken");
}

TEST(Config, LinesThatDoNothingAreRefused) {
  using testing::AllOf;
  using testing::HasSubstr;
  const auto says = [](const char* text, const char* line, const char* key, const char* why) {
    EXPECT_THAT(refusal(text),
                AllOf(HasSubstr(line), HasSubstr(std::string(key) + " does nothing here: "), HasSubstr(why)))
        << text;
  };
  says("topology = ring\nnodes = 4\ngbps@node* = 40", "net.conf, line 3", "gbps@node*",
       "node0>router0 is within a card and has nothing of a cable; router0>router1 has, for instance");
  says("topology = torus\nnodes = 9\nloss@router3>node3 = 0.1", "line 3", "loss@router3>node3", "within a card");
  says("topology = ring\nnodes = 4\nrows = 2", "line 3", "rows", "topology = torus; the topology is ring");
  says("topology = ring\nnodes = 4\nplanes = 2", "line 3", "planes", "topology = torus; the topology is ring");
  says("columns = 1", "line 1", "columns", "the topology is switch");
  says("spines = 2", "line 1", "spines", "leaf_spine");
  says("topology = torus\nnodes = 4\nleaves = 2", "line 3", "leaves", "leaf_spine");
  says("topology = point_to_point\nswitch_latency = 3", "line 2", "switch_latency", "no switch");
  says("policy = pause\nqueue_share = 3", "line 2", "queue_share", "the policy is pause");
  says("reorder_cycles = 30", "line 1", "reorder_cycles", "`reorder` says how often");
  says("\nreorder_cycles@node0>* = 30", "line 2", "reorder_cycles@node0>*", "`reorder` says how often");
  says("buffer_bytes@node* = 20000", "line 1", "buffer_bytes@node*", "node0>switch0 has no buffer; switch0>node0 has");
  says("policy = pause\nbuffer_bytes@switch0>node* = 20000", "line 2", "buffer_bytes@switch0>node*",
       "node0>switch0 has");
  says("topology = point_to_point\nbuffer_bytes = 20000", "line 2", "buffer_bytes", "has no buffer");
  for (const char* text :
       {"topology = ring\nnodes = 4\ngbps@* = 40", "topology = ring\nnodes = 4\ngbps = 40\nloss = 0.1",
        "topology = ring\nnodes = 4\nbuffer_bytes@node* = 20000", "reorder@node0>* = 0\nreorder_cycles = 30",
        "buffer_bytes@switch* = 20000", "policy = pause\nbuffer_bytes@node* = 20000", "loss = 0\nframe_check = off",
        "topology = torus\nnodes = 4\ncolumns = 2\nrows = 2"}) {
    EXPECT_EQ(refusal(text), "taken") << text;
  }
}

TEST(Config, UnitsStandWhereNamesMatch) {
  const auto places = [](const char* text) {
    std::string found;
    for (const UnitPlace& unit : make_topology(parse_network(text)).units) {
      found += (found.empty() ? "" : " ") + unit.name + "=" + std::to_string(unit.address);
    }
    return found;
  };
  const std::string fabric = "topology = leaf_spine\nnodes = 6\nleaves = 3\nspines = 2\n";
  EXPECT_EQ(places("nodes = 3"), "");
  EXPECT_EQ(places("nodes = 3\naggregation = ais@switch0"), "switch0=3");
  EXPECT_EQ(places((fabric + "aggregation = ais@leaf*").c_str()), "leaf0=6 leaf1=7 leaf2=8");
  EXPECT_EQ(places((fabric + "aggregation = ais@spine0 | ais@leaf*2").c_str()), "leaf2=6 spine0=7");
  EXPECT_EQ(places((fabric + "aggregation = ais@*|ais@spine1|aas@node5").c_str()),
            "leaf0=6 leaf1=7 leaf2=8 spine0=9 spine1=10 node5=5");
  EXPECT_EQ(places("topology = ring\nnodes = 12\naggregation = ais@router1*|aas@node1*1|aas@node10"),
            "router1=12 router10=13 router11=14 node10=10 node11=11");
  NetworkConfig config = parse_network("aggregation = aas@node9|aas@node8|ais@leaf1");
  EXPECT_EQ(config.aggregation, (std::vector<UnitPattern>{{true, "node9"}, {true, "node8"}, {false, "leaf1"}}));
  EXPECT_EQ(nodes_with_units(config, 8), 10U);
  EXPECT_EQ(nodes_with_units(parse_network("aggregation = aas@node9"), 9), 10U);
  EXPECT_EQ(nodes_with_units(parse_network("aggregation = ais@*"), 9), 9U);
  config.nodes = 10;
  EXPECT_EQ(units_at_nodes(config), 2U);
}

TEST(Config, SwitchesHaveNamesAndNeighbours) {
  const Topology fabric = make_topology(parse_network("topology = leaf_spine\nnodes = 6\nleaves = 3\nspines = 2"));
  EXPECT_EQ(fabric.switch_names, (std::vector<std::string>{"leaf0", "leaf1", "leaf2", "spine0", "spine1"}));
  EXPECT_EQ(fabric.switch_of, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(fabric.neighbours[1], (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(fabric.neighbours[3], (std::vector<std::uint32_t>{0, 1, 2}));
  const Topology ring = make_topology(parse_network("topology = ring\nnodes = 5"));
  EXPECT_EQ(ring.neighbours[0], (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(make_topology(parse_network("nodes = 2")).neighbours[0], std::vector<std::uint32_t>{});
  EXPECT_EQ(make_topology(parse_network("topology = point_to_point")).switches, 0U);
}

TEST(Config, UnitsThatCannotStandAreRefused) {
  EXPECT_EQ(refusal("nodes = 4\n\naggregation = ais@leaf*"),
            "net.conf, line 3: aggregation: ais@leaf*: no switch has such a name; there is, for instance, switch0");
  EXPECT_EQ(refusal("aggregation = ais@switch0|aas@node2"),
            "net.conf, line 1: aggregation: aas@node2: no node has such a name; there is, for instance, node1");
  EXPECT_EQ(refusal("nodes = 4\naggregation = aas@node3|aas@node1"),
            "net.conf, line 2: aggregation: aas@node1: node2 is an engine, and comes after node1: units stand at the "
            "last nodes of a network, so that engines count from 0");
  EXPECT_EQ(refusal("nodes = 4\naggregation = aas@node*"),
            "net.conf, line 2: aggregation: aas@node*: node0 is an engine: units stand at the last nodes of a network");
  EXPECT_EQ(
      refusal("topology = point_to_point\naggregation = aas@node1"),
      "net.conf, line 2: aggregation: aas@node1: point_to_point has no switch, and both of its nodes are engines; "
      "take another topology");
  for (const char* value : {"", "leaf0", "ais", "ais@", "aus@leaf0", "ais@leaf0|", "ais@leaf0||aas@node1"}) {
    EXPECT_THAT(refusal(std::string("\naggregation = ") + value),
                testing::AllOf(testing::HasSubstr("net.conf, line 2: aggregation: '"),
                               testing::HasSubstr("ais@SWITCH or aas@NODE")))
        << value;
  }
}

TEST(Config, FaultsAreNamed) {
  const auto faults = [](const char* text) { return faults_of(make_topology(parse_network(text))); };
  EXPECT_EQ(faults("loss = 0\nreorder = 0"), std::vector<std::string>{});
  EXPECT_EQ(faults("corrupt@node1>* = 1e-9"), std::vector<std::string>{"corrupt"});
  EXPECT_EQ(faults("down@node1>* = 3-4\nreorder = 0.5\nduplicate = 1\nloss = 0.1\nloss@* = 0"),
            (std::vector<std::string>{"duplicate", "reorder", "down"}));
}

std::string refusal_of_cables(const std::string& text) {
  try {
    cables_of(parse_network(text, "net.conf"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "taken";
}

TEST(Config, CablesTakeWhatTheyHave) {
  const CableSettings settings =
      cables_of(parse_network("topology = cables\ngbps = 40\npropagation = 7\nclock_mhz = 200\nseed = 3\n"));
  EXPECT_EQ(settings.propagation, 7U);
  EXPECT_EQ(settings.rate, (Rate{25, 1}));
  EXPECT_EQ(cables_of(parse_network("")).rate, (Rate{50, 1}));
  EXPECT_EQ(
      refusal_of_cables("gbps = 10\ntopology = switch\n"),
      "net.conf, line 2: topology = switch: nodes are joined by cables here; leave the line out, or say `topology "
      "= cables`");
  EXPECT_EQ(refusal_of_cables("topology = cables\n\nloss = 0.1\n"),
            "net.conf, line 3: loss: does nothing here: cables carry words without frames, and lose none");
  EXPECT_EQ(refusal_of_cables("gbps@node0* = 10\n"), "net.conf, line 1: gbps@node0*: all cables are alike here");
  EXPECT_EQ(refusal_of_cables("propagation = 0\n"),
            "net.conf: propagation = 0: what leaves a node in a cycle reaches none in the same one");
}

TEST(Config, ANetworkHasNoCables) {
  EXPECT_EQ(refusal("topology = cables\n"),
            "net.conf: topology = cables: cables have no switch that finds the way, they need routes; `unisono run "
            "--carrier smi` "
            "makes them");
}

}  // namespace
}  // namespace unisono::sim
