// Messages over UDP, between threads of this process, on a loopback that loses, turns round and alters datagrams.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "tests/cpp/network/udp_job.hpp"

namespace unisono {
namespace {

using test::exchange_with_all;
using test::try_receive;
using test::try_send;
using test::udp_loopback;
using test::UdpJob;
using test::until;

TEST(UdpTraffic, TwoEndpointsExchangeOnBothLanes) {
  UdpJob(2).on_all([](Poe& poe) { exchange_with_all(poe, 700); });
}

TEST(UdpTraffic, FiveEndpointsExchangeWithAll) {
  UdpJob(5).on_all([](Poe& poe) { exchange_with_all(poe, 100); });
}

class UdpImpaired : public testing::TestWithParam<const char*> {};

TEST_P(UdpImpaired, NothingIsLostDoubledOrAltered) {
  UdpJob(2, udp_loopback(GetParam())).on_all([](Poe& poe) { exchange_with_all(poe, 300); });
}

TEST_P(UdpImpaired, SoItIsInShortDatagrams) {
  udp::UdpSettings settings = udp_loopback(GetParam());
  settings.largest_datagram = 1472;
  UdpJob(3, settings).on_all([](Poe& poe) { exchange_with_all(poe, 60); });
}

INSTANTIATE_TEST_SUITE_P(Ways, UdpImpaired,
                         testing::Values("loss=0.001", "loss=0.01,seed=5", "loss=0.05,seed=9", "reorder=0.1",
                                         "duplicate=0.1", "corrupt=0.02,seed=3",
                                         "loss=0.02,reorder=0.1,duplicate=0.02,corrupt=0.005,seed=11"));

TEST(UdpTraffic, APathThatSwallowsLongDatagramsIsFoundOut) {
  UdpJob job(2, udp_loopback("largest=1500"));
  ASSERT_GT(job[0].max_payload(Lane::kData), 1500U);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  job.drive([&] {
    while (sent < 50 && try_send(sender, 1, Lane::kData, sent, 60'000)) ++sent;
    while (received < 50 && try_receive(receiver, 0, Lane::kData, received, 60'000)) ++received;
    return received == 50;
  });
  EXPECT_LE(job[0].sender(1)->most_piece() + udp::kHeadBytes, 1500U);
}

TEST(UdpTraffic, PingPongOf10000MessagesNeedsNoTimeOut) {
  UdpJob(2).on_all([](Poe& poe) {
    const std::uint32_t peer = 1 - poe.self();
    for (std::uint32_t n = 0; n < 10'000; ++n) {
      if (poe.self() == 0) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
      until(poe, [&] { return try_receive(poe, peer, Lane::kData, n, 8); });
      if (poe.self() == 1) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
    }
  });
}

TEST(UdpTraffic, SleepersOnTheDescriptorAreWokenAtOnce) {
  constexpr std::uint32_t kMessages = 100;
  test::Clock::duration slept{};
  UdpJob(2).on_all([&](Poe& poe) {
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

TEST(UdpTraffic, ADescriptorIsQuietUntilSomethingComes) {
  UdpJob job(2);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  job.drive([&] { return job[0].delivered(1); });
  const auto settled = test::Clock::now() + std::chrono::milliseconds(100);
  job.drive([&] { return test::Clock::now() > settled; });
  for (std::uint32_t endpoint = 0; endpoint < 2; ++endpoint) {
    pollfd sleep{job[endpoint].descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&sleep, 1, 50), 0) << "endpoint " << endpoint << " would never sleep";
  }
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 1, 10));
  pollfd sleep{job[1].descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleep, 1, 5000), 1);
}

TEST(UdpTraffic, AFullWindowRefusesUntilThePeerReads) {
  for (const char* impairment : {"", "loss=0.05,reorder=0.1,seed=3"}) {
    UdpJob job(2, udp_loopback(impairment));
    auto sender = job.poe(0);
    auto receiver = job.poe(1);
    const std::uint32_t bytes = sender.max_payload(Lane::kData);
    ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, bytes));
    job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, bytes); });
    // The peer takes nothing, though it polls: its memory and this end's fill up, for long.
    std::uint32_t sent = 1;
    const auto closed = test::Clock::now() + std::chrono::seconds(1);
    job.drive([&] {
      while (sent < 1000 && try_send(sender, 1, Lane::kData, sent, bytes)) ++sent;
      return test::Clock::now() > closed;
    });
    ASSERT_LT(sent, 1000U) << "nothing holds the sender back";
    // Control still goes.
    ASSERT_TRUE(try_send(sender, 1, Lane::kControl, 0, 100));
    job.drive([&] { return try_receive(receiver, 0, Lane::kControl, 0, 100); });
    std::uint32_t received = 1;
    bool told = false;
    // One poll tells it, so every one is looked at.
    const auto late = test::Clock::now() + std::chrono::seconds(60);
    while ((received < sent || !told) && test::Clock::now() < late) {
      told = job[0].poll() || told;
      job[1].poll();
      while (received < sent && try_receive(receiver, 0, Lane::kData, received, bytes)) ++received;
    }
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(told) << "room that became free must be told";
    EXPECT_TRUE(try_send(sender, 1, Lane::kData, sent, bytes));
  }
}

