// The engine of endpoints with devices: functional ones in this process, and the same behind a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "collectives/algorithm.hpp"
#include "core/footprint.hpp"
#include "ranks.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"

namespace unisono::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class Ways : public testing::TestWithParam<Way> {
 protected:
  static Job job() {
    Job made;
    made.way = GetParam();
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(Device, Ways, testing::Values(Way::kFunctional, Way::kSocket),
                         [](const auto& way) { return way.param == Way::kFunctional ? "functional" : "socket"; });

/// The text of the error that an action ends in.
std::string refusal(ErrorCode code, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// One call of an algorithm on all ranks, with counts that differ between ranks.
struct Everywhere {
  const Algorithm& algorithm;
  std::uint32_t size;
  std::uint64_t count;
  std::uint32_t root;
  bool in_place;

  /// What rank i sends to rank j, or has for all.
  std::uint64_t block(std::uint32_t i, std::uint32_t j) const {
    const std::uint64_t value = algorithm.collective == Collective::kAlltoallv && in_place ? i + j : i * 3 + 2 * j;
    return (value + count) % 5;
  }

  struct Own {
    CallRequest request;
    VectorArguments vectors;
    std::vector<std::uint64_t> send, send_at, recv, recv_at;
    std::vector<std::int32_t> src, dst;
  };

  void prepare(std::uint32_t rank, Own& own) const {
    CallRequest& made = own.request;
    const Collective c = algorithm.collective;
    const bool reduces = c == Collective::kReduce || c == Collective::kAllreduce || c == Collective::kReduceScatter ||
                         c == Collective::kReduceScatterv || c == Collective::kScan || c == Collective::kExscan;
    made = request(c, count, root, reduces ? Func::kSum : Func::kNone);
    made.call.in_place = in_place;
    made.algorithm = static_cast<int>(&algorithm - algorithms().data());
    Call call = made.call;
    call.rank = rank;
    call.size = size;
    VectorExtents extents;
    const auto lay = [&](std::vector<std::uint64_t>& counts, std::vector<std::uint64_t>& at, auto&& value) {
      std::uint64_t end = 0;
      for (std::uint32_t other = 0; other < size; ++other) {
        counts.push_back(value(other));
        at.push_back(end + other % 2);  // with gaps
        end = at.back() + counts.back();
      }
      std::uint64_t last = 0;
      for (std::uint32_t other = 0; other < size; ++other) {
        if (counts[other] != 0) last = at[other] + counts[other];
      }
      return last;
    };
    if (c == Collective::kAlltoallv) {
      extents.send = lay(own.send, own.send_at, [&](std::uint32_t other) { return block(rank, other); });
      extents.recv = lay(own.recv, own.recv_at, [&](std::uint32_t other) { return block(other, rank); });
      made.call.count = in_place ? 4 : 0;
    } else if (c == Collective::kScatterv) {
      extents.send = lay(own.send, own.send_at, [&](std::uint32_t other) { return block(other, 0); });
      extents.own = block(rank, 0);
    } else if (c == Collective::kGatherv || c == Collective::kAllgatherv || c == Collective::kReduceScatterv) {
      extents.recv = lay(own.recv, own.recv_at, [&](std::uint32_t other) { return block(other, 0); });
      extents.own = block(rank, 0);
    }
    if (!own.send.empty() || !own.recv.empty()) {
      own.vectors = {own.send.empty() ? nullptr : own.send.data(), own.send.empty() ? nullptr : own.send_at.data(),
                     own.recv.empty() ? nullptr : own.recv.data(), own.recv.empty() ? nullptr : own.recv_at.data()};
      made.vectors = &own.vectors;
    }
    const Footprint uses = footprint_of(call, extents);
    own.src.resize(uses.src);
    own.dst.resize(uses.dst);
    for (std::size_t i = 0; i < own.src.size(); ++i) own.src[i] = static_cast<std::int32_t>(i * 13 + rank * 101 + 5);
    for (std::size_t i = 0; i < own.dst.size(); ++i) own.dst[i] = static_cast<std::int32_t>(i * 17 + rank * 211 + 9);
    made.src = bind(own.src);
    made.dst = bind(own.dst);
  }
};

std::vector<Everywhere> calls_of(std::uint32_t size) {
  std::vector<Everywhere> all;
  for (const Algorithm& algorithm : algorithms()) {
    const Collective c = algorithm.collective;
    if (algorithm.direct || c < Collective::kBcast || c == Collective::kProgram) continue;
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{2500}}) {
      for (const bool in_place : {false, true}) {
        if (in_place && (c == Collective::kBcast || c == Collective::kBarrier)) continue;
        all.push_back({algorithm, size, count, size - 1, in_place});
      }
    }
  }
  return all;
}

/// dst of all calls on all ranks; empty where the engine refuses.
using Outcomes = std::vector<std::vector<std::vector<std::int32_t>>>;

void run_all(Engine& engine, std::uint32_t rank, const std::vector<Everywhere>& calls,
             std::vector<std::vector<std::int32_t>>& results) {
  for (const Everywhere& call : calls) {
    Everywhere::Own own;
    call.prepare(rank, own);
    const auto src_before = own.src;
    try {
      engine.run(own.request);
      EXPECT_EQ(own.src, src_before);
      results.push_back(own.dst);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
      results.emplace_back(1, -1);
    }
  }
}

TEST_P(Ways, EveryAlgorithmGivesTheBitsOfTheNativeEngine) {
  for (const std::uint32_t size : {1U, 2U, 5U}) {
    const std::vector<Everywhere> calls = calls_of(size);
    ASSERT_GT(calls.size(), 100U);
    Outcomes native(size), device(size);
    {
      ThreadJob threads(size);
      std::vector<std::unique_ptr<Poe>> networks;
      for (std::uint32_t rank = 0; rank < size; ++rank) networks.push_back(threads.endpoint(rank));
      std::vector<std::thread> ranks;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        ranks.emplace_back([&, rank] {
          EngineSettings settings = job().settings;
          settings.lanes = false;
          NativeEngine engine(*networks[rank], settings);
          const Agreement capabilities = engine.capabilities();
          engine.create_communicator(0, 0, ranks_up_to(size), agree({&capabilities, 1}));
          run_all(engine, rank, calls, native[rank]);
        });
      }
      for (std::thread& rank : ranks) rank.join();
    }
    run_ranks(size, job(), [&](Rank& rank) { run_all(rank.engine, rank.rank, calls, device[rank.rank]); });
    std::size_t moved = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      ASSERT_EQ(native[rank].size(), calls.size());
      ASSERT_EQ(device[rank].size(), calls.size());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        EXPECT_EQ(device[rank][i], native[rank][i])
            << name_of(calls[i].algorithm.collective) << "/" << calls[i].algorithm.name << " count " << calls[i].count
            << (calls[i].in_place ? " in place" : "") << ", rank " << rank << " of " << size;
        Everywhere::Own before;
        calls[i].prepare(rank, before);
        moved += before.dst != native[rank][i] ? 1 : 0;
      }
    }
    EXPECT_GT(moved, size == 1 ? 0 : calls.size() / 3);
  }
}

