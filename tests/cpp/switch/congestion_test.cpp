// What jobs have of a link that they share: windows and pools on a simulated network with queues of a certain length.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "switch/path_time.hpp"
#include "switch/slots.hpp"
#include "switch/window.hpp"
#include "switch/windows_to_switch.hpp"

namespace unisono::slots {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint16_t kPayload = 1344;
constexpr Time kBegin{seconds(1000)};

/// What happens, in the order of times.
class Events {
 public:
  void at(Time when, std::function<void()> what) { events_.emplace(when, std::move(what)); }
  Time now() const { return now_; }
  void run_until(Time end) {
    while (!events_.empty() && events_.begin()->first < end) {
      auto first = events_.extract(events_.begin());
      now_ = first.key();
      first.mapped()();
    }
    now_ = end;
  }

 private:
  std::multimap<Time, std::function<void()>> events_;
  Time now_ = kBegin;
};

/// One direction of a link, and the queue before it.
class Wire {
 public:
  Wire(Events& events, double bytes_per_second, std::size_t room)
      : events_(events), rate_(bytes_per_second), room_(room) {}
  void send(std::size_t bytes, std::function<void()> arrives) {
    bytes += kEnvelope;
    const Time now = events_.now();
    const double waiting = std::chrono::duration<double>(std::max(free_, now) - now).count();
    if (waiting * rate_ + static_cast<double>(bytes) > static_cast<double>(room_)) return;
    longest_ = std::max(longest_, std::max(free_, now) - now);
    const auto time = std::chrono::duration<double>(static_cast<double>(bytes) / rate_);
    free_ = std::max(free_, now) + std::chrono::duration_cast<nanoseconds>(time);
    events_.at(free_ + microseconds(30), std::move(arrives));
  }
  /// The longest that something has waited, since the last look.
  Span longest() { return std::exchange(longest_, Span::zero()); }

