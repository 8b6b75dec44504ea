// Point-to-point messages and the peers' windows.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "network/shm/shm_poe.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

CallRequest message(Collective collective, std::uint32_t peer, std::uint32_t tag, std::vector<std::int32_t>& data) {
  CallRequest r = request<std::int32_t>(collective, data.size(), peer);
  r.tag = tag;
  (collective == Collective::kSend ? r.src : r.dst) = bind(data);
  return r;
}

std::vector<std::int32_t> values(std::size_t count, int seed) {
  std::vector<std::int32_t> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::int32_t>(i * 3) + 1000 * seed;
  return made;
}

void expect_error(const std::function<void()>& work, ErrorCode code, const std::vector<std::string>& words) {
  try {
    work();
    ADD_FAILURE() << "no error; expected " << name_of(code);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

class Messages : public testing::TestWithParam<std::uint32_t> {
 protected:
  static EngineSettings settings() {
    EngineSettings made = quick_settings();
    made.eager_limit = GetParam();
    made.segment_bytes = 256;
    made.rx_buffer_count = 2;
    return made;
  }
};

TEST_P(Messages, TagsChooseAndOrderHoldsWithinATag) {
  run_ranks(2, settings(), [](Rank& self) {
    const std::size_t lengths[] = {5, 300, 0, 1000, 1, 64};
    if (self.rank == 0) {
      std::vector<std::vector<std::int32_t>> data;
      std::vector<CallId> ids;
      for (int i = 0; i < 6; ++i) data.push_back(values(lengths[i], i));
      for (std::uint32_t i = 0; i < 6; ++i)
        ids.push_back(self.engine.submit(message(Collective::kSend, 1, i % 2, data[i])));
      for (const CallId id : ids) self.finish(id);
    } else {
      for (const std::uint32_t i : {1U, 3U, 0U, 2U, 5U, 4U}) {  // odd tags first; 4 after 5
        std::vector<std::int32_t> data(1200, -1);
        const CallResult result = self.run(message(Collective::kRecv, 0, i % 2, data));
        ASSERT_EQ(result.received_bytes, lengths[i] * 4);
        data.resize(lengths[i]);
        EXPECT_EQ(data, values(lengths[i], static_cast<int>(i)));
      }
    }
  });
}

TEST_P(Messages, ReceivesPostedFirstAreFilledInOrder) {
  run_ranks(3, settings(), [](Rank& self) {
    const std::uint32_t next = (self.rank + 1) % 3, before = (self.rank + 2) % 3;
    std::vector<std::vector<std::int32_t>> in(20, std::vector<std::int32_t>(777)), out;
    std::vector<CallId> ids;
    for (std::uint32_t i = 0; i < 20; ++i)
      ids.push_back(self.engine.submit(message(Collective::kRecv, before, 9, in[i])));
    for (std::size_t i = 0; i < 20; ++i) out.push_back(values(40 * i, static_cast<int>(100 * self.rank + i)));
    for (std::uint32_t i = 0; i < 20; ++i)
      ids.push_back(self.engine.submit(message(Collective::kSend, next, 9, out[i])));
    for (const CallId id : ids) self.finish(id);
    for (std::size_t i = 0; i < 20; ++i) {
      in[i].resize(40 * i);
      EXPECT_EQ(in[i], values(40 * i, static_cast<int>(100 * before + i)));
    }
  });
}

// What a rank shared with nobody is nobody's business: the others still reach each other's memory when it has gone.
TEST_P(Messages, ARankThatLeavesWithAReceivePostedKeepsNobodyFromLongMessages) {
  constexpr std::size_t kElements = 20'000;  // more than cells carry
  std::atomic<bool> left{false};
  std::vector<std::int32_t> never(kElements);
  run_ranks(3, settings(), [&](Rank& self) {
    CallRequest barrier;
    barrier.call.collective = Collective::kBarrier;
    self.run(barrier);
    if (self.rank == 2) {
      const CallId id = self.engine.submit(message(Collective::kRecv, 0, 9, never));
      EXPECT_FALSE(self.engine.test(id).complete);
      self.engine.free_communicator(0);
      left = true;
      return;
    }
    while (!left) std::this_thread::yield();
    std::vector<std::int32_t> out = values(kElements, static_cast<int>(self.rank)), in(kElements);
    const CallId receive = self.engine.submit(message(Collective::kRecv, 1 - self.rank, 9, in));
    const CallId send = self.engine.submit(message(Collective::kSend, 1 - self.rank, 9, out));
    self.finish(receive);
    self.finish(send);
    EXPECT_EQ(in, values(kElements, static_cast<int>(1 - self.rank)));
  });
}

// Receives may be entered before rank 0 has made a communicator's lanes; later ones do not overtake them.
TEST_P(Messages, ReceivesBeforeTheLanesKeepTheirPlace) {
  constexpr std::uint32_t kTimes = 20;
  std::atomic<std::uint32_t> entered{0};
  run_ranks(2, settings(), [&](Rank& self) {
    for (std::uint32_t number = 1; number <= kTimes; ++number) {
      const auto message_of = [&](Collective collective, std::vector<std::int32_t>& data) {
        CallRequest made = message(collective, 1 - self.rank, 9, data);
        made.communicator = number;
        return made;
      };
      const auto create = [&] {
        self.engine.create_communicator(number, 0, std::vector<std::uint32_t>{0, 1}, self.agreed);
      };
      if (self.rank == 0) {
        while (entered < number) std::this_thread::yield();
        create();
        for (int i = 0; i < 3; ++i) {
          std::vector<std::int32_t> out = values(100, i);
          self.engine.run(message_of(Collective::kSend, out));
        }
      } else {
        create();
        std::vector<std::vector<std::int32_t>> in(3, std::vector<std::int32_t>(100));
        const CallId first = self.engine.submit(message_of(Collective::kRecv, in[0]));
        const CallId second = self.engine.submit(message_of(Collective::kRecv, in[1]));
        entered = number;
        self.engine.run(message_of(Collective::kRecv, in[2]));
        self.finish(first);
        self.finish(second);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(in[static_cast<std::size_t>(i)], values(100, i)) << "receive " << i;
      }
    }
  });
}

TEST_P(Messages, ToOneself) {
  run_ranks(1, settings(), [](Rank& self) {
    std::vector<std::int32_t> out = values(2000, 3), in(2000);
    const CallId send = self.engine.submit(message(Collective::kSend, 0, 1, out));
    self.run(message(Collective::kRecv, 0, 1, in));
    self.finish(send);
    EXPECT_EQ(in, out);
  });
}

TEST_P(Messages, ThatAreTooLongFailTheReceiveAndNothingElse) {
  run_ranks(2, settings(), [](Rank& self) {
    std::vector<std::int32_t> data = values(500, 1), little(10), good(500);
    if (self.rank == 0) {
      const CallId first = self.engine.submit(message(Collective::kSend, 1, 4, data));
      const CallId second = self.engine.submit(message(Collective::kSend, 1, 4, data));
      const CallResult result = self.engine.wait(first);
      // An eager message has left before its receiver refuses it; a rendezvous has not.
      EXPECT_EQ(result.code, 2000 <= GetParam() ? ErrorCode::kOk : ErrorCode::kTruncated) << result.message;
      self.finish(second);
    } else {
      expect_error([&] { self.run(message(Collective::kRecv, 0, 4, little)); }, ErrorCode::kTruncated,
                   {"recv", "rank 0", "2000 bytes", "at most 40"});
      self.run(message(Collective::kRecv, 0, 4, good));
      EXPECT_EQ(good, values(500, 1));
    }
  });
}

TEST_P(Messages, PutAndGetReachTheWindow) {
  run_ranks(3, settings(), [](Rank& self) {
    std::vector<std::int32_t> window = values(3000, static_cast<int>(self.rank));
    self.engine.bind_window(0, bind(window));
    CallRequest barrier = request<std::int32_t>(Collective::kBarrier, 0);
    self.run(barrier);
    const std::uint32_t peer = (self.rank + 1) % 3;

    std::vector<std::int32_t> got(1500);
    CallRequest get = request<std::int32_t>(Collective::kGet, got.size(), peer);
    get.dst = bind(got);
    get.window_offset = 400;
    self.run(get);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], static_cast<std::int32_t>((i + 100) * 3 + 1000 * peer));
    self.run(barrier);

    std::vector<std::int32_t> out = values(1200, 50 + static_cast<int>(self.rank));
    CallRequest put = request<std::int32_t>(Collective::kPut, out.size(), peer);
    put.src = bind(out);
    put.window_offset = 800;
    self.run(put);
    self.run(barrier);
    const std::int32_t origin = 50 + static_cast<std::int32_t>((self.rank + 2) % 3);
    for (std::size_t i = 0; i < window.size(); ++i) {
      const auto at = static_cast<std::int32_t>(i);
      const bool written = i >= 200 && i < 1400;
      ASSERT_EQ(window[i], written ? (at - 200) * 3 + 1000 * origin : at * 3 + 1000 * static_cast<int>(self.rank)) << i;
    }

    put.window_offset = 3000 * 4 - 4;
    expect_error([&] { self.run(put); }, ErrorCode::kBufferTooSmall, {"put", "refused", "12000 bytes"});
    // Not all of it fits, so nothing of it is written, also of its first segments.
    const std::vector<std::int32_t> before = window;
    put.window_offset = 3000 * 4 - 4 * 1199;
    expect_error([&] { self.run(put); }, ErrorCode::kBufferTooSmall, {"put", "refused", "12000 bytes"});
    self.run(barrier);
    EXPECT_TRUE(window == before);
    get.window_offset = 12001;
    expect_error([&] { self.run(get); }, ErrorCode::kBufferTooSmall, {"get", "refused", "12000 bytes"});
    self.run(barrier);  // the communicator is as good as before
    self.engine.bind_window(0, {});
  });
}

