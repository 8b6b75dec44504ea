// Messages over TCP, between threads of this process: as they are, and encrypted.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "tests/cpp/network/tcp_job.hpp"

namespace unisono {
namespace {

using test::drive;
using test::NetworkPoe;

using test::exchange_with_all;
using test::size_of_message;
using test::TcpJob;
using test::try_receive;
using test::try_send;
using test::until;

/// Both ways of sending; a test's name ends in the one that it ran with.
class TcpTraffic : public testing::TestWithParam<bool> {
 protected:
  static tcp::TcpSettings settings() { return GetParam() ? test::encrypted() : test::loopback(); }
  static void run_on(std::uint32_t size, const std::function<void(Poe&)>& body) {
    test::on_all_by_tcp(size, body, {}, settings());
  }
};
INSTANTIATE_TEST_SUITE_P(By, TcpTraffic, testing::Bool(),
                         [](const auto& by) { return std::string(by.param ? "Tls" : "Tcp"); });

TEST_P(TcpTraffic, TwoEndpointsExchangeOnBothLanes) {
  run_on(2, [](Poe& poe) { exchange_with_all(poe, 700); });
}

TEST_P(TcpTraffic, FiveEndpointsExchangeWithAll) {
  run_on(5, [](Poe& poe) { exchange_with_all(poe, 100); });
}

TEST_P(TcpTraffic, SevenEndpointsAreMoreThanAreAskedOneByOne) {
  run_on(7, [](Poe& poe) { exchange_with_all(poe, 40); });
}

TEST_P(TcpTraffic, OneWayStreamKeepsOrderAndContent) {
  constexpr std::uint32_t kMessages = 3000;
  run_on(2, [](Poe& poe) {
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

/// Sends `messages` messages from 0 to 1 by lending one to eight at once, and control messages beside them, while 1
/// takes them only now and then. The lender overwrites its memory as soon as it is its own again. Returns how often the
/// network needed it for longer.
std::uint32_t lend_many(TcpJob& job, std::uint32_t messages, bool settles) {
  std::vector<std::byte> memory(Poe::kMostLent * 64 * 1024);
  NetworkPoe sender = job.poe(0);
  NetworkPoe receiver = job.poe(1);
  std::uint32_t sent[2]{};
  std::uint32_t received[2]{};
  std::uint32_t lent = 0;
  std::uint32_t rounds = 0;
  bool out = false;
  std::size_t used = 0;  // bytes of the memory
  const auto bytes_of = [](std::uint32_t n) { return n % 3 == 2 ? n % 700 : 64 * 1024 - 64 * (n % 50); };
  drive(job, [&] {
    if (out && !job[0].lends(1)) out = false;
    if (!out && sent[0] < messages) {
      std::vector<Header> headers;
      std::size_t at = 0;
      for (std::uint32_t n = sent[0]; n < messages && headers.size() <= sent[0] % Poe::kMostLent; ++n) {
        headers.push_back(test::header_for(0, 1, n, bytes_of(n)));
        for (std::uint32_t i = 0; i < bytes_of(n); ++i) memory[at++] = test::pattern(0, 1, n, i);
      }
      const Sent result = job[0].lend(1, headers, memory.data());
      if (result != Sent::kNo) sent[0] += static_cast<std::uint32_t>(headers.size());
      if (result == Sent::kLent) {
        ++lent;
        EXPECT_TRUE(job[0].lends(1));
        EXPECT_TRUE(job[0].has_output());
        if (settles) job[0].settle();
        out = job[0].lends(1);
        EXPECT_EQ(out, !settles);
      }
      used = at;
    }
    if (!out) std::fill_n(memory.begin(), std::exchange(used, 0), std::byte{0xee});
    while (sent[1] < sent[0] && test::try_send(sender, 1, Lane::kControl, sent[1], sent[1] % 300)) ++sent[1];
    if (++rounds % 5 == 0) {
      if (test::try_receive(receiver, 0, Lane::kData, received[0], bytes_of(received[0]))) ++received[0];
      while (received[1] < sent[1] && test::try_receive(receiver, 0, Lane::kControl, received[1], received[1] % 300)) {
        ++received[1];
      }
    }
    return received[0] == messages && received[1] == messages;
  });
  EXPECT_FALSE(job[0].has_output());
  return lent;
}

TEST_P(TcpTraffic, LentMemoryIsTakenFromUntilItIsReturned) {
  TcpJob job(2, settings());
  EXPECT_GT(lend_many(job, 200, false), 0U);
}

TEST_P(TcpTraffic, LentMemoryCanBeAskedBack) {
  TcpJob job(2, settings());
  EXPECT_GT(lend_many(job, 200, true), 0U);
}

TEST_P(TcpTraffic, NothingIsLentToWhoIsGone) {
  TcpJob job(2, settings());
  const std::vector<std::byte> memory(std::size_t{64} * 1024);
  std::uint32_t sent = 0;
  drive(job, [&] {
    const Header header = test::header_for(0, 1, sent, 65'536);
    const Sent result = job[0].lend(1, {&header, 1}, memory.data());
    sent += result != Sent::kNo;
    return result == Sent::kLent;
  });
  job.networks[1].reset();
  drive(job, [&] { return job[0].liveness(1) != Poe::Liveness::kAlive || !job[0].lends(1); });
  drive(job, [&] { return job[0].liveness(1) != Poe::Liveness::kAlive; });
  EXPECT_FALSE(job[0].lends(1));
  const Header header = test::header_for(0, 1, sent, 65'536);
  EXPECT_EQ(job[0].lend(1, {&header, 1}, memory.data()), Sent::kNo);
}

TEST_P(TcpTraffic, ShortMessagesThatAreHeldGoTogether) {
  TcpJob job(2, settings());
  NetworkPoe sender = job.poe(0);
  NetworkPoe receiver = job.poe(1);
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  const auto send = [&](std::uint32_t bytes) {
    std::vector<std::byte> payload(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) payload[i] = test::pattern(0, 1, sent, i);
    ASSERT_TRUE(job[0].send(1, Lane::kData, test::header_for(0, 1, sent, bytes), payload));
    ++sent;
  };
  // Only the receiver looks: what it does not get was not sent.
  const auto arrive = [&](std::uint32_t number, std::uint32_t bytes) {
    const auto deadline = test::Clock::now() + std::chrono::seconds(20);
    while (received < number && test::Clock::now() < deadline) {
      job.networks[1]->poll();
      if (test::try_receive(receiver, 0, Lane::kData, received, bytes)) ++received;
    }
    ASSERT_EQ(received, number);
  };
  const auto nothing_comes = [&] {
    for (int i = 0; i < 2000; ++i) job.networks[1]->poll();
    Incoming incoming;
    EXPECT_FALSE(job[1].peek(0, Lane::kData, incoming));
  };
  send(40);
  drive(job, [&] { return test::try_receive(receiver, 0, Lane::kData, 0, 40); });
  received = 1;
  job[0].poll();

  job[0].hold(true);
  send(40);  // the first since the last look goes at once
  EXPECT_FALSE(job[0].has_output());
  arrive(2, 40);
  for (int i = 0; i < 3; ++i) send(40);
  job[0].hold(false);
  EXPECT_TRUE(job[0].has_output());
  nothing_comes();
  job[0].poll();
  EXPECT_FALSE(job[0].has_output());
  arrive(5, 40);

  job[0].hold(true);
  for (int i = 0; i < 4; ++i) send(40);
  job[0].hold(false);
  send(40);  // one that is not held takes the others along
  EXPECT_FALSE(job[0].has_output());
  arrive(10, 40);
  job[0].poll();

  job[0].hold(true);
  send(40);
  send(40);
  arrive(11, 40);
  send(2000);  // too much to wait
  EXPECT_FALSE(job[0].has_output());
  arrive(12, 40);
  arrive(13, 2000);
  job[0].hold(false);
}

TEST_P(TcpTraffic, PingPongOf20000MessagesNeedsNoTimeOut) {
  run_on(2, [](Poe& poe) {
    const std::uint32_t peer = 1 - poe.self();
    for (std::uint32_t n = 0; n < 10'000; ++n) {
      if (poe.self() == 0) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
      until(poe, [&] { return try_receive(poe, peer, Lane::kData, n, 8); });
      if (poe.self() == 1) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 8); });
    }
  });
}

TEST_P(TcpTraffic, SleepersOnTheDescriptorAreWokenAtOnce) {
  constexpr std::uint32_t kMessages = 100;
  test::Clock::duration slept{};
  run_on(2, [&](Poe& poe) {
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

TEST_P(TcpTraffic, ADescriptorIsQuietUntilSomethingComes) {
  TcpJob job(2, settings());
  auto sender = job.poe(0);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  auto poe = job.poe(1);
  drive(job, [&] { return try_receive(poe, 0, Lane::kData, 0, 10); });
  for (std::uint32_t endpoint = 0; endpoint < 2; ++endpoint) {
    while (job[endpoint].poll()) {
    }
    pollfd sleep{job[endpoint].descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&sleep, 1, 50), 0) << "endpoint " << endpoint << " would never sleep";
  }
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 1, 10));
  pollfd sleep{job[1].descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleep, 1, 5000), 1);
}

TEST_P(TcpTraffic, AFullBufferRefusesUntilThePeerReads) {
  TcpJob job(2, settings());
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  const std::uint32_t bytes = sender.max_payload(Lane::kData);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, bytes));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, bytes); });
  // The peer takes nothing: its buffer, the kernel's, and this end's fill up.
  std::uint32_t sent = 1;
  const auto stuck = [&] {
    const auto deadline = test::Clock::now() + std::chrono::milliseconds(100);
    while (test::Clock::now() < deadline) {
      job[0].poll();
      if (try_send(sender, 1, Lane::kData, sent, bytes)) return false;
    }
    return true;
  };
  // On a loaded machine the kernel may move something on at any time.
  const auto deadline_of_rest = test::Clock::now() + std::chrono::seconds(20);
  do {
    while (!stuck()) ASSERT_LT(++sent, 2000U) << "nothing holds the sender back";
    ASSERT_LT(test::Clock::now(), deadline_of_rest) << "nothing has come, and no room become free";
  } while (job[0].poll());
  // Control still goes, and is read before the data that came earlier.
  ASSERT_TRUE(try_send(sender, 1, Lane::kControl, 0, 100));

  std::uint32_t received = 1;
  bool control = false;
  bool told = false;
  // Not by `drive`, whose own look could be the one that is told.
  for (const auto deadline = test::Clock::now() + std::chrono::seconds(20); received != sent || !control;) {
    ASSERT_LT(test::Clock::now(), deadline) << received << " of " << sent;
    told = job[0].poll() || told;
    job[1].poll();
    control = control || try_receive(receiver, 0, Lane::kControl, 0, 100);
    while (received < sent && try_receive(receiver, 0, Lane::kData, received, bytes)) ++received;
  }
  EXPECT_TRUE(told) << "room that became free must be told";
  EXPECT_TRUE(try_send(sender, 1, Lane::kData, sent, bytes));
}

