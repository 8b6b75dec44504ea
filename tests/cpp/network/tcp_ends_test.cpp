// How sessions end, and who cannot be reached: peers that leave, die, stop, or never were there.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <optional>

#include "core/error.hpp"
#include "network/tcp/card.hpp"
#include "tests/cpp/network/processes.hpp"
#include "tests/cpp/network/tcp_job.hpp"

namespace unisono {
namespace {

using test::Child;
using test::drive;
using test::require;
using test::TcpJob;
using test::try_receive;
using test::try_send;
using test::until;
using Liveness = Poe::Liveness;

/// Both ways of sending: as it is, and encrypted.
class TcpEnds : public testing::TestWithParam<bool> {
 protected:
  static tcp::TcpSettings settings() { return GetParam() ? test::encrypted() : test::loopback(); }
};
INSTANTIATE_TEST_SUITE_P(By, TcpEnds, testing::Bool(),
                         [](const auto& by) { return std::string(by.param ? "Tls" : "Tcp"); });

/// Polls one network until `ready`; throws after `patience`.
void wait_for(Network& network, const std::function<bool()>& ready,
              std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  const auto deadline = test::Clock::now() + patience;
  while (!ready()) {
    if (test::Clock::now() > deadline) throw std::runtime_error("it has not come to be");
    network.poll();
    pollfd sleep{network.descriptor(), POLLIN, 0};
    ::poll(&sleep, 1, 5);
  }
}

/// A job of two of which this process has endpoint 0, and a child endpoint 1.
struct Halves {
  Halves(const std::function<void(Network&)>& body, const tcp::TcpSettings& settings) : network(settings) {
    // The child makes its network itself, for one that was made before fork is its parent's; its card comes by a pipe.
    int up[2];
    int down[2];
    if (pipe(up) != 0 || pipe(down) != 0) throw std::runtime_error("no pipe");
    const auto mine = network.card();
    child.emplace([&, up, down] {
      tcp::TcpNetwork theirs(settings.tls ? test::encrypted() : test::loopback());
      const auto card = theirs.card();
      char go = 0;
      require(write(up[1], card.data(), card.size()) == static_cast<ssize_t>(card.size()), "card told");
      require(read(down[0], &go, 1) == 1, "told to go on");
      theirs.meet(members(1, mine, card));
      body(theirs);
    });
    std::vector<std::byte> theirs(Network::kMostCardBytes);
    const ssize_t got = read(up[0], theirs.data(), theirs.size());
    require(got > 0, "the child has told its card");
    theirs.resize(static_cast<std::size_t>(got));
    network.meet(members(0, mine, theirs));
    require(write(down[1], "!", 1) == 1, "the child goes on");
    for (const int fd : {up[0], up[1], down[0], down[1]}) close(fd);
  }
  static NetworkMembers members(std::uint32_t self, std::vector<std::byte> zero, std::vector<std::byte> one) {
    return {self, test::key_of(3), {std::move(zero), std::move(one)}, {"a.example", "b.example"}};
  }

