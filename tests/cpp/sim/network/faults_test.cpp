// Faults: how often, bounded how, always the same for a seed.
#include <cmath>
#include <memory>
#include <set>

#include "tests/cpp/sim/network/cluster.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kFrames = 20'000;

std::unique_ptr<Cluster> sent(const std::string& faults, std::uint64_t seed = 1) {
  auto cluster =
      std::make_unique<Cluster>("topology = switch\nnodes = 2\nseed = " + std::to_string(seed) + "\n" + faults);
  for (std::uint32_t i = 0; i < kFrames; ++i) cluster->send(0, 1, 100);
  EXPECT_TRUE(cluster->finish(1'000'000));
  cluster->expect_conserved();
  return cluster;
}

/// Five standard deviations of a count of events with this probability.
void expect_about(std::uint64_t count, double probability, std::uint64_t of) {
  const double mean = probability * static_cast<double>(of);
  EXPECT_NEAR(static_cast<double>(count), mean, 5 * std::sqrt(mean * (1 - probability)));
}

TEST(Faults, Loss) {
  const auto cluster = sent("loss@node0>switch0 = 0.01\nloss@switch0>node1 = 0.1");
  const std::uint64_t up = cluster->link("node0>switch0").lost(Drop::kLoss);
  const std::uint64_t down = cluster->link("switch0>node1").lost(Drop::kLoss);
  expect_about(up, 0.01, kFrames);
  expect_about(down, 0.1, kFrames - up);
  EXPECT_EQ(cluster->received[1].size(), kFrames - up - down);
}

TEST(Faults, Duplication) {
  const auto cluster = sent("duplicate@node0>switch0 = 0.05");
  expect_about(cluster->total().duplicated, 0.05, kFrames);
  std::map<std::uint16_t, int> copies;
  for (const Arrival& arrival : cluster->received[1]) {
    EXPECT_EQ(arrival.wrong_bits, 0U);
    ++copies[arrival.port];
  }
  std::uint64_t twice = 0;
  for (const auto& [port, count] : copies) {
    EXPECT_LE(count, 2);
    twice += count == 2;
  }
  EXPECT_EQ(copies.size(), kFrames);
  EXPECT_EQ(twice, cluster->total().duplicated);
}

TEST(Faults, ReorderIsBounded) {
  const auto plain = sent("");
  const auto cluster = sent("reorder@switch0>node1 = 0.02\nreorder_cycles = 200");
  expect_about(cluster->total().reordered, 0.02, kFrames);
  ASSERT_EQ(cluster->received[1].size(), kFrames);
  std::map<std::uint16_t, std::uint64_t> on_time;
  for (const Arrival& arrival : plain->received[1]) on_time[arrival.port] = arrival.last;
  std::uint64_t late = 0, overtaken = 0;
  std::uint16_t highest = 0;
  for (const Arrival& arrival : cluster->received[1]) {
    const std::uint64_t delay = arrival.last - std::min(arrival.last, on_time[arrival.port]);
    EXPECT_LE(delay, 200U + 10);  // and may wait behind others
    late += delay > 10;
    overtaken += arrival.port < highest;
    highest = std::max(highest, arrival.port);
  }
  EXPECT_GT(late, 300U);
  EXPECT_GT(overtaken, 300U);
}

TEST(Faults, CorruptionIsCaughtByTheFrameCheck) {
  const auto cluster = sent("corrupt@node0>switch0 = 0.03");
  const std::uint64_t corrupted = cluster->link("node0>switch0").corrupted;
  expect_about(corrupted, 0.03, kFrames);
  EXPECT_EQ(cluster->link("switch0>node1").lost(Drop::kCheck), corrupted) << "counted where it is found";
  EXPECT_EQ(cluster->received[1].size(), kFrames - corrupted);
  for (const Arrival& arrival : cluster->received[1]) ASSERT_EQ(arrival.wrong_bits, 0U);
}

TEST(Faults, WithoutFrameCheckOneBitIsWrong) {
  const auto cluster = sent("corrupt@node0>switch0 = 0.03\nframe_check = off");
  std::uint64_t wrong = 0;
  ASSERT_EQ(cluster->received[1].size(), kFrames);
  for (const Arrival& arrival : cluster->received[1]) {
    EXPECT_LE(arrival.wrong_bits, 1U);
    wrong += arrival.wrong_bits;
  }
  EXPECT_EQ(wrong, cluster->link("node0>switch0").corrupted);
  expect_about(wrong, 0.03, kFrames);
}

