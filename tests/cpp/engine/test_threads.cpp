// One engine, several threads.
#include <gtest/gtest.h>

#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

TEST(Threads, OfOneRankAllMakeProgress) {
  // Each thread has a communicator of its own, so that the order of its calls is its own too.
  constexpr std::uint32_t kThreads = 3;
  run_ranks(2, quick_settings(), [](Rank& self) {
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      self.engine.create_communicator(10 + t, 0, std::vector<std::uint32_t>{0, 1}, self.agreed);
    }
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&self, t] {
        for (std::uint64_t round = 0; round < 200; ++round) {
          const std::uint64_t count = 1 + round * 40;
          std::vector<std::int64_t> src(count, static_cast<std::int64_t>(self.rank + t + round)), dst(count);
          CallRequest r = request<std::int64_t>(Collective::kAllreduce, count, 0, Func::kSum);
          r.communicator = 10 + t;
          r.src = bind(src);
          r.dst = bind(dst);
          EXPECT_NO_THROW(self.run(r));
          EXPECT_EQ(dst.back(), static_cast<std::int64_t>(1 + 2 * (t + round)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(Threads, OneWaitsWhileAnotherSubmits) {
  run_ranks(1, quick_settings(), [](Rank& self) {
    std::vector<std::int32_t> in(5000), out(5000, 4);
    CallRequest receive = request<std::int32_t>(Collective::kRecv, in.size());
    receive.dst = bind(in);
    const CallId id = self.engine.submit(receive);
    std::thread waiter([&] { EXPECT_EQ(self.engine.wait(id).code, ErrorCode::kOk); });
    std::this_thread::sleep_for(milliseconds(30));
    CallRequest send = request<std::int32_t>(Collective::kSend, out.size());
    send.src = bind(out);
    self.run(send);
    waiter.join();
    EXPECT_EQ(in, out);
  });
}

}  // namespace
}  // namespace unisono::test
