// Faults of one peer or one communicator harm nothing else: here peers break the rules on purpose.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "network/shm/segment.hpp"
#include "network/shm/shm_poe.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

/// An engine on endpoint 0; the other endpoints are networks that the test speaks through itself.
struct Victim {
  explicit Victim(std::uint32_t size, EngineSettings settings = message_settings())
      : segment(shm::Segment::create({.endpoints = size})) {
    for (std::uint32_t i = 0; i < size; ++i) networks.push_back(std::make_unique<shm::ShmPoe>(segment, i));
    engine = std::make_unique<NativeEngine>(*networks[0], settings);
    const Agreement capabilities = engine->capabilities();
    agreed = agree({&capabilities, 1});
  }

  void communicator(std::uint32_t number, const std::vector<std::uint32_t>& members, std::uint16_t epoch = 0) {
    engine->create_communicator(number, epoch, members, agreed);
  }
  /// Sends a message of `from` to rank 0; lets the engine make space for it.
  void send(std::uint32_t from, Lane lane, Header header, std::uint32_t bytes, std::uint8_t fill = 0) {
    std::byte* space = networks[from]->reserve(0, lane, bytes);
    for (int i = 0; space == nullptr && i < 1000; ++i) {
      engine->progress();
      space = networks[from]->reserve(0, lane, bytes);
    }
    ASSERT_NE(space, nullptr);
    std::memset(space, fill, bytes);
    header.segment_bytes = bytes;
    networks[from]->commit(0, lane, header);
  }
  /// The next message of the engine to `to`; it must be there.
  Header next(std::uint32_t to, Lane lane) {
    Incoming incoming;
    EXPECT_TRUE(networks[to]->peek(0, lane, incoming));
    const Header header = incoming.header;
    networks[to]->release(0, lane);
    return header;
  }
  /// That a copy on a communicator works.
  void expect_works(std::uint32_t number) {
    std::vector<std::int32_t> src{1, 2, 3}, dst(3);
    CallRequest r = request<std::int32_t>(Collective::kCopy, 3);
    r.communicator = number;
    r.src = bind(src);
    r.dst = bind(dst);
    CallId id = 0;
    ASSERT_NO_THROW(id = engine->submit(r));
    EXPECT_EQ(engine->wait(id).code, ErrorCode::kOk);
    EXPECT_EQ(dst, src);
  }
  /// That a communicator is revoked, for a reason with this text.
  void expect_revoked(std::uint32_t number, const std::string& text) {
    CallRequest r = request<std::int32_t>(Collective::kBarrier, 0);
    r.communicator = number;
    try {
      engine->submit(r);
      ADD_FAILURE() << "communicator " << number << " takes calls";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kRevoked);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }

  std::shared_ptr<shm::Segment> segment;
  std::vector<std::unique_ptr<shm::ShmPoe>> networks;
  std::unique_ptr<Engine> engine;
  Agreement agreed;
};

/// Header of a point-to-point message of rank 1 to rank 0 that a receive of int32 takes.
Header eager_header(std::uint32_t communicator, std::uint64_t offset, std::uint64_t bytes, std::uint64_t total) {
  Header header;
  header.type = MessageType::kEager;
  header.communicator = communicator;
  header.source = 1;
  header.point_to_point = true;
  header.dtype = Datatype::kInt32;
  header.offset = offset;
  header.message_bytes = total;
  header.first = offset == 0;
  header.last = offset + bytes == total;
  return header;
}

class Segments : public testing::TestWithParam<bool> {};

TEST_P(Segments, ThatDoNotContinueTheirMessageAreRefused) {
  Victim victim(2);
  victim.communicator(0, {0, 1});
  victim.communicator(1, {0});
  std::vector<std::int32_t> in(2048);
  CallRequest receive = request<std::int32_t>(Collective::kRecv, in.size(), 1);
  receive.dst = bind(in);
  // The signature of a receive is that of the send.
  CallRequest send = request<std::int32_t>(Collective::kSend, 1, 1);
  send.src = bind(in);
  victim.engine->submit(send);
  const std::uint32_t signature = victim.next(1, Lane::kData).signature;

  const bool posted = GetParam();
  CallId id = posted ? victim.engine->submit(receive) : 0;
  for (int i = 0; i < 4; ++i) {
    // Always the same middle: accepted four times, more bytes than the message has would be stored.
    Header header = eager_header(0, i == 0 ? 0 : 4096, i == 0 ? 4096 : 4092, 8192);
    header.signature = signature;
    victim.send(1, Lane::kData, header, i == 0 ? 4096 : 4092, 7);
  }
  victim.engine->progress();
  if (posted) {
    EXPECT_EQ(victim.engine->wait(id).code, ErrorCode::kCorruptMessage) << victim.engine->wait(id).message;
  }
  victim.expect_revoked(0, "out of order");
  victim.expect_works(1);
}

