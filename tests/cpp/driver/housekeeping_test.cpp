// Settings of a running context, what communicators are like, and resets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

/// As on_ranks, with the context.
void on_contexts(std::uint32_t size, const std::function<void(Context&)>& body) {
  const ThreadJob job(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Context context(job, rank, {.timeout_seconds = 30});
      try {
        body(context);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
        context.world().revoke("a rank has failed");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const api::Error& error) {
    return error.code();
  }
  return 0;
}

constexpr int kRevoked = static_cast<int>(ErrorCode::kRevoked);

std::vector<float> summed(const Communicator& communicator, std::size_t count = 10) {
  std::vector<float> mine(count, static_cast<float>(communicator.rank()) + 1), sum(count);
  communicator.allreduce(mine, sum, Op::kSum);
  return sum;
}

TEST(Housekeeping, SettingsActOnCommunicatorsMadeLater) {
  on_contexts(3, [](Context& context) {
    Communicator world = context.world();
    Settings settings = context.settings();
    EXPECT_TRUE(settings.lanes);
    EXPECT_EQ(settings.timeout_seconds, 30);
    EXPECT_EQ(settings.determinism, Determinism::kRunStable);
    const unisono_communicator_state before = world.state();
    EXPECT_EQ(before.eager_limit, settings.eager_limit);
    EXPECT_EQ(before.lanes, 1);
    EXPECT_EQ(before.size, 3U);
    EXPECT_EQ(before.rank, world.rank());

    settings.eager_limit = 512 + world.rank();
    settings.rx_buffer_count = 7;
    settings.segment_bytes = 4096;
    settings.timeout_seconds = 12;
    settings.lanes = false;
    settings.algorithms = "allreduce=ring";
    context.configure(settings);
    EXPECT_EQ(context.settings().algorithms, "allreduce=ring");
    EXPECT_EQ(world.state().eager_limit, before.eager_limit);
    Communicator made = world.dup();
    const unisono_communicator_state now = made.state();
    EXPECT_EQ(now.eager_limit, 512U);
    EXPECT_EQ(now.segment_bytes, 4096U);
    EXPECT_EQ(now.rx_buffer_count, 7U);
    EXPECT_EQ(now.timeout_seconds, 12);
    EXPECT_EQ(now.lanes, 0);
    EXPECT_NE(now.number, before.number);
    EXPECT_EQ(summed(made), std::vector<float>(10, 6));
    EXPECT_EQ(made.last_algorithm().name, "ring");
    EXPECT_EQ(summed(world), std::vector<float>(10, 6));
    EXPECT_NE(world.last_algorithm().name, "ring");

    settings.lanes = true;
    settings.algorithms = "";
    settings.determinism = Determinism::kSizeStable;
    context.configure(settings);
    EXPECT_EQ(context.settings().determinism, Determinism::kSizeStable);
    Communicator last = world.dup();
    EXPECT_EQ(last.state().lanes, 1);
    EXPECT_EQ(summed(last), std::vector<float>(10, 6));
    EXPECT_NE(last.last_algorithm().name, "ring");
    // A communicator of those that are left has the rules of its parent.
    made.revoke("enough");
    Communicator rest = made.shrink();
    EXPECT_EQ(summed(rest), std::vector<float>(10, 6));
    EXPECT_EQ(rest.last_algorithm().name, "ring");
  });
}

TEST(Housekeeping, SettingsThatDifferAreNoticedWhenACommunicatorIsMade) {
  on_contexts(2, [](Context& context) {
    Communicator world = context.world();
    Settings settings = context.settings();
    if (world.rank() == 1) settings.algorithms = "allreduce=ring";
    context.configure(settings);
    EXPECT_EQ(code_of([&] { world.dup(); }), static_cast<int>(ErrorCode::kUnsupported));
    EXPECT_EQ(summed(world), std::vector<float>(10, 3));
  });
}

TEST(Housekeeping, WrongSettingsChangeNothing) {
  on_contexts(1, [](Context& context) {
    const Settings before = context.settings();
    for (const auto& spoil : std::vector<std::function<void(Settings&)>>{
             [](Settings& settings) { settings.segment_bytes = 63; },
             [](Settings& settings) { settings.eager_limit = 1U << 31U; },
             [](Settings& settings) { settings.rx_buffer_count = 100'000; },
             [](Settings& settings) { settings.timeout_seconds = -1; },
             [](Settings& settings) { settings.algorithms = "allreduce=rnig"; },
         }) {
      Settings wrong = before;
      spoil(wrong);
      EXPECT_NE(code_of([&] { context.configure(wrong); }), 0);
      EXPECT_EQ(context.settings().segment_bytes, before.segment_bytes);
      EXPECT_EQ(context.settings().algorithms, before.algorithms);
    }
    unisono_settings small{};
    small.struct_size = 3;
    EXPECT_EQ(unisono_settings_now(context.handle(), &small), static_cast<int>(ErrorCode::kInvalidArgument));
    small.struct_size = 16;  // of a version that knew less
    EXPECT_EQ(unisono_settings_now(context.handle(), &small), 0);
    EXPECT_EQ(small.eager_limit, before.eager_limit);
    EXPECT_EQ(small.timeout_seconds, 0);
    EXPECT_EQ(unisono_configure(context.handle(), nullptr), static_cast<int>(ErrorCode::kInvalidArgument));
  });
}

TEST(Housekeeping, AResetGivesANewWorld) {
  std::atomic<int> passed{0};
  on_contexts(3, [&](Context& context) {
    Communicator world = context.world();
    Communicator other = world.dup();
    const std::uint32_t number = world.state().number;
    // A call that can never complete, and one that has failed.
    std::vector<int> never(1);
    Request stuck = world.rank() == 0 ? other.recv_async(never, 1, {}) : Request();
    world.barrier();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (++passed; passed != 3 && std::chrono::steady_clock::now() < until;) std::this_thread::yield();
    ASSERT_EQ(passed, 3);
    if (world.rank() == 2) world.revoke("a fault");
    EXPECT_EQ(code_of([&] {
                for (;;) world.barrier();
              }),
              kRevoked);
    Settings settings = context.settings();
    settings.eager_limit = 777;
    context.configure(settings);
    context.reset();
    if (world.rank() == 0) {
      EXPECT_EQ(code_of([&] { stuck.wait(); }), kRevoked);
    }
    EXPECT_NE(world.state().number, number);
    EXPECT_EQ(world.state().eager_limit, 777U);
    EXPECT_EQ(world.state().revoked, 0);
    EXPECT_EQ(summed(world), std::vector<float>(10, 6));
    EXPECT_EQ(summed(context.world(), 100'000), std::vector<float>(100'000, 6));
    EXPECT_EQ(code_of([&] { other.barrier(); }), static_cast<int>(ErrorCode::kFreedCommunicator));
    other.free();
    EXPECT_EQ(unisono_communicator_free(world.handle()), static_cast<int>(ErrorCode::kInvalidArgument));
    for (int i = 0; i < 20; ++i) {
      context.reset();
      EXPECT_EQ(summed(world), std::vector<float>(10, 6));
    }
  });
}

TEST(Housekeeping, AResetWithoutARankSaysSo) {
  const ThreadJob job(3);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Context context(job, rank, {.timeout_seconds = 30});
      Communicator world = context.world();
      world.barrier();
      if (rank == 1) return;
      EXPECT_EQ(code_of([&] { context.reset(); }), static_cast<int>(ErrorCode::kPeerDead));
      EXPECT_THAT(unisono_last_error(), testing::HasSubstr("1 of 3 ranks have died or left"));
      Communicator rest = world.shrink();
      EXPECT_EQ(rest.size(), 2U);
      EXPECT_EQ(summed(rest), std::vector<float>(10, 3));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Housekeeping, DevicesHaveSettingsAndNoReset) {
  setenv("UNISONO_PLATFORM", "functional", 1);
  on_contexts(2, [](Context& context) {
    Settings settings = context.settings();
    EXPECT_FALSE(settings.lanes);
    settings.eager_limit = 256;
    settings.algorithms = "allreduce=ring";
    context.configure(settings);
    Communicator made = context.world().dup();
    EXPECT_EQ(made.state().eager_limit, 256U);
    EXPECT_EQ(summed(made), std::vector<float>(10, 3));
    EXPECT_EQ(made.last_algorithm().name, "ring");
    EXPECT_EQ(code_of([&] { context.reset(); }), static_cast<int>(ErrorCode::kUnsupported));
    EXPECT_EQ(summed(made), std::vector<float>(10, 3));
  });
  unsetenv("UNISONO_PLATFORM");
}

TEST(Housekeeping, AnAbortEndsWhatAnotherThreadWaitsFor) {
  on_contexts(2, [](Context& context) {
    Communicator world = context.world();
    EXPECT_EQ(summed(world)[0], 3);
    if (world.rank() == 1) {
      // In no call; what comes over the lanes is of the call that rank 0 gives up.
      int code = 0;
      for (int attempt = 0; attempt < 1000 && code == 0; ++attempt) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        code = code_of([&] {
          context.progress();
          float number = 0;
          world.recv(std::span(&number, 1), 0, 7);
        });
      }
      EXPECT_EQ(code, kRevoked);
      return;
    }
    std::thread waits([&] {
      float number = 0;
      EXPECT_EQ(code_of([&] { world.recv(std::span(&number, 1), 1, 9); }), kRevoked);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto begin = std::chrono::steady_clock::now();
    context.abort("too late");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << "without waiting for anybody";
    waits.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    try {
      summed(world);
      ADD_FAILURE() << "the communicator is of no use any more";
    } catch (const api::Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("this rank ended all calls: too late"));
    }
  });
}

TEST(Housekeeping, DeadlinesAreASetting) {
  on_contexts(1, [](Context& context) {
    Settings settings = context.settings();
    EXPECT_EQ(settings.deadlines, Deadlines::kFail);
    settings.deadlines = Deadlines::kOff;
    context.configure(settings);
    EXPECT_EQ(context.settings().deadlines, Deadlines::kOff);
    settings.deadlines = static_cast<Deadlines>(4);
    EXPECT_EQ(code_of([&] { context.configure(settings); }), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_EQ(context.settings().deadlines, Deadlines::kOff);
  });
}

}  // namespace
}  // namespace unisono::test
