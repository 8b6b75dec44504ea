// The symmetric heap against a model: pieces do not overlap, are aligned, and come back.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "doors/shmem/heap.hpp"

namespace unisono::shmem {
namespace {

TEST(ShmemHeap, RandomPiecesNeverOverlapAndAllComesBack) {
  constexpr std::uint64_t kBegin = 4096, kEnd = 200'000;
  std::mt19937 random(7);
  Heap heap(kBegin, kEnd), twin(kBegin, kEnd);
  std::map<std::uint64_t, std::uint64_t> pieces;
  std::uint64_t refused = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    if (!pieces.empty() && random() % 2 == 0) {
      const auto piece = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % pieces.size()));
      EXPECT_EQ(heap.size_of(piece->first), piece->second);
      ASSERT_TRUE(heap.release(piece->first));
      ASSERT_TRUE(twin.release(piece->first));
      EXPECT_FALSE(heap.release(piece->first)) << "it was released before";
      pieces.erase(piece);
      continue;
    }
    const std::uint64_t bytes = 1 + random() % 9000;
    const std::uint64_t alignment = std::uint64_t{1} << (random() % 13);
    const auto made = heap.allocate(bytes, alignment);
    EXPECT_EQ(made, twin.allocate(bytes, alignment)) << "the same calls give the same offsets";
    if (!made) {
      ++refused;
      continue;
    }
    EXPECT_EQ(*made % alignment, 0U);
    EXPECT_EQ(*made % Heap::kLeastAlignment, 0U);
    EXPECT_GE(*made, kBegin);
    EXPECT_LE(*made + bytes, kEnd);
    const auto after = pieces.lower_bound(*made);
    if (after != pieces.end()) {
      EXPECT_LE(*made + bytes, after->first);
    }
    if (after != pieces.begin()) {
      const auto before = std::prev(after);
      EXPECT_LE(before->first + before->second, *made);
    }
    pieces.emplace(*made, bytes);
  }
  EXPECT_GT(refused, 0U) << "the heap was never full";
  for (const auto& [offset, bytes] : pieces) heap.release(offset);
  EXPECT_EQ(heap.used(), 0U);
  constexpr std::uint64_t kWhole = (kEnd - kBegin) / Heap::kLeastAlignment * Heap::kLeastAlignment;
  EXPECT_EQ(heap.allocate(kWhole), kBegin) << "neighbours are one piece again";
}

TEST(ShmemHeap, RefusesWhatCannotBe) {
  Heap heap(64, 1024);
  EXPECT_FALSE(heap.allocate(0));
  EXPECT_FALSE(heap.allocate(961));
  EXPECT_FALSE(heap.allocate(~std::uint64_t{0}));
  EXPECT_EQ(heap.allocate(960), 64U);
  EXPECT_FALSE(heap.allocate(1));
  EXPECT_FALSE(heap.release(128)) << "no piece begins there";
  EXPECT_FALSE(heap.size_of(128));
}

}  // namespace
}  // namespace unisono::shmem