INSTANTIATE_TEST_SUITE_P(Receive, Segments, testing::Bool(),
                         [](const auto& given) { return given.param ? "Posted" : "NotPosted"; });

TEST(Faults, ABrokenRingEndsTheCommunicatorsOfItsPeerOnly) {
  Victim victim(3);
  victim.communicator(0, {0, 1, 2});
  victim.communicator(1, {0, 1});
  std::vector<std::int32_t> in(4);
  CallRequest receive = request<std::int32_t>(Collective::kRecv, 4, 2);
  receive.dst = bind(in);
  const CallId id = victim.engine->submit(receive);
  victim.segment->send_cursors(2, 0).published[0] = 3;
  CallResult result;
  ASSERT_NO_THROW(result = victim.engine->wait(id, seconds(5)));
  EXPECT_EQ(result.code, ErrorCode::kCorruptMessage) << result.message;
  EXPECT_NE(result.message.find("endpoint 2"), std::string::npos) << result.message;
  victim.expect_revoked(0, "corrupt");
  EXPECT_EQ(victim.next(1, Lane::kControl).type, MessageType::kControl);  // the others are told
  victim.expect_works(1);
  EXPECT_THROW(victim.communicator(2, {0, 2}), Error);
}

TEST(Faults, ABrokenCursorOfAReceiverEndsTheSendAndNothingElse) {
  Victim victim(3);
  victim.communicator(0, {0, 2, 1});
  victim.communicator(1, {0, 1});
  // More than is sent here in all: else it might be true by the time somebody looks.
  constexpr std::uint64_t kBroken = std::uint64_t{64} << 30U;
  victim.segment->receive_cursors(0, 2).consumed[0] = kBroken;
  victim.segment->receive_cursors(0, 2).consumed[1] = kBroken;
  std::vector<std::int32_t> out(8);
  CallRequest send = request<std::int32_t>(Collective::kSend, 8, 1);
  send.src = bind(out);
  ErrorCode code = ErrorCode::kOk;
  ASSERT_NO_THROW({
    for (int i = 0; i < 20'000 && code == ErrorCode::kOk; ++i) {
      try {
        code = victim.engine->test(victim.engine->submit(send)).code;
      } catch (const Error& error) {
        code = error.code();
      }
    }
  });
  EXPECT_EQ(code, ErrorCode::kCorruptMessage);
  EXPECT_EQ(victim.next(1, Lane::kControl).type, MessageType::kControl);
  victim.expect_works(1);
}

TEST(Faults, FloodForACommunicatorNotMadeEndsThatOneOnly) {
  Victim victim(2);
  victim.communicator(0, {0, 1});
  Header header = eager_header(9, 0, 65'536, 65'536);
  header.type = MessageType::kWrite;
  header.token_slot = 0xffff;
  for (int i = 0; i < 5'000; ++i) ASSERT_NO_FATAL_FAILURE(victim.send(1, Lane::kData, header, 65'536));
  ASSERT_NO_THROW(victim.engine->progress());
  victim.expect_works(0);
  victim.communicator(9, {0, 1});
  victim.expect_revoked(9, "bytes");
  victim.expect_works(0);
}

TEST(Faults, AnEpochIsNotUsedTwice) {
  Victim victim(2);
  victim.communicator(4, {0, 1}, 3);
  victim.engine->free_communicator(4);
  EXPECT_THROW(victim.communicator(4, {0, 1}, 3), Error);
  // A late message of the old one is not taken by the new one; one of the next epoch is kept for it.
  victim.send(
      1, Lane::kControl,
      [] {
        Header header = eager_header(4, 0, 0, 0);
        header.type = MessageType::kControl;
        header.tag = 1;  // revoke
        header.epoch = 3;
        return header;
      }(),
      0);
  victim.communicator(4, {0, 1}, 4);
  victim.engine->progress();
  victim.expect_works(4);
}

TEST(Faults, AWaitOfNoTimeMakesProgress) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    std::vector<std::int32_t> src(10, 1), dst(10);
    CallRequest r = request<std::int32_t>(Collective::kAllreduce, 10, 0, Func::kSum);
    r.src = bind(src);
    r.dst = bind(dst);
    const CallId id = self.engine.submit(r);
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    while (!self.engine.wait(id, microseconds(0)).complete) ASSERT_LT(std::chrono::steady_clock::now(), end);
    EXPECT_EQ(dst[9], 2);
  });
}

