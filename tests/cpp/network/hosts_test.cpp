// Jobs over several hosts, which are processes with different UNISONO_HOST: joining over TCP, messages, liveness.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "core/error.hpp"
#include "network/shm/shm_poe.hpp"
#include "platform/join/frames.hpp"
#include "platform/join/host.hpp"
#include "platform/join/job.hpp"
#include "platform/join/pack.hpp"
#include "tests/cpp/network/processes.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono {
namespace {

using std::chrono::milliseconds;
using test::Child;
using test::require;
using test::try_receive;
using test::try_send;
using test::until;
using ::testing::HasSubstr;

/// A socket that listens on a port of the loopback that nobody else has; the children inherit it.
class Rendezvous {
 public:
  Rendezvous() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    require(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0, "a port");
    require(listen(socket_.get(), 64) == 0, "it listens");
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    port_ = ntohs(address.sin_port);
  }

  /// Ranks are dealt in turn to so many hosts.
  JobEnvironment environment(std::uint32_t rank, std::uint32_t size, std::uint32_t hosts) const {
    JobEnvironment made;
    made.rank = rank;
    made.size = size;
    made.addresses = {{"127.0.0.1", port_}};
    made.secret = "00112233445566778899aabbccddeeff";
    made.timeout = milliseconds(20'000);
    made.host = "host" + std::to_string(rank % hosts);
    // A copy, since joining closes it.
    if (rank == 0) made.listener = dup(socket_.get());
    return made;
  }
  std::uint16_t port() const { return port_; }

 private:
  join::Descriptor socket_;
  std::uint16_t port_ = 0;
};

std::string join_error(const JobEnvironment& environment) {
  try {
    join_job(environment, {});
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
  }
  return {};
}

/// Every rank sends messages of many lengths to every rank, on both lanes, and receives theirs.
void exchange(Poe& poe, std::uint32_t messages) {
  const std::uint32_t size = poe.size();
  struct Progress {
    std::uint32_t sent[2] = {}, received[2] = {};
  };
  std::vector<Progress> peers(size);
  const auto bytes = [&](Lane lane, std::uint32_t number) {
    return lane == Lane::kControl ? number % 900 : number * 7001 % (poe.max_payload(lane) + 1);
  };
  until(poe, [&] {
    poe.poll();
    bool done = true;
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      Progress& own = peers[peer];
      for (const Lane lane : {Lane::kData, Lane::kControl}) {
        const auto i = static_cast<std::size_t>(lane);
        while (own.sent[i] < messages && try_send(poe, peer, lane, own.sent[i], bytes(lane, own.sent[i])))
          ++own.sent[i];
        while (own.received[i] < messages &&
               try_receive(poe, peer, lane, own.received[i], bytes(lane, own.received[i]))) {
          ++own.received[i];
        }
        done = done && own.sent[i] == messages && own.received[i] == messages;
      }
    }
    return done;
  });
}

struct Shape {
  std::uint32_t size, hosts;
};

class JobOverHosts : public ::testing::TestWithParam<Shape> {};

TEST_P(JobOverHosts, CarryMessagesByMemoryAndByNetwork) {
  const auto [size, hosts] = GetParam();
  const Rendezvous rendezvous;
  const auto member = [&](std::uint32_t rank) {
    const std::vector<std::byte> capabilities(rank * 1000 + 1, static_cast<std::byte>(rank));
    const JoinedJob job = join_job(rendezvous.environment(rank, size, hosts), capabilities);
    Poe& poe = *job.poe;
    require(poe.self() == rank && poe.size() == size, "rank and size");
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      require(job.all_capabilities[peer] == std::vector<std::byte>(peer * 1000 + 1, static_cast<std::byte>(peer)),
              "what everyone brought");
      const bool here = peer % hosts == rank % hosts;
      require(poe.in_shared_memory(peer).has_value() == here, "who shares memory");
      require(!here || *poe.in_shared_memory(peer) == peer / hosts, "and where it is there");
      require(poe.way_to(peer) == std::string(here ? "shm" : "tcp"), "the way to it");
      const bool named = poe.describe(peer).find("host" + std::to_string(peer % hosts)) != std::string::npos;
      require(named != here, poe.describe(peer));
      require((poe.records(peer) != nullptr) == here, "records that can be read");
    }
    require(poe.shared_memory()->size() == (size - rank % hosts + hosts - 1) / hosts, "the memory of one host");
    exchange(poe, 100);
  };
  std::vector<Child> members;
  for (std::uint32_t rank = 0; rank < size; ++rank) members.emplace_back([&, rank] { member(rank); });
  for (auto& process : members) EXPECT_EQ(process.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Processes, JobOverHosts, ::testing::Values(Shape{2, 2}, Shape{4, 2}, Shape{5, 2}, Shape{4, 4}),
                         [](const auto& parameter) {
                           return std::to_string(parameter.param.size) + "RanksOn" +
                                  std::to_string(parameter.param.hosts);
                         });

TEST(Hosts, OneHostNeedsNoNetworkHoweverItsRanksMet) {
  const Rendezvous rendezvous;
  Child other([&] {
    const JoinedJob job = join_job(rendezvous.environment(1, 2, 1), {});
    exchange(*job.poe, 20);
  });
  const JoinedJob job = join_job(rendezvous.environment(0, 2, 1), {});
  EXPECT_EQ(job.poe->way_to(1), std::string("shm"));
  exchange(*job.poe, 20);
  EXPECT_EQ(other.wait(), 0);
}

