// Communicators: duplicates, subsets, groups made by their members alone, hundreds of them, settings of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "network/shm/lanes.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;
using Error = api::Error;

int code_of(ErrorCode code) { return static_cast<int>(code); }

/// The world ranks of a communicator's members, in order; different data on every rank.
std::vector<std::int64_t> members_of(const Communicator& communicator, std::uint32_t own) {
  std::vector<std::int64_t> mine{own}, all(communicator.size());
  communicator.allgather(mine, all);
  return all;
}

std::string error_of(const std::function<void()>& body, ErrorCode code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code_of(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Dup, HasTheSameRanksAndCallsOfItsOwn) {
  on_ranks(3, [](Communicator world) {
    const std::uint32_t r = world.rank();
    world.set_timeout(7);
    const Communicator twin = world.dup();
    EXPECT_EQ(twin.rank(), r);
    EXPECT_EQ(members_of(twin, r), (std::vector<std::int64_t>{0, 1, 2}));
    // The same two collectives in the other order on one rank: they belong to different communicators.
    std::vector<std::int64_t> a{r + 1}, b{std::int64_t{10} * (r + 1)}, sum_a(1), sum_b(1);
    Request first = (r == 1 ? twin : world).allreduce_async(r == 1 ? b : a, r == 1 ? sum_b : sum_a, Op::kSum);
    Request second = (r == 1 ? world : twin).allreduce_async(r == 1 ? a : b, r == 1 ? sum_a : sum_b, Op::kSum);
    first.wait();
    second.wait();
    EXPECT_EQ(sum_a[0], 6);
    EXPECT_EQ(sum_b[0], 60);
    // Messages too: the same peer and tag.
    if (r == 0) {
      world.send(a, 1, 5);
      twin.send(b, 1, 5);
    } else if (r == 1) {
      twin.recv(sum_b, 0, 5);
      world.recv(sum_a, 0, 5);
      EXPECT_EQ(sum_a[0], 1);
      EXPECT_EQ(sum_b[0], 10);
    }
    world.barrier();
  });
}

TEST(Names, AreToldBesideTheNumber) {
  on_ranks(2, [](Communicator world) {
    EXPECT_EQ(world.name(), "");
    world.set_name("everybody");
    const Communicator twin = world.dup({.name = "the twin"});
    const std::string title = "communicator " + std::to_string(twin.state().number) + " \"the twin\"";
    EXPECT_EQ(twin.name(), "the twin");
    EXPECT_EQ(world.name(), "everybody");
    std::vector<std::int64_t> data(1);
    if (world.rank() == 0) {
      EXPECT_THAT(error_of([&] { twin.recv(data, 1, 0, {.timeout_seconds = 0.05}); }, ErrorCode::kTimeout),
                  HasSubstr("recv (" + title + ", rank 0"));
    }
    world.barrier();
    // What is told of it later, in other ways.
    EXPECT_THAT(error_of([&] { twin.recv(data, 1 - world.rank()); }, ErrorCode::kRevoked), HasSubstr(title));
    EXPECT_THROW(world.set_name(std::string(33, 'n')), Error);
    EXPECT_THROW(world.set_name("a\tb"), Error);
    EXPECT_THROW(static_cast<void>(world.dup({.name = "\"quoted\""})), Error);
    world.set_name("");
    EXPECT_EQ(world.name(), "");
    world.barrier();
  });
}

TEST(Subset, IsInTheOrderOfTheList) {
  on_ranks(4, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    const std::vector<std::uint32_t> list{3, 0, 2};
    const Communicator some = world.subset(list);
    EXPECT_EQ(static_cast<bool>(some), r != 1);
    if (some) {
      EXPECT_EQ(members_of(some, r), (std::vector<std::int64_t>{3, 0, 2}));
      EXPECT_EQ(list[some.rank()], r);
    }
    world.barrier();
  });
}

TEST(Subset, RefusesListsThatAreNoneOrDiffer) {
  on_ranks(2, [](const Communicator& world) {
    const std::vector<std::uint32_t> twice{0, 0}, beyond{0, 2};
    EXPECT_THAT(error_of([&] { world.subset({}); }, ErrorCode::kInvalidArgument), HasSubstr("is empty"));
    EXPECT_THAT(error_of([&] { world.subset(twice); }, ErrorCode::kInvalidArgument), HasSubstr("entry 1"));
    EXPECT_THAT(error_of([&] { world.subset(beyond); }, ErrorCode::kInvalidArgument), HasSubstr("allowed are 0 to 1"));
    const std::vector<std::uint32_t> mine =
        world.rank() == 0 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{1, 0};
    EXPECT_THAT(error_of([&] { world.subset(mine); }, ErrorCode::kMismatchedCall), HasSubstr("another list"));
    EXPECT_EQ(members_of(world, world.rank()), (std::vector<std::int64_t>{0, 1})) << "the parent is as good as before";
  });
}

