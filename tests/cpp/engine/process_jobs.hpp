// Jobs of processes, each with an engine of its own, and buffers for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/fast_path.hpp"
#include "network/shm/shm_poe.hpp"
#include "tests/cpp/engine/ranks.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono::test {

/// Joins and has the body run on the engine of this rank, with communicator 0 of all.
inline void join_and_run(const JobEnvironment& environment, const std::function<void(Rank&)>& body) {
  JoinedJob job = join_job(environment, {});
  NativeEngine engine(*job.poe, quick_settings());
  const Agreement capabilities = engine.capabilities();
  std::vector<std::uint32_t> endpoints(environment.size);
  std::iota(endpoints.begin(), endpoints.end(), 0U);
  engine.create_communicator(0, 0, endpoints, agree({&capabilities, 1}));
  Rank self{environment.rank, environment.size, engine, *job.poe, capabilities};
  body(self);
}

/// For `start`: the kernel copies nothing, as by UNISONO_KERNEL_COPY=off; or only where a window must be reached, as
/// where cells are faster at all lengths.
inline constexpr std::uint64_t kNoKernelCopy = 0;
inline constexpr std::uint64_t kCellsWin = shm::kNeverCopied;

/// Starts the ranks of a job, each a process, with what UNISONO_KERNEL_COPY says on it: from so many bytes on the
/// kernel copies between ordinary buffers, as rank 0 has it.
inline std::vector<Child> start(const std::vector<std::uint64_t>& copy_from, const std::function<void(Rank&)>& body) {
  static int jobs = 0;
  JobEnvironment environment;
  environment.size = static_cast<std::uint32_t>(copy_from.size());
  environment.rendezvous = "job-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
  environment.secret = "5eed";
  environment.timeout = seconds(20);
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < environment.size; ++rank) {
    environment.rank = rank;
    environment.kernel_copy = copy_from[rank];
    children.emplace_back([&] { join_and_run(environment, body); });
  }
  return children;
}

/// The same, all ranks alike.
inline std::vector<Child> start(std::uint32_t size, std::uint64_t copy_from, const std::function<void(Rank&)>& body) {
  return start(std::vector<std::uint64_t>(size, copy_from), body);
}

/// Buffers of a rank, allocated so that peers reach them, or ordinary.
struct Memory {
  Memory(const Rank& self, bool allocated, std::uint64_t count) {
    plain.resize(2 * count);
    src = plain.data();
    if (allocated) {
      arena = self.poe.shared_memory()->arena();
      src = reinterpret_cast<std::int32_t*>(arena->allocate(8 * count));
      require(src != nullptr, "the arena has room");
    }
    dst = src + count;
    for (std::uint64_t i = 0; i < count; ++i) src[i] = static_cast<std::int32_t>(i * 3 + self.rank * 1000);
  }
  ~Memory() {
    if (arena) arena->deallocate(src);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  CallRequest sum(std::uint64_t count, const char* algorithm = nullptr) const {
    CallRequest r = request<std::int32_t>(Collective::kAllreduce, count, 0, Func::kSum);
    r.src = {reinterpret_cast<std::byte*>(src), 4 * count};
    r.dst = {reinterpret_cast<std::byte*>(dst), 4 * count};
    if (algorithm != nullptr) r.algorithm = find_algorithm(Collective::kAllreduce, algorithm);
    return r;
  }
  void check(std::uint32_t size, std::uint64_t count) const {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto want = static_cast<std::int32_t>(i * 3 * size + 1000 * (size * (size - 1) / 2));
      if (dst[i] == want) continue;
      require(false,
              "element " + std::to_string(i) + " is " + std::to_string(dst[i]) + ", not " + std::to_string(want));
    }
  }

  std::vector<std::int32_t> plain;
  std::shared_ptr<shm::Arena> arena;
  std::int32_t* src = nullptr;
  std::int32_t* dst = nullptr;
};

}  // namespace unisono::test
