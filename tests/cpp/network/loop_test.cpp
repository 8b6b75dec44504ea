// The network between endpoints of one process (network/loop).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "network/loop/loop_poe.hpp"
#include "network/mixed_poe.hpp"
#include "network/shm/shm_poe.hpp"
#include "tests/cpp/network/network_job.hpp"

namespace unisono::test {
namespace {

using loop::LoopNetwork;
using testing::ElementsAre;
using testing::HasSubstr;

NetworkMembers members_of(const std::vector<std::unique_ptr<LoopNetwork>>& networks, std::uint32_t self) {
  NetworkMembers members;
  members.self = self;
  for (const auto& network : networks) {
    members.cards.push_back(network->card());
    members.hosts.push_back("here");
  }
  return members;
}

TEST(Loop, CarriesMessagesBothWaysWhileBothSleep) {
  const auto job = loop::Job::make(2);
  std::vector<std::unique_ptr<LoopNetwork>> networks;
  for (std::uint32_t self = 0; self < 2; ++self) networks.push_back(std::make_unique<LoopNetwork>(job, self));
  std::vector<std::thread> threads;
  for (std::uint32_t self = 0; self < 2; ++self) {
    networks[self]->meet(members_of(networks, self));
    threads.emplace_back([&, self] {
      NetworkPoe poe(*networks[self], self, 2);  // which sleeps on the descriptor
      std::uint32_t sent = 0, received = 0;
      constexpr std::uint32_t kMessages = 3000;
      until(poe, [&] {
        while (sent < kMessages && try_send(poe, 1 - self, static_cast<Lane>(sent % 2), sent, sent * 37 % 8000)) {
          ++sent;
        }
        while (received < kMessages &&
               try_receive(poe, 1 - self, static_cast<Lane>(received % 2), received, received * 37 % 8000)) {
          ++received;
        }
        return sent == kMessages && received == kMessages;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(networks[0]->sessions(), 1U);
}

TEST(Loop, KeepsNoMoreThanItShould) {
  const auto job = loop::Job::make(3);
  const auto receiver = job->endpoint(0), one = job->endpoint(1), other = job->endpoint(2);
  std::uint32_t sent = 0;
  while (try_send(*one, 0, Lane::kData, sent, 4096)) ++sent;
  EXPECT_LE(sent * 4096, LoopNetwork::kMostData);
  EXPECT_GE(sent * 4096, LoopNetwork::kMostData / 2);
  EXPECT_FALSE(try_send(*other, 0, Lane::kData, 0, 4096));
  EXPECT_TRUE(try_send(*other, 0, Lane::kControl, 0, 64)) << "control is never blocked by data";
  const std::uint32_t before_one = one->activity(), before_other = other->activity();
  receiver->poll();
  ASSERT_TRUE(receiver->talkers().has_value());
  EXPECT_THAT(*receiver->talkers(), ElementsAre(1, 2));
  for (std::uint32_t number = 0; number < sent; ++number) {
    ASSERT_TRUE(try_receive(*receiver, 1, Lane::kData, number, 4096));
  }
  ASSERT_TRUE(try_receive(*receiver, 2, Lane::kControl, 0, 64));
  EXPECT_TRUE(receiver->talkers()->empty());
  EXPECT_NE(one->activity(), before_one) << "who had found no room is told";
  EXPECT_NE(other->activity(), before_other);
  EXPECT_TRUE(try_send(*other, 0, Lane::kData, 0, 4096));
}

TEST(Loop, WhatWasSentBeforeAnEndCanBeRead) {
  const auto job = loop::Job::make(3);
  const auto reader = job->endpoint(0);
  auto leaver = job->endpoint(1), victim = job->endpoint(2);
  EXPECT_EQ(reader->liveness(1), Poe::Liveness::kAlive);
  ASSERT_TRUE(try_send(*leaver, 0, Lane::kData, 0, 10));
  job->end_after(2, 1);
  ASSERT_TRUE(try_send(*victim, 0, Lane::kControl, 0, 20));
  try_send(*victim, 0, Lane::kControl, 1, 20);  // in place of which it ends
  EXPECT_THROW(victim->poll(), loop::Ended);
  leaver.reset();
  EXPECT_EQ(reader->liveness(1), Poe::Liveness::kLeft);
  EXPECT_EQ(reader->liveness(2), Poe::Liveness::kDead);
  EXPECT_EQ(reader->fate(1), Poe::Fate::kEnded);
  EXPECT_EQ(reader->fate(2), Poe::Fate::kEnded);
  reader->talkers();
  EXPECT_TRUE(try_receive(*reader, 1, Lane::kData, 0, 10));
  EXPECT_TRUE(try_receive(*reader, 2, Lane::kControl, 0, 20));
  EXPECT_FALSE(try_receive(*reader, 2, Lane::kControl, 1, 20));
  EXPECT_TRUE(try_send(*reader, 2, Lane::kControl, 0, 20)) << "nobody waits for room at who has ended";
}

TEST(Loop, RefusesWhatIsWrong) {
  EXPECT_THROW(loop::Job::make(0), Error);
  EXPECT_THROW(loop::Job::make(loop::Job::kMostEndpoints + 1), Error);
  const auto job = loop::Job::make(2);
  const auto taken = job->endpoint(0);
  EXPECT_THROW(job->endpoint(0), Error);
  EXPECT_THROW(job->endpoint(2), Error);
  const auto other_job = loop::Job::make(2);
  std::vector<std::unique_ptr<LoopNetwork>> networks;
  networks.push_back(std::make_unique<LoopNetwork>(other_job, 0));
  networks.push_back(std::make_unique<LoopNetwork>(job, 1));
  try {
    networks[0]->meet(members_of(networks, 0));
    ADD_FAILURE() << "a card of another job was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
    EXPECT_THAT(error.what(), HasSubstr("endpoint 1 has no mailbox in this process and job"));
  }
}

TEST(Loop, JoinsHostsOfThreads) {
  // Two hosts of two endpoints each: memory within, the loop network between.
  const auto job = loop::Job::make(4);
  std::vector<std::shared_ptr<shm::Segment>> segments;
  for (int host = 0; host < 2; ++host) {
    segments.push_back(shm::Segment::create({.endpoints = 2, .arena_bytes = shm::kArenaAlignment, .one_process = 1}));
  }
  std::vector<Seat> seats;
  std::vector<std::unique_ptr<LoopNetwork>> networks;
  for (std::uint32_t self = 0; self < 4; ++self) {
    seats.push_back({static_cast<std::uint32_t>(getpid()), self / 2, self % 2, "host " + std::to_string(self / 2)});
    networks.push_back(std::make_unique<LoopNetwork>(job, self));
  }
  std::vector<NetworkMembers> members;
  for (std::uint32_t self = 0; self < 4; ++self) members.push_back(members_of(networks, self));
  std::vector<std::unique_ptr<MixedPoe>> poes;
  for (std::uint32_t self = 0; self < 4; ++self) {
    networks[self]->meet(members[self]);
    poes.push_back(std::make_unique<MixedPoe>(self, seats, std::make_unique<shm::ShmPoe>(segments[self / 2], self % 2),
                                              std::move(networks[self]), true));
  }
  std::vector<std::thread> threads;
  for (std::uint32_t self = 0; self < 4; ++self) {
    threads.emplace_back([&, self] {
      Poe& poe = *poes[self];
      std::array<std::uint32_t, 4> sent{}, received{};
      constexpr std::uint32_t kMessages = 200;
      until(poe, [&] {
        poe.poll();
        bool all = true;
        for (std::uint32_t peer = 0; peer < 4; ++peer) {
          while (sent[peer] < kMessages && try_send(poe, peer == self ? self : peer, Lane::kData, sent[peer], 900)) {
            ++sent[peer];
          }
          while (received[peer] < kMessages && try_receive(poe, peer, Lane::kData, received[peer], 900)) {
            ++received[peer];
          }
          all = all && sent[peer] == kMessages && received[peer] == kMessages;
        }
        return all;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_STREQ(poes[0]->way_to(1), "shm");
  EXPECT_STREQ(poes[0]->way_to(2), "loop");
}

}  // namespace
}  // namespace unisono::test