// Each end copies its half of a long message piece by piece. It must not sleep between two of them, for nobody wakes
// it.
TEST(LongMessages, AreCopiedWithoutASleepBetweenPieces) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    constexpr std::size_t kElements = 4'000'000;
    shm::Parking& parking = self.poe.shared_memory()->parking();
    parking.set_policy({.patience = microseconds(0), .look = seconds(20)});
    std::vector<std::int32_t> data = self.rank == 0 ? values(kElements, 7) : std::vector<std::int32_t>(kElements);
    std::vector<std::int32_t> other = self.rank == 1 ? values(kElements, 8) : std::vector<std::int32_t>(kElements);
    const auto begin = std::chrono::steady_clock::now();
    // From a rank that is known, and from any.
    self.engine.run(message(self.rank == 0 ? Collective::kSend : Collective::kRecv, 1 - self.rank, 3, data));
    CallRequest back = message(self.rank == 1 ? Collective::kSend : Collective::kRecv, 1 - self.rank, 4, other);
    if (self.rank == 0) {
      back.call.root = 0;
      back.any_source = true;
    }
    self.engine.run(back);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10)) << "rank " << self.rank;
    EXPECT_EQ(parking.counters().rescues, 0U);
    EXPECT_EQ(data, values(kElements, 7));
    EXPECT_EQ(other, values(kElements, 8));
    parking.set_policy({});
  });
}

INSTANTIATE_TEST_SUITE_P(EagerLimits, Messages, testing::Values(0U, 64U, 8192U));

}  // namespace
}  // namespace unisono::test
