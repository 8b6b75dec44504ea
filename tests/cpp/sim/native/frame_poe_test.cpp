// The native engine's way onto the simulated network, and native nodes on it.
#include "sim/native/frame_poe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/error.hpp"
#include "core/header.hpp"
#include "platform/device/registers.hpp"
#include "sim/native/native_node.hpp"
#include "sim/network/network.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint64_t kClock = 250'000;  // kHz

NetworkConfig shape(std::uint32_t nodes) {
  NetworkConfig config;
  config.nodes = nodes;
  config.policy = Policy::kPause;
  return config;
}

/// Endpoints on one network, which go from cycle to cycle together.
struct Endpoints {
  explicit Endpoints(const NetworkConfig& config, std::uint64_t delay = 0) : network(config) {
    for (std::uint32_t node = 0; node < config.nodes; ++node) {
      poes.push_back(std::make_unique<FramePoe>(network, node, config.nodes, kClock, delay));
    }
  }
  void tick(int cycles = 1) {
    for (; cycles > 0; --cycles) {
      for (const auto& poe : poes) poe->exchange_words();
      network.tick();
    }
  }
  bool send(std::uint32_t from, std::uint32_t to, Lane lane, std::uint32_t bytes, std::uint8_t first) {
    std::byte* space = poes[from]->reserve(to, lane, bytes);
    if (space == nullptr) return false;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(space) % 64, 0U);
    for (std::uint32_t i = 0; i < bytes; ++i) space[i] = static_cast<std::byte>(first + i);
    Header header = make_header(MessageType::kEager);
    header.first = header.last = true;
    header.source = from;
    header.destination = to;
    header.segment_bytes = bytes;
    header.message_bytes = bytes;
    poes[from]->commit(to, lane, header);
    return true;
  }
  Network network;
  std::vector<std::unique_ptr<FramePoe>> poes;
};

TEST(FramePoe, CarriesMessagesOfAllLengthsInOrder) {
  Endpoints ends(shape(3));
  const std::vector<std::uint32_t> lengths{0, 1, 63, 64, 65, 500, FramePoe::kMostData};
  std::size_t sent = 0, got = 0;
  for (int cycle = 0; cycle < 3000 && got < lengths.size(); ++cycle) {
    if (sent < lengths.size() && ends.send(2, 0, Lane::kData, lengths[sent], static_cast<std::uint8_t>(sent))) ++sent;
    Incoming incoming;
    if (ends.poes[0]->peek(2, Lane::kData, incoming)) {
      ASSERT_EQ(incoming.payload.size(), lengths[got]);
      for (std::uint32_t i = 0; i < lengths[got]; ++i) {
        ASSERT_EQ(incoming.payload[i], static_cast<std::byte>(got + i));
      }
      EXPECT_EQ(incoming.header.session_sequence, got);
      EXPECT_EQ(incoming.header.source, 2U);
      EXPECT_FALSE(ends.poes[0]->peek(1, Lane::kData, incoming));
      EXPECT_FALSE(ends.poes[0]->peek(2, Lane::kControl, incoming));
      ends.poes[0]->release(2, Lane::kData);
      ++got;
    }
    ends.tick();
  }
  EXPECT_EQ(got, lengths.size());
  EXPECT_EQ(ends.poes[2]->counters().sent, lengths.size());
  EXPECT_EQ(ends.poes[0]->counters().received, lengths.size());
}

TEST(FramePoe, ControlGoesBeforeDataThatWaits) {
  Endpoints ends(shape(2));
  ASSERT_TRUE(ends.send(0, 1, Lane::kData, 8000, 0));
  ASSERT_TRUE(ends.send(0, 1, Lane::kData, 8000, 0));
  ends.tick();  // the first has begun
  ASSERT_TRUE(ends.send(0, 1, Lane::kControl, 64, 0));
  Incoming incoming;
  while (!ends.poes[1]->peek(0, Lane::kControl, incoming)) {
    ends.tick();
    ASSERT_LT(ends.network.cycle(), 2000U);
  }
  EXPECT_EQ(ends.poes[1]->counters().received, 2U);  // the first and this
}

TEST(FramePoe, HasBoundsAndTellsWhenThereIsSpaceAgain) {
  Endpoints ends(shape(2));
  int taken = 0;
  while (taken < 100 && ends.send(0, 1, Lane::kData, 1000, 0)) ++taken;
  EXPECT_GE(taken, 2);
  EXPECT_LT(taken, 100);
  EXPECT_NE(ends.poes[0]->reserve(1, Lane::kControl, 64), nullptr) << "control has space of its own";
  const std::uint32_t before = ends.poes[0]->activity();
  while (ends.poes[0]->activity() == before) {
    ends.tick();
    ASSERT_LT(ends.network.cycle(), 1000U);
  }
  EXPECT_TRUE(ends.send(0, 1, Lane::kData, 1000, 0));
}

