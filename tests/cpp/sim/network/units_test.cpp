// Units in switches and at nodes: their rates and times, what is dropped and what waits, faults, sessions, idle time.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "sim/network/unit.hpp"
#include "tests/cpp/sim/network/device.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kBytes = 4096;
constexpr double kPeriod = (kBytes + 66) / 50.0;  ///< cycles that a frame of these takes of a link

TEST(Units, TakeFromAllLinksAtOnceAtTheirRates) {
  for (const char* policy : {"drop", "pause"}) {
    Equipped net(std::string("nodes = 8\naggregation = ais@switch0\npolicy = ") + policy);
    ASSERT_EQ(net.cluster.network.units(), 1U);
    const std::uint32_t unit = net.devices[0]->address();
    EXPECT_EQ(unit, 8U);
    for (std::uint32_t i = 0; i < 500; ++i) {
      for (std::uint32_t n = 0; n < 8; ++n) net.cluster.send(n, unit, kBytes);
    }
    ASSERT_TRUE(net.cluster.finish(100'000));
    net.cluster.expect_conserved();
    std::map<std::uint32_t, std::vector<Taken>> by;
    for (const Taken& one : net.devices[0]->taken) by[one.source].push_back(one);
    ASSERT_EQ(by.size(), 8U);
    for (const auto& [source, all] : by) {
      ASSERT_EQ(all.size(), 500U);
      for (std::uint32_t i = 0; i < 500; ++i) {
        EXPECT_EQ(all[i].port, i);
        EXPECT_EQ(all[i].wrong_bits, 0U);
        // The first ends on the wire after (50 + 4096) / 50 cycles; then 50 of the cable and 100 of the switch.
        EXPECT_NEAR(static_cast<double>(all[i].cycle), 83 + 150 + i * kPeriod, 1) << policy;
      }
    }
  }
}

TEST(Units, SendOnAllLinksAtOnceAtTheirRates) {
  for (const char* policy : {"drop", "pause"}) {
    Equipped net(std::string("nodes = 8\naggregation = ais@switch*\npolicy = ") + policy);
    net.cluster.run(10);
    for (std::uint16_t i = 0; i < 200; ++i) {
      for (std::uint32_t n = 0; n < 8; ++n) net.devices[0]->send(n, kBytes, i);
    }
    ASSERT_TRUE(net.cluster.finish(100'000));
    net.cluster.expect_conserved();
    for (const std::vector<Arrival>& received : net.cluster.received) {
      ASSERT_EQ(received.size(), 200U) << policy << ": a unit's own frames are never dropped";
      for (std::uint32_t i = 0; i < 200; ++i) {
        EXPECT_EQ(received[i].port, i);
        EXPECT_EQ(received[i].source, 8U);
        EXPECT_EQ(received[i].wrong_bits, 0U);
        EXPECT_NEAR(static_cast<double>(received[i].last), 10 + 83 + 50 + i * kPeriod, 2) << policy;
      }
    }
  }
}

TEST(Units, AnswerInNoTime) {
  Equipped net("nodes = 4\naggregation = ais@switch0");
  net.devices[0]->answer = [](Device& device, const Taken& one) { device.send(3, one.bytes, one.port); };
  Cluster plain("nodes = 4");
  for (const std::uint32_t bytes : {1U, 64U}) {
    net.cluster.send(0, 4, bytes, bytes * 1000);
    plain.send(0, 3, bytes, bytes * 1000);
  }
  ASSERT_TRUE(net.cluster.finish(100'000));
  ASSERT_TRUE(plain.finish(100'000));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(net.cluster.received[3].at(i).first, plain.received[3].at(i).first)
        << "a frame of one word is as fast through the unit as past it";
  }
  // A longer one is there when it is whole: its last word comes as its first one would go on.
  Equipped longer("nodes = 4\naggregation = ais@switch0");
  longer.devices[0]->answer = [](Device& device, const Taken& one) { device.send(3, one.bytes, one.port); };
  longer.cluster.send(0, 4, kBytes, 10);
  ASSERT_TRUE(longer.cluster.finish(100'000));
  EXPECT_EQ(longer.devices[0]->taken.at(0).cycle, 10U + 83 + 150);
  EXPECT_EQ(longer.cluster.received[3].at(0).first, 10U + 83 + 150 + 3 + 50);
}

TEST(Units, PassWordsOnAsTheyCome) {
  for (const char* policy : {"drop", "pause"}) {
    Equipped net(std::string("nodes = 4\naggregation = ais@switch0\npolicy = ") + policy);
    Cluster plain(std::string("nodes = 4\npolicy = ") + policy);
    net.devices[0]->by_words = true;
    net.devices[0]->pass_to = 3;
    for (const std::uint32_t bytes : {1U, 64U, 65U, kBytes, 700U}) {
      net.cluster.send(0, 4, bytes, bytes * 1000);
      plain.send(0, 3, bytes, bytes * 1000);
    }
    ASSERT_TRUE(net.cluster.finish(5'000'000));
    ASSERT_TRUE(plain.finish(5'000'000));
    net.cluster.expect_conserved();
    ASSERT_EQ(net.cluster.received[3].size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      const Arrival &through = net.cluster.received[3][i], &past = plain.received[3].at(i);
      EXPECT_EQ(through.first, past.first) << policy << ": as fast through the unit as past it";
      EXPECT_EQ(through.last, past.last);
      EXPECT_EQ(through.bytes, past.bytes);
    }
    EXPECT_EQ(net.devices[0]->broken_words, 0U);
    EXPECT_EQ(net.devices[0]->taken.size(), 5U);
  }
}

TEST(Units, PausesBetweenWordsHoldTheLinkOnly) {
  Equipped net("nodes = 3\naggregation = ais@switch0");
  const std::vector<std::byte> data(kBytes);
  for (std::uint32_t word = 0; word < kBytes / kWordBytes; ++word) {
    const bool last = word + 1 == kBytes / kWordBytes;
    net.cluster.network.push_from(0, {data.data(), kWordBytes, last, 1, kBytes, 0});
    net.cluster.run(5);
  }
  net.devices[0]->send(1, kBytes);
  net.cluster.send(0, 2, kBytes);
  ASSERT_TRUE(net.cluster.finish(2000));
  ASSERT_EQ(net.cluster.received[1].size(), 2U);
  EXPECT_NEAR(static_cast<double>(net.cluster.received[1][0].last - net.cluster.received[1][0].first), 63 * 5, 1);
  EXPECT_EQ(net.cluster.received[2].size(), 1U);
  // To a faster link a frame goes when all of it is there, so that the link does not run dry.
  Equipped fast("nodes = 3\ngbps@switch0>* = 400\naggregation = ais@switch0");
  for (std::uint32_t word = 0; word < kBytes / kWordBytes; ++word) {
    const bool last = word + 1 == kBytes / kWordBytes;
    fast.cluster.network.push_from(0, {data.data(), kWordBytes, last, 1, kBytes, 0});
    fast.cluster.run(5);
  }
  ASSERT_TRUE(fast.cluster.finish(2000));
  EXPECT_GT(fast.cluster.received[1].at(0).first, 63U * 5);
}

TEST(Units, WordsThatMakeNoFrameAreRefused) {
  Equipped net("nodes = 3\naggregation = ais@switch0|aas@node2");
  const std::vector<std::byte> data(kWordBytes);
  const auto push = [&](std::uint32_t unit, std::uint32_t bytes, bool last, std::uint32_t to, std::uint32_t all) {
    net.cluster.network.push_from(unit, {data.data(), bytes, last, to, all, 0});
  };
  EXPECT_THROW(push(1, 64, true, 0, 64), Error) << "a unit at a node";
  EXPECT_THROW(push(0, 64, true, 3, 64), Error) << "itself";
  EXPECT_THROW(push(0, 64, true, 9, 64), Error) << "nobody";
  EXPECT_THROW(push(0, 64, false, 0, 1U << 20U), Error) << "beyond the mtu";
  push(0, 64, false, 0, 100);
  EXPECT_THROW(push(0, 64, true, 0, 100), Error) << "the last word is too long";
  EXPECT_THROW(push(0, 36, false, 0, 100), Error) << "the last word does not say so";
  push(0, 36, true, 0, 100);
  ASSERT_TRUE(net.cluster.finish(2000));
  EXPECT_EQ(net.cluster.received[0].size(), 1U);
}

TEST(Units, TakeTurnsWithWhatPasses) {
  for (const char* policy : {"drop", "pause"}) {
    Equipped net(std::string("nodes = 3\naggregation = ais@switch0\npolicy = ") + policy);
    for (std::uint16_t i = 0; i < 400; ++i) {
      net.devices[0]->send(2, kBytes, i);
      for (std::uint32_t n = 0; n < 2; ++n) net.cluster.send(n, 2, kBytes);
    }
    net.cluster.run(20'000);
    std::map<std::uint32_t, int> share;
    for (const Arrival& arrival : net.cluster.received[2]) share[arrival.source] += arrival.first > 2000 ? 1 : 0;
    ASSERT_EQ(share.size(), 3U);
    EXPECT_GT(share[3], 60);
    for (std::uint32_t n = 0; n < 2; ++n) EXPECT_NEAR(share[n], share[3], 3) << policy;
  }
}

TEST(Units, SpeakAcrossLeavesAndSpines) {
  const std::string text = "topology = leaf_spine\nnodes = 4\nleaves = 2\nspines = 2\n";
  Equipped net(text + "aggregation = ais@leaf*|ais@spine*");
  const Network& network = net.cluster.network;
  ASSERT_EQ(network.units(), 4U);
  const std::vector<std::string> names = {"leaf0", "leaf1", "spine0", "spine1"};
  for (std::uint32_t u = 0; u < 4; ++u) {
    EXPECT_EQ(network.unit(u).name, names[u]);
    EXPECT_EQ(network.unit(u).address, 4 + u);
  }
  constexpr std::uint64_t kHop = 3 + 50;
  // Each unit sends to every address; how many cables lie between them.
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 8; ++to) {
      if (to == 4 + from) continue;
      const bool leaf = from < 2, to_leaf = to == 4 || to == 5, to_spine = to > 5;
      const std::uint32_t home = to < 4 ? to / 2 : to - 4;
      std::uint32_t hops = 0;
      if (leaf)
        hops = to_spine ? 1 : home == from ? 0 : 2;
      else
        hops = to_spine ? 2 : 1;
      if (to < 4) ++hops;
      Equipped one(text + "aggregation = ais@leaf*|ais@spine*");
      one.devices[from]->send(to, 64, 7);
      ASSERT_TRUE(one.cluster.finish(2000));
      // A switch at the end of a cable adds 100.
      const std::uint64_t expected = hops * kHop + 100 * (to < 4 ? hops - 1 : hops);
      if (to < 4) {
        ASSERT_EQ(one.cluster.received[to].size(), 1U);
        EXPECT_EQ(one.cluster.received[to][0].first, expected) << from << " to " << to;
      } else {
        ASSERT_EQ(one.devices[to - 4]->taken.size(), 1U);
        EXPECT_EQ(one.devices[to - 4]->taken[0].cycle, expected) << from << " to " << to;
        EXPECT_EQ(one.devices[to - 4]->taken[0].wrong_bits, 0U);
      }
      EXPECT_TRUE(to_leaf || to_spine || to < 4);
    }
  }
  // Between two leaves and a spine, at full rate: each leaf passes up what its two nodes send, the spine answers.
  Equipped busy(text + "gbps@*spine* = 200\naggregation = ais@leaf*|ais@spine0");
  for (std::uint32_t u = 0; u < 2; ++u) {
    busy.devices[u]->answer = [](Device& device, const Taken& one) {
      if (one.source != 6) return device.send(6, one.bytes, one.port);
      for (std::uint32_t n = 0; n < 2; ++n) device.send((device.address() - 4) * 2 + n, one.bytes, one.port);
    };
  }
  busy.devices[2]->answer = [](Device& device, const Taken& one) { device.send(one.source, one.bytes, one.port); };
  for (std::uint32_t i = 0; i < 200; ++i) {
    for (std::uint32_t n = 0; n < 4; ++n) busy.cluster.send(n, 4 + n / 2, kBytes);
  }
  ASSERT_TRUE(busy.cluster.finish(100'000));
  EXPECT_EQ(busy.devices[2]->taken.size(), 800U);
  for (const std::vector<Arrival>& received : busy.cluster.received) {
    ASSERT_EQ(received.size(), 400U);
    // Nodes get twice what they send, so the cables down are what bounds it.
    EXPECT_NEAR(static_cast<double>(received.back().last - received.front().first), 400 * kPeriod, 3 * kPeriod);
  }
}

TEST(Units, WaitWhereOthersAreDroppedAndWherePauseSaysSo) {
  Equipped drop("nodes = 4\nbuffer_bytes = 9000\nreceive_bytes = 200000\naggregation = ais@switch0");
  Equipped pause("nodes = 4\nbuffer_bytes = 9000\nreceive_bytes = 9000\npolicy = pause\naggregation = ais@switch0");
  for (Equipped* net : {&drop, &pause}) {
    for (std::uint16_t i = 0; i < 100; ++i) {
      net->devices[0]->send(3, kBytes, i);
      for (std::uint32_t n = 0; n < 3; ++n) net->cluster.send(n, 3, kBytes);
      for (std::uint32_t n = 0; n < 3; ++n) net->cluster.send(n, 4, kBytes);
    }
    ASSERT_TRUE(net->cluster.finish(1'000'000));
    net->cluster.expect_conserved();
    EXPECT_EQ(net->devices[0]->taken.size(), 300U) << "a unit takes at once: nothing waits for room";
    const auto from_unit = std::count_if(net->cluster.received[3].begin(), net->cluster.received[3].end(),
                                         [](const Arrival& arrival) { return arrival.source == 4; });
    EXPECT_EQ(from_unit, 100);
  }
  EXPECT_GT(drop.cluster.link("switch0>node3").lost(Drop::kOverflow), 50U);
  EXPECT_EQ(pause.cluster.received[3].size(), 400U);
  // A node that does not pop stops the unit's frames for it, and no others.
  Equipped stopped("nodes = 3\nreceive_bytes = 9000\npolicy = pause\naggregation = ais@switch0");
  stopped.cluster.asleep[1] = true;
  for (std::uint16_t i = 0; i < 20; ++i) {
    for (std::uint32_t n = 0; n < 3; ++n) stopped.devices[0]->send(n, kBytes, i);
  }
  stopped.cluster.run(20'000);
  EXPECT_EQ(stopped.cluster.received[0].size(), 20U);
  EXPECT_EQ(stopped.cluster.received[2].size(), 20U);
  EXPECT_EQ(stopped.cluster.link("switch0>node1").frames, 2U);
  stopped.cluster.asleep[1] = false;
  ASSERT_TRUE(stopped.cluster.finish(20'000));
  EXPECT_EQ(stopped.cluster.received[1].size(), 20U);
}

TEST(Units, FaultsHitTheirFramesToo) {
  for (const char* check : {"on", "off"}) {
    Equipped net(std::string("nodes = 4\naggregation = ais@switch0\nloss = 0.05\nduplicate = 0.05\nreorder = 0.05\n"
                             "corrupt = 0.05\ndown@node1>* = 2000-3000\nframe_check = ") +
                 check);
    net.devices[0]->answer = [](Device& device, const Taken& one) { device.send(one.source, one.bytes, one.port); };
    for (std::uint32_t i = 0; i < 1000; ++i) {
      for (std::uint32_t n = 0; n < 4; ++n) net.cluster.send(n, 4, 1 + (i * 7 + n) % 500);
    }
    ASSERT_TRUE(net.cluster.finish(200'000));
    net.cluster.expect_conserved();
    std::uint64_t wrong = 0;
    for (const Taken& one : net.devices[0]->taken) wrong += one.wrong_bits;
    const std::uint64_t checked = net.cluster.link("node0>switch0").lost(Drop::kCheck);
    EXPECT_EQ(wrong == 0, check[1] == 'n');
    EXPECT_EQ(checked > 20, check[1] == 'n') << "the unit's own end checks frames";
    EXPECT_GT(net.cluster.link("node1>switch0").lost(Drop::kDown), 100U);
    EXPECT_GT(net.devices[0]->taken.size(), 3000U);
    EXPECT_LT(net.devices[0]->taken.size(), 4000U);
  }
}

TEST(Units, FaultsAreTheSameWordByWord) {
  for (const bool sessions : {false, true}) {
    for (const char* check : {"on", "off"}) {
      NetworkConfig config = parse_network(
          std::string("nodes = 4\naggregation = ais@switch0\nloss = 0.01\nduplicate = 0.05\nreorder = 0.01\n"
                      "corrupt = 0.02\ndown@node1>* = 2000-3000\nframe_check = ") +
          check);
      config.sessions = sessions;
      Equipped whole(config), words(config);
      words.devices[0]->by_words = true;
      for (Equipped* net : {&whole, &words}) {
        for (std::uint32_t i = 0; i < 500; ++i) {
          for (std::uint32_t n = 0; n < 4; ++n) net->cluster.send(n, 4, 1 + (i * 7 + n) % 500);
        }
        ASSERT_TRUE(net->cluster.finish(200'000));
        net->cluster.expect_conserved();
      }
      EXPECT_EQ(words.devices[0]->broken_words, 0U);
      EXPECT_GT(words.devices[0]->taken.size(), sessions ? 20U : 1500U);
      const auto sorted = [](std::vector<Taken> all) {
        std::sort(all.begin(), all.end(), [](const Taken& a, const Taken& b) {
          return std::tie(a.source, a.cycle, a.port, a.wrong_bits) < std::tie(b.source, b.cycle, b.port, b.wrong_bits);
        });
        return all;
      };
      EXPECT_EQ(sorted(words.devices[0]->taken), sorted(whole.devices[0]->taken)) << sessions << check;
      EXPECT_EQ(words.cluster.network.broken_sessions().size(), whole.cluster.network.broken_sessions().size());
      for (std::uint32_t link = 0; link < words.cluster.network.links(); ++link) {
        EXPECT_EQ(words.cluster.network.counters(link).dropped, whole.cluster.network.counters(link).dropped);
      }
    }
  }
}

TEST(Units, SessionsNameThem) {
  NetworkConfig config = parse_network("nodes = 3\naggregation = ais@switch0\ndown@node1>switch0 = 1000-1100");
  config.sessions = true;
  Equipped net(config);
  net.devices[0]->answer = [](Device& device, const Taken& one) { device.send(2, one.bytes, one.port); };
  for (std::uint32_t i = 0; i < 60; ++i) {
    for (std::uint32_t n = 0; n < 2; ++n)
      net.cluster.send(n, {3, 100 + i, static_cast<std::uint16_t>(n), i * 40, 0, 0});
  }
  ASSERT_TRUE(net.cluster.finish(20'000));
  net.cluster.run(1);
  net.cluster.expect_conserved();
  std::map<std::uint32_t, std::uint32_t> next;
  for (const Taken& one : net.devices[0]->taken) EXPECT_EQ(one.bytes, 100 + next[one.source]++);
  EXPECT_EQ(next[0], 60U);
  EXPECT_LT(next[1], 30U) << "nothing passes behind the gap";
  EXPECT_GT(next[1], 15U);
  ASSERT_EQ(net.cluster.network.broken_sessions().size(), 1U);
  const BrokenSession& broken = net.cluster.network.broken_sessions().front();
  EXPECT_EQ(broken.source, 1U);
  EXPECT_EQ(broken.destination, 3U);
  EXPECT_EQ(broken.missing, next[1]);

  // From a unit to a node: the last one is lost, which is noticed when nothing is under way.
  NetworkConfig back = parse_network("nodes = 3\naggregation = ais@switch0\ndown@switch0>node2 = 1000-1100");
  back.sessions = true;
  Equipped down(back);
  down.devices[0]->send(2, 500);
  down.cluster.run(1050);
  down.devices[0]->send(2, 500);
  ASSERT_TRUE(down.cluster.finish(20'000));
  down.cluster.run(1);
  ASSERT_EQ(down.cluster.network.broken_sessions().size(), 1U);
  EXPECT_EQ(down.cluster.network.broken_sessions().front().source, 3U);
  EXPECT_EQ(down.cluster.network.broken_sessions().front().missing, 1U);
  EXPECT_TRUE(down.cluster.network.broken_sessions().front().nothing_came);
}

TEST(Units, WhatComesTwiceIsTakenOnce) {
  NetworkConfig config = parse_network("nodes = 3\naggregation = ais@switch0\nduplicate = 0.3");
  config.sessions = true;
  Equipped net(config);
  for (std::uint32_t i = 0; i < 300; ++i) {
    for (std::uint32_t n = 0; n < 3; ++n) net.cluster.send(n, {3, 100 + i, 0, 0, 0, 0});
  }
  ASSERT_TRUE(net.cluster.finish(50'000));
  net.cluster.expect_conserved();
  EXPECT_EQ(net.devices[0]->taken.size(), 900U);
  EXPECT_GT(net.cluster.total().duplicated, 200U);
  EXPECT_TRUE(net.cluster.network.broken_sessions().empty());
}

TEST(Units, AtANodeTheyHaveItsCable) {
  // The last node is a unit: its answers are those of an engine that has taken all of a frame before it answers.
  Equipped net("nodes = 5\npolicy = pause\naggregation = aas@node4");
  ASSERT_EQ(net.cluster.network.units(), 1U);
  EXPECT_EQ(net.cluster.network.nodes(), 5U);
  EXPECT_EQ(net.devices[0]->address(), 4U);
  EXPECT_EQ(net.cluster.network.unit(0).name, "node4");
  net.devices[0]->answer = [](Device& device, const Taken& one) { device.send(one.source, one.bytes, one.port); };
  for (std::uint32_t i = 0; i < 200; ++i) {
    for (std::uint32_t n = 0; n < 4; ++n) net.cluster.send(n, 4, 1000);
  }
  ASSERT_TRUE(net.cluster.finish(100'000));
  net.cluster.expect_conserved();
  const std::vector<Taken>& taken = net.devices[0]->taken;
  ASSERT_EQ(taken.size(), 800U);
  EXPECT_EQ(taken[0].cycle, 3U + 50 + 100 + 3 + 50 + 19) << "22 cycles on the wire, of which 3 for the first word";
  EXPECT_NEAR(static_cast<double>(taken.back().cycle - taken.front().cycle), 799 * 1066 / 50.0, 3);
  EXPECT_EQ(net.cluster.network.unit_sent(0), 800U);
  EXPECT_EQ(net.cluster.network.pushed(4), 800U);
  for (std::uint32_t n = 0; n < 4; ++n) {
    ASSERT_EQ(net.cluster.received[n].size(), 200U);
    for (const Arrival& arrival : net.cluster.received[n]) EXPECT_EQ(arrival.wrong_bits, 0U);
  }
  EXPECT_EQ(net.cluster.received[taken[0].source][0].first, taken[0].cycle + 3 + 50 + 100 + 3 + 50);
}

TEST(Units, SkippingIdleTimeChangesNothing) {
  for (const char* shape :
       {"nodes = 6\naggregation = ais@switch0\n", "nodes = 7\naggregation = ais@switch0|aas@node6\n",
        "topology = leaf_spine\nnodes = 8\nleaves = 4\nspines = 2\naggregation = ais@*\n",
        "topology = torus\nnodes = 12\ncolumns = 4\naggregation = ais@router*\n",
        "topology = ring\nnodes = 6\naggregation = ais@router1|aas@node4|aas@node5\n"}) {
    for (const char* more : {"policy = drop\n", "policy = pause\nbuffer_bytes = 9000\nreceive_bytes = 9000\n",
                             "loss = 0.02\nduplicate = 0.05\nreorder = 0.1\ncorrupt = 0.02\ndown = 3000-3500\n"}) {
      SCOPED_TRACE(std::string(shape) + more);
      Equipped every(std::string(shape) + more), skipping(std::string(shape) + more);
      const std::uint32_t engines = every.engines();
      for (Equipped* net : {&every, &skipping}) {
        for (auto& device : net->devices) {
          device->answer = [engines, net](Device& self, const Taken& one) {
            if (one.source >= engines) return;
            self.send((one.source + 1) % engines, one.bytes, one.port);
            const Device& other = *net->devices[one.port % net->devices.size()];
            if (&other != &self) self.send(other.address(), 1 + one.bytes / 2, one.port);
          };
        }
      }
      Random random(11);
      for (std::uint32_t n = 0; n < engines; ++n) {
        std::uint64_t at = 0;
        for (std::uint32_t i = 0; i < 20; ++i) {
          at += random.below(3) == 0 ? random.below(5000) : random.below(50);
          const Device& device = *every.devices[random.below(every.devices.size())];
          auto to = static_cast<std::uint32_t>(random.below(engines));
          if (to == n || random.below(2) == 0) to = device.address();
          const auto bytes = static_cast<std::uint32_t>(1 + random.below(3000));
          for (Equipped* net : {&every, &skipping}) net->cluster.send(n, to, bytes, at);
        }
      }
      ASSERT_TRUE(every.cluster.finish(1'000'000));
      std::uint64_t steps = 0;
      ASSERT_TRUE(skipping.cluster.finish_skipping(1'000'000, steps));
      EXPECT_TRUE(every.cluster.received == skipping.cluster.received);
      for (std::size_t u = 0; u < every.devices.size(); ++u) {
        EXPECT_TRUE(every.devices[u]->taken == skipping.devices[u]->taken);
        EXPECT_FALSE(every.devices[u]->taken.empty());
      }
      EXPECT_EQ(every.cluster.network.cycle(), skipping.cluster.network.cycle());
      for (std::uint32_t i = 0; i < every.cluster.network.links(); ++i) {
        EXPECT_EQ(every.cluster.network.counters(i), skipping.cluster.network.counters(i))
            << every.cluster.network.link_name(i);
      }
      EXPECT_LT(steps, every.cluster.network.cycle());
      every.cluster.expect_conserved();
    }
  }
}

TEST(Units, SendWhatANetworkCarriesOnly) {
  Equipped net("nodes = 3\nmtu = 1000\naggregation = ais@switch0");
  const auto refusal = [&](std::uint32_t to, std::uint32_t bytes) -> std::string {
    try {
      net.devices[0]->send(to, bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "sent";
  };
  EXPECT_EQ(refusal(3, 64), "network: the unit at switch0 sends 64 bytes to 3: that is the unit itself");
  EXPECT_EQ(refusal(4, 64), "network: the unit at switch0 sends 64 bytes to 4: there are 4 addresses");
  EXPECT_EQ(refusal(1, 0), "network: the unit at switch0 sends 0 bytes to 1: a frame has 1 to 1000 bytes");
  EXPECT_EQ(refusal(1, 1001), "network: the unit at switch0 sends 1001 bytes to 1: a frame has 1 to 1000 bytes");
  EXPECT_EQ(net.cluster.network.under_way(), 0U);
  EXPECT_EQ(refusal(1, 1000), "sent");
  EXPECT_EQ(net.cluster.network.under_way(), 1U);
  // Nobody has an address behind the units.
  std::array<std::byte, 64> data{};
  EXPECT_EQ(net.cluster.network.push(0, {data.data(), 64, true, 4, 64, 0}), Pushed::kNoDestination);
  EXPECT_EQ(net.cluster.network.push(0, {data.data(), 64, true, 3, 64, 0}), Pushed::kTaken);
}

// All engines and units send to all, with buffers of one frame, and nothing stands still: a unit always takes.
class UnitsDeadlock : public testing::TestWithParam<const char*> {};

TEST_P(UnitsDeadlock, PauseAlwaysGoesOn) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Equipped net(std::string(GetParam()) +
                 "policy = pause\nmtu = 2048\nbuffer_bytes = 2048\nreceive_bytes = 2048\npropagation = 2\n"
                 "switch_latency = 3\n");
    const std::uint32_t engines = net.engines(), units = net.cluster.network.units();
    Random random(seed), more(seed + 100);
    // Two engines' frames in three go to units, and each makes a unit send to a node and to a unit.
    for (auto& device : net.devices) {
      device->answer = [&, engines, units](Device& self, const Taken& one) {
        if (one.source >= engines) return;
        self.send(static_cast<std::uint32_t>(more.below(engines)), 2048, one.port);
        const Device& other = *net.devices[more.below(units)];
        if (&other != &self) self.send(other.address(), static_cast<std::uint32_t>(1 + more.below(2048)), one.port);
      };
    }
    for (std::uint32_t i = 0; i < 60; ++i) {
      for (std::uint32_t n = 0; n < engines; ++n) {
        auto to = static_cast<std::uint32_t>(random.below(engines));
        if (to == n || random.below(3) != 0) to = net.devices[random.below(units)]->address();
        net.cluster.send(n, to, static_cast<std::uint32_t>(1 + random.below(2048)));
      }
    }
    bool done = false;
    for (std::uint32_t i = 0; i < 3000 && !done; ++i) {
      for (std::uint32_t n = 0; n < engines; ++n) net.cluster.asleep[n] = random.below(3) == 0;
      net.cluster.run(200);
      done = net.cluster.done() && net.cluster.network.under_way() == 0;
    }
    EXPECT_TRUE(done) << "seed " << seed;
    net.cluster.expect_conserved();
    const LinkCounters sum = net.cluster.total();
    for (const std::uint64_t dropped : sum.dropped) EXPECT_EQ(dropped, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, UnitsDeadlock,
    testing::Values(
        "topology = ring\nnodes = 8\naggregation = ais@*\n", "topology = torus\nnodes = 16\naggregation = ais@*\n",
        "topology = torus\nnodes = 15\ncolumns = 5\naggregation = ais@router1*|aas@node14\n",
        "topology = torus\nnodes = 8\nplanes = 2\naggregation = ais@*\n",
        "topology = torus\nnodes = 27\nplanes = 3\naggregation = ais@*\n",
        "topology = torus\nnodes = 24\ncolumns = 2\nrows = 3\nplanes = 4\naggregation = ais@router1*|aas@node23\n",
        "topology = leaf_spine\nnodes = 12\nleaves = 4\nspines = 3\naggregation = ais@*\n",
        "topology = leaf_spine\nnodes = 8\nleaves = 2\nspines = 4\naggregation = ais@spine*\n",
        "topology = leaf_spine\nnodes = 8\nleaves = 4\nspines = 1\naggregation = ais@leaf*|aas@node7\n",
        "topology = switch\nnodes = 9\naggregation = ais@switch0|aas@node8\n"));

}  // namespace
}  // namespace unisono::sim
