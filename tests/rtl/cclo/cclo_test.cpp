// The whole engine, from call descriptors to results, on a simulated network, against the interpreter.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint32_t kPlace = 3;  ///< of the communicator in the engines' tables
constexpr std::uint64_t kRegionStep = std::uint64_t{1} << 20U;
constexpr std::uint64_t kLimit = 400'000;

sim::ClusterConfig usual(std::uint32_t nodes) {
  sim::ClusterConfig config;
  config.network.nodes = nodes;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = 2;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

/// A cluster whose nodes have one communicator of all.
class Job {
 public:
  explicit Job(std::uint32_t size, const sim::Host::Agreed& agreed = {}) : cluster_(usual(size)) {
    for (std::uint32_t node = 0; node < size; ++node) {
      hosts_.emplace_back(cluster_, node);
      hosts_[node].run();
    }
    for (std::uint32_t node = 0; node < size; ++node) hosts_[node].create_communicator(kPlace, 77, size, agreed);
  }

  sim::Cluster& cluster() { return cluster_; }
  sim::Host& host(std::uint32_t node) { return hosts_[node]; }
  std::uint32_t size() const { return cluster_.nodes(); }

 private:
  sim::Cluster cluster_;
  std::vector<sim::Host> hosts_;
};

Job& job_of(std::uint32_t size) {
  static std::array<std::unique_ptr<Job>, 9> jobs;
  if (!jobs[size]) jobs[size] = std::make_unique<Job>(size);
  return *jobs[size];
}

std::uint32_t next_call_id() {
  static std::uint32_t id = 0;
  return ++id;
}

std::uint64_t place_of(std::uint32_t rank, std::size_t region) {
  // Odd places, so that nothing relies on alignment to words.
  return sim::Node::kMemoryAddress + region * kRegionStep + 16 * (region + rank);
}

TEST(Cclo, AnswersANop) {
  Job& job = job_of(2);
  CallDescriptor call;
  call.collective = Collective::kNop;
  call.call_id = next_call_id();
  job.host(1).submit(call);
  EXPECT_EQ(job.host(1).completion(1000), std::pair(call.call_id, std::uint16_t{0}));
}

TEST(Cclo, RefusesAnUnknownAlgorithm) {
  Job& job = job_of(2);
  CallDescriptor call;
  call.collective = Collective::kBarrier;
  call.algorithm = 250;
  call.communicator = kPlace;
  call.call_id = next_call_id();
  job.host(0).submit(call);
  const auto [id, code] = job.host(0).completion(10000);
  EXPECT_EQ(id, call.call_id);
  EXPECT_EQ(code, static_cast<std::uint16_t>(ErrorCode::kUnknownAlgorithm));
}

class Calls : public testing::TestWithParam<const Algorithm*> {};

void check(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count) {
  Call call;
  call.collective = algorithm.collective;
  call.func = reference::is_reduction(algorithm.collective) ? Func::kSum : Func::kNone;
  call.dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  call.size = ranks;
  call.root = reference::is_rooted(algorithm.collective) ? ranks - 1 : 0;
  call.count = algorithm.collective == Collective::kBarrier ? 0 : count;
  if (algorithm.admits != nullptr && !algorithm.admits(call)) return;
  const reference::Job expected_job = reference::make_job(algorithm, call);
  std::mt19937_64 random(count + ranks);
  std::vector<reference::RankInput> inputs(ranks);
  Job& job = job_of(ranks);
  const std::uint32_t id = next_call_id();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    CallDescriptor descriptor;
    descriptor.collective = call.collective;
    descriptor.algorithm = static_cast<std::uint8_t>(&algorithm - algorithms().data() + 1);
    descriptor.func = call.func;
    descriptor.dtype = call.dtype;
    descriptor.communicator = kPlace;
    descriptor.root = call.root;
    descriptor.count = call.count;
    descriptor.call_id = id;
    const auto& bytes = expected_job.region_bytes[rank];
    descriptor.src_address = place_of(rank, 0);
    descriptor.src_bytes = bytes[0];
    descriptor.dst_address = place_of(rank, 1);
    descriptor.dst_bytes = bytes[1];
    descriptor.scratch_address = place_of(rank, 2);
    descriptor.scratch_bytes = bytes[2];
    std::uniform_real_distribution<float> values(-1000, 1000);
    for (std::size_t region = 0; region < 2; ++region) {
      auto& data = region == 0 ? inputs[rank].src : inputs[rank].dst;
      data.resize(bytes[region]);
      for (std::size_t i = 0; i + 4 <= data.size(); i += 4) {
        const float value = values(random);
        std::memcpy(&data[i], &value, 4);
      }
      job.cluster().node(rank).store(place_of(rank, region), data);
    }
    job.host(rank).submit(descriptor);
  }
  const auto expected = reference::interpret(expected_job, inputs);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(job.host(rank).completion(kLimit), std::pair(id, std::uint16_t{0})) << "rank " << rank;
    std::vector<std::byte> dst(expected_job.region_bytes[rank][1]);
    job.cluster().node(rank).load(place_of(rank, 1), dst);
    EXPECT_TRUE(dst == expected[rank]) << ranks << " ranks, " << count << " elements, rank " << rank;
  }
}

TEST_P(Calls, AgreeWithTheInterpreter) {
  for (const std::uint32_t ranks : {2U, 3U, 5U}) {
    for (const std::uint64_t count : {1U, 1000U, 6001U}) {
      check(*GetParam(), ranks, count);
      if (HasFailure()) return;
    }
  }
}

std::vector<const Algorithm*> ported() {
  std::vector<const Algorithm*> list;
  for (const Algorithm& algorithm : algorithms()) {
    const bool pair = algorithm.collective == Collective::kSend || algorithm.collective == Collective::kRecv ||
                      algorithm.collective == Collective::kPut || algorithm.collective == Collective::kGet;
    // What a nop has in the field `algorithm` says what it is for.
    if (!pair && algorithm.collective != Collective::kNop && !algorithm.direct &&
        !reference::is_vector(algorithm.collective))
      list.push_back(&algorithm);
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Table, Calls, testing::ValuesIn(ported()), [](const auto& tested) {
  return std::string(name_of(tested.param->collective)) + "_" + tested.param->name;
});

}  // namespace
}  // namespace unisono::rtl
