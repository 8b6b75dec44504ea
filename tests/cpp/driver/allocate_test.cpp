// Allocated memory: unisono_allocate, and the buffers of the C++ interface that own it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "network/lasting_memory.hpp"
#include "unisono/unisono.hpp"

namespace unisono::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kPage = 4096;

/// A job of one thread: this one.
struct Alone {
  ThreadJob job{1};
  Context context{job, 0};
};

bool zero(const void* memory, std::size_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(memory);
  return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0; });
}

TEST(Allocate, GivesAlignedZeroedMemoryAndTakesItBack) {
  const Alone alone;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kPage + 1, std::uint64_t{5} << 20U}) {
    void* first = nullptr;
    ASSERT_EQ(unisono_allocate(alone.context.handle(), bytes, &first), 0) << unisono_last_error();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % kPage, 0U);
    EXPECT_TRUE(zero(first, bytes));
    std::memset(first, 0x5a, bytes);
    void* second = nullptr;
    ASSERT_EQ(unisono_allocate(alone.context.handle(), bytes, &second), 0);
    EXPECT_NE(first, second);
    ASSERT_EQ(unisono_deallocate(alone.context.handle(), first), 0) << unisono_last_error();
    void* again = nullptr;
    ASSERT_EQ(unisono_allocate(alone.context.handle(), bytes, &again), 0);
    EXPECT_EQ(again, first);
    EXPECT_TRUE(zero(again, bytes));
    ASSERT_EQ(unisono_deallocate(alone.context.handle(), again), 0);
    ASSERT_EQ(unisono_deallocate(alone.context.handle(), second), 0);
  }
  EXPECT_EQ(unisono_deallocate(alone.context.handle(), nullptr), 0);
}

/// Hears that memory is to be forgotten, and looks at what stands there then.
class Listener final : public LastingMemory::Keeper {
 public:
  Listener() { LastingMemory::instance().join(*this); }
  ~Listener() { LastingMemory::instance().leave(*this); }
  void forget(std::span<const std::byte> memory) override {
    bytes = memory.size();
    first = memory.front();
  }
  std::size_t bytes = 0;
  std::byte first{0};
};

TEST(Allocate, LastsForNetworksAndIsForgottenBeforeItIsGone) {
  constexpr std::uint64_t kBytes = 3 * kPage + 5;
  void* memory = nullptr;
  {
    const Alone alone;
    ASSERT_EQ(unisono_allocate(alone.context.handle(), kBytes, &memory), 0);
    const auto* const begin = static_cast<std::byte*>(memory);
    EXPECT_TRUE(LastingMemory::instance().around(begin, kBytes));
    EXPECT_FALSE(LastingMemory::instance().around(begin, kBytes + 1));
    std::memset(memory, 0x5a, kBytes);
    Listener listener;
    ASSERT_EQ(unisono_deallocate(alone.context.handle(), memory), 0);
    EXPECT_EQ(listener.bytes, kBytes);
    EXPECT_EQ(listener.first, std::byte{0x5a}) << "it was gone already";
    EXPECT_FALSE(LastingMemory::instance().around(begin, 1));
  }
  unisono_context* context = nullptr;
  {
    const Alone alone;
    context = alone.context.handle();
    ASSERT_EQ(unisono_allocate(context, kBytes, &memory), 0);
  }
  EXPECT_TRUE(LastingMemory::instance().around(static_cast<std::byte*>(memory), kBytes)) << "it outlives its context";
  ASSERT_EQ(unisono_deallocate(context, memory), 0);
  EXPECT_FALSE(LastingMemory::instance().around(static_cast<std::byte*>(memory), 1));
}

