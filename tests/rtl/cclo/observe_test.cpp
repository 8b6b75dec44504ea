// Counters and the trace of moves: what they say of a run whose course is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "reference/job.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"
#include "sim/cluster/trace.hpp"
#include "tests/rtl/cclo/call_case.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint32_t kPlace = 3, kNumber = 77;
constexpr std::uint64_t kLimit = 400'000;

sim::ClusterConfig traced(std::uint32_t nodes) {
  sim::ClusterConfig config;
  config.network.nodes = nodes;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.firmware = UNISONO_FIRMWARE_HEX;
  config.trace = true;
  return config;
}

std::vector<sim::Host> brought_up(sim::Cluster& cluster) {
  std::vector<sim::Host> hosts;
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) hosts.emplace_back(cluster, node).run();
  for (sim::Host& host : hosts) host.create_communicator(kPlace, kNumber, cluster.nodes(), {});
  // The firmware fills its caches when it has started.
  constexpr std::uint64_t kWarm = 10'000;
  while (cluster.cycle() < kWarm) cluster.tick();
  return hosts;
}

std::uint64_t read(sim::Host& host, Counter counter) {
  const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
  const std::uint64_t low = host.read(at);
  return low | std::uint64_t{host.read(at + 4)} << 32U;
}

const Algorithm& ring_allreduce() {
  const auto all = algorithms();
  return *std::find_if(all.begin(), all.end(), [](const Algorithm& algorithm) {
    return algorithm.collective == Collective::kAllreduce && std::string(algorithm.name) == "ring";
  });
}

/// The moves of a rank's program with a remote result to `peer`, or an arrival from it, in order.
template <typename Keep>
std::vector<const MoveRecord*> those(const std::vector<MoveRecord>& records, Keep keep) {
  std::vector<const MoveRecord*> kept;
  for (const MoveRecord& record : records) {
    if (keep(record)) kept.push_back(&record);
  }
  return kept;
}

