#include "engine/copy_probe.hpp"

#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX, not C
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "core/error.hpp"
#include "core/footprint.hpp"
#include "engine/live.hpp"
#include "engine/lower.hpp"
#include "network/shm/arena.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/parking.hpp"
#include "network/shm/segment.hpp"

namespace unisono::cclo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kRanks = 2;
constexpr std::array<std::uint64_t, 4> kLengths = {16384, 65536, 262144, 1048576};
constexpr std::array<Collective, 3> kCollectives = {Collective::kBcast, Collective::kAllgather, Collective::kAllreduce};
constexpr std::uint64_t kMost = kLengths.back();
constexpr std::chrono::microseconds kPerCase{2500};
constexpr std::chrono::milliseconds kMoves{10};
constexpr std::chrono::milliseconds kMostTime{80};
constexpr std::chrono::milliseconds kMostLineTime{8};
constexpr int kTogether = 4;    ///< calls
constexpr double kNever = 1e9;  ///< microseconds
constexpr double kApart = 50;   ///< likewise: less than a call of two processes that share a core

/// What the two processes share beside their lanes. Their buffers stand here, at equal addresses in both, and are
/// ordinary to the lanes. They are two processes: a second thread would, for all its life, cost this process what the C
/// library spares those of one thread.
struct Meeting {
  struct Order {
    std::uint32_t trial = 0;  ///< position in `trials`
    bool by_kernel = false;
  };
  Order order;
  alignas(2 * shm::kLineBytes) std::atomic<std::uint64_t> asked;
  alignas(2 * shm::kLineBytes) std::atomic<std::uint64_t> answered;
  alignas(4096) std::array<std::array<std::byte, kMost>, kRanks> src;
  alignas(4096) std::array<std::array<std::byte, kRanks * kMost>, kRanks> dst;
};

/// Repeats `turn` until it says that it is done; false if the time is up: the other process is stopped or dead, or
/// others need the cores.
template <class Turn>
bool until(Turn&& turn, Clock::time_point deadline) {
  constexpr int kPolls = 20'000;  // a millisecond, or less
  constexpr int kLook = 256;
  for (int round = 0; !turn(); ++round) {
    if (round % kLook == kLook - 1 && Clock::now() >= deadline) return false;
    if (round < kPolls) {
      shm::pause_core();
    } else {
      sched_yield();
    }
  }
  return true;
}

/// One rank's ends of the lanes, and what it runs. Made before there is a second process: that one allocates nothing.
class Side {
 public:
  Side(const std::shared_ptr<shm::Segment>& segment, Meeting& meeting, std::uint32_t rank)
      : meeting_(meeting),
        rank_(rank),
        lanes_(segment, std::make_shared<shm::Arena>(segment, rank), rank, 0, std::uint16_t{0}, kEndpoints),
        copy_(segment, rank, false) {
    for (const std::uint64_t bytes : kLengths) {
      for (const Collective collective : kCollectives) {
        Call call;
        call.collective = collective;
        call.func = collective == Collective::kAllreduce ? Func::kSum : Func::kNone;
        call.dtype = Datatype::kFp32;
        call.rank = rank;
        call.size = kRanks;
        call.count = bytes / sizeof(float);
        programs_[0].push_back(lowered(call));
        call.direct = true;
        programs_[1].push_back(lowered(call));
      }
    }
    for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
      FarRegion& src = peers_[peer].src;
      FarRegion& dst = peers_[peer].dst;
      if (peer == rank_) {
        src.mapped = meeting_.src[peer].data();
        dst.mapped = meeting_.dst[peer].data();
      } else {
        src.address = reinterpret_cast<std::uintptr_t>(meeting_.src[peer].data());
        dst.address = reinterpret_cast<std::uintptr_t>(meeting_.dst[peer].data());
      }
    }
    scratch_.resize(std::size_t{2} * kMost);
  }

  bool open() {
    if (!lanes_.open()) return false;
    live_.open(lanes_, shm::LaneSpace::kCollective, rank_, kRanks, &copy_, kEndpoints);
    live_.values.prepare_copies();
    // The kernel asks the same of a process that copies from itself.
    copy_.take_for_peers(static_cast<std::uint32_t>(getpid()));
    return true;
  }
  /// In the second process.
  void moved() { copy_.name_peers(static_cast<std::uint32_t>(getpid())); }

  bool run(const Meeting::Order& order, Clock::time_point deadline) {
    const LoweredProgram& program = programs_[order.by_kernel ? 1 : 0][order.trial];
    live_.values.regions = {meeting_.src[rank_].data(), meeting_.dst[rank_].data(), scratch_.data(), nullptr, nullptr};
    live_.values.peers = peers_.data();
    live_.values.copies = order.by_kernel;
    flight_.start_windowed(program, kRanks);
    return until(
        [&] {
          while (!flight_.ended_windowed() && live_.executor->windowed(flight_)) continue;
          return flight_.ended_windowed();
        },
        deadline);
  }

  static constexpr std::array<std::uint32_t, kRanks> kEndpoints = {0, 1};

 private:
  static LoweredProgram lowered(const Call& call) {
    const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(choose_algorithm(call))];
    auto result = lower(record(algorithm, call), kRanks);
    if (!result) throw Error(ErrorCode::kInternal, "a collective that lanes carry cannot be lowered");
    return std::move(*result);
  }

  Meeting& meeting_;
  std::uint32_t rank_;
  shm::LaneSet lanes_;
  shm::KernelCopy copy_;
  LiveRank live_;
  Flight flight_;
  std::array<std::vector<LoweredProgram>, 2> programs_;  ///< over lanes, and direct
  std::array<ReachableRegions, kRanks> peers_;
  std::vector<std::byte> scratch_;
};

