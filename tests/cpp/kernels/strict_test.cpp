// Strict mode: how far a collective goes on at whom gives, while nobody takes, for every root and many lengths and k.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <unisono/smi.hpp>
#include <vector>

#include "../driver/ranks.hpp"

namespace unisono::test {
namespace {

class Strict {
 public:
  Strict() { unisono_smi_set_strict(1); }
  ~Strict() { unisono_smi_set_strict(0); }
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;
};

enum class Kind : std::uint8_t { kBcast, kReduce, kScatter, kGather };
constexpr Kind kKinds[] = {Kind::kBcast, Kind::kReduce, Kind::kScatter, Kind::kGather};

struct Case {
  Kind kind = Kind::kBcast;
  int ranks = 2;
  int root = 0;
  int count = 1;
  int degree = -1;  ///< k; -1: none was asked for, which is 0 here

  bool root_gives() const { return kind == Kind::kBcast || kind == Kind::kScatter; }
  bool blocks() const { return kind == Kind::kScatter || kind == Kind::kGather; }
  /// Calls of a rank.
  int calls(int rank) const { return blocks() && rank == root ? count * ranks : count; }
  /// Calls that end at a rank that gives, while those who take have not begun.
  int goes_on(int rank) const {
    const int room = std::max(degree, 0);
    if (kind != Kind::kScatter) return std::min(count, room);
    // The root goes through the ranks in turn, itself among them, until one has no room for its block.
    if (rank != root) return 0;
    int done = 0;
    for (int to = 0; to < ranks; ++to) {
      if (to == root) {
        done += count;
        continue;
      }
      done += std::min(count, room);
      if (room < count) break;
    }
    return done;
  }
  std::string text() const {
    return std::string(std::array{"bcast", "reduce", "scatter", "gather"}[static_cast<std::size_t>(kind)]) + " of " +
           std::to_string(count) + " on " + std::to_string(ranks) + " ranks, root " + std::to_string(root) + ", k " +
           std::to_string(degree);
  }
};

std::int32_t value(int rank, int element) { return rank * 10007 + element * 13 - 400; }

/// Runs a collective; `done` counts the calls of this rank.
void run(const Case& test, const smi::Group& group, std::atomic<int>& done) {
  const int me = group.rank();
  const smi::Open options{.count = test.count, .peer = test.root, .port = 3, .degree = test.degree};
  const auto each = [&](auto&& call) {
    for (int i = 0; i < test.calls(me); ++i) {
      call(i);
      ++done;
    }
  };
  switch (test.kind) {
    case Kind::kBcast: {
      smi::BcastChannel<std::int32_t> channel(group, options);
      each([&](int i) {
        std::int32_t element = me == test.root ? value(me, i) : 0;
        channel.bcast(element);
        ASSERT_EQ(element, value(test.root, i));
      });
      return;
    }
    case Kind::kReduce: {
      smi::ReduceChannel<std::int32_t> channel(group, SMI_ADD, options);
      each([&](int i) {
        std::int32_t sum = 0;
        channel.reduce(value(me, i), sum);
        std::int32_t expected = 0;
        for (int rank = 0; rank < test.ranks; ++rank) expected += value(rank, i);
        if (me == test.root) {
          ASSERT_EQ(sum, expected);
        }
      });
      return;
    }
    case Kind::kScatter: {
      smi::ScatterChannel<std::int32_t> channel(group, options);
      each([&](int i) {
        std::int32_t element = 0;
        channel.next(value(test.root, i), element);
        if (me != test.root) {
          ASSERT_EQ(element, value(test.root, me * test.count + i));
        }
      });
      return;
    }
    case Kind::kGather: {
      smi::GatherChannel<std::int32_t> channel(group, options);
      each([&](int i) {
        std::int32_t element = 0;
        channel.next(value(me, i % test.count), element);
        if (me == test.root) {
          ASSERT_EQ(element, value(i / test.count, i % test.count));
        }
      });
      return;
    }
  }
}

/// Waits until who gives has come as far as it should, and looks whether it goes further.
void examine(const Case& test) {
  SCOPED_TRACE(test.text());
  std::atomic<bool> go{false};
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(test.ranks));
  std::thread watcher([&] {
    const auto as_far = [&](bool exactly) {
      bool all = true;
      for (int rank = 0; rank < test.ranks; ++rank) {
        if ((rank == test.root) != test.root_gives()) continue;
        const int now = done[static_cast<std::size_t>(rank)].load();
        all = all && now >= test.goes_on(rank);
        if (exactly) {
          EXPECT_EQ(now, test.goes_on(rank)) << test.text() << ", rank " << rank;
        }
      }
      return all;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!as_far(false) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    as_far(true);
    go = true;
  });
  on_ranks(static_cast<std::uint32_t>(test.ranks), [&](const Communicator& world) {
    const smi::Group group(world);
    const bool gives = (group.rank() == test.root) == test.root_gives();
    while (!gives && !go) std::this_thread::yield();
    kernel::launch(group, "member", [&] { run(test, group, done[static_cast<std::size_t>(group.rank())]); });
    kernel::wait_all(group);
    EXPECT_EQ(done[static_cast<std::size_t>(group.rank())].load(), test.calls(group.rank()));
    group.finish();
    world.barrier();
  });
  watcher.join();
}

TEST(SmiStrict, CollectivesStallExactlyAtElementKPlus1) {
  const Strict strict;
  std::mt19937 random(17);
  for (const Kind kind : kKinds) {
    for (const int ranks : {2, 3, 5}) {
      for (int root = 0; root < ranks; ++root) {
        for (const int degree : {-1, 0, 1, 7, 64, 2048}) {
          const int counts[] = {1, std::max(degree, 0), std::max(degree, 0) + 1, 200,
                                1 + static_cast<int>(random() % 300)};
          // A draw of each, so that all roots meet all degrees and, over the roots, all lengths.
          const int count = std::max(1, counts[random() % std::size(counts)]);
          examine({kind, ranks, root, count, degree});
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::test