TEST(Allocate, IsSeenByOtherRanksOfTheMachine) {
  constexpr std::uint64_t kBytes = 3 * kPage;
  ThreadJob job(3);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&job, rank] {
      const Context context(job, rank);
      const Communicator world = context.world();
      void* memory = nullptr;
      ASSERT_EQ(unisono_allocate(context.handle(), kBytes, &memory), 0);
      auto* const values = static_cast<std::uint32_t*>(memory) + 100;
      *values = 1000 + rank;
      std::vector<std::uint64_t> place(1), places(3);
      ASSERT_EQ(unisono_place_of(context.handle(), values, 4, place.data()), 0) << unisono_last_error();
      EXPECT_NE(place[0], 0U);
      world.allgather(place, places);
      void* beyond = &beyond;
      for (std::uint32_t peer = 0; peer < 3; ++peer) {
        void* there = nullptr;
        ASSERT_EQ(unisono_peer_memory(world.handle(), peer, places[peer], 4, &there), 0) << unisono_last_error();
        EXPECT_EQ(*static_cast<std::uint32_t*>(there), 1000 + peer);
        EXPECT_EQ(there == values, peer == rank);
        // Another's memory, no memory at all, and more than there is, are refused.
        const std::uint64_t other = places[(peer + 1) % 3];
        for (const auto& [where, bytes] : {std::pair{other, std::uint64_t{4}}, std::pair{std::uint64_t{1}, kPage},
                                           std::pair{places[peer], ~std::uint64_t{0}}}) {
          ASSERT_EQ(unisono_peer_memory(world.handle(), peer, where, bytes, &beyond),
                    static_cast<int>(ErrorCode::kInvalidArgument));
          EXPECT_EQ(beyond, nullptr);
          EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("not in the memory that this peer hands out"));
        }
      }
      EXPECT_EQ(unisono_peer_memory(world.handle(), 3, places[0], 4, &beyond),
                static_cast<int>(ErrorCode::kInvalidArgument));
      EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("peer 3 was given; the communicator has ranks 0 to 2"));
      int ordinary = 0;
      ASSERT_EQ(unisono_place_of(context.handle(), &ordinary, sizeof ordinary, place.data()), 0);
      EXPECT_EQ(place[0], 0U) << "the stack is not allocated memory";
      world.barrier();
      EXPECT_EQ(unisono_deallocate(context.handle(), memory), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Allocate, IsNotSeenByRanksOfOtherHosts) {
  unisono_thread_job* job = nullptr;
  ASSERT_EQ(unisono_thread_job_create_on(1, "loop", &job), 0);
  unisono_context* context = nullptr;
  ASSERT_EQ(unisono_thread_context(job, 0, nullptr, &context), 0) << unisono_last_error();
  unisono_communicator* world = nullptr;
  ASSERT_EQ(unisono_world(context, &world), 0);
  void* memory = &world;
  ASSERT_EQ(unisono_peer_memory(world, 0, kPage, 1, &memory), 0) << unisono_last_error();
  EXPECT_EQ(memory, nullptr);
  std::uint64_t place = 1;
  ASSERT_EQ(unisono_place_of(context, &place, sizeof place, &place), 0);
  EXPECT_EQ(place, 0U);
  unisono_finalize(context);
  unisono_thread_job_free(job);
}

TEST(Allocate, RefusesWhatCannotBe) {
  const Alone alone;
  unisono_context* const context = alone.context.handle();
  void* memory = &memory;  // something that must not stay
  EXPECT_EQ(unisono_allocate(context, ~std::uint64_t{0}, &memory), static_cast<int>(ErrorCode::kOutOfMemory));
  EXPECT_EQ(memory, nullptr);
  EXPECT_THAT(std::string(unisono_last_error()),
              AllOf(HasSubstr("18446744073709551615 bytes"), HasSubstr("this machine has")));
  EXPECT_EQ(unisono_allocate(context, (std::uint64_t{1} << 34U) + 1, &memory),
            static_cast<int>(ErrorCode::kOutOfMemory));
  EXPECT_THAT(
      std::string(unisono_last_error()),
      testing::AnyOf(HasSubstr("in one piece are not left of the 17179869184 bytes"), HasSubstr("this machine has")));
  EXPECT_EQ(unisono_allocate(context, 1, nullptr), static_cast<int>(ErrorCode::kInvalidArgument));
  EXPECT_EQ(unisono_allocate(nullptr, 1, &memory), static_cast<int>(ErrorCode::kInvalidArgument));

  ASSERT_EQ(unisono_allocate(context, 2 * kPage, &memory), 0);
  const auto refused = [&](unisono_context* given, void* address) {
    EXPECT_EQ(unisono_deallocate(given, address), static_cast<int>(ErrorCode::kInvalidArgument));
    return std::string(unisono_last_error());
  };
  int other = 0;
  EXPECT_THAT(refused(context, &other), HasSubstr("not the begin of memory that unisono_allocate gave"));
  EXPECT_THAT(refused(context, static_cast<char*>(memory) + kPage), HasSubstr("not the begin"));
  const Alone stranger;
  EXPECT_THAT(refused(stranger.context.handle(), memory), HasSubstr("another context"));
  EXPECT_THAT(refused(nullptr, memory), HasSubstr("the context is null"));
  EXPECT_EQ(unisono_deallocate(context, memory), 0);
  EXPECT_THAT(refused(context, memory), HasSubstr("given back before"));
}

