// Several calls of one communicator in flight: they end right, in whatever order they are waited for, and errors name
// the call that they are of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "core/facts.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

/// A call of a mixture, as all ranks make it, and what it must give.
struct Mixed {
  std::uint32_t communicator = 0;
  bool starts = false;  ///< else it blocks
  bool named = false;   ///< its algorithm is
  Call call;
  int algorithm = 0;
  std::vector<reference::RankInput> inputs;
  std::vector<std::vector<std::byte>> expected;
  std::vector<std::uint64_t> counts;  ///< of an allgatherv
};

void fill(std::vector<std::byte>& bytes, Datatype dtype, std::mt19937& random) {
  if (dtype != Datatype::kFp32) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return;
  }
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    const float value = static_cast<float>(random() % 20'001) / 7.0F - 1000.0F;
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

/// A call whose counts differ by rank, small ones among them.
void draw_vectors(Mixed& made, std::uint32_t size, std::mt19937& random) {
  made.call = {};
  made.call.collective = Collective::kAllgatherv;
  made.call.dtype = Datatype::kByte;
  made.named = false;
  made.inputs.resize(size);
  std::vector<std::byte> all;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    made.counts.push_back(random() % 60);
    made.inputs[rank].src.resize(made.counts.back());
    fill(made.inputs[rank].src, Datatype::kByte, random);
    all.insert(all.end(), made.inputs[rank].src.begin(), made.inputs[rank].src.end());
  }
  for (auto& input : made.inputs) input.dst.resize(all.size());
  made.expected.assign(size, all);
}

Mixed draw(std::uint32_t size, std::uint32_t communicators, std::mt19937& random) {
  static constexpr std::uint64_t kCounts[] = {1, 1, 1, 2, 12, 13, 60, 300, 520, 3000, 40'000};
  Mixed made;
  made.communicator = 20 + static_cast<std::uint32_t>(random() % communicators);
  made.starts = random() % 4 != 0;
  if (random() % 24 == 0) {
    draw_vectors(made, size, random);
    return made;
  }
  for (;;) {
    const std::size_t position = random() % algorithms().size();
    const Algorithm& algorithm = algorithms()[position];
    const CollectiveFacts facts = facts_of(algorithm.collective);
    if (facts.kind != CallKind::kCollective || facts.vectors || algorithm.direct) continue;
    made.call = {};
    made.call.collective = algorithm.collective;
    made.call.func = facts.reduces ? Func::kSum : Func::kNone;
    made.named = random() % 2 == 0;
    made.call.dtype = facts.reduces && made.named && random() % 2 == 0 ? Datatype::kFp32 : Datatype::kInt32;
    made.call.size = size;
    made.call.root = facts.rooted ? static_cast<std::uint32_t>(random() % size) : 0;
    made.call.count = facts.data ? kCounts[random() % std::size(kCounts)] : 0;
    if (!facts.data) made.call.dtype = Datatype::kNone;
    if (algorithm.admits != nullptr && !algorithm.admits(made.call)) continue;
    made.algorithm = static_cast<int>(position);
    const reference::Job job = reference::make_job(algorithm, made.call);
    made.inputs.resize(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      made.inputs[rank].src.resize(job.region_bytes[rank][0]);
      made.inputs[rank].dst.resize(job.region_bytes[rank][1]);
      fill(made.inputs[rank].src, made.call.dtype, random);
      fill(made.inputs[rank].dst, made.call.dtype, random);
    }
    made.expected = reference::interpret(job, made.inputs);
    return made;
  }
}

struct InFlight {
  CallId id = 0;
  std::size_t number = 0;
};

class Mixtures : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Mixtures, OfCallsInFlightGiveTheInterpretersBits) {
  const std::uint32_t size = GetParam();
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed * 100 + size);
    const std::uint32_t communicators = 1 + seed % 3;
    std::vector<Mixed> calls;
    for (int i = 0; i < 150; ++i) calls.push_back(draw(size, communicators, random));
    // Each rank has the call's memory for itself.
    run_ranks(size, quick_settings(), [&](Rank& self) {
      std::vector<std::uint32_t> all(size);
      std::iota(all.begin(), all.end(), 0U);
      for (std::uint32_t c = 0; c < communicators; ++c) self.engine.create_communicator(20 + c, 0, all, self.agreed);
      std::mt19937 own(seed * 1000 + self.rank);
      const std::size_t most = 1 + own() % 20;
      std::vector<InFlight> flying;
      const auto check = [&](std::size_t number) {
        EXPECT_TRUE(calls[number].inputs[self.rank].dst == calls[number].expected[self.rank])
            << "seed " << seed << ", call " << number << ": " << name_of(calls[number].call.collective) << " of "
            << calls[number].call.count << " on rank " << self.rank;
      };
      const auto land = [&] {
        const std::size_t position = own() % flying.size();
        const InFlight flight = flying[position];
        flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(position));
        self.finish(flight.id);
        check(flight.number);
      };
      for (std::size_t number = 0; number < calls.size(); ++number) {
        Mixed& mixed = calls[number];
        CallRequest made;
        made.communicator = mixed.communicator;
        made.call = mixed.call;
        made.call.size = 1;
        if (mixed.named) made.algorithm = mixed.algorithm;
        made.src = bind(mixed.inputs[self.rank].src);
        made.dst = bind(mixed.inputs[self.rank].dst);
        VectorArguments vectors;
        vectors.recv_counts = mixed.counts.data();
        if (!mixed.counts.empty()) made.vectors = &vectors;
        if (mixed.starts) {
          flying.push_back({self.engine.submit(made), number});
        } else {
          self.engine.run(made);
          check(number);
        }
        while (flying.size() > most || (!flying.empty() && own() % 3 == 0)) land();
      }
      while (!flying.empty()) land();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mixtures, testing::Values(2U, 3U, 4U, 5U));