  tcp::TcpNetwork network;
  std::optional<Child> child;
};

/// Answers every message with the same one until the peer is gone.
void echo(Network& network) {
  test::NetworkPoe poe(network, 1, 2);
  for (std::uint32_t n = 0;; ++n) {
    until(poe, [&] { return try_receive(poe, 0, Lane::kData, n, 100) || poe.liveness(0) != Liveness::kAlive; });
    if (poe.liveness(0) != Liveness::kAlive) return;
    until(poe, [&] { return try_send(poe, 0, Lane::kData, n, 100); });
  }
}

TEST_P(TcpEnds, WhoLeavesIsSeenToAndWhatItSentCanBeRead) {
  TcpJob job(2, settings());
  auto leaving = job.poe(0);
  auto staying = job.poe(1);
  for (std::uint32_t n = 0; n < 3; ++n) ASSERT_TRUE(try_send(leaving, 1, Lane::kData, n, 60'000));
  ASSERT_TRUE(try_send(leaving, 1, Lane::kControl, 0, 500));
  // It leaves while not even connected: what it committed goes out first.
  std::thread leaver([&] { job.networks[0].reset(); });
  bool news = false;
  wait_for(job[1], [&] {
    news = job[1].poll() || news;
    return job[1].in_use() && job[1].liveness(0) != Liveness::kAlive;
  });
  leaver.join();
  EXPECT_EQ(job[1].liveness(0), Liveness::kLeft);
  EXPECT_EQ(job[1].fate(0), Poe::Fate::kEnded);
  EXPECT_EQ(job[1].condition(0), "");
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_TRUE(try_receive(staying, 0, Lane::kData, n, 60'000));
  EXPECT_TRUE(try_receive(staying, 0, Lane::kControl, 0, 500));
  EXPECT_EQ(staying.reserve(0, Lane::kData, 1), nullptr);
}

TEST_P(TcpEnds, WhoLeavesWithUnreadMessagesIsReadAllTheSame) {
  // A kernel that closes a connection over unread bytes resets it, and could take back what is on its way.
  for (int round = 0; round < 20; ++round) {
    TcpJob job(2, settings());
    auto leaving = job.poe(0);
    auto staying = job.poe(1);
    ASSERT_TRUE(try_send(staying, 0, Lane::kData, 0, 100));
    drive(job, [&] { return try_receive(leaving, 1, Lane::kData, 0, 100); });
    for (std::uint32_t n = 1; n < 4; ++n) ASSERT_TRUE(try_send(staying, 0, Lane::kData, n, 50'000));
    ASSERT_TRUE(try_send(leaving, 1, Lane::kData, 0, 50'000));
    job.networks[0].reset();
    wait_for(job[1], [&] { return job[1].liveness(0) != Liveness::kAlive; });
    EXPECT_EQ(job[1].liveness(0), Liveness::kLeft) << job[1].condition(0);
    EXPECT_TRUE(try_receive(staying, 0, Lane::kData, 0, 50'000));
  }
}

TEST_P(TcpEnds, LeavingTakesNoLongerThanASecond) {
  TcpJob job(3, settings());
  auto sender = job.poe(0);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 100));
  auto receiver = job.poe(1);
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 100); });
  // One peer takes nothing, another one has not accepted yet.
  for (std::uint32_t n = 1; n < 500 && try_send(sender, 1, Lane::kData, n, 65'536);) {
    ++n;
    job[0].poll();
  }
  ASSERT_TRUE(try_send(sender, 2, Lane::kData, 0, 100));
  const auto begin = test::Clock::now();
  job.networks[0].reset();
  const auto took = test::Clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(900)) << "it must try";
  EXPECT_LT(took, std::chrono::seconds(5));
}

TEST_P(TcpEnds, AKilledPeerIsDeadWithinASecond) {
  Halves job(echo, settings());
  test::NetworkPoe poe(job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  until(poe, [&] { return try_receive(poe, 1, Lane::kData, 0, 100); });
  EXPECT_EQ(poe.liveness(1), Liveness::kAlive);
  kill(job.child->pid(), SIGKILL);
  const auto begin = test::Clock::now();
  // A sleeper is woken, and told that there is news.
  pollfd sleep{job.network.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleep, 1, 10'000), 1);
  bool news = false;
  wait_for(job.network, [&] {
    news = job.network.poll() || news;
    return job.network.liveness(1) == Liveness::kDead;
  });
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_TRUE(news);
  EXPECT_NE(job.network.condition(1).find("without leaving"), std::string::npos) << job.network.condition(1);
  EXPECT_EQ(poe.reserve(1, Lane::kData, 8), nullptr);
}

TEST_P(TcpEnds, AKilledPeerIsNoticedBySendingAlone) {
  Halves job(echo, settings());
  test::NetworkPoe poe(job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  until(poe, [&] { return try_receive(poe, 1, Lane::kData, 0, 100); });
  kill(job.child->pid(), SIGKILL);
  job.child->wait();
  std::uint32_t sent = 1;
  wait_for(job.network, [&] {
    if (sent < 100 && try_send(poe, 1, Lane::kData, sent, 10'000)) ++sent;
    return job.network.liveness(1) == Liveness::kDead;
  });
  EXPECT_FALSE(job.network.condition(1).empty());
}

TEST_P(TcpEnds, AKilledPeerIsKnownToHaveEnded) {
  Halves job(echo, settings());
  test::NetworkPoe poe(job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  until(poe, [&] { return try_receive(poe, 1, Lane::kData, 0, 100); });
  EXPECT_EQ(job.network.fate(1), Poe::Fate::kUnknown);
  kill(job.child->pid(), SIGKILL);
  wait_for(job.network, [&] { return job.network.fate(1) != Poe::Fate::kUnknown; });
  EXPECT_EQ(job.network.fate(1), Poe::Fate::kEnded);
}

TEST_P(TcpEnds, APeerThatGivesUpThisEndpointHasNotEnded) {
  // It closes its connection, as a process that ends does; but it still listens.
  TcpJob job(2, settings());
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  job[1].end(0, "was given up");
  EXPECT_EQ(job[1].liveness(0), Liveness::kDead);
  wait_for(job[0], [&] { return job[0].fate(1) != Poe::Fate::kUnknown; });
  EXPECT_EQ(job[0].fate(1), Poe::Fate::kVanished);
  EXPECT_EQ(job[0].liveness(1), Liveness::kDead);
  // Neither makes the connection again.
  EXPECT_EQ(zero.reserve(1, Lane::kData, 8), nullptr);
  EXPECT_EQ(one.reserve(0, Lane::kData, 8), nullptr);
}

TEST_P(TcpEnds, AStoppedPeerIsAlive) {
  tcp::TcpSettings impatient = settings();
  impatient.patience = std::chrono::milliseconds(500);
  Halves job(echo, impatient);
  test::NetworkPoe poe(job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  until(poe, [&] { return try_receive(poe, 1, Lane::kData, 0, 100); });
  kill(job.child->pid(), SIGSTOP);
  // Everything between fills up, and the window closes.
  std::uint32_t sent = 1;
  const auto begin = test::Clock::now();
  while (test::Clock::now() - begin < std::chrono::milliseconds(1500)) {
    if (try_send(poe, 1, Lane::kData, sent, 100)) ++sent;
    if (std::byte* place = poe.reserve(1, Lane::kData, 0); place == nullptr) {
      job.network.poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(poe.liveness(1), Liveness::kAlive) << poe.condition(1);
  }
  EXPECT_EQ(poe.reserve(1, Lane::kData, 65'536), nullptr) << "the stopped peer's window should be closed";
  kill(job.child->pid(), SIGCONT);
  std::uint32_t received = 1;
  wait_for(job.network, [&] {
    while (received < 50 && try_receive(poe, 1, Lane::kData, received, 100)) ++received;
    return received == 50;
  });
}

TEST(TcpFaults, WhoCannotBeReachedIsDeadAndTheSentenceNamesAllAddresses) {
  TcpJob job(2);
  // A port on which nobody listens, and which nobody else gets meanwhile: bound, not listened on.
  const tcp::Socket taken(socket(AF_INET, SOCK_STREAM, 0));
  tcp::Address any;
  any.bytes = {127, 0, 0, 1};
  const auto system = tcp::system_address(any, 0);
  ASSERT_EQ(bind(taken.get(), system.get(), system.bytes), 0);
  const std::uint16_t port = tcp::local_address(taken.get()).port;
  auto members = job.members(0);
  tcp::Card card{port, {}};
  for (const char* text : {"127.0.0.1", "127.0.0.2"}) {
    card.addresses.push_back(*tcp::parse_address(text));
    card.addresses.back().port = port;
  }
  members.cards[1] = tcp::encode_card(card);
  tcp::TcpNetwork network(test::loopback());
  network.meet(members);
  // The own host may refuse at once.
  if (network.reserve(1, Lane::kData, 8) != nullptr) network.commit(1, Lane::kData, test::header_for(0, 1, 0, 8));
  bool news = false;
  wait_for(network, [&] {
    news = network.poll() || news;
    return network.liveness(1) == Liveness::kDead;
  });
  EXPECT_TRUE(news);
  const std::string at = ":" + std::to_string(port) + ": Connection refused";
  EXPECT_EQ(network.condition(1), "on host1 cannot be reached from host0: tried 127.0.0.1" + at + "; 127.0.0.2" + at +
                                      "; its process has ended: see what it said");
  EXPECT_EQ(network.reserve(1, Lane::kData, 8), nullptr);
  EXPECT_EQ(network.fate(1), Poe::Fate::kEnded) << "its kernel has said at each address that nobody listens";
}

TEST(TcpFaults, TheNextAddressIsTakenIfTheFirstIsNotThePeer) {
  TcpJob job(3);
  const tcp::Card right = tcp::decode_card(job.cards[1]);
  tcp::TcpNetwork network(test::loopback());
  auto members = job.members(0);
  tcp::Card card = right;
  card.addresses.insert(card.addresses.begin(), *tcp::parse_address("127.0.0.2:" + std::to_string(right.port)));
  members.cards[1] = tcp::encode_card(card);
  network.meet(members);
  test::NetworkPoe poe(network, 0, 3);
  ASSERT_TRUE(try_send(poe, 1, Lane::kData, 0, 10));
  auto receiver = job.poe(1);
  drive(job, [&] {
    network.poll();
    return try_receive(receiver, 0, Lane::kData, 0, 10);
  });
  // It came to 127.0.0.2 first, which is not among the addresses of the interface "lo", and was refused there.
  EXPECT_EQ(job[1].refused(), 1U);
}

TEST(TcpFaults, ACorruptMessageNamesPeerAndField) {
  TcpJob job(2);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  // Somebody writes on the member's socket: the only one of this process that has its address.
  int socket = -1;
  for (int fd = 3; fd < 200 && socket < 0; ++fd) {
    const tcp::Address there = tcp::remote_address(fd);
    if (there.port == job[1].port()) socket = fd;
  }
  ASSERT_GE(socket, 0);
  const std::vector<std::byte> zeros(64);
  ASSERT_EQ(send(socket, zeros.data(), zeros.size(), 0), 64);
  Incoming incoming;
  try {
    wait_for(job[1], [&] { return job[1].peek(0, Lane::kData, incoming); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptMessage) << error.what();
    EXPECT_NE(std::string(error.what()).find("endpoint 0 on host0"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("magic is 0"), std::string::npos) << error.what();
  }
  EXPECT_EQ(job[1].liveness(0), Liveness::kDead);
  EXPECT_THROW(job[1].peek(0, Lane::kControl, incoming), Error);
}

TEST(TcpFaults, ABadCardIsRefusedWithItsOwner) {
  TcpJob job(2);
  tcp::TcpNetwork network(test::loopback());
  auto members = job.members(0);
  members.cards[1].pop_back();
  try {
    network.meet(members);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
    EXPECT_NE(std::string(error.what()).find("endpoint 1 on host1"), std::string::npos) << error.what();
  }
}

TEST(TcpFaults, PortsOfARangeAreTakenInTurn) {
  // A range that begins with a port in use.
  tcp::TcpNetwork first(test::loopback());
  tcp::TcpSettings settings = test::loopback();
  settings.first_port = settings.last_port = first.port();
  try {
    tcp::TcpNetwork second(settings);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(first.port())), std::string::npos) << error.what();
  }
  if (first.port() > 65'000) return;
  settings.last_port = static_cast<std::uint16_t>(settings.first_port + 200);
  tcp::TcpNetwork second(settings);
  EXPECT_GT(second.port(), first.port());
  EXPECT_LE(second.port(), settings.last_port);
}

TEST_P(TcpEnds, AChildOfForkIsRefusedAndHarmsNobody) {
  TcpJob job(2, settings());
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  Child child([&] {
    const auto refused = [](auto&& use) {
      try {
        use();
      } catch (const Error& error) {
        return error.code() == ErrorCode::kWrongProcess;
      }
      return false;
    };
    require(refused([&] { job[0].poll(); }), "poll refused");
    require(refused([&] { job[0].reserve(1, Lane::kData, 8); }), "reserve refused");
    require(refused([&] { job[0].liveness(1); }), "liveness refused");
    job.networks.clear();
  });
  EXPECT_EQ(child.wait(), 0);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 1, 10));
  drive(job, [&] { return try_receive(one, 0, Lane::kData, 1, 10); });
  EXPECT_EQ(job[1].liveness(0), Liveness::kAlive);
}

TEST_P(TcpEnds, ADescriptorIsQuietAfterAllHaveLeft) {
  TcpJob job(3, settings());
  auto zero = job.poe(0);
  for (const std::uint32_t peer : {1U, 2U}) ASSERT_TRUE(try_send(zero, peer, Lane::kData, 0, 10));
  auto one = job.poe(1);
  drive(job, [&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  job.networks[1].reset();
  job.networks[2].reset();
  wait_for(job[0], [&] { return job[0].liveness(1) != Liveness::kAlive; });
  while (job[0].poll()) {
  }
  pollfd sleep{job[0].descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleep, 1, 100), 0);
}

}  // namespace
}  // namespace unisono
