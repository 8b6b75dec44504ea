// Jobs of processes: joining, being refused, dying, leaving.
#include "platform/join/job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "core/error.hpp"
#include "core/process.hpp"
#include "platform/join/frames.hpp"
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

const int kTestProgram = getpid();  ///< the children inherit it

JobEnvironment environment_of(std::uint32_t rank, std::uint32_t size) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  JobEnvironment environment;
  environment.rank = rank;
  environment.size = size;
  environment.rendezvous = "unisono-test-" + std::to_string(kTestProgram) + "-" + test->name();
  environment.secret = "00112233445566778899aabbccddeeff";
  environment.timeout = milliseconds(20'000);
  return environment;
}

/// Capabilities that differs for every rank, also in length.
std::vector<std::byte> capabilities_of(std::uint32_t rank) {
  std::vector<std::byte> capabilities(rank * 1000 + 3);
  for (std::size_t i = 0; i < capabilities.size(); ++i) capabilities[i] = test::pattern(rank, 0, 0, i);
  return capabilities;
}

/// What joining throws; empty if it does not.
std::string join_error(const JobEnvironment& environment) {
  try {
    join_job(environment, {});
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
  }
  return {};
}

/// Names of the abstract sockets of this test program.
std::string sockets_left() {
  std::ifstream file("/proc/net/unix");
  std::string found;
  const std::string name = environment_of(0, 1).rendezvous;
  for (std::string line; std::getline(file, line);) {
    if (line.find(name) != std::string::npos) found += line + "\n";
  }
  return found;
}

std::set<std::string> names_in_shm() {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error)) {
    const std::string name = entry.path().string();
    if (name.find("unisono") != std::string::npos) names.insert(name);
  }
  return names;
}

class JobSize : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(JobSize, AllJoinExchangeAndLeaveWithoutTrace) {
  const std::uint32_t size = GetParam();
  const auto names_before = names_in_shm();
  const auto member = [size](std::uint32_t rank) {
    std::this_thread::sleep_for(milliseconds(rank == 0 ? 60 : 20 * (size - rank)));  // rank 0 is not the first
    const auto capabilities = capabilities_of(rank);
    const JoinedJob job = join_job(environment_of(rank, size), capabilities);
    require(job.poe->self() == rank && job.poe->size() == size, "rank and size");
    require(job.all_capabilities.size() == size, "an offer of everyone");
    for (std::uint32_t peer = 0; peer < size; ++peer)
      require(job.all_capabilities[peer] == capabilities_of(peer), "equal offers");
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      require(job.poe->describe(peer).find("pid ") != std::string::npos, "everyone has joined when anyone has");
    }
    require(sockets_left().empty() || rank != 0, "the rendezvous is closed: " + sockets_left());
    std::vector<std::uint32_t> sent(size), received(size);
    constexpr std::uint32_t kMessages = 50;
    until(*job.poe, [&] {
      bool done = true;
      for (std::uint32_t peer = 0; peer < size; ++peer) {
        const auto bytes = [](std::uint32_t n) { return n * 700; };
        while (sent[peer] < kMessages && try_send(*job.poe, peer, Lane::kData, sent[peer], bytes(sent[peer]))) {
          ++sent[peer];
        }
        while (received[peer] < kMessages &&
               try_receive(*job.poe, peer, Lane::kData, received[peer], bytes(received[peer]))) {
          ++received[peer];
        }
        done = done && sent[peer] == kMessages && received[peer] == kMessages;
      }
      return done;
    });
  };
  std::vector<Child> members;
  for (std::uint32_t rank = 0; rank < size; ++rank) members.emplace_back([&, rank] { member(rank); });
  for (auto& process : members) EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(names_in_shm(), names_before);
  EXPECT_EQ(sockets_left(), "");
}

INSTANTIATE_TEST_SUITE_P(Processes, JobSize, ::testing::Values(1, 2, 3, 5));