TEST(FramePoe, LeadsBackToItself) {
  Endpoints ends(shape(2));
  const std::uint32_t before = ends.poes[1]->activity();
  int taken = 0;
  while (taken < 100 && ends.send(1, 1, Lane::kData, 100, 9)) ++taken;
  EXPECT_LT(taken, 100);
  EXPECT_NE(ends.poes[1]->activity(), before);
  for (int i = 0; i < taken; ++i) {
    Incoming incoming;
    ASSERT_TRUE(ends.poes[1]->peek(1, Lane::kData, incoming));
    EXPECT_EQ(incoming.payload.size(), 100U);
    EXPECT_EQ(incoming.payload[1], std::byte{10});
    ends.poes[1]->release(1, Lane::kData);
  }
  EXPECT_TRUE(ends.send(1, 1, Lane::kData, 100, 0));
  EXPECT_EQ(ends.poes[1]->counters().sent, 0U);
}

TEST(FramePoe, DropsWhatIsDamaged) {
  Endpoints ends(parse_network("nodes = 2\npolicy = pause\nframe_check = off\ncorrupt = 0.5\nseed = 3\n", "test"));
  int sent = 0, good = 0;
  Incoming incoming;
  for (int cycle = 0; cycle < 20'000; ++cycle) {
    if (sent < 100 && ends.send(0, 1, Lane::kData, 0, 0)) ++sent;  // every bit is one of the header
    while (ends.poes[1]->peek(0, Lane::kData, incoming)) {
      EXPECT_EQ(incoming.header.magic, kMagic);
      ++good;
      ends.poes[1]->release(0, Lane::kData);
    }
    ends.tick();
  }
  EXPECT_EQ(sent, 100);
  EXPECT_EQ(good + ends.poes[1]->counters().dropped, 100U);
  EXPECT_GT(good, 10);
  EXPECT_GT(ends.poes[1]->counters().dropped, 10U);
}

TEST(FramePoe, TimeIsTheNetworksAndADelayIsKept) {
  std::vector<std::uint64_t> arrivals;
  for (const std::uint64_t delay : {0U, 70U}) {
    Endpoints ends(shape(2), delay);
    ends.tick(10);
    EXPECT_EQ(ends.poes[0]->now().time_since_epoch(), std::chrono::nanoseconds(40));
    ASSERT_TRUE(ends.send(0, 1, Lane::kData, 64, 0));
    Incoming incoming;
    while (!ends.poes[1]->peek(0, Lane::kData, incoming)) ends.tick();
    arrivals.push_back(ends.network.cycle());
  }
  EXPECT_EQ(arrivals[1], arrivals[0] + 70);
  Endpoints ends(shape(2));
  EXPECT_THROW(ends.poes[0]->wait(0, std::chrono::microseconds(1)), Error);
}

/// A host's accesses to nodes that are all native.
class Nodes {
 public:
  explicit Nodes(std::uint32_t size) : network_(shape(size)) {
    for (std::uint32_t node = 0; node < size; ++node) {
      nodes_.push_back(std::make_unique<NativeNode>(NativeNodeConfig{node, size, kClock, 0}, network_));
    }
  }
  void tick() {
    for (const auto& node : nodes_) node->look();
    for (const auto& node : nodes_) node->evaluate();
    for (const auto& node : nodes_) node->commit();
    network_.tick();
  }
  std::uint32_t access(std::uint32_t node, const RegisterAccess& what, bool accepted = true) {
    nodes_[node]->begin(what);
    EXPECT_TRUE(nodes_[node]->busy());
    while (nodes_[node]->busy()) tick();
    EXPECT_EQ(nodes_[node]->accepted(), accepted) << what.offset;
    return nodes_[node]->value();
  }
  void write(std::uint32_t node, std::uint32_t offset, std::uint32_t value) { access(node, {true, offset, value}); }
  NativeNode& node(std::uint32_t number) { return *nodes_[number]; }
  std::uint64_t cycle() const { return network_.cycle(); }

 private:
  Network network_;
  std::vector<std::unique_ptr<NativeNode>> nodes_;
};

