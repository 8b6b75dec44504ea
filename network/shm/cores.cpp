#include "network/shm/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace unisono::shm {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

/// Cores granted by one folder of the v2 hierarchy: "max 100000" or "150000 100000".
double quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return kNoQuota;
  return std::strtod(quota.c_str(), nullptr) / period;
}

/// The same for the v1 hierarchy, where -1 means no quota.
double quota_v1(const std::string& folder) {
  double quota = 0;
  double period = 0;
  if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> quota) || quota <= 0) return kNoQuota;
  if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period) || period <= 0) return kNoQuota;
  return quota / period;
}

/// Least quota from a group up to the root: every ancestor limits.
template <typename Quota>
double least_quota(const std::string& root, std::string path, Quota quota) {
  double least = quota(root);
  while (!path.empty() && path != "/") {
    least = std::min(least, quota(root + path));
    path.erase(path.find_last_of('/'));
  }
  return least;
}

double cgroup_quota() {
  double least = kNoQuota;
  std::ifstream groups("/proc/self/cgroup");
  // Lines read "hierarchy:controllers:path"; v2 has hierarchy 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_quota("/sys/fs/cgroup", path, quota_v2));
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == "cpu") least = std::min(least, least_quota("/sys/fs/cgroup/" + controllers, path, quota_v1));
    }
  }
  return least;
}

}  // namespace

std::uint32_t usable_cores(std::span<const std::uint32_t> processes) {
  cpu_set_t together;
  CPU_ZERO(&together);
  const auto add = [&together](pid_t process) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(process, sizeof mask, &mask) == 0) CPU_OR(&together, &together, &mask);
  };
  add(0);
  for (const std::uint32_t process : processes) {
    if (process != 0) add(static_cast<pid_t>(process));
  }
  const double cores = std::min(static_cast<double>(CPU_COUNT(&together)), cgroup_quota());
  return cores < 1 ? 1 : static_cast<std::uint32_t>(cores);
}

}  // namespace unisono::shm