TEST(Job, OfOneNeedsNoRendezvous) {
  const auto capabilities = capabilities_of(4);
  const JoinedJob job = join_job(JobEnvironment{}, capabilities);
  ASSERT_EQ(job.all_capabilities.size(), 1U);
  EXPECT_EQ(job.all_capabilities[0], capabilities);
  ASSERT_TRUE(try_send(*job.poe, 0, Lane::kData, 3, 100));
  EXPECT_TRUE(try_receive(*job.poe, 0, Lane::kData, 3, 100));
}

TEST(Job, WrongSecretIsRefusedAndDoesNotDisturb) {
  Child host([] { join_job(environment_of(0, 2), {}); });
  for (const char* secret : {"00112233445566778899aabbccddeefe", "0", "00112233445566778899aabbccddeeff00"}) {
    JobEnvironment stranger = environment_of(1, 2);
    stranger.secret = secret;
    EXPECT_THAT(join_error(stranger), HasSubstr("the secret (UNISONO_SECRET) is not that of job"));
  }
  EXPECT_EQ(join_error(environment_of(1, 2)), "");
  EXPECT_EQ(host.wait(), 0);
}

TEST(Job, NoiseOnTheRendezvousDoesNotDisturb) {
  using namespace join;
  const JobEnvironment environment = environment_of(1, 2);
  Child host([] { join_job(environment_of(0, 2), {}); });
  const auto connect = [&] {
    for (;;) {
      Descriptor connection = try_connect(environment.rendezvous);
      if (connection.valid()) return connection;
      std::this_thread::sleep_for(milliseconds(5));
    }
  };
  const Descriptor silent = connect();
  { const Descriptor gone = connect(); }

  const auto answer_to = [&](const void* bytes, std::size_t length) {
    const Descriptor connection = connect();
    send(connection.get(), bytes, length, MSG_NOSIGNAL);
    FrameReader reader(kMaxText);
    const auto progress = reader.read_until(connection, Clock::now() + std::chrono::seconds(10));
    return progress == FrameReader::Progress::kComplete ? reader.body_text() : "no answer";
  };
  const char web[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_THAT(answer_to(web, sizeof web), HasSubstr("does not speak"));
  const FrameHead huge{kFrameMagic, kProtocol, FrameKind::kHello, 0xffffffff};
  EXPECT_THAT(answer_to(&huge, sizeof huge), HasSubstr("4294967295 bytes"));
  const FrameHead newer{kFrameMagic, kProtocol + 1, FrameKind::kHello, 0};
  EXPECT_THAT(answer_to(&newer, sizeof newer), HasSubstr("version 3"));
  const FrameHead empty{kFrameMagic, kProtocol, FrameKind::kHello, 0};
  EXPECT_THAT(answer_to(&empty, sizeof empty), HasSubstr("broken hello"));
  const FrameHead hasty{kFrameMagic, kProtocol, FrameKind::kGive, 0};
  EXPECT_THAT(answer_to(&hasty, sizeof hasty), HasSubstr("broken hello"));
  const FrameHead longer{kFrameMagic, kProtocol, FrameKind::kHello, sizeof(Hello) + kMaxText};
  EXPECT_THAT(answer_to(&longer, sizeof longer), HasSubstr("a frame of"));

  EXPECT_EQ(join_error(environment), "");
  EXPECT_EQ(host.wait(), 0);
}

TEST(Job, MissingRanksAreNamedOnEveryRank) {
  Child member([] {
    JobEnvironment environment = environment_of(1, 5);
    environment.timeout = milliseconds(600);
    const std::string text = join_error(environment);
    require(text.find("ranks 2, 3 and 4 have not come within 0.6 s") != std::string::npos, text);
  });
  JobEnvironment environment = environment_of(0, 5);
  environment.timeout = milliseconds(600);
  const auto begin = test::Clock::now();
  EXPECT_THAT(join_error(environment), HasSubstr("ranks 2, 3 and 4 have not come within 0.6 s"));
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(member.wait(), 0);
}

TEST(Job, MissingRankZeroIsNamed) {
  JobEnvironment environment = environment_of(1, 2);
  environment.timeout = milliseconds(150);
  EXPECT_THAT(join_error(environment), HasSubstr("rank 0 has not come"));
}

TEST(Job, ARankThatComesTwiceEndsItForAll) {
  const auto body = [] {
    const std::string text = join_error(environment_of(1, 3));
    require(text.find("rank 1 came twice") != std::string::npos, text);
  };
  Child one(body);
  Child other(body);
  EXPECT_THAT(join_error(environment_of(0, 3)), HasSubstr("rank 1 came twice, as process "));
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
}

TEST(Job, ASecondRankZeroIsRefused) {
  Child host([] {
    JobEnvironment environment = environment_of(0, 2);
    require(join_error(environment).empty(), "the first rank 0 goes on");
  });
  while (sockets_left().empty()) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_THAT(join_error(environment_of(0, 2)), HasSubstr("already open"));
  EXPECT_EQ(join_error(environment_of(1, 2)), "");
  EXPECT_EQ(host.wait(), 0);
}

TEST(Job, DifferentSizesAreNamedOnBothSides) {
  Child member([] {
    const std::string text = join_error(environment_of(2, 4));
    require(text.find("says that the job has 4 ranks, rank 0 says 3") != std::string::npos, text);
  });
  EXPECT_THAT(join_error(environment_of(0, 3)), HasSubstr("rank 2 (pid " + std::to_string(member.pid()) +
                                                          ") says that the job has 4 ranks, rank 0 says 3"));
  EXPECT_EQ(member.wait(), 0);
}

TEST(Job, AMemberThatDiesWhileTheJobFormsIsNamed) {
  Child member([] { join_job(environment_of(1, 3), {}); });
  Child killer([victim = member.pid()] {
    std::this_thread::sleep_for(milliseconds(400));
    kill(victim, SIGKILL);
  });
  EXPECT_THAT(join_error(environment_of(0, 3)), HasSubstr("rank 1 (pid " + std::to_string(member.pid()) + ") ended"));
  EXPECT_EQ(member.wait(), -SIGKILL);
  EXPECT_EQ(killer.wait(), 0);
}

TEST(Job, ImpossibleRequestsAreRefused) {
  EXPECT_THAT(join_error(environment_of(3, 3)), HasSubstr("rank 3 of a job of 3"));
  EXPECT_THAT(join_error(environment_of(0, 0)), HasSubstr("a job of 0 ranks"));
  JobEnvironment nameless = environment_of(0, 2);
  nameless.rendezvous.clear();
  EXPECT_THAT(join_error(nameless), HasSubstr("a rendezvous name of 0 characters"));
  JobEnvironment open = environment_of(0, 2);
  open.secret.clear();
  EXPECT_THAT(join_error(open), HasSubstr("a secret of 0 characters"));
}

TEST(Liveness, AKilledPeerIsDeadWithinASecond) {
  Child victim([] {
    const JoinedJob job = join_job(environment_of(2, 3), {});
    require(try_send(*job.poe, 0, Lane::kData, 0, 3000), "space for a message");
    require(try_send(*job.poe, 0, Lane::kControl, 0, 8), "space for a message");
    for (;;) pause();
  });
  Child bystander([] {
    const JoinedJob job = join_job(environment_of(1, 3), {});
    until(*job.poe, [&] { return try_receive(*job.poe, 0, Lane::kControl, 0, 8); });
    require(job.poe->liveness(2) == Poe::Liveness::kDead, "seen by every rank");
    require(job.poe->liveness(0) == Poe::Liveness::kAlive, "others live on");
  });
  const JoinedJob job = join_job(environment_of(0, 3), {});
  until(*job.poe, [&] { return try_receive(*job.poe, 2, Lane::kControl, 0, 8); });
  EXPECT_EQ(job.poe->liveness(2), Poe::Liveness::kAlive);
  ASSERT_EQ(kill(victim.pid(), SIGKILL), 0);
  const auto begin = test::Clock::now();
  // Not waited for: the victim is a zombie meanwhile, as it may be under a launcher.
  while (job.poe->liveness(2) != Poe::Liveness::kDead && test::Clock::now() - begin < std::chrono::seconds(5)) {
    job.poe->wait(job.poe->activity(), milliseconds(10));
  }
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(job.poe->liveness(2), Poe::Liveness::kDead);
  EXPECT_TRUE(try_receive(*job.poe, 2, Lane::kData, 0, 3000)) << "what it sent before is there";
  EXPECT_EQ(victim.wait(), -SIGKILL);
  EXPECT_EQ(job.poe->liveness(2), Poe::Liveness::kDead);
  ASSERT_TRUE(try_send(*job.poe, 1, Lane::kControl, 0, 8));
  EXPECT_EQ(bystander.wait(), 0);
}

TEST(Liveness, LeavingInGoodOrderIsNotDeath) {
  Child leaver([] {
    const JoinedJob job = join_job(environment_of(1, 2), {});
    require(try_send(*job.poe, 0, Lane::kData, 0, 5000), "space for a message");
  });
  const JoinedJob job = join_job(environment_of(0, 2), {});
  const auto left = [&] { return job.poe->liveness(1) == Poe::Liveness::kLeft; };
  until(*job.poe, left);
  EXPECT_EQ(leaver.wait(), 0);
  EXPECT_EQ(job.poe->liveness(1), Poe::Liveness::kLeft);
  EXPECT_TRUE(try_receive(*job.poe, 1, Lane::kData, 0, 5000));
}

TEST(Liveness, IsKnownWithoutFreeDescriptors) {
  Child body([] {
    Child sleeper([] {
      for (;;) pause();
    });
    const auto pid = static_cast<std::uint32_t>(sleeper.pid());
    const std::uint64_t start_time = start_time_of(pid);
    require(start_time != 0, "a start time");
    const rlimit none{0, 64};
    setrlimit(RLIMIT_NOFILE, &none);
    const ProcessWatch watch(pid, start_time);
    require(watch.running(), "it runs, although /proc cannot be read");
    const rlimit some{64, 64};
    setrlimit(RLIMIT_NOFILE, &some);
    require(watch.running(), "it runs");
    require(!ProcessWatch(pid, start_time + 1).running(), "a reused pid is another process");
    kill(sleeper.pid(), SIGKILL);
    std::this_thread::sleep_for(milliseconds(100));
    require(!watch.running(), "a zombie does not run");
    sleeper.wait();
    require(!watch.running(), "nothing of it is left");
  });
  EXPECT_EQ(body.wait(), 0);
}

TEST(Fork, AChildMayNotUseAndDoesNotHarmItsParentsEndpoint) {
  ThreadJob job(2);
  auto poe = job.endpoint(0);
  const auto peer = job.endpoint(1);
  ASSERT_TRUE(try_send(*peer, 0, Lane::kData, 0, 8));
  Child child([&] {
    const auto refused = [](const auto& use) {
      try {
        use();
      } catch (const Error& error) {
        return error.code() == ErrorCode::kWrongProcess;
      }
      return false;
    };
    Incoming incoming;
    require(refused([&] { poe->reserve(1, Lane::kData, 8); }), "reserve");
    require(refused([&] { poe->peek(1, Lane::kData, incoming); }), "peek");
    require(refused([&] { poe->release(1, Lane::kData); }), "release");
    require(refused([&] { poe->commit(1, Lane::kData, Header{}); }), "commit");
    require(refused([&] { poe->wait(0, milliseconds(1)); }), "wait");
    require(refused([&] { poe->liveness(1); }), "liveness");
    poe.reset();
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(peer->liveness(0), Poe::Liveness::kAlive);
  EXPECT_TRUE(try_receive(*poe, 1, Lane::kData, 0, 8));
  poe.reset();
  EXPECT_EQ(peer->liveness(0), Poe::Liveness::kLeft);
}

}  // namespace
}  // namespace unisono
