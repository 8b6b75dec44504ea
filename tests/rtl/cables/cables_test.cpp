// Nodes of SMI's transport, Verilated, on cables, with tables that `unisono route` makes when the test runs.
#include <memory>
#include <random>

#include "tests/rtl/cables/cables_fixture.hpp"

namespace unisono::sim {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Bytes that differ by both ranks, port and place.
std::vector<std::uint8_t> bytes_of(int from, int to, int port, std::size_t length) {
  std::vector<std::uint8_t> bytes(length);
  std::minstd_rand random(static_cast<unsigned>(1 + from + 37 * to + 1117 * port));
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 7);
  return bytes;
}

struct Pair {
  int from, to, port;
  Message message;
  const Outcome* sent = nullptr;
  const Outcome* got = nullptr;
};

/// Adds both ends of a channel.
Pair& join(CableNetwork& network, std::vector<Pair>& pairs, int from, int to, Message message, double pause = 0) {
  const std::size_t length = std::size_t{message.count} << message.size;
  Pair& pair = pairs.emplace_back(Pair{from, to, message.port, message});
  Message sender = message, receiver = message;
  sender.peer = to;
  sender.bytes = bytes_of(from, to, message.port, length);
  receiver.peer = from;
  receiver.pause = pause;
  pair.sent = &network.node(from).send(std::move(sender));
  pair.got = &network.node(to).receive(std::move(receiver));
  return pair;
}

bool all_closed(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    if (!pair.sent->closed || !pair.got->closed) return false;
  }
  return true;
}

void expect_all(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    EXPECT_TRUE(pair.got->closed && pair.sent->closed);
    EXPECT_TRUE(pair.got->complaints.empty());
    EXPECT_TRUE(pair.got->bytes ==
                bytes_of(pair.from, pair.to, pair.port, std::size_t{pair.message.count} << pair.message.size))
        << pair.from << " to " << pair.to << " port " << pair.port << ": " << pair.got->elements << " of "
        << pair.message.count;
  }
}

/// Every rank sends to every rank by every port, random counts and sizes; each port of a rank does so one after
/// another.
void all_pairs(CableNetwork& network, unsigned seed, std::uint32_t most) {
  std::mt19937 random(seed);
  std::vector<Pair> pairs;
  const int size = network.size();
  for (int port = 0; port < CableNode::kPorts; ++port) {
    for (int step = 0; step < size; ++step) {
      for (int rank = 0; rank < size; ++rank) {
        Message message;
        message.port = port;
        message.size = static_cast<int>(random() % 4);
        message.count = static_cast<std::uint32_t>(random()) % (most + 1);
        message.credits = true;
        message.lanes = random() % 2 ? 0 : 1 + static_cast<int>(random() % 4);
        message.pause = random() % 3 ? 0 : 0.5;
        message.flush = random() % 4 ? 0 : 0.2;
        join(network, pairs, rank, (rank + step) % size, message, random() % 3 ? 0 : 0.7);
      }
    }
  }
  ASSERT_TRUE(network.run([&] { return all_closed(pairs); })) << "stopped; circle: " << network.circle();
  expect_all(pairs);
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(network.node(rank).strays(), 0u);
}

/// Every port of a rank sends to a rank of its own, without credits.
void eager(CableNetwork& network, unsigned seed, std::uint32_t most) {
  std::mt19937 random(seed);
  std::vector<Pair> pairs;
  for (int port = 0; port < CableNode::kPorts; ++port) {
    for (int rank = 0; rank < network.size(); ++rank) {
      Message message;
      message.port = port;
      message.size = static_cast<int>(random() % 4);
      message.count = 1 + static_cast<std::uint32_t>(random()) % most;
      join(network, pairs, rank, (rank + port) % network.size(), message);
    }
  }
  ASSERT_TRUE(network.run([&] { return all_closed(pairs); })) << "stopped; circle: " << network.circle();
  expect_all(pairs);
}

struct Net {
  const char* topology;
  int ranks;
  int channels;
};

class Networks : public Cables, public ::testing::WithParamInterface<Net> {};

TEST_P(Networks, EveryPairByEveryPort) {
  const Routes routes = make(GetParam().topology);
  ASSERT_EQ(routes.virtual_channels, GetParam().channels);
  CableNetwork network(GetParam().ranks, {.latency = 7});
  network.load(routes);
  all_pairs(network, 1, 200);
  eager(network, 2, 3000);
}

