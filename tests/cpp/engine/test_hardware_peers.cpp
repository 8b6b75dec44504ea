// Native engines that keep to what engines in hardware take: every message on its way is looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "core/message_segment.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

/// A network that refuses what docs/engine.md, "Among engines in hardware", does not allow.
class Watched final : public Poe {
 public:
  Watched(std::unique_ptr<Poe> network, const EngineSettings& settings)
      : network_(std::move(network)), eager_(settings.eager_limit), segment_(settings.segment_bytes) {}

  std::uint32_t self() const override { return network_->self(); }
  std::uint32_t size() const override { return network_->size(); }
  std::uint32_t max_payload(Lane lane) const override { return network_->max_payload(lane); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    // A full session now and then, so that what is to be sent comes again.
    return random_() % 4 == 0 ? nullptr : network_->reserve(peer, lane, bytes);
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override {
    switch (header.type) {
      case MessageType::kEager:
      case MessageType::kWrite: {
        EXPECT_EQ(lane, Lane::kData);
        EXPECT_EQ(header.segment_bytes, std::min(message_segment(header.message_bytes, eager_, segment_),
                                                 header.message_bytes - header.offset));
        segments += 1;
        break;
      }
      case MessageType::kRequest:
        EXPECT_EQ(lane, Lane::kData);
        requests += 1;
        break;
      case MessageType::kGrant:
        EXPECT_EQ(lane, Lane::kControl);
        grants += 1;
        break;
      case MessageType::kControl:
        EXPECT_EQ(header.credits, 0);
        break;
      default:
        break;
    }
    Header sent = header;
    // Hardware has no ordinals, and numbers its sends as it likes.
    if (header.type == MessageType::kRequest || header.type == MessageType::kGrant) sent.offset = 0;
    network_->commit(peer, lane, sent);
  }
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override { return network_->peek(peer, lane, incoming); }
  void release(std::uint32_t peer, Lane lane) override { network_->release(peer, lane); }
  std::uint32_t activity() const override { return network_->activity(); }
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override {
    network_->wait(seen, std::min(at_most, microseconds(200)));
  }
  Liveness liveness(std::uint32_t peer) override { return network_->liveness(peer); }
  std::string describe(std::uint32_t peer) const override { return network_->describe(peer); }

  std::uint64_t segments = 0, requests = 0, grants = 0;

 private:
  std::unique_ptr<Poe> network_;
  std::uint32_t eager_, segment_;
  std::minstd_rand random_{7};
};

/// How many messages of a kind there were.
struct Seen {
  std::uint64_t segments = 0, requests = 0, grants = 0;
};

EngineSettings hardware_settings(std::uint32_t eager, std::uint32_t segment, std::uint32_t buffers) {
  EngineSettings settings = message_settings();
  settings.eager_limit = eager;
  settings.segment_bytes = segment;
  settings.rx_buffer_count = buffers;
  settings.hardware_peers = true;
  return settings;
}

Seen run_watched(std::uint32_t size, const EngineSettings& settings, const std::function<void(Rank&)>& body) {
  ThreadJob job(size);
  std::vector<std::unique_ptr<Watched>> networks(size);
  std::vector<std::unique_ptr<Engine>> engines(size);
  std::vector<Agreement> all_capabilities;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    networks[rank] = std::make_unique<Watched>(job.endpoint(rank), settings);
    engines[rank] = std::make_unique<NativeEngine>(*networks[rank], settings);
    all_capabilities.push_back(engines[rank]->capabilities());
  }
  const Agreement agreed = agree(all_capabilities);
  std::vector<std::uint32_t> endpoints(size);
  std::iota(endpoints.begin(), endpoints.end(), 0U);
  std::vector<std::exception_ptr> errors(size);
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> running{size};
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        engines[rank]->create_communicator(0, 0, endpoints, agreed);
        Rank self{rank, size, *engines[rank], *networks[rank], agreed};
        body(self);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
      --running;
      while (running > 0) {
        engines[rank]->progress();
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Seen seen;
  for (const auto& network : networks) {
    seen.segments += network->segments;
    seen.requests += network->requests;
    seen.grants += network->grants;
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return seen;
}

TEST(HardwarePeers, EveryAlgorithmDelivers) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    const auto& [eager, segment, buffers] = size == 2   ? std::tuple{64U, 5952U, 2U}
                                            : size == 3 ? std::tuple{0U, 64U, 2U}
                                                        : std::tuple{256U, 256U, 1U};
    const Seen seen = run_watched(size, hardware_settings(eager, segment, buffers), [&](Rank& self) {
      for (const Algorithm& algorithm : algorithms()) {
        const bool pair = algorithm.collective == Collective::kSend || algorithm.collective == Collective::kRecv ||
                          algorithm.collective == Collective::kPut || algorithm.collective == Collective::kGet;
        if (pair || algorithm.direct || algorithm.collective == Collective::kNop ||
            reference::is_vector(algorithm.collective)) {
          continue;
        }
        // Of two ranks also messages of each length that has segments of its own.
        for (const std::uint64_t count : {1ULL, 60ULL, 700ULL, 9000ULL, 40000ULL, 80000ULL}) {
          if (count > 700 && size != 2) continue;
          Call call;
          call.collective = algorithm.collective;
          call.func = reference::is_reduction(algorithm.collective) ? Func::kSum : Func::kNone;
          call.dtype = Datatype::kInt32;
          call.size = self.size;
          call.root = reference::is_rooted(algorithm.collective) ? self.size - 1 : 0;
          call.count = algorithm.collective == Collective::kBarrier ? 0 : count;
          if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
          const reference::Job job = reference::make_job(algorithm, call);
          std::vector<reference::RankInput> inputs(self.size);
          std::mt19937 random(static_cast<unsigned>(count));
          for (std::uint32_t rank = 0; rank < self.size; ++rank) {
            inputs[rank].src.resize(job.region_bytes[rank][0]);
            inputs[rank].dst.resize(job.region_bytes[rank][1]);
            for (auto* data : {&inputs[rank].src, &inputs[rank].dst}) {
              for (std::byte& byte : *data) byte = static_cast<std::byte>(random());
            }
          }
          const auto expected = reference::interpret(job, inputs);
          CallRequest request;
          request.call = call;
          request.algorithm = static_cast<int>(&algorithm - algorithms().data());
          auto& own = inputs[self.rank];
          request.src = bind(own.src);
          request.dst = bind(own.dst);
          self.run(request);
          EXPECT_TRUE(own.dst == expected[self.rank])
              << name_of(algorithm.collective) << " " << algorithm.name << ", " << self.size << " ranks, " << count;
        }
      }
    });
    EXPECT_GT(seen.segments, 0U);
    EXPECT_GT(seen.grants, 0U);
    if (buffers == 1) {
      EXPECT_GT(seen.requests, 0U);
    }
  }
}

