// The offload thread, and many calls in flight on communicators that overlap, from several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// As on_ranks, with settings for each rank.
void on_ranks_with(std::uint32_t size, const std::function<Settings(std::uint32_t)>& settings,
                   const std::function<void(Communicator)>& body) {
  const ThreadJob job(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Context context(job, rank, settings(rank));
        body(context.world());
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Settings offloading(std::uint32_t) { return {.timeout_seconds = 30, .offload = true}; }

class Offload : public testing::TestWithParam<bool> {};

// Rank 0 starts its part and does not call Unisono until the other has its result, which tells it past Unisono.
TEST_P(Offload, CompletesThePeersCallsWhileARankComputes) {
  std::atomic<bool> others_done = false;
  on_ranks_with(
      2, [&](std::uint32_t rank) { return Settings{.timeout_seconds = 30, .lanes = GetParam(), .offload = rank == 0}; },
      [&](const Communicator& world) {
        const std::uint32_t r = world.rank();
        for (const std::size_t n : {std::size_t{3}, std::size_t{200'000}}) {
          std::vector<std::int64_t> mine(n), sum(n), message(n, r + 7), received(n);
          for (std::size_t i = 0; i < n; ++i) mine[i] = static_cast<std::int64_t>(i + std::size_t{1000} * r);
          others_done = false;
          world.barrier();
          Request reducing = world.allreduce_async(mine, sum, Op::kSum);
          Request sending = world.send_async(message, 1 - r, 4);
          Request receiving = world.recv_async(received, 1 - r, 4);
          if (r == 0) {
            const auto begin = Clock::now();
            while (!others_done) ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20)) << "no progress, " << n;
          } else {
            reducing.wait();
            sending.wait();
            receiving.wait();
            others_done = true;
          }
          reducing.wait();
          sending.wait();
          receiving.wait();
          for (std::size_t i = 0; i < n; i += n / 3) EXPECT_EQ(sum[i], static_cast<std::int64_t>(2 * i + 1000));
          EXPECT_EQ(received, std::vector<std::int64_t>(n, 8 - r));
          world.barrier();
        }
      });
}

INSTANTIATE_TEST_SUITE_P(WithLanesAndWithout, Offload, testing::Bool());

TEST(OffloadThread, RunsCallbacksWithoutAnybodyWaiting) {
  on_ranks_with(3, offloading, [](const Communicator& world) {
    std::vector<std::int64_t> mine(1000, world.rank() + 1), sum(1000);
    std::atomic<bool> called = false;
    Request request = world.allreduce_async(mine, sum, Op::kSum);
    request.on_complete([&](unisono_result result) {
      EXPECT_EQ(result, 0);
      called = true;
    });
    const auto begin = Clock::now();
    while (!called) ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(sum[999], 6);
  });
}

TEST(OffloadThread, BlockingCallsAndWaitsGoOnBesideIt) {
  on_ranks_with(3, offloading, [](const Communicator& world) {
    const Communicator other = world.dup();
    const std::uint32_t r = world.rank();
    for (std::int64_t round = 0; round < 100; ++round) {
      std::vector<std::int64_t> mine(50, r + round), sum(50), word{r}, most(1);
      Request request = world.allreduce_async(mine, sum, Op::kSum);
      other.allreduce(word, most, Op::kMax);  // blocks while the other one is in flight
      EXPECT_EQ(most[0], 2);
      other.send(word, (r + 1) % 3);
      other.recv(most, (r + 2) % 3);
      EXPECT_EQ(most[0], (r + 2) % 3);
      if (round % 3 != 0) request.wait();
      request = {};
      EXPECT_EQ(sum[49], 3 + 3 * round);
    }
  });
}

TEST(OffloadThread, SleepsWhileNothingIsInFlight) {
  on_ranks_with(1, offloading, [](const Communicator& world) {
    std::vector<std::int64_t> in{1}, out(1);
    world.copy_async(in, out).wait();
    timespec before{}, after{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(milliseconds(300));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double used =
        static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
    EXPECT_LT(used, 0.05);
  });
}

TEST(OffloadThread, LeavingWithCallsInFlightEndsThem) {
  const ThreadJob job(1);
  std::atomic<int> result = 0;
  std::vector<std::int64_t> data(3);
  Request request;
  {
    const Context context(job, 0, offloading(0));
    request = context.world().recv_async(data, 0, 1);
    request.on_complete([&](unisono_result code) { result = code; });
  }
  EXPECT_EQ(result, static_cast<int>(ErrorCode::kFreedCommunicator));
}

TEST(OffloadThread, IsWhatTheEnvironmentAsksFor) {
  const ThreadJob job(1);
  setenv("UNISONO_OFFLOAD", "yes", 1);
  unisono_context* context = nullptr;
  EXPECT_EQ(unisono_thread_context(job.handle(), 0, nullptr, &context), static_cast<int>(ErrorCode::kBootstrap));
  EXPECT_THAT(unisono_last_error(), testing::HasSubstr("UNISONO_OFFLOAD is \"yes\", but should be 0 or 1"));
  unsetenv("UNISONO_OFFLOAD");
}

TEST(OffloadThread, ServesSingleRequestsOfContextsWithoutIt) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> mine(60'000, world.rank() + 1), sum(60'000);
    std::atomic<bool> called = false;
    Request request = world.allreduce_async(mine, sum, Op::kSum);
    request.on_complete([&](unisono_result) { called = true; });
    request.offload();
    const auto begin = Clock::now();
    while (!called) ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(sum[59'999], 3);
  });
}

// ------------------------------------------------------------------------------------------------------ stress

class Overlapping : public testing::TestWithParam<bool> {};

/// Every rank has three threads, each with a communicator of its own that overlaps the others': all ranks, all in
/// another order, and all but one. Each starts calls by dozens and waits for them in a random order, in all the ways
/// there are; all ranks draw the same calls.
TEST_P(Overlapping, CommunicatorsWithManyCallsInFlightFromSeveralThreads) {
  constexpr std::uint32_t kRanks = 3;
#if defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 6;
#else
  constexpr int kRounds = 25;
#endif
  constexpr std::size_t kCalls = 24;
  on_ranks_with(
      kRanks, [&](std::uint32_t) { return Settings{.timeout_seconds = 60, .offload = GetParam()}; },
      [&](const Communicator& world) {
        const std::uint32_t r = world.rank();
        std::vector<Communicator> own{world.dup(), world.split(0, -static_cast<int>(r)), world.split(r == 0 ? -1 : 0)};
        std::vector<std::thread> threads;
        for (std::uint32_t t = 0; t < 3; ++t) {
          if (!own[t]) continue;
          threads.emplace_back([&, t] {
            const Communicator& comm = own[t];
            const std::uint32_t rank = comm.rank(), size = comm.size(), before = (rank + size - 1) % size;
            // Element k of what a rank gives to call i of a round.
            const auto value = [](std::size_t k, std::size_t i, std::uint32_t of, int round) {
              return static_cast<std::int64_t>(k * i) + std::int64_t{100} * of + round;
            };
            std::mt19937 alike(t), mine(t * 10 + r);
            std::atomic<std::size_t> called = 0;
            std::size_t expected_calls = 0;
            for (int round = 0; round < kRounds; ++round) {
              std::vector<std::vector<std::int64_t>> in(kCalls), out(kCalls), expected(kCalls);
              std::vector<Request> requests, sends;
              const bool grouped = alike() % 3 == 0;
              if (grouped) unisono_group_begin(comm.handle());
              for (std::size_t i = 0; i < kCalls; ++i) {
                const std::size_t n = alike() % 4 == 0 ? 3000 + alike() % 3000 : 1 + alike() % 100;
                in[i].resize(n);
                for (std::size_t k = 0; k < n; ++k) in[i][k] = value(k, i, rank, round);
                const auto sum = std::int64_t{size} * (size - 1) / 2 * 100;
                switch (alike() % 4) {
                  case 0:
                    out[i].resize(n);
                    requests.push_back(comm.allreduce_async(in[i], out[i], Op::kSum));
                    for (std::size_t k = 0; k < n; ++k) {
                      expected[i].push_back(sum + static_cast<std::int64_t>(size * (k * i + round)));
                    }
                    break;
                  case 1: {
                    const auto root = static_cast<std::uint32_t>(alike() % size);
                    out[i] = in[i];
                    requests.push_back(comm.bcast_async(out[i], root));
                    for (std::size_t k = 0; k < n; ++k) {
                      expected[i].push_back(value(k, i, root, round));
                    }
                    break;
                  }
                  case 2:
                    out[i].resize(n);
                    requests.push_back(comm.recv_async(out[i], before, static_cast<int>(i)));
                    sends.push_back(comm.send_async(in[i], (rank + 1) % size, static_cast<int>(i)));
                    for (std::size_t k = 0; k < n; ++k) {
                      expected[i].push_back(value(k, i, before, round));
                    }
                    break;
                  default:
                    out[i].resize(n * size);
                    requests.push_back(comm.allgather_async(in[i], out[i]));
                    for (std::uint32_t p = 0; p < size; ++p) {
                      for (std::size_t k = 0; k < n; ++k) {
                        expected[i].push_back(value(k, i, p, round));
                      }
                    }
                }
              }
              if (grouped) unisono_group_end(comm.handle());
              for (Request& send : sends) send.on_complete([&](unisono_result) { ++called; });
              expected_calls += sends.size();
              switch (mine() % 4) {
                case 0:
                  EXPECT_TRUE(wait_all(requests));
                  break;
                case 1:
                  for (std::size_t left = kCalls; left > 0; --left) {
                    std::vector<std::size_t> open;
                    for (std::size_t i = 0; i < kCalls; ++i) {
                      if (requests[i].handle() != nullptr) open.push_back(i);
                    }
                    const std::size_t i = open[mine() % open.size()];
                    requests[i].wait();
                    requests[i] = {};
                  }
                  break;
                case 2:
                  while (const auto found = wait_any(requests)) requests[*found] = {};
                  break;
                default:
                  while (!test_all(requests)) std::this_thread::yield();
              }
              ASSERT_EQ(out, expected) << "thread " << t << ", round " << round;
            }
            while (called != expected_calls) {
              world.copy_async(std::vector<std::int64_t>{1}, std::vector<std::int64_t>(1)).wait();
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
        world.barrier();
      });
}

INSTANTIATE_TEST_SUITE_P(WithOffloadAndWithout, Overlapping, testing::Bool());

}  // namespace
}  // namespace unisono::test
