// Counters of engines, as a program reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/error.hpp"
#include "core/generated/spec.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

std::uint64_t value_of(const std::vector<CounterValue>& counters, Counter counter) {
  const auto found = std::find_if(counters.begin(), counters.end(),
                                  [&](const CounterValue& one) { return one.name == name_of(counter); });
  return found == counters.end() ? ~std::uint64_t{0} : found->value;
}

std::uint64_t value_of(const std::vector<CounterValue>& counters, const char* name) {
  const auto found = std::find_if(counters.begin(), counters.end(), [&](const auto& one) { return one.name == name; });
  return found == counters.end() ? ~std::uint64_t{0} : found->value;
}

TEST(Counters, HaveNamesAndAnEnd) {
  on_ranks(2, [](const Communicator& world) {
    const char* name = nullptr;
    std::uint64_t value = 1;
    EXPECT_EQ(unisono_counter(world.handle(), 0, &name, &value), 0);
    EXPECT_STREQ(name, "calls");
    EXPECT_EQ(unisono_counter(world.handle(), 9999, &name, &value), 0);
    EXPECT_EQ(name, nullptr);
    EXPECT_EQ(value, 0U);
    EXPECT_EQ(unisono_counter(world.handle(), 0, nullptr, &value), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_EQ(unisono_counter(nullptr, 0, &name, &value), static_cast<int>(ErrorCode::kInvalidArgument));
  });
}

TEST(Counters, OfTheNativeEngineAreThoseOfCallsAndMessages) {
  on_ranks(3, [](const Communicator& world) {
    const auto before = world.counters();
    for (int i = 0; i < 5; ++i) world.barrier();
    const auto lanes = world.counters();
    EXPECT_EQ(value_of(lanes, "calls"), value_of(before, "calls") + 5);
    EXPECT_EQ(value_of(lanes, "bytes_sent"), value_of(before, "bytes_sent"));
    // Over messages, of which some must be announced; and what a freed communicator has counted is not forgotten.
    std::uint64_t calls = 0;
    {
      Communicator other = world.dup({.eager_limit = 1000, .lanes = false});
      calls = value_of(other.counters(), "calls");
      std::vector<std::byte> mine(500), all(1500);
      other.allgather(mine, all, {.algorithm = "ring"});
      mine.resize(50'000);
      all.resize(150'000);
      other.allgather(mine, all, {.algorithm = "ring"});
      const auto after = world.counters();
      EXPECT_EQ(value_of(after, "bytes_sent"), value_of(lanes, "bytes_sent") + 2 * 50'500);
      EXPECT_EQ(value_of(after, "bytes_received"), value_of(lanes, "bytes_received") + 2 * 50'500);
      EXPECT_GE(value_of(after, "grants_sent"), value_of(lanes, "grants_sent") + 2);
      EXPECT_GT(value_of(after, "segments_sent"), value_of(lanes, "segments_sent") + 3);
      EXPECT_EQ(value_of(after, "communicators"), 2U);
      other.free();
    }
    EXPECT_EQ(value_of(world.counters(), "calls"), calls + 2);
    EXPECT_EQ(value_of(world.counters(), "revocations"), 0U);
    EXPECT_EQ(value_of(world.counters(), "calls_failed"), 0U);
    world.barrier();
  });
}

TEST(Counters, TellWhatGoesOverLanes) {
  // From a few bytes to many segments; what each rank sends is known of the algorithm.
  for (const std::size_t count : {std::size_t{3}, std::size_t{1000}, std::size_t{200'000}}) {
    on_ranks(3, [&](const Communicator& world) {
      const std::uint64_t bytes = count * sizeof(std::int32_t);
      std::vector<std::int32_t> data(count, static_cast<std::int32_t>(world.rank()));
      const auto grown = [&](const char* name, auto&& call) {
        const std::uint64_t before = value_of(world.counters(), name);
        call();
        return value_of(world.counters(), name) - before;
      };
      const std::uint64_t children = world.rank() == 1 ? 2 : 0;
      EXPECT_EQ(grown("lane_bytes_sent", [&] { world.bcast(data, 1, {.algorithm = "linear"}); }), children * bytes);
      EXPECT_EQ(grown("lane_messages_sent", [&] { world.bcast(data, 1, {.algorithm = "linear"}); }), children);
      // Started, it takes another way through the engine; so do sends, and long ones another again.
      EXPECT_EQ(grown("lane_bytes_sent", [&] { world.bcast_async(data, 1, {.algorithm = "linear"}).wait(); }),
                children * bytes);
      const std::uint64_t to_next = world.rank() == 2 ? bytes : 0;
      const auto pass_on = [&] {
        if (world.rank() == 2) world.send(data, 0);
        if (world.rank() == 0) world.recv(data, 2);
      };
      EXPECT_EQ(grown("lane_bytes_sent", pass_on), to_next);
      EXPECT_EQ(grown("lane_messages_sent", pass_on), to_next == 0 ? 0U : 1U);
      world.barrier();
    });
  }
}

TEST(Counters, TellWhatIsReadInPeersMemory) {
  on_ranks(3, [](const Communicator& world) {
    std::vector<std::int32_t> data(5000, static_cast<std::int32_t>(world.rank()));  // of threads: within reach
    const std::uint64_t before = value_of(world.counters(), "direct_bytes");
    world.bcast(data, 0, {.algorithm = "direct"});
    // Ranks share the work; all bytes reach the two others once.
    const std::vector<std::uint64_t> own{value_of(world.counters(), "direct_bytes") - before};
    std::vector<std::uint64_t> all(1);
    world.allreduce(own, all, Op::kSum);
    EXPECT_EQ(all[0], 40'000U);
  });
}

TEST(Counters, OfAFunctionalDeviceAreThoseOfCalls) {
  setenv("UNISONO_PLATFORM", "functional", 1);
  on_ranks(3, [](const Communicator& world) {
    const auto before = world.counters();
    EXPECT_EQ(before.size(), kAllCounter.size());
    EXPECT_EQ(before.front().name, "cycles");
    for (int i = 0; i < 4; ++i) world.barrier();
    const auto after = world.counters();
    EXPECT_EQ(value_of(after, Counter::kCallsCompleted), value_of(before, Counter::kCallsCompleted) + 4);
    EXPECT_EQ(value_of(after, Counter::kCallsFailed), 0U);
  });
  unsetenv("UNISONO_PLATFORM");
}

}  // namespace
}  // namespace unisono::test
