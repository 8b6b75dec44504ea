// Puts and gets that go straight to the peer's window: what arrives, who takes part, and what becomes of them when the
// window changes, the kernel refuses, or a rank ends or stops meanwhile.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "network/counters.hpp"
#include "tests/cpp/engine/process_jobs.hpp"
#include "tests/cpp/network/seccomp.hpp"

namespace unisono::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kAlways = 1;
constexpr std::uint64_t kWindow = 100'000;  // elements

std::uint64_t direct_bytes(const Rank& self) {
  return self.engine.counter(static_cast<std::size_t>(NativeCounter::kDirectBytes));
}

void meet(const Rank& self) { self.engine.run(request<std::int32_t>(Collective::kBarrier, 0)); }

/// A part of memory, as what a request binds.
Binding part(std::int32_t* first, std::uint64_t count) { return {reinterpret_cast<std::byte*>(first), 4 * count}; }

CallRequest reach(bool puts, std::uint32_t peer, std::uint64_t at, std::int32_t* own, std::uint64_t count) {
  CallRequest made = request<std::int32_t>(puts ? Collective::kPut : Collective::kGet, count, peer);
  (puts ? made.src : made.dst) = part(own, count);
  made.window_offset = 4 * at;
  return made;
}

std::int32_t value(std::uint32_t rank, std::uint64_t at) {
  return static_cast<std::int32_t>(rank * 1'000'000 + at * 7);
}

/// Memory whose first half is a window, the second what is put from and got to.
struct Pair : Memory {
  Pair(const Rank& self, bool allocated) : Memory(self, allocated, kWindow) {}
  std::int32_t* window() const { return src; }
  std::int32_t* own() const { return dst; }
};

/// Every rank writes into its right neighbour's window, and reads its left one's, lengths and places of all kinds.
void exchange(Rank& self, bool allocated, std::optional<bool> direct) {
  const Pair memory(self, allocated);
  std::int32_t* const window = memory.window();
  std::int32_t* const own = memory.own();
  const std::uint32_t right = (self.rank + 1) % self.size, left = (self.rank + self.size - 1) % self.size;
  self.engine.bind_window(0, part(window, kWindow));
  meet(self);
  const std::uint64_t before = direct_bytes(self);
  std::uint64_t moved = 0;
  for (const std::uint64_t count : {1U, 2U, 3U, 11U, 12U, 13U, 700U, 5'000U, 90'001U}) {
    for (const bool blocking : {true, false}) {
      const auto go = [&](const CallRequest& r) {
        moved += 4 * count;
        blocking ? static_cast<void>(self.engine.run(r)) : static_cast<void>(self.run(r));
      };
      const std::uint64_t at = kWindow - count - 5;
      for (std::uint64_t i = 0; i < kWindow; ++i) window[i] = value(self.rank, i);
      for (std::uint64_t i = 0; i < count; ++i) own[i] = value(self.rank + 100, i);
      meet(self);
      go(reach(true, right, at, own, count));
      meet(self);
      for (std::uint64_t i = 0; i < kWindow; ++i) {
        const bool written = i >= at && i < at + count;
        require(window[i] == (written ? value(left + 100, i - at) : value(self.rank, i)),
                std::to_string(count) + " put, element " + std::to_string(i));
      }
      std::fill_n(own, kWindow, -1);
      go(reach(false, left, at - 20, own, count));
      for (std::uint64_t i = 0; i < kWindow; ++i) {
        const std::uint64_t there = at - 20 + i;
        const bool written = there >= at;  // by this rank's left neighbour's left neighbour
        const std::uint32_t writer = (left + self.size - 1) % self.size + 100;
        const std::int32_t want = i >= count ? -1 : written ? value(writer, there - at) : value(left, there);
        require(own[i] == want, std::to_string(count) + " got, element " + std::to_string(i));
      }
      meet(self);
    }
  }
  if (direct) require((direct_bytes(self) - before == moved) == *direct, "they went directly, if they could");
  meet(self);
  self.engine.bind_window(0, {});
}

TEST(Windows, OfThreadsAreReached) {
  for (const std::uint32_t size : {1U, 3U}) {
    run_ranks(size, quick_settings(), [](Rank& self) { exchange(self, false, true); });
  }
}

