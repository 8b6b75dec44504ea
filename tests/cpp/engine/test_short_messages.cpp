// Messages that go without a grant: how long they may be, what they cost their receiver, and sends that are no calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/counters.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

constexpr std::size_t kLongest = 2048;  // elements, under the settings below

/// Receive buffers of 1 KiB, so that 8 KiB of a message may go at once.
EngineSettings settings(std::uint32_t buffers = 32) {
  EngineSettings made = message_settings();
  made.eager_limit = 1024;
  made.segment_bytes = 512;
  made.rx_buffer_count = buffers;
  return made;
}

std::vector<std::int32_t> values(std::size_t count, int seed) {
  std::vector<std::int32_t> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::int32_t>(i * 7 + i / 128) + 100'003 * seed;
  return made;
}

CallRequest message(Collective collective, std::uint32_t peer, std::uint32_t tag, std::vector<std::int32_t>& data) {
  CallRequest made = request<std::int32_t>(collective, data.size(), peer);
  made.tag = tag;
  (collective == Collective::kSend ? made.src : made.dst) = bind(data);
  return made;
}

std::uint64_t counter(const Rank& self, NativeCounter which) {
  return self.engine.counter(static_cast<std::size_t>(which));
}

void barrier(const Rank& self) { self.run(request<std::int32_t>(Collective::kBarrier, 0)); }

TEST(LongEager, AMessageGoesUnaskedAsFarAsBuffersReach) {
  run_ranks(2, settings(), [](Rank& self) {
    int seed = 0;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{256}, std::size_t{257},
                                    std::size_t{1000}, kLongest, kLongest + 1}) {
      for (const bool posted : {true, false}) {
        ++seed;
        std::vector<std::int32_t> in(count, -1);
        CallId receiving = 0;
        if (self.rank == 1 && posted) receiving = self.engine.submit(message(Collective::kRecv, 0, 5, in));
        barrier(self);
        const std::uint64_t requests = counter(self, NativeCounter::kRequestsSent);
        std::vector<std::int32_t> out = values(count, seed);
        if (self.rank == 0) {
          self.engine.run(message(Collective::kSend, 1, 5, out));
          EXPECT_EQ(counter(self, NativeCounter::kRequestsSent) - requests, count > kLongest ? 1U : 0U) << count;
        } else if (posted) {
          self.finish(receiving);
        } else {
          self.run(message(Collective::kRecv, 0, 5, in));
        }
        if (self.rank == 1) {
          EXPECT_EQ(in, out);
        }
      }
    }
  });
}

TEST(LongEager, TakesAsManyCreditsAsBuffersAndGivesThemBack) {
  run_ranks(2, settings(), [](Rank& self) {
    constexpr int kMessages = 10;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::vector<std::int32_t>> out;
      std::vector<CallId> ids;
      const std::uint64_t requests = counter(self, NativeCounter::kRequestsSent);
      for (int i = 0; i < kMessages && self.rank == 0; ++i) out.push_back(values(kLongest, 10 * round + i));
      for (int i = 0; i < kMessages && self.rank == 0; ++i) {
        ids.push_back(self.engine.submit(message(Collective::kSend, 1, 0, out[static_cast<std::size_t>(i)])));
      }
      // Of 32 buffers each takes 8. One may still be taken by the last barrier.
      if (self.rank == 0) {
        EXPECT_GE(counter(self, NativeCounter::kRequestsSent) - requests, kMessages - 4U);
        EXPECT_LE(counter(self, NativeCounter::kRequestsSent) - requests, kMessages - 3U);
      }
      barrier(self);
      for (int i = 0; i < kMessages && self.rank == 1; ++i) {
        std::vector<std::int32_t> in(kLongest);
        self.run(message(Collective::kRecv, 0, 0, in));
        EXPECT_EQ(in, values(kLongest, 10 * round + i));
      }
      for (const CallId id : ids) self.finish(id);
      // The credits come back with what the receiver says next.
      barrier(self);
      barrier(self);
    }
  });
}

TEST(LongEager, FewBuffersAreForShortMessages) {
  run_ranks(2, settings(2), [](Rank& self) {
    std::vector<std::int32_t> data = values(257, 1);
    const std::uint64_t requests = counter(self, NativeCounter::kRequestsSent);
    if (self.rank == 0) {
      self.engine.run(message(Collective::kSend, 1, 0, data));
      EXPECT_EQ(counter(self, NativeCounter::kRequestsSent) - requests, 1U);
    } else {
      std::vector<std::int32_t> in(257);
      self.run(message(Collective::kRecv, 0, 0, in));
      EXPECT_EQ(in, data);
    }
  });
}

