// Encrypted networks as a whole: who may have none, what somebody between them sees and can do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/error.hpp"
#include "network/tcp/card.hpp"
#include "tests/cpp/network/tcp_job.hpp"
#include "tests/cpp/network/wire.hpp"

namespace unisono {
namespace {

using test::drive;
using test::TcpJob;
using test::try_receive;
using test::try_send;
using ::testing::HasSubstr;

/// A pattern that is found where it stands as it is.
constexpr std::string_view kPlain = "what nobody else is to read, and what one can look for";

/// Listens in front of an endpoint, and passes on what comes, but for what `alter` does to what goes there.
class Proxy {
 public:
  using Alter = std::function<void(std::vector<std::byte>& fresh, std::size_t at)>;
  Proxy(std::uint16_t port, Alter alter) : to_(port), alter_(std::move(alter)) {
    listener_ = tcp::Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto any = at(0);
    if (bind(listener_.get(), any.get(), any.bytes) != 0 || listen(listener_.get(), 8) != 0) {
      throw std::runtime_error("no proxy");
    }
    port_ = tcp::local_address(listener_.get()).port;
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    over_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  /// Whether what went either way holds the pattern.
  bool saw(std::string_view pattern) {
    const std::lock_guard lock(mutex_);
    const auto bytes = std::as_bytes(std::span(pattern));
    return std::any_of(seen_.begin(), seen_.end(), [&](const auto& seen) {
      return std::search(seen.begin(), seen.end(), bytes.begin(), bytes.end()) != seen.end();
    });
  }
  std::size_t bytes_seen() {
    const std::lock_guard lock(mutex_);
    return seen_[0].size() + seen_[1].size();
  }

 private:
  static tcp::SystemAddress at(std::uint16_t port) {
    tcp::Address address;
    address.bytes = {127, 0, 0, 1};
    address.port = port;
    return tcp::system_address(address, 0);
  }
  void run() {
    pollfd ready{listener_.get(), POLLIN, 0};
    while (!over_ && ::poll(&ready, 1, 10) != 1) {
    }
    if (over_) return;
    std::array<tcp::Socket, 2> sides;
    sides[0] = tcp::Socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    sides[1] = tcp::Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto there = at(to_);
    if (connect(sides[1].get(), there.get(), there.bytes) != 0) return;
    std::array<pollfd, 2> both{{{sides[0].get(), POLLIN, 0}, {sides[1].get(), POLLIN, 0}}};
    std::vector<std::byte> bytes(65'536);
    while (!over_) {
      ::poll(both.data(), both.size(), 10);
      for (std::size_t i = 0; i < 2; ++i) {
        if ((both[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        const ssize_t got = recv(sides[i].get(), bytes.data(), bytes.size(), 0);
        if (got <= 0) return;
        std::vector<std::byte> fresh(bytes.begin(), bytes.begin() + got);
        std::size_t begin = 0;
        {
          const std::lock_guard lock(mutex_);
          begin = seen_[i].size();
          seen_[i].insert(seen_[i].end(), fresh.begin(), fresh.end());
        }
        if (i == 0 && alter_) alter_(fresh, begin);
        if (fresh.size() < static_cast<std::size_t>(got)) return;  // cut
        for (std::size_t sent = 0; sent < fresh.size();) {
          const ssize_t more = send(sides[1 - i].get(), fresh.data() + sent, fresh.size() - sent, MSG_NOSIGNAL);
          if (more <= 0) return;
          sent += static_cast<std::size_t>(more);
        }
      }
    }
  }

  std::uint16_t to_;
  std::uint16_t port_ = 0;
  Alter alter_;
  tcp::Socket listener_;
  std::mutex mutex_;
  std::array<std::vector<std::byte>, 2> seen_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Two networks, of which the first reaches the second by a proxy.
struct Watched {
  explicit Watched(const tcp::TcpSettings& settings, Proxy::Alter alter = {})
      : zero(settings), one(settings), proxy(one.port(), std::move(alter)) {
    tcp::Card card = tcp::decode_card(one.card());
    card.port = proxy.port();
    for (tcp::Address& address : card.addresses) address.port = proxy.port();
    NetworkMembers members{0, test::key_of(5), {zero.card(), tcp::encode_card(card)}, {"a.example", "b.example"}};
    zero.meet(members);
    members.self = 1;
    one.meet(members);
  }
  /// Until `ready`; false if that does not come to be.
  bool drive(const std::function<bool()>& ready) {
    for (const auto deadline = test::Clock::now() + std::chrono::seconds(20); !ready();) {
      if (test::Clock::now() > deadline) return false;
      const bool news = zero.poll();
      if (!one.poll() && !news) std::this_thread::yield();
    }
    return true;
  }

  tcp::TcpNetwork zero;
  tcp::TcpNetwork one;
  Proxy proxy;
};

/// Sends the pattern, 200 times one behind the other, and takes it.
void send_pattern(Watched& pair, Lane lane) {
  std::vector<std::byte> payload;
  for (int i = 0; i < (lane == Lane::kData ? 200 : 10); ++i) {
    for (const char c : kPlain) payload.push_back(static_cast<std::byte>(c));
  }
  ASSERT_TRUE(pair.zero.send(1, lane, test::header_for(0, 1, 0, static_cast<std::uint32_t>(payload.size())), payload));
  Incoming incoming;
  ASSERT_TRUE(pair.drive([&] { return pair.one.peek(0, lane, incoming); }));
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), incoming.payload.begin(), incoming.payload.end()));
  pair.one.release(0, lane);
}

TEST(TcpTls, WhoListensReadsItWithoutAndNotWithTls) {
  for (const bool tls : {false, true}) {
    Watched pair(tls ? test::encrypted() : test::loopback());
    for (const Lane lane : {Lane::kData, Lane::kControl}) send_pattern(pair, lane);
    EXPECT_EQ(pair.proxy.saw(kPlain), !tls);
    EXPECT_GT(pair.proxy.bytes_seen(), 200 * kPlain.size());
    EXPECT_STREQ(pair.zero.way_to(1), tls ? "tcp+TLS" : "tcp");
    EXPECT_STREQ(pair.zero.name(), "tcp");
  }
}

/// What an endpoint says of one whose stream was altered from byte `at` on.
void expect_an_end(std::size_t at, const Proxy::Alter& alter, const std::string& words) {
  Watched pair(test::encrypted(), alter);
  test::NetworkPoe sender(pair.zero, 0, 2);
  test::NetworkPoe receiver(pair.one, 1, 2);
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  const bool ended = pair.drive([&] {
    if (sent < 200 && try_send(sender, 1, Lane::kData, sent, 20'000)) ++sent;
    // Whatever comes is right; `try_receive` throws if not.
    while (try_receive(receiver, 0, Lane::kData, received, 20'000)) ++received;
    return pair.one.in_use() && pair.one.liveness(0) == Poe::Liveness::kDead &&
           pair.zero.liveness(1) == Poe::Liveness::kDead;
  });
  ASSERT_TRUE(ended) << at;
  EXPECT_LT(received, 200U);
  EXPECT_THAT(pair.one.condition(0), HasSubstr(words)) << at;
  EXPECT_FALSE(pair.zero.condition(1).empty());
}

TEST(TcpTls, AFlippedBitIsADeadPeerWithACause) {
  // The handshake of ours has 80 bytes, that of TLS some hundreds.
  for (const std::size_t at : {std::size_t{5000}, std::size_t{300'001}}) {
    expect_an_end(
        at,
        [at](std::vector<std::byte>& fresh, std::size_t begin) {
          if (at >= begin && at < begin + fresh.size()) fresh[at - begin] ^= std::byte{0x10};
        },
        "what came from it is not as it was sent");
  }
  expect_an_end(
      100,
      [](std::vector<std::byte>& fresh, std::size_t begin) {
        if (begin <= 100 && begin + fresh.size() > 100) fresh[100 - begin] ^= std::byte{1};
      },
      "TLS could not be agreed on");
}

TEST(TcpTls, AConnectionThatIsCutIsADeadPeer) {
  for (const std::size_t at : {std::size_t{5000}, std::size_t{100'000}}) {
    expect_an_end(
        at,
        [at](std::vector<std::byte>& fresh, std::size_t begin) {
          if (begin + fresh.size() > at) fresh.clear();
        },
        "closed the connection");
  }
}

TEST(TcpTls, TwoOpinionsAreAnErrorThatNamesBoth) {
  const tcp::TcpNetwork without(test::loopback());
  const tcp::TcpNetwork with(test::encrypted());
  const NetworkMembers members{
      0, test::key_of(5), {without.card(), {}, without.card(), with.card()}, {"a", "b", "c", "d.example"}};
  for (const bool tls : {false, true}) {
    tcp::TcpNetwork network(tls ? test::encrypted() : test::loopback());
    try {
      network.meet(members);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
      EXPECT_STREQ(error.what(),
                   "endpoint 0 on a does not encrypt its connections, and endpoint 3 on d.example "
                   "encrypts its connections by TLS: set UNISONO_TLS alike on all ranks");
    }
  }
}

TEST(TcpTls, ACardThatWasAlteredTalksNobodyOutOfIt) {
  // Each believes that the other one is of its opinion, so each finds out by the proofs.
  for (const bool connector_encrypts : {false, true}) {
    tcp::TcpNetwork zero(connector_encrypts ? test::encrypted() : test::loopback());
    tcp::TcpNetwork one(connector_encrypts ? test::loopback() : test::encrypted());
    for (tcp::TcpNetwork* network : {&zero, &one}) {
      NetworkMembers members{
          network == &one ? 1U : 0U, test::key_of(5), {zero.card(), one.card()}, {"a.example", "b.example"}};
      for (auto& bytes : members.cards) {
        tcp::Card card = tcp::decode_card(bytes);
        card.tls = network == (connector_encrypts ? &zero : &one);
        bytes = tcp::encode_card(card);
      }
      network->meet(members);
    }
    ASSERT_NE(zero.reserve(1, Lane::kData, 8), nullptr);
    zero.commit(1, Lane::kData, test::header_for(0, 1, 0, 8));
    for (const auto deadline = test::Clock::now() + std::chrono::seconds(20);
         zero.liveness(1) != Poe::Liveness::kDead;) {
      ASSERT_LT(test::Clock::now(), deadline);
      zero.poll();
      one.poll();
    }
    EXPECT_EQ(one.liveness(0), Poe::Liveness::kDead);
    const std::string with = "encrypts its connections by TLS, this endpoint does not: set UNISONO_TLS alike";
    const std::string without = "does not encrypt its connections, this endpoint does: set UNISONO_TLS alike";
    EXPECT_THAT(zero.condition(1), HasSubstr(connector_encrypts ? without : with));
    EXPECT_THAT(one.condition(0), HasSubstr(connector_encrypts ? with : without));
    Incoming incoming;
    EXPECT_FALSE(one.peek(0, Lane::kData, incoming));
  }
}

TEST(TcpTls, APeerThatStallsInTheHandshakeHoldsUpNobodyElse) {
  // A member, for it proves itself; then it says nothing, or nonsense.
  for (const bool nonsense : {false, true}) {
    TcpJob job(3, test::encrypted());
    const tcp::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    tcp::Address there;
    there.bytes = {127, 0, 0, 1};
    there.port = job[1].port();
    const auto system = tcp::system_address(there, 0);
    ASSERT_EQ(connect(socket.get(), system.get(), system.bytes), 0);
    tcp::Connector connector(test::key_of(7), {2, 1, 3, true}, {});
    drive(job, [&] {
      if (const auto output = connector.output(); !output.empty()) {
        connector.sent(static_cast<std::size_t>(send(socket.get(), output.data(), output.size(), MSG_NOSIGNAL)));
      }
      const auto wanted = connector.wanted();
      const ssize_t got = recv(socket.get(), wanted.data(), wanted.size(), MSG_DONTWAIT);
      if (got > 0) connector.got(static_cast<std::size_t>(got));
      if (connector.state() == tcp::Connector::State::kChallenged) connector.prove();
      return connector.state() == tcp::Connector::State::kAccepted;
    });
    if (nonsense) send(socket.get(), kPlain.data(), kPlain.size(), MSG_NOSIGNAL);
    auto sender = job.poe(0);
    auto receiver = job.poe(1);
    ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
    drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
    if (nonsense) drive(job, [&] { return job[1].liveness(2) == Poe::Liveness::kDead; });
    EXPECT_EQ(job[1].liveness(2), nonsense ? Poe::Liveness::kDead : Poe::Liveness::kAlive);
    EXPECT_EQ(job[1].trial(2), nonsense ? Trial::kFailed : Trial::kAnswered);
    EXPECT_THAT(job[1].condition(2), HasSubstr(nonsense ? "TLS could not be agreed on with it: " : ""));
    // A thread that sleeps is not woken by it again and again.
    while (job[1].poll()) {
    }
    pollfd sleep{job[1].descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&sleep, 1, 50), 0);
  }
}

TEST(TcpTls, WhatTheConnectionHoldsForLackOfRoomIsToldOfOnceThereIsSome) {
  TcpJob job(2, test::encrypted());
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  constexpr std::uint32_t kMessages = 5;
  constexpr std::uint32_t kBytes = 60'000;
  // More than the receiver has memory for, and so little more that nothing is left to the kernel.
  std::uint32_t sent = 0;
  for (const auto deadline = test::Clock::now() + std::chrono::seconds(20); sent < kMessages || job[0].has_output();) {
    ASSERT_LT(test::Clock::now(), deadline);
    if (sent < kMessages && try_send(sender, 1, Lane::kData, sent, kBytes)) ++sent;
    job[0].poll();
    job[1].poll();
  }
  for (int i = 0; i < 100; ++i) job[1].poll();
  pollfd sleep{job[1].descriptor(), POLLIN, 0};
  ASSERT_EQ(::poll(&sleep, 1, 50), 0) << "there is no room, so there is nothing to do";
  ASSERT_TRUE(try_receive(receiver, 0, Lane::kData, 0, kBytes));
  ASSERT_EQ(::poll(&sleep, 1, 5000), 1) << "who sleeps now would never be woken";
  for (std::uint32_t n = 1; n < kMessages; ++n) {
    drive(job, [&] { return try_receive(receiver, 0, Lane::kData, n, kBytes); });
  }
  while (job[1].poll()) {
  }
  EXPECT_EQ(::poll(&sleep, 1, 50), 0) << "all was taken";
}

/// Gives each message of 40,000 bytes and more a place of its own.
class Places final : public Landings {
 public:
  std::byte* landing(std::uint32_t /*peer*/, const Header& header) override {
    return header.segment_bytes < 40'000 ? nullptr : memory_.data() + header.sequence % 8 * kEach;
  }
  bool holds(const std::byte* at) const { return at >= memory_.data() && at < memory_.data() + memory_.size(); }

 private:
  static constexpr std::size_t kEach = std::size_t{64} * 1024;
  std::vector<std::byte> memory_{8 * kEach};
};

TEST(TcpTls, LongMessagesGoStraightToTheirPlace) {
  TcpJob job(2, test::encrypted());
  Places places;
  job[1].land_in(&places);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  constexpr std::uint32_t kMessages = 60;
  const auto bytes_of = [](std::uint32_t n) { return n % 4 == 3 ? 100 * (n % 10) : 40'000 + 977 * (n % 26); };
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  std::uint32_t landed = 0;
  drive(job, [&] {
    while (sent < kMessages && sent < received + 8 && try_send(sender, 1, Lane::kData, sent, bytes_of(sent))) ++sent;
    Incoming incoming;
    while (received < kMessages && job[1].peek(0, Lane::kData, incoming)) {
      landed += places.holds(incoming.payload.data());
      if (try_receive(receiver, 0, Lane::kData, received, bytes_of(received))) ++received;
    }
    return received == kMessages;
  });
  EXPECT_GT(landed, 10U);
  job[1].land_in(nullptr);
}

}  // namespace
}  // namespace unisono
