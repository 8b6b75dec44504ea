// Which network carries data, and what becomes of it when a peer goes.
#include "network/ways.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "core/error.hpp"
#include "network/ofi/ofi_network.hpp"
#include "tests/cpp/network/memory_endpoint.hpp"
#include "tests/cpp/network/processes.hpp"
#include "tests/cpp/network/tcp_job.hpp"
#include "tests/cpp/network/udp_job.hpp"

namespace unisono {
namespace {

using test::Child;
using test::exchange_with_all;
using test::require;
using test::try_receive;
using test::try_send;
using test::until;
using Liveness = Poe::Liveness;

std::unique_ptr<Ways> make_ways(const std::vector<std::string>& order, const udp::UdpSettings& settings) {
  std::vector<std::unique_ptr<Network>> others;
  others.push_back(std::make_unique<udp::UdpNetwork>(settings));
  return std::make_unique<Ways>(std::make_unique<tcp::TcpNetwork>(test::loopback()), std::move(others), order,
                                std::chrono::milliseconds(1500));
}

struct WaysJob : test::NetworkJob<Ways> {
  explicit WaysJob(std::uint32_t size, const std::vector<std::string>& order = {"udp"},
                   const std::string& impairment = {})
      : NetworkJob(size, [&](std::uint32_t endpoint) {
          udp::UdpSettings own = test::udp_loopback(impairment);
          own.impairment.seed += endpoint;
          return make_ways(order, own);
        }) {}
};

TEST(Ways, DataGoByUdpAndControlByTheLifeline) {
  WaysJob job(2);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  bool sent = false;
  job.drive([&] { return sent = sent || try_send(sender, 1, Lane::kData, 0, 5000); });
  EXPECT_STREQ(job[0].way_to(1), "udp");
  ASSERT_TRUE(try_send(sender, 1, Lane::kControl, 0, 500));
  job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 5000); });
  job.drive([&] { return try_receive(receiver, 0, Lane::kControl, 0, 500); });
  EXPECT_EQ(job[0].liveness(1), Liveness::kAlive);
}

TEST(Ways, AllExchangeWithAll) {
  WaysJob(4).on_all([](Poe& poe) { exchange_with_all(poe, 120); });
}

TEST(Ways, AllExchangeWithAllThroughABadNetwork) {
  WaysJob(3, {"udp"}, "loss=0.02,reorder=0.1,duplicate=0.02,corrupt=0.002,seed=4").on_all([](Poe& poe) {
    exchange_with_all(poe, 120);
  });
}

TEST(Ways, WhereUdpIsBlockedDataGoByTcp) {
  WaysJob job(2, {"udp", "tcp"}, "loss=1");
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  const auto begin = test::Clock::now();
  bool sent = false;
  job.drive([&] { return sent = sent || try_send(sender, 1, Lane::kData, 0, 5000); });
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(8));
  EXPECT_STREQ(job[0].way_to(1), "tcp");
  job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 5000); });
  EXPECT_EQ(job[0].liveness(1), Liveness::kAlive);
}

TEST(Ways, WhereUdpIsBlockedAndNothingElseAllowedThePeerIsDead) {
  WaysJob job(2, {"udp"}, "loss=1");
  auto sender = job.poe(0);
  job.drive([&] { return !try_send(sender, 1, Lane::kData, 0, 5000) && job[0].liveness(1) == Liveness::kDead; });
  const std::string condition = job[0].condition(1);
  for (const char* part : {"host0", "host1", "127.0.0.1:", "udp", "did not answer within"}) {
    EXPECT_NE(condition.find(part), std::string::npos) << condition;
  }
  job.drive([&] { return job[1].liveness(0) == Liveness::kDead; });
}

TEST(Ways, APeerThatHasNotGotUdpIsReachedByTcp) {
  std::vector<std::unique_ptr<Network>> networks;
  networks.push_back(make_ways({"udp", "tcp"}, test::udp_loopback()));
  networks.push_back(std::make_unique<tcp::TcpNetwork>(test::loopback()));
  NetworkMembers members{0, test::key_of(7), {networks[0]->card(), networks[1]->card()}, {"a", "b"}};
  networks[0]->meet(members);
  // The other one reads the lifeline's card alone.
  tcp::TcpNetwork unused(test::loopback());
  members.cards[0] = unused.card();
  ASSERT_STREQ(networks[0]->way_to(1), "tcp");
  EXPECT_NE(networks[0]->reserve(1, Lane::kData, 10), nullptr);
}