INSTANTIATE_TEST_SUITE_P(Bus, Networks, ::testing::Values(Net{"--bus 4", 4, 1}));
INSTANTIATE_TEST_SUITE_P(Ring, Networks, ::testing::Values(Net{"--ring 5", 5, 2}));
INSTANTIATE_TEST_SUITE_P(Torus, Networks, ::testing::Values(Net{"--torus 2x4", 8, 1}));

TEST_F(Cables, NewTablesInTheSameRun) {
  CableNetwork network(8, {.latency = 3});
  network.load(make("--torus 2x4"));
  all_pairs(network, 3, 60);
  // A cut cable.
  const Routes cut = make("--torus 2x4", "--without fpga-0000:acl0:ch1-fpga-0001:acl0:ch0");
  EXPECT_FALSE(cut.nodes[0].peers[1].has_value());
  network.load(cut);
  all_pairs(network, 4, 60);
  // A bus, then the torus without one node.
  network.load(make("--bus 8"));
  eager(network, 5, 300);
  const Routes seven = make("--torus 2x4", "--leave-out fpga-0002:acl1");
  ASSERT_EQ(seven.nodes.size(), 7u);
  network.load(seven);
  all_pairs(network, 6, 60);
}

TEST_F(Cables, ImagesThatDoNotFitAreRefused) {
  CableNetwork network(4, {});
  Routes routes = make("--bus 4");
  network.load(routes);
  routes.nodes[2].image[20] ^= 1;  // the check sum tells
  EXPECT_THAT([&] { network.load(routes); },
              ::testing::ThrowsMessage<std::runtime_error>(HasSubstr("rank 2 refuses its image: reason 7")));
  EXPECT_EQ(network.node(1).image_error(), 0);
}

/// The rank that a packet reaches first, that begins at the CKS of a link.
int first_hop(const Routes& routes, int rank, int link, int to) {
  int channel = 0;
  for (int i = 0; i < routes.links; ++i) {
    const Step& step = routes.nodes[rank].cks[link][channel][to];
    channel = step.channel;
    if (step.way == Step::Way::kLink) return routes.nodes[rank].peers[link]->rank;
    link = step.other;
  }
  return -1;
}

// SMI's tables for the boards it was measured on lead into a circle that SMI's paper does not mention; ours do not.
TEST_F(Cables, CircleOfSmisTables) {
  CableNetwork network(8, {.latency = 4});
  // Ports by which a packet goes the long way round, with SMI's tables: from, to, first hop.
  const int ways[4][3] = {{0, 3, 1}, {1, 2, 3}, {3, 0, 2}, {2, 1, 0}};
  const Routes smi = make("--torus 2x4", "--scheme smi", 1);
  const Routes ours = make("--torus 2x4");
  const auto drive = [&](const Routes& routes) {
    network.load(routes);
    std::vector<Pair> pairs;
    for (const auto& way : ways) {
      for (int port = 0; port < CableNode::kPorts; ++port) {
        if (first_hop(smi, way[0], port, way[1]) != way[2]) continue;
        Message message;
        message.port = port;
        message.count = 20000;
        message.size = 3;
        join(network, pairs, way[0], way[1], message);
      }
    }
    EXPECT_GE(pairs.size(), 4u);
    const bool done = network.run([&] { return all_closed(pairs); });
    if (done) expect_all(pairs);
    return done;
  };
  EXPECT_FALSE(drive(smi));
  EXPECT_THAT(network.circle(), AnyOf("0 -> 1 -> 3 -> 2 -> 0", "1 -> 3 -> 2 -> 0 -> 1", "3 -> 2 -> 0 -> 1 -> 3",
                                      "2 -> 0 -> 1 -> 3 -> 2"));
  EXPECT_TRUE(drive(ours));
  EXPECT_EQ(network.circle(), "");
}

