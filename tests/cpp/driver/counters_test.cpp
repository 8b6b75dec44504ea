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

TEST(Counters, AreNotKeptByTheNativeEngine) {
  on_ranks(2, [](const Communicator& world) {
    const char* name = nullptr;
    std::uint64_t value = 0;
    EXPECT_EQ(unisono_counter(world.handle(), 0, &name, &value), static_cast<int>(ErrorCode::kUnsupported));
    EXPECT_THAT(unisono_last_error(), testing::HasSubstr("native engine keeps none"));
    EXPECT_EQ(unisono_counter(world.handle(), 9999, &name, &value), static_cast<int>(ErrorCode::kUnsupported));
    EXPECT_EQ(unisono_counter(world.handle(), 0, nullptr, &value), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_EQ(unisono_counter(nullptr, 0, &name, &value), static_cast<int>(ErrorCode::kInvalidArgument));
    EXPECT_ANY_THROW(world.counters());
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
