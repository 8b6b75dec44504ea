// Ranks in processes of their own that die, or stop, in the middle of a call.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/cpp/engine/process_jobs.hpp"
#include "tests/cpp/engine/ranks.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono::test {
namespace {

JobEnvironment environment(const char* name, std::uint32_t rank, std::uint32_t size) {
  JobEnvironment made;
  made.rank = rank;
  made.size = size;
  made.rendezvous = std::string("engine-") + name + "-" + std::to_string(getpid());
  made.secret = "5eed";
  made.timeout = seconds(20);
  return made;
}

/// Allreduces large vectors again and again, until one fails; gives that result.
CallResult allreduce_until_error(Rank& self, milliseconds timeout, const std::function<void()>& begun) {
  std::vector<float> src(2'000'000, static_cast<float>(self.rank)), dst(src.size());
  CallRequest r = request<float>(Collective::kAllreduce, src.size(), 0, Func::kSum);
  r.src = bind(src);
  r.dst = bind(dst);
  r.timeout = timeout;
  for (int round = 0; round < 10'000; ++round) {
    try {
      const CallResult result = self.engine.wait(self.engine.submit(r));
      if (result.code != ErrorCode::kOk) return result;
    } catch (const Error& error) {  // the revocation came between two calls
      return {true, error.code(), error.what(), 0};
    }
    if (round == 3) begun();
  }
  throw Error(ErrorCode::kInternal, "nothing happened to the victim");
}

class Processes : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Processes, AKilledRankIsNamedByAllOthersSoon) {
  const std::uint32_t size = GetParam();
  const std::uint32_t victim = size - 1;
  std::vector<JobEnvironment> environments;
  for (std::uint32_t rank = 0; rank < size; ++rank) environments.push_back(environment("kill", rank, size));
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    children.emplace_back([&, rank] {
      join_and_run(environments[rank], [&](Rank& self) {
        const CallResult result = allreduce_until_error(self, seconds(60), [&] {
          if (self.rank == victim) require(write(ready[1], "x", 1) == 1, "the pipe takes a byte");
        });
        const bool named = result.message.find("rank " + std::to_string(victim)) != std::string::npos &&
                           result.message.find("has died") != std::string::npos;
        const bool code = result.code == ErrorCode::kPeerDead || result.code == ErrorCode::kRevoked;
        require(code && named, "the dead rank is named: " + result.message);
      });
    });
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::this_thread::sleep_for(milliseconds(5));
  const auto begin = std::chrono::steady_clock::now();
  kill(children[victim].pid(), SIGKILL);
  for (std::uint32_t rank = 0; rank < victim; ++rank) EXPECT_EQ(children[rank].wait(seconds(20)), 0) << rank;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(3));
  EXPECT_EQ(children[victim].wait(), -SIGKILL);
  close(ready[0]);
  close(ready[1]);
}

TEST_P(Processes, AStoppedRankIsNamedWhenTimeIsUp) {
  const std::uint32_t size = GetParam();
  const std::uint32_t victim = size - 1;
  std::vector<JobEnvironment> environments;
  for (std::uint32_t rank = 0; rank < size; ++rank) environments.push_back(environment("stop", rank, size));
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    children.emplace_back([&, rank] {
      join_and_run(environments[rank], [&](Rank& self) {
        const CallResult result = allreduce_until_error(self, milliseconds(1500), [&] {
          if (self.rank == victim) require(write(ready[1], "x", 1) == 1, "the pipe takes a byte");
        });
        require(result.code == ErrorCode::kTimeout || result.code == ErrorCode::kRevoked, result.message);
        require(result.message.find("timed out") != std::string::npos, result.message);
        require(result.message.find("rank " + std::to_string(victim)) != std::string::npos, result.message);
      });
    });
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(children[victim].pid(), SIGSTOP);
  for (std::uint32_t rank = 0; rank < victim; ++rank) EXPECT_EQ(children[rank].wait(seconds(20)), 0) << rank;
  close(ready[0]);
  close(ready[1]);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Processes, testing::Values(2U, 3U));

}  // namespace
}  // namespace unisono::test