/// The child, to its end. It calls nothing but what a child of a process with threads may.
void follow(Meeting& meeting, Side& side, Clock::time_point deadline) {
  for (std::uint64_t number = 1;; ++number) {
    if (!until([&] { return meeting.asked.load(std::memory_order_acquire) >= number; }, deadline)) return;
    const Meeting::Order order = meeting.order;
    if (!side.run(order, deadline)) return;
    meeting.answered.store(number, std::memory_order_release);
  }
}

/// This process's part.
class Lead {
 public:
  Lead(Meeting& meeting, Side& side, Clock::time_point deadline)
      : meeting_(meeting), side_(side), deadline_(deadline) {}

  std::optional<std::vector<CopyTimes>> time_all() {
    std::vector<CopyTimes> times;
    // The system has begun the child on this core, and moves it to another one when it sees that both are at work.
    const auto moved = Clock::now() + kMoves;
    for (double time = kNever; time > kApart && Clock::now() < moved;) {
      time = call(0, false);
      if (time < 0) return std::nullopt;
    }
    for (const std::uint64_t bytes : kLengths) {
      for (const Collective collective : kCollectives) {
        const auto trial = static_cast<std::uint32_t>(times.size());
        const auto found = time_one({collective, bytes, kNever, kNever}, trial);
        if (!found) return std::nullopt;
        times.push_back(*found);
      }
    }
    return times;
  }

 private:
  /// Both ways in turn, and the best of each counts: what disturbs comes in bursts. A few calls of a way go together,
  /// for each leaves the buffers' lines with other cores, and the first call pays for that.
  std::optional<CopyTimes> time_one(CopyTimes best, std::uint32_t trial) {
    const auto end = Clock::now() + kPerCase;
    for (int round = 0; round < 2 || Clock::now() < end; ++round) {
      for (int i = 0; i < 2 * kTogether; ++i) {
        const bool by_kernel = i < kTogether;
        const double time = call(trial, by_kernel);
        if (time < 0) return std::nullopt;
        double& least = by_kernel ? best.kernel_us : best.cells_us;
        least = std::min(least, time);
      }
    }
    return best;
  }

  /// Microseconds of one call of both; negative if the time is up.
  double call(std::uint32_t trial, bool by_kernel) {
    const std::uint64_t number = meeting_.asked.load(std::memory_order_relaxed) + 1;
    const auto begin = Clock::now();
    meeting_.order = {trial, by_kernel};
    meeting_.asked.store(number, std::memory_order_release);
    if (!side_.run(meeting_.order, deadline_)) return -1;
    if (!until([&] { return meeting_.answered.load(std::memory_order_acquire) >= number; }, deadline_)) return -1;
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }

  Meeting& meeting_;
  Side& side_;
  Clock::time_point deadline_;
};

