// Many contexts in one process: one helper thread, bounded memory, and descriptors to poll.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace unisono::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

long number_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stol(line.substr(key.size()));
  }
  return -1;
}
/// Helper threads of this process. Other ones may be about to end.
int helpers() {
  int count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    count += name == "unisono-helper" ? 1 : 0;
  }
  return count;
}
bool helpers_become(int wanted) {
  const auto begin = Clock::now();
  while (helpers() != wanted && Clock::now() - begin < std::chrono::seconds(10)) std::this_thread::yield();
  return helpers() == wanted;
}
long resident_kb() { return number_in("/proc/self/smaps_rollup", "Rss:"); }

/// `jobs` jobs of `ranks` ranks, which are threads of this process only as they join.
struct ManyContexts {
  ManyContexts(std::uint32_t job_count, std::uint32_t rank_count, const Settings& settings) {
    for (std::uint32_t job = 0; job < job_count; ++job) jobs.push_back(std::make_unique<ThreadJob>(rank_count));
    of_rank.resize(rank_count);
    std::vector<std::thread> joining;
    for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
      joining.emplace_back([&, rank] {
        for (const auto& job : jobs) of_rank[rank].push_back(std::make_unique<Context>(*job, rank, settings));
      });
    }
    for (std::thread& thread : joining) thread.join();
  }

  std::vector<std::unique_ptr<ThreadJob>> jobs;
  std::vector<std::vector<std::unique_ptr<Context>>> of_rank;
};

// Each of 200 jobs of 8 has a call in flight on every rank, which nobody waits for: one thread brings all to their end.
TEST(ManyContexts, HaveOneHelperThreadAndAMegabyteEach) {
  // The thread sanitizer leaves too little address space for more.
#if defined(__SANITIZE_THREAD__)
  constexpr std::uint32_t kJobs = 6, kRanks = 8;
#else
  constexpr std::uint32_t kJobs = 200, kRanks = 8;
#endif
  const long kb_before = resident_kb();
  {
    ManyContexts all(kJobs, kRanks, {.timeout_seconds = 60, .offload = true});
    EXPECT_TRUE(helpers_become(0)) << "contexts without calls have no thread";
    std::vector<std::int32_t> mine(kJobs * kRanks), sums(kJobs * kRanks, -1);
    std::vector<Request> requests;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (std::uint32_t job = 0; job < kJobs; ++job) {
        const std::size_t place = std::size_t{job} * kRanks + rank;
        mine[place] = static_cast<std::int32_t>(job * 10 + rank);
        requests.push_back(all.of_rank[rank][job]->world().allreduce_async(std::span(&mine[place], 1),
                                                                           std::span(&sums[place], 1), Op::kSum));
      }
    }
    EXPECT_EQ(helpers(), 1);
    const long kb_each = (resident_kb() - kb_before) / kJobs;
    std::atomic<std::uint32_t> ended{0};
    for (Request& request : requests) request.on_complete([&](unisono_result) { ++ended; });
    const auto begin = Clock::now();
    while (ended < requests.size()) {
      ASSERT_LT(Clock::now() - begin, std::chrono::seconds(60)) << ended << " of " << requests.size();
      std::this_thread::sleep_for(milliseconds(1));
    }
    for (Request& request : requests) request.wait();
    for (std::uint32_t job = 0; job < kJobs; ++job) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(sums[std::size_t{job} * kRanks + rank], static_cast<std::int32_t>(job * 80 + 28));
      }
    }
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    EXPECT_LE(kb_each, 1024);
#endif
    RecordProperty("kb_each", std::to_string(kb_each));
  }
  EXPECT_TRUE(helpers_become(0)) << "the thread ends with the last context";
}

bool readable(int descriptor, int at_most) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, at_most) == 1;
}

class Descriptors : public testing::TestWithParam<std::tuple<bool, bool>> {};