TEST(Faults, ARefusedPutInAProgramEndsItForAll) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    Move move;
    move.kind = MoveKind::kMove;
    move.dtype = Datatype::kInt32;
    move.count = 4;
    auto program = std::make_shared<Program>();
    if (self.rank == 0) {
      move.op0 = {OperandKind::kMemory, Cast::kNone, Region::kSrc, false, 0};
      move.remote = {RemoteKind::kMemory, Cast::kNone, 1, PeerMode::kRank, 0, 0};
      move.remote_address.result_region = Region::kWindow;
      program->moves.push_back(move);
      move.dependencies = 1;
      move.remote = {RemoteKind::kMessage, Cast::kNone, 1, PeerMode::kRank, 0, 0};
    } else {
      move.op1.kind = OperandKind::kArrival;
      move.arrival.peer = 0;
      move.local = {OperandKind::kMemory, Cast::kNone, Region::kDst, false, 0};
    }
    program->moves.push_back(move);
    std::vector<std::int32_t> src(4, 3), dst(4);
    CallRequest r = request<std::int32_t>(Collective::kProgram, 4);
    r.src = bind(src);
    r.dst = bind(dst);
    r.program = program;
    const CallResult result = self.engine.wait(self.engine.submit(r), seconds(5));
    EXPECT_EQ(result.code, self.rank == 0 ? ErrorCode::kBufferTooSmall : ErrorCode::kRevoked) << result.message;
    EXPECT_NE(result.message.find("window"), std::string::npos) << result.message;
  });
}

TEST(Faults, APutBeyondEveryAddressIsRefusedAtOnce) {
  run_ranks(2, quick_settings(), [](Rank& self) {
    std::vector<std::int32_t> src(400, 3), window(400, 1);
    self.engine.bind_window(0, bind(window));
    CallRequest r = request<std::int32_t>(Collective::kPut, 400, 1 - self.rank);
    r.src = bind(src);
    for (const std::uint64_t offset : {~std::uint64_t{0} - 63, std::uint64_t{1} << 48U}) {
      r.window_offset = offset;
      try {
        self.engine.submit(r);
        ADD_FAILURE() << offset;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      }
    }
    r.window_offset = 0;
    r.call.count = 1;
    self.run(r);
    CallRequest barrier = request<std::int32_t>(Collective::kBarrier, 0);
    self.run(barrier);
    EXPECT_EQ(window[0], 3);
    EXPECT_EQ(window[1], 1);
  });
}

