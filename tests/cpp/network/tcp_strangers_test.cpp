// Who connects and is not of the job: refused, counted, and of no harm to those who are.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "tests/cpp/network/tcp_job.hpp"

namespace unisono {
namespace {

using test::connected;
using test::drive;
using test::TcpJob;
using test::try_receive;
using test::try_send;
using test::until;

void say(const tcp::Socket& socket, std::span<const std::byte> bytes) {
  send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Whether the other end has closed it, whatever it said before.
bool closed(const tcp::Socket& socket) {
  std::array<std::byte, 256> bytes;
  for (;;) {
    const ssize_t got = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) continue;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
}

std::vector<std::byte> hello_of(std::uint32_t from, std::uint32_t to, std::uint32_t size) {
  tcp::Connector connector({}, {from, to, size}, {});
  const auto output = connector.output();
  return {output.begin(), output.end()};
}

TEST(TcpStrangers, GarbageIsRefusedAndCounted) {
  TcpJob job(2);
  const auto stranger = connected(job[1].port());
  say(stranger, std::vector<std::byte>(1000, std::byte{'x'}));
  drive(job, [&] { return job[1].refused() == 1 && closed(stranger); });
  EXPECT_FALSE(job[1].in_use()) << "a stranger is no session";
}

TEST(TcpStrangers, AHelloWithoutTheKeyIsRefused) {
  TcpJob job(2);
  const auto stranger = connected(job[1].port());
  say(stranger, hello_of(0, 1, 2));
  say(stranger, std::vector<std::byte>(sizeof(tcp::Proof)));
  drive(job, [&] { return job[1].refused() == 1 && closed(stranger); });
  // The endpoint that it said it was can still connect.
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
}

TEST(TcpStrangers, WhoGoesByItselfIsNotCounted) {
  TcpJob job(2);
  {
    const auto silent = connected(job[1].port());
    const auto polite = connected(job[1].port());
    say(polite, hello_of(0, 1, 2));
  }
  for (int i = 0; i < 200; ++i) job[1].poll();
  EXPECT_EQ(job[1].refused(), 0U);
}

TEST(TcpStrangers, TheyAreBoundedAndTheOldestMakesWay) {
  TcpJob job(2);
  std::vector<tcp::Socket> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(connected(job[1].port()));
    for (int turn = 0; turn < 3; ++turn) job[1].poll();
  }
  // 64 and one for each member are kept.
  drive(job, [&] { return job[1].refused() == 200 - 66; });
  EXPECT_TRUE(closed(strangers.front()));
  EXPECT_FALSE(closed(strangers.back()));
  // They keep nobody out who is of the job.
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
}

/// One stranger of each kind in turn; those that stay are kept in `strangers`.
void send_stranger(int number, std::uint16_t port, std::mt19937& random, std::vector<tcp::Socket>& strangers) {
  tcp::Socket stranger = connected(port);
  std::vector<std::byte> garbage(random() % 300);
  for (std::byte& b : garbage) b = static_cast<std::byte>(random());
  const auto hello = hello_of(number % 3, number % 2, number % 4);
  switch (number % 5) {
    case 0:  // connects and stalls
      break;
    case 1:
      say(stranger, garbage);
      break;
    case 2:  // claims what it likes
      say(stranger, hello);
      say(stranger, garbage);
      break;
    case 3:  // a hello in part
      say(stranger, std::span(hello).first(random() % hello.size()));
      break;
    default:
      return;  // closes at once
  }
  strangers.push_back(std::move(stranger));
}

TEST(TcpStrangers, OfEveryKindWhileTrafficGoesOn) {
  std::atomic<bool> all_came{false};
  const auto bytes_of = [](std::uint32_t n) { return n % 5000; };
  test::on_all_by_tcp(
      2,
      [&](Poe& poe) {
        // Messages in turn, until all strangers have come, and a few more, so that both agree on the last one.
        const std::uint32_t peer = 1 - poe.self();
        std::uint32_t last = ~0U;
        for (std::uint32_t n = 0; n < last; ++n) {
          if (poe.self() == 0) {
            until(poe, [&] { return try_send(poe, peer, Lane::kData, n, bytes_of(n)); });
            if (last == ~0U && all_came) {
              last = n + 100;
              until(poe, [&] { return try_send(poe, peer, Lane::kControl, last, 10); });
            }
          }
          until(poe, [&] { return try_receive(poe, peer, Lane::kData, n, bytes_of(n)); });
          if (poe.self() == 1) {
            until(poe, [&] { return try_send(poe, peer, Lane::kData, n, bytes_of(n)); });
            Incoming incoming;
            if (last == ~0U && poe.peek(peer, Lane::kControl, incoming)) {
              last = incoming.header.sequence;
              poe.release(peer, Lane::kControl);
            }
          }
        }
        EXPECT_NE(poe.liveness(peer), Poe::Liveness::kDead) << poe.condition(peer);
      },
      [&](TcpJob& job) {
        std::mt19937 random(5);
        std::vector<tcp::Socket> strangers;
        const std::uint16_t ports[] = {job[0].port(), job[1].port()};
        for (int i = 0; i < 200; ++i) send_stranger(i, ports[i % 2], random, strangers);
        all_came = true;
      });
}

TEST(TcpStrangers, MembersFindEachOtherAmongThem) {
  // The strangers come first, and go on coming while the members connect.
  for (int round = 0; round < 10; ++round) {
    TcpJob job(2);
    std::mt19937 random(static_cast<unsigned>(round));
    std::vector<tcp::Socket> strangers;
    for (int i = 0; i < 100; ++i) send_stranger(i, job[i % 2].port(), random, strangers);
    auto zero = job.poe(0);
    auto one = job.poe(1);
    ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
    ASSERT_TRUE(try_send(one, 0, Lane::kData, 0, 10));
    bool at_zero = false;
    bool at_one = false;
    int number = 100;
    drive(job, [&] {
      if (number < 200) send_stranger(number, job[number % 2].port(), random, strangers);
      ++number;
      at_zero = at_zero || try_receive(zero, 1, Lane::kData, 0, 10);
      at_one = at_one || try_receive(one, 0, Lane::kData, 0, 10);
      return at_zero && at_one && number >= 200;
    });
    EXPECT_GT(job[0].refused() + job[1].refused(), 0U);
  }
}

TEST(TcpStrangers, AReplayedProofOpensNothing) {
  // Somebody stands between two members, hears their handshake, and says the same again.
  TcpJob job(2);
  std::vector<std::byte> proof;
  const auto play = [&](const tcp::Socket& socket, bool own_proof) {
    const auto hello = hello_of(0, 1, 2);
    say(socket, hello);
    std::vector<std::byte> challenge(sizeof(tcp::Challenge));
    drive(job, [&] { return recv(socket.get(), challenge.data(), challenge.size(), MSG_DONTWAIT) > 0; });
    if (own_proof) {
      tcp::Connector member(test::key_of(7), {0, 1, 2}, {});
      member.sent(hello.size());
      std::memcpy(member.wanted().data(), challenge.data(), challenge.size());
      member.got(challenge.size());
      member.prove();
      const auto output = member.output();
      proof.assign(output.begin(), output.end());
    }
    say(socket, proof);
  };
  const auto member = connected(job[1].port());
  play(member, true);
  std::array<std::byte, 64> verdict;
  drive(job, [&] { return recv(member.get(), verdict.data(), verdict.size(), MSG_DONTWAIT) == sizeof(tcp::Verdict); });
  EXPECT_EQ(job[1].refused(), 0U);
  const auto replay = connected(job[1].port());
  play(replay, false);
  drive(job, [&] { return job[1].refused() == 1 && closed(replay); });
  // A second connection with a right proof is none, either: the session there is stays the only one.
  const auto again = connected(job[1].port());
  play(again, true);
  drive(job, [&] { return closed(again); });
  EXPECT_EQ(job[1].refused(), 1U) << "a member is no stranger";
  EXPECT_FALSE(closed(member));
  EXPECT_EQ(job[1].liveness(0), Poe::Liveness::kAlive);
}

}  // namespace
}  // namespace unisono