TEST(CreateGroup, ConcernsItsMembersOnly) {
  on_ranks(5, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    // Rank 2 never calls: it waits for a message that is sent when the others are done.
    if (r == 2) {
      std::int64_t word = 0;
      world.recv(std::span(&word, 1), 4);
      EXPECT_EQ(word, 44);
    } else {
      const std::vector<std::uint32_t> list{4, 0, 3, 1};
      const Communicator group = world.create_group(list);
      EXPECT_EQ(list[group.rank()], r);
      EXPECT_EQ(members_of(group, r), (std::vector<std::int64_t>{4, 0, 3, 1}));
      // Groups that overlap, one after the other; a group of one.
      if (r != 4) {
        const std::vector<std::uint32_t> three{1, 3, 0};
        EXPECT_EQ(members_of(world.create_group(three, 9), r), (std::vector<std::int64_t>{1, 3, 0}));
      }
      const std::vector<std::uint32_t> self{r};
      EXPECT_EQ(members_of(world.create_group(self), r), (std::vector<std::int64_t>{r}));
      group.barrier();
      const std::int64_t word = 44;
      if (r == 4) world.send(std::span(&word, 1), 2);
    }
    world.barrier();
  });
}

TEST(CreateGroup, DoesNotMeetMessagesOfTheUser) {
  on_ranks(2, [](const Communicator& world) {
    const std::uint32_t r = world.rank(), peer = 1 - r;
    std::vector<std::int64_t> mine{r + 5}, received(1);
    Request receiving = world.recv_async(received, peer, 0);
    const std::vector<std::uint32_t> list{0, 1};
    const Communicator group = world.create_group(list, 0);
    EXPECT_FALSE(receiving.test());
    world.barrier();
    world.send(mine, peer, 0);
    receiving.wait();
    EXPECT_EQ(received[0], peer + 5);
    EXPECT_EQ(members_of(group, r), (std::vector<std::int64_t>{0, 1}));
  });
}

