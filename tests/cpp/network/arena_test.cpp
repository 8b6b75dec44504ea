// The arena: what it hands out, what it takes back, and what it does not hand out again.
#include "network/shm/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace unisono::shm {
namespace {

constexpr std::uint64_t kPage = 4096;

struct OneArena {
  std::shared_ptr<Segment> segment =
      Segment::create({.endpoints = 2, .arena_bytes = 4 * kArenaAlignment, .one_process = 1});
  Arena arena{segment, 1};
};

bool zero(const std::byte* memory, std::uint64_t bytes) {
  return std::all_of(memory, memory + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(Arena, PiecesAreZeroApartAndMergedAgain) {
  OneArena one;
  std::mt19937 random(7);
  std::map<std::byte*, std::uint64_t> pieces;
  std::uint64_t total = 0;
  for (int round = 0; round < 2000; ++round) {
    if (!pieces.empty() && random() % 2 == 0) {
      const auto piece = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % pieces.size()));
      ASSERT_TRUE(one.arena.deallocate(piece->first));
      total -= (piece->second + kPage - 1) / kPage * kPage;
      pieces.erase(piece);
    } else {
      const std::uint64_t bytes = 1 + random() % (20 * kPage);
      std::byte* const piece = one.arena.allocate(bytes);
      if (piece == nullptr) continue;
      ASSERT_TRUE(zero(piece, bytes));
      std::memset(piece, 0x7f, bytes);
      const auto next = pieces.lower_bound(piece);
      ASSERT_TRUE(next == pieces.end() || piece + bytes <= next->first);
      ASSERT_TRUE(next == pieces.begin() || std::prev(next)->first + std::prev(next)->second <= piece);
      pieces.emplace(piece, bytes);
      total += (bytes + kPage - 1) / kPage * kPage;
    }
    ASSERT_EQ(one.arena.allocated(), total);
  }
  for (const auto& [piece, bytes] : pieces) ASSERT_TRUE(one.arena.deallocate(piece));
  std::byte* const whole = one.arena.allocate(4 * kArenaAlignment);
  ASSERT_NE(whole, nullptr);
  EXPECT_TRUE(zero(whole, 4 * kArenaAlignment));
  EXPECT_EQ(one.arena.allocate(1), nullptr);
  EXPECT_FALSE(one.arena.deallocate(whole + kPage));
  EXPECT_TRUE(one.arena.deallocate(whole));
  EXPECT_FALSE(one.arena.deallocate(whole));
}

TEST(Arena, WhatIsRetiredIsNotHandedOutAgain) {
  OneArena one;
  std::byte* const first = one.arena.allocate(3 * kPage);
  std::byte* const second = one.arena.allocate(3 * kPage);
  std::byte* const third = one.arena.allocate(3 * kPage);
  const int elsewhere = 0;
  one.arena.retire(second + 2 * kPage + 5);
  one.arena.retire(third + 3 * kPage);  // just behind it
  one.arena.retire(&elsewhere);
  one.arena.retire(nullptr);
  EXPECT_TRUE(one.arena.deallocate(first));
  EXPECT_TRUE(one.arena.deallocate(second));
  EXPECT_TRUE(one.arena.deallocate(third));
  EXPECT_EQ(one.arena.allocated(), 0U);
  EXPECT_EQ(one.arena.allocate(3 * kPage), first);
  EXPECT_EQ(one.arena.allocate(3 * kPage), third);
  EXPECT_FALSE(one.arena.deallocate(second));
}

}  // namespace
}  // namespace unisono::shm
