// The hook of waits: every wait calls it, and it may do what it is said to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace unisono::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Counts calls, by the rank whose thread makes them.
std::atomic<int> calls_of_rank_0{0};
thread_local bool is_rank_0 = false;

void count(void* /*context*/) {
  if (is_rank_0) ++calls_of_rank_0;
}

/// Waits until rank 0's thread has called the hook often, and for longer than a wait polls before it sleeps.
void await_hooked_wait() {
  const int before = calls_of_rank_0;
  const auto begin = Clock::now();
  while (calls_of_rank_0 < before + 40 || Clock::now() - begin < milliseconds(5)) {
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20)) << "no hook is called in this wait";
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::int32_t sum_of_ones(const Communicator& communicator) {
  const std::int32_t one = 1;
  std::int32_t sum = 0;
  communicator.allreduce(std::span(&one, 1), std::span(&sum, 1), Op::kSum);
  return sum;
}

struct Hook {
  explicit Hook(void (*function)(void*), void* context = nullptr) { unisono_set_wait_hook(function, context); }
  ~Hook() { unisono_set_wait_hook(nullptr, nullptr); }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
};

class WaitHooks : public testing::TestWithParam<bool> {};

// Rank 1 does its part of a call only when rank 0, which waits for it, has called the hook.
TEST_P(WaitHooks, AreCalledInEveryWait) {
  const Hook hook(&count);
  const ThreadJob job(2);
  using Part = std::function<void(const Communicator&)>;
  std::vector<std::int32_t> big(100'000, 1), other(100'000);
  const std::vector<std::pair<const char*, Part>> waits = {
      {"allreduce", [](const Communicator& world) { EXPECT_EQ(sum_of_ones(world), 2); }},
      {"a long allreduce",
       [](const Communicator& world) {
         std::vector<std::int32_t> mine(100'000, 1), sum(100'000);
         world.allreduce(mine, sum, Op::kSum);
         EXPECT_EQ(sum.back(), 2);
       }},
      {"barrier", [](const Communicator& world) { world.barrier(); }},
      {"wait",
       [](const Communicator& world) {
         std::int32_t one = 1, sum = 0;
         world.allreduce_async(std::span(&one, 1), std::span(&sum, 1), Op::kSum).wait();
         EXPECT_EQ(sum, 2);
       }},
      {"wait_any",
       [](const Communicator& world) {
         std::int32_t one = 1, sum = 0;
         std::vector<Request> requests;
         requests.push_back(world.allreduce_async(std::span(&one, 1), std::span(&sum, 1), Op::kSum));
         EXPECT_EQ(wait_any(requests), 0U);
       }},
      {"recv",
       [](const Communicator& world) {
         std::vector<std::int32_t> message(3, 7);
         if (world.rank() == 0) {
           world.recv(message, 1, 5);
         } else {
           world.send(message, 0, 5);
         }
       }},
      {"send",
       [](const Communicator& world) {
         std::vector<std::int32_t> message(1'000'000, 7);
         if (world.rank() == 0) {
           world.send(message, 1, 6);
         } else {
           world.recv(message, 0, 6);
         }
       }},
      {"split", [](const Communicator& world) { EXPECT_EQ(world.split(0, 0).size(), 2U); }},
      {"agree", [](const Communicator& world) { EXPECT_EQ(world.agree(3), 3U); }},
  };
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      is_rank_0 = rank == 0;
      try {
        if (rank == 1) await_hooked_wait();  // joining is a wait, too
        const Context context(job, rank, {.timeout_seconds = 30, .lanes = GetParam()});
        const Communicator world = context.world();
        for (const auto& [name, part] : waits) {
          SCOPED_TRACE(name);
          if (rank == 1) await_hooked_wait();
          part(world);
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(WithLanesAndWithout, WaitHooks, testing::Bool());

// Two threads of a rank wait on two communicators; one of them drives, and yet both call.
TEST(WaitHook, IsCalledByEachThreadThatWaits) {
  static std::atomic<int> called[2] = {0, 0};
  static thread_local int own = -1;
  const Hook hook([](void*) {
    if (own >= 0) ++called[own];
  });
  on_ranks(2, [](const Communicator& world) {
    const Communicator second = world.dup();
    if (world.rank() == 1) {
      const auto begin = Clock::now();
      while (called[0] < 20 || called[1] < 20) {
        ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20)) << "not both threads call the hook";
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        if (world.rank() == 0) own = i;
        std::int32_t one = 1, sum = 0;
        (i == 0 ? world : second).allreduce_async(std::span(&one, 1), std::span(&sum, 1), Op::kSum).wait();
        EXPECT_EQ(sum, 2);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(WaitHook, IsCalledByOneThreadAtATimeAndNotWhenItWasTakenAway) {
  static std::atomic<int> inside{0};
  static std::atomic<bool> ever_two{false};
  static std::atomic<int> called{0};
  constexpr auto function = [](void*) {
    if (++inside != 1) ever_two = true;
    ++called;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    --inside;
  };
  on_ranks(3, [&](const Communicator& world) {
    if (world.rank() == 0) {
      {
        const Hook hook(function);
        const auto begin = Clock::now();
        while (called < 50) {
          ASSERT_LT(Clock::now() - begin, std::chrono::seconds(20));
          std::this_thread::sleep_for(milliseconds(1));
        }
      }
      EXPECT_EQ(inside, 0);
      const int at_the_end = called;
      std::this_thread::sleep_for(milliseconds(5));
      EXPECT_EQ(called, at_the_end);
    }
    world.barrier();
  });
  EXPECT_FALSE(ever_two);
}

struct Second {
  unisono_context* context = nullptr;
  unisono_communicator* world = nullptr;
  unisono_request* request = nullptr;
  std::int32_t one = 1, sum = 0;
  bool done = false;
  bool tried = false;
  std::atomic<bool> over{false};
  std::vector<std::string> sentences;
  std::string own_error;
};

unisono_call allreduce_of(const std::int32_t& one, std::int32_t& sum) {
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLREDUCE;
  call.datatype = UNISONO_INT32;
  call.op = UNISONO_SUM;
  call.count = 1;
  call.src = &one;
  call.src_bytes = sizeof one;
  call.dst = &sum;
  call.dst_bytes = sizeof sum;
  return call;
}

// A hook drives another context, and starts and ends a call there, while a thread waits in this one.
TEST(WaitHook, MayDriveAnotherContextStartCallsAndTestThem) {
  const ThreadJob jobs[2] = {ThreadJob(2), ThreadJob(2)};
  std::atomic<bool> second_is_through{false};
  static Second second;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Context first(jobs[0], rank, {.timeout_seconds = 30});
        const Context other(jobs[1], rank, {.timeout_seconds = 30});
        static thread_local bool drives = false;
        drives = rank == 0;
        if (rank == 0) {
          second.context = other.handle();
          ASSERT_EQ(unisono_world(second.context, &second.world), 0);
        } else {
          // This rank comes to the first context only when the call on the second has ended, which the hook starts.
          EXPECT_EQ(sum_of_ones(other.world()), 2);
          second_is_through = true;
        }
        std::optional<WaitHook> hook;
        if (rank == 0) {
          hook.emplace([] {
            if (!drives || second.done) return;
            EXPECT_EQ(unisono_progress(second.context), 0) << unisono_last_error();
            if (second.request == nullptr) {
              const unisono_call call = allreduce_of(second.one, second.sum);
              ASSERT_EQ(unisono_start(second.world, &call, &second.request), 0) << unisono_last_error();
            }
            int complete = 0;
            EXPECT_EQ(unisono_test(second.request, &complete), 0) << unisono_last_error();
            if (complete == 0) return;
            second.done = true;
            unisono_request_free(second.request);
          });
        }
        EXPECT_EQ(sum_of_ones(first.world()), 2);
        EXPECT_TRUE(second_is_through || second.done);
        hook.reset();
        if (rank == 0 && !second.done) {  // it went so far that the other rank has its part
          EXPECT_EQ(unisono_wait(second.request), 0) << unisono_last_error();
          unisono_request_free(second.request);
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(second.sum, 2);
}

// What would wait is refused, and the call that waits goes on, with a sentence of its own if it fails.
TEST(WaitHook, MayNotWait) {
  static Second refused;
  const ThreadJob job(2);
  const ThreadJob third(2);
  static unisono_thread_job* never = nullptr;
  never = third.handle();
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Context context(job, rank, {.timeout_seconds = 30});
        const Communicator world = context.world();
        const Communicator side = world.dup();
        static thread_local bool tries = false;
        tries = rank == 0;
        std::optional<WaitHook> hook;
        if (rank == 0) {
          refused.context = context.handle();
          refused.world = side.handle();
          hook.emplace([] {
            if (!tries || refused.tried) return;
            refused.tried = true;
            const auto note = [&](unisono_result result) {
              EXPECT_STREQ(unisono_result_name(result), "invalid_argument");
              refused.sentences.emplace_back(unisono_last_error());
            };
            const unisono_call call = allreduce_of(refused.one, refused.sum);
            note(unisono_run(refused.world, &call));
            unisono_communicator* made = nullptr;
            note(unisono_split(refused.world, 0, 0, 0, &made));
            note(unisono_finalize(refused.context));
            unisono_context* joined = nullptr;
            note(unisono_thread_context(never, 0, nullptr, &joined));
            note(unisono_init(nullptr, &joined));
            ASSERT_EQ(unisono_start(refused.world, &call, &refused.request), 0) << unisono_last_error();
            note(unisono_wait(refused.request));
            int complete = 0;
            note(unisono_wait_at_most(refused.request, 1, &complete));
            std::size_t index = 0;
            note(unisono_wait_any(&refused.request, 1, 1, &index));
            unisono_request_free(refused.request);  // frees nothing
            refused.sentences.emplace_back(unisono_last_error());
            refused.over = true;
          });
          EXPECT_EQ(sum_of_ones(world), 2);
          unisono_set_wait_hook(nullptr, nullptr);
          EXPECT_EQ(unisono_wait(refused.request), 0) << unisono_last_error();
          unisono_request_free(refused.request);
        } else {
          const auto begin = Clock::now();
          while (!refused.over && Clock::now() - begin < std::chrono::seconds(20)) std::this_thread::yield();
          EXPECT_EQ(sum_of_ones(world), 2);
          EXPECT_EQ(sum_of_ones(side), 2);
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused.sum, 2);
  EXPECT_EQ(refused.sentences.size(), 9U);
  for (const std::string& sentence : refused.sentences) {
    EXPECT_THAT(sentence, testing::HasSubstr("in the function of unisono_set_wait_hook; it may wait for other ranks"));
  }
}

// A deadline ends a call that waits under a hook, and its sentence is the call's.
TEST(WaitHook, LeavesDeadlinesAndSentencesAsTheyAre) {
  const Hook hook([](void* context) { unisono_progress(static_cast<unisono_context*>(context)); });  // fails
  on_ranks(2, [](const Communicator& world) {
    Communicator own = world.dup();
    own.set_timeout(0.05);
    if (world.rank() == 0) {
      try {
        own.barrier();
        ADD_FAILURE() << "nobody else came";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("timed out"));
      }
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace unisono::test
