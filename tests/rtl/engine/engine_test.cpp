// Engines on a simulated network, with memory behind AXI4, against the interpreter: every algorithm that they admit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "collectives/algorithm.hpp"
#include "core/footprint.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/core/jobs.hpp"
#include "tests/rtl/engine/engine_node.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstRegion = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kRegionStep = std::uint64_t{256} << 10U;

/// How the machine around the engines behaves.
struct Machine {
  Agreed agreed;
  sim::AxiMemoryConfig memory;
  sim::NetworkConfig network;
  std::uint64_t seed = 1;
};

Machine usual() {
  Machine machine;
  machine.memory.channels = EngineNode::kPorts;
  machine.memory.one_memory = true;
  machine.memory.read_latency = 30;
  machine.memory.write_latency = 20;
  machine.network.policy = sim::Policy::kPause;
  return machine;
}

struct Outcome {
  std::uint64_t cycles = 0;
  std::vector<std::vector<std::byte>> dst;
};

std::span<const std::uint8_t> bytes_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// Runs a job on engines and returns what stands in dst afterwards. Fails the test if it does not end.
Outcome run(const reference::Job& job, const std::vector<reference::RankInput>& inputs, const Machine& machine,
            std::uint64_t limit = 400'000) {
  const std::uint32_t size = job.size();
  sim::NetworkConfig config = machine.network;
  config.nodes = size;
  config.seed = machine.seed;
  sim::Network network(config);
  sim::AxiMemoryConfig memory = machine.memory;
  std::vector<std::unique_ptr<EngineNode>> nodes;
  Outcome outcome;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    memory.seed = machine.seed * 64 + rank;
    nodes.push_back(std::make_unique<EngineNode>(rank, network, memory));
    nodes[rank]->create_communicator(2, 77, size, machine.agreed);
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    std::array<EngineNode::Place, 5> regions{};
    for (std::size_t region = 0; region < 5; ++region) {
      // Odd places, so that nothing relies on alignment to words.
      regions[region] = {kFirstRegion + region * kRegionStep + 16 * (region + rank), job.region_bytes[rank][region]};
    }
    nodes[rank]->memory().write(0, regions[0].first, bytes_of(inputs[rank].src));
    nodes[rank]->memory().write(0, regions[1].first, bytes_of(inputs[rank].dst));
    if (!job.params.empty() && !job.params[rank].empty()) {
      const auto* words = reinterpret_cast<const std::uint8_t*>(job.params[rank].data());
      nodes[rank]->memory().write(0, regions[3].first, {words, job.params[rank].size() * sizeof job.params[rank][0]});
    }
    Call call = job.call;
    call.rank = rank;
    nodes[rank]->begin(rank % 8, 2, call, job.programs[rank], 7, regions);
  }
  for (std::uint64_t cycle = 0;; ++cycle) {
    bool all = true;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      all = all && nodes[rank]->finished(rank % 8);
      if (nodes[rank]->failed(rank % 8) != 0 || nodes[rank]->rx_fault() != 0) {
        ADD_FAILURE() << "rank " << rank << ": code " << nodes[rank]->failed(rank % 8) << ", fault of Rx "
                      << int{nodes[rank]->rx_fault()};
        return outcome;
      }
    }
    if (all) {
      outcome.cycles = cycle;
      break;
    }
    if (cycle == limit) {
      ADD_FAILURE() << "not ended after " << limit << " cycles";
      return outcome;
    }
    for (auto& node : nodes) node->tick();
    network.tick();
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    std::vector<std::byte> dst(job.region_bytes[rank][1]);
    nodes[rank]->memory().read(0, kFirstRegion + kRegionStep + 16 * (1 + rank),
                               {reinterpret_cast<std::uint8_t*>(dst.data()), dst.size()});
    outcome.dst.push_back(std::move(dst));
  }
  return outcome;
}

std::vector<reference::RankInput> random_inputs(const reference::Job& job, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<reference::RankInput> inputs(job.size());
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    inputs[rank].src.resize(job.bytes(rank, Region::kSrc));
    inputs[rank].dst.resize(job.bytes(rank, Region::kDst));
    for (auto* bytes : {&inputs[rank].src, &inputs[rank].dst}) {
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    }
  }
  return inputs;
}

class Engines : public testing::TestWithParam<const Algorithm*> {};

void check(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count, const Machine& settings) {
  Call call;
  call.collective = algorithm.collective;
  call.func = reference::is_reduction(algorithm.collective) ? Func::kSum : Func::kNone;
  call.dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kInt32;
  call.size = ranks;
  call.root = reference::is_rooted(algorithm.collective) ? ranks - 1 : 0;
  call.count = algorithm.collective == Collective::kBarrier ? 0 : count;
  // Blocks of a v-collective are up to twice as long, with gaps between them.
  if (reference::is_vector(algorithm.collective)) call.count = std::min<std::uint64_t>(count, 2500);
  for (const reference::Job& job : jobs_of(algorithm, call, settings.seed + count)) {
    const auto inputs = random_inputs(job, settings.seed + count);
    const auto expected = reference::interpret(job, inputs);
    const Outcome outcome = run(job, inputs, settings);
    ASSERT_EQ(outcome.dst.size(), expected.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(outcome.dst[rank] == expected[rank]) << describe(job) << ", rank " << rank;
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(Engines, AgreesWithTheInterpreter) {
  for (const std::uint32_t ranks : {2U, 5U}) {
    for (const std::uint64_t count : {7U, 6001U}) {
      check(*GetParam(), ranks, count, usual());
      if (HasFailure()) return;
    }
  }
}

TEST_P(Engines, AgreesUnderRandomStalls) {
  Machine machine = usual();
  machine.memory.stall_ar = machine.memory.stall_r = machine.memory.stall_aw = machine.memory.stall_w = 60;
  machine.memory.jitter = 40;
  machine.memory.reorder = true;
  machine.agreed.eager_limit = 1024;
  machine.agreed.segment_bytes = 1024;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    machine.seed = seed;
    machine.agreed.rx_buffers = static_cast<std::uint32_t>(seed);
    check(*GetParam(), 3 + static_cast<std::uint32_t>(seed % 2), 3001, machine);
    if (HasFailure()) return;
  }
}

std::vector<const Algorithm*> ported() {
  std::vector<const Algorithm*> list;
  for (const Algorithm& algorithm : algorithms()) {
    const bool pair = algorithm.collective == Collective::kSend || algorithm.collective == Collective::kRecv ||
                      algorithm.collective == Collective::kPut || algorithm.collective == Collective::kGet;
    if (!pair && !algorithm.direct) list.push_back(&algorithm);
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Table, Engines, testing::ValuesIn(ported()), [](const auto& info) {
  return std::string(name_of(info.param->collective)) + "_" + info.param->name;
});

}  // namespace
}  // namespace unisono::rtl
