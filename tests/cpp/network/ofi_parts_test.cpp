// What a network over libfabric does where the provider is unkind, and what its frames may hold. Endpoints here are
// pieces of memory: they tell of what came in another order, have no room, fail, and carry what strangers write.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <random>
#include <thread>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/ofi/card.hpp"
#include "network/ofi/handshake.hpp"
#include "network/ofi/ofi_network.hpp"
#include "tests/cpp/network/memory_endpoint.hpp"
#include "tests/cpp/network/network_job.hpp"

namespace unisono {
namespace {

using ofi::Handshake;
using ofi::Hello;
using ofi::Proof;
using test::Manners;
using test::MemoryEndpoint;
using test::try_receive;
using test::try_send;
using test::Wires;
using Liveness = Poe::Liveness;

struct Job {
  explicit Job(std::uint32_t size, Manners manners = {},
               std::chrono::milliseconds patience_for_ways = std::chrono::seconds(60)) {
    for (std::uint32_t i = 0; i < size; ++i) {
      networks.push_back(std::make_unique<ofi::OfiNetwork>(std::make_unique<MemoryEndpoint>(wires, manners),
                                                           std::chrono::milliseconds(5), std::chrono::seconds(1),
                                                           patience_for_ways));
    }
    NetworkMembers members{0, test::key_of(7), {}, std::vector<std::string>(size, "here")};
    for (const auto& network : networks) members.cards.push_back(network->card());
    for (; members.self < size; ++members.self) networks[members.self]->meet(members);
  }
  ~Job() {
    // None is to wait for another one's answer.
    while (!wires.empty() && poll()) {
    }
  }
  bool poll() {
    bool news = false;
    for (const auto& network : networks) news |= network != nullptr && network->poll();
    return news;
  }
  template <class Ready>
  void drive(Ready&& ready) {
    for (std::uint32_t i = 0; i < 100'000; ++i) {
      if (ready()) return;
      poll();
    }
    throw std::runtime_error("what was to come has not come");
  }
  test::NetworkPoe poe(std::uint32_t self) {
    return {*networks[self], self, static_cast<std::uint32_t>(networks.size())};
  }