/// Started all-reduces of one number each.
struct Sums {
  Sums(Rank& of, std::size_t count) : self(of), mine(count), sums(count, -1) {}
  CallRequest made(std::size_t i) {
    mine[i] = static_cast<std::int32_t>(1000 * self.rank + i);
    CallRequest request = test::request<std::int32_t>(Collective::kAllreduce, 1, 0, Func::kSum);
    request.src = {reinterpret_cast<std::byte*>(&mine[i]), sizeof mine[i]};
    request.dst = {reinterpret_cast<std::byte*>(&sums[i]), sizeof sums[i]};
    return request;
  }
  std::int32_t expected(std::size_t i) const {
    return static_cast<std::int32_t>(1000 * self.size * (self.size - 1) / 2 + i * self.size);
  }
  Rank& self;
  std::vector<std::int32_t> mine, sums;
};

// Rank 0 starts far ahead of the others, and nobody waits in the order of the calls.
TEST(Sets, ManyStartedCallsAreNoDeadlock) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    run_ranks(size, quick_settings(), [](Rank& self) {
      constexpr std::size_t kCalls = 300;
      Sums all(self, kCalls);
      std::vector<CallId> ids;
      if (self.rank != 0) std::this_thread::sleep_for(milliseconds(20));
      for (std::size_t i = 0; i < kCalls; ++i) ids.push_back(self.engine.submit(all.made(i)));
      std::vector<std::size_t> order(kCalls);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::shuffle(order.begin(), order.end(), std::mt19937(self.rank));
      for (const std::size_t i : order) {
        self.finish(ids[i]);
        EXPECT_EQ(all.sums[i], all.expected(i));
      }
    });
  }
}

// What rank 0 sends in four calls is there before rank 1 makes them, and while rank 0 does nothing.
TEST(Sets, FourSmallCallsFlyAtOnce) {
  std::atomic<int> phase{0};
  run_ranks(2, quick_settings(), [&phase](Rank& self) {
    constexpr std::size_t kCalls = 6;
    Sums all(self, kCalls);
    std::vector<CallId> ids;
    const auto start = [&] {
      for (std::size_t i = 0; i < kCalls; ++i) ids.push_back(self.engine.submit(all.made(i)));
    };
    if (self.rank == 0) {
      start();
      phase = 1;
      while (phase != 2) std::this_thread::yield();
    } else {
      while (phase != 1) std::this_thread::yield();
      start();
      for (std::size_t i = 0; i < kCalls; ++i) {
        EXPECT_EQ(self.engine.test(ids[i]).complete, i < 4) << i;
        if (i < 4) {
          EXPECT_EQ(all.sums[i], all.expected(i));
        }
      }
      phase = 2;
    }
    for (std::size_t i = 0; i < kCalls; ++i) {
      self.finish(ids[i]);
      EXPECT_EQ(all.sums[i], all.expected(i));
    }
  });
}

// A large call keeps none of the small ones behind it.
TEST(Sets, SmallCallsOvertakeALargeOne) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    std::vector<std::int32_t> src(1'000'000, 3), dst(src.size());
    CallRequest large = request<std::int32_t>(Collective::kAllreduce, src.size(), 0, Func::kSum);
    large.src = bind(src);
    large.dst = bind(dst);
    const CallId first = self.engine.submit(large);
    Sums small(self, 4);
    std::vector<CallId> ids;
    for (std::size_t i = 0; i < 4; ++i) ids.push_back(self.engine.submit(small.made(i)));
    for (const CallId id : ids) self.finish(id);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(small.sums[i], small.expected(i));
    self.finish(first);
    EXPECT_EQ(dst.back(), 6);
  });
}

