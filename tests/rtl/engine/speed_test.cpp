// How fast engines are, in cycles, on the simulated network: 100 Gb/s (50 bytes per cycle at 250 MHz), frames of
// Ethernet, IPv4 and UDP (66 bytes each besides the engine's header of 64), MTU 8972, links that pause.
//
// Everything is deterministic, so limits are asserted: each is a little above what the engine takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/build.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/engine/engine_node.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstRegion = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kRegionStep = std::uint64_t{4} << 20U;
constexpr double kLink = 50;      // bytes per cycle
constexpr double kFraming = 130;  // bytes on the wire per segment besides its payload

/// Payload bytes per cycle that segments of this size can reach.
double bound(double segment) { return kLink * segment / (segment + kFraming); }

sim::NetworkConfig usual_network() {
  sim::NetworkConfig network;
  network.policy = sim::Policy::kPause;
  return network;
}

sim::AxiMemoryConfig usual_memory() {
  sim::AxiMemoryConfig memory;
  memory.channels = EngineNode::kPorts;
  memory.one_memory = true;
  memory.read_latency = 30;
  memory.write_latency = 20;
  return memory;
}

/// Cycles in which a word that finds the network idle is under way from one node to another.
std::uint64_t transit(const sim::NetworkConfig& network) {
  return 2 * std::uint64_t{network.link.propagation} + network.switch_latency;
}

class Cluster {
 public:
  Cluster(const reference::Job& job, const Agreed& agreed, sim::AxiMemoryConfig memory = usual_memory()) : job_(job) {
    const std::uint32_t size = job.size();
    sim::NetworkConfig config = usual_network();
    config.nodes = size;
    network_ = std::make_unique<sim::Network>(config);
    std::mt19937_64 random(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      memory.seed = size * 64 + rank;
      nodes_.push_back(std::make_unique<EngineNode>(rank, *network_, memory));
      nodes_[rank]->create_communicator(2, 77, size, agreed);
      inputs_.push_back({});
      inputs_[rank].src.resize(job.bytes(rank, Region::kSrc));
      inputs_[rank].dst.resize(job.bytes(rank, Region::kDst));
      for (auto* bytes : {&inputs_[rank].src, &inputs_[rank].dst}) {
        for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
      }
    }
  }

  /// Runs the job; returns its cycles. Its results are those of the interpreter, or the test fails.
  std::uint64_t run(const std::function<void(std::uint64_t)>& each_cycle = {}) {
    const std::uint32_t size = job_.size();
    // After a reset tables are cleared, which is none of the call's time.
    for (std::uint32_t cycle = 0; cycle < 1500; ++cycle) {
      for (auto& node : nodes_) node->tick();
      network_->tick();
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      std::array<EngineNode::Place, 5> regions{};
      for (std::size_t region = 0; region < 5; ++region) {
        regions[region] = {kFirstRegion + region * kRegionStep, job_.region_bytes[rank][region]};
      }
      nodes_[rank]->memory().write(0, regions[0].first, bytes_of(inputs_[rank].src));
      nodes_[rank]->memory().write(0, regions[1].first, bytes_of(inputs_[rank].dst));
      Call call = job_.call;
      call.rank = rank;
      nodes_[rank]->begin(0, 2, call, job_.programs[rank], 7, regions);
    }
    std::uint64_t cycle = 0;
    for (bool all = false; !all; ++cycle) {
      if (cycle == 60'000) {
        ADD_FAILURE() << "not ended";
        return cycle;
      }
      all = true;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        all = all && nodes_[rank]->finished(0);
        if (nodes_[rank]->failed(0) != 0 || nodes_[rank]->rx_fault() != 0) {
          ADD_FAILURE() << "rank " << rank << ": code " << nodes_[rank]->failed(0) << ", fault of Rx "
                        << int{nodes_[rank]->rx_fault()};
          return cycle;
        }
      }
      for (auto& node : nodes_) node->tick();
      network_->tick();
      if (each_cycle) each_cycle(cycle);
    }
    const auto expected = reference::interpret(job_, inputs_);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      std::vector<std::byte> dst(job_.bytes(rank, Region::kDst));
      nodes_[rank]->memory().read(0, kFirstRegion + kRegionStep,
                                  {reinterpret_cast<std::uint8_t*>(dst.data()), dst.size()});
      EXPECT_TRUE(dst == expected[rank]) << "rank " << rank;
    }
    return cycle;
  }

  /// Payload that has been sent on a link, the engine's headers not counted.
  double payload(const std::string& link) const {
    const sim::LinkCounters counters = network_->counters(network_->link_named(link));
    return static_cast<double>(counters.bytes) - 64 * static_cast<double>(counters.frames);
  }
  std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (std::uint32_t link = 0; link < network_->links(); ++link) {
      for (const std::uint64_t drops : network_->counters(link).dropped) sum += drops;
    }
    return sum;
  }

 private:
  static std::span<const std::uint8_t> bytes_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  }

  reference::Job job_;
  std::unique_ptr<sim::Network> network_;
  std::vector<std::unique_ptr<EngineNode>> nodes_;
  std::vector<reference::RankInput> inputs_;
};

