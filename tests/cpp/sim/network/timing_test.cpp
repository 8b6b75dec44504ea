// Latency and bandwidth, to the cycle, against formulas that know nothing of the implementation.
#include <algorithm>
#include <tuple>

#include "tests/cpp/sim/network/cluster.hpp"

namespace unisono::sim {
namespace {

/// Time in units so small that every byte takes a whole number of them.
struct Wire {
  std::uint64_t number, per;  ///< `number` bytes every `per` cycles
  std::uint64_t cycle(std::uint64_t time) const { return (time + number - 1) / number; }
  std::uint64_t of(std::uint64_t bytes) const { return bytes * per; }
};

struct Case {
  const char* gbps;
  const char* clock;
  Wire wire;
};
// 100 Gb/s = 12.5e9 B/s; at 250 MHz 50 B per cycle, at 322 MHz 12500/322, 25.781 Gb/s at 250 MHz 25781/2000.
const Case kCases[] = {{"100", "250", {50, 1}}, {"100", "322", {12500, 322}}, {"25.781", "250", {25781, 2000}},
                       {"10", "250", {5, 1}},   {"200", "250", {100, 1}},     {"0.5", "250", {1, 4}},
                       {"128", "250", {64, 1}}};

class Timing : public testing::TestWithParam<std::tuple<Case, std::uint32_t>> {};

/// When the words of a frame leave a sender that offers one per cycle from `start` on: the ends of their sending.
std::vector<std::uint64_t> departures(const Wire& wire, std::uint64_t start, std::uint32_t bytes,
                                      const std::vector<std::uint64_t>& offered) {
  std::vector<std::uint64_t> ends;
  std::uint64_t free = start * wire.number + wire.of(50);
  for (std::uint32_t word = 0; word * 64 < bytes; ++word) {
    if (word > 0) free = std::max(free, offered.at(word) * wire.number);
    free += wire.of(std::min(64U, bytes - word * 64));
    ends.push_back(free);
  }
  return ends;
}

TEST_P(Timing, OneLink) {
  const auto& [speed, bytes] = GetParam();
  Cluster cluster(std::string("topology = point_to_point\ngbps = ") + speed.gbps + "\nclock_mhz = " + speed.clock);
  cluster.send(0, 1, bytes, 1000);
  ASSERT_TRUE(cluster.finish(2'000'000));
  ASSERT_EQ(cluster.received[1].size(), 1U);
  const Arrival& arrival = cluster.received[1][0];
  // A node can only offer one word a cycle: word k in cycle 1000 + k at the earliest.
  std::vector<std::uint64_t> offered;
  for (std::uint32_t k = 0; k * 64 < bytes; ++k) offered.push_back(1000 + k);
  const std::vector<std::uint64_t> ends = departures(speed.wire, 1000, bytes, offered);
  ASSERT_EQ(arrival.cycles.size(), ends.size());
  std::uint64_t popped = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    popped = std::max(popped + 1, speed.wire.cycle(ends[k]) + 50);
    EXPECT_EQ(arrival.cycles[k], popped) << k;
  }
  EXPECT_EQ(arrival.wrong_bits, 0U);
}

TEST_P(Timing, ThroughASwitch) {
  const auto& [speed, bytes] = GetParam();
  Cluster cluster(std::string("topology = switch\nnodes = 3\ngbps = ") + speed.gbps + "\nclock_mhz = " + speed.clock);
  cluster.send(2, 1, bytes, 1000);
  ASSERT_TRUE(cluster.finish(2'000'000));
  ASSERT_EQ(cluster.received[1].size(), 1U);
  const Arrival& arrival = cluster.received[1][0];
  std::vector<std::uint64_t> offered;
  for (std::uint32_t k = 0; k * 64 < bytes; ++k) offered.push_back(1000 + k);
  std::vector<std::uint64_t> at_switch;
  for (const std::uint64_t end : departures(speed.wire, 1000, bytes, offered))
    at_switch.push_back(speed.wire.cycle(end) + 50 + 100);
  const std::vector<std::uint64_t> ends = departures(speed.wire, at_switch[0], bytes, at_switch);
  std::uint64_t popped = 0;
  for (std::size_t k = 0; k < ends.size(); ++k) {
    popped = std::max(popped + 1, speed.wire.cycle(ends[k]) + 50);
    EXPECT_EQ(arrival.cycles.at(k), popped) << k;
  }
}

// Frames back to back leave one every (bytes + 66) / rate cycles, exactly, or as often as a node offers words.
TEST_P(Timing, FullLoad) {
  const auto& [speed, bytes] = GetParam();
  Cluster cluster(std::string("topology = switch\nnodes = 2\ngbps = ") + speed.gbps + "\nclock_mhz = " + speed.clock);
  constexpr std::uint32_t kFrames = 500;
  for (std::uint32_t i = 0; i < kFrames; ++i) cluster.send(0, 1, bytes);
  ASSERT_TRUE(cluster.finish(20'000'000));
  ASSERT_EQ(cluster.received[1].size(), kFrames);
  const std::uint64_t words = (bytes + 63) / 64;
  const std::uint64_t on_wire = std::max<std::uint64_t>(bytes + 66, 84);
  const std::uint64_t first = cluster.received[1].front().last, last = cluster.received[1].back().last;
  if (speed.wire.of(on_wire) >= words * speed.wire.number) {
    const std::uint64_t expected = speed.wire.of(on_wire) * (kFrames - 1) / speed.wire.number;
    EXPECT_NEAR(static_cast<double>(last - first), static_cast<double>(expected), 2);
    const LinkCounters link = cluster.link("node0>switch0");
    EXPECT_EQ(link.wire_bytes, on_wire * kFrames);
    EXPECT_EQ(link.bytes, std::uint64_t{bytes} * kFrames);
    EXPECT_EQ(link.busy_cycles, speed.wire.of(on_wire) * kFrames / speed.wire.number);
  } else {
    EXPECT_NEAR(static_cast<double>(last - first), static_cast<double>(words * (kFrames - 1)), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Speeds, Timing,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(1U, 17U, 18U, 63U, 64U, 65U, 1000U, 4096U, 8972U)),
                         [](const auto& one) {
                           std::string name = std::string(std::get<0>(one.param).gbps) + "Gbps" +
                                              std::get<0>(one.param).clock + "MHz" +
                                              std::to_string(std::get<1>(one.param));
                           std::replace(name.begin(), name.end(), '.', 'p');
                           return name;
                         });

// The defaults, written out: a frame of 64 bytes takes (50 + 64) / 50 = 2.28 cycles, so 3 + 50 to the next node.
TEST(Latency, AsOneComputesByHand) {
  Cluster direct("topology = point_to_point");
  direct.send(0, 1, 64, 10);
  ASSERT_TRUE(direct.finish(1000));
  EXPECT_EQ(direct.received[1][0].first, 10U + 3 + 50);
  Cluster one_switch("topology = switch");
  one_switch.send(0, 1, 64, 10);
  ASSERT_TRUE(one_switch.finish(1000));
  EXPECT_EQ(one_switch.received[1][0].first, 10U + 3 + 50 + 100 + 3 + 50);
  // In a direct network: 2 + 1 cycles in, a link of 3 + 50 with a router of 100 behind it for each hop, 1 + 1 out.
  Cluster ring("topology = ring\nnodes = 8");
  ring.send(1, 4, 64, 10);
  ASSERT_TRUE(ring.finish(1000));
  EXPECT_EQ(ring.received[4][0].first, 10U + 2 + 3 * (3 + 50 + 100) + 2);
}

TEST(Latency, AFasterLinkWaitsForTheWholeFrame) {
  // Cut through, the frame would hold the fast link for as long as it takes on the slow one.
  Cluster cluster("topology = switch\nnodes = 3\ngbps@switch0>* = 400");
  cluster.send(0, 1, 4096, 0);
  ASSERT_TRUE(cluster.finish(10'000));
  const std::uint64_t whole = (50 + 4096 + 49) / 50 + 50 + 100;  // last word at the switch
  const std::uint64_t word = (50 + 64 + 199) / 200;              // first word on the fast link
  EXPECT_EQ(cluster.received[1][0].first, whole + word + 50);
  EXPECT_EQ(cluster.received[1][0].last, cluster.received[1][0].first + 63);  // a node pops a word per cycle
}

TEST(Latency, APausingSenderHoldsItsWayAndNothingElse) {
  Cluster cluster("topology = switch\nnodes = 4");
  cluster.send(0, {1, 640, 0, 0, 3, 500});  // pauses after its third word
  cluster.send(2, {1, 64, 0, 20, 0, 0});    // to the same node: behind it
  cluster.send(2, {3, 64, 1, 20, 0, 0});    // to another: at once
  ASSERT_TRUE(cluster.finish(10'000));
  ASSERT_EQ(cluster.received[1].size(), 2U);
  EXPECT_EQ(cluster.received[1][0].source, 0U);
  EXPECT_GT(cluster.received[1][0].last, 500U);
  EXPECT_GT(cluster.received[1][1].first, cluster.received[1][0].last);
  EXPECT_LT(cluster.received[3][0].last, 300U);
}

TEST(Latency, WholeFramesAreShownWhenTheirLastWordIsThere) {
  Cluster through("topology = point_to_point");
  Cluster whole("topology = point_to_point\nreceive = whole");
  for (Cluster* cluster : {&through, &whole}) {
    cluster->send(0, 1, 4032);
    ASSERT_TRUE(cluster->finish(10'000));
  }
  EXPECT_EQ(whole.received[1][0].first, through.received[1][0].last);
  EXPECT_EQ(whole.received[1][0].last, whole.received[1][0].first + 62);
}

}  // namespace
}  // namespace unisono::sim
