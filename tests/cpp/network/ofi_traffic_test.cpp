// Messages by libfabric, between processes and within one.
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <random>

#include "tests/cpp/network/ofi_job.hpp"

namespace unisono {
namespace {

using test::drive;
using test::exchange_with_all;
using test::OfiJob;
using test::on_all_by_ofi;
using test::size_of_message;
using test::try_receive;
using test::try_send;
using test::until;

class OfiTraffic : public test::OfiProviders {};
INSTANTIATE_TEST_SUITE_P(Over, OfiTraffic, testing::Values("tcp;ofi_rxm", "shm"), test::provider_name);

TEST_P(OfiTraffic, TwoEndpointsExchangeOnBothLanes) {
  on_all_by_ofi(2, GetParam(), [](Poe& poe) { exchange_with_all(poe, 700); });
}

TEST_P(OfiTraffic, EightEndpointsExchangeWithAll) {
  on_all_by_ofi(8, GetParam(), [](Poe& poe) { exchange_with_all(poe, 60); });
}

TEST_P(OfiTraffic, OneWayStreamKeepsOrderAndContent) {
  constexpr std::uint32_t kMessages = 3000;
  on_all_by_ofi(2, GetParam(), [](Poe& poe) {
    for (std::uint32_t n = 0; n < kMessages; ++n) {
      const std::uint32_t bytes = size_of_message(n, 30'000);
      if (poe.self() == 0) {
        until(poe, [&] { return try_send(poe, 1, Lane::kData, n, bytes); });
      } else {
        until(poe, [&] { return try_receive(poe, 0, Lane::kData, n, bytes); });
      }
    }
  });
}

TEST_P(OfiTraffic, PingPongNeedsNoTimeOut) {
  on_all_by_ofi(2, GetParam(), [](Poe& poe) {
    const std::uint32_t peer = 1 - poe.self();
    for (std::uint32_t n = 0; n < 3000; ++n) {
      if (poe.self() == 0) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
      until(poe, [&] { return try_receive(poe, peer, Lane::kData, n, 8); });
      if (poe.self() == 1) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
    }
  });
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_P(OfiTraffic, ASleeperTakesNextToNoTimeAndIsWoken) {
  on_all_by_ofi(2, GetParam(), [](Poe& poe) {
    const std::uint32_t peer = 1 - poe.self();
    until(poe, [&] { return try_send(poe, peer, Lane::kData, 0, 10); });
    until(poe, [&] { return try_receive(poe, peer, Lane::kData, 0, 10); });
    if (poe.self() == 0) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      until(poe, [&] { return try_send(poe, peer, Lane::kData, 1, 10); });
      return;
    }
    const double before = processor_seconds();
    const auto begin = test::Clock::now();
    until(poe, [&] { return try_receive(poe, peer, Lane::kData, 1, 10); });
    test::require(test::Clock::now() - begin < std::chrono::milliseconds(1500), "it was woken at once");
    test::require(processor_seconds() - before < 0.1, "it slept");
  });
}

constexpr const char* kTcp = "tcp;ofi_rxm";

/// Endpoints of this process, looked at in turn.
class OfiWindow : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = test::missing_provider(kTcp);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(OfiWindow, BothEndsBeginAtOnceInAnyOrder) {
  // Which of the two looks first, in all orders of eight looks.
  for (std::uint32_t order = 0; order < 256; order += 15) {
    OfiJob job(2, kTcp);
    auto zero = job.poe(0);
    auto one = job.poe(1);
    ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 77));
    ASSERT_TRUE(try_send(one, 0, Lane::kData, 0, 99));
    for (std::uint32_t bit = 0; bit < 8; ++bit) job[(order >> bit) & 1U].poll();
    bool at_zero = false;
    bool at_one = false;
    drive(job, [&] {
      at_zero = at_zero || try_receive(zero, 1, Lane::kData, 0, 99);
      at_one = at_one || try_receive(one, 0, Lane::kData, 0, 77);
      return at_zero && at_one;
    });
    EXPECT_EQ(job[0].refused() + job[1].refused(), 0U) << order;
    // Both leave in one thread, so neither hears the other's farewell while it waits.
    std::thread leaver([&] { job.networks[0].reset(); });
    job.networks[1].reset();
    leaver.join();
  }
}

TEST_F(OfiWindow, AFullWindowRefusesUntilThePeerReads) {
  OfiJob job(2, kTcp);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  const std::uint32_t bytes = sender.max_payload(Lane::kData);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, bytes));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, bytes); });
  // The peer takes nothing: the window fills.
  std::uint32_t sent = 1;
  const auto stuck = [&] {
    const auto deadline = test::Clock::now() + std::chrono::milliseconds(100);
    while (test::Clock::now() < deadline) {
      job[0].poll();
      job[1].poll();
      if (try_send(sender, 1, Lane::kData, sent, bytes)) return false;
    }
    return true;
  };
  while (!stuck()) ASSERT_LT(++sent, 100U) << "nothing holds the sender back";
  EXPECT_GE(sent, 8U);
  // The other lane goes on.
  for (std::uint32_t n = 0; n < 200; ++n) {
    drive(job, [&] { return try_send(sender, 1, Lane::kControl, n, 500); });
    drive(job, [&] { return try_receive(receiver, 0, Lane::kControl, n, 500); });
  }
  // These have told it of the first message, which was released.
  while (!stuck()) ASSERT_LT(++sent, 100U) << "nothing holds the sender back";
  // It is told when there is room.
  bool told = false;
  std::uint32_t received = 1;
  const auto deadline = test::Clock::now() + std::chrono::seconds(10);
  while (!told && test::Clock::now() < deadline) {
    if (received < sent && try_receive(receiver, 0, Lane::kData, received, bytes)) ++received;
    job[1].poll();
    told = job[0].poll();
  }
  EXPECT_TRUE(told);
  drive(job, [&] { return try_send(sender, 1, Lane::kData, sent, bytes); });
  drive(job, [&] {
    if (received <= sent && try_receive(receiver, 0, Lane::kData, received, bytes)) ++received;
    return received == sent + 1;
  });
}