TEST_P(Ways, MessagesMeetByTag) {
  run_ranks(2, job(), [](Rank& rank) {
    auto first = data_of(rank.rank, 3000), second = data_of(rank.rank + 7, 5);
    std::vector<std::int32_t> a(3000), b(5);
    const std::uint32_t other = 1 - rank.rank;
    const auto make = [&](Collective c, std::vector<std::int32_t>& data, std::uint32_t tag) {
      CallRequest made = request(c, data.size(), other);
      (c == Collective::kSend ? made.src : made.dst) = bind(data);
      made.tag = tag;
      return made;
    };
    const CallId ids[] = {
        rank.engine.submit(make(Collective::kRecv, b, 2)), rank.engine.submit(make(Collective::kRecv, a, 1)),
        rank.engine.submit(make(Collective::kSend, first, 1)), rank.engine.submit(make(Collective::kSend, second, 2))};
    for (const CallId id : ids) {
      const CallResult result = rank.finish(id);
      EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
    }
    EXPECT_EQ(a, data_of(other, 3000));
    EXPECT_EQ(b, data_of(other + 7, 5));
  });
}

// More programs than a device holds at once, each called twice; the second time it may be there. Of every third, moves
// stand in the device's memory.
TEST_P(Ways, ProgramsOfTheUserGiveTheInterpretersBits) {
  for (const std::uint32_t size : {2U, 3U}) {
    struct Tried {
      Generator generator;
      std::vector<std::shared_ptr<const Program>> programs;
      std::vector<reference::RankInput> inputs;
      std::vector<std::vector<std::byte>> expected;
    };
    std::vector<Tried> tried;
    for (std::uint32_t seed = 0; tried.size() < 2 * kLoadedPrograms; ++seed) {
      Generator generator(seed * 10 + size, size, 40, false);
      const bool wants_long = tried.size() % 3 == 2;
      const std::vector<Program> programs = generator.run(wants_long ? 60 : 12);
      if (std::any_of(programs.begin(), programs.end(), [&](const Program& program) {
            return (program.moves.size() > kLoadedMoves) != wants_long || program.pool.size() > kLoadedWords;
          })) {
        continue;
      }
      Tried& made = tried.emplace_back(Tried{std::move(generator), {}, {}, {}});
      for (const Program& program : programs) made.programs.push_back(std::make_shared<const Program>(program));
      for (std::uint32_t r = 0; r < size; ++r) {
        made.inputs.push_back({made.generator.data(r, 0), made.generator.data(r, 1), {}});
      }
      made.expected = reference::interpret(
          reference::make_job(programs, made.generator.dtype(), made.generator.src_bytes(), made.generator.bytes()),
          made.inputs);
    }
    run_ranks(size, job(), [&](Rank& self) {
      std::vector<std::pair<CallId, std::size_t>> ids;
      std::vector<std::vector<std::byte>> src, dst;
      for (int turn = 0; turn < 2; ++turn) {
        for (const Tried& one : tried) {
          src.push_back(one.inputs[self.rank].src);
          dst.push_back(one.inputs[self.rank].dst);
        }
      }
      for (std::size_t i = 0; i < src.size(); ++i) {
        const Tried& one = tried[i % tried.size()];
        CallRequest made = request(Collective::kProgram, 0);
        made.call.dtype = one.generator.dtype();
        made.program = one.programs[self.rank];
        made.src = bind(src[i]);
        made.dst = bind(dst[i]);
        ids.emplace_back(self.engine.submit(made), i % tried.size());
      }
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const CallResult result = self.finish(ids[i].first);
        ASSERT_EQ(result.code, ErrorCode::kOk) << result.message;
        EXPECT_EQ(dst[i], tried[ids[i].second].expected[self.rank]) << "rank " << self.rank << ", program " << i;
      }
    });
  }
}

/// Something that calls of a rank can wait for, and that ends only when all ranks have come to its `open`.
class Hold {
 public:
  explicit Hold(std::atomic<std::uint32_t>& ranks_there) : there_(ranks_there) {}

  CallId begin(Rank& rank) {
    CallRequest made = request(Collective::kRecv, 1, (rank.rank + 1) % rank.size);
    made.dst = bind(got_);
    made.tag = 99;
    return id_ = rank.engine.submit(made);
  }
  void open(Rank& rank) {
    const std::uint32_t all = (there_++ / rank.size + 1) * rank.size;
    while (there_ < all) rank.engine.pass(microseconds(20));
    CallRequest made = request(Collective::kSend, 1, (rank.rank + rank.size - 1) % rank.size);
    made.src = bind(given_);
    made.tag = 99;
    EXPECT_EQ(rank.run(made).code, ErrorCode::kOk);
    EXPECT_EQ(rank.finish(id_).code, ErrorCode::kOk);
  }

 private:
  std::atomic<std::uint32_t>& there_;
  std::vector<std::int32_t> given_{1}, got_{0};
  CallId id_ = 0;
};

