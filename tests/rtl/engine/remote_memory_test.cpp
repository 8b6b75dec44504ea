// Puts and gets between engines, on the simulated network, with memory that stalls and answers out of order.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "collectives/algorithm.hpp"
#include "reference/job.hpp"
#include "tests/rtl/engine/engine_node.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kWindow = (std::uint64_t{8} << 20U) + 3;  // receive buffers stand below; an odd place
constexpr std::uint64_t kPart = 9000;                             // of a window: one for each operation
constexpr std::uint64_t kOwn = std::uint64_t{10} << 20U;          // of a slot's call: a step for each
constexpr std::uint64_t kStep = std::uint64_t{16} << 10U;
constexpr std::uint32_t kSize = 3, kSlots = 8, kRounds = 3;
constexpr std::uint64_t kWindowBytes = kPart * kSize * kSlots;

struct Operation {
  bool get = false, beyond = false;
  std::uint32_t peer = 0;
  std::uint64_t offset = 0, bytes = 0, place = 0;
};

const Algorithm& algorithm_of(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) return algorithm;
  }
  throw std::runtime_error("no such algorithm");
}

using Bytes = std::vector<std::uint8_t>;

class RemoteMemory : public testing::TestWithParam<bool> {};

// Every rank puts and gets with all its slots at once, to and from all ranks and itself; some reach beyond the window.
TEST_P(RemoteMemory, IsThatOfTheModel) {
  const bool stalls = GetParam();
  sim::NetworkConfig config;
  config.nodes = kSize;
  config.seed = 5;
  config.policy = sim::Policy::kPause;
  sim::Network network(config);
  sim::AxiMemoryConfig memory;
  memory.channels = EngineNode::kPorts;
  memory.one_memory = true;
  memory.read_latency = 30;
  memory.write_latency = 20;
  if (stalls) {
    memory.stall_ar = memory.stall_r = memory.stall_aw = memory.stall_w = 60;
    memory.jitter = 40;
    memory.reorder = true;
  }
  Agreed agreed;
  agreed.segment_bytes = agreed.eager_limit = stalls ? 1024 : 4096;
  std::mt19937_64 random(stalls ? 7 : 3);
  const auto noise = [&](std::uint64_t bytes) {
    Bytes made(bytes);
    for (std::uint8_t& byte : made) byte = static_cast<std::uint8_t>(random());
    return made;
  };
  std::vector<std::unique_ptr<EngineNode>> nodes;
  std::vector<Bytes> windows, own;  // what is to stand there
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    memory.seed = 64 + rank;
    nodes.push_back(std::make_unique<EngineNode>(rank, network, memory));
    nodes[rank]->create_communicator(2, 77, kSize, agreed);
    nodes[rank]->bind_window(2, kWindow, kWindowBytes);
    windows.push_back(noise(kWindowBytes));
    own.push_back(noise(kStep * kSlots));
    nodes[rank]->memory().write(0, kWindow, windows[rank]);
    nodes[rank]->memory().write(0, kOwn, own[rank]);
  }
  const auto there = [&](std::uint32_t rank, std::uint64_t address, std::uint64_t bytes) {
    Bytes read(bytes);
    nodes[rank]->memory().read(0, address, read);
    return read;
  };
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    std::array<std::array<Operation, kSlots>, kSize> all;
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
        Operation& one = all[rank][slot];
        one.get = random() % 2 == 0;
        one.beyond = random() % 6 == 0;
        one.peer = static_cast<std::uint32_t>(random() % kSize);
        one.bytes = 1 + random() % (random() % 3 == 0 ? 64 : 8192);
        one.offset = (rank * kSlots + slot) * kPart + random() % 64;
        if (one.beyond) one.offset = kWindowBytes - one.bytes + 1 + random() % 100;
        one.place = random() % 64;
        const auto call_of = [&] {
          Call call;
          call.collective = one.get ? Collective::kGet : Collective::kPut;
          call.dtype = Datatype::kByte;
          call.size = kSize;
          call.rank = rank;
          call.root = one.peer;
          call.count = one.bytes;
          return call;
        };
        const reference::Job job = reference::make_job(algorithm_of(call_of().collective), call_of());
        const EngineNode::Place mine{kOwn + slot * kStep + one.place, one.bytes}, none{0, 0};
        nodes[rank]->begin(slot, 2, job.call, job.programs[rank], 0,
                           {one.get ? none : mine, one.get ? mine : none, none, none, {one.offset, 0}});
        if (one.beyond) continue;
        const auto at = own[rank].begin() + static_cast<std::ptrdiff_t>(slot * kStep + one.place);
        const auto far = windows[one.peer].begin() + static_cast<std::ptrdiff_t>(one.offset);
        const auto length = static_cast<std::ptrdiff_t>(one.bytes);
        if (one.get) {
          std::copy(far, far + length, at);
        } else {
          std::copy(at, at + length, far);
        }
      }
    }
    for (std::uint64_t cycle = 0;; ++cycle) {
      bool ended = true;
      for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        ASSERT_EQ(nodes[rank]->rx_fault(), 0) << "rank " << rank;
        for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
          ended = ended && (nodes[rank]->finished(slot) || nodes[rank]->failed(slot) != 0);
        }
      }
      if (ended) break;
      ASSERT_LT(cycle, 200'000U) << "round " << round;
      for (auto& node : nodes) node->tick();
      network.tick();
    }
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
        const Operation& one = all[rank][slot];
        EXPECT_EQ(nodes[rank]->failed(slot), one.beyond ? static_cast<int>(ErrorCode::kBufferTooSmall) : 0)
            << "round " << round << ", rank " << rank << ", slot " << slot << (one.get ? ": get" : ": put");
        if (one.beyond) nodes[rank]->clear(slot, true);
      }
      EXPECT_TRUE(there(rank, kWindow, kWindowBytes) == windows[rank]) << "round " << round << ", rank " << rank;
      EXPECT_TRUE(there(rank, kOwn, kStep * kSlots) == own[rank]) << "round " << round << ", rank " << rank;
    }
    if (HasFailure()) return;
  }
  // A communicator without a window, and one that begins anew.
  nodes[1]->bind_window(2, 0, 0);
  nodes[2]->create_communicator(2, 77, kSize, agreed);
  for (const std::uint32_t peer : {1U, 2U}) {
    Call call;
    call.collective = Collective::kPut;
    call.dtype = Datatype::kByte;
    call.size = kSize;
    call.root = peer;
    call.count = 10;
    const reference::Job job = reference::make_job(algorithm_of(Collective::kPut), call);
    nodes[0]->begin(peer, 2, job.call, job.programs[0], 0, {{{kOwn, 10}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}});
    for (int cycle = 0; cycle < 20'000 && nodes[0]->failed(peer) == 0 && !nodes[0]->finished(peer); ++cycle) {
      for (auto& node : nodes) node->tick();
      network.tick();
    }
    EXPECT_EQ(nodes[0]->failed(peer), static_cast<int>(ErrorCode::kBufferTooSmall)) << "peer " << peer;
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, RemoteMemory, testing::Bool());

}  // namespace
}  // namespace unisono::rtl