TEST_F(OfiWindow, WhoDoesNotReadBlocksNobodyElse) {
  OfiJob job(8, kTcp);
  std::deque<test::NetworkPoe> poes;
  for (std::uint32_t i = 0; i < 8; ++i) poes.emplace_back(job[i], i, 8U);
  // Six endpoints fill endpoint 0 with long messages that it does not look at.
  std::vector<std::uint32_t> stuck(8);
  for (std::uint32_t round = 0; round < 2000; ++round) {
    for (std::uint32_t i = 2; i < 8; ++i) {
      if (try_send(poes[i], 0, Lane::kData, stuck[i], 65'536)) ++stuck[i];
    }
    for (const auto& network : job.networks) network->poll();
  }
  for (std::uint32_t n = 0; n < 300; ++n) {
    drive(job, [&] { return try_send(poes[1], 0, Lane::kData, n, 20'000); });
    drive(job, [&] { return try_receive(poes[0], 1, Lane::kData, n, 20'000); });
  }
  for (std::uint32_t i = 2; i < 8; ++i) {
    EXPECT_GE(stuck[i], 8U);
    for (std::uint32_t n = 0; n < stuck[i]; ++n) {
      drive(job, [&] { return try_receive(poes[0], i, Lane::kData, n, 65'536); });
    }
  }
}

TEST_F(OfiWindow, AReservationCanBeDroppedOrMadeShorter) {
  OfiJob job(2, kTcp);
  auto receiver = job.poe(1);
  ASSERT_NE(job[0].reserve(1, Lane::kData, 30'000), nullptr);
  ASSERT_NE(job[0].reserve(1, Lane::kData, 10), nullptr);
  std::byte* const place = job[0].reserve(1, Lane::kData, 20'000);
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
  for (std::uint32_t i = 0; i < 5; ++i) place[i] = test::pattern(0, 1, 0, i);
  job[0].commit(1, Lane::kData, test::header_for(0, 1, 0, 5));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 5); });
  EXPECT_THROW(job[0].reserve(1, Lane::kData, 65'537), Error);
  EXPECT_THROW(job[0].commit(1, Lane::kData, test::header_for(0, 1, 0, 5)), Error);
  EXPECT_THROW(job[0].release(1, Lane::kData), Error);
  EXPECT_THROW(job[0].reserve(0, Lane::kData, 5), Error);
  EXPECT_THROW(job[0].reserve(2, Lane::kData, 5), Error);
}

}  // namespace
}  // namespace unisono