TEST(Sets, AMismatchInTheSecondOfFourNamesIt) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    Sums all(self, 5);
    self.finish(self.engine.submit(all.made(0)));
    std::vector<CallId> ids;
    for (std::size_t i = 1; i < 5; ++i) {
      CallRequest made = all.made(i);
      if (i == 2 && self.rank == 1) made.call.func = Func::kMax;
      try {
        ids.push_back(self.engine.submit(made));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kRevoked) << error.what();  // the other rank has found it already
        EXPECT_THAT(error.what(), HasSubstr("sequence 2"));
      }
    }
    std::string said;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const CallResult result = self.engine.wait(ids[i]);
      if (i == 0 && result.code == ErrorCode::kOk) continue;
      EXPECT_EQ(result.code, ErrorCode::kMismatchedCall) << i << ": " << result.message;
      EXPECT_THAT(result.message, HasSubstr("sequence 2")) << i;
      EXPECT_THAT(result.message, HasSubstr("max")) << i;
      EXPECT_THAT(result.message, HasSubstr("sum")) << i;
    }
  });
}

// One rank makes a call so large that it has other lanes.
TEST(Sets, AMismatchBetweenSmallAndLargeIsFound) {
  for (const bool blocks : {false, true}) {
    run_ranks(2, quick_settings(), [blocks](Rank& self) {
      std::vector<std::int32_t> src(self.rank == 0 ? 1 : 100'000, 1), dst(src.size());
      CallRequest made = request<std::int32_t>(Collective::kAllreduce, src.size(), 0, Func::kSum);
      made.src = bind(src);
      made.dst = bind(dst);
      const auto begin = std::chrono::steady_clock::now();
      try {
        if (blocks) {
          self.engine.run(made);
        } else {
          self.run(made);
        }
        ADD_FAILURE() << "it was carried out";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kMismatchedCall) << error.what();
        EXPECT_THAT(error.what(), HasSubstr("100000"));
      }
      EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
    });
  }
}

TEST(Sets, ADeadlineOfOneOfFourEndsAll) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    Sums all(self, 4);
    if (self.rank == 1) {  // comes to the first only
      self.finish(self.engine.submit(all.made(0)));
      const auto end = std::chrono::steady_clock::now() + milliseconds(600);
      while (std::chrono::steady_clock::now() < end) self.engine.progress();
      return;
    }
    std::vector<CallId> ids;
    for (std::size_t i = 0; i < 4; ++i) {
      CallRequest made = all.made(i);
      if (i == 2) made.timeout = milliseconds(200);
      ids.push_back(self.engine.submit(made));
    }
    self.finish(ids[0]);
    EXPECT_EQ(all.sums[0], all.expected(0));
    const CallResult late = self.engine.wait(ids[2]);
    EXPECT_EQ(late.code, ErrorCode::kTimeout);
    EXPECT_THAT(late.message, HasSubstr("sequence 2"));
    EXPECT_THAT(late.message, HasSubstr("timed out after 200 ms"));
    EXPECT_THAT(late.message, HasSubstr("rank 1"));
    for (const std::size_t i : {1, 3}) {
      const CallResult other = self.engine.wait(ids[i]);
      EXPECT_EQ(other.code, ErrorCode::kRevoked);
      EXPECT_THAT(other.message, HasSubstr("timed out"));
    }
  });
}

TEST(Sets, RevocationEndsAllInFlight) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    Sums all(self, 6);
    if (self.rank == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      self.engine.revoke(0, "enough of it");
      return;
    }
    std::vector<CallId> ids;
    for (std::size_t i = 0; i < 6; ++i) ids.push_back(self.engine.submit(all.made(i)));
    for (const CallId id : ids) {
      const CallResult result = self.engine.wait(id);
      EXPECT_EQ(result.code, ErrorCode::kRevoked);
      EXPECT_THAT(result.message, HasSubstr("enough of it"));
    }
  });
}

TEST(Sets, ARankThatLeavesEndsAllInFlight) {
  ThreadJob job(2);
  std::unique_ptr<Poe> networks[2] = {job.endpoint(0), job.endpoint(1)};
  NativeEngine engine(*networks[0], quick_settings());
  const Agreement capabilities = engine.capabilities();
  engine.create_communicator(0, 0, std::vector<std::uint32_t>{0, 1}, agree({&capabilities, 1}));
  Rank self{0, 2, engine, *networks[0], capabilities};
  Sums all(self, 4);
  std::vector<CallId> ids;
  for (std::size_t i = 0; i < 4; ++i) ids.push_back(engine.submit(all.made(i)));
  networks[1].reset();
  for (std::size_t i = 0; i < 4; ++i) {
    const CallResult result = engine.wait(ids[i]);
    EXPECT_TRUE(result.code == ErrorCode::kPeerDead || result.code == ErrorCode::kRevoked) << result.message;
    EXPECT_THAT(result.message, HasSubstr("rank 1"));
    EXPECT_THAT(result.message, HasSubstr("left the job"));
  }
}

}  // namespace
}  // namespace unisono::test
