// Calls whose operands and results are stream ports: every algorithm of every collective, with streams in the place of
// src, dst or both, on one rank or on all, gives what the same call gives with buffers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

using Element = std::int32_t;
constexpr std::uint32_t kIn = 3, kOut = 5;  // ports

std::vector<Element> input(std::uint32_t rank, std::uint64_t length, std::uint64_t salt) {
  std::vector<Element> values(length);
  for (std::uint64_t i = 0; i < length; ++i) {
    values[i] = static_cast<Element>((rank + 1) * 2'654'435'761U + i * 40'503 + salt * 97);
  }
  return values;
}

std::span<const std::byte> bytes(const std::vector<Element>& values) { return std::as_bytes(std::span(values)); }

/// A kernel beside one call: gives `given` in pieces of odd lengths, takes what comes, until the call has ended.
struct Kernel {
  std::vector<Element> given, taken;

  void run(const Rank& self, CallId id, std::uint64_t expected, std::uint64_t piece) {
    taken.assign(expected, 0);
    std::uint64_t gone = 0, come = 0;
    const std::uint64_t all = given.size() * sizeof(Element), due = expected * sizeof(Element);
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    for (bool ended = false; !ended || gone != all || come != due;) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << "given " << gone << " of " << all << ", taken " << come << " of " << due << ", ended " << ended;
      if (gone != all) {
        gone += self.engine.write_stream(kIn, bytes(given).subspan(gone, std::min(piece, all - gone)), microseconds(0));
      }
      if (come != due) {
        come += self.engine.read_stream(
            kOut, std::as_writable_bytes(std::span(taken)).subspan(come, std::min(piece + 2, due - come)),
            microseconds(0));
      }
      ended = self.engine.test(id).complete;
      std::this_thread::yield();
    }
  }
};

struct Shape {
  std::uint32_t size;
  std::uint64_t count;
  bool lanes;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.size << (shape.lanes ? "Lanes" : "Messages") << shape.count;
}

class Streams : public ::testing::TestWithParam<Shape> {};

/// Counts by rank, all different, some 0.
std::vector<std::uint64_t> blocks(std::uint32_t size, std::uint64_t n, std::uint32_t salt) {
  std::vector<std::uint64_t> counts;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    counts.push_back((rank + salt) % 3 == 1 ? 0 : n / (rank + 1) + rank);
  return counts;
}

