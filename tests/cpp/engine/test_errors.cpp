// What goes wrong, and what is said about it.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "engine/admit.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

void expect_result(const CallResult& result, ErrorCode code, const std::vector<std::string>& words) {
  EXPECT_EQ(result.code, code) << result.message;
  for (const std::string& word : words) EXPECT_NE(result.message.find(word), std::string::npos) << result.message;
}

struct Buffers {
  std::vector<std::int32_t> src = std::vector<std::int32_t>(4096, 5), dst = std::vector<std::int32_t>(4096);
};

CallRequest collective(Collective kind, std::uint64_t count, Buffers& buffers, const char* algorithm = nullptr) {
  CallRequest r = request<std::int32_t>(kind, count, 0, Func::kSum);
  r.src = bind(buffers.src);
  r.dst = bind(buffers.dst);
  if (algorithm != nullptr) r.algorithm = find_algorithm(kind, algorithm);
  return r;
}

class Errors : public testing::TestWithParam<std::uint32_t> {
 protected:
  static EngineSettings settings() {
    EngineSettings made = quick_settings();
    made.eager_limit = GetParam();
    return made;
  }
};

TEST_P(Errors, TimeoutNamesWhoIsMissing) {
  run_ranks(4, settings(), [](Rank& self) {
    Buffers buffers;
    CallRequest r = collective(Collective::kAllreduce, 1000, buffers, "ring");
    r.timeout = milliseconds(300);
    if (self.rank == 2) {  // does not come, though its engine is alive
      const auto end = std::chrono::steady_clock::now() + milliseconds(600);
      while (std::chrono::steady_clock::now() < end) self.engine.progress();
      EXPECT_THROW(self.engine.submit(r), Error);
      return;
    }
    const CallResult result = self.engine.wait(self.engine.submit(r));
    // The first rank to give up says who is missing, and so do the others, or they repeat its words.
    EXPECT_TRUE(result.code == ErrorCode::kTimeout || result.code == ErrorCode::kRevoked) << result.message;
    expect_result(
        result, result.code,
        {"allreduce", "communicator 0", "sequence 0", "ring", "timed out after 300 ms", "Not arrived: rank 2"});
    // After that the communicator is revoked here too.
    try {
      self.engine.submit(r);
      ADD_FAILURE() << "a revoked communicator took a call";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRevoked);
    }
  });
}

TEST_P(Errors, TimeoutOfAReceive) {
  run_ranks(2, settings(), [](Rank& self) {
    if (self.rank == 1) return;
    Buffers buffers;
    CallRequest r = collective(Collective::kRecv, 10, buffers);
    r.call.root = 1;
    r.tag = 77;
    r.timeout = milliseconds(50);
    expect_result(self.engine.wait(self.engine.submit(r)), ErrorCode::kTimeout,
                  {"recv", "peer 1", "tag 77", "50 ms", "waits for a message", "rank 1"});
  });
}

TEST_P(Errors, MismatchedCallsAreExplainedOnBothSides) {
  run_ranks(2, settings(), [](Rank& self) {
    Buffers buffers;
    const CallRequest r = self.rank == 0 ? collective(Collective::kAllreduce, 1000, buffers, "ring")
                                         : collective(Collective::kAllreduce, 999, buffers, "ring");
    expect_result(
        self.engine.wait(self.engine.submit(r)), ErrorCode::kMismatchedCall,
        {"allreduce(1000 int32", "allreduce(999 int32", "sequence 0", "rank " + std::to_string(1 - self.rank)});
  });
}

TEST_P(Errors, OthersLearnOfAMismatch) {
  run_ranks(3, settings(), [](Rank& self) {
    Buffers buffers;
    CallRequest r = collective(self.rank == 0 ? Collective::kBarrier : Collective::kAllreduce, 100, buffers);
    r.timeout = seconds(20);
    CallResult result;
    try {
      result = self.engine.wait(self.engine.submit(r));
    } catch (const Error& error) {
      result.code = error.code();
    }
    EXPECT_TRUE(result.code == ErrorCode::kMismatchedCall || result.code == ErrorCode::kRevoked) << result.message;
  });
}

