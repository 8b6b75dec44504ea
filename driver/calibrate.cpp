#include "driver/calibrate.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/cores.hpp"
#include "core/error.hpp"
#include "cost/pins.hpp"
#include "cost/predict.hpp"
#include "cost/tune.hpp"
#include "driver/objects.hpp"
#include "engine/fast_path.hpp"
#include "engine/kernels.hpp"
#include "network/shm/parking.hpp"

namespace unisono::driver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLeastNear = std::uint64_t{64} << 10U;
// Blocks are short and many, and the best counts: most of what disturbs comes in bursts.
constexpr int kBlocks = 200;
constexpr std::uint64_t kTimedBytes = std::uint64_t{1} << 30U;  ///< copied altogether to learn one rate, at most

double nanoseconds(Clock::duration duration) { return std::chrono::duration<double, std::nano>(duration).count(); }

/// Cores that the calling thread may use, by number.
std::vector<std::uint32_t> own_cores() {
  std::vector<std::uint32_t> cores;
  const CoreSet set = affinity_of(0);
  for (std::size_t word = 0; word < set.size(); ++word) {
    for (std::uint32_t bit = 0; bit < 64; ++bit) {
      if ((set[word] >> bit & 1U) != 0) cores.push_back(static_cast<std::uint32_t>(64 * word + bit));
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

void bind_to(std::uint32_t core) {
  constexpr std::size_t kMost = CPU_SETSIZE;
  if (core >= kMost) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // Refused, the thread runs where the system puts it, and the figures are a little worse.
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));
}

/// Where threads wait for each other between blocks.
class Meeting {
 public:
  explicit Meeting(std::uint32_t size) : size_(size) {}
  void wait() {
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (count_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      count_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    constexpr int kSpins = 2000;
    for (int i = 0; round_.load(std::memory_order_acquire) == round; ++i) {
      if (i > kSpins) std::this_thread::yield();
    }
  }

 private:
  std::uint32_t size_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> round_{0};
};

/// Runs `body(index)` on a thread bound to each of the cores, to the end. Throws what one of them threw.
void on_cores(const std::vector<std::uint32_t>& cores, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(cores.size());
  for (std::uint32_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        bind_to(cores[i]);
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

struct alignas(256) Flag {
  std::atomic<std::uint64_t> value{0};
};

/// Half a round trip between two threads over two lines, each written by one of them.
double half_round_trip(std::uint32_t one, std::uint32_t other, bool yields, std::uint64_t rounds) {
  Flag there;
  Flag back;
  double best = 1e18;
  on_cores({one, other}, [&](std::uint32_t index) {
    Flag& mine = index == 0 ? there : back;
    const Flag& theirs = index == 0 ? back : there;
    std::uint64_t number = 0;
    for (int block = 0; block < kBlocks; ++block) {
      const auto begin = Clock::now();
      for (std::uint64_t i = 0; i < rounds; ++i) {
        ++number;
        if (index == 0) mine.value.store(number, std::memory_order_release);
        for (std::uint32_t looks = 0; theirs.value.load(std::memory_order_acquire) < number; ++looks) {
          constexpr std::uint32_t kPatience = 1U << 14U;  // the other thread may have lost its core
          if (!yields) shm::pause_core();
          if (yields || looks % kPatience == kPatience - 1) std::this_thread::yield();
        }
        if (index == 1) mine.value.store(number, std::memory_order_release);
      }
      if (index == 0) best = std::min(best, nanoseconds(Clock::now() - begin) / static_cast<double>(rounds) / 2);
    }
  });
  return best;
}

using Memory = std::vector<std::byte>;

/// Nanoseconds a byte of `work(bytes)`, the best block of the slowest thread.
template <class Prepare, class Work>
double per_byte(const std::vector<std::uint32_t>& cores, std::uint64_t bytes, Prepare&& prepare, Work&& work) {
  Meeting meeting(static_cast<std::uint32_t>(cores.size()));
  std::vector<double> best(cores.size(), 1e18);
  constexpr std::uint64_t kWorthTiming = std::uint64_t{128} << 10U;
  const auto repeats = static_cast<int>(std::max<std::uint64_t>(1, kWorthTiming / bytes));
  on_cores(cores, [&](std::uint32_t index) {
    const int blocks =
        std::clamp(static_cast<int>(kTimedBytes / bytes / static_cast<std::uint64_t>(repeats)), 5, kBlocks);
    for (int block = 0; block < blocks; ++block) {
      double time = 0;
      for (int i = 0; i < repeats; ++i) {
        prepare(index);
        meeting.wait();
        const auto begin = Clock::now();
        work(index);
        time += nanoseconds(Clock::now() - begin);
        meeting.wait();
      }
      best[index] = std::min(best[index], time / repeats / static_cast<double>(bytes));
    }
  });
  return *std::max_element(best.begin(), best.end());
}

/// A size such as "2048K", or 0.
std::uint64_t size_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  char unit = 0;
  if (!(file >> value)) return 0;
  file >> unit;
  if (unit == 'K') return value << 10U;
  if (unit == 'M') return value << 20U;
  return value;
}

/// Bytes of a core's caches: the largest of level 2 or less, and the largest of all.
void find_caches(std::uint32_t core, cost::Machine& machine) {
  std::uint64_t near = 0;
  std::uint64_t all = 0;
  constexpr int kMostCaches = 8;
  for (int index = 0; index < kMostCaches; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index" + std::to_string(index) + "/";
    const std::uint64_t bytes = size_in(folder + "size");
    const std::uint64_t level = size_in(folder + "level");
    if (bytes == 0 || level == 0) continue;
    if (level <= 2) near = std::max(near, bytes);
    all = std::max(all, bytes);
  }
  if (near != 0) machine.near_bytes = std::max(near, kLeastNear);
  machine.shared_bytes = std::max(machine.near_bytes, all != 0 ? all : machine.shared_bytes);
}

/// Bytes of one thread's buffers, both of them, that lie at a level when `threads` have as many.
std::uint64_t working_set(cost::Level level, const cost::Machine& machine, std::uint64_t threads) {
  constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20U;
  switch (level) {
    case cost::Level::kNear:
      return machine.near_bytes / 2;
    case cost::Level::kShared:
      return std::max(machine.near_bytes, std::min(machine.near_bytes * 4, machine.shared_bytes / 2 / threads));
    case cost::Level::kMemory:
      break;
  }
  return std::max(machine.near_bytes * 2, std::min(machine.shared_bytes * 2, kMostMemory) / threads);
}

void measure_memory(const std::vector<std::uint32_t>& cores, cost::Machine& machine) {
  const std::uint64_t threads = cores.size();
  double least_copy = 0;
  double least_cross = 0;
  for (std::size_t i = 0; i < cost::kLevels; ++i) {
    const std::uint64_t bytes = working_set(static_cast<cost::Level>(i), machine, threads) / 2 / 4096 * 4096;
    std::vector<Memory> from(threads, Memory(bytes, std::byte{1}));
    std::vector<Memory> to(threads, Memory(bytes, std::byte{2}));
    const double copy = per_byte(
        cores, bytes, [](std::uint32_t) {},
        [&](std::uint32_t index) { cclo::copy_bytes(to[index].data(), from[index].data(), bytes, false); });
    machine.copy[i] = least_copy = std::max(least_copy, copy);
    double cross = machine.copy[i];
    if (threads > 1) {
      // The source is its neighbour's, who has just written it.
      cross = per_byte(
          cores, bytes,
          [&](std::uint32_t index) { std::memset(from[index].data(), static_cast<int>(index + i), bytes); },
          [&](std::uint32_t index) {
            cclo::copy_bytes(to[index].data(), from[(index + 1) % threads].data(), bytes, false);
          });
    }
    machine.cross[i] = least_cross = std::max({least_cross, cross, machine.copy[i]});
  }
  const std::uint64_t bytes = machine.near_bytes / 4 / 4096 * 4096;
  const auto combining = [&](Datatype dtype) {
    std::vector<Memory> a(threads, Memory(bytes));
    std::vector<Memory> b(threads, Memory(bytes));
    const cclo::CombineKernel kernel = cclo::combine_kernel(Func::kSum, dtype);
    const double time = per_byte(
        cores, bytes, [](std::uint32_t) {},
        [&](std::uint32_t index) {
          kernel(a[index].data(), b[index].data(), b[index].data(), bytes / bytes_of(dtype));
        });
    // Two read and one written; what is left is arithmetic.
    return std::max(0.0, time - 1.5 * machine.copy[0]);
  };
  machine.reduce = combining(Datatype::kFp32);
  machine.reduce_half = combining(Datatype::kBf16);
}

/// Nanoseconds of a blocking call on two ranks, back to back.
class TwoRanks {
 public:
  explicit TwoRanks(std::vector<std::uint32_t> cores) : cores_(std::move(cores)) {}

  double time(Collective collective, std::uint64_t elements, const char* pins) const {
    SharedJob job(2);
    EngineSettings settings;
    settings.rules = std::make_shared<const std::vector<Rule>>(cost::parse_pins(pins));
    Meeting meeting(2);
    double best = 1e18;
    on_cores(cores_, [&](std::uint32_t rank) {
      std::vector<std::vector<std::byte>> all_capabilities;
      constexpr std::chrono::seconds kPatience{30};
      std::unique_ptr<Poe> poe =
          job.join(rank, pack_capabilities(NativeEngine::capabilities_of(settings)), kPatience, all_capabilities);
      Context context(std::move(poe), settings, all_capabilities);
      const std::shared_ptr<Endpoint> endpoint = context.endpoint();
      const std::shared_ptr<cclo::FastPath> fast_path = endpoint->engine->fast_path(0);
      std::vector<float> src(elements, static_cast<float>(rank + 1));
      std::vector<float> dst(elements);
      CallRequest request;
      request.call.collective = collective;
      if (collective == Collective::kBarrier) {
        request.call.dtype = Datatype::kNone;
      } else {
        request.call.func = Func::kSum;
        request.call.dtype = Datatype::kFp32;
        request.call.count = elements;
        request.src = {reinterpret_cast<std::byte*>(src.data()), elements * sizeof(float)};
        request.dst = {reinterpret_cast<std::byte*>(dst.data()), elements * sizeof(float)};
      }
      const auto run = [&] {
        std::uint64_t received = 0;
        if (!fast_path || !fast_path->try_run(request, received)) endpoint->engine->run(request);
      };
      constexpr int kWarm = 200;
      constexpr int kRounds = 100;
      for (int i = 0; i < kWarm; ++i) run();
      for (int block = 0; block < kBlocks; ++block) {
        const auto begin = Clock::now();
        for (int i = 0; i < kRounds; ++i) run();
        if (rank == 0) best = std::min(best, nanoseconds(Clock::now() - begin) / kRounds);
      }
      for (const float value : dst) {
        if (value != 3.0F) throw Error(ErrorCode::kInternal, "calibrate: a sum came out wrong");
      }
    });
    return best;
  }

 private:
  std::vector<std::uint32_t> cores_;
};

/// The parameters of calls: those that bring the model's predictions to what calls take.
void measure_calls(const std::vector<std::uint32_t>& cores, cost::Machine& machine) {
  constexpr double kMostIssue = 2'000;
  constexpr double kMostSegment = 20'000;
  constexpr double kMostSync = 50'000;
  const TwoRanks ranks(cores);
  const auto predicted = [&](std::uint64_t elements, const char* name) {
    Call call;
    call.collective = Collective::kAllreduce;
    call.func = Func::kSum;
    call.dtype = Datatype::kFp32;
    call.size = 2;
    call.count = elements;
    const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(call.collective, name))];
    call.direct = algorithm.direct;
    return cost::predict(call, algorithm, cost::for_ranks(machine, 2, false)).time.total;
  };
  // An exchange of two empty lines is two moves, one after the other, and a line between them.
  machine.issue = std::clamp((ranks.time(Collective::kBarrier, 0, "") - machine.line) / 2, 1.0, kMostIssue);
  constexpr std::uint64_t kElements = 256;
  machine.segment = 0;
  const double through_cells = ranks.time(Collective::kAllreduce, kElements, "allreduce=recursive_doubling");
  machine.segment = std::clamp((through_cells - predicted(kElements, "recursive_doubling")) / 2, 0.0, kMostSegment);
  machine.sync = 0;
  const double direct = ranks.time(Collective::kAllreduce, kElements, "allreduce=direct_replicated");
  machine.sync = std::clamp(direct - predicted(kElements, "direct_replicated"), 0.0, kMostSync);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// Three digits say all that such a measurement knows, and files stay readable.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::stod(text);
}

void round_all(cost::Machine& machine) {
  for (double* value : {&machine.line, &machine.issue, &machine.segment, &machine.sync, &machine.yield, &machine.reduce,
                        &machine.reduce_half}) {
    *value = rounded(*value);
  }
  for (double& value : machine.copy) value = rounded(value);
  for (double& value : machine.cross) value = rounded(value);
}

}  // namespace

