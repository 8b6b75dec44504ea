// Endpoints in threads of one process: the same rings, wake-ups and states as between processes.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "platform/join/job.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono {
namespace {

using test::size_of_message;
using test::try_receive;
using test::try_send;
using test::until;

/// Runs `body(poe)` on a thread for every endpoint and rethrows what any of them throws.
template <typename Body>
void on_all(std::uint32_t size, Body body) {
  ThreadJob job(size);
  std::vector<std::exception_ptr> failures(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto poe = job.endpoint(rank);
        body(*poe);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Sizes that go through everything: empty, one byte, line borders, the largest.
TEST(Threads, OneWayStreamKeepsOrderAndContentOnBothLanes) {
  constexpr std::uint32_t kMessages = 4000;
  on_all(2, [](Poe& poe) {
    for (const Lane lane : {Lane::kData, Lane::kControl}) {
      for (std::uint32_t n = 0; n < kMessages; ++n) {
        const std::uint32_t bytes = size_of_message(n, std::min(poe.max_payload(lane), 20'000U));
        if (poe.self() == 0) {
          until(poe, [&] { return try_send(poe, 1, lane, n, bytes); });
        } else {
          until(poe, [&] { return try_receive(poe, 0, lane, n, bytes); });
        }
      }
    }
  });
}

TEST(Threads, PingPongOf100000MessagesLosesNoWakeUp) {
  constexpr std::uint32_t kRounds = 50'000;
  const auto begin = test::Clock::now();
  on_all(2, [](Poe& poe) {
    const std::uint32_t peer = 1 - poe.self();
    for (std::uint32_t n = 0; n < kRounds; ++n) {
      if (poe.self() == 0) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
      until(poe, [&] { return try_receive(poe, peer, Lane::kData, n, 8); });
      if (poe.self() == 1) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
    }
  });
  RecordProperty("microseconds", static_cast<int>((test::Clock::now() - begin) / std::chrono::microseconds(1)));
}

TEST(Threads, SleepersAreWokenAtOnce) {
  // The receiver sleeps in the kernel long before each message comes; a lost wake-up costs 50 ms or more.
  constexpr std::uint32_t kMessages = 200;
  std::chrono::steady_clock::duration slept{};
  on_all(2, [&](Poe& poe) {
    for (std::uint32_t n = 0; n < kMessages; ++n) {
      if (poe.self() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        until(poe, [&] { return try_send(poe, 1, Lane::kControl, n, 16); });
      } else {
        const auto begin = test::Clock::now();
        until(poe, [&] { return try_receive(poe, 0, Lane::kControl, n, 16); });
        slept += test::Clock::now() - begin;
      }
    }
  });
  EXPECT_LT(slept, kMessages * std::chrono::milliseconds(25));
}

TEST(Threads, EightEndpointsOnFewCoresExchangeWithAll) {
  constexpr std::uint32_t kSize = 8;
  constexpr std::uint32_t kMessages = 60;
  on_all(kSize, [](Poe& poe) {
    std::vector<std::uint32_t> sent(kSize), received(kSize);
    until(poe, [&] {
      bool done = true;
      for (std::uint32_t peer = 0; peer < kSize; ++peer) {  // itself included
        const auto bytes = [](std::uint32_t n) { return size_of_message(n, 30'000); };
        while (sent[peer] < kMessages && try_send(poe, peer, Lane::kData, sent[peer], bytes(sent[peer]))) ++sent[peer];
        while (received[peer] < kMessages &&
               try_receive(poe, peer, Lane::kData, received[peer], bytes(received[peer]))) {
          ++received[peer];
        }
        done = done && sent[peer] == kMessages && received[peer] == kMessages;
      }
      return done;
    });
  });
}

TEST(Threads, AFullRingRefusesUntilTheReceiverReleases) {
  ThreadJob job(2);
  const auto sender = job.endpoint(0);
  const auto receiver = job.endpoint(1);
  const std::uint32_t bytes = sender->max_payload(Lane::kData);
  std::uint32_t sent = 0;
  while (try_send(*sender, 1, Lane::kData, sent, bytes)) ASSERT_LT(++sent, 100U);
  ASSERT_GE(sent, 2U);
  // Control is never blocked by data.
  EXPECT_TRUE(try_send(*sender, 1, Lane::kControl, 0, 64));
  EXPECT_TRUE(try_receive(*receiver, 0, Lane::kControl, 0, 64));

  const std::uint32_t seen = sender->activity();
  EXPECT_TRUE(try_receive(*receiver, 0, Lane::kData, 0, bytes));
  EXPECT_NE(sender->activity(), seen) << "a release that makes space must be announced";
  EXPECT_TRUE(try_receive(*receiver, 0, Lane::kData, 1, bytes));
  EXPECT_TRUE(try_send(*sender, 1, Lane::kData, sent, bytes));
}

TEST(Threads, WaitReturnsAtItsBoundAndAtOnceIfSomethingHappened) {
  ThreadJob job(2);
  const auto poe = job.endpoint(0);
  const auto peer = job.endpoint(1);
  const auto begin = test::Clock::now();
  poe->wait(poe->activity(), std::chrono::milliseconds(120));
  const auto slept = test::Clock::now() - begin;
  EXPECT_GE(slept, std::chrono::milliseconds(120));
  EXPECT_LT(slept, std::chrono::seconds(10));

  const std::uint32_t seen = poe->activity();
  ASSERT_TRUE(try_send(*peer, 0, Lane::kControl, 0, 0));
  const auto again = test::Clock::now();
  poe->wait(seen, std::chrono::seconds(30));
  EXPECT_LT(test::Clock::now() - again, std::chrono::seconds(10));
}

TEST(Threads, LeavingIsSeenAndSentMessagesRemain) {
  ThreadJob job(3);
  const auto poe = job.endpoint(0);
  EXPECT_EQ(poe->liveness(1), Poe::Liveness::kAlive) << "who has not come yet has not left";
  EXPECT_NE(poe->describe(1).find("not joined"), std::string::npos);
  auto peer = job.endpoint(1);
  EXPECT_EQ(poe->liveness(1), Poe::Liveness::kAlive);
  ASSERT_TRUE(try_send(*peer, 0, Lane::kData, 0, 100));
  const std::uint32_t seen = poe->activity();
  peer.reset();
  EXPECT_NE(poe->activity(), seen) << "leaving must wake the others";
  EXPECT_EQ(poe->liveness(1), Poe::Liveness::kLeft);
  EXPECT_EQ(poe->liveness(0), Poe::Liveness::kAlive);
  EXPECT_TRUE(try_receive(*poe, 1, Lane::kData, 0, 100));
}

TEST(Threads, AnEndpointIsTakenOnce) {
  ThreadJob job(2);
  const auto poe = job.endpoint(1);
  try {
    job.endpoint(1);
    FAIL() << "endpoint 1 was given twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
    EXPECT_NE(std::string(error.what()).find("endpoint 1"), std::string::npos) << error.what();
  }
  EXPECT_THROW(job.endpoint(2), Error);
  EXPECT_THROW(ThreadJob(0), Error);
  EXPECT_THROW(ThreadJob(100'000), Error);
}

TEST(Threads, MisuseIsRefused) {
  ThreadJob job(2);
  const auto poe = job.endpoint(0);
  EXPECT_THROW(poe->reserve(1, Lane::kControl, poe->max_payload(Lane::kControl) + 1), Error);
  EXPECT_THROW(poe->reserve(2, Lane::kData, 1), Error);
  EXPECT_THROW(poe->release(1, Lane::kData), Error);
  EXPECT_THROW(poe->commit(1, Lane::kData, test::header_for(0, 1, 0, 0)), Error);
  ASSERT_NE(poe->reserve(1, Lane::kData, 8), nullptr);
  EXPECT_THROW(poe->commit(1, Lane::kData, test::header_for(0, 1, 0, 9)), Error);
}

}  // namespace
}  // namespace unisono