TEST_P(Errors, PeerThatLeftIsNamed) {
  // Not by run_ranks, for here a rank leaves early.
  for (const bool lanes : {false, true}) {
    ThreadJob job(2);
    std::unique_ptr<Poe> networks[2] = {job.endpoint(0), job.endpoint(1)};
    const std::vector<std::uint32_t> all{0, 1};
    EngineSettings with = settings();
    with.lanes = lanes;
    NativeEngine engine(*networks[0], with);
    const Agreement capabilities = engine.capabilities();
    engine.create_communicator(0, 0, all, agree({&capabilities, 1}));
    networks[1].reset();
    Buffers buffers;
    const CallRequest r = collective(Collective::kAllreduce, 100, buffers);
    // Moves are known where they are run as such; on lanes it is only known who is waited for.
    expect_result(engine.wait(engine.submit(r)), ErrorCode::kPeerDead,
                  {"rank 1", "left the job", "allreduce", lanes ? "waits for a message of rank 1" : "move"});
    // A blocking call ends alike; the communicator is revoked by then.
    try {
      engine.run(r);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRevoked) << error.what();
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
    }
  }
}

TEST_P(Errors, PeerThatLeftIsNamedByABlockingCall) {
  ThreadJob job(3);
  std::unique_ptr<Poe> networks[3] = {job.endpoint(0), job.endpoint(1), job.endpoint(2)};
  const std::vector<std::uint32_t> all{0, 1, 2};
  NativeEngine first(*networks[0], settings());
  auto second = std::make_unique<NativeEngine>(*networks[1], settings());
  NativeEngine third(*networks[2], settings());
  const Agreement capabilities = first.capabilities();
  for (Engine* engine : {&first, second.get(), &third})
    engine->create_communicator(0, 0, all, agree({&capabilities, 1}));
  second.reset();
  networks[1].reset();
  std::vector<std::thread> threads;
  for (Engine* engine : {&first, &third}) {
    threads.emplace_back([engine] {
      Buffers buffers;
      try {
        engine->run(collective(Collective::kAllreduce, 1000, buffers, "ring"));
        ADD_FAILURE();
      } catch (const Error& error) {
        // One finds out, and tells the other.
        EXPECT_TRUE(error.code() == ErrorCode::kPeerDead || error.code() == ErrorCode::kRevoked) << error.what();
        EXPECT_NE(std::string(error.what()).find("rank 1, endpoint 1"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("left the job"), std::string::npos) << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Errors, FreedCommunicatorEndsItsCalls) {
  run_ranks(2, settings(), [](Rank& self) {
    self.engine.create_communicator(5, 1, std::vector<std::uint32_t>{0, 1}, self.agreed);
    if (self.rank == 1) return;
    Buffers buffers;
    CallRequest r = collective(Collective::kAllreduce, 100, buffers);
    r.communicator = 5;
    const CallId id = self.engine.submit(r);
    self.engine.free_communicator(5);
    expect_result(self.engine.wait(id), ErrorCode::kFreedCommunicator, {"communicator 5", "freed"});
    try {
      self.engine.submit(r);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFreedCommunicator);
    }
  });
}

TEST_P(Errors, NothingIsKeptOfNumbersThatAreSettled) {
  run_ranks(2, settings(), [](Rank& self) {
    const std::vector<std::uint32_t> both{0, 1};
    self.engine.create_communicator(5, 0, both, self.agreed);
    self.engine.create_communicator(9, 0, both, self.agreed);
    self.engine.settle_numbers(7);
    self.engine.settle_numbers(3);  // which takes nothing back
    const auto code_of = [](const auto& body) {
      try {
        body();
      } catch (const Error& error) {
        return error.code();
      }
      return ErrorCode::kOk;
    };
    EXPECT_EQ(code_of([&] { self.engine.create_communicator(6, 0, both, self.agreed); }), ErrorCode::kInvalidArgument);
    // Those that live are as they were, and what is freed is known as such.
    for (const std::uint32_t number : {5U, 9U}) {
      Buffers buffers;
      CallRequest call = collective(Collective::kAllreduce, 1, buffers);
      call.communicator = number;
      expect_result(self.engine.wait(self.engine.submit(call)), ErrorCode::kOk, {});
      self.engine.free_communicator(number);
      EXPECT_EQ(code_of([&] { self.engine.submit(call); }), ErrorCode::kFreedCommunicator);
    }
    self.engine.settle_numbers(10);
    EXPECT_EQ(code_of([&] { self.engine.free_communicator(9); }), ErrorCode::kFreedCommunicator);
    self.engine.create_communicator(10, 0, both, self.agreed);
  });
}

TEST_P(Errors, WhatFollowsAFailedCallFails) {
  run_ranks(1, settings(), [](Rank& self) {
    Buffers buffers;
    CallRequest receive = collective(Collective::kRecv, 10, buffers);
    receive.timeout = milliseconds(20);
    const CallId first = self.engine.submit(receive);
    CallRequest copy = collective(Collective::kCopy, 10, buffers);
    copy.wait_for = {&first, 1};
    const CallId second = self.engine.submit(copy);
    EXPECT_FALSE(self.engine.test(second).complete);
    const CallResult result = self.engine.wait(second);
    EXPECT_NE(result.code, ErrorCode::kOk);
    EXPECT_EQ(buffers.dst[0], 0);
    EXPECT_EQ(self.engine.wait(first).code, ErrorCode::kTimeout);
  });
}

INSTANTIATE_TEST_SUITE_P(EagerLimits, Errors, testing::Values(0U, 8192U));

struct Refusal {
  const char* name;
  ErrorCode code;
  std::vector<std::string> words;
  std::function<void(CallRequest&, Buffers&)> spoil;
};

TEST(Arguments, AreCheckedBeforeAnythingIsSent) {
  const std::vector<Refusal> table{
      {"operation",
       ErrorCode::kInvalidArgument,
       {"200"},
       [](auto& r, auto&) { r.call.collective = static_cast<Collective>(200); }},
      {"datatype",
       ErrorCode::kInvalidDatatype,
       {"33"},
       [](auto& r, auto&) { r.call.dtype = static_cast<Datatype>(33); }},
      {"no datatype", ErrorCode::kInvalidDatatype, {"none"}, [](auto& r, auto&) { r.call.dtype = Datatype::kNone; }},
      {"bytes", ErrorCode::kInvalidDatatype, {"byte", "sum"}, [](auto& r, auto&) { r.call.dtype = Datatype::kByte; }},
      {"operator", ErrorCode::kInvalidOp, {"99"}, [](auto& r, auto&) { r.call.func = static_cast<Func>(99); }},
      {"no operator", ErrorCode::kInvalidOp, {"none", "sum"}, [](auto& r, auto&) { r.call.func = Func::kNone; }},
      {"count", ErrorCode::kInvalidCount, {"1099511627775"}, [](auto& r, auto&) { r.call.count = kMaxCount + 1; }},
      {"small src",
       ErrorCode::kBufferTooSmall,
       {"src", "40 bytes", "100 elements"},
       [](auto& r, auto&) { r.src.bytes = 40; }},
      {"small dst",
       ErrorCode::kBufferTooSmall,
       {"dst", "399 bytes", "400 bytes"},
       [](auto& r, auto&) { r.dst.bytes = 399; }},
      {"null src", ErrorCode::kBufferTooSmall, {"src", "null"}, [](auto& r, auto&) { r.src = {}; }},
      {"huge count", ErrorCode::kBufferTooSmall, {"src"}, [](auto& r, auto&) { r.call.count = kMaxCount; }},
      {"overlap", ErrorCode::kOverlappingBuffers, {"in-place"}, [](auto& r, auto&) { r.dst.data = r.src.data + 396; }},
      {"same buffer", ErrorCode::kOverlappingBuffers, {"in-place"}, [](auto& r, auto&) { r.dst = r.src; }},
      {"root",
       ErrorCode::kInvalidRoot,
       {"7", "0 to 1"},
       [](auto& r, auto&) { r.call.collective = Collective::kReduce, r.call.root = 7; }},
      {"tag",
       ErrorCode::kInvalidArgument,
       {"4000000000", "2147483647"},
       [](auto& r, auto&) { r.call.collective = Collective::kSend, r.tag = 4'000'000'000U; }},
      {"algorithm of another",
       ErrorCode::kUnknownAlgorithm,
       {"none of this"},
       [](auto& r, auto&) { r.algorithm = find_algorithm(Collective::kBarrier, "dissemination"); }},
      {"algorithm number", ErrorCode::kUnknownAlgorithm, {"250"}, [](auto& r, auto&) { r.algorithm = 250; }},
      {"communicator", ErrorCode::kInvalidArgument, {"no communicator 9"}, [](auto& r, auto&) { r.communicator = 9; }},
      {"timeout", ErrorCode::kInvalidArgument, {"-5 us"}, [](auto& r, auto&) { r.timeout = microseconds(-5); }},
      {"counts",
       ErrorCode::kInvalidArgument,
       {"counts"},
       [](auto& r, auto&) { r.call.collective = Collective::kAllgatherv; }},
      {"no program",
       ErrorCode::kInvalidArgument,
       {"no program"},
       [](auto& r, auto&) { r.call.collective = Collective::kProgram; }},
  };
  run_ranks(2, quick_settings(), [&](Rank& self) {
    Buffers buffers;
    for (const Refusal& refusal : table) {
      CallRequest r = collective(Collective::kAllreduce, 100, buffers);
      refusal.spoil(r, buffers);
      try {
        self.engine.submit(r);
        ADD_FAILURE() << refusal.name << " was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), refusal.code) << refusal.name << ": " << error.what();
        for (const std::string& word : refusal.words) {
          EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << refusal.name << ": " << error.what();
        }
      }
    }
    // Refused calls took no sequence number and sent nothing: the communicator works.
    self.run(collective(Collective::kAllreduce, 100, buffers));
    EXPECT_EQ(buffers.dst[99], 10);
  });
}

TEST(Arguments, WhichCountsAVectorCollectiveTakesFollowsFromItsFootprint) {
  const auto sides = [](Collective collective, bool in_place) {
    const cclo::VectorSides found = cclo::sides_of(collective, in_place);
    return std::string(found.send ? "send " : "") + (found.recv ? "recv " : "") + (found.own ? "own" : "");
  };
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(sides(Collective::kGatherv, in_place), "recv own");
    EXPECT_EQ(sides(Collective::kScatterv, in_place), "send own");
    EXPECT_EQ(sides(Collective::kAllgatherv, in_place), "recv own");
    EXPECT_EQ(sides(Collective::kReduceScatterv, in_place), "recv own");
    EXPECT_EQ(sides(Collective::kAllreduce, in_place), "");
  }
  EXPECT_EQ(sides(Collective::kAlltoallv, false), "send recv ");
  EXPECT_EQ(sides(Collective::kAlltoallv, true), "recv ");
}

TEST(Arguments, MalformedProgramsAreRefused) {
  Move good;
  good.kind = MoveKind::kMove;
  good.dtype = Datatype::kInt32;
  good.count = 4;
  good.op0 = {OperandKind::kMemory, Cast::kNone, Region::kSrc, false, 0};
  good.local = {OperandKind::kMemory, Cast::kNone, Region::kDst, false, 0};
  struct Fault {
    ErrorCode code;
    std::string word;
    std::function<void(Program&)> spoil;
  };
  const auto remote = [](Program& p, RemoteKind kind, std::uint32_t peer, PeerMode mode) {
    p.moves[1].remote = {kind, Cast::kNone, peer, mode, 0, 0};
  };
  const std::vector<Fault> table{
      {ErrorCode::kMalformedProgram, "before the program's first", [](Program& p) { p.moves[1].dependencies = 2; }},
      {ErrorCode::kMalformedProgram, "width or type", [](Program& p) { p.moves[1].count = kMaxCount + 1; }},
      {ErrorCode::kMalformedProgram, "scratch", [](Program& p) { p.moves[1].op0.region = Region::kScratch; }},
      {ErrorCode::kMalformedProgram, "overlap",
       [](Program& p) {
         p.moves[1].op0.region = Region::kDst;
         p.moves[1].op0.offset = 4;
       }},
      {ErrorCode::kMalformedProgram, "with one operand", [](Program& p) { p.moves[1].func = Func::kSum; }},
      {ErrorCode::kMalformedProgram, "no function", [](Program& p) { p.moves[1].op1 = p.moves[1].op0; }},
      {ErrorCode::kMalformedProgram, "params", [](Program& p) { p.moves[1].count_indirect = true; }},
      {ErrorCode::kMalformedProgram, "same count",
       [](Program& p) {
         p.moves[1].segment_dependency0 = 1;
         p.moves[1].count = 3;
       }},
      {ErrorCode::kMalformedProgram, "rank 2; ranks are 0 to 1",
       [&](Program& p) { remote(p, RemoteKind::kMessage, 2, PeerMode::kRank); }},
      {ErrorCode::kMalformedProgram, "pool", [&](Program& p) { remote(p, RemoteKind::kMessage, 0, PeerMode::kList); }},
      {ErrorCode::kMalformedProgram, "twice",
       [&](Program& p) {
         p.pool = {2, 1, 1};
         remote(p, RemoteKind::kMessage, 0, PeerMode::kList);
       }},
      {ErrorCode::kUnsupported, "direct access",
       [&](Program& p) { remote(p, RemoteKind::kMemory, 1, PeerMode::kRank); }},
      {ErrorCode::kUnsupported, "list of peers",
       [&](Program& p) {
         p.pool = {1, 1};
         remote(p, RemoteKind::kMemory, 0, PeerMode::kList);
         p.moves[1].remote_address.result_region = Region::kWindow;
       }},
      {ErrorCode::kMalformedProgram, "src, dst and window",
       [&](Program& p) {
         remote(p, RemoteKind::kMemory, 1, PeerMode::kRank);
         p.moves[1].remote_address.result_region = Region::kParams;
       }},
      {ErrorCode::kMalformedProgram, "cast", [](Program& p) { p.moves[1].local.cast = Cast::kWire; }},
      {ErrorCode::kBufferTooSmall, "dst has 64 bytes", [](Program& p) { p.moves[1].local.offset = 52; }},
  };
  run_ranks(2, quick_settings(), [&](Rank& self) {
    std::vector<std::int32_t> src(16, 3), dst(16);
    for (const Fault& fault : table) {
      auto program = std::make_shared<Program>();
      program->moves = {good, good};
      fault.spoil(*program);
      CallRequest r = request<std::int32_t>(Collective::kProgram, 4);
      r.src = bind(src);
      r.dst = bind(dst);
      r.program = program;
      try {
        self.engine.submit(r);
        ADD_FAILURE() << fault.word;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), fault.code) << error.what();
        EXPECT_NE(std::string(error.what()).find(fault.word), std::string::npos) << error.what();
      }
    }
  });
}

TEST(Arguments, AnIndirectOffsetBeyondAllParamsIsRefused) {
  run_ranks(1, quick_settings(), [](Rank& self) {
    std::vector<std::int32_t> src(4), dst(4);
    auto program = std::make_shared<Program>();
    Move& move = program->moves.emplace_back();
    move.kind = MoveKind::kMove;
    move.dtype = Datatype::kInt32;
    move.count = 4;
    move.op0 = {OperandKind::kMemory, Cast::kNone, Region::kSrc, true, 8};
    move.local = {OperandKind::kMemory, Cast::kNone, Region::kDst, false, 0};
    program->params_bytes = 8;
    CallRequest r = request<std::int32_t>(Collective::kProgram, 4);
    r.src = bind(src);
    r.dst = bind(dst);
    r.program = program;
    EXPECT_THROW(self.engine.submit(r), Error);
  });
}

TEST(Arguments, SegmentsAreFollowedByElementsWhateverTheirSize) {
  run_ranks(1, quick_settings(), [](Rank& self) {
    constexpr std::uint64_t kCount = 30'000;
    std::vector<std::int64_t> src(kCount);
    std::vector<std::int32_t> dst(kCount);
    for (std::uint64_t i = 0; i < kCount; ++i) src[i] = static_cast<std::int64_t>(i) << 32 | 7;
    auto program = std::make_shared<Program>();
    program->scratch_bytes = kCount * 8;
    Move move;
    move.kind = MoveKind::kMove;
    move.dtype = Datatype::kInt64;
    move.count = kCount;
    move.op0 = {OperandKind::kMemory, Cast::kNone, Region::kSrc, false, 0};
    move.local = {OperandKind::kMemory, Cast::kNone, Region::kScratch, false, 0};
    program->moves.push_back(move);
    move.dtype = Datatype::kInt32;
    move.op0.region = Region::kScratch;
    move.local.region = Region::kDst;
    move.segment_dependency0 = 1;
    program->moves.push_back(move);
    CallRequest r = request<std::int32_t>(Collective::kProgram, kCount);
    r.src = bind(src);
    r.dst = bind(dst);
    r.program = program;
    self.run(r);
    for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(dst[i], i % 2 == 0 ? 7 : static_cast<std::int32_t>(i / 2));
  });
}

TEST(Settings, AreChecked) {
  ThreadJob job(1);
  const std::unique_ptr<Poe> network = job.endpoint(0);
  const auto refused = [&](auto spoil) {
    EngineSettings settings;
    spoil(settings);
    EXPECT_THROW(NativeEngine(*network, settings), Error);
  };
  refused([](EngineSettings& s) { s.segment_bytes = 63; });
  refused([](EngineSettings& s) { s.rx_buffer_count = 0; });
  refused([](EngineSettings& s) { s.timeout = microseconds(0); });
}

TEST(Agreeing, TakesTheLeastAndRefusesOtherAlgorithms) {
  ThreadJob job(2);
  const std::unique_ptr<Poe> a = job.endpoint(0), b = job.endpoint(1);
  EngineSettings small = quick_settings();
  small.eager_limit = 100;
  small.rx_buffer_count = 3;
  Agreement all_capabilities[2] = {NativeEngine(*a, quick_settings()).capabilities(),
                                   NativeEngine(*b, small).capabilities()};
  const Agreement agreed = agree(all_capabilities);
  EXPECT_EQ(agreed.eager_limit, 100U);
  EXPECT_EQ(agreed.rx_buffer_count, 3U);
  all_capabilities[1].algorithm_hash ^= 1;
  EXPECT_THROW(agree(all_capabilities), Error);
}

}  // namespace
}  // namespace unisono::test