TEST(Allocate, OutlivesItsContext) {
  void* memory = nullptr;
  unisono_context* handle = nullptr;
  {
    const Alone alone;
    handle = alone.context.handle();
    ASSERT_EQ(unisono_allocate(handle, 3 * kPage, &memory), 0);
    std::memset(memory, 7, 3 * kPage);
  }
  EXPECT_EQ(unisono_allocate(handle, 1, &memory), static_cast<int>(ErrorCode::kWrongProcess));
  EXPECT_EQ(memory, nullptr);
  const Alone alone;
  Buffer<double> orphan;
  {
    const Alone other;
    orphan = other.context.allocate<double>(1000);
  }
  std::iota(orphan.begin(), orphan.end(), 1.0);
  EXPECT_EQ(std::accumulate(orphan.begin(), orphan.end(), 0.0), 500500.0);
}

TEST(Allocate, IsGivenBackWithoutItsContext) {
  void* memory = nullptr;
  unisono_context* handle = nullptr;
  {
    const Alone alone;
    handle = alone.context.handle();
    ASSERT_EQ(unisono_allocate(handle, 3 * kPage, &memory), 0);
  }
  std::memset(memory, 7, 3 * kPage);
  EXPECT_EQ(unisono_deallocate(handle, memory), 0) << unisono_last_error();
  EXPECT_EQ(unisono_deallocate(handle, memory), static_cast<int>(ErrorCode::kInvalidArgument));
}

