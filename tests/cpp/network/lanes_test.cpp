// Lanes: what is sent comes out, in order and whole, and nothing is overwritten before it has been read.
#include "network/shm/lanes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "network/shm/parking.hpp"

namespace unisono::shm {
namespace {

constexpr std::uint32_t kSignature = 0xfeed;

/// One lane in private memory.
struct OneLane {
  explicit OneLane(std::uint32_t cell_bytes) : lines(kLaneLines), cells(cell_bytes) {
    sender.lines = lines.data();
    sender.cells = cells.data();
    sender.tail = &tail;
    receiver.lines = lines.data();
    receiver.cells = cells.data();
    receiver.tail = &tail;
    sender.cell_bytes = receiver.cell_bytes = cell_bytes;
  }
  std::vector<LaneLine> lines;
  std::vector<std::byte> cells;
  LaneTail tail{};
  LaneSender sender;
  LaneReceiver receiver;
};

std::byte pattern(std::uint64_t line, std::uint32_t i) {
  return static_cast<std::byte>((line * 0x9e3779b97f4a7c15ULL >> 32U) + i * 7);
}

/// Sends the next line of `bytes` if there is room; its payload tells the line's number.
bool try_send(LaneSender& lane, std::uint32_t bytes) {
  if (!lane.has_line()) return false;
  const bool in_line = bytes <= kInlineBytes;
  std::byte* place = in_line ? lane.next().payload.data() : lane.cell(bytes);
  if (place == nullptr) return false;
  for (std::uint32_t i = 0; i < bytes; ++i) place[i] = pattern(lane.sent, i);
  if (!in_line) lane.take_cell(bytes);
  lane.publish(bytes, kSignature);
  return true;
}

/// Takes a line if one has come; throws if it is not what `try_send` sent as that line.
bool try_take(LaneReceiver& lane, std::uint32_t& bytes, bool& reported) {
  if (!lane.has_line()) return false;
  if (lane.next().flag.load(std::memory_order_acquire) != lane.awaited(kSignature)) throw std::runtime_error("flag");
  bytes = static_cast<std::uint32_t>(lane.next().head);
  const bool in_line = bytes <= kInlineBytes;
  const std::byte* place = in_line ? lane.next().payload.data() : lane.cell(bytes);
  if (place == nullptr) throw std::runtime_error("a payload that no cells can hold");
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (place[i] != pattern(lane.taken, i)) throw std::runtime_error("line " + std::to_string(lane.taken));
  }
  if (!in_line) lane.release_cell(bytes);
  reported = lane.release();
  return true;
}

std::uint32_t random_size(std::mt19937& generator, std::uint32_t most) {
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  switch (random() % 8) {
    case 0:
      return random() % (most + 1);
    case 1:
      return most - random() % 3;
    case 2:
      return kInlineBytes + random() % 3;
    case 3:
      return 64 * (random() % 4) + random() % 2;
    default:
      return random() % (kInlineBytes + 1);
  }
}

TEST(OneLane, StepsOfBothEndsInAnyOrder) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    const std::uint32_t cell_bytes = 4096U << seed % 3;
    const std::uint32_t most = cell_bytes / 4;
    OneLane lane(cell_bytes);
    std::deque<std::uint32_t> under_way;
    std::uint64_t refusals = 0, last_reported_lines = 0, last_reported_bytes = 0;
    std::uint32_t next = random_size(random, most);
    for (std::uint64_t i = 0; i < 400'000; ++i) {
      const bool burst = (i >> 7U & 1U) != 0;
      if (random() % 8 < (burst ? 6U : 2U)) {
        if (try_send(lane.sender, next)) {
          under_way.push_back(next);
          next = random_size(random, most);
        } else {
          ++refusals;
          // With nothing unread there is always room for a segment.
          ASSERT_FALSE(under_way.empty()) << "no room for " << next << " bytes in an empty lane";
        }
      } else {
        std::uint32_t bytes = 0;
        bool reported = false;
        ASSERT_EQ(try_take(lane.receiver, bytes, reported), !under_way.empty());
        if (under_way.empty()) continue;
        ASSERT_EQ(bytes, under_way.front());
        under_way.pop_front();
        // A report says what it says at the latest when it must.
        ASSERT_LT(lane.receiver.taken - lane.tail.lines, kLaneReport);
        ASSERT_LT(lane.receiver.emptied - lane.tail.bytes, cell_bytes / kCellReport);
        ASSERT_EQ(reported, lane.tail.lines != last_reported_lines || lane.tail.bytes != last_reported_bytes);
        last_reported_lines = lane.tail.lines;
        last_reported_bytes = lane.tail.bytes;
      }
      ASSERT_LE(lane.sender.sent - lane.receiver.taken, kLaneLines);
      ASSERT_LE(lane.sender.filled - lane.receiver.emptied, cell_bytes);
      if (under_way.empty()) {
        ASSERT_EQ(lane.sender.filled, lane.receiver.emptied) << "both ends count the same gaps";
      }
    }
    EXPECT_GT(refusals, 1000U);
    EXPECT_GT(lane.sender.sent, 100'000U);
    EXPECT_GT(lane.sender.filled, 1000U * cell_bytes) << "the ring went round often";
  }
}