std::uint32_t cores_for_ranks() {
  const auto cores = static_cast<double>(own_cores().size());
  return static_cast<std::uint32_t>(std::max(1.0, std::min(cores, cgroup_quota().cores)));
}

cost::TuningFile calibrate(std::uint32_t most_ranks) {
  constexpr std::uint32_t kMostRanks = 64;
  if (most_ranks < 2 || most_ranks > kMostRanks) {
    throw Error(ErrorCode::kInvalidArgument, "calibrate: " + std::to_string(most_ranks) +
                                                 " ranks were given; allowed are 2 to " + std::to_string(kMostRanks));
  }
  cost::TuningFile file;
  file.processor = processor_name();
  cost::Machine& machine = file.machine;
  std::vector<std::uint32_t> cores = own_cores();
  machine.cores = cores_for_ranks();
  cores.resize(std::min<std::size_t>({cores.size(), machine.cores, most_ranks}));
  find_caches(cores.front(), machine);

  constexpr std::uint64_t kRounds = 200;
  constexpr std::uint64_t kTurns = 50;
  machine.yield = half_round_trip(cores.front(), cores.front(), true, kTurns);
  if (cores.size() > 1) machine.line = half_round_trip(cores[0], cores[1], false, kRounds);
  measure_memory(cores, machine);
  // With one core, ranks only ever take turns; what a call costs beside them keeps its usual value.
  if (cores.size() > 1) measure_calls({cores[0], cores[1]}, machine);
  round_all(machine);
  file.rules = cost::tune(machine, most_ranks);
  return file;
}

}  // namespace unisono::driver
