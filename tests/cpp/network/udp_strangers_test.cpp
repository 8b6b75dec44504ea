// Datagrams of those who are not of the job: garbage, hellos without the key, what was overheard and sent again.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <vector>

#include "network/udp/handshake.hpp"
#include "tests/cpp/network/udp_job.hpp"

namespace unisono {
namespace {

using test::try_receive;
using test::try_send;
using test::UdpJob;

/// A socket of nobody's.
struct Stranger {
  Stranger() : socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    tcp::Address any;
    const tcp::SystemAddress address = tcp::system_address(any, 0);
    EXPECT_EQ(bind(socket.get(), address.get(), address.bytes), 0);
  }
  void say(std::uint16_t port, std::span<const std::byte> datagram) const {
    const tcp::SystemAddress to = tcp::system_address(*tcp::parse_address("127.0.0.1:" + std::to_string(port)), 0);
    EXPECT_EQ(sendto(socket.get(), datagram.data(), datagram.size(), 0, to.get(), to.bytes),
              static_cast<ssize_t>(datagram.size()));
  }
  /// What came, waiting a little.
  std::vector<std::byte> hear() const {
    pollfd sleep{socket.get(), POLLIN, 0};
    std::vector<std::byte> datagram(70'000);
    if (::poll(&sleep, 1, 50) != 1) return {};
    const ssize_t got = recv(socket.get(), datagram.data(), datagram.size(), 0);
    datagram.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return datagram;
  }
  tcp::Socket socket;
};

void settle(UdpJob& job) {
  const auto until = test::Clock::now() + std::chrono::milliseconds(30);
  job.drive([&] { return test::Clock::now() > until; });
}

TEST(UdpStrangers, GarbageIsCountedAndDisturbsNobody) {
  UdpJob job(2);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  Stranger stranger;
  std::mt19937 random(9);  // NOLINT(*-msc51-cpp): the same every time
  constexpr std::uint32_t kMessages = 200;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  std::uint64_t garbage = 0;
  job.drive([&] {
    if (garbage < 2000) {
      std::vector<std::byte> datagram(random() % 300);
      for (std::byte& b : datagram) b = static_cast<std::byte>(random());
      if (!datagram.empty() && random() % 2 == 0) datagram[0] = static_cast<std::byte>(1 + random() % 5);
      stranger.say(job[random() % 2].port(), datagram);
      ++garbage;
    }
    while (sent < kMessages && try_send(sender, 1, Lane::kData, sent, 3000)) ++sent;
    while (received < kMessages && try_receive(receiver, 0, Lane::kData, received, 3000)) ++received;
    return received == kMessages && garbage == 2000;
  });
  settle(job);
  EXPECT_GT(job[0].refused() + job[1].refused(), 1000U);
  EXPECT_TRUE(stranger.hear().empty()) << "nobody answers garbage";
}

TEST(UdpStrangers, AHelloWithoutTheKeyGetsNoAnswer) {
  UdpJob job(2);
  Stranger stranger;
  stranger.say(job[1].port(), udp::bytes_of(udp::make_hello(test::key_of(8), {0, 1, 2}, 0, {})));
  settle(job);
  EXPECT_TRUE(stranger.hear().empty());
  EXPECT_EQ(job[1].refused(), 1U);
  EXPECT_FALSE(job[1].in_use());
}

TEST(UdpStrangers, AHelloThatIsRepeatedFromElsewhereOpensNothing) {
  UdpJob job(2);
  Stranger stranger;
  const udp::HelloFrame hello = udp::make_hello(test::key_of(7), {0, 1, 2}, 0, {});
  stranger.say(job[1].port(), udp::bytes_of(hello));
  settle(job);
  // A challenge, no longer than the hello: nothing is kept of it.
  const auto answer = stranger.hear();
  EXPECT_EQ(answer.size(), sizeof(udp::ChallengeFrame));
  EXPECT_LE(sizeof(udp::ChallengeFrame), sizeof(udp::HelloFrame));
  EXPECT_FALSE(job[1].in_use());
  // A proof that was made for another address, or of another nonce, is none.
  const auto challenge = udp::frame_in<udp::ChallengeFrame>(answer, udp::Kind::kChallenge);
  ASSERT_TRUE(challenge);
  EXPECT_TRUE(udp::answers(test::key_of(7), hello, *challenge));
  EXPECT_FALSE(udp::answers(test::key_of(8), hello, *challenge));
  Stranger other;
  other.say(job[1].port(), udp::bytes_of(udp::make_proof(test::key_of(7), hello, challenge->nonce)));
  stranger.say(job[1].port(), udp::bytes_of(udp::make_proof(test::key_of(8), hello, challenge->nonce)));
  settle(job);
  EXPECT_EQ(job[1].refused(), 2U);
  EXPECT_FALSE(job[1].in_use());
  stranger.say(job[1].port(), udp::bytes_of(udp::make_proof(test::key_of(7), hello, challenge->nonce)));
  settle(job);
  EXPECT_TRUE(job[1].in_use()) << "this one knows the key";
  // A second session of the same endpoint there cannot be.
  const udp::HelloFrame again = udp::make_hello(test::key_of(7), {0, 1, 2}, 0, {std::byte{1}});
  stranger.hear();
  stranger.say(job[1].port(), udp::bytes_of(again));
  settle(job);
  const auto second = stranger.hear();
  const auto challenge_again = udp::frame_in<udp::ChallengeFrame>(second, udp::Kind::kChallenge);
  ASSERT_TRUE(challenge_again);
  stranger.say(job[1].port(), udp::bytes_of(udp::make_proof(test::key_of(7), again, challenge_again->nonce)));
  settle(job);
  EXPECT_EQ(job[1].refused(), 3U);
}

TEST(UdpStrangers, EveryBitOfTheHandshakeCounts) {
  const JobKey key = test::key_of(7);
  const udp::HelloFrame hello = udp::make_hello(key, {0, 1, 2}, 3, {std::byte{9}});
  const Nonce nonce = udp::nonce_for(Digest{std::byte{1}}, hello, {});
  EXPECT_EQ(udp::fault_of(key, hello, 1, 2), "");
  EXPECT_NE(udp::fault_of(key, hello, 0, 2), "");
  EXPECT_NE(udp::fault_of(key, hello, 1, 3), "");
  const auto turned = [](const auto& frame, std::size_t bit) {
    auto copy = frame;
    reinterpret_cast<std::byte*>(&copy)[bit / 8] ^= std::byte{1} << (bit % 8);
    return copy;
  };
  const udp::ChallengeFrame challenge = udp::make_challenge(key, hello, nonce);
  const udp::ProofFrame proof = udp::make_proof(key, hello, nonce);
  EXPECT_EQ(udp::fault_of(key, proof, nonce, 1, 2), "");
  for (std::size_t bit = 8; bit < 8 * sizeof hello; ++bit) {
    EXPECT_NE(udp::fault_of(key, turned(hello, bit), 1, 2), "") << bit;
    EXPECT_FALSE(udp::answers(key, hello, turned(challenge, bit))) << bit;
  }
  for (std::size_t bit = 8; bit < 8 * sizeof proof; ++bit) {
    EXPECT_NE(udp::fault_of(key, turned(proof, bit), nonce, 1, 2), "") << bit;
  }
  EXPECT_NE(udp::session_secret(key, hello, nonce), udp::session_secret(key, hello, {}));
}

TEST(UdpStrangers, DatagramsThatAreSentAgainDoNothing) {
  // Every datagram comes twice, some late.
  UdpJob job(2, test::udp_loopback("duplicate=1,reorder=0.2"));
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  job.drive([&] {
    while (sent < 300 && try_send(sender, 1, Lane::kData, sent, 2000)) ++sent;
    while (received < 300 && try_receive(receiver, 0, Lane::kData, received, 2000)) ++received;
    return received == 300;
  });
  settle(job);
  Incoming incoming;
  EXPECT_FALSE(job[1].peek(0, Lane::kData, incoming));
  EXPECT_EQ(job[0].refused() + job[1].refused(), 0U);
}

}  // namespace
}  // namespace unisono