TEST_P(Ways, AChainPassesResultsOnInsideTheDevice) {
  std::atomic<std::uint32_t> there{0};
  run_ranks(3, job(), [&](Rank& rank) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{4000}}) {
      Hold hold(there);
      const CallId held = hold.begin(rank);
      auto src = data_of(rank.rank, count);
      std::vector<std::int32_t> copied(count), summed(count), twice(count);
      CallRequest copy = request(Collective::kCopy, count);
      copy.src = bind(src);
      copy.dst = bind(copied);
      copy.wait_for = {&held, 1};
      const CallId first = rank.engine.submit(copy);
      CallRequest sum = allreduce(copied, summed);
      sum.wait_for = {&first, 1};
      const CallId second = rank.engine.submit(sum);
      CallRequest add = request(Collective::kCombine, count, 0, Func::kSum);  // dst is read and written
      twice = data_of(9, count);
      add.src = bind(summed);
      add.dst = bind(twice);
      const CallId both[] = {first, second};
      add.wait_for = both;
      const CallId third = rank.engine.submit(add);
      CallRequest nop = request(Collective::kNop, 0);
      const CallId all[] = {first, second, third};  // more than the hardware waits for
      nop.wait_for = all;
      const CallId last = rank.engine.submit(nop);
      EXPECT_FALSE(rank.engine.test(last).complete);
      hold.open(rank);
      EXPECT_EQ(rank.finish(last).code, ErrorCode::kOk);
      for (const CallId id : all) {
        const CallResult result = rank.finish(id);
        EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
      }
      EXPECT_EQ(copied, data_of(rank.rank, count));
      EXPECT_EQ(summed, sum_of(3, count));
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(twice[i], data_of(9, count)[i] + sum_of(3, count)[i]);
    }
  });
}

TEST_P(Ways, AFollowerWhoseBuffersOverlapInPartWaitsForTheHost) {
  run_ranks(2, job(), [](Rank& rank) {
    auto src = data_of(rank.rank, 100);
    std::vector<std::int32_t> memory(300, -1), out(200);
    CallRequest copy = request(Collective::kCopy, 100);
    copy.src = bind(src);
    copy.dst = {reinterpret_cast<std::byte*>(memory.data()), 400};
    const CallId left = rank.engine.submit(copy);
    copy.dst.data += 400;
    const CallId right = rank.engine.submit(copy);
    CallRequest sum = request(Collective::kAllreduce, 200, 0, Func::kSum);  // of halves of two results
    sum.src = {reinterpret_cast<std::byte*>(memory.data()) + 200, 800};
    sum.dst = bind(out);
    const CallId before[] = {left, right};
    sum.wait_for = before;
    const CallResult result = rank.run(sum);
    EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
    const auto one = sum_of(2, 100);
    for (std::size_t i = 0; i < 50; ++i) ASSERT_EQ(out[i], one[50 + i]);
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(out[50 + i], one[i]);
    for (std::size_t i = 0; i < 50; ++i) ASSERT_EQ(out[150 + i], -2);
    rank.finish(left);
    rank.finish(right);
  });
}

TEST_P(Ways, AFollowerThatGoesBeyondAResultWaitsForTheHost) {
  std::atomic<std::uint32_t> there{0};
  run_ranks(2, job(), [&](Rank& rank) {
    Hold hold(there);
    const CallId held = hold.begin(rank);
    auto src = data_of(rank.rank, 2000);
    std::vector<std::int32_t> memory(2000, -1), out(1500);
    CallRequest copy = request(Collective::kCopy, 1000);
    copy.src = bind(src);
    copy.dst = bind(memory);
    copy.wait_for = {&held, 1};
    const CallId first = rank.engine.submit(copy);
    CallRequest sum = request(Collective::kAllreduce, 1500, 0, Func::kSum);
    sum.src = {reinterpret_cast<std::byte*>(memory.data() + 500), 6000};
    sum.dst = bind(out);
    sum.wait_for = {&first, 1};
    const CallId second = rank.engine.submit(sum);
    hold.open(rank);
    const CallResult result = rank.finish(second);
    EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
    const auto both = sum_of(2, 1000);
    for (std::size_t i = 0; i < 1500; ++i) ASSERT_EQ(out[i], i < 500 ? both[500 + i] : -2);
    rank.finish(first);
  });
}

TEST_P(Ways, ACallThatWaitsInTheHostIsNotOvertaken) {
  std::atomic<std::uint32_t> there{0};
  run_ranks(2, job(), [&](Rank& rank) {
    auto a = data_of(rank.rank, 6), b = data_of(rank.rank + 20, 6);
    std::vector<std::int32_t> sum_a(6), sum_b(6);
    Hold holds[] = {Hold(there), Hold(there), Hold(there)};
    std::vector<CallId> before;
    for (Hold& hold : holds) before.push_back(hold.begin(rank));
    CallRequest first = allreduce(a, sum_a);
    if (rank.rank == 0) first.wait_for = before;  // more than the hardware waits for
    const CallId ids[] = {rank.engine.submit(first), rank.engine.submit(allreduce(b, sum_b))};
    for (Hold& hold : holds) hold.open(rank);
    for (const CallId id : ids) {
      const CallResult result = rank.finish(id);
      EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
    }
    EXPECT_EQ(sum_a, sum_of(2, 6));
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(sum_b[i], data_of(20, 6)[i] + data_of(21, 6)[i]);
  });
}

TEST_P(Ways, EveryPredecessorIsWaitedFor) {
  std::atomic<std::uint32_t> there{0};
  run_ranks(2, job(), [&](Rank& rank) {
    Hold holds[] = {Hold(there), Hold(there), Hold(there), Hold(there)};
    std::vector<CallId> before;
    for (Hold& hold : holds) before.push_back(hold.begin(rank));
    CallRequest nop = request(Collective::kNop, 0);
    nop.wait_for = before;
    const CallId last = rank.engine.submit(nop);
    for (Hold& hold : holds) {
      for (int i = 0; i < 20; ++i) {
        rank.engine.pass(microseconds(20));
        EXPECT_FALSE(rank.engine.test(last).complete);
      }
      hold.open(rank);
    }
    EXPECT_EQ(rank.finish(last).code, ErrorCode::kOk);
  });
}

