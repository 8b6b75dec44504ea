// Memory that lasts: which bytes do, and that who has prepared for them hears of their end before it comes.
#include "network/lasting_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "network/shm/arena.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono {
namespace {

using test::Child;

const std::byte* at(std::uintptr_t address) { return reinterpret_cast<const std::byte*>(address); }  // NOLINT

void require(bool condition, const char* text) {
  if (!condition) throw std::runtime_error(text);
}

/// Notes what it is to forget. Thread-safe.
class Notes final : public LastingMemory::Keeper {
 public:
  Notes() { LastingMemory::instance().join(*this); }
  ~Notes() { LastingMemory::instance().leave(*this); }
  void forget(std::span<const std::byte> memory) override {
    const std::lock_guard lock(mutex_);
    forgotten_.push_back(memory);
  }
  std::vector<std::span<const std::byte>> forgotten() const {
    const std::lock_guard lock(mutex_);
    return forgotten_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::span<const std::byte>> forgotten_;
};

TEST(LastingMemory, IsWhereOnePieceHasAllBytes) {
  LastingMemory& known = LastingMemory::instance();
  EXPECT_FALSE(known.around(at(0x5000), 1));
  known.add(at(0x10000), 0x8000);
  known.add(at(0x17000), 0x2000);
  const auto piece = known.around(at(0x12000), 0x1000);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->data(), at(0x10000));
  EXPECT_EQ(piece->size(), 0x8000U);
  EXPECT_FALSE(known.around(at(0x16fff), 0x2001)) << "in both, but not in one";
  EXPECT_FALSE(known.around(at(0xffff), 2));
  EXPECT_FALSE(known.around(at(0x11000), ~std::uint64_t{0}));
  known.remove(at(0x10000), 0x8000);
  EXPECT_FALSE(known.around(at(0x12000), 1));
  known.remove(at(0x17000), 0x2000);
}

TEST(LastingMemory, KeepersForgetItBeforeItsRemovalReturns) {
  LastingMemory& known = LastingMemory::instance();
  known.add(at(0x10000), 0x8000);
  Notes notes;
  {
    const Notes gone;  // and is told nothing
  }
  known.remove(at(0x10000), 0x7000);
  EXPECT_TRUE(notes.forgotten().empty()) << "there is no such piece";
  known.repaged(at(0x11000), 0x1000);
  ASSERT_EQ(notes.forgotten().size(), 1U);
  EXPECT_EQ(notes.forgotten()[0].data(), at(0x11000));
  EXPECT_TRUE(known.around(at(0x11000), 0x1000)) << "its bytes stay valid";
  known.remove(at(0x10000), 0x8000);
  ASSERT_EQ(notes.forgotten().size(), 2U);
  EXPECT_EQ(notes.forgotten()[1].data(), at(0x10000));
  EXPECT_EQ(notes.forgotten()[1].size(), 0x8000U);
}

TEST(LastingMemory, IsItsParentsAfterAFork) {
  LastingMemory::instance().add(at(0x10000), 0x1000);
  Notes notes;
  Child child([&] {
    LastingMemory& known = LastingMemory::instance();
    require(!known.around(at(0x10000), 1), "a child begins with none");
    known.add(at(0x10000), 0x1000);
    known.remove(at(0x10000), 0x1000);
    require(notes.forgotten().empty(), "what the parent has prepared is the parent's");
  });
  EXPECT_EQ(child.wait(std::chrono::seconds(20)), 0);
  EXPECT_TRUE(LastingMemory::instance().around(at(0x10000), 0x1000));
  LastingMemory::instance().remove(at(0x10000), 0x1000);
}

TEST(LastingMemory, IsEnteredAndTakenOutByAllThreads) {
  constexpr std::uintptr_t kApart = 0x100000;
  LastingMemory& known = LastingMemory::instance();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t round = 1; round <= 1'000; ++round) {
        const std::byte* const begin = at(thread * kApart);
        Notes notes;
        known.add(begin, round);
        if (!known.around(begin, round)) ++wrong;
        known.remove(begin, round);
        if (known.around(begin, round)) ++wrong;
        bool told = false;
        for (const auto& memory : notes.forgotten()) told = told || memory.data() == begin;
        if (!told) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// A card that knows the pages of before would go on to use them.
TEST(LastingMemory, ThatGetsOtherPagesIsForgotten) {
  shm::Geometry geometry;
  geometry.endpoints = 2;
  geometry.arena_bytes = std::uint64_t{2} << 20U;
  const auto segment = shm::Segment::create(geometry);
  shm::Arena arena(segment, 0);
  std::byte* const memory = arena.allocate(100'000);
  ASSERT_NE(memory, nullptr);
  Notes notes;
  segment->detach(memory + 5000, 10'000);
  ASSERT_EQ(notes.forgotten().size(), 1U);
  EXPECT_LE(notes.forgotten()[0].data(), memory + 5000);
  EXPECT_GE(notes.forgotten()[0].data() + notes.forgotten()[0].size(), memory + 15'000);
}

}  // namespace
}  // namespace unisono
