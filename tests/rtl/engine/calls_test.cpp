// Engines: messages between pairs, and calls that are ended in the middle, over the whole way through Tx, network and
// Rx.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/engine/engine_node.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstArea = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kAreaStep = std::uint64_t{64} << 10U;
constexpr std::uint32_t kCommunicator = 2;
constexpr std::uint32_t kBuffers = 1024;

const Algorithm& algorithm_of(Collective collective, const std::string& name = "") {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && (name.empty() || algorithm.name == name)) return algorithm;
  }
  throw std::runtime_error("no algorithm " + name);
}

class Cluster {
 public:
  Cluster(std::uint32_t size, const Agreed& agreed, std::uint64_t seed) : network_(config(size, seed)) {
    sim::AxiMemoryConfig memory;
    memory.channels = EngineNode::kPorts;
    memory.one_memory = true;
    memory.read_latency = 30;
    memory.write_latency = 20;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      memory.seed = seed * 64 + rank;
      nodes_.push_back(std::make_unique<EngineNode>(rank, network_, memory));
      nodes_[rank]->create_communicator(kCommunicator, 77, size, agreed);
    }
  }
  EngineNode& operator[](std::uint32_t rank) { return *nodes_[rank]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  void tick() {
    for (auto& node : nodes_) node->tick();
    network_.tick();
    ++cycle_;
  }
  void run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles; ++i) tick();
  }
  std::uint64_t cycle() const { return cycle_; }

 private:
  static sim::NetworkConfig config(std::uint32_t size, std::uint64_t seed) {
    sim::NetworkConfig network;
    network.policy = sim::Policy::kPause;
    network.nodes = size;
    network.seed = seed;
    return network;
  }
  sim::Network network_;
  std::vector<std::unique_ptr<EngineNode>> nodes_;
  std::uint64_t cycle_ = 0;
};

struct Transfer {
  std::uint32_t from = 0, to = 0, tag = 0;
  std::vector<std::uint8_t> data;
};

std::uint64_t area(std::uint32_t slot) { return kFirstArea + slot * kAreaStep; }

void begin(Cluster& cluster, std::uint32_t rank, std::uint32_t slot, const Transfer& transfer, bool sends,
           std::uint32_t sequence) {
  Call call;
  call.collective = sends ? Collective::kSend : Collective::kRecv;
  call.rank = rank;
  call.size = cluster.size();
  call.root = sends ? transfer.to : transfer.from;
  call.count = transfer.data.size();
  std::array<EngineNode::Place, 5> regions{};
  regions[sends ? 0 : 1] = {area(slot), transfer.data.size()};
  if (sends) cluster[rank].memory().write(0, area(slot), transfer.data);
  cluster[rank].begin(slot, kCommunicator, call, record(algorithm_of(call.collective), call), sequence, regions,
                      transfer.tag);
}

// Every rank sends to every rank, itself included, messages of all protocols with two tags; the receives begin in
// another order than the sends.
TEST(Pairs, MessagesMeetTheirReceives) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Agreed agreed;
    agreed.rx_buffers = static_cast<std::uint32_t>(seed);
    agreed.eager_limit = agreed.segment_bytes = 1024;
    Cluster cluster(2 + static_cast<std::uint32_t>(seed % 2), agreed, seed);
    std::mt19937_64 random(seed);
    const std::uint32_t ranks = cluster.size();
    std::vector<std::vector<std::uint32_t>> sequences(ranks, std::vector<std::uint32_t>(ranks));
    for (int round = 0; round < 6; ++round) {
      // Four messages of each rank, at most four to each: eight calls of a rank at once.
      std::vector<Transfer> transfers;
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t shift = static_cast<std::uint32_t>(random() % ranks);
        for (std::uint32_t from = 0; from < ranks; ++from) {
          Transfer t{from, (from + shift) % ranks, i, {}};
          t.data.resize(std::array<std::size_t, 5>{0, 33, 1024, 1025, 5000}[random() % 5]);
          for (auto& b : t.data) b = static_cast<std::uint8_t>(random());
          transfers.push_back(std::move(t));
        }
      }
      std::vector<std::uint32_t> slots(ranks);
      struct Receive {
        std::uint32_t slot = 0;
        const Transfer* transfer = nullptr;
      };
      std::vector<std::vector<Receive>> receives(ranks);
      for (const Transfer& t : transfers) {
        begin(cluster, t.from, slots[t.from]++, t, true, sequences[t.from][t.to]++);
        cluster.run(random() % 60);
      }
      for (auto t = transfers.rbegin(); t != transfers.rend(); ++t) {
        receives[t->to].push_back({slots[t->to], &*t});
        begin(cluster, t->to, slots[t->to]++, *t, false, 0);
        cluster.run(random() % 60);
      }
      const std::uint64_t limit = cluster.cycle() + 30'000;
      for (bool all = false; !all; cluster.tick()) {
        all = true;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          for (std::uint32_t slot = 0; slot < slots[rank]; ++slot) {
            ASSERT_EQ(cluster[rank].failed(slot), 0);
            all = all && cluster[rank].finished(slot);
          }
          ASSERT_EQ(cluster[rank].rx_fault(), 0);
        }
        ASSERT_LT(cluster.cycle(), limit) << "round " << round << " does not end";
      }
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (const Receive& r : receives[rank]) {
          std::vector<std::uint8_t> got(r.transfer->data.size());
          cluster[rank].memory().read(0, area(r.slot), got);
          ASSERT_TRUE(got == r.transfer->data) << "round " << round << ", rank " << rank;
        }
      }
    }
    cluster.run(500);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(cluster[rank].free_buffers(), kBuffers);
  }
}

