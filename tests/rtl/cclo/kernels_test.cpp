// Kernels on the streams of whole engines: the example adds vectors and sends or puts the sum, without the host; how
// long it takes from a kernel's call to the first word on the network; what is refused.
#include <Vunisono_kernel_vector_add.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint32_t kPlace = 2;
constexpr std::uint64_t kA = sim::Node::kMemoryAddress;
constexpr std::uint64_t kB = kA + (1U << 20U) + 4;  // begins elsewhere in a word
constexpr std::uint64_t kSum = kA + (2U << 20U) + 12;
constexpr std::uint64_t kLimit = 200'000;

sim::ClusterConfig two_nodes() {
  sim::ClusterConfig config;
  config.network.nodes = 2;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

/// The example in Verilog, with stalls on every stream between it and the engine.
class VectorAdd : public sim::Kernel {
 public:
  explicit VectorAdd(std::uint64_t seed, unsigned stall_percent)
      : context_(std::make_unique<VerilatedContext>()),
        top_(std::make_unique<Vunisono_kernel_vector_add>(context_.get())),
        random_(seed),
        stall_percent_(stall_percent) {
    context_->randReset(2);
    context_->randSeed(static_cast<int>(seed + 1));
    top_->start_valid_i = top_->answer_valid_i = top_->in_valid_i = top_->out_ready_i = top_->call_ready_i = 0;
    top_->rst_ni = 0;
    for (int i = 0; i < 4; ++i) {
      top_->clk_i = 0;
      top_->eval();
      top_->clk_i = 1;
      top_->eval();
    }
    top_->rst_ni = 1;
  }

  void start(std::uint32_t peer, std::uint32_t tag, std::uint32_t count, std::uint64_t a, std::uint64_t b) {
    top_->communicator_i = kPlace;
    top_->peer_i = peer;
    top_->put_i = 0;
    top_->tag_i = tag;
    top_->count_i = count;
    top_->a_address_i = a;
    top_->b_address_i = b;
    top_->start_valid_i = 1;
    done_ = false;
  }
  void start_to_put(std::uint32_t peer, std::uint64_t place, std::uint32_t count, std::uint64_t a, std::uint64_t b) {
    start(peer, 99, count, a, b);
    top_->put_i = 1;
    top_->place_i = place;
  }
  bool done() const { return done_; }
  std::uint16_t code() const { return code_; }

  sim::ToEngine evaluate(const sim::FromEngine& engine) override {
    Vunisono_kernel_vector_add& top = *top_;
    engine_ = engine;
    // Between the two stand queues, which stall on both sides. What has been offered stays on offer.
    top.call_ready_i = engine.call_ready;
    top.answer_valid_i = engine.answer_valid;
    top.answer_data_i = engine.answer;
    top.in_valid_i = top.in_last_i = 0;
    for (unsigned port = 0; port < 2; ++port) {
      to_.out_ready[port] = forth_[port].size() < kDepth && !stalls();
      shown_[port] = !forth_[port].empty() && (shown_[port] || !stalls());
      if (!shown_[port]) continue;
      const sim::KernelWord& word = forth_[port].front();
      top.in_valid_i |= static_cast<std::uint8_t>(1U << port);
      if (word.last) top.in_last_i |= static_cast<std::uint8_t>(1U << port);
      std::memcpy(&top.in_data_i[16 * port], word.data.data(), 64);
      std::memcpy(&top.in_keep_i[2 * port], &word.keep, 8);
    }
    top.out_ready_i = back_.size() < kDepth && !stalls();
    offered_ = !back_.empty() && (offered_ || !stalls());
    to_.in[0] = offered_ ? back_.front() : sim::KernelWord{};
    top.clk_i = 0;
    top.eval();
    to_.call.valid = top.call_valid_o != 0;
    to_.call.last = top.call_last_o != 0;
    to_.call.keep = top.call_keep_o;
    std::memcpy(to_.call.data.data(), &top.call_data_o[0], 64);
    return to_;
  }

  void edge() override {
    Vunisono_kernel_vector_add& top = *top_;
    for (unsigned port = 0; port < 2; ++port) {
      if ((top.in_valid_i & top.in_ready_o & 1U << port) != 0) {
        forth_[port].pop_front();
        shown_[port] = false;
      }
      if (engine_.out[port].valid && to_.out_ready[port]) forth_[port].push_back(engine_.out[port]);
    }
    if (to_.in[0].valid && engine_.in_ready[0]) {
      back_.pop_front();
      offered_ = false;
    }
    if (top.out_valid_o != 0 && top.out_ready_i != 0) {
      sim::KernelWord word;
      word.valid = true;
      word.last = top.out_last_o != 0;
      word.keep = top.out_keep_o;
      std::memcpy(word.data.data(), &top.out_data_o[0], 64);
      back_.push_back(word);
    }
    if (top.done_valid_o != 0) {
      done_ = true;
      code_ = top.done_code_o;
    }
    const bool started = top.start_valid_i != 0 && top.start_ready_o != 0;
    top.clk_i = 1;
    top.eval();
    if (started) top.start_valid_i = 0;
  }

 private:
  static constexpr std::size_t kDepth = 4;
  bool stalls() { return stall_percent_ != 0 && random_() % 100 < stall_percent_; }

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_kernel_vector_add> top_;
  std::mt19937_64 random_;
  unsigned stall_percent_;
  sim::FromEngine engine_;
  sim::ToEngine to_;
  std::array<std::deque<sim::KernelWord>, 2> forth_;
  std::deque<sim::KernelWord> back_;
  std::array<bool, 2> shown_{};
  bool offered_ = false, done_ = false;
  std::uint16_t code_ = 0;
};

/// A kernel in C++: gives words, takes words, makes calls.
class Probe : public sim::Kernel {
 public:
  std::deque<sim::KernelWord> calls;
  std::array<std::deque<sim::KernelWord>, sim::kKernelStreams> gives;
  std::array<std::vector<sim::KernelWord>, sim::kKernelStreams> got;
  std::vector<std::uint64_t> answers;
  std::uint64_t cycle = 0, first_call = 0;
  std::uint64_t first_given = 0;  ///< cycle in which the first word was taken since this was 0
  std::uint64_t last_got = 0;     ///< cycle of the last word that came

  void call(const CallDescriptor& descriptor) {
    const auto words = encode(descriptor);
    for (unsigned beat = 0; beat < 2; ++beat) {
      sim::KernelWord word;
      word.valid = true;
      word.last = beat == 1;
      word.keep = ~std::uint64_t{0};
      std::memcpy(word.data.data(), &words[8 * beat], 64);
      calls.push_back(word);
    }
  }
  void give(unsigned port, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 64) {
      const std::size_t count = std::min<std::size_t>(64, bytes.size() - at);
      sim::KernelWord word;
      word.valid = true;
      word.last = at + count == bytes.size();
      word.keep = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      std::memcpy(word.data.data(), bytes.data() + at, count);
      gives[port].push_back(word);
    }
  }

  sim::ToEngine evaluate(const sim::FromEngine& engine) override {
    engine_ = engine;
    to_ = {};
    if (!calls.empty()) to_.call = calls.front();
    for (unsigned port = 0; port < sim::kKernelStreams; ++port) {
      if (!gives[port].empty()) to_.in[port] = gives[port].front();
      to_.out_ready[port] = true;
    }
    return to_;
  }
  void edge() override {
    ++cycle;
    if (to_.call.valid && engine_.call_ready) {
      if (first_call == 0) first_call = cycle;
      calls.pop_front();
    }
    for (unsigned port = 0; port < sim::kKernelStreams; ++port) {
      if (to_.in[port].valid && engine_.in_ready[port]) {
        if (first_given == 0) first_given = cycle;
        gives[port].pop_front();
      }
      if (engine_.out[port].valid) {
        last_got = cycle;
        got[port].push_back(engine_.out[port]);
      }
    }
    if (engine_.answer_valid) answers.push_back(engine_.answer);
  }

 private:
  sim::FromEngine engine_;
  sim::ToEngine to_;
};

