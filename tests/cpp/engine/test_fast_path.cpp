// Blocking calls on lanes: their results, and what becomes of them when something goes wrong.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "engine/fast_path.hpp"
#include "network/shm/shm_poe.hpp"
#include "reference/expectation.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/process_jobs.hpp"
#include "tests/cpp/engine/ranks.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono::test {
namespace {

constexpr Collective kCarried[] = {Collective::kBcast,         Collective::kReduce,    Collective::kAllreduce,
                                   Collective::kReduceScatter, Collective::kAllgather, Collective::kGather,
                                   Collective::kScatter,       Collective::kAlltoall,  Collective::kScan,
                                   Collective::kExscan,        Collective::kBarrier};

/// What all ranks bring to one call, and what must come of it, by the definition of the collective.
struct Expectation {
  Expectation(Collective collective, std::uint32_t size, std::uint64_t count, std::uint32_t root, bool in_place,
              std::uint32_t salt) {
    call.collective = collective;
    call.size = size;
    call.root = reference::is_rooted(collective) ? root : 0;
    call.in_place = in_place && collective != Collective::kBcast && collective != Collective::kBarrier;
    if (collective != Collective::kBarrier) {
      call.dtype = Datatype::kInt32;
      call.count = count;
    }
    call.func = reference::is_reduction(collective) ? Func::kSum : Func::kNone;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective != collective || algorithm.direct) continue;
      if (algorithm.admits == nullptr || algorithm.admits(call)) job = reference::make_job(algorithm, call);
      if (job.algorithm != nullptr) break;
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      inputs.push_back({numbers(job.bytes(rank, Region::kSrc), rank, salt),
                        numbers(job.bytes(rank, Region::kDst), rank, salt + 1),
                        {}});
    }
    want = reference::expected_numbers(job, inputs);
  }

  static std::vector<std::byte> numbers(std::uint64_t bytes, std::uint32_t rank, std::uint32_t salt) {
    std::vector<std::byte> made(bytes);
    for (std::uint64_t i = 0; i < bytes / 4; ++i) {
      const auto value = static_cast<std::uint32_t>(i * 2654435761U + rank * 40503U + salt * 977U);
      std::memcpy(made.data() + i * 4, &value, 4);
    }
    return made;
  }

  CallRequest request(std::vector<std::byte>& src, std::vector<std::byte>& dst) const {
    CallRequest made;
    made.call = call;
    made.src = bind(src);
    made.dst = bind(dst);
    return made;
  }

  void expect(std::uint32_t rank, const std::vector<std::byte>& dst) const {
    for (std::size_t i = 0; i < dst.size() / 4; ++i) {
      if (!want.defined[rank][i]) continue;
      ASSERT_EQ(std::memcmp(&dst[i * 4], &want.dst[rank][i * 4], 4), 0)
          << reference::describe(job) << ": element " << i << " of rank " << rank;
    }
  }

  Call call;
  reference::Job job;
  std::vector<reference::RankInput> inputs;
  reference::NumberExpectation want;
};

class FastPathRanks : public testing::TestWithParam<std::uint32_t> {};

TEST_P(FastPathRanks, EveryCollectiveDelivers) {
  const std::uint32_t size = GetParam();
  std::vector<Expectation> cases;
  for (const Collective collective : kCarried) {
    for (const std::uint64_t count : {0U, 1U, 12U, 13U, 700U, 9000U}) {
      if (size > 9 && count > 1000) continue;
      for (const bool in_place : {false, true}) {
        cases.emplace_back(collective, size, count, static_cast<std::uint32_t>(count) % size, in_place,
                           static_cast<std::uint32_t>(cases.size()));
      }
    }
  }
  std::atomic<std::uint32_t> direct{0};
  run_ranks(size, quick_settings(), [&](Rank& self) {
    // Twice: the first time plans are made, the second time they are known.
    for (int round = 0; round < 2; ++round) {
      for (const Expectation& c : cases) {
        std::vector<std::byte> src = c.inputs[self.rank].src;
        std::vector<std::byte> dst = c.inputs[self.rank].dst;
        self.engine.run(c.request(src, dst));
        c.expect(self.rank, dst);
        if (!c.call.in_place || c.call.collective == Collective::kScatter) {
          EXPECT_EQ(src, c.inputs[self.rank].src) << reference::describe(c.job);
        }
        const Algorithm* algorithm = self.engine.fast_path(0)->last_algorithm();
        ASSERT_NE(algorithm, nullptr) << "the call went another way";
        if (algorithm->direct) ++direct;
      }
    }
  });
  EXPECT_EQ(direct > 0, size > 1 && size <= 16) << "large calls of threads are direct";
}