TEST(Observe, ARingAllReduceLeavesARecordOfEachMove) {
  constexpr std::uint32_t kRanks = 4, kId = 41;
  constexpr std::uint64_t kCount = 10'003;  // chunks of different lengths, of several segments
  sim::Cluster cluster(traced(kRanks));
  auto hosts = brought_up(cluster);
  const Algorithm& ring = ring_allreduce();
  const auto call = CallCase::make(ring, kRanks, kCount, Datatype::kInt32, kPlace, kId, 5, 0);
  ASSERT_TRUE(call.has_value());
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) call->place(cluster.node(rank), rank);
  const std::uint64_t begin = cluster.cycle();
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) hosts[rank].submit(call->descriptor(rank));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(hosts[rank].completion(kLimit), std::pair(kId, std::uint16_t{0}));
    EXPECT_EQ(call->result(cluster.node(rank), rank), call->expected()[rank]);
  }
  const std::uint64_t end = cluster.cycle();

  Call wanted;
  wanted.collective = Collective::kAllreduce;
  wanted.func = Func::kSum;
  wanted.dtype = Datatype::kInt32;
  wanted.size = kRanks;
  wanted.count = kCount;
  const reference::Job job = reference::make_job(ring, wanted);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const auto& records = cluster.node(rank).records();
    const auto& moves = job.programs[rank].moves;
    ASSERT_EQ(records.size(), moves.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      SCOPED_TRACE("move " + std::to_string(i));
      const MoveRecord& record = records[i];
      const Move& move = moves[i];
      EXPECT_EQ(record.index, i);
      EXPECT_EQ(record.call_id, kId);
      EXPECT_EQ(record.communicator, kNumber);
      EXPECT_EQ(record.func, move.func);
      EXPECT_EQ(record.dtype, Datatype::kInt32);
      EXPECT_EQ(record.bytes, move.count * 4);
      EXPECT_EQ(record.receives, move.op1.kind == OperandKind::kArrival);
      EXPECT_EQ(record.sends, move.remote.kind == RemoteKind::kMessage);
      EXPECT_EQ(record.writes, move.local.kind == OperandKind::kMemory);
      EXPECT_EQ(record.source, record.receives ? move.arrival.peer : 0);
      EXPECT_EQ(record.destination, record.sends ? move.remote.peer : 0);
      EXPECT_GE(record.segments, (record.bytes + 4095) / 4096);
      EXPECT_GT(record.entered, begin);
      EXPECT_LT(record.entered, record.issued);
      EXPECT_LT(record.issued, record.began);
      EXPECT_LT(record.began, record.completed);
      EXPECT_LT(record.completed, record.retired);
      EXPECT_LT(record.retired, end);
      if (i > 0) {
        EXPECT_LT(records[i - 1].entered, record.entered);
        EXPECT_LT(records[i - 1].retired, record.retired);
      }
    }
  }
  // All ranks are on one timeline: what arrives was sent before, by a message of the same length.
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const std::uint32_t left = (rank + kRanks - 1) % kRanks;
    const auto arrivals =
        those(cluster.node(rank).records(), [&](const auto& one) { return one.receives && one.source == left; });
    const auto sends =
        those(cluster.node(left).records(), [&](const auto& one) { return one.sends && one.destination == rank; });
    ASSERT_EQ(arrivals.size(), 2 * (kRanks - 1));
    ASSERT_EQ(sends.size(), arrivals.size());
    for (std::size_t i = 0; i < sends.size(); ++i) {
      EXPECT_EQ(sends[i]->bytes, arrivals[i]->bytes);
      // Two links of 50 cycles and a switch of 100.
      EXPECT_GT(arrivals[i]->began, sends[i]->began + 200);
    }
  }

  // The counters have seen the same.
  std::uint64_t sent = 0, received = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const auto& records = cluster.node(rank).records();
    const auto segments = std::accumulate(records.begin(), records.end(), std::uint64_t{0},
                                          [](std::uint64_t sum, const auto& record) { return sum + record.segments; });
    sim::Host& host = hosts[rank];
    for (const Counter counter :
         {Counter::kMoves, Counter::kMovesEntered, Counter::kMovesIssued, Counter::kMovesRetired}) {
      EXPECT_EQ(read(host, counter), records.size()) << name_of(counter);
    }
    EXPECT_EQ(read(host, Counter::kComputeJobs) + read(host, Counter::kSendJobs), segments);
    EXPECT_EQ(read(host, Counter::kJobsEnded), read(host, Counter::kComputeJobs));
    EXPECT_EQ(read(host, Counter::kCalls), 1U);
    EXPECT_EQ(read(host, Counter::kCallsCompleted), 1U);
    EXPECT_EQ(read(host, Counter::kCallsFailed), 0U);
    EXPECT_EQ(read(host, Counter::kRxFaults), 0U);
    EXPECT_EQ(read(host, Counter::kSegmentsReceived),
              read(host, Counter::kSegmentsBuffered) + read(host, Counter::kSegmentsBypassed));
    EXPECT_GT(read(host, Counter::kBuffersHigh) + read(host, Counter::kSegmentsBypassed), 0U);
    EXPECT_GT(read(host, Counter::kStallArrival), 200U);
    EXPECT_LT(read(host, Counter::kStallArrival), end - begin);
    EXPECT_GT(read(host, Counter::kBusy), records.back().retired - records.front().entered);
    EXPECT_LT(read(host, Counter::kBusy), end - begin);
    // Words of 64 bytes; a header with each message.
    EXPECT_EQ(read(host, Counter::kTxWords), read(host, Counter::kMacTxWords));
    EXPECT_GT(read(host, Counter::kTxWords), 2 * (kRanks - 1) * kCount * 4 / kRanks / 64);
    EXPECT_GE(read(host, Counter::kResultWords), kCount * 4 / 64);
    const std::uint64_t cycle = cluster.cycle();
    EXPECT_NEAR(static_cast<double>(read(host, Counter::kCycles)), static_cast<double>(cycle), 10);
    sent += read(host, Counter::kSegmentsSent);
    received += read(host, Counter::kSegmentsReceived);
  }
  EXPECT_EQ(sent, received);

  std::ostringstream text;
  sim::write_trace(text, cluster);
  EXPECT_NE(text.str().find("\"recv 3, sum\""), std::string::npos) << "of rank 0";
  EXPECT_NE(text.str().find("\"name\": \"allreduce"), std::string::npos);
  EXPECT_NE(text.str().find("\"call\": 41, \"sequence\""), std::string::npos);
  EXPECT_NE(text.str().find("\"ph\": \"f\""), std::string::npos) << "arrows";
}