/// One call on one rank: with buffers, then with streams; compared.
void compare(const Rank& self, const Algorithm& algorithm, int position, std::uint64_t count, std::uint32_t root,
             bool src_stream, bool dst_stream) {
  CallRequest made = request<Element>(algorithm.collective, count, root);
  const CollectiveFacts facts = facts_of(algorithm.collective);
  if (facts.reduces) made.call.func = Func::kSum;
  made.algorithm = position;
  VectorArguments vectors;
  std::vector<std::uint64_t> sends, receives;
  VectorExtents extents;
  if (facts.vectors) {
    const auto sum = [](const std::vector<std::uint64_t>& of) {
      std::uint64_t all = 0;
      for (const std::uint64_t n : of) all += n;
      return all;
    };
    if (facts.pairwise()) {
      for (std::uint32_t peer = 0; peer < self.size; ++peer) {
        sends.push_back((self.rank * 3 + peer) % 4 == 0 ? 0 : count / 2 + self.rank + peer);
        receives.push_back((peer * 3 + self.rank) % 4 == 0 ? 0 : count / 2 + self.rank + peer);
      }
    } else {
      sends = receives = blocks(self.size, count, 0);
      extents.own = sends[self.rank];
    }
    extents.send = sum(sends);
    extents.recv = sum(receives);
    vectors.send_counts = sends.data();
    vectors.recv_counts = receives.data();
    made.vectors = &vectors;
    made.call.count = 0;
  }
  Call call = made.call;
  call.rank = self.rank;
  call.size = self.size;
  if (!facts.rooted) call.root = 0;
  const Footprint used = footprint_of(call, extents);
  const bool bcast = algorithm.collective == Collective::kBcast;
  const bool sends_dst = bcast && self.rank == root;
  std::vector<Element> src = input(self.rank, used.src, count);
  std::vector<Element> dst = bcast ? input(self.rank, used.dst, count) : std::vector<Element>(used.dst, 0);
  const std::vector<Element> first = dst;
  made.src = bind(src);
  made.dst = bind(dst);
  self.run(made);
  const std::vector<Element> expected = dst;

  Kernel kernel;
  const Uses uses = uses_of(call);
  const bool reads_dst = uses.reads != Extent::kNothing;
  dst = first;
  made.dst = bind(dst);
  if (src_stream) {
    made.src = {};
    made.src_port = kIn;
    kernel.given = src;
  }
  std::uint64_t due = 0;
  if (dst_stream) {
    made.dst = {};
    made.dst_port = reads_dst ? kIn : kOut;
    if (reads_dst) kernel.given.insert(kernel.given.end(), first.begin(), first.end());
    due = sends_dst || uses.writes == Extent::kNothing ? 0 : used.dst;  // exscan gives rank 0 nothing
    // What is read and written goes in and out by one number.
    if (!bcast && reads_dst) due = 0;
  }
  const CallId id = self.engine.submit(made);
  kernel.run(self, id, due, 1 + 4 * (count % 700));
  self.finish(id);
  if (dst_stream && due != 0) {
    EXPECT_EQ(kernel.taken, expected);
  } else if (!dst_stream) {
    EXPECT_EQ(dst, expected);
  }
}