TEST(OneLane, TwoThreads) {
  constexpr std::uint32_t kCells = 4096;
#if defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kLines = 200'000;
#else
  constexpr std::uint64_t kLines = 3'000'000;
#endif
  OneLane lane(kCells);
  std::string error;
  std::thread receiver([&] {
    std::mt19937 random(1);
    std::mt19937 sizes(5);
    try {
      while (lane.receiver.taken < kLines) {
        std::uint32_t bytes = 0;
        bool reported = false;
        if (!try_take(lane.receiver, bytes, reported)) {
          std::this_thread::yield();
          continue;
        }
        if (bytes != random_size(sizes, kCells / 4)) throw std::runtime_error("size");
        if (random() % 4096 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    } catch (const std::exception& caught) {
      error = caught.what();
      lane.tail.lines = kLines;  // lets the sender go
      lane.tail.bytes = ~std::uint64_t{0} / 2;
    }
  });
  std::mt19937 sizes(5);
  std::uint32_t next = random_size(sizes, kCells / 4);
  while (lane.sender.sent < kLines) {
    if (try_send(lane.sender, next)) {
      next = random_size(sizes, kCells / 4);
    } else {
      std::this_thread::yield();
    }
  }
  receiver.join();
  EXPECT_EQ(error, "");
}

TEST(OneLane, NumbersOfLinesWrap) {
  OneLane lane(4096);
  // As after nearly 2^32 lines; what stands in the ring then has the numbers before.
  const std::uint64_t begin = (std::uint64_t{1} << 32U) - 100;
  lane.sender.sent = lane.sender.read = lane.receiver.taken = lane.receiver.reported = begin;
  lane.tail.lines = begin;
  for (std::uint64_t i = 0; i < kLaneLines; ++i) {
    lane.lines[(begin + i) % kLaneLines].flag = static_cast<std::uint32_t>(begin + i + 1 - kLaneLines);
  }
  EXPECT_FALSE(lane.receiver.has_line());
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(try_send(lane.sender, 100));
    std::uint32_t bytes = 0;
    bool reported = false;
    ASSERT_TRUE(try_take(lane.receiver, bytes, reported));
    ASSERT_FALSE(lane.receiver.has_line());
  }
}

TEST(OneLane, AnotherCallsLineIsSeenAsSuch) {
  OneLane lane(4096);
  lane.sender.publish(0, 77);
  EXPECT_TRUE(lane.receiver.has_line());
  EXPECT_NE(lane.receiver.next().flag.load(), lane.receiver.awaited(kSignature));
  EXPECT_EQ(lane.receiver.next().flag.load() >> 32U, 77U);
  EXPECT_EQ(lane.receiver.cell(4097), nullptr) << "no cells hold that much";
}

// --------------------------------------------------------------------------------------------------- sets

constexpr std::uint64_t kArena = std::uint64_t{8} << 30U;

struct Endpoints {
  explicit Endpoints(std::uint32_t count, std::uint64_t arena_bytes = kArena) {
    Geometry geometry;
    geometry.endpoints = count;
    geometry.arena_bytes = arena_bytes;
    geometry.one_process = 1;
    segment = Segment::create(geometry);
    for (std::uint32_t i = 0; i < count; ++i) {
      arenas.push_back(std::make_shared<Arena>(segment, i));
      all.push_back(i);
    }
  }
  std::unique_ptr<LaneSet> set(std::uint32_t self, std::uint32_t number, std::uint16_t epoch = 0) {
    return std::make_unique<LaneSet>(segment, arenas[self], self, number, epoch, all);
  }
  std::shared_ptr<Segment> segment;
  std::vector<std::shared_ptr<Arena>> arenas;
  std::vector<std::uint32_t> all;
};

constexpr LaneSpace kSpaces[] = {LaneSpace::kCollective, LaneSpace::kPointToPoint, LaneSpace::kAnswers, small_set(0),
                                 small_set(kSmallSets - 1)};

void expect_line(LaneSet& from, std::uint32_t sender, LaneSet& to, std::uint32_t receiver, std::uint32_t bytes) {
  for (const LaneSpace space : kSpaces) {
    LaneSender send = from.sender(space, receiver);
    LaneReceiver take = to.receiver(space, sender);
    EXPECT_FALSE(take.has_line()) << "lanes begin empty";
    ASSERT_TRUE(try_send(send, bytes));
    std::uint32_t got = 0;
    bool reported = false;
    ASSERT_TRUE(try_take(take, got, reported));
    EXPECT_EQ(got, bytes);
  }
}

TEST(LaneSet, MembersOpenInAnyOrder) {
  for (const bool zero_first : {true, false}) {
    Endpoints endpoints(2);
    std::unique_ptr<LaneSet> sets[2];
    const std::uint32_t first = zero_first ? 0 : 1;
    sets[first] = endpoints.set(first, 3);
    EXPECT_EQ(sets[first]->open(), zero_first);
    sets[1 - first] = endpoints.set(1 - first, 3);
    EXPECT_TRUE(sets[0]->open());
    EXPECT_TRUE(sets[1]->open());
    EXPECT_TRUE(sets[1]->open()) << "again";
    expect_line(*sets[0], 0, *sets[1], 1, 10);
    expect_line(*sets[1], 1, *sets[0], 0, 5000);
    expect_line(*sets[1], 1, *sets[1], 1, 500);
  }
}

// Who waits for lanes is told when they are there: rank 0 may have nothing to send, and wait for a message itself.
TEST(LaneSet, WhoSleepsUntilItIsMadeIsWoken) {
  Endpoints endpoints(2);
  const auto second = endpoints.set(1, 7);
  Parking parking(*endpoints.segment, 1);
  parking.set_policy({.patience = std::chrono::microseconds(0), .look = std::chrono::minutes(1)});
  const auto begin = Parking::Clock::now();
  std::thread waiter([&] {
    EXPECT_TRUE(parking.wait([&] { return second->open(); }, [] { return true; }, begin + std::chrono::minutes(1)));
  });
  const std::atomic<std::uint32_t>& word = endpoints.segment->endpoint(1).parked;
  while ((word.load() & kParked) == 0) std::this_thread::yield();
  const auto first = endpoints.set(0, 7);
  waiter.join();
  EXPECT_LT(Parking::Clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(parking.counters().rescues, 0U);
}

TEST(LaneSet, EveryPairHasLanesOfItsOwn) {
  constexpr std::uint32_t kRanks = 5;
  Endpoints endpoints(kRanks);
  std::vector<std::unique_ptr<LaneSet>> sets;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    sets.push_back(endpoints.set(rank, 9));
    ASSERT_TRUE(sets.back()->open());
  }
  // Everybody sends to everybody before anybody reads.
  for (const LaneSpace space : kSpaces) {
    for (std::uint32_t from = 0; from < kRanks; ++from) {
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        LaneSender send = sets[from]->sender(space, to);
        std::byte* cells = send.cell(1000);
        ASSERT_NE(cells, nullptr);
        std::memset(cells, static_cast<int>(from * 16 + to + static_cast<std::uint32_t>(space) * 100), 1000);
        send.take_cell(1000);
        send.publish(from << 8U | to, kSignature);
      }
    }
  }
  for (const LaneSpace space : kSpaces) {
    for (std::uint32_t from = 0; from < kRanks; ++from) {
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        LaneReceiver take = sets[to]->receiver(space, from);
        ASSERT_TRUE(take.has_line());
        EXPECT_EQ(take.next().head, from << 8U | to);
        const std::byte* cells = take.cell(1000);
        const auto want = static_cast<std::byte>(from * 16 + to + static_cast<std::uint32_t>(space) * 100);
        EXPECT_EQ(cells[0], want);
        EXPECT_EQ(cells[999], want);
        EXPECT_EQ(take.peer, &endpoints.segment->endpoint(from));
      }
    }
  }
}