TEST_P(Ways, MoreCallsThanTheDeviceHoldsWaitInTheHost) {
  run_ranks(2, job(), [](Rank& rank) {
    constexpr std::size_t kCalls = 150;
    std::vector<std::vector<std::int32_t>> src, dst(kCalls, std::vector<std::int32_t>(20));
    std::vector<CallId> ids;
    for (std::size_t i = 0; i < kCalls; ++i) src.push_back(data_of(rank.rank * 3 + static_cast<std::uint32_t>(i), 20));
    for (std::size_t i = 0; i < kCalls; ++i) ids.push_back(rank.engine.submit(allreduce(src[i], dst[i])));
    for (std::size_t i = kCalls; i-- > 0;) {
      const CallResult result = rank.finish(ids[i]);
      ASSERT_EQ(result.code, ErrorCode::kOk) << result.message;
      for (std::size_t k = 0; k < 20; ++k) {
        ASSERT_EQ(dst[i][k],
                  data_of(static_cast<std::uint32_t>(i), 20)[k] + data_of(3 + static_cast<std::uint32_t>(i), 20)[k]);
      }
    }
  });
}

TEST_P(Ways, ThreadsOfOneRankShareItsDevice) {
  run_ranks(2, job(), [](Rank& rank) {
    std::vector<std::thread> threads;
    for (std::uint32_t lane = 0; lane < 4; ++lane) {
      threads.emplace_back([&, lane] {
        for (std::uint32_t round = 0; round < 20; ++round) {
          auto own = data_of(rank.rank * 50 + lane * 5 + round, 30);
          std::vector<std::int32_t> got(30);
          CallRequest made = request(rank.rank == 0 ? Collective::kSend : Collective::kRecv, 30, 1 - rank.rank);
          made.src = bind(own);
          made.dst = bind(got);
          made.tag = lane;
          const CallResult result = rank.run(made);
          EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
          EXPECT_EQ(got, rank.rank == 1 ? data_of(lane * 5 + round, 30) : std::vector<std::int32_t>(30));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(Ways, AFailureOnOneRankEndsTheCommunicatorOnAll) {
  run_ranks(3, job(), [](Rank& rank) {
    auto src = data_of(rank.rank, 8);
    std::vector<std::int32_t> dst(8);
    CallRequest made = allreduce(src, dst);
    const CallId before = rank.engine.submit(made);  // others may hear of the end while they are still at it
    EXPECT_THAT(rank.finish(before).code, testing::AnyOf(ErrorCode::kOk, ErrorCode::kRevoked));
    if (rank.rank == 0) rank.engine.revoke(0, "no more of this");
    const CallResult result = [&]() -> CallResult {
      try {
        return rank.run(made);
      } catch (const Error& error) {
        return {true, error.code(), error.what(), 0};
      }
    }();
    EXPECT_EQ(result.code, ErrorCode::kRevoked) << result.message;
    EXPECT_THAT(result.message, HasSubstr("revoked"));
    EXPECT_THAT(refusal(ErrorCode::kRevoked, [&] { rank.engine.submit(made); }), HasSubstr("communicator 0"));
    // Another communicator serves as before.
    rank.engine.create_communicator(5, 0, ranks_up_to(3), rank.agreed);
    rank.engine.progress();
  });
}

TEST_P(Ways, ADeadlineEndsACallThatNobodyAnswers) {
  run_ranks(2, job(), [](Rank& rank) {
    if (rank.rank != 0) return;
    std::vector<std::int32_t> data(4);
    CallRequest made = request(Collective::kRecv, 4, 1);
    made.dst = bind(data);
    made.timeout = milliseconds(50);
    const auto begin = std::chrono::steady_clock::now();
    const CallResult result = rank.run(made);
    EXPECT_EQ(result.code, ErrorCode::kTimeout);
    EXPECT_THAT(result.message, AllOf(HasSubstr("recv (communicator 0, rank 0, peer 1"), HasSubstr("50 ms")));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(15));
  });
}

TEST_P(Ways, ACommunicatorFreedUnderItsCallsFailsThem) {
  run_ranks(2, job(), [](Rank& rank) {
    for (std::uint32_t round = 0; round < 20; ++round) {  // more than the table has places
      const std::uint32_t number = 10 + round;
      rank.engine.create_communicator(number, 0, ranks_up_to(2), rank.agreed);
      if (rank.rank != 0) {
        rank.engine.free_communicator(number);
        continue;
      }
      std::vector<std::int32_t> data(4);
      CallRequest made = request(Collective::kRecv, 4, 1);
      made.communicator = number;
      made.dst = bind(data);
      made.timeout = milliseconds(50);
      const CallId id = rank.engine.submit(made);
      rank.engine.free_communicator(number);
      const CallResult result = rank.finish(id);
      EXPECT_EQ(result.code, ErrorCode::kFreedCommunicator) << result.message;
      refusal(ErrorCode::kFreedCommunicator, [&] { rank.engine.submit(made); });
      // The place is free when the device has let go of the call.
      for (int i = 0; i < 100 && round > 10; ++i) {
        rank.engine.progress();
        if (GetParam() == Way::kFunctional) std::this_thread::sleep_for(milliseconds(1));
      }
    }
  });
}

TEST_P(Ways, APlaceInTheTableServesOneCommunicatorAfterTheOther) {
  run_ranks(3, job(), [](Rank& rank) {
    for (std::uint32_t round = 0; round < 40; ++round) {
      // Of all ranks, and of two of them in another order, so that members change places and leave.
      const bool all = round % 2 == 0;
      const std::vector<std::uint32_t> members =
          all ? std::vector<std::uint32_t>{2, 0, 1} : std::vector<std::uint32_t>{1, 0};
      const std::uint32_t number = 100 + round;
      auto mine = data_of(rank.rank + round, 700);
      std::vector<std::int32_t> out(700);
      if (all || rank.rank < 2) {
        rank.engine.create_communicator(number, 0, members, rank.agreed);
        EXPECT_EQ(rank.engine.size(number), members.size());
        EXPECT_EQ(members[rank.engine.rank(number)], rank.rank);
      }
      CallRequest barrier = request(Collective::kBarrier, 0);
      ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);
      if (!all && rank.rank == 2) continue;
      CallRequest sum = allreduce(mine, out);
      sum.communicator = number;
      const CallResult result = rank.run(sum);
      ASSERT_EQ(result.code, ErrorCode::kOk) << result.message;
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::int32_t expected = 0;
        for (const std::uint32_t member : members) expected += data_of(member + round, 700)[i];
        ASSERT_EQ(out[i], expected) << round;
      }
      rank.engine.free_communicator(number);
    }
  });
}

TEST(DeviceEngine, SixteenCommunicatorsAndSixtyFourRanks) {
  run_ranks(1, {}, [](Rank& rank) {
    for (std::uint32_t number = 1; number < 16; ++number)
      rank.engine.create_communicator(number, 0, {{0}}, rank.agreed);
    EXPECT_THAT(refusal(ErrorCode::kCapacity, [&] { rank.engine.create_communicator(16, 0, {{0}}, rank.agreed); }),
                HasSubstr("16 communicators"));
    rank.engine.free_communicator(7);
    rank.engine.create_communicator(16, 0, {{0}}, rank.agreed);
    const auto many = ranks_up_to(65);
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.create_communicator(17, 0, many, rank.agreed); }),
                AllOf(HasSubstr("65 ranks"), HasSubstr("up to 64")));
    std::vector<std::int32_t> src{1, 2}, dst(2);
    CallRequest made = allreduce(src, dst);
    for (const std::uint32_t number : {0U, 16U}) {
      made.communicator = number;
      EXPECT_EQ(rank.run(made).code, ErrorCode::kOk);
      EXPECT_EQ(dst, src);
    }
  });
}

TEST(DeviceEngine, WhatAMemberLacksIsRefusedOnEveryRank) {
  Job job;
  job.capability = [](std::uint32_t rank) {
    Capability own = FunctionalDevice::usual_capability();
    if (rank == 1) {
      own.datatypes &= ~(1U << static_cast<unsigned>(Datatype::kFp64));
      own.funcs = static_cast<std::uint16_t>(own.funcs & ~(1U << static_cast<unsigned>(Func::kProd)));
      own.lists = false;
    }
    if (rank == 2) own.fan_in = false;
    return own;
  };
  run_ranks(3, job, [](Rank& rank) {
    std::vector<double> src(4, 1.0), dst(4);
    CallRequest made = request(Collective::kAllreduce, 4, 0, Func::kSum);
    made.call.dtype = Datatype::kFp64;
    made.src = bind(src);
    made.dst = bind(dst);
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(made); }), HasSubstr("lacks sum of fp64"));
    made.call.dtype = Datatype::kInt64;
    made.call.func = Func::kProd;
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(made); }), HasSubstr("lacks prod"));
    made.call.func = Func::kSum;
    made.algorithm = find_algorithm(Collective::kAllreduce, "flat");
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(made); }),
                AllOf(HasSubstr("allreduce on communicator 0: algorithm flat"), HasSubstr("a member lacks")));
    made.algorithm = find_algorithm(Collective::kAllreduce, "ring");  // nothing was sent: the next call is sound
    EXPECT_EQ(rank.run(made).code, ErrorCode::kOk);
  });
}

