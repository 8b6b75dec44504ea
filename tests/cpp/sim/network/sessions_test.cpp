// Sessions: what a node gets of each is a beginning of what was sent, in order and once, and a gap is told.
#include "sim/network/sessions.hpp"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cpp/sim/network/cluster.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kFrames = 200;  ///< of each session
constexpr std::uint32_t kNodes = 3;
constexpr std::uint32_t kLeast = 60;  ///< bytes of a session's first frame; each is a byte longer than the one before

using Name = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>;

/// Every node sends to every other on two ports; what has come of each session, by number.
struct Seen {
  explicit Seen(const std::string& faults, std::uint64_t seed) {
    NetworkConfig config = parse_network("nodes = 3\nseed = " + std::to_string(seed) + "\n" + faults);
    config.sessions = true;
    cluster = std::make_unique<Cluster>(config);
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      for (std::uint32_t n = 0; n < kNodes; ++n) {
        for (const std::uint32_t to : {(n + 1) % kNodes, (n + 2) % kNodes}) {
          for (std::uint16_t port = 0; port < 2; ++port) cluster->send(n, {to, kLeast + i, port, 0, 0, 0});
        }
      }
    }
    EXPECT_TRUE(cluster->finish(2'000'000));
    cluster->run(1);
    cluster->expect_conserved();
    for (std::uint32_t n = 0; n < kNodes; ++n) {
      for (const Arrival& arrival : cluster->received[n]) {
        if (!arrival.damaged) came[{arrival.source, n, arrival.port}].push_back(arrival.bytes - kLeast);
        EXPECT_EQ(arrival.wrong_bits, 0U);
      }
    }
    for (const BrokenSession& broken : cluster->network.broken_sessions()) {
      EXPECT_TRUE(gaps.try_emplace({broken.source, broken.destination, broken.port}, broken).second) << "told twice";
    }
  }
  std::unique_ptr<Cluster> cluster;
  std::map<Name, std::vector<std::uint32_t>> came;
  std::map<Name, BrokenSession> gaps;
};

/// Returns how many sessions have broken.
std::size_t expect_beginnings(const std::string& faults, std::uint64_t seed) {
  SCOPED_TRACE(faults + ", seed " + std::to_string(seed));
  const Seen run(faults, seed);
  for (std::uint32_t source = 0; source < kNodes; ++source) {
    for (std::uint32_t destination = 0; destination < kNodes; ++destination) {
      for (std::uint16_t port = 0; port < 2; ++port) {
        if (source == destination) continue;
        const Name name{source, destination, port};
        const auto found = run.came.find(name);
        const std::vector<std::uint32_t> came = found == run.came.end() ? std::vector<std::uint32_t>{} : found->second;
        for (std::uint32_t i = 0; i < came.size(); ++i) EXPECT_EQ(came[i], i);
        const auto gap = run.gaps.find(name);
        EXPECT_EQ(gap != run.gaps.end(), came.size() < kFrames);
        if (gap == run.gaps.end()) continue;
        EXPECT_EQ(gap->second.missing, came.size());
        EXPECT_GT(gap->second.until, gap->second.missing);
        EXPECT_LE(gap->second.until, kFrames);
      }
    }
  }
  return run.gaps.size();
}

TEST(Sessions, NothingIsMissingWithoutFaults) {
  EXPECT_EQ(expect_beginnings("", 1), 0U);
  EXPECT_EQ(expect_beginnings("receive = whole\npolicy = pause", 1), 0U);
}

TEST(Sessions, WhatComesTwiceIsPassedOnce) {
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    EXPECT_EQ(expect_beginnings("duplicate = 0.2", seed), 0U);
  }
  const Seen run("duplicate = 0.2", 1);
  std::uint64_t dropped = 0;
  for (std::uint32_t n = 0; n < kNodes; ++n) {
    dropped += run.cluster->link("switch0>node" + std::to_string(n)).lost(Drop::kSession);
  }
  EXPECT_EQ(dropped, run.cluster->total().duplicated);
  EXPECT_GT(dropped, 100U);
}

TEST(Sessions, NothingPassesBehindAGap) {
  for (const char* faults : {"loss = 0.003", "reorder = 0.003", "corrupt = 0.003", "down@node1>switch0 = 900-1000",
                             "buffer_bytes = 9000\ngbps@switch0>node2 = 40",
                             "loss = 0.01\nduplicate = 0.1\nreorder = 0.01\ncorrupt = 0.01\nreceive = whole"}) {
    std::size_t broken = 0;
    for (std::uint64_t seed = 1; seed < 9; ++seed) broken += expect_beginnings(faults, seed);
    EXPECT_GT(broken, 4U) << faults;
  }
}

TEST(Sessions, ALossAtTheEndIsNoticedWhenNothingIsUnderWay) {
  NetworkConfig config = parse_network("topology = point_to_point\ndown@node0>node1 = 1000-2000");
  config.sessions = true;
  Cluster cluster(config);
  cluster.send(0, {1, 64, 0, 0, 0, 0});
  cluster.send(0, {1, 64, 0, 1200, 0, 0});
  cluster.run(1200);
  EXPECT_TRUE(cluster.network.broken_sessions().empty());
  cluster.run(200);
  ASSERT_EQ(cluster.network.broken_sessions().size(), 1U);
  const BrokenSession& broken = cluster.network.broken_sessions().front();
  EXPECT_EQ(broken.missing, 1U);
  EXPECT_EQ(broken.until, 2U);
  EXPECT_TRUE(broken.nothing_came);
}

TEST(Sessions, AFrameThatIsCutOffBreaksItsSession) {
  for (const char* mode : {"cut_through", "whole"}) {
    NetworkConfig config = parse_network(std::string("topology = point_to_point\ndown = 100-101\nreceive = ") + mode);
    config.sessions = true;
    Cluster cluster(config);
    cluster.send(0, {1, 6400, 0, 0, 0, 0});
    cluster.send(0, {1, 300, 0, 0, 0, 0});
    ASSERT_TRUE(cluster.finish(10'000));
    cluster.run(1);
    cluster.expect_conserved();
    for (const Arrival& arrival : cluster.received[1]) EXPECT_TRUE(arrival.damaged);
    ASSERT_EQ(cluster.network.broken_sessions().size(), 1U);
    EXPECT_EQ(cluster.network.broken_sessions().front().missing, 0U);
  }
}

}  // namespace
}  // namespace unisono::sim