struct Way {
  const char* name;
  std::uint64_t copy_from;
  bool allocated;
  bool direct;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class WindowWays : public testing::TestWithParam<Way> {
 protected:
  static bool allocated() { return GetParam().allocated; }
  static std::vector<Child> begin(std::uint32_t size, const std::function<void(Rank&)>& body) {
    return start(size, GetParam().copy_from, body);
  }
};

void expect_success(std::vector<Child>& children) {
  for (Child& child : children) EXPECT_EQ(child.wait(seconds(60)), 0);
}

TEST_P(WindowWays, BytesArrive) {
  auto children = begin(3, [](Rank& self) { exchange(self, allocated(), GetParam().direct); });
  expect_success(children);
}

TEST_P(WindowWays, NothingIsWrittenOutsideAWindow) {
  auto children = begin(2, [](Rank& self) {
    const Pair memory(self, allocated());
    self.engine.bind_window(0, self.rank == 0 ? Binding{} : part(memory.window(), 100));
    for (int round = 0; round < 20; ++round) {
      meet(self);
      const auto refused = [&](const CallRequest& r, const char* why) {
        try {
          self.engine.run(r);
          require(false, "it is refused");
        } catch (const Error& error) {
          require(error.code() == ErrorCode::kBufferTooSmall, error.what());
          require(std::string(error.what()).find(why) != std::string::npos, error.what());
        }
      };
      if (self.rank == 0) {
        for (const bool puts : {true, false}) {
          self.engine.run(reach(puts, 1, 80, memory.own(), 20));
          refused(reach(puts, 1, 81, memory.own(), 20), "whose window has 400 bytes");
          refused(reach(puts, 1, 101, memory.own(), 1), "whose window has 400 bytes");
          refused(reach(puts, 1, std::uint64_t{1} << 44U, memory.own(), 1), "of the window of rank 1");
        }
      } else {
        for (const bool puts : {true, false}) refused(reach(puts, 0, 0, memory.own(), 1), "which has no window bound");
      }
      meet(self);
      if (self.rank == 1) require(memory.window()[100] == 1300, "what lies behind it is as it was");
    }
  });
  expect_success(children);
}

/// A window is taken away and another is shown while a peer puts all the time. What was a window is its owner's.
void rebind(Rank& self, bool allocated) {
  constexpr std::uint64_t kCount = 20'000;
  const Memory memory(self, allocated, 2 * kCount);
  std::int32_t* const windows[] = {memory.src, memory.src + kCount};
  std::int32_t* const stop = memory.dst;  // rank 1's; in a window of its own at the end
  std::fill_n(memory.src, 2 * kCount, 6);
  *stop = 0;
  if (self.rank == 0) std::fill_n(memory.dst, kCount, 77);
  meet(self);
  if (self.rank == 1) {
    const auto until = Clock::now() + milliseconds(400);
    std::uint32_t rounds = 0, written = 0;
    for (; Clock::now() < until || written < 3; ++rounds) {
      require(Clock::now() < until + seconds(20), "puts arrive");
      std::int32_t* const window = windows[rounds % 2];
      self.engine.bind_window(0, part(window, kCount));
      const auto seen = Clock::now() + microseconds(rounds % 7 * 100);
      while (Clock::now() < seen) self.engine.progress();
      self.engine.bind_window(0, rounds % 3 == 0 ? Binding{} : part(windows[1 - rounds % 2], kCount));
      // No copy is under way any more.
      const bool touched = std::any_of(window, window + kCount, [](std::int32_t v) { return v == 77; });
      written += touched ? 1 : 0;
      std::fill_n(window, kCount, 6);
      for (int look = 0; look < 20; ++look) {
        require(std::all_of(window, window + kCount, [](std::int32_t v) { return v == 6; }), "it is its owner's again");
      }
    }
    // It reads the word only while no peer may write it.
    while (*stop == 0) {
      self.engine.bind_window(0, part(stop, 1));
      const auto seen = Clock::now() + microseconds(500);
      while (Clock::now() < seen) self.engine.progress();
      self.engine.bind_window(0, {});
    }
    return meet(self);
  }
  for (std::uint64_t count = kCount;;) {
    try {
      self.engine.run(reach(true, 1, 0, memory.dst, count));
      if (count == 1) return meet(self);
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kBufferTooSmall, error.what());
      if (std::string(error.what()).find("whose window has 4 bytes") != std::string::npos) count = 1;
    }
  }
}

TEST(Windows, OfThreadsChangeUnderLoad) {
  run_ranks(2, quick_settings(), [](Rank& self) { rebind(self, false); });
}

TEST_P(WindowWays, ChangeUnderLoad) {
  auto children = begin(2, [](Rank& self) { rebind(self, allocated()); });
  expect_success(children);
}