// What peers have put is in the window when a call of its rank has ended, and what its host changes there is seen by
// peers from its next call on, both in one window, byte by byte.
TEST(DeviceEngine, PutAndGetReachWindows) {
  run_ranks(3, {}, [](Rank& rank) {
    const std::uint32_t own = rank.rank, size = 3;
    const CallRequest barrier = request(Collective::kBarrier, 0);
    std::vector<std::int32_t> window(9000);
    const auto number = [](std::uint32_t of, std::size_t at) { return static_cast<std::int32_t>(of * 100'000 + at); };
    for (std::size_t i = 0; i < window.size(); ++i) window[i] = number(own, i);
    rank.engine.bind_window(0, bind(window));
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);

    std::vector<std::int32_t> got(5001);
    CallRequest get = request(Collective::kGet, got.size(), (own + 1) % size);
    get.dst = bind(got);
    get.window_offset = 4 * 77;
    ASSERT_EQ(rank.run(get).code, ErrorCode::kOk);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], number((own + 1) % size, i + 77));
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);

    // The host writes one part of its window while a peer puts to another.
    std::vector<std::int32_t> out(3001);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = -number(own, i);
    CallRequest put = request(Collective::kPut, out.size(), (own + 1) % size);
    put.src = bind(out);
    put.window_offset = 4 * 1000;
    for (std::size_t i = 5000; i < 6000; ++i) window[i] = number(own + 7, i);
    ASSERT_EQ(rank.run(put).code, ErrorCode::kOk);
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);
    const std::uint32_t before = (own + 2) % size;
    for (std::size_t i = 0; i < window.size(); ++i) {
      const bool written = i >= 1000 && i < 4001, changed = i >= 5000 && i < 6000;
      ASSERT_EQ(window[i], written ? -number(before, i - 1000) : number(changed ? own + 7 : own, i)) << i;
    }
    get.window_offset = 4 * 3900;
    get.call.root = before;
    ASSERT_EQ(rank.run(get).code, ErrorCode::kOk);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t at = i + 3900;
      const std::uint32_t writer = (before + 2) % size;
      const bool changed = at >= 5000 && at < 6000;
      ASSERT_EQ(got[i], at < 4001 ? -number(writer, at - 1000) : number(changed ? before + 7 : before, at)) << i;
    }
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);

    // Refused whole, and nothing else is lost.
    put.window_offset = 4 * 9000 - 4 * 3000;
    const CallResult refused = rank.run(put);
    EXPECT_EQ(refused.code, ErrorCode::kBufferTooSmall) << refused.message;
    get.window_offset = 4 * 9000;
    EXPECT_EQ(rank.run(get).code, ErrorCode::kBufferTooSmall);
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);
    for (std::size_t i = 6000; i < window.size(); ++i) ASSERT_EQ(window[i], number(own, i)) << i;
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);
    rank.engine.bind_window(0, {});
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);
    put.window_offset = 0;
    EXPECT_EQ(rank.run(put).code, ErrorCode::kBufferTooSmall);
    ASSERT_EQ(rank.run(barrier).code, ErrorCode::kOk);
  });
}