TEST_F(Cables, CountsThatDifferAreNamed) {
  CableNetwork network(2, {});
  network.load(make("--bus 2"));
  for (const bool credits : {false, true}) {
    for (const auto& [sends, expects] :
         {std::pair{1000u, 10u}, std::pair{10u, 1000u}, std::pair{0u, 5u}, std::pair{7u, 0u}, std::pair{8u, 7u}}) {
      Message send{.peer = 1, .port = 2, .count = sends, .size = 2, .credits = credits};
      send.bytes = bytes_of(0, 1, 2, 4 * sends);
      const Outcome& sent = network.node(0).send(send);
      const Outcome& got =
          network.node(1).receive({.peer = 0, .port = 2, .count = expects, .size = 2, .credits = credits});
      ASSERT_TRUE(network.run([&] { return got.closed && sent.closed; })) << sends << " " << expects;
      ASSERT_EQ(got.complaints.size(), 1u);
      EXPECT_FALSE(got.complaints[0].foreign);
      EXPECT_EQ(got.complaints[0].src, 0);
      EXPECT_EQ(got.complaints[0].expected, expects);
      EXPECT_EQ(got.complaints[0].got, sends);
      // A sender with credits has been told what is expected.
      ASSERT_EQ(sent.differences.size(), credits ? 1u : 0u);
      if (credits) {
        EXPECT_EQ(sent.differences[0].mine.count, sends);
        EXPECT_EQ(sent.differences[0].theirs.count, expects);
      }
      EXPECT_EQ(got.elements, std::min(sends, expects));
    }
  }
}

// A sender that waits for credits of a receiver that gives none, and so on: both ends name both, and close.
TEST_F(Cables, EndsThatDifferAreNamedAtBoth) {
  CableNetwork network(2, {.latency = 6});
  network.load(make("--bus 2"));
  const Message with{.port = 2, .count = 60, .size = 2, .credits = true};
  const Message strict{.port = 2, .count = 60, .size = 2, .credits = true, .strict = true, .window = 9};
  const Message eager{.port = 2, .count = 60, .size = 2};
  Message wide = with, wider = strict;
  wide.size = 3;
  wider.window = 10;
  struct Case {
    Message sends, receives;
    bool flows;  // the sender needs no credits
  };
  for (const auto& [sends, receives, flows] :
       {Case{with, eager, false}, Case{eager, with, true}, Case{with, wide, false}, Case{strict, wider, false},
        Case{with, strict, false}}) {
    for (const bool late : {false, true}) {
      Message send = sends, receive = receives;
      send.peer = 1;
      send.bytes = bytes_of(0, 1, 2, std::size_t{60} << send.size);
      send.lanes = 1;
      send.pause = flows ? 0.9 : 0;  // an eager sender is still at it when the receiver tells of itself
      const Outcome& sent = network.node(0).send(send);
      if (late) network.advance(200);
      const Outcome& got = network.node(1).receive(receive);
      ASSERT_TRUE(network.run([&] { return sent.closed && got.closed; })) << flows << late;
      ASSERT_EQ(sent.differences.size(), 1u);
      ASSERT_EQ(got.differences.size(), 1u);
      EXPECT_EQ(sent.differences[0].peer, 1);
      EXPECT_EQ(got.differences[0].peer, 0);
      EXPECT_EQ(sent.differences[0].mine, got.differences[0].theirs);
      EXPECT_EQ(sent.differences[0].theirs, got.differences[0].mine);
      EXPECT_EQ(sent.differences[0].mine.credits, sends.credits);
      EXPECT_EQ(sent.differences[0].theirs.window, receives.window);
      EXPECT_EQ(sent.differences[0].theirs.size, receives.size);
      EXPECT_EQ(got.elements, flows ? 60u : 0u);
    }
  }
}

TEST_F(Cables, PacketsForNobodyAreCountedAndStopNobody) {
  CableNetwork network(4, {});
  network.load(make("--bus 4"));
  std::vector<Pair> pairs;
  join(network, pairs, 0, 3, {.port = 0, .count = 4000, .size = 2});
  // A rank that there is not, and a port that there is not.
  Message nobody{.peer = 9, .port = 1, .count = 70, .size = 2};
  nobody.bytes = bytes_of(0, 9, 1, 280);
  const Outcome& first = network.node(0).send(nobody);
  Message nothing{.peer = 3, .port = 6, .count = 21, .size = 2};
  nothing.bytes = bytes_of(1, 3, 6, 84);
  const Outcome& second = network.node(1).send(nothing);
  ASSERT_TRUE(network.run([&] { return all_closed(pairs) && first.closed && second.closed; }));
  expect_all(pairs);
  EXPECT_EQ(network.node(0).strays(), 10u);
  EXPECT_EQ(network.node(0).first_stray().dst, 9);
  EXPECT_EQ(network.node(0).first_stray().port, 1);
  EXPECT_EQ(network.node(0).first_stray().src, 0);
  EXPECT_EQ(network.node(3).strays(), 3u);
  EXPECT_EQ(network.node(3).first_stray().dst, 3);
  EXPECT_EQ(network.node(3).first_stray().port, 6);
  EXPECT_EQ(network.node(3).first_stray().src, 1);
}