TEST(Hosts, AKilledRankOfAnotherHostIsDeadWithinASecond) {
  const Rendezvous rendezvous;
  Child victim([&] {
    const JoinedJob job = join_job(rendezvous.environment(1, 2, 2), {});
    require(try_send(*job.poe, 0, Lane::kData, 0, 3000), "room");
    until(*job.poe, [&] {
      job.poe->poll();
      return try_receive(*job.poe, 0, Lane::kControl, 0, 8);
    });
    for (;;) pause();
  });
  const JoinedJob job = join_job(rendezvous.environment(0, 2, 2), {});
  ASSERT_TRUE(try_send(*job.poe, 1, Lane::kControl, 0, 8));
  until(*job.poe, [&] {
    job.poe->poll();
    return try_receive(*job.poe, 1, Lane::kData, 0, 3000);
  });
  EXPECT_EQ(job.poe->liveness(1), Poe::Liveness::kAlive);
  kill(victim.pid(), SIGKILL);
  const auto begin = test::Clock::now();
  until(*job.poe, [&] {
    job.poe->poll();
    return job.poe->liveness(1) == Poe::Liveness::kDead;
  });
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_NE(job.poe->condition(1), "");
}

TEST(Hosts, AStrangerWithoutTheSecretDoesNotDisturb) {
  const Rendezvous rendezvous;
  Child root([&] { join_job(rendezvous.environment(0, 2, 2), {}); });
  JobEnvironment stranger = rendezvous.environment(1, 2, 2);
  stranger.secret = "00112233445566778899aabbccddee00";
  EXPECT_THAT(join_error(stranger), HasSubstr("the secret (UNISONO_SECRET) is not that of job \"tcp://127.0.0.1:"));
  {
    // One who replays what rank 0 has heard before has no answer to a fresh challenge.
    using namespace join;
    NoConnection failure;
    const Descriptor connection =
        try_connect({"127.0.0.1", rendezvous.port()}, Clock::now() + std::chrono::seconds(5), failure);
    ASSERT_TRUE(connection.valid()) << failure.reason;
    const Hello hello{1, 2, 77, {}};
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    ASSERT_TRUE(send_frame(connection, FrameKind::kHello, std::as_bytes(std::span(&hello, 1)), deadline));
    FrameReader reader(sizeof(Challenge));
    ASSERT_EQ(reader.read_until(connection, deadline), FrameReader::Progress::kComplete);
    Challenge challenge{};
    ASSERT_TRUE(reader.body_as(FrameKind::kChallenge, challenge));
    // What rank 0 has proven itself with is no proof of a member.
    ASSERT_TRUE(send_frame(connection, FrameKind::kProof, challenge.proof, deadline));
    reader.restart();
    ASSERT_EQ(reader.read_until(connection, deadline), FrameReader::Progress::kComplete);
    EXPECT_THAT(reader.body_text(), HasSubstr("is not that of job"));
  }
  EXPECT_EQ(join_error(rendezvous.environment(1, 2, 2)), "");
  EXPECT_EQ(root.wait(), 0);
}

TEST(Hosts, NobodyThereIsSaidWithTheReason) {
  std::uint16_t port = 0;
  {
    const Rendezvous gone;
    port = gone.port();
  }
  JobEnvironment environment;
  environment.rank = 1;
  environment.size = 2;
  environment.addresses = {{"127.0.0.1", port}};
  environment.secret = "00112233445566778899aabbccddeeff";
  environment.timeout = milliseconds(200);
  EXPECT_THAT(join_error(environment),
              ::testing::AllOf(HasSubstr("rank 0 has not come"), HasSubstr("Connection refused")));
}

TEST(Hosts, APortInUseIsNamed) {
  const Rendezvous taken;
  JobEnvironment environment = taken.environment(0, 2, 2);
  close(environment.listener);
  environment.listener = -1;
  EXPECT_THAT(join_error(environment), HasSubstr("port " + std::to_string(taken.port()) + " of the rendezvous"));
}

TEST(Host, IsTheSameForAllProcessesOfIt) {
  const join::Host own = join::this_host("");
  EXPECT_EQ(own.identity, join::this_host("").identity);
  EXPECT_NE(own.name, "");
  EXPECT_NE(own.identity, join::this_host("another").identity);
  EXPECT_EQ(join::this_host("one").identity, join::this_host("one").identity);
  EXPECT_NE(join::this_host("one").identity, join::this_host("two").identity);
  Child other([&] { require(join::this_host("").identity == own.identity, "the same in a child"); });
  EXPECT_EQ(other.wait(), 0);
}

TEST(Pack, WhatIsCutOrTooLongIsBroken) {
  const join::Blob packed = join::Packer().add("abc").add_value(std::uint32_t{7}).add("").take();
  for (std::size_t bytes = 0; bytes <= packed.size(); ++bytes) {
    join::Unpacker unpacker(std::span<const std::byte>(packed).first(bytes));
    const std::string text = unpacker.take_text();
    const auto value = unpacker.take_value<std::uint32_t>();
    unpacker.take();
    EXPECT_EQ(unpacker.whole(), bytes == packed.size()) << bytes;
    if (unpacker.whole()) {
      EXPECT_EQ(text, "abc");
      EXPECT_EQ(value, 7U);
    }
  }
  join::Unpacker other(packed);
  other.take_value<std::uint64_t>();
  EXPECT_FALSE(other.whole());
  EXPECT_FALSE(join::unpack_blobs(packed, 2).has_value());
  EXPECT_TRUE(join::unpack_blobs(packed, 3).has_value());
}

}  // namespace
}  // namespace unisono