/// A network whose peers' last words arrive between the last look for messages and the look for the dead.
class LastWords final : public Poe {
 public:
  LastWords(Poe& real, std::function<void()> speak) : real_(real), speak_(std::move(speak)) {}
  std::uint32_t self() const override { return real_.self(); }
  std::uint32_t size() const override { return real_.size(); }
  std::uint32_t max_payload(Lane lane) const override { return real_.max_payload(lane); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    return real_.reserve(peer, lane, bytes);
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override { real_.commit(peer, lane, header); }
  bool peek(std::uint32_t peer, Lane lane, Incoming& in) override { return real_.peek(peer, lane, in); }
  void release(std::uint32_t peer, Lane lane) override { real_.release(peer, lane); }
  std::uint32_t activity() const override { return real_.activity(); }
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override { real_.wait(seen, at_most); }
  Liveness liveness(std::uint32_t peer) override {
    if (speak_) std::exchange(speak_, nullptr)();
    return real_.liveness(peer);
  }
  std::string describe(std::uint32_t peer) const override { return real_.describe(peer); }

 private:
  Poe& real_;
  std::function<void()> speak_;
};

TEST(Faults, LastWordsOfAPeerAreHeard) {
  ThreadJob job(2);
  const std::unique_ptr<Poe> here = job.endpoint(0);
  std::unique_ptr<Poe> there = job.endpoint(1);
  auto peer = std::make_unique<NativeEngine>(*there, message_settings());
  const Agreement capabilities = peer->capabilities();
  const std::vector<std::uint32_t> all{0, 1};
  peer->create_communicator(0, 0, all, capabilities);
  std::vector<std::int32_t> out{4, 5};
  LastWords network(*here, [&] {
    for (std::uint32_t tag = 0; tag < 2; ++tag) {
      CallRequest send = request<std::int32_t>(Collective::kSend, 1, 0);
      send.src = {bind(out).data + 4 * tag, 4};
      send.tag = tag;
      ASSERT_TRUE(peer->test(peer->submit(send)).complete);
    }
    peer.reset();
    there.reset();
  });
  NativeEngine engine(network, message_settings());
  engine.create_communicator(0, 0, all, capabilities);
  std::vector<std::int32_t> in(2);
  CallId ids[2];
  for (std::uint32_t tag = 0; tag < 2; ++tag) {
    CallRequest receive = request<std::int32_t>(Collective::kRecv, 1, 1);
    receive.dst = {bind(in).data + 4 * tag, 4};
    receive.tag = tag;
    ids[tag] = engine.submit(receive);
  }
  for (const CallId id : ids) EXPECT_EQ(engine.wait(id).code, ErrorCode::kOk) << engine.wait(id).message;
  EXPECT_EQ(in, out);
}

TEST(Faults, APeerThatTakesNothingMoreIsFoundDead) {
  // Rank 2 grants a long message and leaves: rank 1 has all the data, and no space to pass it on.
  ThreadJob job(3);
  std::unique_ptr<Poe> networks[3] = {job.endpoint(0), job.endpoint(1), job.endpoint(2)};
  std::unique_ptr<Engine> engines[3];
  const std::vector<std::uint32_t> all{0, 1, 2};
  for (int i = 0; i < 3; ++i) {
    engines[i] = std::make_unique<NativeEngine>(*networks[i], quick_settings());
    const Agreement capabilities = engines[i]->capabilities();
    engines[i]->create_communicator(0, 0, all, capabilities);
  }
  std::vector<std::vector<std::int32_t>> data(3, std::vector<std::int32_t>(1'000'000));
  CallId ids[3];
  for (int i = 2; i >= 0; --i) {
    CallRequest r = request<std::int32_t>(Collective::kBcast, data[0].size());
    r.dst = bind(data[static_cast<std::size_t>(i)]);
    r.algorithm = find_algorithm(Collective::kBcast, "chain");
    ids[i] = engines[i]->submit(r);
  }
  engines[2].reset();
  networks[2].reset();
  const auto end = std::chrono::steady_clock::now() + seconds(5);
  CallResult result;
  while (!result.complete && std::chrono::steady_clock::now() < end) {
    engines[0]->progress();
    result = engines[1]->wait(ids[1], milliseconds(1));
  }
  EXPECT_EQ(result.code, ErrorCode::kPeerDead);
  EXPECT_NE(result.message.find("rank 2"), std::string::npos) << result.message;
}

TEST(Faults, OneThreadFreesACommunicatorWhileOthersWait) {
  for (int round = 0; round < 20; ++round) {
    run_ranks(1, quick_settings(), [](Rank& self) {
      self.engine.create_communicator(3, 0, std::vector<std::uint32_t>{0}, self.agreed);
      std::vector<std::vector<std::int32_t>> in(3, std::vector<std::int32_t>(10));
      std::vector<std::thread> waiters;
      for (std::uint32_t t = 0; t < 3; ++t) {
        waiters.emplace_back([&self, &in, t] {
          CallRequest receive = request<std::int32_t>(Collective::kRecv, 10);
          receive.communicator = 3;
          receive.dst = bind(in[t]);
          receive.tag = t;
          try {
            const CallResult result = self.engine.wait(self.engine.submit(receive));
            EXPECT_EQ(result.code, ErrorCode::kFreedCommunicator) << result.message;
          } catch (const Error& error) {  // freed before
            EXPECT_EQ(error.code(), ErrorCode::kFreedCommunicator);
          }
        });
      }
      std::this_thread::sleep_for(milliseconds(2));
      const auto begin = std::chrono::steady_clock::now();
      self.engine.free_communicator(3);
      for (std::thread& waiter : waiters) waiter.join();
      EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(2));
    });
  }
}

TEST(Faults, MessagesForACommunicatorNotYetMadeAreKept) {
  for (const std::uint32_t limit : {0U, 8192U}) {
    EngineSettings settings = quick_settings();
    settings.eager_limit = limit;
    run_ranks(3, settings, [](Rank& self) {
      const std::vector<std::uint32_t> reversed{2, 1, 0};
      if (self.rank != 0) {
        const auto end = std::chrono::steady_clock::now() + milliseconds(self.rank * 20);
        while (std::chrono::steady_clock::now() < end) self.engine.progress();
      }
      self.engine.create_communicator(6, 0, reversed, self.agreed);
      std::vector<std::int32_t> src(3000, static_cast<std::int32_t>(self.rank + 1)), dst(3000), in(100), out(100, 9);
      CallRequest r = request<std::int32_t>(Collective::kAllreduce, 3000, 0, Func::kSum);
      r.communicator = 6;
      r.src = bind(src);
      r.dst = bind(dst);
      const CallId id = self.engine.submit(r);
      CallRequest small = r;
      std::vector<std::int32_t> result(5);
      small.call.count = 5;
      small.dst = bind(result);
      const CallId second = self.engine.submit(small);
      if (self.rank == 0) {
        CallRequest send = request<std::int32_t>(Collective::kSend, 100, 0);
        send.communicator = 6;
        send.src = bind(out);
        self.run(send);
      }
      if (self.rank == 2) {
        CallRequest receive = request<std::int32_t>(Collective::kRecv, 100, 2);
        receive.communicator = 6;
        receive.dst = bind(in);
        self.run(receive);
        EXPECT_EQ(in, out);
      }
      self.finish(id);
      self.finish(second);
      EXPECT_EQ(dst[2999], 6);
      EXPECT_EQ(result[4], 6);
    });
  }
}

}  // namespace
}  // namespace unisono::test