TEST_P(TcpTraffic, ControlOvertakesDataThatTheReceiverLeaves) {
  TcpJob job(2, settings());
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  for (std::uint32_t n = 0; n < 3; ++n) ASSERT_TRUE(try_send(sender, 1, Lane::kData, n, 20'000));
  for (std::uint32_t n = 0; n < 5; ++n) ASSERT_TRUE(try_send(sender, 1, Lane::kControl, n, 300));
  std::uint32_t control = 0;
  drive(job, [&] {
    while (control < 5 && try_receive(receiver, 0, Lane::kControl, control, 300)) ++control;
    return control == 5;
  });
  std::uint32_t data = 0;
  drive(job, [&] {
    while (data < 3 && try_receive(receiver, 0, Lane::kData, data, 20'000)) ++data;
    return data == 3;
  });
}

TEST_P(TcpTraffic, AMessageStaysWhereItIsUntilItIsReleased) {
  TcpJob job(2, settings());
  auto sender = job.poe(0);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 5000));
  Incoming incoming;
  drive(job, [&] { return job[1].peek(0, Lane::kData, incoming); });
  const std::byte* const place = incoming.payload.data();
  for (std::uint32_t n = 1; n < 20; ++n) {
    ASSERT_TRUE(try_send(sender, 1, Lane::kData, n, 5000));
    for (int i = 0; i < 50; ++i) {
      job[0].poll();
      job[1].poll();
    }
  }
  ASSERT_TRUE(job[1].peek(0, Lane::kData, incoming));
  EXPECT_EQ(incoming.payload.data(), place);
  auto receiver = job.poe(1);
  std::uint32_t received = 0;
  drive(job, [&] {
    while (received < 20 && try_receive(receiver, 0, Lane::kData, received, 5000)) ++received;
    return received == 20;
  });
}

TEST_P(TcpTraffic, MisuseIsRefused) {
  TcpJob job(2, settings());
  Incoming incoming;
  EXPECT_THROW(job[0].reserve(1, Lane::kControl, job[0].max_payload(Lane::kControl) + 1), Error);
  EXPECT_THROW(job[0].reserve(2, Lane::kData, 1), Error);
  EXPECT_THROW(job[0].reserve(0, Lane::kData, 1), Error) << "nobody connects to itself";
  EXPECT_THROW(job[1].release(0, Lane::kData), Error);
  EXPECT_THROW(job[0].commit(1, Lane::kData, test::header_for(0, 1, 0, 0)), Error);
  ASSERT_NE(job[0].reserve(1, Lane::kData, 8), nullptr);
  EXPECT_THROW(job[0].commit(1, Lane::kData, test::header_for(0, 1, 0, 9)), Error);
  EXPECT_FALSE(job[1].peek(0, Lane::kData, incoming));
  for (std::uint32_t bytes : {0U, 1U, 64U, 1000U, 65536U}) {
    const auto* place = job[0].reserve(1, Lane::kData, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
  }
}

TEST_P(TcpTraffic, WhatIsNotUsedIsNotInUse) {
  TcpJob job(3, settings());
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_FALSE(job[i].in_use());
  EXPECT_EQ(job[0].liveness(1), Poe::Liveness::kAlive);
  EXPECT_TRUE(job[0].in_use()) << "the question is a session";
  drive(job, [&] { return job[1].in_use(); });
  EXPECT_FALSE(job[2].in_use());
}

TEST_P(TcpTraffic, ConnectionsAtTheSameTimeBecomeOne) {
  for (std::uint32_t round = 0; round < 60; ++round) {
    run_on(2, [&](Poe& poe) {
      const std::uint32_t peer = 1 - poe.self();
      // Now one, now the other begins a little earlier.
      if (round % 3 == poe.self()) std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
      for (std::uint32_t n = 0; n < 3; ++n) until(poe, [&] { return try_send(poe, peer, Lane::kData, n, 1000 * n); });
      for (std::uint32_t n = 0; n < 3; ++n) {
        until(poe, [&] { return try_receive(poe, peer, Lane::kData, n, 1000 * n); });
      }
    });
  }
}

TEST_P(TcpTraffic, InterleavedAttemptsInOneThreadBecomeOneConnection) {
  // All orders of polls of the two ends, as far as they matter: each bit says who polls next.
  for (std::uint32_t order = 0; order < 256; ++order) {
    TcpJob job(2, settings());
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
    EXPECT_EQ(job[0].liveness(1), Poe::Liveness::kAlive) << order;
    EXPECT_EQ(job[1].liveness(0), Poe::Liveness::kAlive) << order;
    EXPECT_EQ(job[0].refused() + job[1].refused(), 0U) << order;
  }
}

}  // namespace
}  // namespace unisono