TEST(Faults, ADownLinkCarriesNothing) {
  Cluster cluster("topology = point_to_point\ndown@node0>node1 = 1000-2000, 5000-5001");
  for (std::uint32_t i = 0; i < 100; ++i) cluster.send(0, 1, 64, i * 40);
  cluster.send(0, 1, 2000, 4960);  // 41 cycles on the wire, then 50: its first words have arrived at 5000? none has
  cluster.send(1, 0, 64, 1500);    // the other direction is up
  ASSERT_TRUE(cluster.finish(10'000));
  cluster.expect_conserved();
  EXPECT_EQ(cluster.received[0].size(), 1U);
  std::set<std::uint16_t> seen;
  for (const Arrival& arrival : cluster.received[1]) seen.insert(arrival.port);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::uint64_t arrives = i * 40 + 3 + 50;  // what would arrive in the outage, or is sent in it, is lost
    EXPECT_EQ(seen.count(static_cast<std::uint16_t>(i)), arrives < 1000 || i * 40 >= 2000 ? 1U : 0U) << i;
  }
  EXPECT_EQ(seen.count(100), 0U);
  EXPECT_EQ(cluster.link("node0>node1").lost(Drop::kDown), 101 - seen.size());
}

TEST(Faults, AFrameCutOffOnItsWayIsMarked) {
  // 100 words, 1.28 cycles each: in cycle 100 some have arrived, some are on the wire, some have not been sent.
  for (const char* mode : {"cut_through", "whole"}) {
    Cluster cluster(std::string("topology = point_to_point\ndown = 100-101\nreceive = ") + mode);
    cluster.send(0, 1, 6400);
    cluster.send(0, 1, 300);
    ASSERT_TRUE(cluster.finish(10'000));
    cluster.expect_conserved();
    EXPECT_EQ(cluster.link("node0>node1").truncated, 1U);
    EXPECT_EQ(cluster.link("node0>node1").lost(Drop::kCheck), 1U);
    const std::size_t shown = mode[0] == 'c' ? 2 : 1;
    ASSERT_EQ(cluster.received[1].size(), shown);
    EXPECT_EQ(cluster.received[1][0].damaged, shown == 2);
    EXPECT_FALSE(cluster.received[1].back().damaged);
    EXPECT_EQ(cluster.received[1].back().bytes, 300U);
  }
}

TEST(Faults, PauseLosesNoRoomToLostFrames) {
  Cluster cluster(
      "topology = torus\nnodes = 9\npolicy = pause\nmtu = 1000\nbuffer_bytes = 1000\nreceive_bytes = 1000\n"
      "loss = 0.1\nduplicate = 0.1\nreorder = 0.1\ncorrupt = 0.1\ndown = 1000-1500, 4000-4100");
  Random random(3);
  for (std::uint32_t i = 0; i < 300; ++i) {
    for (std::uint32_t n = 0; n < 9; ++n)
      cluster.send(n, static_cast<std::uint32_t>((n + 1 + random.below(8)) % 9),
                   static_cast<std::uint32_t>(1 + random.below(1000)));
  }
  ASSERT_TRUE(cluster.finish(2'000'000));
  cluster.expect_conserved();
  const LinkCounters sum = cluster.total();
  for (const Drop cause : {Drop::kLoss, Drop::kDown, Drop::kCheck}) EXPECT_GT(sum.lost(cause), 0U) << name_of(cause);
  EXPECT_EQ(sum.lost(Drop::kOverflow) + sum.lost(Drop::kReceiver), 0U);
}

TEST(Faults, SameSeedSameEverything) {
  const std::string text =
      "topology = leaf_spine\nnodes = 12\nleaves = 3\nspines = 2\nbuffer_bytes = 20000\nloss = 0.01\nduplicate = 0.02\n"
      "reorder = 0.05\ncorrupt = 0.01\ndown@leaf0>spine1 = 2000-9000\n";
  const auto run = [&](std::uint64_t seed) {
    auto cluster = std::make_unique<Cluster>(text + "seed = " + std::to_string(seed));
    Random random(9);
    for (std::uint32_t i = 0; i < 200; ++i) {
      for (std::uint32_t n = 0; n < 12; ++n)
        cluster->send(n, static_cast<std::uint32_t>((n + 1 + random.below(11)) % 12),
                      static_cast<std::uint32_t>(1 + random.below(4000)));
    }
    EXPECT_TRUE(cluster->finish(1'000'000));
    cluster->expect_conserved();
    return cluster;
  };
  const auto one = run(5), again = run(5), other = run(6);
  EXPECT_TRUE(one->received == again->received);
  EXPECT_EQ(one->network.cycle(), again->network.cycle());
  bool differs = false;
  for (std::uint32_t i = 0; i < one->network.links(); ++i) {
    EXPECT_EQ(one->network.counters(i), again->network.counters(i));
    differs = differs || !(one->network.counters(i) == other->network.counters(i));
  }
  EXPECT_TRUE(differs);
  EXPECT_GT(one->total().lost(Drop::kOverflow), 0U);
  EXPECT_GT(one->total().lost(Drop::kDown), 0U);
}

TEST(Faults, OneFaultDoesNotChangeAnother) {
  // Which frames are lost does not depend on what else may happen to them.
  const auto lossy = sent("loss@node0>switch0 = 0.02");
  const auto also = sent("loss@node0>switch0 = 0.02\nloss@switch0>node1 = 0.02");
  EXPECT_EQ(lossy->link("node0>switch0").lost(Drop::kLoss), also->link("node0>switch0").lost(Drop::kLoss));
}

}  // namespace
}  // namespace unisono::sim