TEST_F(Cables, APacketOfAnotherRankIsNamed) {
  CableNetwork network(3, {});
  network.load(make("--bus 3"));
  Message send{.peer = 2, .port = 0, .count = 5, .size = 2};
  send.bytes = bytes_of(0, 2, 0, 20);
  const Outcome& got = network.node(2).receive({.peer = 1, .port = 0, .count = 5, .size = 2});
  const Outcome& wrong = network.node(0).send(send);
  ASSERT_TRUE(network.run([&] { return wrong.closed && !got.complaints.empty(); }));
  EXPECT_TRUE(got.complaints[0].foreign);
  EXPECT_EQ(got.complaints[0].src, 0);
  EXPECT_EQ(got.elements, 0u);
  std::vector<Pair> pairs;
  Message right{.peer = 2, .port = 0, .count = 5, .size = 2};
  right.bytes = bytes_of(1, 2, 0, 20);
  network.node(1).send(right);
  ASSERT_TRUE(network.run([&] { return got.closed; }));
  EXPECT_EQ(got.bytes, bytes_of(1, 2, 0, 20));
}

// Strict: the sender stands still exactly at element k + 1, until one is popped.
TEST_F(Cables, StrictStallsAtTheElementBehindTheWindow) {
  CableNetwork network(3, {.latency = 9});
  network.load(make("--bus 3"));
  for (const std::uint32_t window : {0u, 1u, 6u, 7u, 8u, 50u, 333u}) {
    std::vector<Pair> pairs;
    Message message{.port = 1, .count = 400, .size = 2, .credits = true, .strict = true, .window = window, .lanes = 1};
    Message sender = message, receiver = message;
    sender.peer = 2;
    sender.bytes = bytes_of(0, 2, 1, 1600);
    receiver.peer = 0;
    receiver.hold = 0;
    const Outcome& sent = network.node(0).send(sender);
    const Outcome& got = network.node(2).receive(receiver);
    EXPECT_FALSE(network.run([&] { return sent.closed; }, 2000));
    EXPECT_EQ(sent.elements, window);
    EXPECT_EQ(got.elements, 0u);
    network.node(2).release();
    ASSERT_TRUE(network.run([&] { return sent.closed && got.closed; })) << window;
    EXPECT_EQ(got.bytes, bytes_of(0, 2, 1, 1600));
    EXPECT_TRUE(got.complaints.empty());
  }
}

TEST_F(Cables, AChannelWithCreditsThatIsNotDrainedStopsNoOther) {
  CableNetwork network(4, {});
  network.load(make("--bus 4"));
  Message stuck{.port = 0, .count = 5000, .size = 2, .credits = true};
  Message sender = stuck, receiver = stuck;
  sender.peer = 3;
  sender.bytes = bytes_of(0, 3, 0, 20000);
  receiver.peer = 0;
  receiver.hold = 0;
  const Outcome& sent = network.node(0).send(sender);
  const Outcome& got = network.node(3).receive(receiver);
  std::vector<Pair> pairs;
  for (int port = 1; port < 4; ++port)
    join(network, pairs, 0, 3, {.port = port, .count = 5000, .size = 2, .credits = port == 2});
  ASSERT_TRUE(network.run([&] { return all_closed(pairs); }));
  expect_all(pairs);
  EXPECT_FALSE(sent.closed);
  network.node(3).release();
  ASSERT_TRUE(network.run([&] { return sent.closed && got.closed; }));
  EXPECT_EQ(got.bytes, bytes_of(0, 3, 0, 20000));
}

// One element at a time, and far fewer than a packet: each gets on its way without a flush.
TEST_F(Cables, WhatWasPushedGetsOnItsWay) {
  CableNetwork network(2, {});
  network.load(make("--bus 2"));
  Message send{.peer = 1, .port = 3, .count = 100, .size = 1, .lanes = 1, .hold = 5};
  send.bytes = bytes_of(0, 1, 3, 200);
  network.node(0).send(send);
  const Outcome& got = network.node(1).receive({.peer = 0, .port = 3, .count = 100, .size = 1});
  ASSERT_TRUE(network.run([&] { return got.elements == 5; }));
  network.node(0).release();
  ASSERT_TRUE(network.run([&] { return got.closed; }));
  EXPECT_EQ(got.bytes, bytes_of(0, 1, 3, 200));
}

}  // namespace
}  // namespace unisono::sim
