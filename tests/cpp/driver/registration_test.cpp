// Registered memory: unisono_register, and the class of the C++ interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "network/lasting_memory.hpp"
#include "unisono/unisono.hpp"

namespace unisono::test {
namespace {

using ::testing::HasSubstr;

/// A job of one thread: this one.
struct Alone {
  ThreadJob job{1};
  Context context{job, 0};
};

unisono_registration_state state_of(const unisono_registration* registration) {
  unisono_registration_state state{};
  state.struct_size = sizeof state;
  EXPECT_EQ(unisono_registration_describe(registration, &state), 0) << unisono_last_error();
  return state;
}

TEST(Register, SaysWhatIsKnownOfMemory) {
  const Alone alone, stranger;
  std::vector<double> ordinary(1000);
  const Buffer<float> own = alone.context.allocate<float>(5000), foreign = stranger.context.allocate<float>(10);
  void* const fixed = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(fixed, MAP_FAILED);
  void* const gone = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  struct Case {
    const char* what;
    const void* memory;
    std::uint64_t bytes;
    int copied, in_own, in_any;
  };
  for (const Case& each : {Case{"ordinary", ordinary.data(), 8000, 1, 0, 0}, Case{"a part", &ordinary[7], 80, 1, 0, 0},
                           Case{"read-only", fixed, 8192, 1, 0, 0}, Case{"not there", gone, 8192, 0, 0, 0},
                           Case{"allocated", own.data(), 20'000, 1, 1, 1}, Case{"a part of it", &own[100], 4, 1, 1, 1},
                           Case{"another context's", foreign.data(), 40, 1, 0, 1}, Case{"nothing", nullptr, 0, 1, 0, 0},
                           Case{"no bytes", ordinary.data(), 0, 1, 0, 0}}) {
    for (const bool of_context : {true, false}) {
      unisono_registration* made = nullptr;
      ASSERT_EQ(unisono_register(of_context ? alone.context.handle() : nullptr, each.memory, each.bytes, &made), 0)
          << each.what << ": " << unisono_last_error();
      const unisono_registration_state state = state_of(made);
      EXPECT_EQ(state.memory, each.memory) << each.what;
      EXPECT_EQ(state.bytes, each.bytes) << each.what;
      EXPECT_EQ(state.kernel_copies, each.copied) << each.what;
      EXPECT_EQ(state.allocated, of_context ? each.in_own : each.in_any) << each.what;
      EXPECT_EQ(unisono_deregister(made), 0) << unisono_last_error();
    }
  }
  munmap(fixed, 8192);
  munmap(gone, 8192);
}

TEST(Register, MemoryThatTheKernelCopiesForNobodyIsNoError) {
  constexpr long kMemfdSecret = 447;
  const auto file = static_cast<int>(syscall(kMemfdSecret, 0U));
  if (file < 0) GTEST_SKIP() << "no secret memory here";
  ASSERT_EQ(ftruncate(file, 4096), 0);
  void* const secret = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  ASSERT_NE(secret, MAP_FAILED);
  const Alone alone;
  EXPECT_FALSE(alone.context.register_memory(secret, 4096).kernel_copies());
  munmap(secret, 4096);
}

TEST(Register, RefusesWhatCannotBe) {
  const Alone alone;
  unisono_context* const context = alone.context.handle();
  int memory = 0;
  auto* made = reinterpret_cast<unisono_registration*>(&memory);  // something that must not stay
  const auto refused = [](unisono_result result) {
    EXPECT_EQ(result, static_cast<int>(ErrorCode::kInvalidArgument));
    return std::string(unisono_last_error());
  };
  EXPECT_THAT(refused(unisono_register(context, nullptr, 8, &made)), HasSubstr("register: 8 bytes at a null address"));
  EXPECT_EQ(made, nullptr);
  EXPECT_THAT(refused(unisono_register(context, &memory, ~std::uint64_t{0}, &made)),
              HasSubstr("beyond the end of the address space"));
  EXPECT_THAT(refused(unisono_register(context, &memory, 4, nullptr)), HasSubstr("place for the registration is null"));
  ASSERT_EQ(unisono_register(context, &memory, 4, &made), 0);
  unisono_registration_state state{};
  EXPECT_THAT(refused(unisono_registration_describe(made, &state)), HasSubstr("struct_size is 0"));
  EXPECT_THAT(refused(unisono_registration_describe(made, nullptr)), HasSubstr("is null"));
  EXPECT_EQ(unisono_deregister(made), 0);
  EXPECT_EQ(unisono_deregister(nullptr), 0);
  state.struct_size = sizeof state;
  EXPECT_THAT(refused(unisono_deregister(made)), HasSubstr("the registration was freed"));
  EXPECT_THAT(refused(unisono_registration_describe(made, &state)), HasSubstr("the registration was freed"));
  EXPECT_THAT(refused(unisono_deregister(reinterpret_cast<unisono_registration*>(context))),
              HasSubstr("is not one that Unisono made for a registration"));
  unisono_context* left = nullptr;
  {
    const Alone other;
    left = other.context.handle();
  }
  EXPECT_EQ(unisono_register(left, &memory, 4, &made), static_cast<int>(ErrorCode::kWrongProcess));
  EXPECT_EQ(made, nullptr);
}

TEST(Register, MayOverlapAndOutlivesItsContext) {
  std::vector<std::int32_t> memory(1000);
  unisono_registration *whole = nullptr, *part = nullptr, *again = nullptr;
  {
    const Alone alone;
    ASSERT_EQ(unisono_register(alone.context.handle(), memory.data(), 4000, &whole), 0);
    ASSERT_EQ(unisono_register(alone.context.handle(), &memory[100], 400, &part), 0);
    ASSERT_EQ(unisono_register(alone.context.handle(), memory.data(), 4000, &again), 0);
    ASSERT_EQ(unisono_deregister(again), 0);
  }
  EXPECT_EQ(state_of(part).kernel_copies, 1);
  EXPECT_EQ(unisono_deregister(whole), 0);
  EXPECT_EQ(state_of(part).bytes, 400U);
  EXPECT_EQ(unisono_deregister(part), 0);
}

TEST(Register, LastsForNetworksUntilItIsLetGo) {
  const Alone alone;
  std::vector<std::byte> memory(5000);
  const auto lasts = [&] { return LastingMemory::instance().around(&memory[100], 4000).has_value(); };
  EXPECT_FALSE(lasts());
  unisono_registration *first = nullptr, *second = nullptr;
  ASSERT_EQ(unisono_register(alone.context.handle(), memory.data(), 5000, &first), 0);
  ASSERT_EQ(unisono_register(nullptr, memory.data(), 5000, &second), 0);
  EXPECT_TRUE(lasts());
  ASSERT_EQ(unisono_deregister(first), 0);
  EXPECT_TRUE(lasts());
  ASSERT_EQ(unisono_deregister(second), 0);
  EXPECT_FALSE(lasts());
}

TEST(Register, IsNotForAChildOfFork) {
  const Alone alone;
  std::array<char, 100> memory{};
  Registration held = alone.context.register_memory(memory);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = unisono_deregister(held.handle()) == static_cast<int>(ErrorCode::kWrongProcess);
    held.close();
    unisono_registration* own = nullptr;
    const bool made = unisono_register(nullptr, memory.data(), 100, &own) == 0 && unisono_deregister(own) == 0;
    _exit(refused && made ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(held.kernel_copies());
}

TEST(Register, IsOwnedInCpp) {
  const Alone alone;
  std::vector<float> weights(300, 1.F);
  Registration first = alone.context.register_memory(weights);
  EXPECT_EQ(first.data(), weights.data());
  EXPECT_EQ(first.bytes(), 1200U);
  EXPECT_TRUE(first.kernel_copies());
  EXPECT_FALSE(first.allocated());
  Registration second = std::move(first);
  EXPECT_TRUE(first.closed());  // NOLINT(bugprone-use-after-move): what it is then
  EXPECT_EQ(second.bytes(), 1200U);
  second = alone.context.register_memory(std::span<const float>(weights).subspan(100, 10));
  EXPECT_EQ(second.bytes(), 40U);
  second.close();
  second.close();
  EXPECT_TRUE(second.closed());
  EXPECT_THROW(static_cast<void>(second.bytes()), std::runtime_error);
  const Buffer<double> shared = alone.context.allocate<double>(100);
  EXPECT_TRUE(alone.context.register_memory(shared).allocated());
  std::vector<float> sums(300);
  const Registration held = alone.context.register_memory(weights);
  alone.context.world().allreduce(weights, sums, Op::kSum);
  EXPECT_EQ(sums, weights);
}

TEST(Register, FromAllThreads) {
  std::vector<std::vector<char>> memory(4, std::vector<char>(5000));
  std::vector<std::thread> threads;
  for (std::vector<char>& own : memory) {
    threads.emplace_back([&own] {
      for (std::uint64_t bytes = 1; bytes < 500; ++bytes) {
        unisono_registration* made = nullptr;
        ASSERT_EQ(unisono_register(nullptr, own.data(), bytes, &made), 0);
        ASSERT_EQ(state_of(made).bytes, bytes);
        ASSERT_EQ(unisono_deregister(made), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace unisono::test