TEST(DeviceEngine, WhatNoDeviceDoesIsRefusedInWords) {
  Job job;
  job.capability = [](std::uint32_t rank) {
    Capability own = FunctionalDevice::usual_capability();
    own.remote_memory = rank != 1;
    own.radices = rank != 1;
    return own;
  };
  run_ranks(2, job, [](Rank& rank) {
    std::vector<std::int32_t> a(4), b(4);
    CallRequest put = request(Collective::kPut, 4, 1 - rank.rank);
    put.src = bind(a);
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(put); }), HasSubstr("put and get"));
    CallRequest get = request(Collective::kGet, 4, 1 - rank.rank);
    get.dst = bind(a);
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(get); }), HasSubstr("put and get"));
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.bind_window(0, bind(a)); }), HasSubstr("window"));
    rank.engine.bind_window(0, {});
    CallRequest made = allreduce(a, b);
    made.algorithm = find_algorithm(Collective::kAllreduce, "direct");
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(made); }), HasSubstr("share none"));
    // Rank 1 has algorithms with their usual radix only, so no rank takes another one.
    CallRequest tree = request(Collective::kBcast, 4, 0);
    tree.dst = bind(a);
    tree.algorithm = find_algorithm(Collective::kBcast, "knomial");
    tree.call.radix = 3;
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(tree); }),
                HasSubstr("knomial with radix 3: the engine of some member has radix 4 only"));
    tree.call.radix = 1;
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, [&] { rank.engine.submit(tree); }), HasSubstr("2 to 255"));
    tree.algorithm = find_algorithm(Collective::kBcast, "linear");
    EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, [&] { rank.engine.submit(tree); }), HasSubstr("has no radix"));
    tree.algorithm = find_algorithm(Collective::kBcast, "knomial");
    tree.call.radix = 4;
    ASSERT_EQ(rank.run(tree).code, ErrorCode::kOk);
    CallRequest program = request(Collective::kProgram, 0);
    const auto copies = [&](std::size_t moves, Region to) {
      Program copy;
      Move move;
      move.kind = MoveKind::kMove;
      move.dtype = Datatype::kInt64;
      move.count = 1;
      move.op0 = {.kind = OperandKind::kMemory, .region = Region::kSrc};
      move.local = {.kind = OperandKind::kMemory, .region = to};
      copy.moves.assign(moves, move);
      for (std::size_t i = 1; i < moves; ++i) copy.moves[i].dependencies = 1;
      copy.params_bytes = 8;
      return std::make_shared<const Program>(std::move(copy));
    };
    program.call.dtype = Datatype::kInt64;
    program.src = bind(a);
    program.dst = bind(b);
    program.program = copies(kProgramMoves + 1, Region::kDst);
    EXPECT_THAT(refusal(ErrorCode::kCapacity, [&] { rank.engine.submit(program); }),
                HasSubstr("4097 moves and 0 words of peer lists; a device holds 4096 and 64"));
    program.program = copies(1, Region::kParams);
    EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { rank.engine.submit(program); }), HasSubstr("its own params"));
    EXPECT_EQ(rank.engine.fast_path(0), nullptr);
    // A receive must be as long as its message, for the registers have no place for a length.
    CallRequest message =
        request(rank.rank == 0 ? Collective::kSend : Collective::kRecv, rank.rank == 0 ? 3 : 4, 1 - rank.rank);
    (rank.rank == 0 ? message.src : message.dst) = bind(a);
    const CallResult result = rank.run(message);
    EXPECT_EQ(result.code, rank.rank == 0 ? ErrorCode::kOk : ErrorCode::kUnsupported);
    EXPECT_THAT(result.message, HasSubstr(rank.rank == 1 ? "as long as its message" : ""));
    made.algorithm = -1;
    EXPECT_EQ(rank.run(made).code, ErrorCode::kOk);
  });
}

// The moves of one program fill more than half of the memory; what is loaded makes room for the next, and for buffers.
TEST(DeviceEngine, MemoryOfProgramsThatNoCallUsesIsGivenBack) {
  Job job;
  job.memory_bytes = 64 * 1024;
  run_ranks(2, job, [](Rank& rank) {
    constexpr std::size_t kCount = 601;
    std::vector<std::shared_ptr<const Program>> programs;
    const std::vector<std::size_t> steps{1, 7, 11};
    for (const std::size_t step : steps) {
      Program copy;
      for (std::size_t i = 0; i < kCount; ++i) {
        Move move;
        move.kind = MoveKind::kMove;
        move.dtype = Datatype::kInt32;
        move.count = 1;
        move.op0 = {.kind = OperandKind::kMemory, .region = Region::kSrc, .offset = 4 * (i * step % kCount)};
        move.local = {.kind = OperandKind::kMemory, .region = Region::kDst, .offset = 4 * i};
        copy.moves.push_back(move);
      }
      programs.push_back(std::make_shared<const Program>(std::move(copy)));
    }
    const std::vector<std::int32_t> src = data_of(rank.rank, kCount);
    for (std::size_t turn = 0; turn < 2; ++turn) {
      for (std::size_t i = 0; i < programs.size(); ++i) {
        std::vector<std::int32_t> from = src, to(kCount);
        CallRequest made = request(Collective::kProgram, 0);
        made.call.dtype = Datatype::kInt32;
        made.program = programs[i];
        made.src = bind(from);
        made.dst = bind(to);
        const CallResult result = rank.run(made);
        ASSERT_EQ(result.code, ErrorCode::kOk) << result.message;
        for (std::size_t k = 0; k < kCount; ++k) ASSERT_EQ(to[k], src[k * steps[i] % kCount]) << i << ", " << k;
      }
      std::vector<std::int32_t> most(7000), out(7000);
      CallRequest made = allreduce(most, out);
      made.algorithm = find_algorithm(Collective::kAllreduce, "reduce_bcast");
      const CallResult result = rank.run(made);
      ASSERT_EQ(result.code, ErrorCode::kOk) << result.message;
    }
  });
}