INSTANTIATE_TEST_SUITE_P(Sizes, FastPathRanks, testing::Values(1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 17U));

TEST(FastPath, BlockingAndOtherCallsMix) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    std::vector<Expectation> cases;
    for (std::uint32_t i = 0; i < 60; ++i) {
      const std::uint64_t counts[] = {0, 3, 40, 900, 20'000};
      cases.emplace_back(kCarried[i % std::size(kCarried)], size, counts[i % 5], i % size, i % 7 == 0, i);
    }
    run_ranks(size, quick_settings(), [&](Rank& self) {
      std::vector<std::vector<std::byte>> src, dst;
      for (const Expectation& c : cases) {
        src.push_back(c.inputs[self.rank].src);
        dst.push_back(c.inputs[self.rank].dst);
      }
      std::vector<CallId> open;
      CallId last = 0;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        CallRequest r = cases[i].request(src[i], dst[i]);
        // Which calls block differs from rank to rank; some follow the one before.
        if ((i * 7 + self.rank * 3) % 4 == 0) {
          self.engine.run(r);
        } else {
          if (last != 0 && i % 3 == 0) r.wait_for = {&last, 1};
          open.push_back(self.engine.submit(r));
          last = open.back();
        }
      }
      for (const CallId id : open) self.finish(id);
      for (std::size_t i = 0; i < cases.size(); ++i) cases[i].expect(self.rank, dst[i]);
    });
  }
}

