// The allocator of device memory.
#include "platform/device/memory.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

namespace unisono::test {
namespace {

TEST(DeviceMemory, TakesTheSmallestPieceThatFits) {
  DeviceMemory memory(0x1000, 64 * 10);
  const auto a = memory.allocate(64 * 4);
  const auto b = memory.allocate(64);
  const auto c = memory.allocate(64 * 2);
  const auto d = memory.allocate(64);
  ASSERT_TRUE(a && b && c && d);
  memory.free(*a);
  memory.free(*c);  // free are now 4, 2 and the last 2 units
  EXPECT_EQ(memory.free_bytes(), 64U * 8);
  EXPECT_EQ(memory.largest(), 64U * 4);
  EXPECT_EQ(memory.allocate(65), c);
  EXPECT_EQ(memory.allocate(64 * 3), a);
  EXPECT_EQ(memory.allocate(64 * 3), std::nullopt);
}

TEST(DeviceMemory, AlignsAndStaysInside) {
  DeviceMemory memory(100, 200);  // 128 to 256 are whole units
  EXPECT_EQ(memory.free_bytes(), 128U);
  EXPECT_EQ(memory.allocate(1), std::uint64_t{128});
  EXPECT_EQ(memory.allocate(0), std::uint64_t{192});
  EXPECT_EQ(memory.allocate(1), std::nullopt);
  EXPECT_EQ(memory.allocate(~std::uint64_t{0}), std::nullopt);
}

TEST(DeviceMemory, RandomUseNeverOverlapsAndLosesNothing) {
  constexpr std::uint64_t kBytes = 64 * 200;
  DeviceMemory memory(0x40000000, kBytes);
  std::map<std::uint64_t, std::uint64_t> held;
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      const auto one = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      memory.free(one->first);
      held.erase(one);
      continue;
    }
    const std::uint64_t bytes = random() % 2000;
    const auto address = memory.allocate(bytes);
    if (!address) {
      EXPECT_LT(memory.largest(), bytes);
      continue;
    }
    EXPECT_EQ(*address % DeviceMemory::kAlignment, 0U);
    EXPECT_GE(*address, 0x40000000U);
    EXPECT_LE(*address + bytes, 0x40000000U + kBytes);
    const auto after = held.lower_bound(*address);
    EXPECT_TRUE(after == held.end() || *address + bytes <= after->first);
    EXPECT_TRUE(after == held.begin() || std::prev(after)->first + std::prev(after)->second <= *address);
    held[*address] = bytes;
  }
  for (const auto& [address, bytes] : held) memory.free(address);
  EXPECT_EQ(memory.largest(), kBytes);
}

}  // namespace
}  // namespace unisono::test