TEST(DeviceEngine, MemoryIsReusedAndWhatDoesNotFitIsRefused) {
  Job job;
  job.memory_bytes = 64 * 1024;
  run_ranks(2, job, [](Rank& rank) {
    std::vector<std::int32_t> big(10'000), out(10'000);
    CallRequest made = allreduce(big, out);
    EXPECT_THAT(refusal(ErrorCode::kOutOfMemory, [&] { rank.engine.submit(made); }),
                AllOf(HasSubstr("bytes of device memory"), HasSubstr("65536")));
    // Calls of 24000 bytes each: two fit at a time.
    constexpr std::uint32_t kCalls = 12;
    std::vector<std::vector<std::int32_t>> src, dst(kCalls, std::vector<std::int32_t>(3000));
    std::vector<CallId> ids;
    for (std::uint32_t i = 0; i < kCalls; ++i) src.push_back(data_of(rank.rank + 2 * i, 3000));
    for (std::size_t i = 0; i < kCalls; ++i) {
      CallRequest one = allreduce(src[i], dst[i]);
      one.algorithm = find_algorithm(Collective::kAllreduce, "reduce_bcast");
      ids.push_back(rank.engine.submit(one));
    }
    for (const CallId id : ids) {
      const CallResult result = rank.finish(id);
      ASSERT_EQ(result.code, ErrorCode::kOk) << result.message;
    }
    for (std::uint32_t i = 0; i < kCalls; ++i) {
      for (std::size_t k = 0; k < 3000; ++k) {
        ASSERT_EQ(dst[i][k], data_of(2 * i, 3000)[k] + data_of(1 + 2 * i, 3000)[k]);
      }
    }
    std::vector<std::int32_t> nearly(8000), result(8000);  // all of the memory again, so nothing was lost
    CallRequest last = allreduce(nearly, result);
    last.algorithm = find_algorithm(Collective::kAllreduce, "reduce_bcast");
    EXPECT_EQ(rank.run(last).code, ErrorCode::kOk);
  });
}

TEST(DeviceEngine, SettingsAreCutToTheHardware) {
  EngineSettings settings;  // those of the native engine
  settings.rx_buffer_count = 1000;
  const std::uint64_t word = encode(FunctionalDevice::usual_capability())[0];
  const Agreement capabilities = DeviceEngine::capabilities_of(word, settings);
  EXPECT_EQ(capabilities.segment_bytes, 8128U);
  EXPECT_EQ(capabilities.eager_limit, 8128U);
  EXPECT_EQ(capabilities.rx_buffer_count, 64U);
  // There are 512 for all peers.
  EXPECT_EQ(DeviceEngine::capabilities_of(word, settings, 9).rx_buffer_count, 64U);
  EXPECT_EQ(DeviceEngine::capabilities_of(word, settings, 64).rx_buffer_count, 8U);
  EXPECT_EQ(capabilities.capability, word);
  Capability small = FunctionalDevice::usual_capability();
  small.log2_max_segment = 10;
  EXPECT_EQ(DeviceEngine::capabilities_of(encode(small)[0], settings).segment_bytes, 1024U);
  settings.rx_buffer_count = 0;
  refusal(ErrorCode::kInvalidArgument, [&] { DeviceEngine::capabilities_of(word, settings); });
}

// -------------------------------------------------------------------------------------- devices that fail