TEST(UdpTraffic, WhatHasGoneIsDueOnlyWhenItMayHaveToGoAgain) {
  UdpJob job(2);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  EXPECT_EQ(job[0].output_due(), test::Clock::time_point::max());
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  EXPECT_EQ(job[0].output_due(), test::Clock::time_point::min()) << "there is no session yet, and nothing has gone";
  job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  job.drive([&] { return job[0].delivered(1); });
  EXPECT_EQ(job[0].output_due(), test::Clock::time_point::max());
  const auto before = test::Clock::now();
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 1, 10));
  EXPECT_TRUE(job[0].has_output());
  EXPECT_GT(job[0].output_due(), before) << "it has gone, and its acknowledgement is on its way at best";
  EXPECT_LT(job[0].output_due(), test::Clock::now() + std::chrono::seconds(1));
  // More than the peer has room for: the rest goes when acknowledgements come, which somebody must look for.
  const std::uint32_t bytes = sender.max_payload(Lane::kData);
  std::uint32_t sent = 2;
  while (sent < 1000 && try_send(sender, 1, Lane::kData, sent, bytes)) ++sent;
  EXPECT_EQ(job[0].output_due(), test::Clock::time_point::min());
  std::uint32_t received = 1;
  job.drive([&] {
    while (received < sent && try_receive(receiver, 0, Lane::kData, received, received == 1 ? 10 : bytes)) ++received;
    return received == sent && job[0].delivered(1);
  });
  EXPECT_EQ(job[0].output_due(), test::Clock::time_point::max());
}

TEST(UdpTraffic, WhoHasAMessageOwesItsAcknowledgementForAMillisecond) {
  udp::UdpSettings settings = udp_loopback();
  settings.largest_datagram = 1400;
  UdpJob job(2, settings);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  job.drive([&] { return job[0].delivered(1) && !job[1].has_output(); });
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 1, 4000));
  // The reader goes away as soon as it has the message, as a blocking call does.
  const auto late = test::Clock::now() + std::chrono::seconds(30);
  while (!try_receive(receiver, 0, Lane::kData, 1, 4000) && test::Clock::now() < late) job[1].poll();
  if (job[1].has_output()) {  // else it was so slow that it was time
    EXPECT_LE(job[1].output_due(), test::Clock::now() + std::chrono::milliseconds(1));
    std::this_thread::sleep_until(job[1].output_due());
    job[1].poll();
  }
  EXPECT_FALSE(job[1].has_output());
  const auto soon = test::Clock::now() + std::chrono::seconds(30);
  while (!job[0].delivered(1) && test::Clock::now() < soon) job[0].poll();
  EXPECT_TRUE(job[0].delivered(1)) << "nobody asked for it, and the reader has not looked again";
}

TEST(UdpTraffic, AMessageStaysWhereItIsUntilItIsReleased) {
  UdpJob job(2);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 5000));
  Incoming incoming;
  job.drive([&] { return job[1].peek(0, Lane::kData, incoming); });
  const std::byte* const place = incoming.payload.data();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
  std::uint32_t sent = 1;
  const auto later = test::Clock::now() + std::chrono::milliseconds(50);
  job.drive([&] {
    while (try_send(sender, 1, Lane::kData, sent, 5000)) ++sent;
    return test::Clock::now() > later;
  });
  ASSERT_TRUE(job[1].peek(0, Lane::kData, incoming));
  EXPECT_EQ(incoming.payload.data(), place);
  std::uint32_t received = 0;
  job.drive([&] {
    while (received < sent && try_receive(receiver, 0, Lane::kData, received, 5000)) ++received;
    return received == sent;
  });
}

TEST(UdpTraffic, WhoLeavesIsReadAllTheSame) {
  for (const char* impairment : {"", "loss=0.05,duplicate=0.05,seed=21"}) {
    UdpJob(2, udp_loopback(impairment)).on_all([](Poe& poe) {
      if (poe.self() == 0) {
        for (std::uint32_t n = 0; n < 10; ++n) until(poe, [&] { return try_send(poe, 1, Lane::kData, n, 60'000); });
        return;  // and leaves, with most of it on its way
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (std::uint32_t n = 0; n < 10; ++n) until(poe, [&] { return try_receive(poe, 0, Lane::kData, n, 60'000); });
    });
  }
}

TEST(UdpTraffic, LeavingTakesNoLongerThanASecond) {
  UdpJob job(2);
  auto sender = job.poe(0);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 100));  // to somebody who never looks
  const auto begin = test::Clock::now();
  job.networks[0].reset();
  EXPECT_GE(test::Clock::now() - begin, std::chrono::milliseconds(900)) << "it must try";
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(5));
}

TEST(UdpTraffic, MisuseIsRefused) {
  UdpJob job(2);
  Incoming incoming;
  EXPECT_THROW(job[0].reserve(1, Lane::kControl, job[0].max_payload(Lane::kControl) + 1), Error);
  EXPECT_THROW(job[0].reserve(2, Lane::kData, 1), Error);
  EXPECT_THROW(job[0].reserve(0, Lane::kData, 1), Error) << "nobody calls itself";
  EXPECT_THROW(job[1].release(0, Lane::kData), Error);
  EXPECT_THROW(job[0].commit(1, Lane::kData, test::header_for(0, 1, 0, 0)), Error);
  ASSERT_NE(job[0].reserve(1, Lane::kData, 8), nullptr);
  EXPECT_THROW(job[0].commit(1, Lane::kData, test::header_for(0, 1, 0, 9)), Error);
  EXPECT_FALSE(job[1].peek(0, Lane::kData, incoming));
  EXPECT_THROW(udp::impairment_of("loss=2"), Error);
  EXPECT_THROW(udp::impairment_of("pigeon=1"), Error);
}

}  // namespace
}  // namespace unisono
