// Calls whose long messages are written into the receiver's memory by libfabric: results, and what happens to memory
// when a call ends in the middle of it. Ranks are threads, over the provider that every machine has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "network/lasting_memory.hpp"
#include "tests/cpp/engine/ranks.hpp"
#include "tests/cpp/network/ofi_job.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTcp = "tcp;ofi_rxm";

class OfiCalls : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = missing_provider(kTcp);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

/// Ranks that reach each other by libfabric alone, and have proven themselves.
void run_by_ofi(OfiJob& job, const EngineSettings& settings, const std::function<void(Rank&)>& body) {
  const auto size = static_cast<std::uint32_t>(job.networks.size());
  drive(job, [&] {
    bool proven = true;
    for (std::uint32_t i = 0; i < size; ++i) {
      for (std::uint32_t j = 0; j < size; ++j) proven = proven && (i == j || job[i].trial(j) == Trial::kProven);
    }
    return proven;
  });
  std::atomic<std::uint32_t> running{size};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      NetworkPoe poe(job[rank], rank, size);
      NativeEngine engine(poe, settings);
      const Agreement own = engine.capabilities();
      std::vector<std::uint32_t> endpoints(size);
      std::iota(endpoints.begin(), endpoints.end(), 0U);
      const std::vector<Agreement> all(size, own);
      engine.create_communicator(0, 0, endpoints, agree(all));
      Rank self{rank, size, engine, poe, own};
      try {
        body(self);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      for (--running; running != 0;) {
        engine.progress();
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_by_ofi(std::uint32_t size, const EngineSettings& settings, const std::function<void(Rank&)>& body) {
  OfiJob job(size, kTcp);
  run_by_ofi(job, settings, body);
}

const ofi::Registrations& registrations(OfiJob& job, std::uint32_t rank) {
  return dynamic_cast<const ofi::OfiNetwork&>(job[rank]).registrations();
}

std::uint64_t counter(const Rank& self, NativeCounter which) {
  return self.engine.counter(static_cast<std::size_t>(which));
}

std::int64_t element(std::uint32_t rank, std::size_t i) {
  return static_cast<std::int64_t>(i * (2 * rank + 3) + rank * 1000003 + (i >> 9));
}

std::vector<std::int64_t> mine(std::uint32_t rank, std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

void check(bool right, const char* what, std::size_t count) {
  if (!right) throw std::runtime_error(std::string(what) + " of " + std::to_string(count) + " elements is wrong");
}

/// Calls that land in their place, pass on what lands, and combine what comes.
void all_calls(Rank& self, std::size_t count) {
  const std::uint32_t size = self.size;
  const auto own = mine(self.rank, count);

  auto in = own;
  std::vector<std::int64_t> out(count);
  CallRequest sum = request<std::int64_t>(Collective::kAllreduce, count, 0, Func::kSum);
  sum.src = bind(in);
  sum.dst = bind(out);
  self.run(sum);
  std::vector<std::int64_t> right(count);
  for (std::uint32_t r = 0; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) right[i] += element(r, i);
  }
  check(out == right, "all-reduce", count);

  for (std::uint32_t root = 0; root < size; ++root) {
    auto data = self.rank == root ? own : std::vector<std::int64_t>(count);
    CallRequest bcast = request<std::int64_t>(Collective::kBcast, count, root);
    bcast.dst = bind(data);
    self.run(bcast);
    check(data == mine(root, count), "broadcast", count);
  }

  std::vector<std::int64_t> gathered(count * size);
  CallRequest gather = request<std::int64_t>(Collective::kAllgather, count);
  gather.src = bind(in);
  gather.dst = bind(gathered);
  self.run(gather);
  for (std::uint32_t r = 0; r < size; ++r) {
    const auto theirs = mine(r, count);
    check(std::equal(theirs.begin(), theirs.end(), gathered.begin() + static_cast<std::ptrdiff_t>(r * count)),
          "all-gather", count);
  }

  std::vector<std::int64_t> blocks(count * size);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = element(self.rank, i);
  std::vector<std::int64_t> exchanged(count * size);
  CallRequest exchange = request<std::int64_t>(Collective::kAlltoall, count);
  exchange.src = bind(blocks);
  exchange.dst = bind(exchanged);
  self.run(exchange);
  for (std::uint32_t r = 0; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      check(exchanged[r * count + i] == element(r, self.rank * count + i), "all-to-all", count);
    }
  }

  std::vector<std::int64_t> received(count);
  CallRequest receive = request<std::int64_t>(Collective::kRecv, count, (self.rank + size - 1) % size);
  receive.dst = bind(received);
  CallRequest send = request<std::int64_t>(Collective::kSend, count, (self.rank + 1) % size);
  send.src = bind(in);
  const CallId receiving = self.engine.submit(receive);
  const CallId sending = self.engine.submit(send);
  self.finish(receiving);
  self.finish(sending);
  check(received == mine((self.rank + size - 1) % size, count), "a message", count);
}

TEST_F(OfiCalls, LongMessagesAreWrittenAndRight) {
  for (const std::uint32_t size : {2U, 3U}) {
    run_by_ofi(size, message_settings(), [](Rank& self) {
      // Of few bytes three ranks send some to themselves, which is not this network's business.
      for (const std::size_t count : {1U, 8191U, 8193U, 200'001U}) {
        if (self.size == 2 || count > 10'000) all_calls(self, count);
      }
      // Of messages a segment has 32 KiB; of writes one has all that was written.
      const std::uint64_t bytes = counter(self, NativeCounter::kBytesReceived);
      EXPECT_GT(bytes / counter(self, NativeCounter::kSegmentsReceived), 65'536U) << "nothing was written";
      if (self.size == 2) {
        EXPECT_EQ(bytes, counter(self, NativeCounter::kBytesSent)) << "all is counted on both sides";
      }
    });
  }
}

TEST_F(OfiCalls, SeveralAtOnceDoNotMix) {
  run_by_ofi(3, message_settings(), [](Rank& self) {
    constexpr std::size_t kCalls = 8;
    constexpr std::size_t kCount = 60'000;
    std::vector<std::vector<std::int64_t>> in;
    std::vector<std::vector<std::int64_t>> out(kCalls, std::vector<std::int64_t>(kCount));
    std::vector<CallId> calls;
    for (std::size_t n = 0; n < kCalls; ++n) {
      in.push_back(mine(self.rank + static_cast<std::uint32_t>(10 * n), kCount));
      CallRequest sum = request<std::int64_t>(Collective::kAllreduce, kCount, 0, Func::kSum);
      sum.src = bind(in.back());
      sum.dst = bind(out[n]);
      calls.push_back(self.engine.submit(sum));
    }
    for (std::size_t n = 0; n < kCalls; ++n) {
      self.finish(calls[n]);
      for (std::size_t i = 0; i < kCount; ++i) {
        std::int64_t right = 0;
        for (std::uint32_t r = 0; r < 3; ++r) right += element(r + static_cast<std::uint32_t>(10 * n), i);
        check(out[n][i] == right, "an all-reduce among others", kCount);
      }
    }
  });
}

TEST_F(OfiCalls, MemoryThatLastsIsRegisteredOnceAndSoAreRings) {
  constexpr std::size_t kCount = 50'000;
  constexpr int kCalls = 50;
  OfiJob job(2, kTcp);
  std::atomic<std::uint32_t> done{0};
  run_by_ofi(job, message_settings(), [&](Rank& self) {
    const auto own = mine(self.rank, kCount);
    std::vector<std::int64_t> lasting(kCount);
    std::vector<std::int64_t> other(kCount);
    const LastingPiece piece(reinterpret_cast<const std::byte*>(lasting.data()), kCount * sizeof lasting[0]);
    const auto move = [&](std::vector<std::int64_t>& into) {
      for (int n = 0; n < kCalls; ++n) {
        const Collective collective = self.rank == 0 ? Collective::kSend : Collective::kRecv;
        CallRequest message = request<std::int64_t>(collective, kCount, 1 - self.rank);
        auto data = own;
        message.src = bind(data);
        if (self.rank == 1) message.dst = bind(into);
        self.run(message);
        if (self.rank == 1) check(into == mine(0, kCount), "a message", kCount);
      }
    };
    const std::uint64_t before = registrations(job, self.rank).made();
    move(lasting);
    EXPECT_EQ(registrations(job, self.rank).made() - before, self.rank == 1 ? 1U : 0U);
    move(other);
    // It may be freed unseen.
    EXPECT_EQ(registrations(job, self.rank).made() - before, self.rank == 1 ? 1U + kCalls : 0U);
    EXPECT_EQ(registrations(job, self.rank).kept(), self.rank == 1 ? 1U : 0U);

    // What is combined passes through the engine's own rings.
    const auto reduce = [&](int calls) {
      for (int n = 0; n < calls; ++n) {
        CallRequest sum = request<std::int64_t>(Collective::kReduce, kCount, 0, Func::kSum);
        auto data = own;
        sum.src = bind(data);
        if (self.rank == 0) sum.dst = bind(other);
        self.run(sum);
        if (self.rank == 0) check(other[kCount - 1] == own[kCount - 1] + element(1, kCount - 1), "a sum", kCount);
      }
    };
    const std::uint64_t then = registrations(job, self.rank).made();
    reduce(kCalls);
    EXPECT_LE(registrations(job, self.rank).made() - then, 8U);
    // The memory lasts no longer than this; the other rank may still need this one.
    for (++done; done != 2;) self.engine.progress();
  });
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(registrations(job, rank).kept(), 0U) << "the engine's rings are gone, and so is what was registered";
  }
}

/// A receive that ends at its deadline while its sender writes: what it was to get belongs to its owner.
TEST_F(OfiCalls, MemoryOfACallThatEndedIsNotWrittenAnyMore) {
  constexpr std::size_t kCount = 2U << 20U;
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> ended{false};
    std::atomic<bool> looked{false};
    run_by_ofi(2, message_settings(), [&](Rank& self) {
      std::vector<std::int64_t> data(kCount, -1);
      if (self.rank == 1) {
        CallRequest send = request<std::int64_t>(Collective::kSend, kCount, 0);
        send.src = bind(data);
        const CallId sending = self.engine.submit(send);
        // Into the message, but not to its end: nobody goes on here until the receive has ended.
        for (int i = 0; i < 40 + 60 * round; ++i) self.engine.progress();
        std::this_thread::sleep_for(milliseconds(300));
        while (!looked) self.engine.progress();
        // It may have gone nowhere, which a sender need not know.
        static_cast<void>(self.engine.wait(sending));
        return;
      }
      std::fill(data.begin(), data.end(), 0);
      CallRequest receive = request<std::int64_t>(Collective::kRecv, kCount, 1);
      receive.dst = bind(data);
      receive.timeout = milliseconds(150);
      const CallId receiving = self.engine.submit(receive);
      const CallResult result = self.engine.wait(receiving);
      EXPECT_EQ(result.code, ErrorCode::kTimeout) << result.message;
      EXPECT_FALSE(result.still_written) << result.message;
      EXPECT_THAT(result.message, HasSubstr("rank 1"));
      std::fill(data.begin(), data.end(), 77);
      const auto deadline = Clock::now() + milliseconds(300);
      while (Clock::now() < deadline) self.engine.progress();
      EXPECT_EQ(std::count(data.begin(), data.end(), 77), static_cast<std::ptrdiff_t>(kCount)) << "round " << round;
      looked = true;
    });
  }
}

}  // namespace
}  // namespace unisono::test
