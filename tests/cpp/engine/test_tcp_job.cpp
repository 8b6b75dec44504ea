// 64 processes, each a host of its own, over real TCP: who opens which connections, and whether all comes right.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <vector>

#include "tests/cpp/engine/process_jobs.hpp"

namespace unisono::test {
namespace {

constexpr std::uint32_t kProcesses = 64;

/// Sockets of this process.
std::uint32_t open_sockets() {
  std::uint32_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  require(folder != nullptr, "there is /proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    char target[64] = {};
    const std::string name = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(name.c_str(), target, sizeof target - 1) > 0 && std::string(target).starts_with("socket:")) ++count;
  }
  closedir(folder);
  return count;
}

TEST(TcpJob, OfSixtyFourProcessesOpensFewConnections) {
  rlimit descriptors{};
  require(getrlimit(RLIMIT_NOFILE, &descriptors) == 0, "there is a limit");
  constexpr rlim_t kNeeded = 4 * kProcesses;  // rank 0 has a connection to each while they join
  if (descriptors.rlim_cur < kNeeded) {
    GTEST_SKIP() << "a process may have " << descriptors.rlim_cur << " descriptors; this needs " << kNeeded;
  }
  std::vector<Child> children;
  JobEnvironment environment;
  environment.size = kProcesses;
  environment.rendezvous = "tcp-job-" + std::to_string(getpid());
  environment.secret = "5eed";
  environment.timeout = seconds(60);
  environment.interfaces = "127.0.0.1/8";
  environment.kernel_copy = kNoKernelCopy;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
    JobEnvironment own = environment;
    own.rank = rank;
    own.host = "host-" + std::to_string(rank);
    children.emplace_back([own, begin] {
      join_and_run(own, [&](Rank& self) {
        const std::uint32_t before = open_sockets();
        if (self.rank == 0) {
          std::fprintf(stderr, "%u processes over TCP joined in %.2f s\n", self.size,
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
        require(std::string(self.poe.way_to((self.rank + 1) % self.size)) == "tcp", "messages go over TCP");
        for (const std::uint64_t count : {1U, 600U}) {
          std::vector<std::int64_t> src(count, self.rank), dst(count);
          CallRequest sum = request<std::int64_t>(Collective::kAllreduce, count, 0, Func::kSum);
          sum.src = bind(src);
          sum.dst = bind(dst);
          self.run(sum);
          require(dst == std::vector<std::int64_t>(count, kProcesses * (kProcesses - 1) / 2), "the sum is right");
        }
        const std::uint32_t opened = open_sockets() - before;
        if (self.rank == 0) std::fprintf(stderr, "an all-reduce has opened %u connections\n", opened);
        require(opened <= 2 * std::bit_width(kProcesses - 1), "an all-reduce opens few connections");
        // Agreements go along a tree.
        const Agreed agreed = self.engine.agree(0, 1, ~(std::uint64_t{1} << self.rank), self.rank, seconds(30));
        require(agreed.value == 0 && agreed.number == kProcesses - 1, "all have agreed");
        const std::uint32_t in_all = open_sockets() - before;
        if (self.rank == 0) std::fprintf(stderr, "with an agreement %u\n", in_all);
        require(in_all <= 4 * std::bit_width(kProcesses - 1), "an agreement opens few connections");
        // Nobody leaves before all have it.
        CallRequest barrier;
        barrier.call.collective = Collective::kBarrier;
        self.run(barrier);
      });
    });
  }
  for (std::uint32_t rank = 0; rank < kProcesses; ++rank) EXPECT_EQ(children[rank].wait(seconds(100)), 0) << rank;
}

}  // namespace
}  // namespace unisono::test