Agreed with_segments(std::uint32_t bytes) {
  Agreed agreed;
  agreed.segment_bytes = agreed.eager_limit = bytes;
  agreed.rx_buffers = 16;
  return agreed;
}

using build::Build;
using build::dst;

Call call_of(Collective collective, std::uint32_t size, std::uint64_t count) {
  Call call;
  call.collective = collective;
  call.func = Func::kSum;
  call.dtype = Datatype::kInt32;
  call.size = size;
  call.count = count;
  return call;
}

/// Programs of one's own.
reference::Job job_of(const Call& call, std::vector<Program> programs, std::uint64_t src, std::uint64_t dst_bytes) {
  reference::Job job = reference::make_job(std::move(programs), call.dtype, src, dst_bytes);
  job.call = call;
  return job;
}

reference::Job job_of(Collective collective, const char* algorithm, std::uint32_t size, std::uint64_t count) {
  const Call call = call_of(collective, size, count);
  return reference::make_job(algorithms()[static_cast<std::size_t>(find_algorithm(collective, algorithm))], call);
}

/// The payload per cycle on a link in the middle half of what it carries.
double peak(const reference::Job& job, const Agreed& agreed, const std::string& link, double bytes) {
  Cluster cluster(job, agreed);
  double from = 0, to = 0, from_bytes = 0, to_bytes = 0;
  cluster.run([&](std::uint64_t cycle) {
    const double now = cluster.payload(link);
    if (from == 0 && now >= bytes / 4) {
      from = static_cast<double>(cycle);
      from_bytes = now;
    }
    if (to == 0 && now >= bytes * 3 / 4) {
      to = static_cast<double>(cycle);
      to_bytes = now;
    }
  });
  return (to_bytes - from_bytes) / (to - from);
}

constexpr std::uint64_t kLarge = std::uint64_t{128} << 10U;  // bytes

/// Messages of a pair by turns from the send lane and from the compute lane, short and long ones, and arrivals that
/// issue while the ones before them are still coming.
TEST(Lanes, KeepTheOrderOfAPair) {
  constexpr std::uint32_t kMessages = 24;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    std::mt19937_64 random(seed);
    const Call call = call_of(Collective::kBcast, 3, 1);
    std::vector<Program> programs(3);
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const std::uint64_t own = 1 + random() % (random() % 2 == 0 ? 40 : 1500);
      const std::uint64_t passed = 1 + random() % (random() % 2 == 0 ? 40 : 1500);
      programs[0].moves.push_back(Build(call).take({Region::kSrc, at}).send(1, i).count(passed));
      const auto send_own = [&] {
        programs[1].moves.push_back(Build(call).take({Region::kSrc, at}).send(2, 2 * i).count(own));
      };
      const Move pass_on = Build(call).arrive(0, i).keep(dst(at)).send(2, 2 * i + 1).count(passed);
      send_own();
      programs[1].moves.push_back(pass_on);
      programs[2].moves.push_back(Build(call).arrive(1, 2 * i).keep(dst(at)).count(own));
      at += 4 * own;
      programs[2].moves.push_back(Build(call).arrive(1, 2 * i + 1).keep(dst(at)).count(passed));
      at += 4 * passed;
    }
    sim::AxiMemoryConfig memory = usual_memory();
    memory.stall_ar = memory.stall_r = memory.stall_aw = memory.stall_w = seed == 1 ? 0 : 90;
    memory.jitter = 60;
    memory.reorder = true;
    Agreed agreed = with_segments(1024);
    agreed.rx_buffers = static_cast<std::uint32_t>(seed);
    Cluster cluster(job_of(call, programs, at + 65536, at + 65536), agreed, memory);
    cluster.run();
    if (HasFailure()) return;
  }
}