TEST(FastPath, TwoThreadsOnTwoCommunicators) {
  std::vector<Expectation> cases;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint64_t counts[] = {1, 60, 5000};
    cases.emplace_back(kCarried[i % std::size(kCarried)], 3, counts[i % 3], i % 3, false, i);
  }
  run_ranks(3, quick_settings(), [&](Rank& self) {
    const std::vector<std::uint32_t> turned{1, 2, 0};
    self.engine.create_communicator(8, 0, turned, self.agreed);
    const std::uint32_t ranks[] = {self.rank, (self.rank + 2) % 3};
    std::vector<std::thread> threads;
    std::array<std::string, 2> errors;
    for (std::uint32_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        try {
          for (int round = 0; round < 5; ++round) {
            for (std::size_t i = 0; i < cases.size(); ++i) {
              const Expectation& c = cases[t == 0 ? i : cases.size() - 1 - i];
              std::vector<std::byte> src = c.inputs[ranks[t]].src;
              std::vector<std::byte> dst = c.inputs[ranks[t]].dst;
              CallRequest r = c.request(src, dst);
              r.communicator = t == 0 ? 0 : 8;
              self.engine.run(r);
              c.expect(ranks[t], dst);
            }
          }
        } catch (const Error& error) {
          errors[t] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(errors[0], "");
    EXPECT_EQ(errors[1], "");
  });
}

// ------------------------------------------------------------------------------------------------ errors

struct Buffers {
  std::vector<std::int32_t> src = std::vector<std::int32_t>(100'000, 5), dst = std::vector<std::int32_t>(100'000);
};

CallRequest sum(std::uint64_t count, Buffers& buffers, const char* algorithm = nullptr) {
  CallRequest r = request<std::int32_t>(Collective::kAllreduce, count, 0, Func::kSum);
  r.src = bind(buffers.src);
  r.dst = bind(buffers.dst);
  if (algorithm != nullptr) r.algorithm = find_algorithm(Collective::kAllreduce, algorithm);
  return r;
}

/// The error that a blocking call ends with.
CallResult error_of(Engine& engine, const CallRequest& request) {
  try {
    engine.run(request);
  } catch (const Error& error) {
    return {true, error.code(), error.what(), 0};
  }
  return {true, ErrorCode::kOk, "no error", 0};
}

void expect_words(const CallResult& result, std::initializer_list<std::string> words) {
  for (const std::string& word : words) EXPECT_NE(result.message.find(word), std::string::npos) << result.message;
}

/// Lengths of lines, cells, many segments, and direct calls.
constexpr std::uint64_t kCounts[] = {3, 900, 90'000};

TEST(FastPathErrors, MismatchedCallsAreNamedOnBothRanks) {
  for (const std::uint64_t count : kCounts) {
    for (const bool known : {false, true}) {
      run_ranks(2, quick_settings(), [&](Rank& self) {
        Buffers buffers;
        if (known) {  // both plans are known already
          self.engine.run(sum(count, buffers));
          self.engine.run(sum(count + 1, buffers));
        }
        const CallResult result = error_of(self.engine, sum(count + self.rank, buffers));
        EXPECT_EQ(result.code, ErrorCode::kMismatchedCall) << result.message;
        expect_words(result, {"allreduce(" + std::to_string(count) + " int32",
                              "allreduce(" + std::to_string(count + 1) + " int32", known ? "sequence 2" : "sequence 0",
                              "rank " + std::to_string(1 - self.rank)});
        EXPECT_EQ(error_of(self.engine, sum(count, buffers)).code, ErrorCode::kRevoked);
      });
    }
  }
}

TEST(FastPathErrors, AnotherCollectiveIsNamedToo) {
  run_ranks(3, quick_settings(), [](Rank& self) {
    Buffers buffers;
    const CallResult result =
        error_of(self.engine, self.rank == 1 ? request<std::int32_t>(Collective::kBarrier, 0) : sum(100, buffers));
    // A rank that is not concerned learns it from the others.
    EXPECT_TRUE(result.code == ErrorCode::kMismatchedCall || result.code == ErrorCode::kRevoked) << result.message;
    expect_words(result, {"barrier", "allreduce"});
  });
}

TEST(FastPathErrors, TimeoutNamesWhoHasNotArrived) {
  // Deadlines shorter and longer than what a waiting rank sleeps at a time.
  for (const int timeout : {100, 300}) {
    for (const std::uint64_t count : kCounts) {
      run_ranks(4, quick_settings(), [&](Rank& self) {
        Buffers buffers;
        self.engine.run(sum(count, buffers));
        self.engine.set_timeout(0, milliseconds(timeout));
        if (self.rank == 2) {  // does not come, though its engine is alive
          const auto end = std::chrono::steady_clock::now() + milliseconds(timeout + 300);
          while (std::chrono::steady_clock::now() < end) self.engine.progress();
          return;
        }
        const auto begin = std::chrono::steady_clock::now();
        const CallResult result = error_of(self.engine, sum(count, buffers));
        EXPECT_TRUE(result.code == ErrorCode::kTimeout || result.code == ErrorCode::kRevoked) << result.message;
        expect_words(result, {"allreduce", "sequence 1", "timed out after " + std::to_string(timeout) + " ms",
                              "Not arrived: rank 2"});
        EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
      });
    }
  }
}

TEST(FastPathErrors, RevocationEndsAWait) {
  for (const std::uint64_t count : kCounts) {
    run_ranks(3, quick_settings(), [&](Rank& self) {
      Buffers buffers;
      self.engine.run(sum(count, buffers));
      if (self.rank == 0) {
        std::this_thread::sleep_for(milliseconds(20));
        self.engine.revoke(0, "the plan has changed");
        return;
      }
      const CallResult result = error_of(self.engine, sum(count, buffers));
      EXPECT_EQ(result.code, ErrorCode::kRevoked) << result.message;
      expect_words(result, {"the plan has changed"});
    });
  }
}

TEST(FastPathErrors, AnotherThreadFreesTheCommunicator) {
  for (const std::uint64_t count : kCounts) {
    run_ranks(2, quick_settings(), [&](Rank& self) {
      const std::vector<std::uint32_t> both{0, 1};
      for (std::uint16_t round = 0; round < 5; ++round) {
        self.engine.create_communicator(4, round, both, self.agreed);
        Buffers buffers;
        CallRequest r = sum(count, buffers);
        r.communicator = 4;
        self.engine.run(r);
        if (self.rank == 1) {  // nobody calls; who has gone is no reason to wait
          self.engine.free_communicator(4);
          continue;
        }
        std::thread freeing([&] {
          std::this_thread::sleep_for(milliseconds(1 + round));
          self.engine.free_communicator(4);
        });
        const auto begin = std::chrono::steady_clock::now();
        const CallResult result = error_of(self.engine, r);
        freeing.join();
        EXPECT_EQ(result.code, ErrorCode::kFreedCommunicator) << result.message;
        expect_words(result, {"communicator 4", "freed"});
        EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(2));
        // What was waited for is as if it had never been.
        self.engine.progress();
      }
      Buffers buffers;
      self.engine.run(sum(10, buffers));
      EXPECT_EQ(buffers.dst[9], 10);
    });
  }
}

// --------------------------------------------------------------------------------------------- processes

TEST(FastPathProcesses, BuffersMayBeAllocatedOnSomeRanksOnly) {
  constexpr std::uint64_t kCount = 50'000;
  auto children = start(3, kNoKernelCopy, [](Rank& self) {
    const auto run = [&](const Memory& memory, bool queued) {
      std::fill_n(memory.dst, kCount, 0);
      if (queued) {
        self.run(memory.sum(kCount));
      } else {
        self.engine.run(memory.sum(kCount));
      }
      memory.check(3, kCount);
      return self.engine.fast_path(0)->last_algorithm()->direct;
    };
    for (std::uint32_t who = 0; who < 8; ++who) {
      const Memory memory(self, (who >> self.rank & 1U) != 0, kCount);
      for (int round = 0; round < 3; ++round) {
        const bool direct = run(memory, round == 1);
        require(who == 7 || !direct, "only if all buffers can be reached is a call direct");
      }
    }
    // Where many calls have asked in vain not every one asks, but soon one does, and then all do.
    const Memory allocated(self, true, kCount);
    std::uint32_t calls = 1;
    while (!run(allocated, calls % 3 == 1)) ++calls;
    require(calls <= cclo::Asking::kOneIn, "a call asks now and then");
    for (int round = 0; round < 6; ++round) require(run(allocated, round % 2 == 0), "all buffers can be reached");
    // A few calls of the other kind change nothing.
    const Memory ordinary(self, self.rank != 1, kCount);
    for (std::uint32_t call = 1; call < cclo::Asking::kPatience; ++call) {
      require(!run(ordinary, call % 2 == 0), "one rank's buffers cannot be reached");
    }
    require(run(allocated, false), "few calls have asked in vain");
  });
  for (Child& child : children) EXPECT_EQ(child.wait(seconds(30)), 0);
}

TEST(FastPathProcesses, NamedDirectAlgorithmNeedsAllocatedBuffers) {
  constexpr std::uint64_t kCount = 5'000;
  auto children = start(3, kNoKernelCopy, [](Rank& self) {
    for (std::uint32_t who = 0; who < 8; ++who) {
      const Memory memory(self, (who >> self.rank & 1U) != 0, kCount);
      for (const bool blocking : {true, false}) {
        CallResult result{true, ErrorCode::kOk, "", 0};
        if (blocking) {
          result = error_of(self.engine, memory.sum(kCount, "direct"));
        } else {
          const CallId id = self.engine.submit(memory.sum(kCount, "direct"));
          result = self.engine.wait(id);
          self.engine.forget(id);
          if (result.code == ErrorCode::kOk) result.message = "no error";
        }
        if (who == 7) {
          require(result.message == "no error", result.message);
          memory.check(3, kCount);
        } else {
          require(result.code == ErrorCode::kUnsupported, "unsupported, not: " + result.message);
          require(result.message.find("unisono_allocate") != std::string::npos, result.message);
        }
        // The communicator is as it was.
        std::fill_n(memory.dst, kCount, 0);
        self.engine.run(memory.sum(kCount));
        memory.check(3, kCount);
        std::fill_n(memory.dst, kCount, 0);
        self.run(memory.sum(10));
        memory.check(3, 10);
      }
    }
  });
  for (Child& child : children) EXPECT_EQ(child.wait(seconds(30)), 0);
}

/// Sums again and again until a call fails.
CallResult sum_until_error(Rank& self, std::uint64_t count, bool allocated, bool slow, int signal) {
  const Memory memory(self, allocated, count);
  for (int round = 0; round < 10'000'000; ++round) {
    if (round == 50 && slow) require(write(signal, "x", 1) == 1, "the pipe takes a byte");
    if (round >= 50 && slow) std::this_thread::sleep_for(milliseconds(1));  // the others wait
    const CallResult result = error_of(self.engine, memory.sum(count));
    if (result.message != "no error") return result;
    memory.check(self.size, count);
  }
  throw Error(ErrorCode::kInternal, "nothing happened to the victim");
}

struct Victim {
  const char* name;
  std::uint64_t count;
  bool allocated;
  std::uint64_t copy_from = kNoKernelCopy;
};

class FastPathVictims : public testing::TestWithParam<Victim> {};

TEST_P(FastPathVictims, AKilledRankIsNamedSoon) {
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  auto children = start(3, GetParam().copy_from, [&](Rank& self) {
    const CallResult result = sum_until_error(self, GetParam().count, GetParam().allocated, self.rank == 1, ready[1]);
    require(result.code == ErrorCode::kPeerDead || result.code == ErrorCode::kRevoked, result.message);
    require(result.message.find("rank 1") != std::string::npos, result.message);
    require(result.message.find("has died") != std::string::npos, result.message);
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::this_thread::sleep_for(milliseconds(5));
  const auto begin = std::chrono::steady_clock::now();
  kill(children[1].pid(), SIGKILL);
  EXPECT_EQ(children[0].wait(seconds(20)), 0);
  EXPECT_EQ(children[2].wait(seconds(20)), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(3));
  EXPECT_EQ(children[1].wait(), -SIGKILL);
  close(ready[0]);
  close(ready[1]);
}

TEST_P(FastPathVictims, AStoppedRankIsNamedWhenTimeIsUp) {
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  auto children = start(3, GetParam().copy_from, [&](Rank& self) {
    self.engine.set_timeout(0, milliseconds(700));
    const CallResult result = sum_until_error(self, GetParam().count, GetParam().allocated, self.rank == 1, ready[1]);
    require(result.code == ErrorCode::kTimeout || result.code == ErrorCode::kRevoked, result.message);
    require(result.message.find("timed out after 700 ms") != std::string::npos, result.message);
    require(result.message.find("rank 1") != std::string::npos, result.message);
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(children[1].pid(), SIGSTOP);
  EXPECT_EQ(children[0].wait(seconds(20)), 0);
  EXPECT_EQ(children[2].wait(seconds(20)), 0);
  close(ready[0]);
  close(ready[1]);
}

INSTANTIATE_TEST_SUITE_P(Ways, FastPathVictims,
                         testing::Values(Victim{"Lines", 8, false}, Victim{"Cells", 900, false},
                                         Victim{"Windowed", 120'000, false}, Victim{"Direct", 120'000, true},
                                         Victim{"Copied", 120'000, false, 1}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace unisono::test
