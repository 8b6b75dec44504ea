// Receives of any source and with any tag, and probes, over lanes and by messages.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "tests/cpp/engine/process_jobs.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

using Values = std::vector<std::int32_t>;

CallRequest sending(std::uint32_t peer, std::uint32_t tag, Values& data) {
  CallRequest r = request<std::int32_t>(Collective::kSend, data.size(), peer);
  r.tag = tag;
  r.src = bind(data);
  return r;
}

CallRequest receiving(Values& data) {
  CallRequest r = request<std::int32_t>(Collective::kRecv, data.size());
  r.dst = bind(data);
  return r;
}
CallRequest receiving(std::uint32_t peer, std::uint32_t tag, Values& data) {
  CallRequest r = receiving(data);
  r.call.root = peer;
  r.tag = tag;
  return r;
}
CallRequest from_anybody(Values& data) {
  CallRequest r = receiving(data);
  r.any_source = r.any_tag = true;
  return r;
}

CallRequest probing(bool any_source, std::uint32_t source, bool any_tag, std::uint32_t tag) {
  CallRequest r = request<std::int32_t>(Collective::kRecv, 0, source);
  r.probe = true;
  r.tag = tag;
  r.any_source = any_source;
  r.any_tag = any_tag;
  return r;
}

/// Blocking, as front doors call it.
MessageStatus run(Rank& self, CallRequest r) {
  MessageStatus status;
  r.status = &status;
  self.engine.run(r);
  return status;
}

Values values(std::size_t count, std::uint32_t seed) {
  Values made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::int32_t>(i * 7 + 1000 * seed);
  return made;
}

