// Calls whose long messages are written into the receiver's memory by libfabric: results, and what happens to memory
// when a call ends in the middle of it. Ranks are threads, over the provider that every machine has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "network/lasting_memory.hpp"
#include "tests/cpp/engine/ranks.hpp"
#include "tests/cpp/network/ofi_job.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTcp = "tcp;ofi_rxm";

class OfiCalls : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = missing_provider(kTcp);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

/// Notes what an engine has shown to peers, and what it has had written, and whether it has ended that.
class WatchedPoe final : public NetworkPoe {
 public:
  using NetworkPoe::NetworkPoe;
  std::optional<Reach> show(std::uint32_t peer, std::span<std::byte> memory) override {
    const auto reach = NetworkPoe::show(peer, memory);
    if (reach) ++shown;
    return reach;
  }
  void hide(std::uint32_t peer, const Reach& reach, bool written) override {
    --shown;
    if (!written) settled = false;
    NetworkPoe::hide(peer, reach, written);
  }
  bool write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
             std::span<const std::byte> payload, Ticket& ticket) override {
    const bool begun = NetworkPoe::write(peer, reach, offset, done, payload, ticket);
    if (begun) writes.insert(ticket);
    return begun;
  }
  bool done(std::uint32_t peer, Ticket ticket) const override {
    return !(holds && writes.count(ticket) != 0) && NetworkPoe::done(peer, ticket);
  }
  void withdraw(std::uint32_t peer, Ticket ticket) override {
    writes.erase(ticket);
    settled = false;
    NetworkPoe::withdraw(peer, ticket);
  }
  std::optional<std::uint32_t> settle() override {
    settled = true;
    return NetworkPoe::settle();
  }

  int shown = 0;              ///< pieces that are shown now
  bool settled = true;        ///< since the last time that something was taken back
  bool holds = false;         ///< writes are not done before they are withdrawn
  std::set<Ticket> writes{};  ///< that were begun, of the one peer, and not withdrawn
};

