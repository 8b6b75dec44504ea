// What goes wrong: the right code at the host, within the deadline, and an engine that goes on working.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint32_t kPlace = 1;
constexpr std::uint64_t kSrc = sim::Node::kMemoryAddress;
constexpr std::uint64_t kDst = kSrc + (1U << 20U);
constexpr std::uint64_t kScratch = kSrc + (2U << 20U);
constexpr std::uint64_t kRegion = 1U << 19U;
constexpr std::uint32_t kCyclesPerMicrosecond = 250;
constexpr std::uint64_t kLimit = 400'000;

class Errors : public testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 3;

  void SetUp() override {
    sim::ClusterConfig config;
    config.network.nodes = kSize + 1;  // one port of the network has no engine: what is sent from there is ours
    config.engines = kSize;
    config.network.policy = sim::Policy::kPause;
    config.memory.channels = sim::Node::kMemoryPorts;
    config.memory.one_memory = true;
    config.memory.read_latency = 30;
    config.firmware = UNISONO_FIRMWARE_HEX;
    cluster_ = std::make_unique<sim::Cluster>(config);
    for (std::uint32_t node = 0; node < kSize; ++node) {
      hosts_.emplace_back(*cluster_, node);
      hosts_[node].run();
    }
    for (std::uint32_t node = 0; node < kSize; ++node) create(node, 7, 0);
  }

  void create(std::uint32_t node, std::uint32_t number, std::uint32_t changes) {
    hosts_[node].create_communicator(kPlace, number, kSize, {}, changes);
  }

  CallDescriptor sum(std::uint64_t count) {
    CallDescriptor call;
    call.collective = Collective::kAllreduce;
    call.func = Func::kSum;
    call.dtype = Datatype::kInt32;
    call.communicator = kPlace;
    call.count = count;
    call.src_address = kSrc;
    call.dst_address = kDst;
    call.scratch_address = kScratch;
    call.src_bytes = call.dst_bytes = call.scratch_bytes = kRegion;
    call.call_id = ++id_;
    return call;
  }

  /// All ranks sum different data; every result is right. Rank 0 calls after the others, and after `before_rank_0`.
  void expect_usable(
      std::uint64_t count = 3000, const std::function<void()>& before_rank_0 = [] {}) {
    const CallDescriptor call = sum(count);
    std::vector<std::int32_t> expected(count);
    for (std::uint32_t node = kSize; node-- > 0;) {
      std::vector<std::int32_t> data(count);
      for (std::size_t i = 0; i < count; ++i) {
        data[i] = static_cast<std::int32_t>(i * 7 + node * 1000 + id_);
        expected[i] += data[i];
      }
      cluster_->node(node).store(kSrc, std::as_bytes(std::span(data)));
      if (node == 0) before_rank_0();
      hosts_[node].submit(call);
    }
    for (std::uint32_t node = 0; node < kSize; ++node) {
      ASSERT_EQ(hosts_[node].completion(kLimit), std::pair(call.call_id, std::uint16_t{0})) << "rank " << node;
      std::vector<std::int32_t> data(count);
      cluster_->node(node).load(kDst, std::as_writable_bytes(std::span(data)));
      EXPECT_EQ(data, expected) << "rank " << node;
    }
  }

  void expect_refused(CallDescriptor call, ErrorCode code) {
    hosts_[0].submit(call);
    EXPECT_EQ(hosts_[0].completion(20'000), std::pair(call.call_id, static_cast<std::uint16_t>(code)));
  }

  std::unique_ptr<sim::Cluster> cluster_;
  std::vector<sim::Host> hosts_;
  std::uint32_t id_ = 0;
};

/// A put is no collective and has no place among them: when it fails, what has come early for the next one stays.
TEST_F(Errors, APutThatFailsLeavesWhatCameEarly) {
  for (int i = 0; i < 3; ++i) {
    expect_usable(20, [&] {
      for (int cycle = 0; cycle < 5000; ++cycle) cluster_->tick();
      CallDescriptor put = sum(10);
      put.collective = Collective::kPut;
      put.func = Func::kNone;
      put.root = 1;
      put.window_offset = std::uint64_t{1} << 40U;
      put.call_id = ++id_;
      expect_refused(put, ErrorCode::kBufferTooSmall);
    });
  }
}

TEST_F(Errors, FieldsThatAreWrongAreRefused) {
  CallDescriptor call = sum(10);
  call.dtype = static_cast<Datatype>(200);
  expect_refused(call, ErrorCode::kInvalidDatatype);
  call = sum(10);
  call.func = static_cast<Func>(99);
  expect_refused(call, ErrorCode::kInvalidOp);
  call = sum(10);
  call.collective = Collective::kBcast;
  call.func = Func::kNone;
  call.root = kSize;
  expect_refused(call, ErrorCode::kInvalidRoot);
  call = sum(10);
  call.dst_bytes = 39;
  expect_refused(call, ErrorCode::kBufferTooSmall);
  call = sum(10);
  call.communicator = kPlace + 1;
  expect_refused(call, ErrorCode::kFreedCommunicator);
  call = sum(10);
  call.communicator = 4000;
  expect_refused(call, ErrorCode::kFreedCommunicator);
  expect_usable();
}

TEST_F(Errors, ARefusalOfACallThatIsKnownLeavesTheRanksInStep) {
  // The microcode memory and the microcontroller know the call; only its buffer is too small this time.
  for (int i = 0; i < 3; ++i) {
    expect_usable(10);
    CallDescriptor call = sum(10);
    call.dst_bytes = 39;
    expect_refused(call, ErrorCode::kBufferTooSmall);
    expect_usable(10);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Errors, APeerThatIsSilentEndsTheCallByItsDeadline) {
  for (int round = 0; round < 2; ++round) {
    CallDescriptor call = sum(20'000);
    call.deadline_us = 100;
    const std::uint64_t begin = cluster_->cycle();
    for (const std::uint32_t node : {0U, 1U}) hosts_[node].submit(call);
    for (const std::uint32_t node : {0U, 1U}) {
      EXPECT_EQ(hosts_[node].completion(kLimit),
                std::pair(call.call_id, static_cast<std::uint16_t>(ErrorCode::kTimeout)));
    }
    EXPECT_LT(cluster_->cycle() - begin, 110 * kCyclesPerMicrosecond + 2000);
    // Its members are no longer in step: the communicator is made anew, as a driver does.
    for (std::uint32_t node = 0; node < kSize; ++node) create(node, 8 + round, 1 + round);
    expect_usable();
  }
}

TEST_F(Errors, MemoryThatAnswersWithAnErrorEndsTheCall) {
  CallDescriptor call = sum(3000);
  call.deadline_us = 200;
  cluster_->node(1).memory().fail(0, kSrc, kSrc + 63, sim::AxiResponse::kSlaveError);
  cluster_->node(1).memory().fail(1, kSrc, kSrc + 63, sim::AxiResponse::kSlaveError);
  for (unsigned port = 2; port < sim::Node::kMemoryPorts; ++port) {
    cluster_->node(1).memory().fail(port, kSrc, kSrc + 63, sim::AxiResponse::kSlaveError);
  }
  for (sim::Host& host : hosts_) host.submit(call);
  EXPECT_EQ(hosts_[1].completion(kLimit), std::pair(call.call_id, static_cast<std::uint16_t>(ErrorCode::kInternal)));
  for (const std::uint32_t node : {0U, 2U}) EXPECT_NE(hosts_[node].completion(kLimit).second, 0);
  cluster_->node(1).memory().heal();
  for (std::uint32_t node = 0; node < kSize; ++node) create(node, 9, 1);
  expect_usable();
}

TEST_F(Errors, CallsThatDoNotMatchFail) {
  CallDescriptor call = sum(3000);
  call.deadline_us = 200;
  hosts_[0].submit(call);
  hosts_[1].submit(call);
  call.func = Func::kMax;
  hosts_[2].submit(call);
  for (sim::Host& host : hosts_) {
    const auto [id, code] = host.completion(kLimit);
    EXPECT_TRUE(code == static_cast<std::uint16_t>(ErrorCode::kMismatchedCall) ||
                code == static_cast<std::uint16_t>(ErrorCode::kTimeout))
        << code;
  }
  for (std::uint32_t node = 0; node < kSize; ++node) create(node, 10, 1);
  expect_usable();
}

TEST_F(Errors, FramesOfStrangersAndOfNonsenseChangeNothing) {
  // A frame from a node without a session here, then such with one whose header is nothing.
  for (int round = 0; round < 3; ++round) {
    if (round > 0) hosts_[0].write(exchange::kTransport + 4 * kSize, 1U << 31U | kSize);
    std::array<std::byte, 64> word{};
    for (std::size_t i = 0; i < word.size(); ++i) word[i] = static_cast<std::byte>(i * 31 + round);
    sim::SentWord sent;
    sent.data = word.data();
    sent.bytes = 64;
    sent.frame_bytes = 128;
    sent.destination = 0;
    for (int part = 0; part < 2;) {
      sent.last = part == 1;
      if (cluster_->network().can_push(kSize)) {
        ASSERT_EQ(cluster_->network().push(kSize, sent), sim::Pushed::kTaken);
        ++part;
      }
      cluster_->tick();
    }
    for (int i = 0; i < 1000; ++i) cluster_->tick();
    expect_usable(100);
  }
}

TEST_F(Errors, ACallThatNobodyAnswersDoesNotHoldUpOthers) {
  // Eight calls wait for a peer; calls on another communicator and a nop go on beside them.
  CallDescriptor call = sum(5);
  call.deadline_us = 400;
  for (int i = 0; i < 6; ++i) {
    call.call_id = ++id_;
    hosts_[0].submit(call);
  }
  CallDescriptor nop;
  nop.collective = Collective::kNop;
  nop.call_id = ++id_;
  hosts_[0].submit(nop);
  EXPECT_EQ(hosts_[0].completion(5000), std::pair(nop.call_id, std::uint16_t{0}));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(hosts_[0].completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kTimeout));
  }
  for (std::uint32_t node = 0; node < kSize; ++node) create(node, 11, 1);
  expect_usable();
}

TEST_F(Errors, ASoftResetEndsEverything) {
  CallDescriptor call = sum(20'000);
  for (const std::uint32_t node : {0U, 1U}) hosts_[node].submit(call);
  for (int i = 0; i < 3000; ++i) cluster_->tick();
  for (sim::Host& host : hosts_) {
    host.write(exchange::kControl, 3);
    host.run();
  }
  for (std::uint32_t node = 0; node < kSize; ++node) create(node, 12, 0);
  expect_usable();
}

}  // namespace
}  // namespace unisono::rtl
