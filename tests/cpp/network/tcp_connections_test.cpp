// Several connections for a pair of endpoints: when they are made, how many, who may add one, and how they end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/error.hpp"
#include "network/tcp/card.hpp"
#include "tests/cpp/network/relay.hpp"
#include "tests/cpp/network/tcp_job.hpp"

namespace unisono {
namespace {

using Liveness = Poe::Liveness;
using test::connected;
using test::drive;
using test::Relay;
using test::TcpJob;
using test::try_receive;
using test::try_send;

tcp::TcpSettings settings_of(std::uint32_t connections, bool tls = false) {
  tcp::TcpSettings settings = tls ? test::encrypted() : test::loopback();
  settings.connections = connections;
  return settings;
}

/// Endpoints that would have different numbers of connections.
struct UnevenJob : test::NetworkJob<tcp::TcpNetwork> {
  UnevenJob(std::vector<std::uint32_t> connections, bool tls = false)
      : NetworkJob(static_cast<std::uint32_t>(connections.size()), [&](std::uint32_t endpoint) {
          return std::make_unique<tcp::TcpNetwork>(settings_of(connections[endpoint], tls));
        }) {}
};

/// Connections of this process that lead to a port of its own.
std::size_t connections_to(std::uint16_t port) {
  std::size_t count = 0;
  for (int fd = 3; fd < 400; ++fd) count += tcp::remote_address(fd).port == port;
  return count;
}

std::size_t connections_of(test::NetworkJob<tcp::TcpNetwork>& job) {
  return connections_to(job[0].port()) + connections_to(job[1].port());
}

constexpr std::uint32_t kPiece = 64 * 1024;

/// Sends a piece of a message of 1 MiB if there is room.
bool try_send_long(tcp::TcpNetwork& from, std::uint32_t self, std::uint32_t number) {
  std::vector<std::byte> payload(kPiece);
  for (std::uint32_t i = 0; i < kPiece; ++i) payload[i] = test::pattern(self, 1 - self, number, i);
  Header header = test::header_for(self, 1 - self, number, kPiece);
  header.message_bytes = std::uint64_t{1} << 20U;
  return from.send(1 - self, Lane::kData, header, payload);
}

/// Messages `begin` to `end` from `self` to the other one, all of which come.
template <class Job>
void stream(Job& job, std::uint32_t self, std::uint32_t begin, std::uint32_t end) {
  auto receiver = job.poe(1 - self);
  std::uint32_t sent = begin;
  std::uint32_t got = begin;
  drive(job, [&] {
    if (sent < end && try_send_long(job[self], self, sent)) ++sent;
    if (got < end && try_receive(receiver, self, Lane::kData, got, kPiece)) ++got;
    return got == end;
  });
}

/// Endpoint 0 meets endpoint 1 through a relay.
struct RelayedJob {
  explicit RelayedJob(const tcp::TcpSettings& settings) : job(2, settings), relay(job[1].port()) {
    job.networks[0] = std::make_unique<tcp::TcpNetwork>(settings);
    tcp::Card card = tcp::decode_card(job.cards[1]);
    card.port = relay.port();
    card.addresses = {*tcp::parse_address("127.0.0.1:" + std::to_string(card.port))};
    auto members = job.members(0);
    members.cards[1] = tcp::encode_card(card);
    job.networks[0]->meet(members);
  }
  void drive(const std::function<bool()>& ready) {
    job.drive([&] {
      relay.pump();
      return ready();
    });
  }
  /// So that there is the first connection, with the other ones still to come.
  void greet() {
    auto sender = job.poe(0);
    auto receiver = job.poe(1);
    ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
    drive([&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  }
  TcpJob job;
  Relay relay;
};

class TcpConnections : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(By, TcpConnections, testing::Bool(),
                         [](const auto& by) { return std::string(by.param ? "Tls" : "Tcp"); });

TEST_P(TcpConnections, ThereIsOneUntilALongMessageGoes) {
  TcpJob job(2, settings_of(4, GetParam()));
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  for (std::uint32_t number = 0; number < 40; ++number) {
    ASSERT_TRUE(try_send(sender, 1, Lane::kData, number, number * 1000));
    drive(job, [&] { return try_receive(receiver, 0, Lane::kData, number, number * 1000); });
  }
  EXPECT_EQ(connections_of(job), 1U);
  stream(job, 0, 40, 60);
  drive(job, [&] { return connections_of(job) == 4; });
  stream(job, 0, 60, 200);
  stream(job, 1, 0, 140);
  EXPECT_EQ(connections_of(job), 4U);
  EXPECT_EQ(job[0].liveness(1), Liveness::kAlive) << job[0].condition(1);
  EXPECT_EQ(job[1].liveness(0), Liveness::kAlive) << job[1].condition(0);
  EXPECT_EQ(job[0].refused() + job[1].refused(), 0U);
}

TEST_P(TcpConnections, TheLesserNumberOfBothEndsHolds) {
  const std::pair<std::vector<std::uint32_t>, std::size_t> cases[] = {{{4, 2}, 2}, {{2, 4}, 2},    {{4, 1}, 1},
                                                                      {{1, 4}, 1}, {{16, 16}, 16}, {{16, 3}, 3}};
  for (const auto& [connections, expected] : cases) {
    for (const std::uint32_t self : {0U, 1U}) {
      UnevenJob job(connections, GetParam());
      stream(job, self, 0, 30);
      drive(job, [&, expected = expected] { return connections_of(job) == expected; });
      stream(job, self, 30, 80);
      stream(job, 1 - self, 0, 40);
      EXPECT_EQ(connections_of(job), expected);
      EXPECT_EQ(job[0].refused() + job[1].refused(), 0U);
    }
  }
}

TEST_P(TcpConnections, BothEndsMayAskForThemAtOnce) {
  // All orders of polls of the two ends, as far as they matter: each bit says who polls next.
  for (std::uint32_t order = 0; order < 256; ++order) {
    TcpJob job(2, settings_of(3, GetParam()));
    stream(job, 0, 0, 1);  // alone, it asks for the others; they may not be there yet
    std::uint32_t sent[2] = {1, 0};
    std::uint32_t got[2] = {0, 1};
    ASSERT_TRUE(try_send_long(job[1], 1, sent[1]++));
    for (std::uint32_t bit = 0; bit < 8; ++bit) job[(order >> bit) & 1U].poll();
    drive(job, [&] {
      bool done = true;
      for (const std::uint32_t self : {0U, 1U}) {
        auto receiver = job.poe(self);
        if (sent[self] < 6 && try_send_long(job[self], self, sent[self])) ++sent[self];
        if (got[self] < 6 && try_receive(receiver, 1 - self, Lane::kData, got[self], kPiece)) ++got[self];
        done = done && got[self] == 6;
      }
      return done && connections_of(job) == 3;
    });
    ASSERT_EQ(job[0].liveness(1), Liveness::kAlive) << order << job[0].condition(1);
    ASSERT_EQ(job[1].liveness(0), Liveness::kAlive) << order << job[1].condition(0);
    ASSERT_EQ(job[0].refused() + job[1].refused(), 0U) << order;
  }
}

TEST_P(TcpConnections, ThreadsExchangeInBothDirections) {
  test::on_all_by_tcp(
      3,
      [](Poe& poe) {
        constexpr std::uint32_t kMessages = 150;
        std::vector<std::uint32_t> sent(poe.size());
        std::vector<std::uint32_t> got(poe.size());
        test::until(poe, [&] {
          bool done = true;
          for (std::uint32_t peer = 0; peer < poe.size(); ++peer) {
            if (peer == poe.self()) continue;
            const auto bytes = [](std::uint32_t n) { return n % 3 == 0 ? n : 65'536 - 100 * n; };
            while (sent[peer] < kMessages) {
              std::byte* const place = poe.reserve(peer, Lane::kData, bytes(sent[peer]));
              if (place == nullptr) break;
              for (std::uint32_t i = 0; i < bytes(sent[peer]); ++i) {
                place[i] = test::pattern(poe.self(), peer, sent[peer], i);
              }
              Header header = test::header_for(poe.self(), peer, sent[peer], bytes(sent[peer]));
              header.message_bytes = 1'000'000;
              poe.commit(peer, Lane::kData, header);
              ++sent[peer];
            }
            while (got[peer] < kMessages && try_receive(poe, peer, Lane::kData, got[peer], bytes(got[peer]))) {
              ++got[peer];
            }
            done = done && sent[peer] == kMessages && got[peer] == kMessages;
            if (poe.liveness(peer) == Liveness::kDead) throw std::runtime_error(poe.condition(peer));
          }
          return done;
        });
      },
      {}, settings_of(4, GetParam()));
}

TEST_P(TcpConnections, WhoLeavesWhileTheyAreMadeHasLeft) {
  for (int round = 0; round < 40; ++round) {
    TcpJob job(2, settings_of(4, GetParam()));
    auto first = job.poe(0);
    auto receiver = job.poe(1);
    ASSERT_TRUE(try_send(first, 1, Lane::kControl, 0, 10));
    drive(job, [&] { return try_receive(receiver, 0, Lane::kControl, 0, 10); });
    std::uint32_t sent = 0;
    while (sent < 6 && try_send_long(job[0], 0, sent)) ++sent;
    for (int i = 0; i < round; ++i) job[i % 2].poll();
    std::thread leaves([&] { job.networks[0].reset(); });
    std::uint32_t got = 0;
    const auto deadline = test::Clock::now() + std::chrono::seconds(20);
    while (job[1].liveness(0) == Liveness::kAlive && test::Clock::now() < deadline) {
      job.networks[1]->poll();
      if (got < sent && try_receive(receiver, 0, Lane::kData, got, kPiece)) ++got;
    }
    leaves.join();
    while (got < sent && try_receive(receiver, 0, Lane::kData, got, kPiece)) ++got;
    EXPECT_EQ(job[1].liveness(0), Liveness::kLeft) << round << " " << job[1].condition(0);
    EXPECT_EQ(got, sent) << round;
  }
}

TEST_P(TcpConnections, OneThatIsLateHoldsTheOthersBackAndNothingIsLost) {
  for (const std::size_t late : {0U, 1U, 3U}) {
    RelayedJob job(settings_of(4, GetParam()));
    ASSERT_NO_FATAL_FAILURE(job.greet());
    auto receiver = job.job.poe(1);
    std::uint32_t sent = 1;
    std::uint32_t got = 1;
    const auto step = [&](std::uint32_t end) {
      if (sent < end && try_send_long(job.job[0], 0, sent)) ++sent;
      if (got < end && try_receive(receiver, 0, Lane::kData, got, kPiece)) ++got;
      return got == end;
    };
    // With a first long message there is no hurry: the others may be there after it.
    std::uint32_t end = 30;
    job.drive([&] {
      if (step(end) && !job.relay.carries(late)) ++end;
      return got == end && job.relay.carries(late);
    });
    job.relay.hold(late, true);
    for (int i = 0; i < 500; ++i) {
      step(end + 200);
      job.relay.pump();
      job.job[0].poll();
      job.job[1].poll();
    }
    EXPECT_LT(got, sent) << "the late one had a part of it";
    job.relay.hold(late, false);
    job.drive([&] { return step(end + 300); });
    EXPECT_EQ(job.job[1].liveness(0), Liveness::kAlive) << job.job[1].condition(0);
  }
}

TEST_P(TcpConnections, OneThatIsCutIsADeadPeerAtBothEnds) {
  for (const std::size_t which : {0U, 2U}) {
    RelayedJob job(settings_of(4, GetParam()));
    ASSERT_NO_FATAL_FAILURE(job.greet());
    auto receiver = job.job.poe(1);
    std::uint32_t sent = 1;
    std::uint32_t got = 1;
    job.drive([&] {
      if (try_send_long(job.job[0], 0, sent)) ++sent;
      if (try_receive(receiver, 0, Lane::kData, got, kPiece)) ++got;
      return got > 100 && job.relay.carries(which);
    });
    job.relay.cut(which);
    job.drive([&] {
      while (try_receive(receiver, 0, Lane::kData, got, kPiece)) ++got;
      return job.job[0].liveness(1) == Liveness::kDead && job.job[1].liveness(0) == Liveness::kDead;
    });
    EXPECT_FALSE(job.job[0].condition(1).empty());
    EXPECT_FALSE(job.job[1].condition(0).empty());
    EXPECT_LE(got, sent);
    EXPECT_FALSE(try_send_long(job.job[0], 0, sent));
    EXPECT_FALSE(job.job[0].has_output());
    EXPECT_FALSE(job.job[0].lends(1));
    // Nobody would be woken again and again.
    for (std::uint32_t endpoint = 0; endpoint < 2; ++endpoint) {
      while (job.job[endpoint].poll()) {
      }
      pollfd sleep{job.job[endpoint].descriptor(), POLLIN, 0};
      EXPECT_EQ(::poll(&sleep, 1, 50), 0) << endpoint;
    }
  }
}

TEST_P(TcpConnections, ThoseThatCannotBeMadeAreDoneWithout) {
  RelayedJob job(settings_of(4, GetParam()));
  ASSERT_NO_FATAL_FAILURE(job.greet());
  job.relay.close_door();
  auto receiver = job.job.poe(1);
  std::uint32_t sent = 1;
  std::uint32_t got = 1;
  job.drive([&] {
    if (sent < 200 && try_send_long(job.job[0], 0, sent)) ++sent;
    if (got < 200 && try_receive(receiver, 0, Lane::kData, got, kPiece)) ++got;
    return got == 200;
  });
  EXPECT_EQ(job.relay.count(), 1U);
  EXPECT_EQ(job.job[0].liveness(1), Liveness::kAlive);
  EXPECT_EQ(job.job[1].liveness(0), Liveness::kAlive);
}

/// Pieces of messages of eight go where they belong, whichever comes first.
class Places final : public Landings {
 public:
  std::byte* landing(std::uint32_t /*peer*/, const Header& header) override {
    if (header.message_bytes != kBytes) return nullptr;
    ++asked;
    return memory.data() + header.offset;
  }
  static constexpr std::uint64_t kBytes = std::uint64_t{8} * kPiece;
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  std::uint32_t asked = 0;
};

TEST_P(TcpConnections, PiecesOfALentMessageLandWhereTheyBelong) {
  TcpJob job(2, settings_of(4, GetParam()));
  Places places;
  job[1].land_in(&places);
  std::uint32_t landed = 0;
  for (std::uint32_t round = 0; round < 60; ++round) {
    std::vector<std::byte> message(Places::kBytes);
    for (std::size_t i = 0; i < message.size(); ++i) message[i] = test::pattern(0, 1, round, i);
    std::vector<Header> headers;
    for (std::uint32_t piece = 0; piece < 8; ++piece) {
      Header header = test::header_for(0, 1, piece, kPiece);
      header.message_bytes = Places::kBytes;
      header.offset = std::uint64_t{piece} * kPiece;
      headers.push_back(header);
    }
    std::fill(places.memory.begin(), places.memory.end(), std::byte{0});
    bool lent = false;
    std::uint32_t got = 0;
    drive(job, [&] {
      if (!lent) lent = job[0].lend(1, headers, message.data()) != Sent::kNo;
      Incoming incoming;
      while (job[1].peek(0, Lane::kData, incoming)) {
        EXPECT_EQ(incoming.header.offset, std::uint64_t{got} * kPiece) << "in order";
        std::byte* const place = places.memory.data() + incoming.header.offset;
        if (incoming.payload.data() != place) {
          std::memcpy(place, incoming.payload.data(), incoming.payload.size());
        } else {
          ++landed;
        }
        job[1].release(0, Lane::kData);
        ++got;
      }
      return got == 8 && !job[0].lends(1);
    });
    ASSERT_EQ(places.memory, message) << round;
  }
  EXPECT_GT(places.asked, 0U);
  EXPECT_GT(landed, 0U);
  EXPECT_EQ(connections_of(job), 4U);
}

/// What the connector of connection `number` says until it is refused or accepted; it has this key.
tcp::Connector::State try_to_add(TcpJob& job, const JobKey& key, std::uint8_t number) {
  const tcp::Socket socket = connected(job[1].port());
  Nonce nonce{};
  fill_random(nonce);
  tcp::Ends ends{0, 1, 2};
  ends.connections = 4;
  ends.number = number;
  tcp::Connector connector(key, ends, nonce);
  bool closed = false;
  drive(job, [&] {
    if (connector.state() == tcp::Connector::State::kChallenged) connector.prove();
    const auto output = connector.output();
    if (!output.empty()) connector.sent(static_cast<std::size_t>(send(socket.get(), output.data(), output.size(), 0)));
    const auto wanted = connector.wanted();
    if (wanted.empty()) return true;
    const ssize_t got = recv(socket.get(), wanted.data(), wanted.size(), MSG_DONTWAIT);
    if (got > 0) connector.got(static_cast<std::size_t>(got));
    closed = got == 0;
    return closed;
  });
  return closed ? tcp::Connector::State::kAwaitsChallenge : connector.state();
}

TEST(TcpConnectionsOfStrangers, AreRefusedAndCounted) {
  using State = tcp::Connector::State;
  TcpJob job(2, settings_of(4));
  // There is no session yet, so nothing to add to, not even with the job's key.
  EXPECT_EQ(try_to_add(job, test::key_of(7), 1), State::kAwaitsChallenge);
  EXPECT_EQ(job[1].refused(), 1U);
  EXPECT_FALSE(job[1].in_use());
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  // The session has a key of its own: neither a stranger's nor the job's opens it.
  for (const std::uint8_t seed : {std::uint8_t{8}, std::uint8_t{7}}) {
    EXPECT_EQ(try_to_add(job, test::key_of(seed), 1), State::kFailed) << "the acceptor cannot prove itself to it";
  }
  // Numbers that there are not.
  const std::uint64_t before = job[1].refused();
  EXPECT_EQ(try_to_add(job, test::key_of(7), 16), State::kAwaitsChallenge);
  EXPECT_EQ(try_to_add(job, test::key_of(7), 255), State::kAwaitsChallenge);
  EXPECT_EQ(job[1].refused(), before + 2);
  EXPECT_EQ(connections_of(job), 1U);
  // They have done the session no harm.
  stream(job, 0, 1, 60);
  drive(job, [&] { return connections_of(job) == 4; });
  EXPECT_EQ(job[1].liveness(0), Liveness::kAlive);
}

TEST(TcpConnectionsOfStrangers, AWrongProofIsCounted) {
  TcpJob job(2, settings_of(4));
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  tcp::Ends ends{0, 1, 2};
  ends.number = 2;
  tcp::Connector stranger(test::key_of(7), ends, {});
  const tcp::Socket socket = connected(job[1].port());
  ASSERT_EQ(send(socket.get(), stranger.output().data(), sizeof(tcp::Hello), 0), ssize_t{sizeof(tcp::Hello)});
  const std::vector<std::byte> proof(sizeof(tcp::Proof), std::byte{0x5a});
  ASSERT_EQ(send(socket.get(), proof.data(), proof.size(), 0), static_cast<ssize_t>(proof.size()));
  drive(job, [&] { return job[1].refused() == 1; });
  EXPECT_EQ(connections_of(job), 1U + 1U) << "the session's, and the stranger's own end";
}

}  // namespace
}  // namespace unisono
