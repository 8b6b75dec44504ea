// The core of the hardware engine, several of them, against the interpreter: every algorithm that a core admits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "collectives/algorithm.hpp"
#include "core/footprint.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/core/core_node.hpp"
#include "tests/rtl/core/jobs.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstRegion = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kRegionStep = std::uint64_t{256} << 10U;

struct Outcome {
  std::uint64_t cycles = 0;
  std::vector<std::vector<std::byte>> dst;
  NodeCounters counters;
};

/// Runs a job on cores and returns what stands in dst afterwards. Fails the test if it does not end.
Outcome run(const reference::Job& job, const std::vector<reference::RankInput>& inputs, const MachineSettings& settings,
            std::uint64_t limit = 400'000) {
  const std::uint32_t size = job.size();
  std::vector<std::unique_ptr<CoreNode>> nodes;
  std::vector<std::array<std::pair<std::uint64_t, std::uint64_t>, 5>> places;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    nodes.push_back(std::make_unique<CoreNode>(rank, size, settings));
    std::array<std::pair<std::uint64_t, std::uint64_t>, 5> regions{};
    for (std::size_t region = 0; region < 5; ++region) {
      // Odd places, so that nothing relies on alignment to words.
      regions[region] = {kFirstRegion + region * kRegionStep + 16 * (region + rank), job.region_bytes[rank][region]};
    }
    std::memcpy(nodes[rank]->memory().data() + regions[0].first, inputs[rank].src.data(), inputs[rank].src.size());
    std::memcpy(nodes[rank]->memory().data() + regions[1].first, inputs[rank].dst.data(), inputs[rank].dst.size());
    if (!job.params.empty() && !job.params[rank].empty()) {
      std::memcpy(nodes[rank]->memory().data() + regions[3].first, job.params[rank].data(),
                  job.params[rank].size() * sizeof job.params[rank][0]);
    }
    places.push_back(regions);
  }
  std::deque<Packet> network;
  Outcome outcome;
  for (std::uint64_t cycle = 0;; ++cycle) {
    bool all = network.empty();
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      all = all && nodes[rank]->finished(rank % 8);
      if (nodes[rank]->failed(rank % 8) != 0) {
        ADD_FAILURE() << "rank " << rank << " failed with code " << nodes[rank]->failed(rank % 8);
        return outcome;
      }
    }
    if (all && cycle > settings.skew * size) {
      outcome.cycles = cycle;
      break;
    }
    if (cycle == limit) {
      ADD_FAILURE() << "not ended after " << limit << " cycles";
      return outcome;
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      // The last rank is the first to enter.
      if (cycle != settings.skew * (size - 1 - rank)) continue;
      Call call = job.call;
      call.rank = rank;
      nodes[rank]->begin(rank % 8, call, job.programs[rank], 7, places[rank]);
    }
    for (auto& node : nodes) node->tick(cycle, network);
    // The latency is the same for all, so the order of leaving is that of coming.
    while (!network.empty() && network.front().ready <= cycle) {
      const std::uint32_t to = network.front().to;
      nodes[to]->deliver(std::move(network.front()));
      network.pop_front();
    }
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::uint64_t at = kFirstRegion + kRegionStep + 16 * (1 + rank);
    const std::byte* begin = nodes[rank]->memory().data() + at;
    outcome.dst.emplace_back(begin, begin + job.region_bytes[rank][1]);
    const NodeCounters& one = nodes[rank]->counters();
    outcome.counters.plugin_words += one.plugin_words;
    outcome.counters.buffered_segments += one.buffered_segments;
    outcome.counters.sent_words += one.sent_words;
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
      const Datatype dtype = job.call.dtype;
      if (dtype != Datatype::kFp16 && dtype != Datatype::kBf16) continue;
      // Numbers of like size, so that most sums round; which of two NaN is kept is not said.
      const std::uint16_t kept = dtype == Datatype::kFp16 ? 0x83ff : 0x807f;
      const unsigned shift = dtype == Datatype::kFp16 ? 10 : 7, least = dtype == Datatype::kFp16 ? 11 : 123;
      for (std::size_t at = 0; at + 2 <= bytes->size(); at += 2) {
        std::uint16_t number = 0;
        std::memcpy(&number, bytes->data() + at, 2);
        number = static_cast<std::uint16_t>((number & kept) | (least + random() % 8) << shift);
        std::memcpy(bytes->data() + at, &number, 2);
      }
    }
  }
  return inputs;
}

class Core : public testing::TestWithParam<const Algorithm*> {};

void check(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count, const MachineSettings& settings,
           Datatype dtype = Datatype::kInt32, Func func = Func::kSum) {
  Call call;
  call.collective = algorithm.collective;
  call.func = reference::is_reduction(algorithm.collective) ? func : Func::kNone;
  call.dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone : dtype;
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

TEST_P(Core, AgreesWithTheInterpreter) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 5U}) {
    for (const std::uint64_t count : {1U, 7U, 1000U, 6001U}) {
      check(*GetParam(), ranks, count, {});
      if (HasFailure()) return;
    }
  }
}

// Several messages of 16-bit numbers round once, at the end of their sum.
class Reductions : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Reductions, OfHalfNumbersRoundOnce) {
  for (const bool stalls : {false, true}) {
    MachineSettings settings;
    settings.seed = 5;
    settings.stall_percent = stalls ? 30 : 0;
    for (const Datatype dtype : {Datatype::kFp16, Datatype::kBf16}) {
      for (const Func func : {Func::kSum, Func::kProd, Func::kMax}) {
        for (const std::uint64_t count : {1U, 17U, 1300U}) {
          check(*GetParam(), 5, count, settings, dtype, func);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(Core, TakesWhatComesBeforeItsCall) {
  MachineSettings settings;
  settings.skew = 700;
  for (const std::uint64_t count : {3U, 2500U}) {
    check(*GetParam(), 4, count, settings);
    if (HasFailure()) return;
  }
}

TEST_P(Core, AgreesUnderRandomStalls) {
  MachineSettings settings;
  settings.stall_percent = 30;
  settings.eager_limit = 1024;
  settings.segment_bytes = 1024;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    settings.seed = seed;
    settings.rx_buffers = static_cast<std::uint32_t>(seed);
    settings.skew = seed == 3 ? 400 : 0;
    check(*GetParam(), 3 + static_cast<std::uint32_t>(seed % 2), 3001, settings);
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

std::vector<const Algorithm*> reductions() {
  std::vector<const Algorithm*> list = ported();
  std::erase_if(list, [](const Algorithm* algorithm) { return !reference::is_reduction(algorithm->collective); });
  return list;
}

std::string name_of_algorithm(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(name_of(info.param->collective)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(Table, Core, testing::ValuesIn(ported()), name_of_algorithm);
INSTANTIATE_TEST_SUITE_P(Table, Reductions, testing::ValuesIn(reductions()), name_of_algorithm);

}  // namespace
}  // namespace unisono::rtl
