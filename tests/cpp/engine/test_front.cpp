// The shortest way of a blocking call: what is taken in the caller's thread at once, and what must go through the
// engine.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "engine/fast_path.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

struct Vectors {
  std::vector<std::int32_t> src{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<std::int32_t> dst = std::vector<std::int32_t>(8);

  CallRequest sum(std::uint64_t count) {
    CallRequest made = request<std::int32_t>(Collective::kAllreduce, count, 0, Func::kSum);
    made.src = {bind(src).data, 4 * count};
    made.dst = {bind(dst).data, 4 * count};
    return made;
  }
};

TEST(Front, TakesCallsWhosePlanIsThereAndNoOthers) {
  run_ranks(1, quick_settings(), [](Rank& self) {
    const auto fast_path = self.engine.fast_path(0);
    Vectors vectors;
    const CallRequest known = vectors.sum(3);
    std::uint64_t received = 0;
    EXPECT_FALSE(fast_path->try_run(known, received)) << "no such call was made";
    self.engine.run(known);
    const auto takes = [&](auto&& alter) {
      CallRequest altered = known;
      alter(altered);
      vectors.dst.assign(8, 0);
      const bool taken = fast_path->try_run(altered, received);
      EXPECT_EQ(vectors.dst[2], taken ? 3 : 0);
      return taken;
    };
    EXPECT_TRUE(takes([](CallRequest&) {}));
    EXPECT_TRUE(takes([](CallRequest& r) { r.src.bytes = r.dst.bytes = 16; })) << "more than is needed";
    EXPECT_TRUE(takes([](CallRequest& r) { r.tag = 5; })) << "the operation has no tag";
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.count = 4; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.count = 3 + 64 * 64; })) << "of the same place";
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.func = Func::kProd; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.dtype = Datatype::kFp32; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.in_place = true; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.root = 64; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.collective = Collective::kScan; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.src.bytes = 11; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.dst.bytes = 11; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.src.data = nullptr; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.dst.data = nullptr; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.dst.data = r.src.data + 8; })) << "they overlap";
    EXPECT_FALSE(takes([](CallRequest& r) { r.dst = r.src; }));
    EXPECT_TRUE(takes([](CallRequest&) {})) << "nothing of that did harm";
    self.engine.free_communicator(0);
    EXPECT_FALSE(takes([](CallRequest&) {})) << "its communicator was freed";
  });
}

TEST(Front, CallsThatAskForMoreGoThroughTheEngine) {
  run_ranks(1, quick_settings(), [](Rank& self) {
    Vectors vectors;
    const CallRequest known = vectors.sum(3);
    self.engine.run(known);
    EXPECT_TRUE(known.plain());
    const auto asks = [&](auto&& alter) {
      CallRequest altered = known;
      alter(altered);
      EXPECT_FALSE(altered.plain());
      self.engine.run(altered);
      return self.engine.last_algorithm(0);
    };
    const LastAlgorithm named =
        asks([](CallRequest& r) { r.algorithm = find_algorithm(Collective::kAllreduce, "ring"); });
    EXPECT_STREQ(named.algorithm->name, "ring");
    EXPECT_FALSE(named.automatic);
    EXPECT_TRUE(asks([](CallRequest& r) { r.timeout = seconds(5); }).automatic);

    struct Counting final : CallHooks {
      void before() override { ++begun; }
      void after(std::uint64_t) override { ++ended; }
      int begun = 0, ended = 0;
    };
    const auto hooks = std::make_shared<Counting>();
    asks([&](CallRequest& r) { r.hooks = hooks; });
    EXPECT_EQ(hooks->begun, 1) << "also where the call runs in its caller's thread";
    EXPECT_EQ(hooks->ended, 1);
  });
}

TEST(Front, TakesShortMessages) {
  std::atomic<bool> sent{false}, ready{false};
  run_ranks(2, quick_settings(), [&](Rank& self) {
    const auto fast_path = self.engine.fast_path(0);
    Vectors vectors;
    const bool sends = self.rank == 0;
    CallRequest message = request<std::int32_t>(sends ? Collective::kSend : Collective::kRecv, 2, 1 - self.rank);
    message.tag = 7;
    message.src = {bind(vectors.src).data, 8};
    message.dst = {bind(vectors.dst).data, 8};
    std::uint64_t received = 0;
    self.engine.run(message);  // the lanes are there now
    EXPECT_EQ(vectors.dst[1], sends ? 0 : 2);
    vectors.src[1] = 22;
    const auto takes = [&](auto&& alter) {
      CallRequest altered = message;
      alter(altered);
      return fast_path->try_run(altered, received);
    };
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.root = 2; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.tag = 1U << 31U; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.dtype = Datatype::kNone; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.dtype = static_cast<Datatype>(200); }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.func = Func::kSum; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.in_place = true; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.call.count = std::uint64_t{1} << 62U; })) << "whose bytes are 0";
    EXPECT_FALSE(takes([](CallRequest& r) { r.src.bytes = r.dst.bytes = 7; }));
    EXPECT_FALSE(takes([](CallRequest& r) { r.src.data = r.dst.data = nullptr; }));
    // What comes while a receive is under way is kept for the next one, which then is no matter of one line.
    if (sends) {
      while (!ready) std::this_thread::yield();
      EXPECT_TRUE(takes([](CallRequest&) {}));
      sent = true;
    } else {
      ready = true;
      while (!sent) std::this_thread::yield();
      EXPECT_TRUE(takes([](CallRequest&) {}));
      EXPECT_EQ(received, 8U);
      EXPECT_EQ(vectors.dst[1], 22);
    }
  });
}

}  // namespace
}  // namespace unisono::test