class Kernels : public testing::Test {
 protected:
  Kernels() : cluster_(two_nodes()) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      hosts_.emplace_back(cluster_, node);
      hosts_[node].run();
    }
    for (std::uint32_t node = 0; node < 2; ++node) hosts_[node].create_communicator(kPlace, 77, 2, {});
  }
  CallDescriptor call_of(Collective collective, std::uint64_t count) {
    CallDescriptor call;
    call.collective = collective;
    call.dtype = Datatype::kInt32;
    call.communicator = kPlace;
    call.count = count;
    call.call_id = ++id_;
    return call;
  }
  /// Puts two random vectors into the node's memory, at kA and kB; returns their sum.
  std::vector<std::uint32_t> store_vectors(std::uint32_t node, std::uint32_t count) {
    std::vector<std::uint32_t> a(count), b(count), sum(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      a[i] = random_();
      b[i] = random_();
      sum[i] = a[i] + b[i];
    }
    cluster_.node(node).store(kA, std::as_bytes(std::span(a)));
    cluster_.node(node).store(kB, std::as_bytes(std::span(b)));
    return sum;
  }
  template <class Condition>
  void run_until(Condition condition) {
    for (std::uint64_t cycle = 0; !condition(); ++cycle) {
      ASSERT_LT(cycle, kLimit);
      cluster_.tick();
    }
  }

  sim::Cluster cluster_;
  std::vector<sim::Host> hosts_;
  std::mt19937 random_{3};
  std::uint32_t id_ = 100;
};