TEST(HardwarePeers, RandomProgramsGiveTheInterpretersBits) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const std::uint32_t size = 2 + seed % 3;
    Generator generator(seed * 10 + size, size);
    const std::vector<Program> programs = generator.run(20 + seed * 6);
    const reference::Job job =
        reference::make_job(programs, generator.dtype(), generator.src_bytes(), generator.bytes());
    std::vector<reference::RankInput> inputs(size);
    for (std::uint32_t r = 0; r < size; ++r) inputs[r] = {generator.data(r, 0), generator.data(r, 1), {}};
    const auto expected = reference::interpret(job, inputs);
    const std::uint32_t segment = seed % 3 == 0 ? 64 : 512;
    run_watched(size, hardware_settings(seed % 4 == 0 ? 0 : segment, segment, 1 + seed % 3), [&](Rank& self) {
      std::vector<std::byte> src = inputs[self.rank].src, dst = inputs[self.rank].dst;
      CallRequest request;
      request.call.collective = Collective::kProgram;
      request.call.dtype = generator.dtype();
      request.program = std::make_shared<Program>(programs[self.rank]);
      request.src = bind(src);
      request.dst = bind(dst);
      self.run(request);
      EXPECT_EQ(dst, expected[self.rank]) << "seed " << seed << ", rank " << self.rank << " of " << self.size;
    });
  }
}