 private:
  static constexpr std::size_t kEnvelope = 40 + 42;
  Events& events_;
  double rate_;
  std::size_t room_;
  Time free_{};
  Span longest_{};
};

struct JobPlan {
  std::uint32_t ranks = 2;
  std::uint32_t communicators = 1;
  std::size_t bytes = 0;  ///< of a call
};

/// A job whose ranks make calls one after the other on each of their communicators.
class Job {
 public:
  Job(Events& events, Wire& up, Wire& down, const JobPlan& plan, std::uint32_t seed)
      : events_(events), up_(up), down_(down), plan_(plan), random_(seed) {
    ranks_.resize(plan.ranks);
    for (Rank& rank : ranks_) rank.shared = std::make_shared<WindowsToSwitch>();
    for (std::uint32_t i = 0; i < plan.communicators; ++i)
      communicators_.push_back(std::make_unique<Communicator>(*this, i));
    for (std::uint32_t i = 0; i < plan.communicators; ++i) {
      for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) communicators_[i]->start(rank);
    }
    for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) tick(rank);
  }

  /// Bytes of contributions whose results have come, of all ranks, since the last look.
  std::uint64_t carried() { return std::exchange(carried_, 0); }
  std::uint32_t allowed(std::uint32_t rank) const { return ranks_[rank].shared->allowed(); }
  /// Every rank has no core for 4 ms, now and then.
  void stall_often() { stalls_ = true; }

 private:
  struct Rank {
    std::shared_ptr<WindowsToSwitch> shared;
    Time runs{};  ///< has no core before
  };

  class Communicator final : public Outlet {
   public:
    Communicator(Job& job, std::uint32_t number)
        : job_(job), pool_(shape_of(job, number), *this), data_(job.plan_.ranks) {
      for (std::uint32_t rank = 0; rank < job.plan_.ranks; ++rank) {
        uplinks_.push_back(std::make_unique<Up>(*this));
        echoes_.emplace_back();
        WindowShape shape;
        shape.communicator = number;
        shape.rank = shape.position = rank;
        shape.ranks = job.plan_.ranks;
        shape.slots = kSlots;
        shape.payload_bytes = kPayload;
        shape.generation = 1;
        shape.others = job.ranks_[rank].shared;
        windows_.push_back(std::make_unique<Window>(shape, *uplinks_.back()));
        data_[rank].resize(job.plan_.bytes / 4, 1);
        calls_.emplace_back();
        serial_.push_back(0);
      }
    }
    void start(std::uint32_t rank) {
      SlotCall call;
      call.collective = Collective::kAllreduce;
      call.func = Func::kSum;
      call.dtype = Datatype::kInt32;
      call.count = data_[rank].size();
      call.src = reinterpret_cast<const std::byte*>(data_[rank].data());
      call.dst = reinterpret_cast<std::byte*>(data_[rank].data());
      call.deadline = Time::max();
      call.sequence = serial_[rank]++;
      calls_[rank] = windows_[rank]->start(call, job_.events_.now());
    }
    void tick(std::uint32_t rank) { windows_[rank]->tick(job_.events_.now()); }

    void down(const SlotFrame& head, std::span<const std::byte> payload) override { send(head, payload, head.member); }
    void down_all(const SlotFrame& head, std::span<const std::byte> payload) override {
      for (std::uint32_t rank = 0; rank < job_.plan_.ranks; ++rank) send(head, payload, rank);
    }
    void up(const SlotFrame&, std::span<const std::byte>) override {}

   private:
    static constexpr std::uint32_t kSlots = 64;
    struct Up final : public Uplink {
      explicit Up(Communicator& of) : communicator(of) {}
      void up(const SlotFrame& head, std::span<const std::byte> payload) override {
        std::vector<std::byte> copy(payload.begin(), payload.end());
        const Stamp stamp = stamp_of(communicator.job_.events_.now());
        communicator.job_.up_.send(frame_bytes(payload.size()), [this, head, stamp, copy = std::move(copy)] {
          communicator.echoes_[head.member].take(stamp, communicator.job_.events_.now());
          communicator.pool_.from_child({head, copy});
        });
      }
      Communicator& communicator;
    };
    static PoolShape shape_of(const Job& job, std::uint32_t number) {
      PoolShape shape;
      shape.communicator = number;
      shape.slots = kSlots;
      shape.payload_bytes = kPayload;
      shape.generation = 1;
      for (std::uint32_t rank = 0; rank < job.plan_.ranks; ++rank) shape.children.push_back({rank, 1});
      return shape;
    }
    void send(const SlotFrame& head, std::span<const std::byte> payload, std::uint32_t rank) {
      const Time now = job_.events_.now();
      const Stamp stamp = echoes_[rank].back(now, Span::zero());
      std::vector<std::byte> copy(payload.begin(), payload.end());
      job_.down_.send(frame_bytes(payload.size()), [this, head, rank, stamp, copy = std::move(copy)] {
        job_.when_it_runs(rank, [this, head, rank, stamp, copy] { take(head, rank, stamp, copy); });
      });
    }
    void take(const SlotFrame& head, std::uint32_t rank, Stamp stamp, const std::vector<std::byte>& payload) {
      Window& window = *windows_[rank];
      const std::uint64_t before = window.counters().results;
      window.take({head, payload}, job_.events_.now(), path_of(stamp, job_.events_.now()));
      ASSERT_FALSE(window.failure()) << window.failure()->text;
      job_.carried_ += (window.counters().results - before) * payload.size();
      if (!calls_[rank] || !window.done(*calls_[rank])) return;
      calls_[rank].reset();
      // What a program does between two calls.
      job_.events_.at(job_.events_.now() + microseconds(100 + job_.random_() % 400), [this, rank] { start(rank); });
    }

    Job& job_;
    std::vector<StampEcho> echoes_;
    Pool pool_;
    std::vector<std::vector<std::int32_t>> data_;
    std::vector<std::unique_ptr<Up>> uplinks_;
    std::vector<std::unique_ptr<Window>> windows_;
    std::vector<std::optional<std::uint64_t>> calls_;
    std::vector<std::uint32_t> serial_;
  };

  void when_it_runs(std::uint32_t rank, std::function<void()> what) {
    Rank& one = ranks_[rank];
    const Time now = events_.now();
    if (stalls_ && one.runs <= now && random_() % 200 == 0) one.runs = now + milliseconds(4);
    if (one.runs <= now) {
      what();
    } else {
      events_.at(one.runs, std::move(what));
    }
  }
  void tick(std::uint32_t rank) {
    when_it_runs(rank, [this, rank] {
      for (const auto& one : communicators_) one->tick(rank);
      events_.at(events_.now() + microseconds(500), [this, rank] { tick(rank); });
    });
  }

  Events& events_;
  Wire& up_;
  Wire& down_;
  JobPlan plan_;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::uint64_t carried_ = 0;
  bool stalls_ = false;
};

/// A link of so many Mbit/s, and jobs behind it; what part of the link each has after a while.
class Shared {
 public:
  Shared(double mbit, std::size_t room, const std::vector<JobPlan>& plans, bool stalls = false)
      : rate_(mbit * 1e6 / 8), up_(events_, rate_, room), down_(events_, rate_, room) {
    for (std::uint32_t i = 0; i < plans.size(); ++i) {
      jobs_.push_back(std::make_unique<Job>(events_, up_, down_, plans[i], 17 + i));
      if (stalls) jobs_.back()->stall_often();
    }
  }
  std::vector<double> shares(seconds first = seconds(2), seconds then = seconds(4)) {
    events_.run_until(events_.now() + first);
    for (const auto& job : jobs_) job->carried();
    up_.longest();
    const Time begin = events_.now();
    events_.run_until(begin + then);
    std::vector<double> shares;
    for (const auto& job : jobs_) {
      const double frames = static_cast<double>(job->carried()) / kPayload;
      const double bytes = frames * static_cast<double>(frame_bytes(kPayload) + 40 + 42);
      shares.push_back(bytes / (rate_ * static_cast<double>(then.count())));
    }
    return shares;
  }
  Span longest_queue() { return up_.longest(); }
  const Job& job(std::size_t i) const { return *jobs_[i]; }