// A call dies on every rank at another moment; the next one, in the same slot, is right. Credits come back: with one
// or two for each peer the calls could not go on otherwise.
TEST(Abandoned, TheNextCallIsRight) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    Agreed agreed;
    agreed.rx_buffers = static_cast<std::uint32_t>(seed);
    agreed.eager_limit = agreed.segment_bytes = 1024;
    Cluster cluster(3, agreed, seed);
    std::mt19937_64 random(seed);
    std::uint32_t sequence = 5, died = 0;
    for (int round = 0; round < 24; ++round) {
      const bool dies = round % 2 == 0;
      const char* name = std::array{"ring", "recursive_doubling", "flat"}[random() % 3];
      Call call;
      call.collective = Collective::kAllreduce;
      call.func = Func::kSum;
      call.dtype = Datatype::kInt32;
      call.size = cluster.size();
      call.count = std::array<std::uint64_t, 3>{5, 240, 1900}[random() % 3];
      const reference::Job job = reference::make_job(algorithm_of(call.collective, name), call);
      std::vector<reference::RankInput> inputs(job.size());
      for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
        inputs[rank].src.resize(job.bytes(rank, Region::kSrc));
        inputs[rank].dst.resize(job.bytes(rank, Region::kDst));
        for (auto& b : inputs[rank].src) b = static_cast<std::byte>(random());
        std::array<EngineNode::Place, 5> regions{};
        for (std::uint32_t r = 0; r < 5; ++r) regions[r] = {area(r), job.region_bytes[rank][r]};
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(inputs[rank].src.data());
        cluster[rank].memory().write(0, regions[0].first, {bytes, inputs[rank].src.size()});
        call.rank = rank;
        cluster[rank].begin(4, kCommunicator, call, job.programs[rank], sequence, regions);
        cluster.run(random() % 300);
      }
      ++sequence;
      if (dies) {
        for (std::uint32_t i = 0; i < job.size(); ++i) {
          const std::uint32_t rank = (i + static_cast<std::uint32_t>(round)) % job.size();
          cluster.run(random() % 400);
          if (cluster[rank].finished(4)) continue;
          cluster[rank].clear(4, true);
          ++died;
        }
        continue;
      }
      const std::uint64_t limit = cluster.cycle() + 20'000;
      for (bool all = false; !all; cluster.tick()) {
        all = true;
        for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
          ASSERT_EQ(cluster[rank].failed(4), 0);
          all = all && cluster[rank].finished(4);
        }
        ASSERT_LT(cluster.cycle(), limit) << "round " << round << " does not end";
      }
      const auto expected = reference::interpret(job, inputs);
      for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
        std::vector<std::byte> dst(job.bytes(rank, Region::kDst));
        cluster[rank].memory().read(0, area(1), {reinterpret_cast<std::uint8_t*>(dst.data()), dst.size()});
        ASSERT_TRUE(dst == expected[rank]) << "round " << round << ", rank " << rank;
      }
    }
    EXPECT_GT(died, 5U);
    cluster.run(3000);
    for (std::uint32_t rank = 0; rank < cluster.size(); ++rank) EXPECT_EQ(cluster[rank].free_buffers(), kBuffers);
  }
}

}  // namespace
}  // namespace unisono::rtl