TEST(LaneSet, SixHundredCommunicatorsComeAndGo) {
  Endpoints endpoints(2);
  for (std::uint32_t number = 1; number <= 600; ++number) {
    std::unique_ptr<LaneSet> sets[2];
    const std::uint32_t first = number % 2;
    sets[first] = endpoints.set(first, number);
    sets[1 - first] = endpoints.set(1 - first, number);
    ASSERT_TRUE(sets[0]->open());
    ASSERT_TRUE(sets[1]->open());
    expect_line(*sets[0], 0, *sets[1], 1, number);
    expect_line(*sets[1], 1, *sets[0], 0, 3 * number);
    EXPECT_FALSE(sets[1]->touch_guard().banned());
    EXPECT_TRUE(sets[1]->touch_guard().enter()) << "and nothing is left of what another communicator was forbidden";
    EXPECT_TRUE(sets[0]->touch_guard().touches(1));
    if (number % 4 != 0) sets[1]->touch_guard().leave();
    EXPECT_EQ(sets[0]->touch_guard().touches(1), number % 4 == 0) << "or had begun";
    sets[0]->touch_guard().ban();
    sets[(number / 2) % 2].reset();
  }
  EXPECT_LT(endpoints.arenas[0]->allocated(), 24U << 20U) << "blocks are used again";
}