// Both ranks add vectors of their own at once and send each other the sum.
TEST_F(Kernels, AddVectorsAndSendTheSum) {
  VectorAdd kernels[2] = {VectorAdd(1, 0), VectorAdd(2, 30)};
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(&kernels[node]);
  for (const std::uint32_t count : {16U, 1U, 1000U, 20'000U, 37U}) {
    std::array<std::vector<std::uint32_t>, 2> sums;
    for (std::uint32_t node = 0; node < 2; ++node) {
      sums[node] = store_vectors(node, count);
      CallDescriptor receive = call_of(Collective::kRecv, count);
      receive.root = 1 - node;
      receive.tag = 5;
      receive.dst_address = kSum;
      receive.dst_bytes = std::uint64_t{count} * 4;
      hosts_[node].submit(receive);
      kernels[node].start(1 - node, 5, count, kA, kB);
    }
    for (std::uint32_t node = 0; node < 2; ++node) {
      ASSERT_EQ(hosts_[node].completion(kLimit).second, 0);
      ASSERT_NO_FATAL_FAILURE(run_until([&] { return kernels[node].done(); }));
      EXPECT_EQ(kernels[node].code(), 0);
      std::vector<std::uint32_t> got(count);
      cluster_.node(node).load(kSum, std::as_writable_bytes(std::span(got)));
      EXPECT_EQ(got, sums[1 - node]) << count << " elements, node " << node;
    }
  }
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(nullptr);
}

// The sum goes to a place in the peer's window; the peer does nothing for it. Done means that it is there.
TEST_F(Kernels, AddVectorsAndPutTheSum) {
  VectorAdd kernels[2] = {VectorAdd(5, 20), VectorAdd(6, 0)};
  for (std::uint32_t node = 0; node < 2; ++node) {
    cluster_.node(node).attach(&kernels[node]);
    hosts_[node].set_window(kPlace, kSum, 200'000);
  }
  for (const std::uint32_t count : {16U, 1U, 20'000U, 37U}) {
    std::array<std::vector<std::uint32_t>, 2> sums;
    for (std::uint32_t node = 0; node < 2; ++node) {
      sums[node] = store_vectors(node, count);
      kernels[node].start_to_put(1 - node, 20 + 4 * count, count, kA, kB);
    }
    for (std::uint32_t node = 0; node < 2; ++node) {
      ASSERT_NO_FATAL_FAILURE(run_until([&] { return kernels[node].done(); }));
      EXPECT_EQ(kernels[node].code(), 0);
      std::vector<std::uint32_t> got(count);
      cluster_.node(1 - node).load(kSum + 20 + 4 * std::uint64_t{count}, std::as_writable_bytes(std::span(got)));
      EXPECT_EQ(got, sums[node]) << count << " elements of node " << node;
    }
  }
  // What does not fit is refused, and the kernel is told.
  kernels[0].start_to_put(1, 199'999, 1, kA, kB);
  ASSERT_NO_FATAL_FAILURE(run_until([&] { return kernels[0].done(); }));
  EXPECT_EQ(kernels[0].code(), static_cast<std::uint16_t>(ErrorCode::kBufferTooSmall));
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(nullptr);
}

// From stream to stream over the network, and how long that takes.
TEST_F(Kernels, FromTheCallToTheFirstWord) {
  Probe probes[2];
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(&probes[node]);
  std::uint64_t first = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::uint32_t> data(16);
    for (auto& word : data) word = random_();
    CallDescriptor receive = call_of(Collective::kRecv, 16);
    receive.root = 0;
    receive.dst_stream = true;
    receive.dst_address = 1;
    probes[1].call(receive);
    ASSERT_NO_FATAL_FAILURE(run_until([&] { return probes[1].calls.empty(); }));
    for (int i = 0; i < 500; ++i) cluster_.tick();
    CallDescriptor send = call_of(Collective::kSend, 16);
    send.root = 1;
    send.src_stream = true;
    send.src_address = 0;
    probes[0].first_call = 0;
    cluster_.node(0).forget_first_sent();
    const std::uint64_t behind = cluster_.cycle() - probes[0].cycle;
    probes[0].give(0, std::as_bytes(std::span(data)));
    probes[0].call(send);
    const std::size_t before = probes[1].got[1].size();
    ASSERT_NO_FATAL_FAILURE(run_until([&] { return probes[1].got[1].size() != before; }));
    const sim::KernelWord& got = probes[1].got[1].back();
    EXPECT_EQ(std::memcmp(got.data.data(), data.data(), 64), 0);
    EXPECT_TRUE(got.last);
    first = cluster_.node(0).first_sent() - (probes[0].first_call - 1 + behind);
    std::printf("[ kernel ] call to first word on the network: %llu cycles\n", static_cast<unsigned long long>(first));
    ASSERT_NO_FATAL_FAILURE(run_until([&] {
      return probes[0].answers.size() == static_cast<std::size_t>(round) + 1 &&
             probes[1].answers.size() == probes[0].answers.size();
    }));
    EXPECT_EQ(probes[0].answers.back(), send.call_id);
    EXPECT_EQ(probes[1].answers.back(), receive.call_id);
  }
  // By then the call comes from the microcode memory.
  EXPECT_LE(first, 30U);
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(nullptr);
}

// A word on a call that has been open for long: from the kernel that gives it to the one that takes it.
TEST_F(Kernels, FromWordToWordOnAnOpenCall) {
  Probe probes[2];
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(&probes[node]);
  std::uint64_t took = 0;
  for (int round = 0; round < 4; ++round) {
    CallDescriptor receive = call_of(Collective::kRecv, 16);
    receive.root = 0;
    receive.dst_stream = true;
    receive.dst_address = 1;
    probes[1].call(receive);
    CallDescriptor send = call_of(Collective::kSend, 16);
    send.root = 1;
    send.src_stream = true;
    send.src_address = 0;
    probes[0].call(send);
    const int open = round == 0 ? 5000 : 600;
    for (int i = 0; i < open; ++i) cluster_.tick();
    std::vector<std::uint32_t> data(16);
    for (auto& word : data) word = random_();
    probes[0].first_given = 0;
    probes[0].give(0, std::as_bytes(std::span(data)));
    const std::size_t before = probes[1].got[1].size();
    ASSERT_NO_FATAL_FAILURE(run_until([&] { return probes[1].got[1].size() != before; }));
    EXPECT_EQ(std::memcmp(probes[1].got[1].back().data.data(), data.data(), 64), 0);
    // Both probes were attached in one cycle. Two links of 50 cycles, a switch of 100, and a frame of four cycles.
    took = probes[1].last_got - probes[0].first_given - 207;
    std::printf("[ kernel ] word to word, beyond the wire: %llu cycles\n", static_cast<unsigned long long>(took));
    ASSERT_NO_FATAL_FAILURE(run_until([&] {
      return probes[0].answers.size() == static_cast<std::size_t>(round) + 1 &&
             probes[1].answers.size() == probes[0].answers.size();
    }));
  }
  EXPECT_LE(took, 50U);
  for (std::uint32_t node = 0; node < 2; ++node) cluster_.node(node).attach(nullptr);
}

TEST_F(Kernels, SaysThatItHasStreamsAndWhichItHas) {
  Probe probe;
  cluster_.node(0).attach(&probe);
  const std::uint32_t low = hosts_[0].read(exchange::kCapability);
  const std::uint64_t word = low | std::uint64_t{hosts_[0].read(exchange::kCapability + 4)} << 32U;
  EXPECT_TRUE(decode_capability({word}).streams);
  // There are two ports.
  CallDescriptor call = call_of(Collective::kCopy, 8);
  call.src_stream = true;
  call.src_address = 2;
  call.dst_address = kSum;
  call.dst_bytes = 32;
  hosts_[0].submit(call);
  EXPECT_EQ(hosts_[0].completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kInvalidArgument));
  // An algorithm that goes through its source more than once; what it took is not given back, so the port is another.
  call = call_of(Collective::kReduceScatter, 8);
  call.func = Func::kSum;
  call.src_stream = true;
  call.src_address = 1;
  call.dst_address = kSum;
  call.scratch_address = kA;
  call.dst_bytes = call.scratch_bytes = 1U << 16U;
  hosts_[0].submit(call);
  EXPECT_EQ(hosts_[0].completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kUnsupported));
  cluster_.node(0).attach(nullptr);
}

}  // namespace
}  // namespace unisono::rtl