std::string failure_of(const std::function<void()>& work, ErrorCode code) {
  try {
    work();
    ADD_FAILURE() << "no error; expected " << name_of(code);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return {};
}

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

struct Way {
  const char* name;
  bool lanes;
  std::uint32_t eager_limit;
};

class Wildcards : public testing::TestWithParam<Way> {
 protected:
  static EngineSettings settings() {
    EngineSettings made = quick_settings();
    made.lanes = GetParam().lanes;
    made.eager_limit = GetParam().eager_limit;
    made.segment_bytes = 256;
    made.rx_buffer_count = 4;
    return made;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Wildcards,
                         testing::Values(Way{"lanes", true, 8192}, Way{"lanes_announced", true, 0},
                                         Way{"messages", false, 8192}, Way{"messages_announced", false, 0}),
                         [](const auto& way) { return way.param.name; });

TEST_P(Wildcards, TakeWhatComesAndSayWhatItWas) {
  run_ranks(4, settings(), [](Rank& self) {
    constexpr std::uint32_t kEach = 30;
    if (self.rank != 0) {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        Values out = values(i * 13, 100 * self.rank + i);
        self.engine.run(sending(0, 10 * self.rank + i % 3, out));
      }
      return;
    }
    std::vector<std::uint32_t> next(4);
    for (std::uint32_t i = 0; i < 3 * kEach; ++i) {
      Values in(500, -1);
      const MessageStatus came = run(self, from_anybody(in));
      ASSERT_GE(came.source, 1U);
      ASSERT_LE(came.source, 3U);
      const std::uint32_t number = next[came.source]++;
      EXPECT_EQ(came.tag, 10 * came.source + number % 3) << "of one rank they come in order";
      EXPECT_EQ(came.bytes, 4 * number * 13);
      EXPECT_EQ(came.dtype, Datatype::kInt32);
      in.resize(number * 13);
      EXPECT_EQ(in, values(number * 13, 100 * came.source + number));
    }
    EXPECT_EQ(next, (std::vector<std::uint32_t>{0, kEach, kEach, kEach}));
  });
}

TEST_P(Wildcards, InFlightAreFilledInTheOrderInWhichTheyWereMade) {
  run_ranks(2, settings(), [](Rank& self) {
    Values first(64), second(64), third(64), fourth(64);
    if (self.rank == 1) {
      // Any tag of rank 0, tag 5 of anybody, tag 5 of rank 0, anything.
      CallRequest a = receiving(0, 0, first), b = receiving(0, 5, second), d = from_anybody(fourth);
      a.any_tag = true;
      b.any_source = true;
      const CallId ids[] = {self.engine.submit(a), self.engine.submit(b), self.engine.submit(receiving(0, 5, third)),
                            self.engine.submit(d)};
      Values go{1};
      self.engine.run(sending(0, 1, go));
      const CallResult results[] = {self.finish(ids[0]), self.finish(ids[1]), self.finish(ids[2]), self.finish(ids[3])};
      for (const CallResult& result : results) EXPECT_EQ(result.status.source, 0U);
      EXPECT_EQ(results[0].status.tag, 5U);
      EXPECT_EQ(results[1].status.tag, 5U);
      EXPECT_EQ(results[2].status.tag, 5U);
      EXPECT_EQ(results[3].status.tag, 9U);
      EXPECT_EQ(first, values(64, 0));
      EXPECT_EQ(second, values(64, 1));
      EXPECT_EQ(third, values(64, 3));
      EXPECT_EQ(fourth, values(64, 2));
    } else {
      Values go(1);
      self.engine.run(receiving(1, 1, go));
      const std::uint32_t tags[] = {5, 5, 9, 5};
      std::vector<Values> data;
      for (std::uint32_t i = 0; i < 4; ++i) data.push_back(values(64, i));
      std::vector<CallId> ids;
      for (std::uint32_t i = 0; i < 4; ++i) ids.push_back(self.engine.submit(sending(1, tags[i], data[i])));
      for (const CallId id : ids) self.finish(id);
    }
  });
}

TEST_P(Wildcards, DoNotTakeMessagesOfTheLibrary) {
  run_ranks(2, settings(), [](Rank& self) {
    constexpr auto kReserved = static_cast<std::uint32_t>(kMaxUserTag) + 7;
    if (self.rank == 0) {
      Values own = values(10, 1), users = values(10, 2);
      CallRequest reserved = sending(1, kReserved, own);
      reserved.reserved_tag = true;
      const CallId first = self.engine.submit(reserved);
      const CallId second = self.engine.submit(sending(1, 3, users));
      self.finish(first);
      self.finish(second);
    } else {
      Values in(10);
      EXPECT_EQ(run(self, from_anybody(in)).tag, 3U);
      EXPECT_EQ(in, values(10, 2));
      CallRequest reserved = receiving(0, kReserved, in);
      reserved.reserved_tag = true;
      self.run(reserved);
      EXPECT_EQ(in, values(10, 1));
    }
  });
}

TEST_P(Wildcards, ThatAreTooShortFailAsOthersDo) {
  run_ranks(2, settings(), [](Rank& self) {
    Values data = values(500, 1), good = values(20, 2), in(20);
    if (self.rank == 0) {
      const CallId first = self.engine.submit(sending(1, 4, data));
      const CallId second = self.engine.submit(sending(1, 4, good));
      self.engine.wait(first);
      self.engine.forget(first);
      self.finish(second);
    } else {
      const std::string text = failure_of([&] { self.engine.run(from_anybody(in)); }, ErrorCode::kTruncated);
      EXPECT_SAYS(text, "2000 bytes");
      EXPECT_SAYS(text, "the receive takes at most 80");
      EXPECT_EQ(run(self, from_anybody(in)).source, 0U);
      EXPECT_EQ(in, good);
    }
  });
}

TEST_P(Wildcards, AProbeSaysWhatThereIsAndLeavesIt) {
  run_ranks(3, settings(), [](Rank& self) {
    if (self.rank == 0) {
      EXPECT_FALSE(self.engine.look_for(probing(true, 0, false, 77)));
      for (int i = 0; i < 2; ++i) {
        const MessageStatus any = run(self, probing(true, 0, true, 0));
        const MessageStatus mine = run(self, probing(false, any.source, false, any.tag));
        EXPECT_EQ(mine.bytes, any.bytes);
        EXPECT_EQ(any.dtype, Datatype::kInt32);
        EXPECT_EQ(any.bytes, 4U * 333 * any.source);
        const auto now = self.engine.look_for(probing(false, any.source, true, 0));
        ASSERT_TRUE(now);
        EXPECT_EQ(now->tag, any.tag);
        Values in(any.bytes / 4);
        EXPECT_EQ(run(self, receiving(any.source, any.tag, in)).bytes, any.bytes);
        EXPECT_EQ(in, values(in.size(), any.source));
      }
      EXPECT_FALSE(self.engine.look_for(probing(true, 0, true, 0)));
    } else {
      Values out = values(333 * self.rank, self.rank);
      self.engine.run(sending(0, 40 + self.rank, out));
    }
  });
}

TEST_P(Wildcards, SayAtTheirDeadlineWhatTheyWaitedForAndWhatWaited) {
  run_ranks(2, settings(), [](Rank& self) {
    Values out = values(10, 1), in(10);
    if (self.rank == 0) {
      for (int i = 0; i < 2; ++i) {
        const CallId id = self.engine.submit(sending(1, 8, out));
        static_cast<void>(id);
      }
      Values done(1);
      try {
        self.run(receiving(1, 1, done));
      } catch (const Error&) {  // the communicator is revoked by rank 1
      }
      return;
    }
    run(self, probing(true, 0, false, 8));
    CallRequest probe = probing(true, 0, false, 9);
    probe.timeout = milliseconds(60);
    const std::string probed = failure_of([&] { self.engine.run(probe); }, ErrorCode::kTimeout);
    EXPECT_SAYS(probed, "probe (communicator 0, rank 1, any source, tag 9): timed out after 60 ms");
    EXPECT_FALSE(self.engine.state(0).revoked) << "a probe has taken nothing";
    CallRequest wild = from_anybody(in);
    wild.any_tag = false;
    wild.tag = 9;
    wild.timeout = milliseconds(100);
    const std::string text = failure_of([&] { self.engine.run(wild); }, ErrorCode::kTimeout);
    EXPECT_SAYS(text, "recv (communicator 0, rank 1, any source, tag 9, algorithm direct): timed out after 100 ms");
    EXPECT_SAYS(text, "waits for a message (tag 9) from any source");
    EXPECT_SAYS(text, "Messages that no receive has asked for: tag 8 of rank 0");
  });
}

TEST_P(Wildcards, ABlockingOneSaysSoToo) {
  EngineSettings quick = settings();
  quick.timeout = milliseconds(200);
  run_ranks(2, quick, [](Rank& self) {
    if (self.rank == 0) {
      std::this_thread::sleep_for(milliseconds(400));
      return;
    }
    Values in(10);
    const std::string text = failure_of([&] { self.engine.run(from_anybody(in)); }, ErrorCode::kTimeout);
    EXPECT_SAYS(text, "recv (communicator 0, rank 1, any source, any tag");
    EXPECT_SAYS(text, "): timed out after 200 ms");
    EXPECT_SAYS(text, "waits for a message (any tag) from any source");
  });
}

TEST_P(Wildcards, EndWhenTheCommunicatorIsRevoked) {
  for (const bool probes : {false, true}) {
    run_ranks(2, settings(), [&](Rank& self) {
      Values in(10);
      if (self.rank == 0) {
        std::this_thread::sleep_for(milliseconds(30));
        self.engine.revoke(0, "enough");
        return;
      }
      const std::string text = failure_of(
          [&] { self.engine.run(probes ? probing(true, 0, true, 0) : from_anybody(in)); }, ErrorCode::kRevoked);
      EXPECT_SAYS(text, "enough");
    });
  }
}

TEST(WildcardsRefused, ByEnginesInHardware) {
  EngineSettings settings = message_settings();
  settings.hardware_peers = true;
  run_ranks(1, settings, [](Rank& self) {
    Values in(3);
    EXPECT_SAYS(failure_of([&] { self.engine.submit(from_anybody(in)); }, ErrorCode::kUnsupported),
                "a receive from any source is not carried out by engines in hardware; name the source");
    CallRequest tagged = receiving(0, 0, in);
    tagged.any_tag = true;
    EXPECT_SAYS(failure_of([&] { self.engine.submit(tagged); }, ErrorCode::kUnsupported), "a receive with any tag");
    EXPECT_SAYS(failure_of([&] { self.engine.look_for(probing(true, 0, true, 0)); }, ErrorCode::kUnsupported),
                "a probe");
  });
}

// ------------------------------------------------------------------------------------------------ faults

// A receive of anybody goes on while somebody is left: only that nobody is left ends it.
TEST(WildcardFaults, OneThatDiesEndsNoReceiveOfAnybodyAllDo) {
  std::vector<Child> job = start(3, kNoKernelCopy, [](Rank& self) {
    Values data = values(10, self.rank);
    if (self.rank == 1) std::_Exit(7);  // dies, having sent nothing
    if (self.rank == 2) {
      std::this_thread::sleep_for(milliseconds(300));
      self.engine.run(sending(0, 5, data));
      std::this_thread::sleep_for(milliseconds(100));
      std::_Exit(0);
    }
    Values in(10);
    const MessageStatus came = run(self, from_anybody(in));
    require(came.source == 2 && in == values(10, 2), "the one that is left has sent");
    try {
      self.engine.run(from_anybody(in));
      require(false, "nobody is left");
    } catch (const Error& error) {
      const std::string text = error.what();
      require(error.code() == ErrorCode::kPeerDead, text.c_str());
      require(text.find("from any source, and no other rank is left to send one") != std::string::npos, text.c_str());
    }
  });
  EXPECT_EQ(job[0].wait(), 0);
  EXPECT_EQ(job[1].wait(), 7);
  EXPECT_EQ(job[2].wait(), 0);
}

// ------------------------------------------------------------------------------------- many, in any order

struct Storm {
  std::uint32_t ranks;
  std::uint32_t messages;  ///< of each rank
  std::uint32_t tags;
  std::uint32_t most_elements;
};

/// Every rank sends to random ranks, with random tags and lengths, and receives with wildcards and without, by probe
/// and by receives in flight, until it has what was sent to it. Each message has its number in its pair and tag.
void storm(Rank& self, const Storm& of, unsigned seed) {
  const auto plan = [&](std::uint32_t rank,
                        const std::function<void(std::uint32_t, std::uint32_t, std::uint32_t)>& use) {
    std::mt19937 random(seed * 1000 + rank);
    for (std::uint32_t i = 0; i < of.messages; ++i) {
      const auto to = static_cast<std::uint32_t>(random() % of.ranks);
      const auto tag = static_cast<std::uint32_t>(random() % of.tags);
      use(to, tag, 3 + static_cast<std::uint32_t>(random() % of.most_elements));
    }
  };
  std::uint64_t expected = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> left;  // by source and tag, to this rank
  for (std::uint32_t rank = 0; rank < of.ranks; ++rank) {
    plan(rank, [&](std::uint32_t to, std::uint32_t tag, std::uint32_t) {
      if (to != self.rank) return;
      ++expected;
      ++left[{rank, tag}];
    });
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> got;
  std::mt19937 random(seed + 77 * self.rank);
  const auto taken = [&](const MessageStatus& came, const Values& data) {
    const std::pair key{came.source, came.tag};
    ASSERT_EQ(data[0], static_cast<std::int32_t>(came.source));
    ASSERT_EQ(data[1], static_cast<std::int32_t>(came.tag));
    ASSERT_EQ(data[2], got[key]) << "messages of a rank with one tag overtook each other";
    ASSERT_EQ(data[came.bytes / 4 - 1], came.bytes == 12 ? data[2] : data[2] + data[1]);
    ++got[key];
    --left[key];
    --expected;
  };
  struct InFlight {
    CallId id;
    Values data;
  };
  std::vector<std::unique_ptr<InFlight>> receives;
  std::deque<InFlight> sends;
  const auto collect = [&](bool waits) {
    if (!receives.empty()) {
      // They take messages in the order in which they were made, and so they end, but for long ones.
      InFlight& first = *receives.front();
      const CallResult now = waits ? self.engine.wait(first.id) : self.engine.test(first.id);
      if (now.complete) {
        ASSERT_EQ(now.code, ErrorCode::kOk) << now.message;
        self.engine.forget(first.id);
        taken(now.status, first.data);
        receives.erase(receives.begin());
        return;
      }
    }
    while (!sends.empty() && self.engine.test(sends.front().id).complete) {
      self.finish(sends.front().id);
      sends.pop_front();
    }
  };
  const auto receive_one = [&] {
    if (!receives.empty()) {
      collect(false);
      return;
    }
    const auto found = self.engine.look_for(probing(true, 0, true, 0));
    if (!found) return;
    Values data(of.most_elements + 3, -1);
    switch (random() % 4) {
      case 0: {
        const MessageStatus came = run(self, from_anybody(data));
        taken(came, data);
        break;
      }
      case 1: {
        CallRequest of_source = receiving(found->source, 0, data);
        of_source.any_tag = true;
        const MessageStatus came = run(self, of_source);
        ASSERT_EQ(came.tag, found->tag);
        taken(came, data);
        break;
      }
      case 2: {
        Values exact(found->bytes / 4);
        const MessageStatus came = run(self, receiving(found->source, found->tag, exact));
        ASSERT_EQ(came.bytes, found->bytes);
        taken(came, exact);
        break;
      }
      default: {
        // Some in flight at once, never more than are still to come.
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(expected, 5); ++i) {
          receives.push_back(std::make_unique<InFlight>(InFlight{0, Values(of.most_elements + 3, -1)}));
          receives.back()->id = self.engine.submit(from_anybody(receives.back()->data));
        }
      }
    }
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> sent;
  plan(self.rank, [&](std::uint32_t to, std::uint32_t tag, std::uint32_t elements) {
    InFlight& message = sends.emplace_back(InFlight{0, Values(elements)});
    message.data[0] = static_cast<std::int32_t>(self.rank);
    message.data[1] = static_cast<std::int32_t>(tag);
    message.data[2] = sent[{to, tag}]++;
    if (elements > 3) message.data[elements - 1] = message.data[2] + message.data[1];
    message.id = self.engine.submit(sending(to, tag, message.data));
    while (sends.size() > 200 && !testing::Test::HasFatalFailure()) {
      receive_one();
      collect(false);
    }
    if (random() % 3 == 0) receive_one();
  });
  while (expected != 0 && !testing::Test::HasFatalFailure()) {
    receive_one();
    if (!receives.empty() && random() % 2 == 0) collect(true);
    collect(false);
  }
  while (!sends.empty()) {
    self.finish(sends.front().id);
    sends.pop_front();
  }
  for (const auto& [key, count] : left) ASSERT_EQ(count, 0U) << "of rank " << key.first << " with tag " << key.second;
  ASSERT_FALSE(self.engine.look_for(probing(true, 0, true, 0)));
}

TEST_P(Wildcards, AStormOfMessagesComesWholeAndInOrder) {
  EngineSettings made = settings();
  made.eager_limit = std::min(made.eager_limit, 128U);  // some are announced
  run_ranks(6, made, [](Rank& self) { storm(self, {6, 400, 5, 60}, 11); });
}

// Thirty thousand messages; a million where nothing is drawn (make test-all).
TEST(WildcardStorm, OfThirtyThreeRanks) {
  const char* const draw = std::getenv("UNISONO_DRAW");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  const bool all = draw != nullptr && std::string(draw) == "0";
  EngineSettings made = quick_settings();
  made.timeout = seconds(250);
  run_ranks(33, made, [&](Rank& self) { storm(self, {33, all ? 1'000'000U / 33 + 1 : 1000U, 9, 40}, 5); });
}

// ------------------------------------------------------------------------------------------------- memory

// Of short messages that nobody asks for, a rank keeps so many bytes; then senders announce, and have the rest.
TEST(WildcardMemory, WhatNobodyAsksForIsKeptUpToABound) {
  constexpr std::uint32_t kMessages = 3000;
  constexpr std::size_t kElements = 2000;
  // Thousands in flight at once take sanitizers on a busy machine a minute.
  EngineSettings settings = quick_settings();
  settings.timeout = std::chrono::minutes(10);
  run_ranks(2, settings, [](Rank& self) {
    if (self.rank == 0) {
      // 24 MB, in flight at once, taken in reverse: each message has a tag of its own.
      std::vector<CallId> ids;
      std::vector<Values> data(8, Values(kElements));
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = values(kElements, static_cast<std::uint32_t>(i));
      for (std::uint32_t i = 0; i < kMessages; ++i)
        ids.push_back(self.engine.submit(sending(1, i, data[i % data.size()])));
      Values go{1};
      const CallId last = self.engine.submit(sending(1, kMessages, go));
      for (const CallId id : ids) self.finish(id);
      self.finish(last);
      return;
    }
    Values go(1), in(kElements);
    run(self, receiving(0, kMessages, go));  // behind all others: they have been looked at
    EXPECT_LE(self.engine.state(0).kept, (16U << 20U) + 32 * 8192 + 100'000);
    EXPECT_GE(self.engine.state(0).kept, 8U << 20U);
    for (std::uint32_t i = kMessages; i-- > 0;) {
      CallRequest r = receiving(0, i, in);
      r.any_source = i % 2 == 0;
      r.call.root = 0;
      ASSERT_EQ(run(self, r).bytes, 4 * kElements);
      ASSERT_EQ(in[1], static_cast<std::int32_t>(7 + 1000 * (i % 8)));
    }
    EXPECT_EQ(self.engine.state(0).kept, 0U);
  });
}

}  // namespace
}  // namespace unisono::test
