// The cluster itself: what it does is the same with any number of threads.
#include "sim/cluster/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithm.hpp"
#include "reference/job.hpp"
#include "sim/cluster/host.hpp"
#include "sim/cluster/team.hpp"

namespace unisono::rtl {
namespace {

TEST(Team, DoesEachItemOnceInEachRound) {
  constexpr std::uint32_t kItems = 5;
  constexpr int kRounds = 20000;
  for (const unsigned threads : {1U, 2U, 3U, 9U}) {
    std::vector<int> done(kItems);  // without locks: a race would lose some, and a thread sanitizer would tell
    int round = 0;
    std::atomic<bool> wrong = false;
    sim::Team team(kItems, threads, [&](std::uint32_t item) {
      if (done[item]++ != round) wrong = true;
    });
    EXPECT_EQ(team.threads(), std::min(threads, kItems));
    for (; round < kRounds; ++round) team.run();
    EXPECT_EQ(done, std::vector<int>(kItems, kRounds)) << threads << " threads";
    EXPECT_FALSE(wrong);
  }
}

TEST(Team, WakesThreadsThatWereLeftAlone) {
  std::atomic<int> done = 0;
  sim::Team team(4, 4, [&](std::uint32_t) { ++done; });
  for (int round = 1; round <= 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // they block
    team.run();
    EXPECT_EQ(done, 4 * round);
  }
}

TEST(Team, WorksOnDifferentItemsAtTheSameTime) {
  std::atomic<int> inside = 0;
  sim::Team team(2, 2, [&](std::uint32_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();  // for ever, if the items were done in turn
  });
  team.run();
  EXPECT_EQ(inside, 2);
}

TEST(Team, ThrowsWhatTheLowestItemThrew) {
  for (const unsigned threads : {2U, 4U}) {
    bool fails = true;
    std::vector<int> done(6);
    sim::Team team(6, threads, [&](std::uint32_t item) {
      ++done[item];
      if (fails && item % 2 == 1) throw std::runtime_error(std::to_string(item));
    });
    try {
      team.run();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "1");
    }
    fails = false;
    team.run();
    EXPECT_EQ(done, std::vector<int>(6, 2));
  }
}

struct Course {
  std::vector<std::uint64_t> cycles;  ///< in which something had happened
  std::vector<std::vector<std::byte>> results;
  bool operator==(const Course&) const = default;
};

/// An allreduce with memory that stalls at random.
Course course_of(unsigned threads, std::uint64_t seed) {
  constexpr std::uint32_t kNodes = 3;
  constexpr std::uint64_t kCount = 700;
  sim::ClusterConfig config;
  config.network.nodes = kNodes;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 20;
  config.memory.write_latency = 10;
  config.memory.jitter = 15;
  config.memory.stall_r = config.memory.stall_w = 60;
  config.firmware = UNISONO_FIRMWARE_HEX;
  config.seed = seed;
  config.threads = threads;
  sim::Cluster cluster(config);
  EXPECT_EQ(cluster.threads(), std::min(threads, kNodes));
  Course course;
  std::vector<sim::Host> hosts;
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    hosts.emplace_back(cluster, node);
    hosts[node].run();
    course.cycles.push_back(cluster.cycle());
  }
  for (sim::Host& host : hosts) host.create_communicator(3, 77, kNodes, {});
  const auto all = algorithms();
  const auto ring = std::find_if(all.begin(), all.end(), [](const Algorithm& algorithm) {
    return algorithm.collective == Collective::kAllreduce && std::string(algorithm.name) == "ring";
  });
  Call call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kInt32;
  call.size = kNodes;
  call.count = kCount;
  const reference::Job job = reference::make_job(*ring, call);
  const auto place = [](std::uint32_t rank, std::uint64_t region) {
    return sim::Node::kMemoryAddress + (region << 20U) + 16 * (region + rank);
  };
  std::mt19937_64 random(seed);
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    const auto& bytes = job.region_bytes[rank];
    std::vector<std::byte> source(bytes[0]);
    for (std::byte& byte : source) byte = static_cast<std::byte>(random());
    cluster.node(rank).store(place(rank, 0), source);
    CallDescriptor descriptor;
    descriptor.collective = call.collective;
    descriptor.algorithm = static_cast<std::uint8_t>(ring - all.begin() + 1);
    descriptor.func = call.func;
    descriptor.dtype = call.dtype;
    descriptor.communicator = 3;
    descriptor.count = kCount;
    descriptor.call_id = 5;
    descriptor.src_address = place(rank, 0);
    descriptor.src_bytes = bytes[0];
    descriptor.dst_address = place(rank, 1);
    descriptor.dst_bytes = bytes[1];
    descriptor.scratch_address = place(rank, 2);
    descriptor.scratch_bytes = bytes[2];
    hosts[rank].submit(descriptor);
  }
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    EXPECT_EQ(hosts[rank].completion(200'000), std::pair(5U, std::uint16_t{0}));
    course.cycles.push_back(cluster.cycle());
    course.cycles.push_back(cluster.node(rank).first_sent());
    course.cycles.push_back(cluster.network().pushed(rank));
    course.cycles.push_back(cluster.node(rank).memory().counters(0).read_beats);
    auto& result = course.results.emplace_back(job.region_bytes[rank][1]);
    cluster.node(rank).load(place(rank, 1), result);
  }
  return course;
}

TEST(Cluster, HasTheSameCyclesWithAnyNumberOfThreads) {
  const Course one = course_of(1, 9);
  EXPECT_EQ(one.results[0], one.results[1]);
  for (const unsigned threads : {2U, 3U, 8U}) {
    const Course more = course_of(threads, 9);
    EXPECT_EQ(more.cycles, one.cycles) << threads << " threads";
    EXPECT_TRUE(more.results == one.results) << threads << " threads";
  }
  // What is compared does tell courses apart.
  EXPECT_NE(course_of(2, 10).cycles, one.cycles);
}

}  // namespace
}  // namespace unisono::rtl