TEST(Ways, WhatThisHostLacksIsNobodysEnd) {
  test::Wires wires;
  test::NetworkJob<Ways> job(2, [&](std::uint32_t) {
    std::vector<std::unique_ptr<Network>> others;
    others.push_back(std::make_unique<ofi::OfiNetwork>(std::make_unique<test::MemoryEndpoint>(wires, test::Manners{}),
                                                       std::chrono::milliseconds(5)));
    return std::make_unique<Ways>(std::make_unique<tcp::TcpNetwork>(test::loopback()), std::move(others),
                                  std::vector<std::string>{"ofi"}, std::chrono::milliseconds(300));
  });
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  // The lifeline is there, and for longer than the last network has to be answered, this host has no port for it.
  wires[0]->fail_sends(EADDRNOTAVAIL);
  const auto later = test::Clock::now() + std::chrono::milliseconds(1500);
  job.drive([&] { return test::Clock::now() > later && job[0].trial(1) == Trial::kProven; });
  ASSERT_FALSE(try_send(sender, 1, Lane::kData, 0, 100));
  const auto much_later = test::Clock::now() + std::chrono::milliseconds(1500);
  job.drive([&] { return test::Clock::now() > much_later; });
  EXPECT_EQ(job[0].liveness(1), Liveness::kAlive) << job[0].condition(1);
  EXPECT_NE(job[0].condition(1).find("no port of this host is free"), std::string::npos) << job[0].condition(1);
  wires[0]->fail_sends(0);
  bool sent = false;
  job.drive([&] { return sent = sent || try_send(sender, 1, Lane::kData, 0, 100); });
  job.drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 100); });
  EXPECT_EQ(job[0].condition(1), "");
}

TEST(Ways, WhoIsBusyIsWaitedFor) {
  WaysJob job(2, {"udp", "tcp"});
  std::thread busy([&] {
    std::this_thread::sleep_for(Ways::kPatience + std::chrono::milliseconds(500));
    auto poe = job.poe(1);
    until(poe, [&] { return try_receive(poe, 0, Lane::kData, 0, 100); });
  });
  auto poe = job.poe(0);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  EXPECT_STREQ(job[0].way_to(1), "udp");
  const auto deadline = test::Clock::now() + std::chrono::seconds(5);
  while (!job[0].delivered(1) && test::Clock::now() < deadline) job[0].poll();
  busy.join();
}

