// A job of one PE whose threads do everything at once: what the sanitizers are to see.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "doors/shmem/access.hpp"
#include "doors/shmem/collectives.hpp"
#include "doors/shmem/failure.hpp"
#include "doors/shmem/job.hpp"
#include "doors/shmem/waiting.hpp"

namespace unisono::shmem {
namespace {

constexpr const char* kHere = "test";
constexpr int kThreads = 4;
constexpr std::uint64_t kTurns = 300;

class ShmemThreads : public testing::Test {
 protected:
  static void SetUpTestSuite() { Job::start(std::uint64_t{1} << 20U, false); }
  static void TearDownTestSuite() { Job::finish(); }

  /// Zeros: what a test before this one has left there is not for it.
  template <class T>
  static T* made(std::uint64_t count) {
    auto* const memory = static_cast<T*>(Job::of(kHere).allocate(kHere, count * sizeof(T), Heap::kLeastAlignment));
    std::fill_n(memory, count, T{});
    return memory;
  }
  template <class Work>
  static void on_threads(Work work) {
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int number = 0; number < kThreads; ++number) threads.emplace_back([&work, number] { work(number); });
    for (auto& thread : threads) thread.join();
  }
};

TEST_F(ShmemThreads, AtomicsCountAllOfThem) {
  auto* const words = made<std::uint64_t>(3);
  auto* const narrow = made<std::uint32_t>(1);
  on_threads([&](int number) {
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      atomic(kHere, Atomic::kAdd, &words[0], std::uint64_t{1} + static_cast<std::uint64_t>(number), std::uint64_t{0},
             0);
      atomic(kHere, Atomic::kXor, &words[1], std::uint64_t{1} << static_cast<unsigned>(number), std::uint64_t{0}, 0);
      atomic(kHere, Atomic::kAdd, narrow, 1U, 0U, 0, false);
      for (;;) {
        const std::uint64_t seen = atomic(kHere, Atomic::kFetch, &words[2], std::uint64_t{0}, std::uint64_t{0}, 0);
        if (atomic(kHere, Atomic::kCompareSwap, &words[2], seen + 1, seen, 0) == seen) break;
      }
    }
  });
  EXPECT_EQ(words[0], kTurns * (1 + 2 + 3 + 4));
  EXPECT_EQ(words[1], 0U);
  EXPECT_EQ(words[2], kTurns * kThreads);
  EXPECT_EQ(*narrow, kTurns * kThreads);
}

TEST_F(ShmemThreads, ASignalIsSeenAfterTheBytesBeforeIt) {
  constexpr std::uint64_t kBytes = 100;
  auto* const boxes = made<std::byte>(kThreads * kBytes);
  auto* const signals = made<std::uint64_t>(kThreads);
  auto* const answers = made<std::uint64_t>(kThreads);
  on_threads([&](int number) {  // two threads play together: one puts, the other waits and answers
    const int pair = number / 2;
    std::vector<std::byte> data(kBytes);
    for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
      if (number % 2 == 0) {
        std::fill(data.begin(), data.end(), static_cast<std::byte>(turn));
        put_signal(kHere, boxes + pair * kBytes, data.data(), kBytes, &signals[pair], turn,
                   static_cast<int>(Signal::kSet), 0);
        Watched<std::uint64_t>(kHere, &answers[pair], 1, nullptr, 1, &turn, true).wait_all();
      } else {
        Watched<std::uint64_t>(kHere, &signals[pair], 1, nullptr, 1, &turn, true).wait_all();
        get(kHere, data.data(), boxes + pair * kBytes, kBytes, 0);
        EXPECT_EQ(data.front(), static_cast<std::byte>(turn));
        EXPECT_EQ(data.back(), data.front());
        atomic(kHere, Atomic::kSet, &answers[pair], turn, std::uint64_t{0}, 0, false);
      }
    }
  });
}

TEST_F(ShmemThreads, MemoryTeamsAndContextsAreMadeByAllAtOnce) {
  Job& job = Job::of(kHere);
  on_threads([&](int number) {
    for (int turn = 0; turn < 20; ++turn) {
      const auto count = std::uint64_t{1} + static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(turn);
      auto* const own = static_cast<std::uint64_t*>(job.allocate(kHere, count * sizeof(std::uint64_t), 64));
      ASSERT_NE(own, nullptr);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t value = i * 100 + static_cast<std::uint64_t>(number);
        put(kHere, own + i, &value, sizeof value, 0);
      }
      auto* const ctx = job.teams().make_ctx(job.teams().world());
      EXPECT_EQ(&job.teams().team_of(kHere, ctx), &job.teams().world());
      EXPECT_EQ(job.teams().translate(kHere, ctx, 0), 0);
      job.quiet(kHere);
      for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(own[i], i * 100 + static_cast<std::uint64_t>(number));
      EXPECT_EQ(job.size_of(kHere, own), count * sizeof(std::uint64_t));
      job.teams().free_ctx(kHere, ctx);
      job.release(kHere, own);
    }
  });
}

TEST_F(ShmemThreads, WrongUseOfOneThreadHarmsNoOther) {
  auto* const word = made<std::uint64_t>(1);
  std::atomic<int> refused{0};
  on_threads([&](int number) {
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      try {
        std::uint64_t stack = 0;
        if (number % 2 == 0) {
          put(kHere, &stack, &turn, sizeof turn, 0);
        } else {
          atomic(kHere, Atomic::kAdd, word, std::uint64_t{1}, std::uint64_t{0}, number == 1 ? 0 : 7);
        }
      } catch (const Failure&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(refused.load(), 3 * static_cast<int>(kTurns));
  EXPECT_EQ(*word, kTurns);
}

}  // namespace
}  // namespace unisono::shmem