  Wires wires;
  std::vector<std::unique_ptr<ofi::OfiNetwork>> networks;
};

void exchange(Job& job, std::uint32_t messages) {
  const auto size = static_cast<std::uint32_t>(job.networks.size());
  std::minstd_rand random(7);
  const auto bytes_of = [](std::uint32_t number, std::size_t lane) {
    return number * 7919 % (lane == 0 ? (number % 3 == 0 ? 65'537U : 900U) : 1025U);
  };
  std::vector<std::uint32_t> sent(2 * size * size);
  std::vector<std::uint32_t> received(2 * size * size);
  job.drive([&] {
    bool done = true;
    for (std::uint32_t self = 0; self < size; ++self) {
      auto poe = job.poe(self);
      for (std::uint32_t peer = 0; peer < size; ++peer) {
        if (peer == self) continue;
        for (std::size_t lane = 0; lane < 2; ++lane) {
          const Lane which = lane == 0 ? Lane::kData : Lane::kControl;
          auto& out = sent[2 * (self * size + peer) + lane];
          auto& in = received[2 * (self * size + peer) + lane];
          while (out < messages && try_send(poe, peer, which, out, bytes_of(out, lane))) ++out;
          for (unsigned turns = random() % 8; turns > 0 && in < messages; --turns) {
            if (!try_receive(poe, peer, which, in, bytes_of(in, lane))) break;
            ++in;
          }
          done = done && in == messages && out == messages;
        }
      }
    }
    return done;
  });
  for (std::uint32_t self = 0; self < size; ++self) EXPECT_EQ(job.networks[self]->refused(), 0U);
}

TEST(OfiParts, KindProvidersCarryEverything) {
  Job job(3);
  exchange(job, 300);
}

TEST(OfiParts, MessagesThatAreToldOfInAnotherOrderAreReadInTheirs) {
  Job job(3, {5, 0});
  exchange(job, 300);
}

TEST(OfiParts, ProvidersWithoutRoomAreAskedAgain) {
  Job job(3, {3, 40});
  exchange(job, 300);
}

TEST(OfiParts, WhatTheProviderHasNotDoneWithIsOutput) {
  Job job(2);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  EXPECT_TRUE(job.networks[0]->has_output()) << "nobody has proven anything";
  job.drive([&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  job.poll();
  EXPECT_FALSE(job.networks[0]->has_output());
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 1, 10));
  EXPECT_TRUE(job.networks[0]->has_output()) << "its completion was not read";
  job.networks[0]->poll();
  EXPECT_FALSE(job.networks[0]->has_output());
}

TEST(OfiParts, AnOperationThatFailsIsTheEndOfItsPeer) {
  Job job(3);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  job.drive([&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  ASSERT_TRUE(try_send(one, 0, Lane::kData, 0, 20'000));
  job.wires[1] = nullptr;
  while (job.poll()) {
  }
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 1, 10));
  EXPECT_TRUE(job.networks[0]->poll()) << "a death is news";
  EXPECT_EQ(job.networks[0]->liveness(1), Liveness::kDead);
  EXPECT_EQ(job.networks[0]->condition(1), "cannot be reached by memory: fault 111");
  EXPECT_EQ(job.networks[0]->reserve(1, Lane::kData, 1), nullptr);
  EXPECT_EQ(job.networks[0]->liveness(2), Liveness::kAlive);
  // What it had sent before can be read.
  EXPECT_TRUE(try_receive(zero, 1, Lane::kData, 0, 20'000));
}

/// Drives a job until `ready`, in time instead of turns: hellos are said again now and then.
void wait_for(Job& job, const std::function<bool()>& ready) {
  const auto deadline = test::Clock::now() + std::chrono::seconds(20);
  while (!ready()) {
    if (test::Clock::now() > deadline) throw std::runtime_error("what was to come has not come");
    if (!job.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(OfiParts, AWayThatIsMissingAtFirstMayComeBack) {
  for (const int fault : {ENETUNREACH, EHOSTUNREACH, ENETDOWN, ETIMEDOUT}) {
    Job job(2);
    auto zero = job.poe(0);
    auto one = job.poe(1);
    job.wires[0]->fail_sends(fault);
    ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
    const auto later = test::Clock::now() + std::chrono::milliseconds(600);
    wait_for(job, [&] { return test::Clock::now() > later; });
    EXPECT_EQ(job.networks[0]->liveness(1), Liveness::kAlive) << fault;
    EXPECT_EQ(job.networks[0]->trial(1), Trial::kUnanswered) << fault;
    job.wires[0]->fail_sends(0);
    wait_for(job, [&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  }
}

TEST(OfiParts, AWayThatStaysAwayIsTheEndOfItsPeer) {
  Job job(2, {}, std::chrono::milliseconds(300));
  job.wires[0]->fail_sends(ENETUNREACH);
  EXPECT_EQ(job.networks[0]->trial(1), Trial::kUnanswered);
  wait_for(job, [&] { return job.networks[0]->liveness(1) == Liveness::kDead; });
  EXPECT_EQ(job.networks[0]->condition(1), formatted("cannot be reached by memory: fault {}", ENETUNREACH));
}

TEST(OfiParts, WhatThisHostLacksIsSaidAndIsNobodysEnd) {
  for (const int fault : {EADDRNOTAVAIL, EADDRINUSE, EMFILE, ENOMEM}) {
    Job job(2, {}, std::chrono::milliseconds(1));
    auto zero = job.poe(0);
    auto one = job.poe(1);
    job.wires[0]->fail_sends(fault);
    ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
    const auto later = test::Clock::now() + std::chrono::milliseconds(600);
    wait_for(job, [&] { return test::Clock::now() > later; });
    EXPECT_EQ(job.networks[0]->liveness(1), Liveness::kAlive) << fault;
    const std::string says = job.networks[0]->condition(1);
    EXPECT_EQ(says.find("cannot be connected to now: "), 0U) << says;
    if (fault == EADDRNOTAVAIL) {
      EXPECT_NE(says.find("no port of this host is free"), std::string::npos) << says;
    }
    job.wires[0]->fail_sends(0);
    wait_for(job, [&] { return try_receive(one, 0, Lane::kData, 0, 10); });
    EXPECT_EQ(job.networks[0]->condition(1), "");
  }
}

TEST(OfiParts, AMessageThatHasFailedIsNeverSentAgain) {
  Job job(2);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  job.drive([&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  job.wires[0]->fail_sends(ENETUNREACH);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 1, 10));
  job.drive([&] { return job.networks[0]->liveness(1) == Liveness::kDead; });
}

TEST(OfiParts, StrangersAreCountedAndDisturbNobody) {
  Job job(2);
  auto zero = job.poe(0);
  auto one = job.poe(1);
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
  job.drive([&] { return try_receive(one, 0, Lane::kData, 0, 10); });
  std::minstd_rand random(11);
  std::vector<std::byte> garbage;
  const auto throw_in = [&] {
    const std::uint64_t before = job.networks[1]->refused();
    job.wires[1]->put(garbage);
    job.networks[1]->poll();
    return job.networks[1]->refused() - before;
  };
  for (std::uint32_t i = 0; i < 200; ++i) {
    garbage.resize(random() % 400);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    EXPECT_EQ(throw_in(), 1U);
  }
  garbage.resize(ofi::kLongestFrame + 1);
  EXPECT_EQ(throw_in(), 1U) << "too long";
  // Frames of the right form from somebody who does not have the token.
  garbage.resize(sizeof(ofi::Prefix));
  for (const auto kind : {ofi::FrameKind::kCredit, ofi::FrameKind::kByeSeen}) {
    ofi::write_prefix(garbage.data(), kind, 0, 4711, {0, 0});
    EXPECT_EQ(throw_in(), 1U);
  }
  ofi::write_prefix(garbage.data(), ofi::FrameKind::kCredit, 99, 0, {0, 0});
  EXPECT_EQ(throw_in(), 1U) << "an endpoint that there is not";
  // Greetings: of a key of its own, to others, from nobody.
  const Handshake other(test::key_of(9), {0, 1, 2}, {});
  garbage.resize(sizeof(Proof));
  const Proof proof = other.proof();
  std::memcpy(garbage.data(), &proof, sizeof proof);
  EXPECT_EQ(throw_in(), 1U);
  garbage.resize(sizeof(Hello));
  for (const ofi::Ends& ends :
       {ofi::Ends{0, 1, 2}, ofi::Ends{0, 0, 2}, ofi::Ends{0, 1, 3}, ofi::Ends{1, 1, 2}, ofi::Ends{7, 1, 2}}) {
    const Hello hello = Handshake(test::key_of(9), ends, {}).hello();
    std::memcpy(garbage.data(), &hello, sizeof hello);
    EXPECT_EQ(throw_in(), 1U) << ends.self << " " << ends.peer;
  }
  ASSERT_TRUE(try_send(zero, 1, Lane::kData, 1, 10));
  job.drive([&] { return try_receive(one, 0, Lane::kData, 1, 10); });
  EXPECT_EQ(job.networks[1]->liveness(0), Liveness::kAlive);
}

TEST(OfiParts, AMemberThatSendsNonsenseIsDeadAndNamed) {
  // What a member sends can be heard by the test, which sends it again, changed or not.
  const auto fault_of = [](const std::function<void(std::vector<std::byte>&)>& change) {
    Job job(2);
    auto zero = job.poe(0);
    auto one = job.poe(1);
    EXPECT_TRUE(try_send(zero, 1, Lane::kData, 0, 10));
    job.drive([&] { return try_receive(one, 0, Lane::kData, 0, 10); });
    EXPECT_TRUE(try_send(zero, 1, Lane::kData, 1, 10));
    std::vector<std::byte> frame = job.wires[1]->heard();
    change(frame);
    job.wires[1]->put(frame);
    job.drive([&] { return job.networks[1]->liveness(0) == Liveness::kDead; });
    // What came before can be read.
    EXPECT_TRUE(try_receive(one, 0, Lane::kData, 1, 10));
    Incoming incoming;
    try {
      job.networks[1]->peek(0, Lane::kData, incoming);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptMessage);
      EXPECT_NE(std::string(error.what()).find("endpoint 0 on here"), std::string::npos) << error.what();
    }
    return job.networks[1]->condition(0);
  };
  EXPECT_EQ(fault_of([](auto&) {}), "sent what is no message: message 1 came twice");
  EXPECT_NE(fault_of([](auto& frame) { frame[40] ^= std::byte{1}; }).find("checksum"), std::string::npos);
  EXPECT_NE(fault_of([](auto& frame) { frame.push_back(std::byte{0}); }).find("11 bytes follow"), std::string::npos);
  EXPECT_NE(fault_of([](auto& frame) { frame[24] = std::byte{77}; }).find("released more"), std::string::npos);
}

TEST(OfiParts, HandshakesProveBothEndsInAnyOrder) {
  const JobKey key = test::key_of(1);
  Nonce first{std::byte{1}};
  Nonce second{std::byte{2}};
  Handshake zero(key, {0, 1, 2}, first);
  Handshake one(key, {1, 0, 2}, second);
  EXPECT_EQ(one.got(zero.hello()), "");
  EXPECT_TRUE(one.owes_proof());
  const Proof of_one = one.proof();
  one.proof_sent();
  EXPECT_FALSE(one.proven());
  EXPECT_EQ(zero.got(of_one), "");
  EXPECT_TRUE(zero.proven());
  EXPECT_FALSE(zero.confirmed()) << "the other end does not know yet";
  EXPECT_TRUE(zero.owes_proof());
  EXPECT_EQ(one.got(zero.proof()), "");
  EXPECT_TRUE(one.proven());
  EXPECT_TRUE(one.confirmed());
  EXPECT_EQ(zero.got(one.proof()), "");
  EXPECT_TRUE(zero.confirmed());
  EXPECT_EQ(zero.token_out(), one.token_in());
  EXPECT_EQ(zero.token_in(), one.token_out());
  EXPECT_NE(zero.token_in(), zero.token_out());
  // Said again, it changes nothing; said by another one, or to another one, it proves nothing.
  EXPECT_EQ(zero.got(of_one), "");
  Handshake late(key, {0, 1, 2}, Nonce{std::byte{3}});
  EXPECT_NE(late.got(of_one), "");
  Handshake back(key, {1, 0, 2}, second);
  EXPECT_NE(back.got(of_one), "") << "what one end has said is no proof of the other one";
}

TEST(OfiParts, ProofsAreRefusedForEveryChangedByte) {
  const JobKey key = test::key_of(1);
  Handshake one(key, {1, 0, 2}, Nonce{std::byte{2}});
  const Handshake zero(key, {0, 1, 2}, Nonce{std::byte{1}});
  ASSERT_EQ(one.got(zero.hello()), "");
  const Proof right = one.proof();
  for (std::size_t i = sizeof right.head.magic; i < sizeof right; ++i) {
    Proof changed = right;
    reinterpret_cast<unsigned char*>(&changed)[i] ^= 1U;
    Handshake end = zero;
    EXPECT_NE(end.got(changed), "") << "byte " << i;
    EXPECT_FALSE(end.proven());
  }
  Handshake end = zero;
  EXPECT_EQ(end.got(right), "");
}

TEST(OfiParts, CardsComeBackAndBadOnesAreRefused) {
  const ofi::Card card{"verbs;ofi_rxm", 0x10, 3, std::vector<std::byte>(28, std::byte{9}), ofi::Card::kWrites};
  const auto bytes = ofi::encode_card(card);
  EXPECT_EQ(ofi::decode_card(bytes), card);
  for (std::size_t length = 0; length < 11 + card.provider.size() + 1; ++length) {
    EXPECT_THROW(ofi::decode_card(std::span(bytes).first(length)), Error) << length;
  }
  auto changed = bytes;
  changed[0] = std::byte{9};
  EXPECT_THROW(ofi::decode_card(changed), Error);
  EXPECT_THROW(ofi::encode_card({"x", 1, 1, std::vector<std::byte>(200)}), Error);
}

}  // namespace
}  // namespace unisono