TEST(Allocate, IsNotForAChildOfFork) {
  const Alone alone;
  Buffer<std::int32_t> buffer = alone.context.allocate<std::int32_t>(2000);
  std::iota(buffer.begin(), buffer.end(), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* memory = buffer.data();
    bool good = unisono_deallocate(alone.context.handle(), memory) == static_cast<int>(ErrorCode::kWrongProcess);
    good = good && unisono_allocate(alone.context.handle(), 1, &memory) == static_cast<int>(ErrorCode::kWrongProcess);
    buffer = Buffer<std::int32_t>();  // destroys the allocated one
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (std::int32_t i = 0; i < 2000; ++i) ASSERT_EQ(buffer[static_cast<std::size_t>(i)], i);
}

TEST(Buffers, OwnAllocatedMemory) {
  const Alone alone;
  Buffer<float> buffer = alone.context.allocate<float>(5000);
  EXPECT_TRUE(buffer.allocated());
  EXPECT_EQ(buffer.size(), 5000U);
  EXPECT_TRUE(zero(buffer.data(), 5000 * sizeof(float)));
  std::iota(buffer.begin(), buffer.end(), 0.0F);
  const float* place = buffer.data();

  Buffer<float> moved(std::move(buffer));
  EXPECT_TRUE(buffer.empty());  // NOLINT(bugprone-use-after-move): what is left is specified
  EXPECT_EQ(moved.data(), place);
  EXPECT_EQ(moved[4999], 4999.0F);

  Buffer<float> ordinary(7);
  EXPECT_FALSE(ordinary.allocated());
  ordinary[6] = 6.0F;
  std::swap(moved, ordinary);
  EXPECT_TRUE(ordinary.allocated());
  EXPECT_FALSE(moved.allocated());
  EXPECT_EQ(moved[6], 6.0F);
  const std::span<const float> whole = std::as_const(ordinary).span();
  EXPECT_EQ(whole.data(), place);
  EXPECT_EQ(whole.subspan(10, 2)[1], 11.0F);

  ordinary = Buffer<float>();
  EXPECT_EQ(alone.context.allocate<float>(5000).data(), place);  // it was given back

  const Buffer<half> none = alone.context.allocate<half>(0);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
}

TEST(Buffers, OfImpossibleSizesAreRefused) {
  const Alone alone;
  constexpr std::size_t kWraps = std::size_t(-1) / 4 + 2;  // times eight it would be small
  EXPECT_THROW(Buffer<double>{kWraps}, std::bad_array_new_length);
  try {
    alone.context.allocate<double>(kWraps);
    FAIL() << "should have been refused";
  } catch (const api::Error& error) {
    EXPECT_EQ(error.code(), static_cast<int>(ErrorCode::kOutOfMemory));
  }
}

TEST(Buffers, OfAllKindsGoTogether) {
  constexpr std::uint32_t kRanks = 3;
  constexpr std::size_t kElements = 20'001;
  const ThreadJob job(kRanks);
  std::vector<std::thread> threads;
  std::vector<std::string> failures(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Context context(job, rank);
        const Communicator world = context.world();
        Buffer<std::int64_t> mine = context.allocate<std::int64_t>(2 * kElements);
        std::vector<std::int64_t> total(kElements);
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<std::int64_t>(i * (rank + 1));
        for (const char* algorithm : {"", "direct", "ring"}) {
          for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, kElements}) {
            std::fill(total.begin(), total.end(), -1);
            world.allreduce(mine.span().subspan(begin, kElements), total, Op::kSum, {.algorithm = algorithm});
            for (std::size_t i = 0; i < kElements; ++i) {
              if (total[i] != static_cast<std::int64_t>((begin + i) * 6)) throw std::runtime_error(algorithm);
            }
          }
        }
        world.barrier();
      } catch (const std::exception& error) {
        failures[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(SettingsOfLanes, AreAgreedOn) {
  const ThreadJob job(2);
  std::vector<std::thread> threads;
  std::vector<std::string> failures(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Settings settings;
        settings.lanes = rank != 1;  // one rank decides for both
        const Context context(job, rank, settings);
        const Buffer<float> mine = context.allocate<float>(1 << 14);
        std::vector<float> total(mine.size());
        try {
          context.world().allreduce(mine, total, Op::kSum, {.algorithm = "direct"});
          throw std::runtime_error("direct access without lanes");
        } catch (const api::Error& error) {
          if (std::string(error.name()) != "unsupported") throw;
        }
        context.world().allreduce(mine, total, Op::kSum);
        context.world().barrier();
      } catch (const std::exception& error) {
        failures[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(SettingsOfLanes, OfAnOlderCallerAreThere) {
  // What a program has that was compiled before the field was there: a shorter struct.
  const ThreadJob job(1);
  unisono_settings settings{};
  settings.struct_size = offsetof(unisono_settings, without_lanes);
  settings.without_lanes = 1;  // behind the end of the struct it knows
  unisono_context* context = nullptr;
  ASSERT_EQ(unisono_thread_context(job.handle(), 0, &settings, &context), 0) << unisono_last_error();
  unisono_communicator* world = nullptr;
  ASSERT_EQ(unisono_world(context, &world), 0);
  std::int32_t value = 3, result = 0;
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLREDUCE;
  call.datatype = UNISONO_INT32;
  call.op = UNISONO_SUM;
  call.count = 1;
  call.src = &value;
  call.dst = &result;
  call.src_bytes = call.dst_bytes = sizeof value;
  call.algorithm = "direct";  // lanes only
  EXPECT_EQ(unisono_run(world, &call), 0) << unisono_last_error();
  EXPECT_EQ(result, 3);
  EXPECT_EQ(unisono_finalize(context), 0);
}

}  // namespace
}  // namespace unisono::test
