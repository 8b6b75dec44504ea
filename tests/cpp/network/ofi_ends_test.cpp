// How sessions over libfabric end, and who is refused.
#include <poll.h>

#include <csignal>
#include <cstring>
#include <optional>

#include "network/ofi/card.hpp"
#include "tests/cpp/network/ofi_job.hpp"

namespace unisono {
namespace {

using test::Child;
using test::drive;
using test::OfiJob;
using test::require;
using test::try_receive;
using test::try_send;
using test::until;
using Liveness = Poe::Liveness;

constexpr const char* kTcp = "tcp;ofi_rxm";

class OfiEnds : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = test::missing_provider(kTcp);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

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

/// Answers every message with the same one until it is killed.
void echo(Poe& poe) {
  for (std::uint32_t n = 0;; ++n) {
    until(poe, [&] { return try_receive(poe, 0, Lane::kData, n, 100); });
    until(poe, [&] { return try_send(poe, 0, Lane::kData, n, 100); });
  }
}

/// A job of two of which this process has endpoint 0, and a child endpoint 1.
struct Halves {
  explicit Halves(const std::function<void(Poe&)>& body) : table(2) {
    child.emplace([this, body] {
      const auto theirs = ofi::make_network(test::ofi_settings(kTcp));
      table.meet(*theirs, 1);
      test::NetworkPoe poe(*theirs, 1, 2);
      body(poe);
    });
    network = ofi::make_network(test::ofi_settings(kTcp));
    table.meet(*network, 0);
  }
  test::CardTable table;
  std::optional<Child> child;
  std::unique_ptr<Network> network;
};

TEST_F(OfiEnds, WhoLeavesIsSeenToAndWhatItSentCanBeRead) {
  OfiJob job(2, kTcp);
  auto leaving = job.poe(0);
  auto staying = job.poe(1);
  for (std::uint32_t n = 0; n < 3; ++n) ASSERT_TRUE(try_send(leaving, 1, Lane::kData, n, 30'000));
  ASSERT_TRUE(try_send(leaving, 1, Lane::kControl, 0, 500));
  // It leaves while nobody has proven anything: what it committed goes out first.
  std::thread leaver([&] { job.networks[0].reset(); });
  wait_for(job[1], [&] { return job[1].in_use() && job[1].liveness(0) != Liveness::kAlive; });
  // It is told that all has come, so that it need not wait any longer.
  wait_for(job[1], [&] { return !job[1].poll(); });
  leaver.join();
  EXPECT_EQ(job[1].liveness(0), Liveness::kLeft);
  EXPECT_EQ(job[1].condition(0), "");
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_TRUE(try_receive(staying, 0, Lane::kData, n, 30'000));
  EXPECT_TRUE(try_receive(staying, 0, Lane::kControl, 0, 500));
  EXPECT_EQ(staying.reserve(0, Lane::kData, 1), nullptr);
}

TEST_F(OfiEnds, LeavingTakesAboutASecondAtMost) {
  OfiJob job(3, kTcp);
  auto sender = job.poe(0);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 100));
  auto receiver = job.poe(1);
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 100); });
  // One peer takes nothing, another one was never heard of.
  for (std::uint32_t n = 1; n < 500 && try_send(sender, 1, Lane::kData, n, 65'536); ++n) job[0].poll();
  ASSERT_TRUE(try_send(sender, 2, Lane::kData, 0, 100));
  const auto begin = test::Clock::now();
  job.networks[0].reset();
  const auto took = test::Clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(900)) << "it must try";
  EXPECT_LT(took, std::chrono::seconds(5));
}

TEST_F(OfiEnds, AKilledPeerIsDeadOnceAnOperationHasFailed) {
  Halves job(echo);
  test::NetworkPoe poe(*job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  until(poe, [&] { return try_receive(poe, 1, Lane::kData, 0, 100); });
  EXPECT_EQ(poe.liveness(1), Liveness::kAlive);
  kill(job.child->pid(), SIGKILL);
  job.child->wait();
  std::uint32_t sent = 1;
  const auto begin = test::Clock::now();
  wait_for(*job.network, [&] {
    if (try_send(poe, 1, Lane::kData, sent, 100)) ++sent;
    return poe.liveness(1) == Liveness::kDead;
  });
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(5));
  EXPECT_NE(poe.condition(1).find("cannot be reached by tcp;ofi_rxm: "), std::string::npos) << poe.condition(1);
  EXPECT_EQ(poe.reserve(1, Lane::kData, 8), nullptr);
}

TEST_F(OfiEnds, AStoppedPeerIsAliveAndGoesOn) {
  Halves job(echo);
  test::NetworkPoe poe(*job.network, 0, 2);
  until(poe, [&] { return try_send(poe, 1, Lane::kData, 0, 100); });
  until(poe, [&] { return try_receive(poe, 1, Lane::kData, 0, 100); });
  kill(job.child->pid(), SIGSTOP);
  std::uint32_t sent = 1;
  const auto begin = test::Clock::now();
  while (test::Clock::now() - begin < std::chrono::milliseconds(500)) {
    if (try_send(poe, 1, Lane::kData, sent, 100)) ++sent;
    job.network->poll();
    ASSERT_EQ(poe.liveness(1), Liveness::kAlive) << poe.condition(1);
  }
  EXPECT_EQ(poe.reserve(1, Lane::kData, 100), nullptr) << "the window should be full";
  kill(job.child->pid(), SIGCONT);
  std::uint32_t received = 1;
  wait_for(*job.network, [&] {
    while (received < sent && try_receive(poe, 1, Lane::kData, received, 100)) ++received;
    return received == sent;
  });
}

TEST_F(OfiEnds, WhoNeverWasThereIsSilentAndHoldsNobodyUp) {
  // The address of an endpoint that is gone. This provider tries again and again; another one may say that it cannot.
  const auto gone = ofi::make_network(test::ofi_settings(kTcp))->card();
  auto network = ofi::make_network(test::ofi_settings(kTcp));
  network->meet({0, test::key_of(7), {network->card(), gone}, {"a.example", "b.example"}});
  test::NetworkPoe poe(*network, 0, 2);
  std::uint32_t sent = 0;
  const auto begin = test::Clock::now();
  while (test::Clock::now() - begin < std::chrono::milliseconds(500)) {
    if (try_send(poe, 1, Lane::kData, sent, 20'000)) ++sent;
    network->poll();
    ::poll(nullptr, 0, 1);
  }
  EXPECT_LE(sent, 16U) << "what waits is bounded";
  EXPECT_TRUE(network->has_output());
  network.reset();
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(OfiEnds, WhoHasAnotherKeyGetsNoSession) {
  OfiJob job(2, kTcp);
  const auto stranger = ofi::make_network(test::ofi_settings(kTcp));
  NetworkMembers members = job.members(0);
  members.key = test::key_of(8);
  members.cards[0] = stranger->card();
  stranger->meet(members);
  test::NetworkPoe poe(*stranger, 0, 2);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(poe, 1, Lane::kData, 0, 100));
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 77));
  bool came = false;
  drive(job, [&] {
    stranger->poll();
    came = came || try_receive(one, 0, Lane::kData, 0, 77);
    return came && job[0].refused() + job[1].refused() > 0;
  });
  // What the stranger made endpoint 1 ask went to the real endpoint 0, and harmed nobody.
  for (std::uint32_t n = 1; n < 200; ++n) {
    drive(job, [&] {
      stranger->poll();
      return try_send(zero, 1, Lane::kData, n, 77);
    });
    drive(job, [&] { return try_receive(one, 0, Lane::kData, n, 77); });
  }
  EXPECT_EQ(job[1].liveness(0), Liveness::kAlive);
}

TEST_F(OfiEnds, CardsThatCannotBeReadAreRefusedWithTheirOwner) {
  OfiJob job(2, kTcp);
  const auto refusal = [&](std::vector<std::byte> card) -> std::string {
    const auto network = ofi::make_network(test::ofi_settings(kTcp));
    auto members = job.members(0);
    members.cards[1] = std::move(card);
    try {
      network->meet(members);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
      return error.what();
    }
    return {};
  };
  EXPECT_NE(refusal(std::vector<std::byte>(5)).find("endpoint 1 on host1"), std::string::npos);
  ofi::Card other = ofi::decode_card(job.cards[1]);
  other.provider = "shm";
  const std::string text = refusal(ofi::encode_card(other));
  EXPECT_NE(text.find("is of provider shm"), std::string::npos) << text;
  EXPECT_NE(text.find("UNISONO_OFI_PROVIDER"), std::string::npos) << text;
  EXPECT_EQ(refusal(job.cards[1]), "");
}

TEST_F(OfiEnds, AProviderThatIsNotThereIsNamedWithThoseThatAre) {
  try {
    ofi::make_network({"quipu", {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
    EXPECT_NE(std::string(error.what()).find("quipu"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("tcp;ofi_rxm"), std::string::npos) << error.what();
  }
}

TEST_F(OfiEnds, AChildOfForkIsRefusedAndHarmsNobody) {
  OfiJob job(2, kTcp);
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

TEST_F(OfiEnds, ADescriptorIsQuietUntilSomethingComes) {
  OfiJob job(2, kTcp);
  auto sender = job.poe(0);
  auto receiver = job.poe(1);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); });
  for (std::uint32_t endpoint = 0; endpoint < 2; ++endpoint) {
    // Quiet comes a while after the last thing that came.
    const auto deadline = test::Clock::now() + std::chrono::milliseconds(200);
    while (test::Clock::now() < deadline) job[endpoint].poll();
    pollfd sleep{job[endpoint].descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&sleep, 1, 50), 0) << "endpoint " << endpoint << " would never sleep";
  }
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 1, 10));
  job[0].poll();
  pollfd sleep{job[1].descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleep, 1, 5000), 1);
  drive(job, [&] { return try_receive(receiver, 0, Lane::kData, 1, 10); });
}

TEST_F(OfiEnds, ANewcomerWakesWhoHasNoSessionYet) {
  OfiJob job(2, kTcp);
  job[1].poll();
  pollfd sleep{job[1].descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&sleep, 1, 50), 0) << "nothing has come";
  auto sender = job.poe(0);
  ASSERT_TRUE(try_send(sender, 1, Lane::kData, 0, 10));
  // For as long as it takes to connect: on a busy machine half a second is not enough.
  const std::jthread other([&](const std::stop_token& enough) {
    while (!enough.stop_requested()) job[0].poll();
  });
  auto receiver = job.poe(1);
  until(
      receiver, [&] { return try_receive(receiver, 0, Lane::kData, 0, 10); }, std::chrono::seconds(10));
}

}  // namespace
}  // namespace unisono
