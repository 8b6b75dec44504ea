// Leaving a job whose ranks have called differently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kRanks = 2;

/// Runs `body` with a context of each rank.
template <class Body>
void in_contexts(Body&& body) {
  const ThreadJob job(kRanks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] { body(std::make_unique<Context>(job, rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

/// A broadcast of which every rank thinks that it is the root: all of them end, and none leaves before.
void call_differently(const Context& context, std::barrier<>& all) {
  std::vector<double> data(3, context.world().rank());
  context.world().bcast(data, context.world().rank());
  all.arrive_and_wait();
}

TEST(Leaving, FinalizeSaysThatRanksHaveCalledDifferently) {
  std::atomic<int> found = 0;
  std::barrier all(kRanks);
  in_contexts([&](std::unique_ptr<Context> context) {
    call_differently(*context, all);
    try {
      context->finalize();
    } catch (const Error& error) {
      EXPECT_STREQ(error.name(), "mismatched_call");
      EXPECT_THAT(error.what(), HasSubstr("bcast(3 fp64, root 0)"));
      EXPECT_THAT(error.what(), HasSubstr("bcast(3 fp64, root 1)"));
      ++found;
    }
    EXPECT_THROW(context->world(), Error);  // it has left all the same
  });
  EXPECT_GE(found, 1);  // the last one to leave sees both; the first may
}

TEST(Leaving, ADestructorWritesIt) {
  testing::internal::CaptureStderr();
  std::barrier all(kRanks);
  in_contexts([&](std::unique_ptr<Context> context) { call_differently(*context, all); });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("unisono: error: bcast (communicator 0"));
}

TEST(Leaving, AfterAnErrorNothingIsCompared) {
  testing::internal::CaptureStderr();
  std::barrier all(kRanks);
  in_contexts([&](std::unique_ptr<Context> context) {
    try {
      const std::unique_ptr<Context> own = std::move(context);
      call_differently(*own, all);
      throw std::runtime_error("of the program's own");
    } catch (const std::runtime_error&) {
      return;
    }
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Leaving, EqualCallsLeaveInSilence) {
  testing::internal::CaptureStderr();
  in_contexts([](std::unique_ptr<Context> context) {
    std::vector<double> data(3, context->world().rank());
    for (std::uint32_t root = 0; root < kRanks; ++root) context->world().bcast(data, root);
    context->finalize();
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// Functions of atexit, and destructors of globals, run after the destructors of the main thread's variables.
TEST(LeavingDeathTest, UnisonoIsThereUntilTheProcessEnds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not tried: ThreadSanitizer does work of its own when a forked process ends";
#endif
  const auto exits = [] {
    static Context global;
    static Communicator made = global.world().dup();
    made.barrier();
    static const auto fails = [] {
      unisono_thread_job* job = nullptr;
      return unisono_thread_job_create(0, &job) == 0 ? "" : unisono_last_error();
    };
    static const std::string sentence = fails();
    std::atexit([] {
      const std::string unchanged(sentence.size(), 'x');
      const std::vector<std::string> others(100, unchanged);  // in what the variables of the thread had
      made.barrier();
      made.set_name("to the end");
      if (made.name() != "to the end" || fails() != sentence) std::_Exit(1);
      if (std::count(others.begin(), others.end(), unchanged) != 100) std::_Exit(2);
    });
    std::exit(0);
  };
  EXPECT_EXIT(exits(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace unisono::test