// Rank 0 never waits in the library: it polls the descriptor, arms it and tests, while rank 1 comes late.
TEST_P(Descriptors, BecomeReadableWhenThereIsProgressToMake) {
  const auto [lanes, offload] = GetParam();
  const ThreadJob job(2);
  std::atomic<bool> polls{false};
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank, lanes = lanes, offload = offload] {
      try {
        const Context context(job, rank, {.timeout_seconds = 30, .lanes = lanes, .offload = offload && rank == 0});
        const Communicator world = context.world();
        for (const std::size_t n : {std::size_t{1}, std::size_t{300'000}}) {
          std::vector<std::int32_t> mine(n, 1), sum(n, 0);
          if (rank == 1) {
            while (!polls.exchange(false)) std::this_thread::yield();
            std::this_thread::sleep_for(milliseconds(3));
          }
          Request request = world.allreduce_async(mine, sum, Op::kSum);
          if (rank == 1) {
            request.wait();
            continue;
          }
          const int descriptor = context.descriptor();
          EXPECT_EQ(context.descriptor(), descriptor);
          while (!request.test()) {
            if (context.arm()) continue;
            polls = true;
            ASSERT_TRUE(readable(descriptor, 20'000)) << "slept for ever, " << n;
          }
          EXPECT_EQ(sum.back(), 2);
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : ranks) thread.join();
}

INSTANTIATE_TEST_SUITE_P(LanesAndOffload, Descriptors, testing::Combine(testing::Bool(), testing::Bool()));

TEST(Descriptor, IsQuietWhileNothingHappensAndStaysReadableUntilArmed) {
  const ThreadJob job(2);
  std::vector<std::thread> ranks;
  std::atomic<int> stage{0};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        const Context context(job, rank, {.timeout_seconds = 30});
        const Communicator world = context.world();
        const auto await_stage = [&](int wanted) {
          while (stage < wanted) std::this_thread::yield();
        };
        std::vector<std::int32_t> message(200'000, 4);
        if (rank == 1) {
          await_stage(1);
          world.send(message, 0, 1);  // rank 0 learns of it though it has no call in flight
          return;
        }
        const int descriptor = context.descriptor();
        bool quiet = false;  // once the other rank has joined, of which it may hear
        for (int attempt = 0; attempt < 50 && !quiet; ++attempt) {
          while (context.arm()) continue;
          quiet = !readable(descriptor, 100);
        }
        EXPECT_TRUE(quiet) << "nothing has come, and no call is in flight";
        stage = 1;
        EXPECT_TRUE(readable(descriptor, 20'000));
        EXPECT_TRUE(readable(descriptor, 0)) << "until it is armed again";
        std::vector<std::int32_t> got(message.size());
        Request receiving = world.recv_async(got, 1, 1);
        while (!receiving.test()) {
          if (context.arm()) continue;
          ASSERT_TRUE(readable(descriptor, 20'000));
        }
        EXPECT_EQ(got, message);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : ranks) thread.join();
}

// Deadlines are seen to, though nothing comes: the program that polls has its error in time.
TEST(Descriptor, RingsForDeadlinesAndAborts) {
  const ThreadJob job(2);
  std::vector<std::thread> ranks;
  std::atomic<bool> over{false};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const Context context(job, rank, {.timeout_seconds = 0.2});
      if (rank == 1) {
        while (!over) std::this_thread::sleep_for(milliseconds(1));
        return;
      }
      const auto error_of = [&](Request request) {
        try {
          while (!request.test()) {
            if (!context.arm() && !readable(context.descriptor(), 20'000)) return std::string("slept for ever");
          }
        } catch (const Error& error) {
          return std::string(error.what());
        }
        return std::string("no error");
      };
      EXPECT_THAT(error_of(context.world().barrier_async()), testing::HasSubstr("timed out"));
      over = true;
    });
  }
  for (std::thread& thread : ranks) thread.join();
}

TEST(ManyContexts, TakeTheirMemoryWithThemThoughCommunicatorsAreNotFreed) {
  std::vector<unisono_communicator*> kept;  // in C nobody frees them for the user
  std::mutex mutex;
  unisono_call barrier{};
  barrier.struct_size = sizeof barrier;
  barrier.collective = UNISONO_BARRIER;
  const auto job = [&] {
    on_ranks(2, [&](const Communicator& world) {
      unisono_communicator* made = nullptr;
      ASSERT_EQ(unisono_dup(world.handle(), nullptr, &made), 0) << unisono_last_error();
      ASSERT_EQ(unisono_communicator_set_name(made, "kept"), 0);
      ASSERT_EQ(unisono_run(made, &barrier), 0);
      const std::lock_guard lock(mutex);
      kept.push_back(made);
    });
  };
  job();
  const long before = number_in("/proc/self/status", "VmSize:");
  for (int i = 0; i < 10; ++i) job();
  const long more = number_in("/proc/self/status", "VmSize:") - before;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(more, 16 << 10) << "KB of the jobs that were left";
#else
  EXPECT_LT(more, 16 << 20) << "KB, with those of the sanitizer; a job has hundreds of GB";
#endif
  const char* name = nullptr;
  for (unisono_communicator* communicator : kept) {
    std::uint32_t size = 0;
    EXPECT_EQ(unisono_communicator_size(communicator, &size), 0);
    EXPECT_EQ(size, 2U);
    EXPECT_EQ(unisono_communicator_name(communicator, &name), 0);
    EXPECT_STREQ(name, "kept");
    EXPECT_NE(unisono_run(communicator, &barrier), 0);
    EXPECT_THAT(unisono_last_error(), testing::HasSubstr("the context was closed"));
    EXPECT_EQ(unisono_communicator_free(communicator), 0) << unisono_last_error();
    EXPECT_NE(unisono_communicator_free(communicator), 0);
  }
}

}  // namespace
}  // namespace unisono::test