/// Rank 1 does not call the library while rank 0 puts.
TEST(Windows, TheirOwnersTakeNoPart) {
  for (const bool copied : {false, true}) {
    auto children = start(2, copied ? kAlways : kNoKernelCopy, [&](Rank& self) {
      const Pair memory(self, !copied);
      self.engine.bind_window(0, part(memory.window(), kWindow));
      auto* const turn = reinterpret_cast<std::atomic<std::int32_t>*>(memory.window());
      turn->store(0);
      meet(self);
      constexpr std::int32_t kTurns = 300;
      for (std::int32_t i = 1; i <= kTurns; ++i) {
        if (self.rank == 0) {
          memory.own()[0] = i;
          memory.own()[1] = -i;
          self.engine.run(reach(true, 1, 100, memory.own() + 1, 1));
          self.engine.run(reach(true, 1, 0, memory.own(), 1));
          // The answer is in the own window.
        }
        const auto until = Clock::now() + seconds(20);
        while (self.rank == 1 && turn->load() != i) require(Clock::now() < until, "the put is seen");
        if (self.rank == 1) require(memory.window()[100] == -i, "what was put before is there, too");
        if (self.rank == 1) turn->store(-i);
        if (self.rank != 0) continue;
        for (std::int32_t seen = 0; seen != -i;) {
          self.engine.run(reach(false, 1, 0, &seen, 1));
          require(Clock::now() < until, "the get sees what its owner writes");
        }
      }
      meet(self);
    });
    expect_success(children);
  }
}

TEST_P(WindowWays, TheEndOfTheirOwnerIsNoticed) {
  auto children = begin(2, [](Rank& self) {
    const Pair memory(self, allocated());
    self.engine.bind_window(0, part(memory.window(), kWindow));
    meet(self);
    if (self.rank == 1) raise(SIGKILL);
    const auto until = Clock::now() + seconds(20);
    for (std::uint64_t puts = 0;; ++puts) {
      try {
        self.engine.run(reach(puts % 2 == 0, 1, 0, memory.own(), 10));
        require(Clock::now() < until, "it is noticed");
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kPeerDead, error.what());
        require(std::string(error.what()).find("rank 1") != std::string::npos, error.what());
        return;
      }
    }
  });
  EXPECT_EQ(children[0].wait(seconds(30)), 0);
}

TEST_P(WindowWays, ARevocationIsNoticed) {
  auto children = begin(2, [](Rank& self) {
    const Pair memory(self, allocated());
    self.engine.bind_window(0, part(memory.window(), kWindow));
    if (self.rank == 1) {
      meet(self);
      self.engine.revoke(0, "enough");
      for (int i = 0; i < 200; ++i) {
        self.engine.progress();
        std::this_thread::sleep_for(milliseconds(1));
      }
      return;
    }
    const auto until = Clock::now() + seconds(20);
    for (bool met = false;;) {
      try {
        if (!std::exchange(met, true)) meet(self);
        self.engine.run(reach(true, 1, 0, memory.own(), 10));
        require(Clock::now() < until, "it is noticed");
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kRevoked, error.what());
        require(std::string(error.what()).find("enough") != std::string::npos, error.what());
        return;
      }
    }
  });
  expect_success(children);
}