TEST(LongEager, TooLongForItsReceiveFailsThatAndNothingElse) {
  run_ranks(2, settings(), [](Rank& self) {
    for (int round = 0; round < 40; ++round) {  // more than there are credits
      for (const std::size_t count : {std::size_t{100}, std::size_t{1500}}) {
        std::vector<std::int32_t> little(10), good(count), out = values(count, round);
        CallId receiving = 0;
        if (self.rank == 1 && round % 2 == 0) receiving = self.engine.submit(message(Collective::kRecv, 0, 4, little));
        barrier(self);
        if (self.rank == 0) {
          self.engine.run(message(Collective::kSend, 1, 4, out));
          self.engine.run(message(Collective::kSend, 1, 4, out));
          continue;
        }
        if (round % 2 != 0) receiving = self.engine.submit(message(Collective::kRecv, 0, 4, little));
        EXPECT_EQ(self.engine.wait(receiving).code, ErrorCode::kTruncated);
        self.engine.forget(receiving);
        self.run(message(Collective::kRecv, 0, 4, good));
        EXPECT_EQ(good, out);
      }
    }
  });
}

TEST(ShortSend, IsCountedAndOvertakesNothing) {
  run_ranks(2, settings(), [](Rank& self) {
    for (const std::size_t before : {std::size_t{50'000}, kLongest, std::size_t{3}}) {
      std::vector<std::int32_t> first = values(before, 1), second = values(5, 2), third = values(6, 3);
      if (self.rank == 0) {
        const std::uint64_t calls = counter(self, NativeCounter::kCallsQueued);
        const CallId sending = self.engine.submit(message(Collective::kSend, 1, 7, first));
        self.engine.run(message(Collective::kSend, 1, 7, second));
        self.finish(sending);
        self.engine.run(message(Collective::kSend, 1, 7, third));
        EXPECT_EQ(counter(self, NativeCounter::kCallsQueued) - calls, 3U);
      } else {
        std::vector<std::int32_t> in(before + 10);
        for (const std::vector<std::int32_t>* const expected : {&first, &second, &third}) {
          EXPECT_EQ(self.run(message(Collective::kRecv, 0, 7, in)).received_bytes, expected->size() * 4);
          EXPECT_TRUE(std::equal(expected->begin(), expected->end(), in.begin()));
        }
      }
    }
  });
}

TEST(ShortSend, ManyOfThemWaitForCreditsAsOthersDo) {
  run_ranks(3, settings(), [](Rank& self) {
    constexpr int kMessages = 500;
    std::vector<std::int32_t> data(3);
    for (int i = 0; i < kMessages; ++i) {
      if (self.rank != 0) {
        data = values(3, i);
        self.engine.run(message(Collective::kSend, 0, self.rank, data));
        continue;
      }
      for (const std::uint32_t from : {1U, 2U}) {
        self.run(message(Collective::kRecv, from, from, data));
        ASSERT_EQ(data, values(3, i)) << i;
      }
    }
  });
}

TEST(ShortSend, RefusesWhatEveryCallRefuses) {
  std::atomic<bool> ready{false};
  run_ranks(2, settings(), [&](Rank& self) {
    std::vector<std::int32_t> data(4);
    const auto refused = [&](ErrorCode code, const std::function<void(CallRequest&)>& spoil) {
      CallRequest made = message(Collective::kSend, 1 - self.rank, 0, data);
      spoil(made);
      try {
        self.engine.run(made);
        ADD_FAILURE() << "nothing was refused; expected " << name_of(code);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
      }
    };
    refused(ErrorCode::kInvalidRoot, [](CallRequest& made) { made.call.root = 2; });
    refused(ErrorCode::kBufferTooSmall, [](CallRequest& made) { made.src.bytes = 15; });
    refused(ErrorCode::kBufferTooSmall, [](CallRequest& made) { made.src.data = nullptr; });
    refused(ErrorCode::kInvalidCount, [](CallRequest& made) { made.call.count = kMaxCount + 1; });
    refused(ErrorCode::kInvalidDatatype, [](CallRequest& made) { made.call.dtype = static_cast<Datatype>(99); });
    refused(ErrorCode::kInvalidArgument, [](CallRequest& made) { made.tag = 0x80000000U; });
    if (self.rank == 1) ready = true;
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    while (!ready && std::chrono::steady_clock::now() < until) self.engine.progress();
    if (self.rank == 0) self.engine.revoke(0, "for this test");
    while (std::chrono::steady_clock::now() < until) {
      self.engine.progress();
      try {
        self.engine.run(message(Collective::kSend, 1 - self.rank, 0, data));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kRevoked) << error.what();
        return;
      }
    }
    ADD_FAILURE() << "a revoked communicator still sends";
  });
}

}  // namespace
}  // namespace unisono::test