 private:
  double rate_;
  Events events_;
  Wire up_;
  Wire down_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

constexpr std::size_t kMegabyte = 1U << 20;
constexpr std::size_t kRoom = std::size_t{266} * 1024;

TEST(SharedLink, OneCommunicatorHasAsMuchOfItAsEight) {
  for (const double mbit : {100.0, 300.0}) {
    for (const bool stalls : {false, true}) {
      Shared link(mbit, kRoom, {{2, 1, kMegabyte}, {2, 8, kMegabyte}}, stalls);
      const std::vector<double> shares = link.shares();
      EXPECT_GE(shares[0], 0.38) << mbit << " Mbit/s";
      EXPECT_GE(shares[1], 0.38) << mbit << " Mbit/s";
      EXPECT_LE(link.longest_queue(), milliseconds(18)) << "of the 21 that there is room for";
    }
  }
}

TEST(SharedLink, AJobAloneUsesIt) {
  for (const std::uint32_t communicators : {1U, 8U}) {
    Shared link(100, kRoom, {{2, communicators, kMegabyte}});
    EXPECT_GE(link.shares().front(), 0.85) << communicators;
  }
}

TEST(SharedLink, WhatDoesNotQueueForLongIsNotHeldBack) {
  Shared link(10000, kRoom, {{2, 1, kMegabyte}});
  EXPECT_GE(link.shares(seconds(0), seconds(1)).front(), 0.8);
  EXPECT_EQ(link.job(0).allowed(0), 64U);
}

Time after(milliseconds time) { return kBegin + time; }

TEST(WindowsToSwitch, HaveFewerTurnsWhileAllOfThemQueue) {
  WindowsToSwitch windows;
  windows.busy(true);
  auto round = [&, now = milliseconds(0)](milliseconds path) mutable {
    now += path + milliseconds(1);
    for (int i = 0; i < 8; ++i) windows.measured(path, after(now));
  };
  for (int i = 0; i < 10; ++i) round(milliseconds(1));
  EXPECT_EQ(windows.allowed(), 64U);
  EXPECT_EQ(windows.each(64), 64U);
  EXPECT_EQ(windows.each(1024), 1024U) << "a window alone goes as far as its slots do";
  round(milliseconds(6));
  EXPECT_EQ(windows.allowed(), 48U);
  EXPECT_EQ(windows.each(64), 48U);
  windows.busy(true);
  EXPECT_EQ(windows.each(64), 24U);
  for (int i = 0; i < 20; ++i) round(milliseconds(50));
  EXPECT_EQ(windows.allowed(), 8U) << "not less";
  for (int i = 0; i < 100; ++i) windows.busy(true);
  EXPECT_EQ(windows.each(64), 1U) << "not none";
  for (int i = 0; i < 56; ++i) round(milliseconds(4));
  EXPECT_EQ(windows.allowed(), 64U);
}

TEST(WindowsToSwitch, HaveAllWhileSomeFramesAreLate) {
  WindowsToSwitch windows;
  for (int i = 1; i < 200; ++i) windows.measured(milliseconds(i % 7 == 0 ? 1 : 20), after(milliseconds(21 * i)));
  EXPECT_EQ(windows.allowed(), 64U) << "who has no core for a while makes frames late, too";
}

TEST(WindowsToSwitch, HaveHalfWhenHalfGoesAgain) {
  WindowsToSwitch windows;
  for (int i = 0; i < 8; ++i) {
    windows.answered(i < 5);
    windows.measured(milliseconds(1), after(milliseconds(10)));
  }
  EXPECT_EQ(windows.allowed(), 32U);
}

TEST(Stamps, SayTheWayWithoutWhatTheSwitchWaitsFor) {
  StampEcho echo;
  EXPECT_EQ(echo.back(kBegin, Span::zero()), 0U) << "nothing has come";
  EXPECT_FALSE(path_of(0, kBegin));
  echo.take(stamp_of(kBegin), after(milliseconds(900)));  // by another clock
  const Stamp back = echo.back(after(milliseconds(1700)), milliseconds(2));
  EXPECT_EQ(path_of(back, after(milliseconds(805))), milliseconds(7)) << "5 ms here, 2 ms beyond";
  EXPECT_FALSE(path_of(stamp_of(after(milliseconds(1))), kBegin)) << "from the future";
}

TEST(Stamps, Wrap) {
  const Time late{microseconds(0xffff'fff0U)};
  StampEcho echo;
  echo.take(stamp_of(late), kBegin);
  EXPECT_EQ(path_of(echo.back(after(milliseconds(5)), Span::zero()), late + milliseconds(8)), milliseconds(3));
}

}  // namespace
}  // namespace unisono::slots
