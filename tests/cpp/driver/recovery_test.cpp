// Shrinks that a deadline cuts off: others may be further, so the next one goes on with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "driver/interface.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

/// Calls `body(world, rank)` on ranks that are threads. (ranks.hpp is of the C++ front, which has the names of the
/// library's inside.)
template <class Body>
void on_ranks(std::uint32_t size, Body&& body) {
  unisono_thread_job* job = nullptr;
  ASSERT_EQ(unisono_thread_job_create(size, &job), 0);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      unisono_settings settings{};
      settings.struct_size = sizeof settings;
      settings.timeout_seconds = 30;
      unisono_context* context = nullptr;
      unisono_communicator* world = nullptr;
      ASSERT_EQ(unisono_thread_context(job, rank, &settings, &context), 0) << unisono_last_error();
      ASSERT_EQ(unisono_world(context, &world), 0);
      body(world, rank);
      EXPECT_EQ(unisono_finalize(context), 0) << unisono_last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  unisono_thread_job_free(job);
}

TEST(Shrink, GoesOnWhereItsDeadlineHadCutItOff) {
  // Rank 2 agrees with the others who is left, and comes late to the second agreement, whether all have made the
  // communicator. (It speaks to the engine itself, for nothing keeps a shrink there.)
  constexpr std::uint32_t kOfShrink = 2, kOfVerdict = 3;
  std::atomic<int> late{0};
  on_ranks(3, [&](unisono_communicator* world, std::uint32_t here) {
    const auto own = driver::communicator_of(world);
    if (here == 2) {
      Engine& engine = *own->context->endpoint()->engine;
      const Agreed left = engine.agree(own->number, kOfShrink, ~std::uint64_t{0}, own->context->propose_number(3), {});
      EXPECT_EQ(left.gone, std::vector<bool>(3, false));
      while (late < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      constexpr std::uint64_t kMayTryAgain = 2;  // as a rank says whose other thread has taken the number
      EXPECT_EQ(engine.agree(own->number, kOfVerdict, kMayTryAgain, 0, {}).value, kMayTryAgain);
    } else {
      ASSERT_EQ(unisono_communicator_set_timeout(world, 0.3), 0);
      unisono_communicator* none = nullptr;
      EXPECT_EQ(unisono_shrink(world, &none), static_cast<int>(ErrorCode::kTimeout));
      EXPECT_EQ(none, nullptr);
      std::uint64_t value = 1;
      EXPECT_EQ(unisono_agree(world, &value), static_cast<int>(ErrorCode::kInvalidArgument));
      EXPECT_THAT(unisono_last_error(), HasSubstr("call shrink again first"));
      ASSERT_EQ(unisono_communicator_set_timeout(world, 30), 0);
      ++late;
    }
    unisono_communicator* made = nullptr;
    ASSERT_EQ(unisono_shrink(world, &made), 0) << unisono_last_error();
    std::uint32_t rank = 0, size = 0;
    ASSERT_EQ(unisono_communicator_rank(made, &rank), 0);
    ASSERT_EQ(unisono_communicator_size(made, &size), 0);
    EXPECT_EQ(rank, here);
    EXPECT_EQ(size, 3U);
    std::uint64_t value = 0b111 & ~(1U << rank);
    ASSERT_EQ(unisono_agree(made, &value), 0) << unisono_last_error();
    EXPECT_EQ(value, 0U);
    ASSERT_EQ(unisono_agree(world, &value), 0) << unisono_last_error();
    EXPECT_EQ(unisono_communicator_free(made), 0) << unisono_last_error();
  });
}

}  // namespace
}  // namespace unisono::test