/// Who stops in the middle of a put is waited for until the deadline, and named.
TEST_P(WindowWays, AStoppedVisitorIsNotWaitedForForEver) {
  if (!GetParam().direct) return;
  std::array<int, 2> ready{}, stopped{};
  ASSERT_EQ(pipe(ready.data()), 0);
  ASSERT_EQ(pipe(stopped.data()), 0);
  auto children = begin(2, [&](Rank& self) {
    const Pair memory(self, allocated());
    self.engine.set_timeout(0, milliseconds(400));
    self.engine.bind_window(0, part(memory.window(), kWindow));
    meet(self);
    char byte = 0;
    if (self.rank == 0) {
      require(write(ready[1], &byte, 1) == 1, "the pipe is open");
      for (;;) self.engine.run(reach(true, 1, 0, memory.own(), kWindow));
    }
    require(read(stopped[0], &byte, 1) == 1, "the pipe is open");
    try {
      self.engine.bind_window(0, {});
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kTimeout, error.what());
      require(std::string(error.what()).find("rank 0 was stopped while at the window") != std::string::npos,
              error.what());
    }
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::this_thread::sleep_for(milliseconds(30));
  kill(children[0].pid(), SIGSTOP);
  ASSERT_EQ(write(stopped[1], &byte, 1), 1);
  EXPECT_EQ(children[1].wait(seconds(20)), 0);
  kill(children[0].pid(), SIGKILL);
  for (const int end : {ready[0], ready[1], stopped[0], stopped[1]}) close(end);
}

TEST(Windows, GoByMessagesWhereTheKernelRefuses) {
  for (const auto& [later, copy_from] :
       {std::pair(false, kAlways), std::pair(true, kAlways), std::pair(true, kCellsWin)}) {
    auto children = start(3, copy_from, [&, later = later](Rank& self) {
      if (later) exchange(self, false, true);
      meet(self);
      if (self.rank == 1) deny({SYS_process_vm_writev, SYS_process_vm_readv}, EPERM);
      meet(self);
      const std::uint64_t before = direct_bytes(self);
      // Rank 1 reaches nobody, and, for it cannot try its own memory, nobody reaches it.
      exchange(self, false, std::nullopt);
      require((direct_bytes(self) == before) == (self.rank == 1), "the others reach each other");
    });
    expect_success(children);
  }
}

/// UNISONO_KERNEL_COPY=off on one rank, the first or another one.
TEST(Windows, OfOneThatIsOffAreReachedByMessages) {
  for (const std::uint32_t off : {0U, 1U}) {
    for (const std::uint64_t others : {kAlways, kCellsWin}) {
      std::vector<std::uint64_t> copy_from(3, others);
      copy_from[off] = kNoKernelCopy;
      auto children = start(copy_from, [&](Rank& self) {
        const std::uint64_t before = direct_bytes(self);
        exchange(self, false, std::nullopt);
        require((direct_bytes(self) == before) == (self.rank == off), "the others reach each other");
      });
      expect_success(children);
    }
  }
}

/// Where calls never have the kernel copy, a rank shows peers nothing of its process before it has such a window; and
/// calls do not find out that it has.
TEST(Windows, AloneHaveTheKernelCopyWhereCellsWin) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kCellsWin, [](Rank& self) {
    const auto shown = [&](std::uint32_t rank) {
      return self.poe.shared_memory()->segment()->endpoint(rank).nonce_address.load() != 0;
    };
    const auto cells_win = [&] {
      const Memory memory(self, false, kCount);
      self.engine.run(memory.sum(kCount));
      require(!self.engine.fast_path(0)->last_algorithm()->direct, "cells are faster");
      memory.check(2, kCount);
    };
    const Pair allocated(self, true), ordinary(self, false);
    cells_win();
    require(!shown(self.rank), "nothing is shown");
    self.engine.bind_window(0, part(allocated.window(), kWindow));
    require(!shown(self.rank), "an allocated window is mapped");
    meet(self);
    if (self.rank == 1) self.engine.bind_window(0, part(ordinary.window(), kWindow));
    meet(self);
    require(shown(1) && !shown(0), "who has such a window is reached so");
    const std::uint64_t before = direct_bytes(self);
    self.engine.run(reach(true, 1 - self.rank, 0, ordinary.own(), kWindow));
    require(direct_bytes(self) - before == 4 * kWindow, "both are");
    meet(self);
    cells_win();
    // Who names a direct algorithm has it: all show what it takes then.
    const Memory memory(self, false, kCount);
    self.engine.run(memory.sum(kCount, "direct"));
    memory.check(2, kCount);
    meet(self);
    require(shown(0) && shown(1), "both are reached so");
  });
  expect_success(children);
}

TEST_P(WindowWays, ThreadsReachAtOnce) {
  auto children = begin(2, [](Rank& self) {
    const Pair memory(self, allocated());
    self.engine.bind_window(0, part(memory.window(), kWindow));
    meet(self);
    constexpr std::uint64_t kThreads = 3, kShare = kWindow / kThreads;
    for (std::uint64_t i = 0; i < kWindow; ++i) memory.own()[i] = value(self.rank, i);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t at = t * kShare; at < (t + 1) * kShare; at += 997) {
          const std::uint64_t count = std::min<std::uint64_t>(997, (t + 1) * kShare - at);
          self.engine.run(reach(true, 1 - self.rank, at, memory.own() + at, count));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    meet(self);
    for (std::uint64_t i = 0; i < kThreads * kShare; ++i) {
      require(memory.window()[i] == value(1 - self.rank, i), "element " + std::to_string(i));
    }
  });
  expect_success(children);
}

INSTANTIATE_TEST_SUITE_P(Ways, WindowWays,
                         testing::Values(Way{"Allocated", kNoKernelCopy, true, true},
                                         Way{"Copied", kAlways, false, true},
                                         Way{"CopiedWhereCellsWin", kCellsWin, false, true},
                                         Way{"Messages", kNoKernelCopy, false, false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace unisono::test
