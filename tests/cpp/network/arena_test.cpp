// The arena: pieces do not overlap, are zero, and come back whole.
#include "network/shm/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace unisono::shm {
namespace {

constexpr std::uint64_t kArena = std::uint64_t{32} << 20U;
constexpr std::uint64_t kPage = 4096;

std::shared_ptr<Segment> segment_of(std::uint32_t endpoints, std::uint64_t arena_bytes = kArena) {
  Geometry geometry;
  geometry.endpoints = endpoints;
  geometry.arena_bytes = arena_bytes;
  geometry.one_process = 1;
  return Segment::create(geometry);
}

bool all_zero(const std::byte* memory, std::uint64_t bytes) {
  return std::all_of(memory, memory + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(Arena, PiecesAreAlignedAndWithinTheirArena) {
  const auto segment = segment_of(2);
  Arena arena(segment, 1);
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kPage, kPage + 1, kArenaAlignment - 1,
                                    kArenaAlignment, kArenaAlignment + 1}) {
    std::byte* piece = arena.allocate(bytes);
    ASSERT_NE(piece, nullptr) << bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(piece);
    EXPECT_EQ(address % (bytes >= kArenaAlignment ? kArenaAlignment : kPage), 0U) << bytes;
    EXPECT_GE(piece, segment->arena(1));
    EXPECT_LE(piece + bytes, segment->arena(1) + kArena);
    const std::uint64_t offset = segment->offset_of(piece, bytes);
    ASSERT_NE(offset, 0U);
    EXPECT_EQ(segment->at(offset, bytes), piece);
  }
}

TEST(Arena, RefusesWhatItDoesNotHave) {
  Arena arena(segment_of(1), 0);
  EXPECT_EQ(arena.allocate(kArena + 1), nullptr);
  EXPECT_EQ(arena.allocate(std::numeric_limits<std::uint64_t>::max()), nullptr);
  EXPECT_EQ(arena.allocate(std::numeric_limits<std::uint64_t>::max() - kPage + 1), nullptr);
  std::byte* all = arena.allocate(kArena);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(arena.allocated(), kArena);
  EXPECT_EQ(arena.allocate(1), nullptr);
  EXPECT_EQ(arena.allocate(0), nullptr);
  EXPECT_FALSE(arena.deallocate(all + kPage)) << "the middle of a piece";
  EXPECT_FALSE(arena.deallocate(nullptr));
  int elsewhere = 0;
  EXPECT_FALSE(arena.deallocate(&elsewhere));
  EXPECT_TRUE(arena.deallocate(all));
  EXPECT_FALSE(arena.deallocate(all)) << "a second time";
  EXPECT_EQ(arena.allocated(), 0U);
}

TEST(Arena, NeighboursMergeInAnyOrder) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    Arena arena(segment_of(1), 0);
    std::vector<std::byte*> quarters;
    for (int i = 0; i < 4; ++i) quarters.push_back(arena.allocate(kArena / 4));
    for (const int i : order) {
      ASSERT_EQ(arena.allocate(kArena / 2), nullptr);
      ASSERT_TRUE(arena.deallocate(quarters[static_cast<std::size_t>(i)]));
      if (std::byte* half = arena.allocate(kArena / 2)) {
        ASSERT_TRUE(arena.deallocate(half));
        break;
      }
    }
    for (std::byte* quarter : quarters) arena.deallocate(quarter);
    EXPECT_EQ(arena.allocated(), 0U);
    EXPECT_NE(arena.allocate(kArena), nullptr) << "the whole is in one piece again";
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Arena, RandomPiecesDoNotOverlapAndAreZero) {
  const auto segment = segment_of(1);
  Arena arena(segment, 0);
  std::mt19937 random(7);
  std::map<std::byte*, std::uint64_t> pieces;
  std::uint64_t handed_out = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    if (pieces.empty() || random() % 5 < 3) {
      const std::uint64_t bytes = random() % 20 == 0 ? random() % (8U << 20U) : random() % 300'000;
      std::byte* piece = arena.allocate(bytes);
      if (piece == nullptr) {
        ++refused;
        const auto victim = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % pieces.size()));
        ASSERT_TRUE(arena.deallocate(victim->first));
        pieces.erase(victim);
        continue;
      }
      const auto next = pieces.lower_bound(piece);
      ASSERT_TRUE(next == pieces.end() || piece + bytes <= next->first);
      ASSERT_TRUE(next == pieces.begin() || std::prev(next)->first + std::prev(next)->second <= piece);
      ASSERT_TRUE(all_zero(piece, bytes)) << "piece of " << bytes << " bytes in round " << round;
      std::memset(piece, 0x5a, bytes);
      pieces[piece] = bytes;
      ++handed_out;
    } else {
      const auto victim = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % pieces.size()));
      ASSERT_TRUE(arena.deallocate(victim->first));
      pieces.erase(victim);
    }
  }
  EXPECT_GT(handed_out, 1000U);
  EXPECT_GT(refused, 10U) << "the arena was never full";
  for (const auto& [piece, bytes] : pieces) EXPECT_TRUE(arena.deallocate(piece));
  EXPECT_EQ(arena.allocated(), 0U);
  EXPECT_NE(arena.allocate(kArena), nullptr);
}

TEST(Arena, ThreadsShareIt) {
  Arena arena(segment_of(1), 0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, &wrong, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 1500; ++i) {
        const std::uint64_t bytes = 1 + random() % 100'000;
        std::byte* piece = arena.allocate(bytes);
        if (piece == nullptr) continue;
        if (!all_zero(piece, bytes)) ++wrong;
        std::memset(piece, t + 1, bytes);
        std::this_thread::yield();
        if (!std::all_of(piece, piece + bytes, [t](std::byte b) { return b == static_cast<std::byte>(t + 1); }))
          ++wrong;
        if (!arena.deallocate(piece)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(arena.allocated(), 0U);
}

TEST(Arena, HugeSizesCostAddressesOnly) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 36U;
  Arena arena(segment_of(1, kHuge), 0);
  std::byte* first = arena.allocate(kHuge / 2);
  std::byte* second = arena.allocate(kHuge / 2);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  first[kHuge / 2 - 1] = std::byte{1};
  EXPECT_EQ(second[0], std::byte{0});
  EXPECT_TRUE(arena.deallocate(first));
  first = arena.allocate(kHuge / 2);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first[kHuge / 2 - 1], std::byte{0});
}

}  // namespace
}  // namespace unisono::shm
