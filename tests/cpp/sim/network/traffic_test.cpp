// Switches and shapes: fairness, drop and pause, deadlock, ways, errors, idle time.
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/cpp/sim/network/cluster.hpp"

namespace unisono::sim {
namespace {

const char* const kShapes[] = {
    "topology = switch\nnodes = 9\n",
    "topology = ring\nnodes = 7\n",
    "topology = ring\nnodes = 2\n",
    "topology = torus\nnodes = 12\ncolumns = 4\n",
    "topology = torus\nnodes = 10\ncolumns = 2\n",
    "topology = torus\nnodes = 16\n",
    "topology = torus\nnodes = 12\nplanes = 2\n",
    "topology = torus\nnodes = 9\nplanes = 9\n",
    "topology = leaf_spine\nnodes = 12\nleaves = 4\nspines = 2\n",
};

/// Random frames from every node to every other.
void all_to_all(Cluster& cluster, std::uint32_t frames, std::uint32_t most, std::uint64_t seed) {
  Random random(seed);
  for (std::uint32_t i = 0; i < frames; ++i) {
    for (std::uint32_t n = 0; n < cluster.network.nodes(); ++n) {
      auto to = static_cast<std::uint32_t>(random.below(cluster.network.nodes() - 1));
      if (to >= n) ++to;
      cluster.send(n, to, static_cast<std::uint32_t>(1 + random.below(most)));
    }
  }
}

class Shapes : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  std::string text() const {
    return std::string(std::get<0>(GetParam())) + "policy = " + std::get<1>(GetParam()) + "\n";
  }
};

TEST_P(Shapes, EveryPairIsConnectedAndKeepsItsOrder) {
  Cluster cluster(text());
  const std::uint32_t nodes = cluster.network.nodes();
  for (std::uint32_t round = 0; round < 6; ++round) {
    for (std::uint32_t n = 0; n < nodes; ++n) {
      for (std::uint32_t to = 0; to < nodes; ++to) {
        if (to != n) cluster.send(n, to, 1 + (n * 131 + to * 17 + round * 1009) % 1500);
      }
    }
  }
  ASSERT_TRUE(cluster.finish(2'000'000));
  for (std::uint32_t n = 0; n < nodes; ++n) {
    EXPECT_EQ(cluster.received[n].size(), 6 * (nodes - 1));
    std::map<std::uint32_t, std::uint16_t> seen;
    // Several ports of a pair may take several ways; here that is the leaf-spine's choice.
    const bool one_way = cluster.network.topology().links.front().name.find("leaf") == std::string::npos;
    for (const Arrival& arrival : cluster.received[n]) {
      EXPECT_EQ(arrival.wrong_bits, 0U);
      EXPECT_FALSE(arrival.damaged);
      if (one_way && seen.count(arrival.source) != 0) {
        EXPECT_GT(arrival.port, seen[arrival.source]);
      }
      seen[arrival.source] = arrival.port;
    }
    EXPECT_EQ(seen.size(), nodes - 1);
  }
  cluster.expect_conserved();
  for (std::uint32_t i = 0; i < cluster.network.links(); ++i) {
    EXPECT_EQ(cluster.network.counters(i).queue_bytes, 0U);
  }
}

TEST_P(Shapes, SkippingIdleTimeChangesNothing) {
  const std::string faults =
      text() + "loss = 0.02\nduplicate = 0.05\nreorder = 0.1\ncorrupt = 0.02\ndown = 3000-3500\n";
  Cluster every(faults), skipping(faults);
  Random random(7);
  for (std::uint32_t n = 0; n < every.network.nodes(); ++n) {
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < 20; ++i) {
      at += random.below(3) == 0 ? random.below(5000) : random.below(50);
      const auto to =
          static_cast<std::uint32_t>((n + 1 + random.below(every.network.nodes() - 1)) % every.network.nodes());
      const auto bytes = static_cast<std::uint32_t>(1 + random.below(3000));
      for (Cluster* cluster : {&every, &skipping}) cluster->send(n, to, bytes, at);
    }
  }
  ASSERT_TRUE(every.finish(1'000'000));
  std::uint64_t steps = 0;
  ASSERT_TRUE(skipping.finish_skipping(1'000'000, steps));
  EXPECT_TRUE(every.received == skipping.received);
  EXPECT_EQ(every.network.cycle(), skipping.network.cycle());
  for (std::uint32_t i = 0; i < every.network.links(); ++i)
    EXPECT_EQ(every.network.counters(i), skipping.network.counters(i)) << every.network.link_name(i);
  EXPECT_LT(steps, every.network.cycle());
  every.expect_conserved();
}