TEST(CreateGroup, ThreadsTellTheirsApartByTag) {
  on_ranks(3, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t) {
      threads.emplace_back([&world, r, t] {
        for (int round = 0; round < 20; ++round) {
          // Thread t makes a group without rank t; numbers collide, and are claimed again.
          std::vector<std::uint32_t> list;
          for (std::uint32_t rank = 0; rank < 3; ++rank) {
            if (rank != t) list.push_back(rank);
          }
          if (r == t) return;
          try {
            const Communicator group = world.create_group(list, t);
            EXPECT_EQ(members_of(group, r), std::vector<std::int64_t>(list.begin(), list.end()));
          } catch (const Error& error) {
            ADD_FAILURE() << "rank " << r << ", thread " << t << ": " << error.what();
            return;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    world.barrier();
  });
}

/// What ranks that are threads have in common of the program's own: all_gather among the ranks of a list.
class Table {
 public:
  explicit Table(std::ptrdiff_t ranks) : ranks_(ranks), barrier_(ranks) {}
  /// As unisono_communicator_settings has it; `user` is a Seat.
  struct Seat {
    Table* table;
    std::size_t place;
    int calls = 0;
    int fails_at = -1;
  };
  static int all_gather(void* user, const void* own, std::size_t bytes, void* all, double seconds) {
    Seat& seat = *static_cast<Seat*>(user);
    Table& table = *seat.table;
    EXPECT_DOUBLE_EQ(seconds, 7);
    const std::size_t ranks = static_cast<std::size_t>(table.ranks_);
    if (seat.place == 0) table.words_.resize(ranks * bytes);
    table.barrier_.arrive_and_wait();
    std::memcpy(table.words_.data() + seat.place * bytes, own, bytes);
    table.barrier_.arrive_and_wait();
    std::memcpy(all, table.words_.data(), ranks * bytes);
    table.barrier_.arrive_and_wait();
    return seat.calls++ == seat.fails_at ? 3 : 0;
  }

 private:
  std::ptrdiff_t ranks_;
  std::barrier<> barrier_;
  std::vector<std::byte> words_;
};

TEST(CreateGroup, ByAFunctionOfTheProgram) {
  const std::vector<std::uint32_t> list{3, 0, 2};
  Table table(static_cast<std::ptrdiff_t>(list.size()));
  on_ranks(4, [&](Communicator world) {
    const std::uint32_t r = world.rank();
    world.set_timeout(7);
    Table::Seat seat{&table, static_cast<std::size_t>(std::find(list.begin(), list.end(), r) - list.begin())};
    unisono_communicator_settings settings{};
    settings.struct_size = sizeof settings;
    settings.all_gather = Table::all_gather;
    settings.user = &seat;
    unisono_communicator* made = nullptr;
    // Rank 1 is in no call of Unisono meanwhile; a tag is of no account.
    for (int round = 0; r != 1 && round < 20; ++round) {
      ASSERT_EQ(unisono_create_group(world.handle(), list.data(), list.size(), -5, &settings, &made), 0)
          << unisono_last_error();
      std::uint32_t own = 99;
      EXPECT_EQ(unisono_communicator_rank(made, &own), 0);
      EXPECT_EQ(list[own], r);
      const std::int64_t mine = 10 * (r + 1) + round;
      std::vector<std::int64_t> all(3);
      unisono_call call{};
      call.struct_size = sizeof call;
      call.collective = UNISONO_ALLGATHER;
      call.datatype = UNISONO_INT64;
      call.count = 1;
      call.src = &mine;
      call.src_bytes = sizeof mine;
      call.dst = all.data();
      call.dst_bytes = all.size() * sizeof mine;
      EXPECT_EQ(unisono_run(made, &call), 0) << unisono_last_error();
      EXPECT_EQ(all, (std::vector<std::int64_t>{40 + round, 10 + round, 30 + round}));
      EXPECT_EQ(unisono_communicator_free(made), 0);
    }
    // It fails when the others have heard of this rank's communicator.
    if (r != 1) {
      seat.calls = 0;
      seat.fails_at = 1;
      const int result = unisono_create_group(world.handle(), list.data(), list.size(), 0, &settings, &made);
      EXPECT_EQ(result, code_of(ErrorCode::kBootstrap));
      EXPECT_THAT(unisono_last_error(), HasSubstr("create_group: the program's all_gather failed on rank " +
                                                  std::to_string(r) + " of the parent"));
      EXPECT_EQ(made, nullptr);
    }
    EXPECT_EQ(unisono_dup(world.handle(), &settings, &made), code_of(ErrorCode::kInvalidArgument));
    EXPECT_THAT(unisono_last_error(), HasSubstr("unisono_dup: all_gather was given; only unisono_create_group"));
    EXPECT_EQ(members_of(world, r), (std::vector<std::int64_t>{0, 1, 2, 3}));
  });
}

TEST(CreateGroup, RefusesWrongLists) {
  on_ranks(2, [](const Communicator& world) {
    const std::vector<std::uint32_t> other{1 - world.rank()}, both{0, 1};
    EXPECT_THAT(error_of([&] { world.create_group(other); }, ErrorCode::kInvalidArgument),
                HasSubstr("not in the list"));
    EXPECT_THAT(error_of([&] { world.create_group(both, -1); }, ErrorCode::kInvalidArgument), HasSubstr("tag -1"));
    EXPECT_EQ(members_of(world.create_group(both), world.rank()), (std::vector<std::int64_t>{0, 1}));
  });
}

/// Bytes of memory that this process uses, shared memory included.
std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long total = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%lu %lu", &total, &resident) != 2) ADD_FAILURE() << "no /proc/self/statm";
  if (file != nullptr) std::fclose(file);
  return std::uint64_t{resident} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(Communicators, HundredsLiveAtOnceInBoundedMemory) {
  constexpr std::uint32_t kCommunicators = 300;
  constexpr std::uint64_t kMostEach = 1 << 20U;  // of all four ranks together
  std::atomic<std::uint64_t> before = 0, after = 0;
  on_ranks(4, [&](const Communicator& world) {
    const std::uint32_t r = world.rank();
    world.barrier();
    if (r == 0) before = resident_bytes();
    world.barrier();
    std::vector<Communicator> all;
    for (std::uint32_t i = 0; i < kCommunicators; ++i) {
      all.push_back(i % 3 == 0 ? world.dup() : world.split(static_cast<std::int64_t>(r % 2), -static_cast<int>(r)));
      std::vector<std::int64_t> mine(300, r + i), sum(300);
      all.back().allreduce(mine, sum, Op::kSum);
      const std::int64_t expected = i % 3 == 0 ? 6 + 4 * i : (r % 2 == 0 ? 2 : 4) + 2 * i;
      EXPECT_EQ(sum, std::vector<std::int64_t>(300, expected));
    }
    // All of them are of use still, with messages and with what does not fit a line.
    for (std::uint32_t i = 0; i < kCommunicators; ++i) {
      const Communicator& each = all[i];
      std::vector<std::int64_t> mine(2000, r + i), left(2000);
      const std::uint32_t size = each.size(), own = each.rank();
      Request sending = each.send_async(mine, (own + 1) % size);
      each.recv(left, (own + size - 1) % size);
      sending.wait();
      const std::uint32_t from = i % 3 == 0 ? (r + 3) % 4 : (r + 2) % 4;
      EXPECT_EQ(left, std::vector<std::int64_t>(2000, from + i));
    }
    world.barrier();
    if (r == 0) after = resident_bytes();
    world.barrier();
    // Freed numbers make room: again as many, one after the other.
    all.clear();
    for (std::uint32_t i = 0; i < kCommunicators; ++i) world.dup().barrier();
  });
  const std::uint64_t each = (after - before) / kCommunicators;
  RecordProperty("bytes_each", std::to_string(each));
  std::printf("  %llu KiB for each of %u communicators\n", static_cast<unsigned long long>(each >> 10U),
              kCommunicators);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(each, kMostEach);
#endif
}

TEST(Communicators, LeaveNothingBehind) {
  const auto allocated_bytes = [] { return std::uint64_t{mallinfo2().uordblks}; };  // 0 under sanitizers
  constexpr std::uint32_t kEach = 1500;
  std::atomic<std::uint64_t> before = 0, after = 0;
  on_ranks(2, [&](const Communicator& world) {
    const auto make_and_free = [&] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        if (i % 2 == 0) {
          (void)world.dup();
        } else {
          (void)world.split(world.rank(), 0);
        }
      }
      world.barrier();
    };
    make_and_free();
    if (world.rank() == 0) before = allocated_bytes();
    world.barrier();
    make_and_free();
    if (world.rank() == 0) after = allocated_bytes();
    world.barrier();
  });
  // It was 90 bytes on each rank for each that had ever been.
  EXPECT_LT(after, before + 2 * kEach * 20);
}

TEST(Communicators, LanesOfLaterOnesAreSmaller) {
  EXPECT_EQ(shm::LaneSet::cell_bytes_for(4), 1U << 20U);
  EXPECT_EQ(shm::LaneSet::cell_bytes_for(4, 7), 1U << 20U);
  EXPECT_LT(shm::LaneSet::cell_bytes_for(4, 8), 1U << 20U);
  EXPECT_EQ(shm::LaneSet::cell_bytes_for(4, 300), 32U << 10U);
  EXPECT_LE(shm::LaneSet::cell_bytes_for(300, 300), shm::LaneSet::cell_bytes_for(300));
}

TEST(CommunicatorSettings, AreTheLeastOfAllMembers) {
  on_ranks(2, [](const Communicator& world) {
    const std::uint32_t r = world.rank(), peer = 1 - r;
    // A deadline that only rank 1 gives holds on both.
    Communicator quick = world.dup(r == 1 ? CommunicatorSettings{.timeout_seconds = 0.2} : CommunicatorSettings{});
    std::vector<std::int64_t> data(4);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(quick.recv(data, peer), Error);  // of its own deadline, or of the other rank's
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    world.barrier();
    // Without lanes on one rank: through messages on both, with the same result.
    const Communicator slow = world.split(0, 0, {.eager_limit = r == 0 ? 64U : 0U, .lanes = r == 1});
    std::vector<std::int64_t> mine(5000, r + 1), sum(5000);
    slow.allreduce(mine, sum, Op::kSum);
    EXPECT_EQ(sum, std::vector<std::int64_t>(5000, 3));
    Request sending = slow.send_async(mine, peer);
    slow.recv(sum, peer);
    sending.wait();
    EXPECT_EQ(sum, std::vector<std::int64_t>(5000, peer + 1));
    // Groups must be of one size.
    EXPECT_THAT(error_of([&] { world.dup({.group_size = r + 1}); }, ErrorCode::kMismatchedCall),
                HasSubstr("group_size is"));
    const std::vector<std::uint32_t> both{1, 0};
    const Communicator two_level = world.subset(both, {.group_size = 2});
    two_level.allreduce(mine, sum, Op::kSum, {.algorithm = "two_level"});
    EXPECT_EQ(sum, std::vector<std::int64_t>(5000, 3));
    unisono_communicator* made = nullptr;
    unisono_communicator_settings wrong{};
    EXPECT_EQ(unisono_dup(world.handle(), &wrong, &made), code_of(ErrorCode::kInvalidArgument));
    EXPECT_THAT(unisono_last_error(), HasSubstr("struct_size is 0"));
    wrong.struct_size = sizeof wrong;
    wrong.timeout_seconds = -1;
    EXPECT_EQ(unisono_dup(world.handle(), &wrong, &made), code_of(ErrorCode::kInvalidArgument));
    world.barrier();
  });
}

}  // namespace
}  // namespace unisono::test