TEST_P(Streams, GiveWhatBuffersGive) {
  const Shape shape = GetParam();
  EngineSettings settings = quick_settings();
  settings.lanes = shape.lanes;
  run_ranks(shape.size, settings, [&](Rank& self) {
    const auto table = algorithms();
    std::uint32_t number = 0;
    for (std::size_t position = 0; position < table.size(); ++position) {
      const Algorithm& algorithm = table[position];
      const CollectiveFacts facts = facts_of(algorithm.collective);
      if (facts.kind != CallKind::kCollective || algorithm.collective == Collective::kBarrier ||
          algorithm.collective == Collective::kProgram || (algorithm.direct && !shape.lanes)) {
        continue;
      }
      Call call = request<Element>(algorithm.collective, shape.count, 0).call;
      call.size = shape.size;
      call.direct = algorithm.direct;
      if (facts.reduces) call.func = Func::kSum;
      if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
      for (const int which : {1, 2, 3}) {
        for (const bool all : {true, false}) {
          ++number;
          const std::uint32_t root = number % shape.size;
          const bool here = all || self.rank == number / 2 % shape.size;
          SCOPED_TRACE(std::string(name_of(algorithm.collective)) + "/" + algorithm.name + ", streams " +
                       std::to_string(which) + (all ? ", all" : ", one") + ", root " + std::to_string(root) +
                       ", rank " + std::to_string(self.rank));
          compare(self, algorithm, static_cast<int>(position), shape.count, root, here && (which & 1) != 0,
                  here && (which & 2) != 0);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Streams,
                         ::testing::Values(Shape{2, 1, true}, Shape{2, 777, false}, Shape{3, 50, false},
                                           Shape{4, 1000, true}, Shape{4, 9000, false}, Shape{5, 3, false},
                                           Shape{5, 200, true}, Shape{8, 40, false}, Shape{8, 33, true}),
                         ::testing::PrintToStringParamName());

class Pairs : public ::testing::TestWithParam<bool> {};

TEST_P(Pairs, SendAndReceive) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  run_ranks(2, settings, [&](Rank& self) {
    const std::uint32_t peer = 1 - self.rank;
    for (const std::uint64_t count : {0, 1, 15, 1000, 5000, 100'000}) {
      for (const int which : {1, 2, 3}) {
        const std::vector<Element> mine = input(self.rank, count, 1), theirs = input(peer, count, 1);
        std::vector<Element> got(count);
        Kernel kernel;
        CallRequest send = request<Element>(Collective::kSend, count, peer);
        CallRequest receive = request<Element>(Collective::kRecv, count, peer);
        std::vector<Element> source = mine;
        if ((which & 1) != 0) {
          send.src_port = kIn;
          kernel.given = mine;
        } else {
          send.src = bind(source);
        }
        if ((which & 2) != 0) {
          receive.dst_port = kOut;
        } else {
          receive.dst = bind(got);
        }
        const CallId sending = self.engine.submit(send);
        const CallId receiving = self.engine.submit(receive);
        kernel.run(self, receiving, (which & 2) != 0 ? count : 0, 4093);
        self.finish(receiving);
        self.finish(sending);
        EXPECT_EQ((which & 2) != 0 ? kernel.taken : got, theirs) << count << ", " << which;
      }
    }
  });
}

TEST_P(Pairs, PutsToAPortNeedNoReceive) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  run_ranks(3, settings, [&](Rank& self) {
    // Two ranks put to one port of the third: each message comes whole, those of one rank in their order.
    constexpr std::uint64_t kMessages = 20, kLength = 3000;
    if (self.rank != 2) {
      for (std::uint64_t n = 0; n < kMessages; ++n) {
        std::vector<Element> message = input(self.rank, kLength, n);
        message[0] = static_cast<Element>(self.rank);
        CallRequest put = request<Element>(Collective::kSend, kLength, 2);
        put.src = bind(message);
        put.dst_port = kOut;
        self.run(put);
      }
      return;
    }
    std::array<std::uint64_t, 2> next{};
    for (std::uint64_t n = 0; n < 2 * kMessages; ++n) {
      std::vector<Element> message(kLength);
      ASSERT_EQ(self.engine.read_stream(kOut, std::as_writable_bytes(std::span(message)), seconds(20)),
                kLength * sizeof(Element));
      const auto from = static_cast<std::uint32_t>(message[0]);
      ASSERT_LT(from, 2U);
      std::vector<Element> expected = input(from, kLength, next[from]++);
      expected[0] = static_cast<Element>(from);
      ASSERT_EQ(message, expected);
    }
  });
}

TEST_P(Pairs, APortThatIsNotReadStopsItsOwnCallsOnly) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  run_ranks(2, settings, [&](Rank& self) {
    constexpr std::uint64_t kLong = 100'000;  // more than a port holds
    const std::uint32_t peer = 1 - self.rank;
    std::vector<Element> mine = input(self.rank, kLong, 2), sum(kLong);
    CallRequest stuck = request<Element>(Collective::kAllreduce, kLong, 0, Func::kSum);
    stuck.src = bind(mine);
    stuck.dst_port = kOut;
    const CallId id = self.engine.submit(stuck);
    for (int round = 0; round < 3; ++round) {
      std::vector<Element> other(kLong);
      CallRequest free = request<Element>(Collective::kAllreduce, kLong, 0, Func::kSum);
      free.src = bind(mine);
      free.dst = bind(other);
      self.run(free);
      EXPECT_EQ(other[7], mine[7] + input(peer, kLong, 2)[7]);
    }
    EXPECT_FALSE(self.engine.test(id).complete);
    ASSERT_EQ(self.engine.read_stream(kOut, std::as_writable_bytes(std::span(sum)), seconds(20)), kLong * 4);
    self.finish(id);
    EXPECT_EQ(sum[99'999], mine[99'999] + input(peer, kLong, 2)[99'999]);
  });
}

TEST_P(Pairs, CallsUseAPortInTheOrderInWhichTheyWereMade) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  run_ranks(2, settings, [&](Rank& self) {
    const std::uint32_t peer = 1 - self.rank;
    constexpr std::uint64_t kCalls = 6;
    std::vector<CallId> ids;
    Kernel kernel;
    std::vector<Element> expected;
    for (std::uint64_t n = 0; n < kCalls; ++n) {
      CallRequest send = request<Element>(Collective::kSend, 700 + n, peer);
      send.tag = static_cast<std::uint32_t>(kCalls - n);
      send.src_port = kIn;
      CallRequest receive = request<Element>(Collective::kRecv, 700 + n, peer);
      receive.tag = static_cast<std::uint32_t>(kCalls - n);
      receive.dst_port = kOut;
      ids.push_back(self.engine.submit(send));
      ids.push_back(self.engine.submit(receive));
      const std::vector<Element> piece = input(self.rank, 700 + n, n), other = input(peer, 700 + n, n);
      kernel.given.insert(kernel.given.end(), piece.begin(), piece.end());
      expected.insert(expected.end(), other.begin(), other.end());
    }
    kernel.run(self, ids.back(), expected.size(), 4000);
    for (const CallId id : ids) self.finish(id);
    EXPECT_EQ(kernel.taken, expected);
  });
}

TEST_P(Pairs, ElementsThatDoNotComeAreNamed) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  settings.timeout = milliseconds(300);
  run_ranks(2, settings, [&](Rank& self) {
    if (self.rank != 0) return;
    CallRequest send = request<Element>(Collective::kSend, 16, 1);
    send.src_port = kIn;
    const CallId id = self.engine.submit(send);
    const std::vector<Element> five(5);
    EXPECT_EQ(self.engine.write_stream(kIn, bytes(five), microseconds(0)), 20U);
    const CallResult result = self.engine.wait(id);
    self.engine.forget(id);
    EXPECT_EQ(result.code, ErrorCode::kTimeout);
    EXPECT_NE(result.message.find("send"), std::string::npos) << result.message;
    EXPECT_NE(result.message.find("stream port 3: its kernel has given 5 of 16 elements"), std::string::npos)
        << result.message;
  });
}

TEST_P(Pairs, WhoReadsHearsOfTheFailure) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  settings.timeout = milliseconds(300);
  run_ranks(2, settings, [&](Rank& self) {
    if (self.rank != 0) return;
    CallRequest receive = request<Element>(Collective::kRecv, 16, 1);
    receive.dst_port = kOut;
    const CallId id = self.engine.submit(receive);
    std::vector<Element> got(16);
    try {
      self.engine.read_stream(kOut, std::as_writable_bytes(std::span(got)), seconds(20));
      FAIL() << "it returned";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_NE(std::string(error.what()).find("stream port 5 brings no more: recv"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(self.engine.wait(id).code, ErrorCode::kTimeout);
    self.engine.forget(id);
  });
}

TEST_P(Pairs, AFailureThatNobodyHasReadDoesNotConcernTheNextCall) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  settings.timeout = milliseconds(300);
  run_ranks(1, settings, [&](Rank& self) {
    CallRequest copy = request<Element>(Collective::kCopy, 4);
    copy.src_port = kIn;
    copy.dst_port = kOut;
    const CallId first = self.engine.submit(copy);
    EXPECT_EQ(self.engine.wait(first).code, ErrorCode::kTimeout);  // nothing was given
    self.engine.forget(first);
    const CallId second = self.engine.submit(copy);
    const std::vector<Element> given{1, 2, 3, 4};
    EXPECT_EQ(self.engine.write_stream(kIn, bytes(given), seconds(5)), 16U);
    std::vector<Element> got(4);
    EXPECT_EQ(self.engine.read_stream(kOut, std::as_writable_bytes(std::span(got)), seconds(5)), 16U);
    EXPECT_EQ(got, given);
    self.finish(second);
    EXPECT_EQ(self.engine.read_stream(kOut, std::as_writable_bytes(std::span(got)), microseconds(0)), 0U);
  });
}

TEST_P(Pairs, DeadlinesCountFromTheLastElement) {
  EngineSettings settings = quick_settings();
  settings.lanes = GetParam();
  settings.timeout = milliseconds(400);
  run_ranks(1, settings, [&](Rank& self) {
    CallRequest copy = request<Element>(Collective::kCopy, 10);
    std::vector<Element> to(10);
    copy.src_port = kIn;
    copy.dst = bind(to);
    const CallId id = self.engine.submit(copy);
    for (Element n = 0; n < 10; ++n) {  // a second in all
      const std::vector<Element> one{n};
      EXPECT_EQ(self.engine.write_stream(kIn, bytes(one), microseconds(0)), 4U);
      static_cast<void>(self.engine.wait(id, milliseconds(100)));
    }
    self.finish(id);
    EXPECT_EQ(to[9], 9);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Pairs, ::testing::Values(false, true),
                         [](const auto& shape) { return shape.param ? "Lanes" : "Messages"; });

TEST(StreamPorts, FirstElementsComeBeforeTheLastAreGiven) {
  run_ranks(4, message_settings(), [](Rank& self) {
    // A chain broadcast, element by element: the root gives one only when the last rank has the one before.
    constexpr std::uint64_t kLength = 50;
    const auto table = algorithms();
    int chain = -1;
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i].collective == Collective::kBcast && std::string(table[i].name) == "chain")
        chain = static_cast<int>(i);
    }
    CallRequest bcast = request<Element>(Collective::kBcast, kLength, 0);
    bcast.algorithm = chain;
    bcast.dst_port = self.rank == 0 ? kIn : kOut;
    const CallId id = self.engine.submit(bcast);
    CallRequest ready = request<Element>(self.rank == 0 ? Collective::kRecv : Collective::kSend, 1, 3 - self.rank);
    std::vector<Element> token(1);
    (self.rank == 0 ? ready.dst : ready.src) = bind(token);
    for (Element n = 0; n < static_cast<Element>(kLength); ++n) {
      const std::vector<Element> one{n};
      std::vector<Element> got(1);
      if (self.rank == 0) {
        ASSERT_EQ(self.engine.write_stream(kIn, bytes(one), seconds(10)), 4U);
      } else {
        ASSERT_EQ(self.engine.read_stream(kOut, std::as_writable_bytes(std::span(got)), seconds(10)), 4U);
        ASSERT_EQ(got[0], n);
      }
      if (self.rank == 0 || self.rank == 3) self.run(ready);
    }
    self.finish(id);
  });
}

TEST(StreamPorts, UnknownOnesAreRefused) {
  run_ranks(1, quick_settings(), [](Rank& self) {
    CallRequest copy = request<Element>(Collective::kCopy, 1);
    std::vector<Element> to(1);
    copy.src_port = 16;
    copy.dst = bind(to);
    EXPECT_THROW(self.engine.submit(copy), Error);
    EXPECT_THROW(self.engine.write_stream(16, {}, microseconds(0)), Error);
    EXPECT_THROW(self.engine.read_stream(99, {}, microseconds(0)), Error);
  });
}

TEST(StreamPorts, BothOperandsOfACombinationAreStreams) {
  run_ranks(1, message_settings(), [](Rank& self) {
    CallRequest combine = request<Element>(Collective::kCombine, 3000, 0, Func::kMax);
    combine.src_port = 1;
    combine.dst_port = 2;
    const CallId id = self.engine.submit(combine);
    const std::vector<Element> a = input(0, 3000, 1), b = input(1, 3000, 2);
    EXPECT_EQ(self.engine.write_stream(1, bytes(a), seconds(5)), 12'000U);
    EXPECT_EQ(self.engine.write_stream(2, bytes(b), seconds(5)), 12'000U);
    std::vector<Element> got(3000), expected;
    EXPECT_EQ(self.engine.read_stream(2, std::as_writable_bytes(std::span(got)), seconds(5)), 12'000U);
    self.finish(id);
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(std::max(a[i], b[i]));
    EXPECT_EQ(got, expected);
  });
}

}  // namespace
}  // namespace unisono::test