TEST(Speed, OneLargeSend) {
  for (const std::uint32_t segment : {1024U, 2048U, 4096U, 8192U}) {
    const Call call = call_of(Collective::kBcast, 2, kLarge / 4);
    const reference::Job job = job_of(call,
                                      {{{Build(call).take({Region::kSrc, 0}).send(1, 0).count(call.count)}, {}},
                                       {{Build(call).arrive(0, 0).keep(dst()).count(call.count)}, {}}},
                                      kLarge, kLarge);
    const double rate = peak(job, with_segments(segment), "node0>switch0", kLarge);
    std::printf("one send, segments of %u: %.2f bytes per cycle, %.3f words, %.3f of the framing bound\n", segment,
                rate, rate / 64, rate / bound(segment));
    EXPECT_GT(rate / bound(segment), segment < 2048 ? 0.75 : 0.98);
  }
}

TEST(Speed, BothDirectionsAtOnce) {
  for (const std::uint32_t segment : {2048U, 4096U, 8192U}) {
    const Call call = call_of(Collective::kBcast, 2, kLarge / 4);
    std::vector<Program> programs(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      programs[rank].moves = {Build(call).take({Region::kSrc, 0}).send(1 - rank, 0).count(call.count),
                              Build(call).arrive(1 - rank, 0).keep(dst()).count(call.count)};
    }
    const double rate = peak(job_of(call, programs, kLarge, kLarge), with_segments(segment), "node0>switch0", kLarge);
    std::printf("both directions, segments of %u: %.2f bytes per cycle each way, %.3f of the framing bound\n", segment,
                rate, rate / bound(segment));
    EXPECT_GT(rate / bound(segment), segment < 4096 ? 0.95 : 0.98);
  }
}

/// Cycles of a ring all-reduce as a multiple of the framing bound.
double ring(std::uint32_t ranks, std::uint32_t bytes, std::uint32_t segment) {
  Cluster cluster(job_of(Collective::kAllreduce, "ring", ranks, bytes / 4), with_segments(segment));
  const auto cycles = static_cast<double>(cluster.run());
  const double ideal = 2.0 * (ranks - 1) / ranks * bytes / bound(segment);
  std::printf("ring all-reduce of %u bytes on %u ranks, segments of %u: %.0f cycles, %.3f of the framing bound\n",
              bytes, ranks, segment, cycles, cycles / ideal);
  return cycles / ideal;
}

TEST(Speed, RingAllReduce) {
  EXPECT_LT(ring(4, 1U << 18U, 4096), 1.17);  // whose messages of 64 KB go in segments of 2048
  EXPECT_LT(ring(8, 1U << 20U, 4096), 1.06);
}

TEST(Speed, ChainBroadcast) {
  for (const std::uint64_t bytes : {64U, 4096U, 65536U}) {
    std::array<double, 2> cycles{};
    for (std::uint32_t i = 0; i < 2; ++i) {
      Cluster cluster(job_of(Collective::kBcast, "chain", i == 0 ? 3 : 6, bytes / 4), with_segments(4096));
      cycles[i] = static_cast<double>(cluster.run());
    }
    const double hop = (cycles[1] - cycles[0]) / 3;
    std::printf(
        "chain broadcast of %llu bytes: %.0f cycles to the third rank, %.1f per hop, %.1f without the network\n",
        static_cast<unsigned long long>(bytes), cycles[0], hop, hop - static_cast<double>(transit(usual_network())));
    EXPECT_LT(hop - static_cast<double>(transit(usual_network())), bytes == 64 ? 53 : 200);
  }
}