/// Passes everything on, until something is to go wrong.
class Faulty final : public Device {
 public:
  explicit Faulty(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  std::uint32_t read(std::uint32_t offset) override {
    touch();
    const std::uint32_t value = inner_->read(offset);
    if (offset == stuck_at) return stuck_value;
    return value;
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    touch();
    inner_->write(offset, value);
  }
  std::uint64_t memory_address() const override { return inner_->memory_address(); }
  std::uint64_t memory_bytes() const override { return inner_->memory_bytes(); }
  void store(std::uint64_t address, std::span<const std::byte> bytes) override {
    touch();
    inner_->store(address, bytes);
  }
  void load(std::uint64_t address, std::span<std::byte> bytes) override {
    touch();
    inner_->load(address, bytes);
  }
  bool wait(microseconds at_most) override {
    touch();
    return inner_->wait(at_most);
  }
  std::chrono::nanoseconds now() override { return inner_->now(); }
  std::uint32_t node() const override { return inner_->node(); }

  std::uint64_t left = ~std::uint64_t{0};  ///< uses until it is gone
  std::uint32_t stuck_at = ~0U;
  std::uint32_t stuck_value = 0;

 private:
  void touch() {
    if (left == 0) throw Error(ErrorCode::kDeviceLost, "the card has fallen out");
    --left;
  }
  std::unique_ptr<Device> inner_;
};

TEST(DeviceEngine, ADeviceThatGoesEndsAllCallsWithoutWaiting) {
  for (std::uint64_t uses = 0; uses < 120; uses += 7) {
    Faulty* faulty = nullptr;
    Job job;
    job.wrap = [&](std::uint32_t, std::unique_ptr<Device> inner) {
      auto made = std::make_unique<Faulty>(std::move(inner));
      faulty = made.get();
      return made;
    };
    run_ranks(1, job, [&](Rank& rank) {
      std::vector<std::int32_t> src(10), dst(10);
      CallRequest made = allreduce(src, dst);
      faulty->left = uses;
      std::vector<CallId> ids;
      ErrorCode refused = ErrorCode::kOk;
      for (int i = 0; i < 6; ++i) {
        try {
          ids.push_back(rank.engine.submit(made));
        } catch (const Error& error) {
          refused = error.code();
        }
      }
      bool all = true;
      for (const CallId id : ids) {
        const CallResult result = rank.finish(id);
        EXPECT_TRUE(result.code == ErrorCode::kOk || result.code == ErrorCode::kDeviceLost) << result.message;
        if (result.code == ErrorCode::kOk) continue;
        all = false;
        EXPECT_THAT(result.message, AllOf(HasSubstr("allreduce (communicator 0"), HasSubstr("fallen out")));
      }
      if (faulty->left != 0) return;
      EXPECT_FALSE(all && refused == ErrorCode::kOk);
      EXPECT_TRUE(refused == ErrorCode::kOk || refused == ErrorCode::kDeviceLost);
      EXPECT_THAT(refusal(ErrorCode::kDeviceLost, [&] { rank.engine.submit(made); }), HasSubstr("fallen out"));
      refusal(ErrorCode::kDeviceLost, [&] { rank.engine.create_communicator(9, 0, {{0}}, rank.agreed); });
      rank.engine.free_communicator(0);
    });
  }
}

TEST(DeviceEngine, ADeviceThatNeverAnswersIsGivenUp) {
  Faulty* faulty = nullptr;
  Job job;
  job.wrap = [&](std::uint32_t, std::unique_ptr<Device> inner) {
    auto made = std::make_unique<Faulty>(std::move(inner));
    faulty = made.get();
    return made;
  };
  run_ranks(1, job, [&](Rank& rank) {
    faulty->stuck_at = exchange::kStatus;
    faulty->stuck_value = registers::kStatusReady;
    std::vector<std::int32_t> src(10), dst(10);
    CallRequest made = allreduce(src, dst);
    made.timeout = milliseconds(20);
    const CallResult result = rank.run(made);
    EXPECT_EQ(result.code, ErrorCode::kTimeout);
    EXPECT_THAT(result.message, HasSubstr("may be stuck"));
  });
}

TEST(DeviceEngine, BringUpSaysWhatIsWrong) {
  const auto bring_up = [](std::uint32_t offset, std::uint32_t value) {
    ThreadJob job(1);
    const auto network = job.endpoint(0);
    auto device = std::make_unique<Faulty>(std::make_unique<FunctionalDevice>(*network));
    device->stuck_at = offset;
    device->stuck_value = value;
    DeviceOptions options;
    options.nodes = {0};
    options.firmware = {1, 2, 3};
    const DeviceEngine engine(std::move(device), std::move(options));
  };
  EXPECT_THAT(refusal(ErrorCode::kDeviceLost, [&] { bring_up(exchange::kIdentity, 0xffffffff); }),
              HasSubstr("0xffffffff"));
  EXPECT_THAT(refusal(ErrorCode::kUnsupported, [&] { bring_up(exchange::kVersion, 0x00070001); }),
              HasSubstr("0x00070001"));
  EXPECT_THAT(refusal(ErrorCode::kDeviceLost, [&] { bring_up(exchange::kControl, registers::kControlReset); }),
              HasSubstr("reset"));
  EXPECT_THAT(refusal(ErrorCode::kDeviceLost, [&] { bring_up(exchange::kFirmwareData, 77); }), HasSubstr("firmware"));
  EXPECT_THAT(refusal(ErrorCode::kDeviceLost, [&] { bring_up(exchange::kStatus, 0); }), HasSubstr("ready"));
}

TEST(DeviceEngine, HostsLearnWhoHasGone) {
  Job job;
  job.way = Way::kSocket;
  // The rank that learns of it first gives the communicator up, and the device may tell the other one of that before
  // its host has heard who has gone.
  std::atomic<int> know_it{0};
  run_ranks_that_may_leave(3, job, [&](Rank& rank) {
    std::vector<std::int32_t> src(10), dst(10);
    CallRequest made = allreduce(src, dst);
    EXPECT_EQ(rank.run(made).code, ErrorCode::kOk);
    if (rank.rank == 2) return false;
    const CallResult result = rank.run(made);
    know_it += result.code == ErrorCode::kPeerDead ? 1 : 0;
    EXPECT_THAT(result.code, AnyOf(ErrorCode::kPeerDead, ErrorCode::kRevoked)) << result.message;
    EXPECT_THAT(result.message, AllOf(HasSubstr("allreduce"), HasSubstr("rank")));
    return true;
  });
  EXPECT_GE(know_it, 1);
}

TEST(DeviceEngine, AWaitReturnsInTimeWhileAnotherRankComputes) {
  Job job;
  job.way = Way::kSocket;
  std::atomic<bool> submitted{false};
  std::atomic<bool> computing{false};
  run_ranks(2, job, [&](Rank& rank) {
    auto src = data_of(rank.rank, 10);
    std::vector<std::int32_t> dst(10);
    CallRequest made = allreduce(src, dst);
    if (rank.rank == 1) {
      while (!submitted) rank.engine.pass(microseconds(20));
      computing = true;
      std::this_thread::sleep_for(milliseconds(700));
      EXPECT_EQ(rank.run(made).code, ErrorCode::kOk);
      return;
    }
    const CallId id = rank.engine.submit(made);
    submitted = true;
    int returned = 0;
    CallResult result;
    do {
      const auto begin = std::chrono::steady_clock::now();
      const bool stands = computing;
      result = returned % 2 == 0 ? rank.engine.wait(id, milliseconds(20)) : rank.engine.test(id);
      const auto took = std::chrono::steady_clock::now() - begin;
      if (!result.complete && stands) ++returned;
      EXPECT_LT(took, milliseconds(500));
    } while (!result.complete);
    EXPECT_GE(returned, 3);
    EXPECT_EQ(result.code, ErrorCode::kOk) << result.message;
    EXPECT_EQ(dst, sum_of(2, 10));
  });
}

TEST(DeviceEngine, HostsPassOnTheReasonOfAFailure) {
  Job job;
  job.way = Way::kSocket;
  run_ranks(3, job, [](Rank& rank) {
    std::vector<std::int32_t> src(10), dst(10);
    CallRequest made = allreduce(src, dst);
    if (rank.rank == 1) {
      rank.engine.revoke(0, "rank 1 has had enough");
      return;
    }
    const CallResult result = [&]() -> CallResult {
      try {
        return rank.run(made);
      } catch (const Error& error) {
        return {true, error.code(), error.what(), 0};
      }
    }();
    EXPECT_EQ(result.code, ErrorCode::kRevoked);
    EXPECT_THAT(result.message, HasSubstr("rank 1 has had enough"));
  });
}

}  // namespace
}  // namespace unisono::test