TEST(Observe, TellsWhomAReceiveWaitsFor) {
  constexpr std::uint64_t kBytes = 20'000, kLate = 5000;
  sim::Cluster cluster(traced(2));
  auto hosts = brought_up(cluster);
  std::vector<std::byte> data(kBytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + i / 251);
  cluster.node(0).store(sim::Node::kMemoryAddress, data);
  CallDescriptor call;
  call.dtype = Datatype::kByte;
  call.communicator = kPlace;
  call.count = kBytes;
  call.collective = Collective::kRecv;
  call.root = 0;
  call.dst_address = sim::Node::kMemoryAddress;
  call.dst_bytes = kBytes;
  call.call_id = 8;
  hosts[1].submit(call);
  const std::uint64_t posted = cluster.cycle();
  while (cluster.cycle() < posted + kLate) cluster.tick();
  call.collective = Collective::kSend;
  call.root = 1;
  call.dst_address = call.dst_bytes = 0;
  call.src_address = sim::Node::kMemoryAddress;
  call.src_bytes = kBytes;
  call.call_id = 9;
  hosts[0].submit(call);
  EXPECT_EQ(hosts[1].completion(kLimit), std::pair(8U, std::uint16_t{0}));
  EXPECT_EQ(hosts[0].completion(kLimit), std::pair(9U, std::uint16_t{0}));
  std::vector<std::byte> result(kBytes);
  cluster.node(1).load(sim::Node::kMemoryAddress, result);
  EXPECT_EQ(result, data);

  ASSERT_EQ(cluster.node(1).records().size(), 1U);
  const MoveRecord& waited = cluster.node(1).records()[0];
  EXPECT_LT(waited.issued, posted + kLate / 2);
  EXPECT_GT(read(hosts[1], Counter::kStallArrival), posted + kLate - waited.issued);
  EXPECT_LE(read(hosts[1], Counter::kStallArrival), waited.completed - waited.issued);
  EXPECT_EQ(read(hosts[0], Counter::kStallArrival), 0U);
  // The message is long: it begins on credit, and the rest is granted, two ways through the network after its begin.
  EXPECT_EQ(read(hosts[0], Counter::kRequestsSent), 0U);
  EXPECT_EQ(read(hosts[1], Counter::kRequestsReceived), 0U);
  EXPECT_EQ(read(hosts[1], Counter::kGrantsSent), read(hosts[0], Counter::kGrantsReceived));
  EXPECT_GT(read(hosts[0], Counter::kStallGrant), 200U);
  EXPECT_EQ(read(hosts[1], Counter::kStallGrant), 0U);
  EXPECT_EQ(read(hosts[0], Counter::kSegmentsSent), 10U);  // of 2048 bytes
  ASSERT_EQ(cluster.node(0).records().size(), 1U);
  EXPECT_TRUE(cluster.node(1).records()[0].waited_arrival);
  EXPECT_TRUE(cluster.node(0).records()[0].waited_grant);
  EXPECT_FALSE(cluster.node(0).records()[0].waited_arrival);

  // An engine's reset ends its calls, not its counters.
  hosts[0].write(exchange::kControl, 1);
  while ((hosts[0].read(exchange::kControl) & 1U) != 0) cluster.tick();
  EXPECT_EQ(read(hosts[0], Counter::kCallsCompleted), 1U);
}

TEST(Observe, AMissInTheTlbCostsWhatTheConfigurationSays) {
  // A copy of one word from a page that is not known, and again when it is.
  constexpr unsigned kMiss = 700;
  const auto cycles_of_copies = [](unsigned entries) {
    auto config = traced(2);
    config.memory.tlb = {
        .entries = entries, .page_bytes = 4096, .miss_cycles = kMiss, .from = sim::Node::kMemoryAddress};
    sim::Cluster cluster(config);
    auto hosts = brought_up(cluster);
    std::vector<std::uint64_t> cycles;
    for (std::uint32_t i = 0; i < 2; ++i) {
      CallDescriptor call;
      call.collective = Collective::kCopy;
      call.dtype = Datatype::kByte;
      call.communicator = kPlace;
      call.count = 64;
      call.src_address = sim::Node::kMemoryAddress;
      call.dst_address = sim::Node::kMemoryAddress + 8192;
      call.src_bytes = call.dst_bytes = 64;
      call.call_id = 3 + i;
      hosts[0].submit(call);
      EXPECT_EQ(hosts[0].completion(kLimit), std::pair(3 + i, std::uint16_t{0}));
      const MoveRecord& record = cluster.node(0).records().at(i);
      cycles.push_back(record.completed - record.began);
    }
    return cycles;
  };
  const auto none = cycles_of_copies(0);
  const auto cold = cycles_of_copies(8);
  EXPECT_EQ(cold[0], none[0] + 2 * kMiss) << "the source's page, and then the destination's";
  EXPECT_EQ(cold[1], none[1]) << "both pages are known";
}

}  // namespace
}  // namespace unisono::rtl