/// Sends of all lengths in an order of tags that differs from that of the receives.
TEST(HardwarePeers, MessagesAreMatchedInOrder) {
  constexpr int kMessages = 60;
  const Seen seen = run_watched(3, hardware_settings(200, 256, 2), [](Rank& self) {
    std::mt19937 random(3);
    std::vector<std::size_t> counts(kMessages);
    std::vector<std::uint32_t> tags(kMessages);
    for (int i = 0; i < kMessages; ++i) {
      counts[i] = random() % 5 == 0 ? 0 : random() % 3 == 0 ? random() % 900 : random() % 50;
      tags[i] = static_cast<std::uint32_t>(random() % 3);
    }
    std::vector<std::vector<std::int32_t>> sent, got;
    std::vector<CallId> calls;
    const std::uint32_t right = (self.rank + 1) % self.size, left = (self.rank + self.size - 1) % self.size;
    for (int i = 0; i < kMessages; ++i) {
      auto& data = sent.emplace_back(counts[i]);
      for (std::size_t k = 0; k < counts[i]; ++k)
        data[k] = static_cast<std::int32_t>(self.rank * 100000 + i * 1000 + k);
    }
    got.resize(kMessages);
    // Receives by tag, each tag in order: another order than that of the sends.
    for (std::uint32_t tag = 0; tag < 3; ++tag) {
      for (int i = 0; i < kMessages; ++i) {
        if (tags[i] != tag) continue;
        got[i].resize(counts[i]);
        CallRequest request = test::request<std::int32_t>(Collective::kRecv, counts[i], left);
        request.dst = bind(got[i]);
        request.tag = tag;
        calls.push_back(self.engine.submit(request));
      }
    }
    for (int i = 0; i < kMessages; ++i) {
      CallRequest request = test::request<std::int32_t>(Collective::kSend, counts[i], right);
      request.src = bind(sent[i]);
      request.tag = tags[i];
      calls.push_back(self.engine.submit(request));
    }
    for (const CallId call : calls) self.finish(call);
    for (int i = 0; i < kMessages; ++i) {
      for (std::size_t k = 0; k < counts[i]; ++k) {
        ASSERT_EQ(got[i][k], static_cast<std::int32_t>(left * 100000 + i * 1000 + k)) << "message " << i;
      }
    }
  });
  EXPECT_GT(seen.requests, 0U);
}

TEST(HardwarePeers, AMismatchEndsTheCallAtOnce) {
  run_watched(2, hardware_settings(256, 256, 2), [](Rank& self) {
    std::vector<std::int32_t> src(10), dst(10);
    CallRequest request = test::request<std::int32_t>(self.rank == 0 ? Collective::kAllreduce : Collective::kBcast, 10,
                                                      0, self.rank == 0 ? Func::kSum : Func::kNone);
    request.src = bind(src);
    request.dst = bind(dst);
    if (self.rank == 1) request.call.root = 1;
    const auto begin = std::chrono::steady_clock::now();
    try {
      self.run(request);
      if (self.rank == 0) {
        ADD_FAILURE() << "the call succeeded";
      }
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kMismatchedCall || error.code() == ErrorCode::kRevoked) << error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
  });
}

TEST(HardwarePeers, RefusesSettingsThatDoNotGoTogether) {
  ThreadJob job(1);
  auto network = job.endpoint(0);
  EngineSettings settings = hardware_settings(256, 256, 2);
  settings.lanes = true;
  EXPECT_THROW(NativeEngine(*network, settings), Error);
  NativeEngine engine(*network, hardware_settings(512, 256, 2));
  const std::uint32_t self = 0;
  EXPECT_THROW(engine.create_communicator(0, 0, std::span(&self, 1), engine.capabilities()), Error);
}

}  // namespace
}  // namespace unisono::test