TEST(Speed, Incast) {
  constexpr std::uint32_t kRanks = 10;
  constexpr std::uint64_t kEach = 32U << 10U;
  for (const std::uint32_t segment : {4096U, 8192U}) {
    const Call call = call_of(Collective::kGather, kRanks, kEach / 4);
    std::vector<Program> programs(kRanks);
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
      programs[0].moves.push_back(Build(call).arrive(rank, 0).keep(dst((rank - 1) * kEach)).count(call.count));
      programs[rank].moves = {Build(call).take({Region::kSrc, 0}).send(0, 0).count(call.count)};
    }
    Cluster cluster(job_of(call, programs, kEach, kEach * (kRanks - 1)), with_segments(segment));
    double from = 0, to = 0;
    constexpr double kAll = kEach * (kRanks - 1);
    const std::uint64_t cycles = cluster.run([&](std::uint64_t cycle) {
      const double now = cluster.payload("switch0>node0");
      if (from == 0 && now >= kAll / 8) from = static_cast<double>(cycle);
      if (to == 0 && now >= kAll * 7 / 8) to = static_cast<double>(cycle);
    });
    const double rate = kAll * 3 / 4 / (to - from);
    std::printf(
        "incast 9 to 1, segments of %u: %llu cycles, %.2f bytes per cycle, %.3f of the framing bound, %llu lost\n",
        segment, static_cast<unsigned long long>(cycles), rate, rate / bound(segment),
        static_cast<unsigned long long>(cluster.dropped()));
    EXPECT_GT(rate / bound(segment), 0.95);
    EXPECT_EQ(cluster.dropped(), 0U);
  }
}

/// Cycles per message in a stream of them from rank 0 to the others in turn.
double small_messages(std::uint32_t receivers, std::uint32_t bytes) {
  constexpr std::uint32_t kMessages = 240;
  const Call call = call_of(Collective::kBcast, receivers + 1, bytes / 4);
  std::vector<Program> programs(receivers + 1);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    const std::uint32_t to = 1 + i % receivers;
    programs[0].moves.push_back(
        Build(call).take({Region::kSrc, std::uint64_t{i} * bytes}).send(to, i / receivers).count(call.count));
    programs[to].moves.push_back(
        Build(call).arrive(0, i / receivers).keep(dst(std::uint64_t{i} * bytes)).count(call.count));
  }
  Agreed agreed = with_segments(4096);
  agreed.rx_buffers = 64;
  return 1 / (peak(job_of(call, programs, std::uint64_t{kMessages} * bytes, std::uint64_t{kMessages} * bytes), agreed,
                   "node0>switch0", kMessages * bytes) /
              bytes);
}

TEST(Speed, SmallMessages) {
  for (const std::uint32_t receivers : {1U, 4U}) {
    const double cycles = small_messages(receivers, 64);
    std::printf("messages of 64 bytes from one rank to %u: one in %.1f cycles\n", receivers, cycles);
    EXPECT_LT(cycles, receivers == 1 ? 32 : 12.5);
  }
}

TEST(Speed, ReduceInFlight) {
  // One rank adds what arrives at the rate of the link; by itself a word per cycle.
  for (const std::uint32_t segment : {4096U, 8192U}) {
    // Long enough that no buffer on the way hides what the lane does not keep up with.
    constexpr std::uint64_t kLonger = 4 * kLarge;
    const Call call = call_of(Collective::kReduce, 2, kLonger / 4);
    const reference::Job job =
        job_of(call,
               {{{Build(call).take({Region::kSrc, 0}).send(1, 0).count(call.count)}, {}},
                {{Build(call).take({Region::kSrc, 0}).arrive(0, 0).keep(dst()).count(call.count)}, {}}},
               kLonger, kLonger);
    const double rate = peak(job, with_segments(segment), "switch0>node1", kLonger);
    std::printf("reduction of what arrives, segments of %u: %.2f bytes per cycle, %.3f of the framing bound\n", segment,
                rate, rate / bound(segment));
    EXPECT_GT(rate / bound(segment), 0.98);
    const Call own = call_of(Collective::kReduce, 2, kLarge / 4);
    std::vector<Program> programs(2);
    programs[0].moves = {Build(own).take({Region::kSrc, 0}).with(dst()).keep(dst()).count(own.count)};
    Cluster cluster(job_of(own, programs, kLarge, kLarge), with_segments(segment));
    const auto cycles = static_cast<double>(cluster.run());
    std::printf("reduction in memory, segments of %u: %.0f cycles, %.3f words per cycle\n", segment, cycles,
                kLarge / 64 / cycles);
    EXPECT_GT(kLarge / 64 / cycles, 0.92);
  }
}

}  // namespace
}  // namespace unisono::rtl