// The members of a communicator may free it before rank 0 has got round to making its lanes.
TEST(LaneSet, FreedByOneBeforeItWasMadeByAnother) {
  Endpoints endpoints(2);
  for (std::uint32_t number = 1; number <= 600; ++number) {
    endpoints.set(1, number).reset();
    endpoints.set(0, number).reset();
  }
  endpoints.set(1, 1000);
  const auto last = endpoints.set(0, 1001);
  EXPECT_LT(endpoints.arenas[0]->allocated(), 24U << 20U) << "nobody holds the blocks of freed communicators";
}

TEST(LaneSet, SaysWhenItsDirectoryIsFull) {
  Endpoints endpoints(1, std::uint64_t{4} << 30U);
  std::vector<std::unique_ptr<LaneSet>> sets;
  for (std::uint32_t number = 0; number < kDirectoryEntries; ++number) sets.push_back(endpoints.set(0, number));
  try {
    sets.push_back(endpoints.set(0, 5000));
    ADD_FAILURE() << "there is no entry left";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCapacity);
    EXPECT_NE(std::string(error.what()).find("512 communicators"), std::string::npos) << error.what();
  }
  sets[100].reset();
  sets[100] = endpoints.set(0, 5000);
  EXPECT_TRUE(sets[100]->open());
}

TEST(LaneSet, SaysWhenTheArenaIsFull) {
  Endpoints endpoints(2);
  std::byte* most = endpoints.arenas[0]->allocate(kArena - (1U << 20U));
  ASSERT_NE(most, nullptr);
  try {
    endpoints.set(0, 1);
    ADD_FAILURE() << "there is no memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
  }
  EXPECT_FALSE(endpoints.set(1, 1)->open());
  endpoints.arenas[0]->deallocate(most);
  const auto made = endpoints.set(0, 2);
  EXPECT_TRUE(made->open());
}

TEST(LaneSet, RefusesADirectoryThatCannotBeRight) {
  Endpoints endpoints(2);
  const auto zero = endpoints.set(0, 4);
  DirectoryEntry* entry = endpoints.segment->directory(0);
  while (entry->key == 0) ++entry;
  const std::uint64_t right = entry->place;
  std::byte* other = endpoints.arenas[0]->allocate(1U << 20U);
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{64}, ~std::uint64_t{0}, right + (kArena * 2),
                                    right + 1, endpoints.segment->offset_of(other, 1)}) {
    entry->place = wrong;
    const auto one = endpoints.set(1, 4);
    EXPECT_THROW(one->open(), Error) << wrong;
  }
  entry->place = right;
  const auto one = endpoints.set(1, 4);
  EXPECT_TRUE(one->open());
}

TEST(LaneSet, SmallCallsFitTheirCells) {
  for (std::uint32_t ranks = 1; ranks <= 64; ++ranks) {
    const std::int64_t most = LaneSet::small_bytes_for(ranks);
    ASSERT_GE(most, 4) << ranks;
    const std::uint64_t lane = static_cast<std::uint64_t>(most) * std::max(ranks / 2, 1U);
    EXPECT_LE(lane, LaneSet::small_cell_bytes(LaneSet::cell_bytes_for(ranks)) / 4) << ranks;
    EXPECT_EQ(LaneSet::small_sets(ranks), kSmallSets);
  }
  EXPECT_EQ(LaneSet::small_bytes_for(65), -1);
  EXPECT_EQ(LaneSet::small_sets(65), 0U);
}

TEST(LaneSet, LanesShrinkWithTheNumberOfRanks) {
  EXPECT_EQ(LaneSet::cell_bytes_for(2), 1024U * 1024);
  std::uint32_t before = LaneSet::cell_bytes_for(1);
  for (std::uint32_t ranks = 2; ranks <= 1024; ranks *= 2) {
    const std::uint32_t bytes = LaneSet::cell_bytes_for(ranks);
    EXPECT_LE(bytes, before);
    EXPECT_GE(bytes, 8U * 1024);
    EXPECT_EQ(bytes & (bytes - 1), 0U);
    before = bytes;
  }
}

}  // namespace
}  // namespace unisono::shm