TEST(Ways, WhoLeavesWithDataOnItsWayIsReadAllTheSame) {
  for (const char* impairment : {"", "loss=0.05,reorder=0.1,seed=8"}) {
    WaysJob job(2, {"udp"}, impairment);
    auto leaving = job.poe(0);
    auto staying = job.poe(1);
    std::uint32_t sent = 0;
    job.drive([&] {
      while (sent < 10 && try_send(leaving, 1, Lane::kData, sent, 60'000)) ++sent;
      return sent == 10;
    });
    std::thread leaver([&] { job.networks[0].reset(); });
    const auto deadline = test::Clock::now() + std::chrono::seconds(10);
    while (job[1].liveness(0) == Liveness::kAlive && test::Clock::now() < deadline) job[1].poll();
    leaver.join();
    EXPECT_EQ(job[1].liveness(0), Liveness::kLeft) << job[1].condition(0);
    for (std::uint32_t n = 0; n < 10; ++n) EXPECT_TRUE(try_receive(staying, 0, Lane::kData, n, 60'000)) << n;
    EXPECT_EQ(staying.reserve(0, Lane::kData, 1), nullptr);
  }
}

TEST(Ways, WhoLeavesDoesNotWaitForThoseWhoHaveLeft) {
  WaysJob job(2);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  std::uint32_t sent = 0;
  bool back = false;
  job.drive([&] {
    if (sent == 0 && try_send(zero, 1, Lane::kData, 0, 100)) ++sent;
    back = back || try_send(one, 0, Lane::kData, 0, 100);
    return sent == 1 && back;
  });
  while (try_send(zero, 1, Lane::kData, sent, 60'000)) ++sent;
  job.networks[1].reset();
  const auto begin = test::Clock::now();
  job.networks[0].reset();
  EXPECT_LT(test::Clock::now() - begin, std::chrono::milliseconds(900));
}

/// A job of two of which this process has endpoint 0, and a child endpoint 1.
struct Halves {
  explicit Halves(const std::function<void(Network&)>& body) : network(make_ways({"udp"}, test::udp_loopback())) {
    int up[2];
    int down[2];
    if (pipe(up) != 0 || pipe(down) != 0) throw std::runtime_error("no pipe");
    const auto mine = network->card();
    child.emplace([&, up, down] {
      const auto theirs = make_ways({"udp"}, test::udp_loopback());
      const auto card = theirs->card();
      char go = 0;
      require(write(up[1], card.data(), card.size()) == static_cast<ssize_t>(card.size()), "card told");
      require(read(down[0], &go, 1) == 1, "told to go on");
      theirs->meet({1, test::key_of(3), {mine, card}, {"a", "b"}});
      body(*theirs);
    });
    std::vector<std::byte> theirs(Network::kMostCardBytes);
    const ssize_t got = read(up[0], theirs.data(), theirs.size());
    require(got > 0, "the child has told its card");
    theirs.resize(static_cast<std::size_t>(got));
    network->meet({0, test::key_of(3), {mine, theirs}, {"a", "b"}});
    require(write(down[1], "!", 1) == 1, "the child goes on");
    for (const int fd : {up[0], up[1], down[0], down[1]}) close(fd);
  }
  std::unique_ptr<Ways> network;
  std::optional<Child> child;
};

TEST(Ways, AKilledPeerIsDeadWithinASecondAndWhatItSentIsThere) {
  Halves job([](Network& network) {
    test::NetworkPoe poe(network, 1, 2);
    until(poe, [&] { return try_receive(poe, 0, Lane::kData, 0, 100); });
    for (std::uint32_t n = 0; n < 5; ++n) until(poe, [&] { return try_send(poe, 0, Lane::kData, n, 30'000); });
    raise(SIGKILL);
  });
  test::NetworkPoe poe(*job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  Incoming incoming;
  until(poe, [&] { return job.network->peek(1, Lane::kData, incoming); });
  const auto begin = test::Clock::now();
  while (job.network->liveness(1) == Liveness::kAlive) {
    job.network->poll();
    ASSERT_LT(test::Clock::now() - begin, std::chrono::seconds(1));
  }
  EXPECT_EQ(job.network->liveness(1), Liveness::kDead);
  for (std::uint32_t n = 0; n < 5; ++n) EXPECT_TRUE(try_receive(poe, 1, Lane::kData, n, 30'000)) << n;
  EXPECT_EQ(job.network->reserve(1, Lane::kData, 1), nullptr);
  EXPECT_EQ(job.child->wait(), -SIGKILL);
}

TEST(Ways, AStoppedPeerIsAlive) {
  Halves job([](Network& network) {
    test::NetworkPoe poe(network, 1, 2);
    for (std::uint32_t n = 0; n < 200; ++n) until(poe, [&] { return try_receive(poe, 0, Lane::kData, n, 60'000); });
  });
  test::NetworkPoe poe(*job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 60'000); });
  kill(job.child->pid(), SIGSTOP);
  std::uint32_t sent = 1;
  const auto later = test::Clock::now() + std::chrono::seconds(2);
  while (test::Clock::now() < later) {
    if (sent < 200 && try_send(poe, 1, Lane::kData, sent, 60'000)) ++sent;
    job.network->poll();
    ASSERT_EQ(job.network->liveness(1), Liveness::kAlive);
  }
  kill(job.child->pid(), SIGCONT);
  for (; sent < 200; ++sent) until(poe, [&] { return try_send(poe, 1, Lane::kData, sent, 60'000); });
  const auto deadline = test::Clock::now() + std::chrono::seconds(10);
  while (!job.network->delivered(1) && job.network->liveness(1) == Liveness::kAlive) {
    job.network->poll();
    ASSERT_LT(test::Clock::now(), deadline);
  }
  EXPECT_EQ(job.child->wait(), 0);
}

}  // namespace
}  // namespace unisono