/// Cycles in which an allreduce of three native nodes has ended, and its results.
std::pair<std::uint64_t, std::vector<std::vector<std::int32_t>>> allreduce(std::size_t count) {
  constexpr std::uint32_t kSize = 3;
  Nodes nodes(kSize);
  const std::uint64_t at = FunctionalDevice::kMemoryAddress;
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    EXPECT_EQ(nodes.access(rank, {false, exchange::kIdentity, 0}), registers::kIdentity);
    nodes.write(rank, exchange::kControl, registers::kControlRun);
    for (std::uint32_t other = 0; other < kSize; ++other) {
      if (other != rank) nodes.write(rank, exchange::kTransport + 4 * other, registers::kSessionOpen | other);
      nodes.write(rank, registers::member(0, other), registers::kMemberValid | (other == rank ? kSelfSession : other));
    }
    const std::vector<std::pair<std::uint32_t, std::uint32_t>> words{
        {registers::kNumber, 5},        {registers::kRank, rank},
        {registers::kSize, kSize},      {registers::kDatatypes, 0xffffff},
        {registers::kFuncs, 0x7fff},    {registers::kPathNumber, 5},
        {registers::kPathEager, 1024},  {registers::kPathSegment, 1024},
        {registers::kPathRxBuffers, 2}, {registers::kPathSizeRank, kSize | rank << 16U},
        {registers::kPathValid, 1},     {registers::kState, registers::kStateValid}};
    for (const auto& [word, value] : words) nodes.write(rank, registers::communicator(0, word), value);
  }
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    std::vector<std::int32_t> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::int32_t>(i * (rank + 2) + rank);
    nodes.node(rank).store(at, std::as_bytes(std::span(data)));
    CallDescriptor call;
    call.collective = Collective::kAllreduce;
    call.func = Func::kSum;
    call.dtype = Datatype::kInt32;
    call.count = count;
    call.call_id = 9;
    call.src_address = at;
    call.dst_address = at + (1 << 20);
    call.src_bytes = call.dst_bytes = 4 * count;
    call.scratch_address = at + (2 << 20);
    call.scratch_bytes = 1 << 20;
    for (std::size_t i = 0; i < algorithms().size(); ++i) {
      const Algorithm& algorithm = algorithms()[i];
      if (algorithm.collective != Collective::kAllreduce || std::string_view(algorithm.name) != "ring") continue;
      call.algorithm = static_cast<std::uint8_t>(i + 1);
    }
    const auto words = encode(call);
    for (std::uint32_t i = 0; i < words.size(); ++i) {
      nodes.write(rank, exchange::kCallSlot + 8 * i, static_cast<std::uint32_t>(words[i]));
      nodes.write(rank, exchange::kCallSlot + 8 * i + 4, static_cast<std::uint32_t>(words[i] >> 32U));
    }
    nodes.write(rank, exchange::kDoorbell, 1);
  }
  std::vector<std::vector<std::int32_t>> results;
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    while (!nodes.node(rank).interrupt() && nodes.cycle() < 1'000'000) nodes.tick();
    EXPECT_EQ(nodes.access(rank, {false, exchange::kCompleted, 0}), 9U);
    EXPECT_EQ(nodes.access(rank, {false, exchange::kCompletedCode, 0}), registers::kCodeGiven);
    EXPECT_FALSE(nodes.node(rank).interrupt());
    auto& result = results.emplace_back(count);
    nodes.node(rank).load(at + (1 << 20), std::as_writable_bytes(std::span(result)));
  }
  return {nodes.cycle(), results};
}

TEST(NativeNode, CarriesOutCallsInSimulatedTime) {
  for (const std::size_t count : {1U, 5000U}) {
    const auto [cycles, results] = allreduce(count);
    for (const auto& result : results) {
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(result[i], static_cast<std::int32_t>(9 * i + 3)) << i;
    }
    EXPECT_EQ(allreduce(count).first, cycles) << "the same run has the same cycles";
  }
  EXPECT_GT(allreduce(5000).first, allreduce(1).first + 800) << "what is sent takes its time";
}

TEST(NativeNode, RefusesWhatIsNoRegisterAndWhatIsBeyondItsMemory) {
  Nodes nodes(2);
  nodes.access(0, {false, exchange::kDoorbell, 0}, false);
  nodes.access(0, {true, exchange::kIdentity, 1}, false);
  std::vector<std::byte> bytes(64);
  EXPECT_THROW(nodes.node(0).store(FunctionalDevice::kMemoryAddress - 1, bytes), Error);
  EXPECT_THROW(nodes.node(0).load(FunctionalDevice::kMemoryAddress + FunctionalDevice::kMemoryBytes - 1, bytes), Error);
}

}  // namespace
}  // namespace unisono::sim
