// How many ranks can run at once: affinity and cgroup quotas, the latter from files made for the test.
#include "core/cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "network/shm/parking.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono::shm {
namespace {

using test::Child;
using test::require;

/// A folder that stands for "/".
class FakeRoot {
 public:
  FakeRoot() : path_(std::filesystem::temp_directory_path() / ("unisono-cores-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  FakeRoot& with(const std::string& file, const std::string& text) {
    const std::filesystem::path full = path_.string() + file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
    return *this;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

const char kV2Mount[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
const char kV1Mounts[] =
    "23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "34 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:30 / /sys/fs/cgroup/cpuset rw,nosuid shared:9 - cgroup cgroup rw,cpuset\n";

TEST(Quota, V2OfTheGroupItself) {
  FakeRoot root;
  root.with("/proc/self/mountinfo", kV2Mount)
      .with("/proc/self/cgroup", "0::/system.slice/job.service\n")
      .with("/sys/fs/cgroup/system.slice/job.service/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 1.5);
  root.with("/sys/fs/cgroup/system.slice/job.service/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores));
  root.with("/sys/fs/cgroup/system.slice/job.service/cpu.max", "25000 50000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 0.5);
}

TEST(Quota, V2OfAnAncestor) {
  FakeRoot root;
  root.with("/proc/self/mountinfo", kV2Mount)
      .with("/proc/self/cgroup", "0::/pod/container/leaf\n")
      .with("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n")
      .with("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n")
      .with("/sys/fs/cgroup/pod/container/leaf/cpu.max", "800000 100000\n");
  EXPECT_EQ(cgroup_quota(root.path()).file, "/sys/fs/cgroup/pod/cpu.max");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 3.0);
}

TEST(Quota, V2InANamespaceWhereTheRootIsOurs) {
  FakeRoot root;
  root.with("/proc/self/mountinfo", kV2Mount)
      .with("/proc/self/cgroup", "0::/\n")
      .with("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 2.0);
}

TEST(Quota, V1IsFoundWhereItIsMounted) {
  FakeRoot root;
  root.with("/proc/self/mountinfo", kV1Mounts)
      .with("/proc/self/cgroup", "11:cpuset:/elsewhere\n4:cpu,cpuacct:/user/job\n1:name=systemd:/user\n")
      .with("/sys/fs/cgroup/cpu,cpuacct/user/job/cpu.cfs_quota_us", "250000\n")
      .with("/sys/fs/cgroup/cpu,cpuacct/user/job/cpu.cfs_period_us", "100000\n")
      .with("/sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_quota_us", "1000\n")
      .with("/sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 2.5);
  root.with("/sys/fs/cgroup/cpu,cpuacct/user/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores));
  root.with("/sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_quota_us", "100000\n")
      .with("/sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_period_us", "50000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 2.0);
}

TEST(Quota, V1OfAContainerThatIsToldItsFullPath) {
  // As container engines do without a cgroup namespace: the group is mounted as if it were the whole hierarchy.
  FakeRoot root;
  root.with("/proc/self/mountinfo",
            "34 31 0:29 /docker/4711 /sys/fs/cgroup/cpu\\040time ro,nosuid master:7 - cgroup cgroup rw,cpu,cpuacct\n")
      .with("/proc/self/cgroup", "4:cpu,cpuacct:/docker/4711\n")
      .with("/sys/fs/cgroup/cpu time/cpu.cfs_quota_us", "50000\n")
      .with("/sys/fs/cgroup/cpu time/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 0.5);
  root.with("/proc/self/cgroup", "4:cpu,cpuacct:/docker/4711/inner\n")
      .with("/sys/fs/cgroup/cpu time/inner/cpu.cfs_quota_us", "20000\n")
      .with("/sys/fs/cgroup/cpu time/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 0.2);
}

TEST(Quota, OfBothHierarchiesTheLeast) {
  FakeRoot root;
  root.with(
          "/proc/self/mountinfo",
          std::string(kV1Mounts) + "36 31 0:31 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw,nsdelegate\n")
      .with("/proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/b\n")
      .with("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n")
      .with("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")
      .with("/sys/fs/cgroup/unified/b/cpu.max", "700000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_quota(root.path()).cores, 4.0);
}

TEST(Quota, NothingReadableIsNoQuota) {
  FakeRoot root;
  EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores));
  root.with("/proc/self/mountinfo", kV2Mount).with("/proc/self/cgroup", "nonsense\n0:\n\n0::/../..\n");
  EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores));
  root.with("/sys/fs/cgroup/cpu.max", "many few\n");
  EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores));
  for (const char* text : {"", "-5 100000", "0 100000", "1x 100000"}) {
    root.with("/sys/fs/cgroup/cpu.max", text);
    EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores)) << text;
  }
  EXPECT_EQ(cgroup_quota(root.path()).file, "");
  root.with("/sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_TRUE(std::isinf(cgroup_quota(root.path()).cores));
}

CoreSet cores(std::initializer_list<unsigned> members) {
  CoreSet set;
  for (const unsigned core : members) {
    if (set.size() <= core / 64) set.resize(core / 64 + 1);
    set[core / 64] |= std::uint64_t{1} << core % 64;
  }
  return set;
}

std::uint32_t distinct(std::vector<CoreSet> sets) { return distinct_cores(sets); }

TEST(Affinity, EveryoneNeedsACoreOfTheirOwn) {
  EXPECT_EQ(distinct({cores({0, 1}), cores({0, 1})}), 2U);
  EXPECT_EQ(distinct({cores({0}), cores({0})}), 1U);
  EXPECT_EQ(distinct({cores({0, 1}), cores({0, 1}), cores({0, 1})}), 2U);
  EXPECT_EQ(distinct({cores({5, 700}), cores({5}), cores({700, 701})}), 3U);
  EXPECT_EQ(distinct({}), 0U);
  EXPECT_EQ(distinct({cores({}), cores({1})}), 1U);
  // Two bound to one core are crowded, however many cores the others have.
  EXPECT_EQ(distinct({cores({0}), cores({0}), cores({1, 2, 3, 4}), cores({1, 2, 3, 4})}), 3U);
  // The first come must move, over several seats, for the last to fit.
  EXPECT_EQ(distinct({cores({0, 1}), cores({1, 2}), cores({2, 3}), cores({0}), cores({1})}), 4U);
  EXPECT_EQ(distinct({cores({0, 1}), cores({0, 2}), cores({0, 3}), cores({0})}), 4U);
}

TEST(Affinity, ManyRanksOnManyCores) {
  CoreSet all(16, ~std::uint64_t{0});
  EXPECT_EQ(distinct(std::vector<CoreSet>(1024, all)), 1024U);
  all.pop_back();
  EXPECT_EQ(distinct(std::vector<CoreSet>(1024, all)), 960U);
}

void bind_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  require(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

int first_core() {
  const CoreSet own = affinity_of(0);
  const auto word = std::find_if(own.begin(), own.end(), [](std::uint64_t bits) { return bits != 0; });
  return static_cast<int>(word - own.begin()) * 64 + std::countr_zero(*word);
}

TEST(Affinity, IsThatOfEveryThread) {
  Child child([] {
    const FakeRoot unlimited;
    const int core = first_core();
    std::size_t mine = 0;
    for (const std::uint64_t word : affinity_of(0)) mine += static_cast<std::size_t>(std::popcount(word));
    const std::array<std::uint32_t, 2> two{0, 0};
    require(seats(two, unlimited.path()) == std::min<std::size_t>(2, mine), "two of us");

    // Another thread of this process, bound to a core: asked by its own number, not by the process's.
    std::atomic<std::uint32_t> other{0};
    std::atomic<bool> stop{false};
    std::thread bound([&] {
      bind_to(core);
      other = static_cast<std::uint32_t>(gettid());
      while (!stop) std::this_thread::yield();
    });
    while (other == 0) std::this_thread::yield();
    require(affinity_of(other) == cores({static_cast<unsigned>(core)}), "the thread's own affinity");
    const std::array<std::uint32_t, 2> both_bound{other, other};
    require(seats(both_bound, unlimited.path()) == 1, "two bound to one core");
    stop = true;
    bound.join();
    // The kernel forgets a thread a moment after it can be joined.
    for (int i = 0; i < 5000 && !affinity_of(other).empty(); ++i) usleep(1000);
    require(affinity_of(other).empty(), "an ended thread cannot be asked");
    const std::array<std::uint32_t, 1> ended{other};
    require(seats(ended, unlimited.path()) == 1, "and counts as being here");

    bind_to(core);
    require(seats(two, unlimited.path()) == 1, "both bound");
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Affinity, AQuotaLimitsTheSeats) {
  FakeRoot root;
  root.with("/proc/self/mountinfo", kV2Mount).with("/proc/self/cgroup", "0::/\n");
  const std::array<std::uint32_t, 2> two{0, 0};
  for (const auto& [quota, most] :
       {std::pair("50000 100000", 1U), {"100000 100000", 1U}, {"199999 100000", 1U}, {"900000 100000", 2U}}) {
    root.with("/sys/fs/cgroup/cpu.max", quota);
    EXPECT_LE(seats(two, root.path()), most) << quota;
    EXPECT_GE(seats(two, root.path()), 1U) << quota;
  }
}

TEST(Affinity, DecidesHowAnEndpointWaits) {
  Child child([] {
    const auto segment = Segment::create({.endpoints = 2});
    Parking one(*segment, 0);
    Parking other(*segment, 1);
    bind_to(first_core());
    one.join();
    other.join();
    for (std::uint32_t i = 0; i < 2; ++i) segment->endpoint(i).state.store(EndpointState::kJoined);
    require(one.oversubscribed() && other.oversubscribed(), "two endpoints on one core");

    const auto alone = Segment::create({.endpoints = 1});
    Parking single(*alone, 0);
    single.join();
    alone->endpoint(0).state.store(EndpointState::kJoined);
    require(!single.oversubscribed(), "one endpoint on one core");
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace unisono::shm
