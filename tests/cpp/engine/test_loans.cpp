// Long messages of v-collectives that stay where they are until both ends have copied them.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/cpp/engine/process_jobs.hpp"
#include "tests/cpp/network/seccomp.hpp"

namespace unisono::test {
namespace {

constexpr std::uint64_t kAlways = 1;
constexpr std::int32_t kUntouched = -77;

std::uint64_t direct_bytes(const Rank& self) {
  return self.poe.shared_memory()
      ->segment()
      ->counters(self.rank)
      .words[static_cast<std::size_t>(NativeCounter::kDirectBytes)]
      .load();
}

std::int32_t element(std::uint32_t from, std::uint32_t to, std::uint64_t i) {
  return static_cast<std::int32_t>(from * 1'000'003 + to * 10'007 + i * 7);
}

/// Elements from one rank to another: of all magnitudes, nothing now and then, and different in each round.
std::uint64_t count_of(std::uint32_t round, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t hash = (round * 31 + from * 7 + to) * 2'654'435'761U >> 8U;
  constexpr std::array<std::uint64_t, 6> kMost{0, 10, 3'000, 20'000, 90'000, 400'000};
  const std::uint64_t most = kMost[hash % kMost.size()];
  return most == 0 ? 0 : most / 2 + hash % most / 2;
}

/// An alltoallv of one rank: blocks in order, without gaps.
struct Exchange {
  Exchange(const Rank& self, std::uint32_t round, bool allocated) {
    for (std::uint32_t peer = 0; peer < self.size; ++peer) {
      send.push_back(count_of(round, self.rank, peer));
      receive.push_back(count_of(round, peer, self.rank));
    }
    const std::uint64_t sends = std::accumulate(send.begin(), send.end(), std::uint64_t{0});
    const std::uint64_t receives = std::accumulate(receive.begin(), receive.end(), std::uint64_t{0});
    memory = std::make_unique<Memory>(self, allocated, std::max<std::uint64_t>(1, std::max(sends, receives)));
    std::uint64_t at = 0;
    for (std::uint32_t peer = 0; peer < self.size; ++peer) {
      for (std::uint64_t i = 0; i < send[peer]; ++i) memory->src[at++] = element(self.rank, peer, i);
    }
    std::fill_n(memory->dst, receives, kUntouched);
    vectors.send_counts = send.data();
    vectors.recv_counts = receive.data();
    call = request<std::int32_t>(Collective::kAlltoallv, 0);
    call.src = {reinterpret_cast<std::byte*>(memory->src), 4 * sends};
    call.dst = {reinterpret_cast<std::byte*>(memory->dst), 4 * receives};
    call.vectors = &vectors;
  }
  void check(const Rank& self) const {
    std::uint64_t at = 0;
    for (std::uint32_t peer = 0; peer < self.size; ++peer) {
      for (std::uint64_t i = 0; i < receive[peer]; ++i, ++at) {
        if (memory->dst[at] != element(peer, self.rank, i))
          require(false, "element " + std::to_string(i) + " of rank " + std::to_string(peer) + " is wrong");
      }
    }
  }

  std::vector<std::uint64_t> send, receive;
  VectorArguments vectors;
  std::unique_ptr<Memory> memory;
  CallRequest call;
};

void expect_success(std::vector<Child>& children) {
  for (Child& child : children) EXPECT_EQ(child.wait(seconds(60)), 0);
}

void meet(Rank& self) { self.engine.run(request<std::int32_t>(Collective::kBarrier, 0)); }

TEST(Loans, CarryWhatIsLongBetweenMemoryOfBothKinds) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    auto children = start(size, kAlways, [](Rank& self) {
      const std::uint64_t before = direct_bytes(self);
      for (std::uint32_t round = 0; round < 24; ++round) {
        Exchange exchange(self, round, (round >> self.rank % 2 & 1U) != 0);
        if (round % 3 == 0) {
          self.run(exchange.call);
        } else {
          self.engine.run(exchange.call);
        }
        exchange.check(self);
      }
      require(direct_bytes(self) != before, "some were lent");
    });
    expect_success(children);
  }
}

TEST(Loans, AreMadeOfAllocatedMemoryWhereTheKernelCopiesNothing) {
  auto children = start(2, kNoKernelCopy, [](Rank& self) {
    for (std::uint32_t who = 0; who < 4; ++who) {
      for (std::uint32_t round = 0; round < 8; ++round) {
        Exchange exchange(self, round, (who >> self.rank & 1U) != 0);
        const std::uint64_t before = direct_bytes(self);
        self.engine.run(exchange.call);
        exchange.check(self);
        if (who == 0) require(direct_bytes(self) == before, "nothing can be reached");
      }
    }
  });
  expect_success(children);
}

// Where cells are faster at all lengths, ordinary memory has them.
TEST(Loans, FollowWhatIsFasterHere) {
  auto children = start(2, kCellsWin, [](Rank& self) {
    const std::uint64_t before = direct_bytes(self);
    for (std::uint32_t round = 0; round < 8; ++round) {
      Exchange exchange(self, round, false);
      self.engine.run(exchange.call);
      exchange.check(self);
    }
    require(direct_bytes(self) == before, "cells are faster");
  });
  expect_success(children);
}

/// Who may not do what, from the start.
TEST(Loans, AreNotMadeOfWhatTheKernelDoesNotCopy) {
  for (const long denied : {SYS_process_vm_readv, SYS_process_vm_writev}) {
    for (std::uint32_t who = 0; who < 2; ++who) {
      auto children = start(2, kAlways, [who, denied](Rank& self) {
        if (self.rank == who) deny({denied, denied}, EPERM);
        meet(self);
        for (std::uint32_t round = 0; round < 16; ++round) {
          Exchange exchange(self, round, (round >> self.rank & 1U) != 0);
          self.engine.run(exchange.call);
          exchange.check(self);
        }
      });
      expect_success(children);
    }
  }
}

TEST(Loans, ThatTheKernelRefusesLaterEndTheCallWithRankAndAddress) {
  auto children = start(2, kAlways, [](Rank& self) {
    constexpr std::uint32_t kRound = 3;
    Exchange exchange(self, kRound, false);
    require(exchange.send[1 - self.rank] + exchange.receive[1 - self.rank] > 50'000, "there is something to lend");
    self.engine.run(exchange.call);
    exchange.check(self);
    meet(self);
    deny({SYS_process_vm_readv, SYS_process_vm_writev}, EPERM);
    meet(self);
    try {
      self.engine.run(exchange.call);
    } catch (const Error& error) {
      const std::string text = error.what();
      require(error.code() == ErrorCode::kUnsupported || error.code() == ErrorCode::kRevoked, text);
      require(text.find("alltoallv") != std::string::npos, text);
      require(text.find("'s buffer at 0x") != std::string::npos, text);
      return;
    }
    throw std::runtime_error("the call must fail");
  });
  expect_success(children);
}

TEST(Loans, OfARankThatNeverComesEndAtTheDeadline) {
  auto children = start(2, kAlways, [](Rank& self) {
    constexpr std::uint32_t kRound = 3;
    Exchange exchange(self, kRound, false);
    self.engine.run(exchange.call);
    if (self.rank == 1) {
      std::this_thread::sleep_for(seconds(3));
      return;
    }
    self.engine.set_timeout(0, milliseconds(300));
    try {
      self.engine.run(exchange.call);
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kTimeout, error.what());
      require(std::string(error.what()).find("rank 1") != std::string::npos, error.what());
      return;
    }
    throw std::runtime_error("the call must fail");
  });
  expect_success(children);
}

// A rank that counts less than comes to it says so, with both lengths, whichever way the message takes.
TEST(Loans, OfAnotherLengthThanIsAwaitedAreNoWrongData) {
  for (const bool allocated : {false, true}) {
    auto children = start(2, kAlways, [allocated](Rank& self) {
      constexpr std::uint64_t kCount = 100'000;
      const Memory memory(self, allocated, 2 * kCount);
      std::vector<std::uint64_t> counts{0, kCount + (self.rank == 0 ? 5U : 0U)};
      if (self.rank == 1) counts[0] = 0;
      CallRequest call = request<std::int32_t>(Collective::kGatherv, 0, 0);
      VectorArguments vectors;
      vectors.recv_counts = counts.data();
      call.vectors = &vectors;
      call.src = {reinterpret_cast<std::byte*>(memory.src), 4 * counts[self.rank]};
      call.dst = {reinterpret_cast<std::byte*>(memory.dst), 4 * (counts[0] + counts[1])};
      try {
        self.engine.run(call);
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kMismatchedCall || error.code() == ErrorCode::kRevoked, error.what());
        return;
      }
      require(self.rank == 1, "the root finds out");
    });
    expect_success(children);
  }
}

}  // namespace
}  // namespace unisono::test
