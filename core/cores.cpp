#include "core/cores.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "core/process.hpp"

namespace unisono {
namespace {

/// A hierarchy of cgroups that can limit time, as mounted here.
struct Mount {
  bool v2;
  std::string group;   ///< which group of the hierarchy is seen at `folder`
  std::string folder;  ///< where
};

/// /proc writes blanks in names as \040.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool lists(const std::string& names, const char* wanted) {
  std::istringstream each(names);
  for (std::string name; std::getline(each, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

std::vector<Mount> cgroup_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  // "id parent device group folder options [optional fields] - type source options".
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, group, folder, type, source, options;
    words >> skipped >> skipped >> skipped >> group >> folder;
    while (words >> skipped && skipped != "-") continue;
    words >> type >> source >> options;
    const bool v2 = type == "cgroup2";
    if (words && (v2 || (type == "cgroup" && lists(options, "cpu")))) {
      mounts.push_back({v2, unescaped(group), unescaped(folder)});
    }
  }
  return mounts;
}

/// The quota of one folder of the v2 hierarchy: "max 100000" or "150000 100000".
Quota quota_v2(const std::string& folder) {
  const std::string name = folder + "/cpu.max";
  std::ifstream file(name);
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return {};
  char* end = nullptr;
  const double time = std::strtod(quota.c_str(), &end);
  return *end == '\0' && time > 0 ? Quota{time / period, name} : Quota{};
}

/// The same for the v1 hierarchy, where -1 means no quota.
Quota quota_v1(const std::string& folder) {
  const std::string name = folder + "/cpu.cfs_quota_us";
  double time = 0;
  double period = 0;
  if (!(std::ifstream(name) >> time) || time <= 0) return {};
  if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period) || period <= 0) return {};
  return {time / period, name};
}

const Quota& lesser(const Quota& one, const Quota& other) { return other.cores < one.cores ? other : one; }

/// Least quota from a group up to the mount's own: every ancestor limits.
Quota least_quota(const std::string& root, const Mount& mount, std::string path) {
  const auto quota = mount.v2 ? quota_v2 : quota_v1;
  const std::string folder = root + (mount.folder == "/" ? "" : mount.folder);
  Quota least = quota(folder);
  // A container may see only its own group, mounted as if it were the whole, and yet be told its full path.
  if (mount.group != "/") {
    const bool inside = path == mount.group || path.starts_with(mount.group + "/");
    path = inside ? path.substr(mount.group.size()) : "";
  }
  while (!path.empty() && path != "/") {
    least = lesser(least, quota(folder + path));
    const auto slash = path.find_last_of('/');
    path.erase(slash == std::string::npos ? 0 : slash);
  }
  return least;
}

/// Path of this process's group in the v2 hierarchy, or in that of the v1 controller "cpu".
std::optional<std::string> group_of_self(const std::string& root, bool v2) {
  std::ifstream groups(root + "/proc/self/cgroup");
  // "hierarchy:controllers:path"; v2 has hierarchy 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : lists(controllers, "cpu")) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Gives each of a list of sets one of its cores, all different.
class Seating {
 public:
  explicit Seating(std::span<const CoreSet> sets) : sets_(sets) {
    std::size_t words = 0;
    for (const CoreSet& set : sets) words = std::max(words, set.size());
    seated_.assign(words * 64, kNobody);
  }

  std::uint32_t count() {
    std::uint32_t seated = 0;
    for (std::uint32_t who = 0; who < sets_.size(); ++who) {
      asked_.assign(seated_.size(), false);
      seated += seat(who);
    }
    return seated;
  }

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  template <class Visit>
  bool any_core(std::uint32_t who, Visit visit) const {
    for (std::size_t word = 0; word < sets_[who].size(); ++word) {
      for (std::uint64_t bits = sets_[who][word]; bits != 0; bits &= bits - 1) {
        if (visit(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)))) return true;
      }
    }
    return false;
  }

  /// A free core, or one whose holder can move to another.
  bool seat(std::uint32_t who) {
    const auto take = [&](std::size_t core) {
      seated_[core] = who;
      return true;
    };
    if (any_core(who, [&](std::size_t core) { return seated_[core] == kNobody && take(core); })) return true;
    return any_core(who, [&](std::size_t core) {
      if (asked_[core]) return false;
      asked_[core] = true;
      return seat(seated_[core]) && take(core);
    });
  }

  std::span<const CoreSet> sets_;
  std::vector<std::uint32_t> seated_;  ///< by core
  std::vector<bool> asked_;            ///< cores whose holder was asked to move for the present newcomer
};

}  // namespace

CoreSet affinity_of(std::uint32_t thread) {
  // The kernel refuses buffers for fewer cores than it was made for.
  for (std::size_t words = 16; words <= 1024; words *= 2) {
    CoreSet set(words, 0);
    const long bytes = syscall(SYS_sched_getaffinity, static_cast<pid_t>(thread), words * 8, set.data());
    if (bytes >= 0) {
      while (!set.empty() && set.back() == 0) set.pop_back();
      return set;
    }
    if (errno != EINVAL) break;
  }
  return {};
}

std::uint32_t distinct_cores(std::span<const CoreSet> sets) { return Seating(sets).count(); }

namespace {

Quota read_cgroup_quota(const std::string& root) {
  Quota least;
  for (const Mount& mount : cgroup_mounts(root)) {
    if (const auto group = group_of_self(root, mount.v2)) least = lesser(least, least_quota(root, mount, *group));
  }
  least.file.erase(0, least.file.empty() ? 0 : root.size());
  return least;
}

}  // namespace

Quota cgroup_quota(const std::string& root) {
  if (!root.empty()) return read_cgroup_quota(root);
  // It takes a dozen files. A process that makes hundreds of contexts at once reads them once.
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kKept{1};
  static std::mutex mutex;
  static std::optional<Quota> known;
  static Clock::time_point read_at;
  static std::uint32_t generation = 0;
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return read_cgroup_quota(root);  // also where the process forked while another thread read
  const Clock::time_point now = Clock::now();
  if (!known || now - read_at > kKept || generation != fork_generation()) {
    known = read_cgroup_quota(root);
    read_at = now;
    generation = fork_generation();
  }
  return *known;
}

std::uint32_t seats(std::span<const std::uint32_t> threads, const std::string& root) {
  const CoreSet own = affinity_of(0);
  std::vector<CoreSet> sets;
  sets.reserve(threads.size());
  for (const std::uint32_t thread : threads) {
    CoreSet set = thread == 0 ? own : affinity_of(thread);
    if (set.empty()) set = own;
    sets.push_back(std::move(set));
  }
  const double cores = std::min(static_cast<double>(distinct_cores(sets)), cgroup_quota(root).cores);
  return cores < 1 ? 1 : static_cast<std::uint32_t>(cores);
}

}  // namespace unisono