/// A thing that both processes see, while this lives.
template <class Thing>
class Shared {
 public:
  Shared() : place_(mmap(nullptr, sizeof(Thing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (place_ != MAP_FAILED) thing_ = new (place_) Thing;
  }
  ~Shared() {
    if (place_ != MAP_FAILED) munmap(place_, sizeof(Thing));
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Thing* get() { return thing_; }

 private:
  void* place_;
  Thing* thing_ = nullptr;
};

/// Where a launcher has bound this process to one core, its child goes to any other, as the other ranks are.
void leave_bound_core() {
  cpu_set_t own;
  if (sched_getaffinity(0, sizeof own, &own) != 0 || CPU_COUNT(&own) != 1) return;
  cpu_set_t others;
  CPU_ZERO(&others);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &own)) CPU_SET(core, &others);
  }
  // Refused, both share the core; then a line takes too long to come, and nothing is measured.
  static_cast<void>(sched_setaffinity(0, sizeof others, &others));
}

/// A second process, as by fork, but nobody's handlers run, and its end sends no signal. It ends after `body`, with
/// this object, or with this process.
class Second {
 public:
  template <class Body>
  explicit Second(const Body& body) {
    const auto parent = getpid();
    pid_ = syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_bound_core();
    if (getppid() == parent) body();
    for (;;) syscall(SYS_exit_group, 0);
  }
  ~Second() {
    if (!there()) return;
    syscall(SYS_kill, pid_, SIGKILL);  // it may have been stopped, and then would never end by itself
    while (waitpid(static_cast<pid_t>(pid_), nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  Second(const Second&) = delete;
  Second& operator=(const Second&) = delete;
  bool there() const { return pid_ > 0; }

 private:
  long pid_ = -1;
};

/// Two words that go to and fro.
struct Rally {
  alignas(2 * shm::kLineBytes) std::atomic<std::uint32_t> there;
  alignas(2 * shm::kLineBytes) std::atomic<std::uint32_t> back;
};
constexpr std::uint32_t kBatch = 100;
constexpr std::uint32_t kBatches = 10;

std::optional<std::vector<CopyTimes>> measure() {
  Shared<Meeting> shared;
  Meeting* const meeting = shared.get();
  if (meeting == nullptr) return std::nullopt;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::memset(meeting->src[rank].data(), 0, kMost);
    std::memset(meeting->dst[rank].data(), 0, kRanks * kMost);
  }
  shm::Geometry geometry;
  geometry.endpoints = kRanks;
  geometry.arena_bytes = std::uint64_t{64} << 20U;
  const auto segment = shm::Segment::create(geometry);
  std::array<std::unique_ptr<Side>, kRanks> sides;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) sides[rank] = std::make_unique<Side>(segment, *meeting, rank);
  if (!sides[0]->open() || !sides[1]->open()) return std::nullopt;

  const auto deadline = Clock::now() + kMostTime;
  const Second second([&] {
    sides[1]->moved();
    follow(*meeting, *sides[1], deadline);
  });
  if (!second.there()) return std::nullopt;
  return Lead(*meeting, *sides[0], deadline).time_all();
}

}  // namespace

std::optional<std::vector<CopyTimes>> probe_copies() {
  try {
    return measure();
  } catch (const std::exception&) {
    return std::nullopt;  // no memory; a system that gives too little for this gives too little for what follows
  }
}

std::optional<double> probe_line() {
  Shared<Rally> shared;
  Rally* const rally = shared.get();
  if (rally == nullptr) return std::nullopt;
  const auto deadline = Clock::now() + kMostLineTime;
  const auto reaches = [&](const std::atomic<std::uint32_t>& word, std::uint32_t value) {
    return until([&] { return word.load(std::memory_order_acquire) == value; }, deadline);
  };
  const Second second([&] {
    for (std::uint32_t i = 1; reaches(rally->there, i); ++i) rally->back.store(i, std::memory_order_release);
  });
  if (!second.there()) return std::nullopt;
  double best = kNever;
  bool comes = true;
  std::uint32_t next = 1;
  for (std::uint32_t batch = 0; comes && batch < kBatches; batch += best < kApart ? 1 : 0) {
    const auto begin = Clock::now();
    for (const std::uint32_t end = next + kBatch; comes && next != end; ++next) {
      rally->there.store(next, std::memory_order_release);
      comes = reaches(rally->back, next);
    }
    if (comes) best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kBatch);
  }
  if (best > kApart) return std::nullopt;
  return best * 1000 / 2;
}

}  // namespace unisono::cclo