INSTANTIATE_TEST_SUITE_P(All, Shapes, testing::Combine(testing::ValuesIn(kShapes), testing::Values("drop", "pause")));

TEST(Incast, EverySenderGetsTheSameShare) {
  for (const char* policy : {"drop", "pause"}) {
    for (const std::uint32_t bytes : {1024U, 4096U, 8972U}) {
      Cluster cluster(std::string("topology = switch\nnodes = 10\npolicy = ") + policy);
      const std::uint32_t frames = 4'000'000 / bytes;
      for (std::uint32_t i = 0; i < frames; ++i) {
        for (std::uint32_t n = 1; n < 10; ++n) cluster.send(n, 0, bytes);
      }
      cluster.run(60'000);  // all senders are still at it
      for (std::uint32_t n = 1; n < 10; ++n) ASSERT_GT(cluster.left(n), 0U);
      std::vector<std::uint64_t> share(10);
      for (const Arrival& arrival : cluster.received[0]) {
        if (arrival.first > 10'000) ++share[arrival.source];
      }
      const auto [least, most] = std::minmax_element(share.begin() + 1, share.end());
      EXPECT_LE(*most - *least, std::max<std::uint64_t>(2, *most / 20)) << policy << " " << bytes;
      // The link to node 0 is full: 50'000 cycles of 50 bytes.
      const std::uint64_t all = std::accumulate(share.begin(), share.end(), std::uint64_t{0});
      EXPECT_NEAR(static_cast<double>(all * (bytes + 66)), 50'000.0 * 50, 2.5 * (bytes + 66)) << policy << " " << bytes;
    }
  }
}

TEST(Incast, SendersWithSmallFramesAreNotPushedAside) {
  // Round robin is by frame; a sender of large frames among small ones gets as many frames as they do.
  Cluster cluster("topology = switch\nnodes = 5\npolicy = pause\nbuffer_bytes = 100000\nreceive_bytes = 9000");
  for (std::uint32_t i = 0; i < 3000; ++i) {
    for (std::uint32_t n = 1; n < 5; ++n) cluster.send(n, 0, n == 1 ? 8972 : 200);
  }
  cluster.run(400'000);
  std::vector<std::uint64_t> share(5);
  for (const Arrival& arrival : cluster.received[0]) ++share[arrival.source];
  const auto [least, most] = std::minmax_element(share.begin() + 1, share.end());
  EXPECT_GT(*least, 100U);
  EXPECT_LE(*most - *least, *most / 20 + 2) << share[1] << " " << share[2] << " " << share[3] << " " << share[4];
}

TEST(Policy, DropLosesWhatDoesNotFitAndPauseNothing) {
  for (const bool pause : {false, true}) {
    Cluster cluster(std::string("topology = switch\nnodes = 5\nbuffer_bytes = 20000\npolicy = ") +
                    (pause ? "pause" : "drop"));
    for (std::uint32_t i = 0; i < 100; ++i) {
      for (std::uint32_t n = 1; n < 5; ++n) cluster.send(n, 0, 4096);
    }
    ASSERT_TRUE(cluster.finish(1'000'000));
    cluster.expect_conserved();
    const LinkCounters to_node = cluster.link("switch0>node0");
    if (pause) {
      EXPECT_EQ(cluster.received[0].size(), 400U);
      EXPECT_GT(cluster.network.cycle(), 400U * (4096 + 66) / 50);
      EXPECT_LE(to_node.queue_high_water, 4 * 20'000U);
    } else {
      EXPECT_LT(cluster.received[0].size(), 200U);
      EXPECT_EQ(to_node.lost(Drop::kOverflow), 400 - cluster.received[0].size());
      EXPECT_LE(to_node.queue_high_water, 20'000U);
      EXPECT_GT(to_node.queue_high_water, 10'000U);
    }
  }
}

TEST(Policy, ANodeThatDoesNotPopLosesFramesOrStopsTheSender) {
  Cluster drop("topology = point_to_point\nreceive_bytes = 10000\nmtu = 1500");
  Cluster pause("topology = point_to_point\nreceive_bytes = 10000\nmtu = 1500\npolicy = pause");
  for (Cluster* cluster : {&drop, &pause}) {
    for (std::uint32_t i = 0; i < 50; ++i) cluster->send(0, 1, 1000);
    cluster->asleep[1] = true;
    cluster->run(5000);
  }
  EXPECT_EQ(drop.link("node0>node1").lost(Drop::kReceiver), 40U);
  EXPECT_EQ(pause.network.pushed(0), 9U) << "with 9 of 1000 bytes waiting, another 1500 would not fit";
  for (Cluster* cluster : {&drop, &pause}) {
    cluster->asleep[1] = false;
    ASSERT_TRUE(cluster->finish(10'000));
    cluster->expect_conserved();
  }
  EXPECT_EQ(drop.received[1].size(), 10U);
  EXPECT_EQ(pause.received[1].size(), 50U);
}

TEST(Policy, RoomIsKnownToBeFreeOnlyAfterLightCameBack) {
  // One frame of room: a frame every (1000 + 50 on the wire) / 50 + 50 there + popping + 50 back, no faster.
  Cluster cluster("topology = point_to_point\nreceive_bytes = 1000\nmtu = 1000\npolicy = pause");
  for (std::uint32_t i = 0; i < 20; ++i) cluster.send(0, 1, 1000);
  ASSERT_TRUE(cluster.finish(100'000));
  const std::uint64_t period = (cluster.received[1][19].first - cluster.received[1][0].first) / 19;
  EXPECT_GE(period, 1050 / 50 + 50 + 50U);
  EXPECT_LE(period, 1050 / 50 + 50 + 50U + 3);
}

class Deadlock : public testing::TestWithParam<const char*> {};

// Buffers of one frame, nothing may be lost, everyone sends to everyone, nodes pop now and then.
TEST_P(Deadlock, PauseAlwaysGoesOn) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Cluster cluster(std::string(GetParam()) +
                    "policy = pause\nmtu = 2048\nbuffer_bytes = 2048\nreceive_bytes = 2048\npropagation = 2\n"
                    "switch_latency = 3\n");
    const std::uint32_t nodes = cluster.network.nodes();
    all_to_all(cluster, 60, 2048, seed);
    Random random(seed);
    bool done = false;
    for (std::uint32_t i = 0; i < 3000 && !done; ++i) {
      for (std::uint32_t n = 0; n < nodes; ++n) cluster.asleep[n] = random.below(3) == 0;
      cluster.run(200);
      done = cluster.done() && cluster.network.under_way() == 0;
    }
    EXPECT_TRUE(done) << "seed " << seed;
    std::size_t arrived = 0;
    for (const auto& frames : cluster.received) arrived += frames.size();
    EXPECT_EQ(arrived, std::size_t{60} * nodes);
    cluster.expect_conserved();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Deadlock,
    testing::Values("topology = ring\nnodes = 8\n", "topology = ring\nnodes = 5\n", "topology = torus\nnodes = 16\n",
                    "topology = torus\nnodes = 15\ncolumns = 5\n", "topology = torus\nnodes = 8\ncolumns = 2\n",
                    "topology = torus\nnodes = 8\nplanes = 2\n", "topology = torus\nnodes = 27\nplanes = 3\n",
                    "topology = torus\nnodes = 24\ncolumns = 2\nrows = 3\nplanes = 4\n",
                    "topology = leaf_spine\nnodes = 12\nleaves = 4\nspines = 3\n", "topology = switch\nnodes = 9\n"));

TEST(Deadlock, EveryPairInThreeDimensions) {
  for (const char* shape : {"nodes = 8\nplanes = 2\n", "nodes = 27\nplanes = 3\n",
                            "nodes = 24\ncolumns = 2\nrows = 3\nplanes = 4\n", "nodes = 64\nplanes = 4\n"}) {
    Cluster cluster(std::string("topology = torus\n") + shape +
                    "policy = pause\nmtu = 1024\nbuffer_bytes = 1024\nreceive_bytes = 1024\n");
    const std::uint32_t nodes = cluster.network.nodes();
    for (std::uint32_t step = 1; step < nodes; ++step) {
      for (std::uint32_t n = 0; n < nodes; ++n) {
        for (std::uint32_t i = 0; i < 3; ++i) cluster.send(n, (n + step) % nodes, 1024);
      }
    }
    EXPECT_TRUE(cluster.finish(1'000'000)) << shape;
    for (const auto& received : cluster.received) EXPECT_EQ(received.size(), 3 * (nodes - 1)) << shape;
  }
}

TEST(Deadlock, RingsUnderTheWorstLoad) {
  // Everyone half way around, in one direction: the buffers of a ring without a dateline fill and wait for one another.
  for (const char* shape : {"topology = ring\nnodes = 8\n", "topology = torus\nnodes = 64\n",
                            "topology = torus\nnodes = 125\nplanes = 5\n"}) {
    Cluster cluster(std::string(shape) + "policy = pause\nmtu = 1024\nbuffer_bytes = 1024\nreceive_bytes = 1024\n");
    const std::uint32_t nodes = cluster.network.nodes();
    for (std::uint32_t i = 0; i < 50; ++i) {
      for (std::uint32_t n = 0; n < nodes; ++n) {
        const std::uint32_t extent = nodes == 125 ? 5 : 8;
        std::uint32_t to = 0;
        for (std::uint32_t stride = 1; stride < nodes; stride *= extent)
          to += (n / stride % extent + extent / 2) % extent * stride;
        cluster.send(n, to, 1024);
      }
    }
    EXPECT_TRUE(cluster.finish(1'000'000)) << shape;
  }
}

TEST(Ways, ATorusTakesTheShortestFirstAlongTheRow) {
  const Topology torus = make_topology(parse_network("topology = torus\nnodes = 30\ncolumns = 5"));
  for (std::uint32_t from = 0; from < 30; ++from) {
    for (std::uint32_t to = 0; to < 30; ++to) {
      std::uint32_t at = from, hops = 0;
      bool column = false;
      for (; at != to && hops < 30; ++hops) {
        const LinkPlan& link = torus.links[torus.way(at, from, to, 0)];
        EXPECT_EQ(link.from.index, at);
        column = column || link.dimension == 1;
        EXPECT_EQ(link.dimension, column ? 1 : 0);
        at = link.to.index;
      }
      const auto around = [](std::uint32_t a, std::uint32_t b, std::uint32_t extent) {
        const std::uint32_t ahead = (b + extent - a) % extent;
        return std::min(ahead, extent - ahead);
      };
      EXPECT_EQ(hops, around(from % 5, to % 5, 5) + around(from / 5, to / 5, 6));
      EXPECT_EQ(torus.way(to, from, to, 0), torus.downlink[to]);
    }
  }
}

TEST(Ways, ThreeDimensionsAreTravelledInOrderByTheShortestWay) {
  struct Torus {
    std::string text;
    std::array<std::uint32_t, 3> extents;
  };
  for (const auto& [text, extents] :
       {Torus{"nodes = 8\nplanes = 2", {2, 2, 2}}, Torus{"nodes = 27\nplanes = 3", {3, 3, 3}},
        Torus{"nodes = 24\ncolumns = 2\nrows = 3\nplanes = 4", {2, 3, 4}},
        Torus{"nodes = 60\nplanes = 5\nrows = 3", {4, 3, 5}}, Torus{"nodes = 24\nplanes = 2", {4, 3, 2}}}) {
    const Topology torus = make_topology(parse_network("topology = torus\n" + text));
    const auto nodes = extents[0] * extents[1] * extents[2];
    ASSERT_EQ(torus.nodes, nodes);
    std::size_t links = 2 * nodes;
    for (const std::uint32_t extent : extents) links += nodes * (extent > 2 ? 2 : 1);
    EXPECT_EQ(torus.links.size(), links);
    for (std::uint32_t from = 0; from < nodes; ++from) {
      for (std::uint32_t to = 0; to < nodes; ++to) {
        std::uint32_t at = from, hops = 0, expected = 0;
        std::array<std::uint32_t, 3> datelines{};
        int dimension = 0;
        for (; at != to && hops < nodes; ++hops) {
          const LinkPlan& link = torus.links[torus.way(at, from, to, 0)];
          EXPECT_EQ(link.from.index, at);
          EXPECT_GE(link.dimension, dimension) << "column, row, plane";
          dimension = link.dimension;
          datelines[static_cast<std::size_t>(dimension)] += link.dateline ? 1 : 0;
          at = link.to.index;
        }
        std::uint32_t stride = 1;
        for (std::size_t d = 0; d < 3; stride *= extents[d++]) {
          const std::uint32_t ahead = (to / stride % extents[d] + extents[d] - from / stride % extents[d]) % extents[d];
          expected += std::min(ahead, extents[d] - ahead);
          EXPECT_LE(datelines[d], 1U);
        }
        EXPECT_EQ(hops, expected) << from << " to " << to << " of " << text;
      }
    }
  }
}

TEST(Ways, LeafSpineSpreadsFlowsAndKeepsEachOnOneWay) {
  const Topology fabric = make_topology(parse_network("topology = leaf_spine\nnodes = 32\nleaves = 4\nspines = 4"));
  std::map<std::uint32_t, std::uint32_t> used;
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 8; to < 32; ++to) {
      for (std::uint32_t port = 0; port < 4; ++port) {
        const std::uint32_t way = fabric.way(0, from, to, port);
        EXPECT_EQ(way, fabric.way(0, from, to, port));
        ++used[way];
      }
    }
  }
  EXPECT_EQ(used.size(), 4U);
  for (const auto& [way, flows] : used) EXPECT_NEAR(flows, 192, 5 * 12) << fabric.links[way].name;
}

TEST(Push, RefusesWhatItCannotCarry) {
  Network network(parse_network("topology = switch\nnodes = 3\nmtu = 1000"));
  std::array<std::byte, 64> data{};
  const auto word = [&](std::uint32_t bytes, bool last, std::uint32_t to, std::uint32_t frame) {
    return SentWord{data.data(), bytes, last, to, frame, 0};
  };
  EXPECT_EQ(network.push(0, word(64, false, 1, 1001)), Pushed::kTooLong);
  EXPECT_EQ(network.push(0, word(64, true, 3, 64)), Pushed::kNoDestination);
  EXPECT_EQ(network.push(0, word(64, true, 0, 64)), Pushed::kNoDestination);
  EXPECT_EQ(network.push(0, word(0, true, 1, 0)), Pushed::kWrongLength);
  EXPECT_EQ(network.push(0, word(64, true, 1, 65)), Pushed::kWrongLength);
  EXPECT_EQ(network.push(0, word(63, true, 1, 64)), Pushed::kWrongLength);
  EXPECT_EQ(network.push(0, word(64, false, 1, 64)), Pushed::kWrongLength);
  EXPECT_EQ(network.under_way(), 0U);
  EXPECT_TRUE(network.can_push(0)) << "nothing was taken";
  EXPECT_EQ(network.push(0, word(64, false, 1, 1000)), Pushed::kTaken);
  EXPECT_EQ(network.push(0, word(64, false, 1, 1000)), Pushed::kBusy);
  while (!network.can_push(0)) network.tick();
  EXPECT_EQ(network.push(0, word(64, true, 1, 1000)), Pushed::kWrongLength);
  EXPECT_EQ(network.push(0, word(40, false, 1, 1000)), Pushed::kWrongLength);
  EXPECT_EQ(network.push(0, word(64, false, 1, 1000)), Pushed::kTaken) << "the frame goes on";
}

TEST(Idle, NothingUnderWayMeansNothingEver) {
  Cluster cluster("topology = torus\nnodes = 64");
  cluster.run(10);
  EXPECT_EQ(cluster.network.next_event(), Network::kNever);
  cluster.send(0, 27, 64);
  cluster.step();
  EXPECT_LE(cluster.network.next_event(), 10U) << "a word is on its way to the router";
  ASSERT_TRUE(cluster.finish(10'000));
  cluster.run(10);
  EXPECT_EQ(cluster.network.next_event(), Network::kNever);
  cluster.network.skip(1'000'000'000'000);
  cluster.send(1, 2, 64);
  EXPECT_TRUE(cluster.finish(10'000));
}

TEST(Capture, SeesEveryFrameOnEveryLink) {
  Cluster cluster("topology = switch\nnodes = 3\nloss@node0>* = 1");
  std::vector<std::string> seen;
  cluster.network.capture([&](const Captured& frame) {
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < frame.data.size(); ++i)
      wrong += frame.data[i] != byte_of(frame.source, frame.port, i);
    seen.push_back(cluster.network.link_name(frame.link) + " " + std::to_string(frame.data.size()) +
                   (frame.lost ? " lost" : "") + (wrong != 0 ? " wrong" : ""));
  });
  cluster.send(0, 1, 100);
  cluster.send(1, 2, 3000, 50);
  ASSERT_TRUE(cluster.finish(10'000));
  EXPECT_EQ(seen, (std::vector<std::string>{"node0>switch0 100 lost", "node1>switch0 3000", "switch0>node2 3000"}));
}

}  // namespace
}  // namespace unisono::sim