/// Ranks that reach each other by libfabric alone, and have proven themselves.
void run_by_ofi(OfiJob& job, const EngineSettings& settings, const std::function<void(Rank&)>& body) {
  const auto size = static_cast<std::uint32_t>(job.networks.size());
  drive(job, [&] {
    bool proven = true;
    for (std::uint32_t i = 0; i < size; ++i) {
      for (std::uint32_t j = 0; j < size; ++j) proven = proven && (i == j || job[i].trial(j) == Trial::kProven);
    }
    return proven;
  });
  std::atomic<std::uint32_t> running{size};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      WatchedPoe poe(job[rank], rank, size);
      NativeEngine engine(poe, settings);
      const Agreement own = engine.capabilities();
      std::vector<std::uint32_t> endpoints(size);
      std::iota(endpoints.begin(), endpoints.end(), 0U);
      const std::vector<Agreement> all(size, own);
      engine.create_communicator(0, 0, endpoints, agree(all));
      Rank self{rank, size, engine, poe, own};
      try {
        body(self);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      for (--running; running != 0;) {
        engine.progress();
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_by_ofi(std::uint32_t size, const EngineSettings& settings, const std::function<void(Rank&)>& body) {
  OfiJob job(size, kTcp);
  run_by_ofi(job, settings, body);
}

const ofi::Registrations& registrations(OfiJob& job, std::uint32_t rank) {
  return dynamic_cast<const ofi::OfiNetwork&>(job[rank]).registrations();
}

std::uint64_t counter(const Rank& self, NativeCounter which) {
  return self.engine.counter(static_cast<std::size_t>(which));
}

std::int64_t element(std::uint32_t rank, std::size_t i) {
  return static_cast<std::int64_t>(i * (2 * rank + 3) + rank * 1000003 + (i >> 9));
}

std::vector<std::int64_t> mine(std::uint32_t rank, std::size_t count) {
  std::vector<std::int64_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

void check(bool right, const char* what, std::size_t count) {
  if (!right) throw std::runtime_error(std::string(what) + " of " + std::to_string(count) + " elements is wrong");
}

/// Calls that land in their place, pass on what lands, and combine what comes.
void all_calls(Rank& self, std::size_t count) {
  const std::uint32_t size = self.size;
  const auto own = mine(self.rank, count);

  auto in = own;
  std::vector<std::int64_t> out(count);
  CallRequest sum = request<std::int64_t>(Collective::kAllreduce, count, 0, Func::kSum);
  sum.src = bind(in);
  sum.dst = bind(out);
  self.run(sum);
  std::vector<std::int64_t> right(count);
  for (std::uint32_t r = 0; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) right[i] += element(r, i);
  }
  check(out == right, "all-reduce", count);

  for (std::uint32_t root = 0; root < size; ++root) {
    auto data = self.rank == root ? own : std::vector<std::int64_t>(count);
    CallRequest bcast = request<std::int64_t>(Collective::kBcast, count, root);
    bcast.dst = bind(data);
    self.run(bcast);
    check(data == mine(root, count), "broadcast", count);
  }

  std::vector<std::int64_t> gathered(count * size);
  CallRequest gather = request<std::int64_t>(Collective::kAllgather, count);
  gather.src = bind(in);
  gather.dst = bind(gathered);
  self.run(gather);
  for (std::uint32_t r = 0; r < size; ++r) {
    const auto theirs = mine(r, count);
    check(std::equal(theirs.begin(), theirs.end(), gathered.begin() + static_cast<std::ptrdiff_t>(r * count)),
          "all-gather", count);
  }

  std::vector<std::int64_t> blocks(count * size);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = element(self.rank, i);
  std::vector<std::int64_t> exchanged(count * size);
  CallRequest exchange = request<std::int64_t>(Collective::kAlltoall, count);
  exchange.src = bind(blocks);
  exchange.dst = bind(exchanged);
  self.run(exchange);
  for (std::uint32_t r = 0; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      check(exchanged[r * count + i] == element(r, self.rank * count + i), "all-to-all", count);
    }
  }

  std::vector<std::int64_t> received(count);
  CallRequest receive = request<std::int64_t>(Collective::kRecv, count, (self.rank + size - 1) % size);
  receive.dst = bind(received);
  CallRequest send = request<std::int64_t>(Collective::kSend, count, (self.rank + 1) % size);
  send.src = bind(in);
  const CallId receiving = self.engine.submit(receive);
  const CallId sending = self.engine.submit(send);
  self.finish(receiving);
  self.finish(sending);
  check(received == mine((self.rank + size - 1) % size, count), "a message", count);
}

TEST_F(OfiCalls, LongMessagesAreWrittenAndRight) {
  for (const std::uint32_t size : {2U, 3U}) {
    run_by_ofi(size, message_settings(), [](Rank& self) {
      // Of few bytes three ranks send some to themselves, which is not this network's business.
      for (const std::size_t count : {1U, 8191U, 8193U, 200'001U}) {
        if (self.size == 2 || count > 10'000) all_calls(self, count);
      }
      // Of messages a segment has 32 KiB; of writes one has all that was written.
      const std::uint64_t bytes = counter(self, NativeCounter::kBytesReceived);
      EXPECT_GT(bytes / counter(self, NativeCounter::kSegmentsReceived), 65'536U) << "nothing was written";
      if (self.size == 2) {
        EXPECT_EQ(bytes, counter(self, NativeCounter::kBytesSent)) << "all is counted on both sides";
      }
    });
  }
}

TEST_F(OfiCalls, SeveralAtOnceDoNotMix) {
  run_by_ofi(3, message_settings(), [](Rank& self) {
    constexpr std::size_t kCalls = 8;
    constexpr std::size_t kCount = 60'000;
    std::vector<std::vector<std::int64_t>> in;
    std::vector<std::vector<std::int64_t>> out(kCalls, std::vector<std::int64_t>(kCount));
    std::vector<CallId> calls;
    for (std::size_t n = 0; n < kCalls; ++n) {
      in.push_back(mine(self.rank + static_cast<std::uint32_t>(10 * n), kCount));
      CallRequest sum = request<std::int64_t>(Collective::kAllreduce, kCount, 0, Func::kSum);
      sum.src = bind(in.back());
      sum.dst = bind(out[n]);
      calls.push_back(self.engine.submit(sum));
    }
    for (std::size_t n = 0; n < kCalls; ++n) {
      self.finish(calls[n]);
      for (std::size_t i = 0; i < kCount; ++i) {
        std::int64_t right = 0;
        for (std::uint32_t r = 0; r < 3; ++r) right += element(r + static_cast<std::uint32_t>(10 * n), i);
        check(out[n][i] == right, "an all-reduce among others", kCount);
      }
    }
  });
}

TEST_F(OfiCalls, MemoryThatLastsIsRegisteredOnceAndSoAreRings) {
  constexpr std::size_t kCount = 50'000;
  constexpr int kCalls = 50;
  OfiJob job(2, kTcp);
  std::atomic<std::uint32_t> done{0};
  run_by_ofi(job, message_settings(), [&](Rank& self) {
    const auto own = mine(self.rank, kCount);
    std::vector<std::int64_t> lasting(kCount);
    std::vector<std::int64_t> other(kCount);
    const LastingPiece piece(reinterpret_cast<const std::byte*>(lasting.data()), kCount * sizeof lasting[0]);
    const auto move = [&](std::vector<std::int64_t>& into) {
      for (int n = 0; n < kCalls; ++n) {
        const Collective collective = self.rank == 0 ? Collective::kSend : Collective::kRecv;
        CallRequest message = request<std::int64_t>(collective, kCount, 1 - self.rank);
        auto data = own;
        message.src = bind(data);
        if (self.rank == 1) message.dst = bind(into);
        self.run(message);
        if (self.rank == 1) check(into == mine(0, kCount), "a message", kCount);
      }
    };
    const std::uint64_t before = registrations(job, self.rank).made();
    move(lasting);
    EXPECT_EQ(registrations(job, self.rank).made() - before, self.rank == 1 ? 1U : 0U);
    move(other);
    // It may be freed unseen.
    EXPECT_EQ(registrations(job, self.rank).made() - before, self.rank == 1 ? 1U + kCalls : 0U);
    EXPECT_EQ(registrations(job, self.rank).kept(), self.rank == 1 ? 1U : 0U);

    // What is combined passes through the engine's own rings.
    const auto reduce = [&](int calls) {
      for (int n = 0; n < calls; ++n) {
        CallRequest sum = request<std::int64_t>(Collective::kReduce, kCount, 0, Func::kSum);
        auto data = own;
        sum.src = bind(data);
        if (self.rank == 0) sum.dst = bind(other);
        self.run(sum);
        if (self.rank == 0) check(other[kCount - 1] == own[kCount - 1] + element(1, kCount - 1), "a sum", kCount);
      }
    };
    const std::uint64_t then = registrations(job, self.rank).made();
    reduce(kCalls);
    EXPECT_LE(registrations(job, self.rank).made() - then, 8U);
    // The memory lasts no longer than this; the other rank may still need this one.
    for (++done; done != 2;) self.engine.progress();
  });
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(registrations(job, rank).kept(), 0U) << "the engine's rings are gone, and so is what was registered";
  }
}

// ----------------------------------------------------------------------------------------------- windows

CallRequest access(Collective collective, std::vector<std::int64_t>& data, std::size_t begin, std::size_t count,
                   std::uint32_t peer, std::size_t at) {
  CallRequest made = request<std::int64_t>(collective, count, peer);
  const Binding memory{reinterpret_cast<std::byte*>(&data[begin]), count * sizeof data[0]};
  (collective == Collective::kPut ? made.src : made.dst) = memory;
  made.window_offset = at * sizeof data[0];
  return made;
}

void meet(Rank& self) { self.run(request<std::int64_t>(Collective::kBarrier, 0)); }

TEST_F(OfiCalls, LongPutsAndGetsAreWrittenAndRight) {
  constexpr std::size_t kWindow = 300'000;
  OfiJob job(2, kTcp);
  run_by_ofi(job, message_settings(), [&](Rank& self) {
    const std::uint32_t peer = 1 - self.rank;
    auto window = mine(self.rank, kWindow);
    auto right = window;
    self.engine.bind_window(0, bind(window));
    meet(self);
    std::uint32_t number = 10;
    for (const std::size_t count : {1U, 8191U, 8192U, 8193U, 200'001U}) {
      for (const std::size_t at : {0U, 77U, 99'999U}) {
        std::vector<std::int64_t> got(count + 2, -5);
        self.run(access(Collective::kGet, got, 1, count, peer, at));
        auto theirs = mine(peer, kWindow);
        EXPECT_TRUE(std::equal(got.begin() + 1, got.end() - 1, theirs.begin() + static_cast<std::ptrdiff_t>(at)));
        EXPECT_EQ(got.front(), -5);
        EXPECT_EQ(got.back(), -5);
        meet(self);
        auto put = mine(number + self.rank, count);
        self.run(access(Collective::kPut, put, 0, count, peer, at));
        meet(self);
        right = mine(self.rank, kWindow);
        const auto came = mine(number + peer, count);
        std::copy(came.begin(), came.end(), right.begin() + static_cast<std::ptrdiff_t>(at));
        EXPECT_TRUE(window == right) << count << " at " << at;
        const auto before = mine(self.rank, kWindow);
        std::copy(before.begin(), before.end(), window.begin());
        number += 2;
        meet(self);
      }
    }
    // Of messages a segment has 32 KiB; of writes one has all that was written.
    const std::uint64_t bytes = counter(self, NativeCounter::kBytesReceived);
    EXPECT_GT(bytes / counter(self, NativeCounter::kSegmentsReceived), 65'536U) << "nothing was written";
    EXPECT_EQ(bytes, counter(self, NativeCounter::kBytesSent)) << "all is counted on both sides";

    // A window that lasts is registered once; one that may be freed unseen, once for each put.
    std::vector<std::int64_t> data(50'000);
    const auto puts = [&] {
      // The peer begins its puts when this rank has looked, and goes on when it has looked again.
      const std::uint64_t before = registrations(job, self.rank).made();
      meet(self);
      for (int n = 0; n < 20; ++n) self.run(access(Collective::kPut, data, 0, data.size(), peer, 100));
      meet(self);
      const std::uint64_t made = registrations(job, self.rank).made() - before;
      meet(self);
      return made;
    };
    EXPECT_EQ(puts(), 20U);
    {
      const LastingPiece lasts(reinterpret_cast<const std::byte*>(window.data()), kWindow * sizeof window[0]);
      EXPECT_EQ(puts(), 1U);
      meet(self);
    }
    self.engine.bind_window(0, {});
    meet(self);
  });
}

TEST_F(OfiCalls, SeveralPutsAndGetsAtOnceDoNotMix) {
  constexpr std::size_t kEach = 30'000;
  constexpr std::size_t kAtOnce = 6;
  run_by_ofi(3, message_settings(), [&](Rank& self) {
    // Of a window each rank writes to one part and reads another one.
    std::vector<std::int64_t> window(2 * 3 * kAtOnce * kEach);
    const auto theirs = mine(7, 3 * kAtOnce * kEach);
    std::copy(theirs.begin(), theirs.end(), window.begin());
    self.engine.bind_window(0, bind(window));
    meet(self);
    std::vector<std::vector<std::int64_t>> put, got(kAtOnce, std::vector<std::int64_t>(kEach));
    std::vector<CallId> calls;
    for (std::size_t n = 0; n < kAtOnce; ++n)
      put.push_back(mine(100 * self.rank + static_cast<std::uint32_t>(n), kEach));
    for (std::size_t n = 0; n < kAtOnce; ++n) {
      const std::uint32_t peer = (self.rank + 1 + static_cast<std::uint32_t>(n % 2)) % 3;
      const std::size_t part = self.rank * kAtOnce + n;
      calls.push_back(
          self.engine.submit(access(Collective::kPut, put[n], 0, kEach, peer, (3 * kAtOnce + part) * kEach)));
      calls.push_back(self.engine.submit(access(Collective::kGet, got[n], 0, kEach, peer, part * kEach)));
    }
    for (const CallId call : calls) self.finish(call);
    meet(self);
    for (std::size_t n = 0; n < kAtOnce; ++n) {
      const auto part = static_cast<std::ptrdiff_t>((self.rank * kAtOnce + n) * kEach);
      EXPECT_TRUE(std::equal(got[n].begin(), got[n].end(), theirs.begin() + part));
    }
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      for (std::size_t n = 0; n < kAtOnce; ++n) {
        if (rank == self.rank || (rank + 1 + n % 2) % 3 != self.rank) continue;
        const auto part = static_cast<std::ptrdiff_t>((3 * kAtOnce + rank * kAtOnce + n) * kEach);
        const auto right = mine(100 * rank + static_cast<std::uint32_t>(n), kEach);
        EXPECT_TRUE(std::equal(right.begin(), right.end(), window.begin() + part));
      }
    }
    meet(self);
    self.engine.bind_window(0, {});
  });
}

TEST_F(OfiCalls, WhatIsOutsideOfTheWindowIsRefusedInItsOwnersWords) {
  run_by_ofi(2, message_settings(), [&](Rank& self) {
    std::vector<std::int64_t> window(20'000, 3);
    self.engine.bind_window(0, bind(window));
    meet(self);
    std::vector<std::int64_t> data(15'000, 4);
    for (const Collective collective : {Collective::kPut, Collective::kGet}) {
      const CallId call = self.engine.submit(access(collective, data, 0, data.size(), 1 - self.rank, 5001));
      const CallResult result = self.engine.wait(call);
      EXPECT_EQ(result.code, ErrorCode::kBufferTooSmall) << result.message;
      EXPECT_THAT(result.message, HasSubstr("refused it"));
      EXPECT_THAT(result.message, HasSubstr("160000 bytes"));
    }
    meet(self);
    EXPECT_EQ(std::count(window.begin(), window.end(), 3), 20'000);
    self.engine.bind_window(0, {});
    meet(self);
  });
}

/// A put, or a get, that ends at its deadline while it is written. Memory that was written to belongs to its owner as
/// soon as that knows; memory that was written from, too.
void end_in_the_middle(Collective collective, int rounds) {
  constexpr std::size_t kCount = 2U << 20U;
  std::atomic<bool> ended{false};
  std::atomic<bool> looked{false};
  const bool puts = collective == Collective::kPut;
  run_by_ofi(2, message_settings(), [&](Rank& self) {
    std::vector<std::int64_t> memory(kCount, -1);
    const auto expect_untouched = [&] {
      std::fill(memory.begin(), memory.end(), 77);
      const auto deadline = Clock::now() + milliseconds(300);
      while (Clock::now() < deadline) self.engine.progress();
      EXPECT_EQ(std::count(memory.begin(), memory.end(), 77), static_cast<std::ptrdiff_t>(kCount)) << rounds;
    };
    if (self.rank == 0) {
      self.engine.bind_window(0, bind(memory));
      meet(self);
      // Into it, but not to its end.
      for (int i = 0; i < rounds; ++i) self.engine.progress();
      while (!ended) std::this_thread::sleep_for(milliseconds(1));
      // The owner of the window hears that the communicator was revoked, by the next call at the latest.
      try {
        for (;;) meet(self);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kRevoked) << error.what();
      }
      if (puts) {
        expect_untouched();
      } else {
        memory = {};  // which the network must not read any more
      }
      while (!looked) self.engine.progress();
    } else {
      meet(self);
      CallRequest call = access(collective, memory, 0, kCount, 0, 0);
      call.timeout = milliseconds(150);
      const CallResult result = self.engine.wait(self.engine.submit(call));
      // It may have been quicker.
      if (result.code != ErrorCode::kOk) {
        EXPECT_EQ(result.code, ErrorCode::kTimeout) << result.message;
      } else {
        // Then the communicator is given up all the same.
        CallRequest never = request<std::int64_t>(Collective::kRecv, 1, 0);
        std::vector<std::int64_t> one(1);
        never.dst = bind(one);
        never.timeout = milliseconds(10);
        static_cast<void>(self.engine.wait(self.engine.submit(never)));
      }
      if (!puts && !result.still_written) expect_untouched();
      ended = true;
      const auto deadline = Clock::now() + milliseconds(400);
      while (Clock::now() < deadline) self.engine.progress();
      looked = true;
    }
  });
}

TEST_F(OfiCalls, APutThatEndedIsNotWrittenAnyMore) {
  for (const int rounds : {3, 100}) end_in_the_middle(Collective::kPut, rounds);
}

TEST_F(OfiCalls, AGetThatEndedIsNotWrittenAnyMore) {
  for (const int rounds : {3, 100}) end_in_the_middle(Collective::kGet, rounds);
}

/// How the owner of a window takes it back while a peer writes to it, or it is written from.
enum class End : std::uint8_t { kDeadline, kFree, kRebind };

void take_window_back(Collective collective, End end) {
  constexpr std::size_t kCount = 2U << 20U;
  const bool puts = collective == Collective::kPut;
  std::atomic<bool> ended{false};
  run_by_ofi(2, message_settings(), [&](Rank& self) {
    auto& poe = dynamic_cast<WatchedPoe&>(self.poe);
    poe.holds = true;
    std::vector<std::int64_t> memory(kCount, -1);
    std::vector<std::int64_t> other(10, 5);
    if (self.rank == 0) {
      self.engine.bind_window(0, bind(memory));
      meet(self);
      while (!(puts ? poe.shown != 0 : !poe.writes.empty()) && !ended) self.engine.progress();
      switch (end) {
        case End::kDeadline:
          while (!ended) std::this_thread::sleep_for(milliseconds(1));
          try {
            for (;;) meet(self);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kRevoked) << error.what();
          }
          break;
        case End::kFree:
          self.engine.free_communicator(0);
          break;
        case End::kRebind:
          self.engine.bind_window(0, bind(other));
          break;
      }
      EXPECT_EQ(poe.shown, 0) << "a peer may still write to the window";
      EXPECT_TRUE(poe.writes.empty()) << "the network may still read the window";
      EXPECT_TRUE(poe.settled);
      while (!ended) self.engine.progress();
      EXPECT_EQ(std::count(other.begin(), other.end(), 5), 10);
      return;
    }
    meet(self);
    CallRequest request = access(collective, memory, 0, kCount, 0, 0);
    if (end != End::kRebind) request.timeout = milliseconds(1000);
    const CallResult result = self.engine.wait(self.engine.submit(request));
    EXPECT_EQ(result.code, end == End::kRebind ? ErrorCode::kBufferTooSmall : ErrorCode::kTimeout) << result.message;
    if (end == End::kRebind) {
      EXPECT_THAT(result.message, HasSubstr("the window was bound anew"));
    }
    EXPECT_EQ(poe.shown, 0) << "the owner of the window may still write to the call's memory";
    EXPECT_TRUE(poe.writes.empty()) << "the network may still read the call's memory";
    EXPECT_TRUE(poe.settled);
    ended = true;
  });
}

TEST_F(OfiCalls, AWindowIsItsOwnersAgainWhenItsCommunicatorWasRevoked) {
  take_window_back(Collective::kPut, End::kDeadline);
  take_window_back(Collective::kGet, End::kDeadline);
}

TEST_F(OfiCalls, AWindowIsItsOwnersAgainWhenItsCommunicatorWasFreed) {
  take_window_back(Collective::kPut, End::kFree);
  take_window_back(Collective::kGet, End::kFree);
}

TEST_F(OfiCalls, AWindowIsItsOwnersAgainWhenAnotherOneWasBound) {
  take_window_back(Collective::kPut, End::kRebind);
  take_window_back(Collective::kGet, End::kRebind);
}

/// A receive that ends at its deadline while its sender writes: what it was to get belongs to its owner. On a loaded
/// machine a receive may get its message first; then another has its turn.
TEST_F(OfiCalls, MemoryOfACallThatEndedIsNotWrittenAnyMore) {
  constexpr std::size_t kCount = 2U << 20U;
  constexpr int kWanted = 2;
  int timed_out = 0;
  for (int round = 0; round < 10 && timed_out < kWanted; ++round) {
    std::atomic<bool> looked{false};
    run_by_ofi(2, message_settings(), [&](Rank& self) {
      std::vector<std::int64_t> data(kCount, -1);
      if (self.rank == 1) {
        CallRequest send = request<std::int64_t>(Collective::kSend, kCount, 0);
        send.src = bind(data);
        const CallId sending = self.engine.submit(send);
        // Into the message, but not to its end: nobody goes on here until the receive's deadline has passed.
        for (int i = 0; i < 40 + 60 * (round % 2); ++i) self.engine.progress();
        std::this_thread::sleep_for(milliseconds(300));
        while (!looked) self.engine.progress();
        // It may have gone nowhere, which a sender need not know.
        static_cast<void>(self.engine.wait(sending));
        return;
      }
      std::fill(data.begin(), data.end(), 0);
      CallRequest receive = request<std::int64_t>(Collective::kRecv, kCount, 1);
      receive.dst = bind(data);
      receive.timeout = milliseconds(150);
      const CallId receiving = self.engine.submit(receive);
      const CallResult result = self.engine.wait(receiving);
      EXPECT_FALSE(result.still_written) << result.message;
      if (result.code == ErrorCode::kTimeout) {
        ++timed_out;
        EXPECT_THAT(result.message, HasSubstr("rank 1"));
      } else {
        EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
        EXPECT_EQ(std::count(data.begin(), data.end(), -1), static_cast<std::ptrdiff_t>(kCount));
      }
      std::fill(data.begin(), data.end(), 77);
      const auto deadline = Clock::now() + milliseconds(300);
      while (Clock::now() < deadline) self.engine.progress();
      EXPECT_EQ(std::count(data.begin(), data.end(), 77), static_cast<std::ptrdiff_t>(kCount)) << "round " << round;
      looked = true;
    });
  }
  EXPECT_EQ(timed_out, kWanted);
}

}  // namespace
}  // namespace unisono::test
