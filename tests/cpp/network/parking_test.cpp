// Sleeping and waking: no wake-up is lost, whoever orders the memory.
#include "network/shm/parking.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/process.hpp"
#include "network/shm/shm_poe.hpp"
#include "platform/join/job.hpp"
#include "tests/cpp/network/processes.hpp"
#include "tests/cpp/network/seccomp.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono::shm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Child;
using test::require;
using Clock = Parking::Clock;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kTokens = 300'000;
#else
constexpr std::uint64_t kTokens = 4'000'000;
#endif

const auto kNever = [] { return true; };

/// Which endpoints of a test's segment join: with a missing one, the permission is never given.
enum class Mode { kOneSided, kFence };
/// What endpoints sleep on: their words, or descriptors, of which the doorbell alone is ever readable.
enum class Bed { kWord, kDescriptors };

/// A descriptor of which nothing ever comes, until it is rung.
class Quiet {
 public:
  Quiet() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { require(descriptor_ >= 0, "an eventfd"); }
  ~Quiet() { close(descriptor_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  int get() const { return descriptor_; }
  void ring() const { require(eventfd_write(descriptor_, 1) == 0, "a ring"); }

 private:
  int descriptor_;
};

/// Tokens from one endpoint to another: one release store each, no locked instruction anywhere.
class Channel {
 public:
  static std::uint64_t token(std::uint64_t number, std::uint64_t salt) {
    return (number * 0x9e3779b97f4a7c15 ^ salt << 17) | 1;
  }

  bool has_space(std::uint64_t number) const {
    return number < consumed_.load(std::memory_order_acquire) + slots_.size();
  }
  void publish(std::uint64_t number, std::uint64_t salt) {
    slots_[number % slots_.size()].value.store(token(number, salt), std::memory_order_release);
  }
  bool holds(std::uint64_t number, std::uint64_t salt) const {
    const std::uint64_t value = slots_[number % slots_.size()].value.load(std::memory_order_acquire);
    if (value == token(number, salt)) return true;
    require(value == 0 || (number >= slots_.size() && value == token(number - slots_.size(), salt)), "another token");
    return false;
  }
  void consume(std::uint64_t number) { consumed_.store(number + 1, std::memory_order_release); }

 private:
  struct alignas(128) Slot {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Slot, 16> slots_;
  alignas(128) std::atomic<std::uint64_t> consumed_{0};
};

/// Waits that sleep at random: at once, after a few polls, or hardly ever. Nothing progresses by a time-out: there
/// is none within the test's patience.
class RandomWaits {
 public:
  RandomWaits(Parking& parking, unsigned seed) : parking_(parking), random_(seed) {}

  template <class Ready>
  void wait(Ready ready) {
    const microseconds patience[] = {microseconds(0), microseconds(0), microseconds(3), microseconds(200)};
    parking_.set_policy({.patience = patience[random_() % 4], .look = seconds(3600)});
    if (!parking_.wait(ready, kNever, deadline_)) throw std::runtime_error("a token did not come in time");
  }
  /// Now and then a delay, so that the other side has time to sleep.
  void dawdle(unsigned one_in = 512) {
    if (random_() % one_in == 0) std::this_thread::sleep_for(microseconds(random_() % 100));
  }

 private:
  Parking& parking_;
  std::minstd_rand random_;
  Clock::time_point deadline_ = Clock::now() + seconds(240);
};

/// `senders` endpoints stream tokens to one receiver; returns how often anybody slept.
std::uint64_t stream(const Segment& segment, std::uint32_t senders, std::uint64_t tokens, Mode mode,
                     Bed bed = Bed::kWord) {
  const Quiet quiet;
  std::vector<Channel> channels(senders);
  std::vector<std::unique_ptr<Parking>> parkings;
  for (std::uint32_t i = 0; i <= senders; ++i) {
    parkings.push_back(std::make_unique<Parking>(segment, i));
    // One sender sleeps on its word in any case.
    if (bed == Bed::kDescriptors && i != 0) parkings.back()->listen(quiet.get());
  }
  std::vector<std::exception_ptr> failures(senders + 1);
  const auto guarded = [&](std::uint32_t who, auto body) {
    return [&failures, who, body] {
      try {
        body();
      } catch (...) {
        failures[who] = std::current_exception();
      }
    };
  };
  std::vector<std::thread> threads;
  for (std::uint32_t sender = 0; sender < senders; ++sender) {
    threads.emplace_back(guarded(sender, [&, sender] {
      parkings[sender]->join();
      RandomWaits waits(*parkings[sender], 7 + sender);
      for (std::uint64_t number = 0; number < tokens; ++number) {
        waits.wait([&] { return channels[sender].has_space(number); });
        channels[sender].publish(number, sender);
        wake_if_parked(segment.endpoint(senders));
        waits.dawdle();
      }
    }));
  }
  threads.emplace_back(guarded(senders, [&] {
    Parking& parking = *parkings[senders];
    parking.join();
    RandomWaits waits(parking, 99);
    std::vector<std::uint64_t> next(senders, 0);
    for (std::uint64_t taken = 0; taken < senders * tokens;) {
      const auto there = [&](std::uint32_t sender) {
        return next[sender] < tokens && channels[sender].holds(next[sender], sender);
      };
      waits.wait([&] {
        for (std::uint32_t sender = 0; sender < senders; ++sender) {
          if (there(sender)) return true;
        }
        return false;
      });
      for (std::uint32_t sender = 0; sender < senders; ++sender) {
        if (!there(sender)) continue;
        channels[sender].consume(next[sender]++);
        wake_if_parked(segment.endpoint(sender));
        ++taken;
      }
      waits.dawdle();
    }
  }));
  for (auto& thread : threads) thread.join();
  std::uint64_t sleeps = 0;
  for (std::uint32_t i = 0; i <= senders; ++i) {
    if (failures[i]) std::rethrow_exception(failures[i]);
    sleeps += parkings[i]->counters().sleeps;
    require(parkings[i]->counters().looks == 0 && parkings[i]->counters().rescues == 0, "progress by time-out");
    require(parkings[i]->one_sided() == (mode == Mode::kOneSided), "the mode is as expected");
    require((segment.endpoint(i).parked.load() & kParked) == 0, "nobody looks asleep");
  }
  return sleeps;
}

/// One message a round, published at about the moment when the receiver makes up its mind to sleep: the window in
/// which a sender's store is still on its way while its load has been done. Without a barrier on the sender's core
/// a wake-up is lost within some hundred rounds.
void race(const Segment& segment, std::uint32_t rounds, Mode mode, Bed bed = Bed::kWord) {
  struct alignas(128) Line {
    std::atomic<std::uint32_t> value{0};
  };
  Line start, message, taken;
  const Quiet quiet;
  Parking receiver(segment, 0);
  Parking sender(segment, 1);
  if (bed == Bed::kDescriptors) receiver.listen(quiet.get());
  receiver.join();
  sender.join();
  require(receiver.one_sided() == (mode == Mode::kOneSided), "the mode is as expected");
  receiver.set_policy({.patience = milliseconds(0), .look = seconds(10)});
  std::atomic<bool> stop{false};
  std::thread peer([&] {
    std::minstd_rand random(5);
    EndpointBlock& block = segment.endpoint(0);
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      while (start.value.load(std::memory_order_acquire) != round) {
        if (stop.load(std::memory_order_relaxed)) return;
        pause_core();
      }
      for (auto delay = random() % 16; delay > 0; --delay) block.parked.load(std::memory_order_relaxed);
      message.value.store(round, std::memory_order_release);
      wake_if_parked(block);
      while (taken.value.load(std::memory_order_acquire) != round && !stop.load(std::memory_order_relaxed)) {
        pause_core();
      }
    }
  });
  std::minstd_rand random(6);
  std::uint32_t round = 1;
  for (; round <= rounds && receiver.counters().looks == 0; ++round) {
    bool first = true;
    const auto ready = [&] {
      if (first) {
        first = false;
        start.value.store(round, std::memory_order_release);
        for (auto delay = random() % 64; delay > 0; --delay) std::atomic_signal_fence(std::memory_order_seq_cst);
        return false;
      }
      return message.value.load(std::memory_order_acquire) == round;
    };
    receiver.wait(ready, kNever, Clock::now() + seconds(30));
    taken.value.store(round, std::memory_order_release);
  }
  stop = true;
  peer.join();
  require(receiver.counters().looks == 0, "a wake-up was lost in round " + std::to_string(round - 1));
}

struct Shape {
  std::uint32_t senders;
  Mode mode;
  Bed bed = Bed::kWord;
};

class Tokens : public ::testing::TestWithParam<Shape> {};

TEST_P(Tokens, AreNeverStuck) {
  const auto [senders, mode, bed] = GetParam();
  // With an endpoint that never comes, everybody issues barriers of their own.
  const auto segment = Segment::create({.endpoints = senders + 1 + (mode == Mode::kFence ? 1U : 0U)});
  const std::uint64_t sleeps = stream(*segment, senders, kTokens / senders, mode, bed);
  RecordProperty("sleeps", static_cast<int>(sleeps));
  EXPECT_GT(sleeps, 500U) << "the test did not test sleeping";
}

INSTANTIATE_TEST_SUITE_P(Parking, Tokens,
                         ::testing::Values(Shape{1, Mode::kOneSided}, Shape{2, Mode::kOneSided}, Shape{1, Mode::kFence},
                                           Shape{2, Mode::kFence}, Shape{2, Mode::kOneSided, Bed::kDescriptors},
                                           Shape{2, Mode::kFence, Bed::kDescriptors}),
                         [](const auto& parameter) {
                           return std::to_string(parameter.param.senders) + "SendersAnd" +
                                  (parameter.param.mode == Mode::kFence ? "Fences" : "Membarrier") +
                                  (parameter.param.bed == Bed::kDescriptors ? "AndBells" : "");
                         });

TEST(Parking, NoWakeUpIsLostInTheNarrowestWindow) {
  constexpr std::uint32_t kRounds = kTokens / 40;
  race(*Segment::create({.endpoints = 2}), kRounds, Mode::kOneSided);
  race(*Segment::create({.endpoints = 3}), kRounds, Mode::kFence);
}

TEST(Parking, NoRingIsLostInTheNarrowestWindow) {
  constexpr std::uint32_t kRounds = kTokens / 80;
  race(*Segment::create({.endpoints = 2}), kRounds, Mode::kOneSided, Bed::kDescriptors);
  race(*Segment::create({.endpoints = 3}), kRounds, Mode::kFence, Bed::kDescriptors);
}

TEST(Parking, ADescriptorEndsASleep) {
  const auto segment = Segment::create({.endpoints = 2});
  const Quiet socket;
  Parking sleeper(*segment, 0);
  sleeper.listen(socket.get());
  sleeper.join();
  sleeper.set_policy({.patience = milliseconds(0), .look = seconds(100)});
  std::atomic<bool> come{false};
  std::thread network([&] {
    std::this_thread::sleep_for(milliseconds(20));
    come.store(true, std::memory_order_release);
    socket.ring();
  });
  const auto begin = Clock::now();
  EXPECT_TRUE(sleeper.wait([&] { return come.load(std::memory_order_acquire); }, kNever, begin + seconds(60)));
  EXPECT_LT(Clock::now() - begin, seconds(30));
  EXPECT_GE(sleeper.counters().sleeps, 1U);
  network.join();
}

TEST(Parking, WorksWhereMembarrierIsDenied) {
  Child child([] {
    test::deny({SYS_membarrier});
    const auto segment = Segment::create({.endpoints = 3});
    require(stream(*segment, 2, 20'000, Mode::kFence) > 50, "sleeps");
  });
  EXPECT_EQ(child.wait(seconds(100)), 0);
}

TEST(Parking, OneMemberWithoutMembarrierMakesAllIssueFences) {
  const auto segment = Segment::create({.endpoints = 3});
  Parking first(*segment, 0);
  first.join();
  Child denied([&] {
    test::deny({SYS_membarrier});
    Parking(*segment, 1).join();
  });
  ASSERT_EQ(denied.wait(), 0);
  Parking last(*segment, 2);
  last.join();
  EXPECT_FALSE(first.one_sided());
  EXPECT_FALSE(last.one_sided());
  EXPECT_EQ(segment->endpoint(1).parked.load() & kOneSided, 0U);
}

TEST(Parking, ThePermissionComesWithTheLastMember) {
  const auto segment = Segment::create({.endpoints = 3});
  std::vector<std::unique_ptr<Parking>> members;
  for (std::uint32_t i = 0; i < 3; ++i) {
    members.push_back(std::make_unique<Parking>(*segment, i));
    EXPECT_FALSE(members[0]->one_sided());
    members[i]->join();
  }
  for (const auto& member : members) EXPECT_TRUE(member->one_sided());
}

TEST(Parking, SurvivesAFilterThatComesLater) {
  Child child([] {
    const auto segment = Segment::create({.endpoints = 2});
    Parking sender(*segment, 0);
    Parking receiver(*segment, 1);
    sender.join();
    receiver.join();
    require(receiver.one_sided(), "membarrier works at first");
    test::deny({SYS_membarrier});
    receiver.set_policy({.patience = microseconds(0), .look = seconds(3600)});
    Channel channel;
    std::thread peer([&] {
      for (std::uint64_t number = 0; number < 200; ++number) {
        while (!channel.has_space(number)) std::this_thread::yield();
        std::this_thread::sleep_for(microseconds(300));
        channel.publish(number, 3);
        wake_if_parked(segment->endpoint(1));
      }
    });
    for (std::uint64_t number = 0; number < 200; ++number) {
      require(receiver.wait([&] { return channel.holds(number, 3); }, kNever, Clock::now() + seconds(30)), "a token");
      channel.consume(number);
    }
    peer.join();
    require(!receiver.one_sided(), "the permission is taken back");
    require(receiver.counters().sleeps > 10, "sleeps");
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Parking, EndsAtItsDeadlineAndWhenTickSaysSo) {
  const auto segment = Segment::create({.endpoints = 2});
  Parking parking(*segment, 0);
  parking.join();
  const auto begin = Clock::now();
  EXPECT_FALSE(parking.wait([] { return false; }, kNever, begin + milliseconds(120)));
  EXPECT_GE(Clock::now() - begin, milliseconds(120));
  EXPECT_LT(Clock::now() - begin, seconds(10));

  for (const milliseconds patience : {milliseconds(0), milliseconds(1000)}) {
    parking.set_policy({.patience = patience, .look = milliseconds(5)});
    int ticks = 0;
    EXPECT_FALSE(parking.wait([] { return false; }, [&] { return ++ticks < 20; }, Clock::time_point::max()));
    EXPECT_EQ(ticks, 20);
  }
  EXPECT_GT(parking.counters().looks, 5U);
  EXPECT_EQ(parking.counters().rescues, 0U);

  // What is ready is ready whatever the deadline; and without need neither clock nor tick is asked.
  const auto refuse = []() -> bool { throw std::runtime_error("tick was called"); };
  EXPECT_TRUE(parking.wait([] { return true; }, refuse, begin));
  EXPECT_EQ(segment->endpoint(0).parked.load() & kParked, 0U);
}

TEST(Parking, ARescueIsCounted) {
  // What a sender leaves behind that dies before it wakes: found at the next look, and told from a wake-up.
  const auto segment = Segment::create({.endpoints = 2});
  Parking parking(*segment, 0);
  parking.join();
  parking.set_policy({.patience = milliseconds(0), .look = milliseconds(50)});
  std::atomic<bool> published{false};
  std::thread peer([&] {
    while ((segment->endpoint(0).parked.load() & kParked) == 0) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(5));
    published.store(true, std::memory_order_release);
  });
  EXPECT_TRUE(
      parking.wait([&] { return published.load(std::memory_order_acquire); }, kNever, Clock::now() + seconds(30)));
  peer.join();
  EXPECT_GE(parking.counters().looks, 1U);
  EXPECT_EQ(parking.counters().rescues, 1U);
}

TEST(Parking, LeavesACoreThatAnotherEndpointIsOn) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  const auto segment = Segment::create({.endpoints = 2});
  Parking parking(*segment, 0);
  parking.join();
  EndpointBlock& peer = segment->endpoint(1);
  const auto meet = [&] {
    peer.core = static_cast<std::uint32_t>(sched_getcpu()) + 1;
    parking.leave_shared_core(Clock::now());
  };
  // One that has not joined, or sleeps, is in nobody's way.
  for (int i = 0; i < 100; ++i) meet();
  peer.state = EndpointState::kJoined;
  peer.parked |= kParked;
  for (int i = 0; i < 100; ++i) meet();
  EXPECT_EQ(parking.counters().moves, 0U);

  peer.parked = 0;
  // The scheduler may move the thread between the two lines of `meet`.
  const Clock::time_point end = Clock::now() + seconds(30);
  while (parking.counters().moves == 0 && Clock::now() < end) meet();
  EXPECT_EQ(parking.counters().moves, 1U);
  EXPECT_NE(segment->endpoint(0).core, peer.core);
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the affinity has changed";
}

TEST(Parking, AWaitLeavesASharedCore) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  if (CPU_COUNT(&cores) < 2) GTEST_SKIP() << "one core";
  const auto segment = Segment::create({.endpoints = 2});
  segment->endpoint(1).state = EndpointState::kJoined;
  segment->endpoint(1).thread = static_cast<std::uint32_t>(gettid());
  segment->endpoint(1).pid = static_cast<std::uint32_t>(getpid());
  Parking parking(*segment, 0);
  parking.join();
  segment->endpoint(0).state = EndpointState::kJoined;
  segment->endpoint(0).pid = static_cast<std::uint32_t>(getpid());
  if (parking.oversubscribed()) GTEST_SKIP() << "a quota of one core";
  parking.set_policy({.patience = seconds(30)});
  const auto tick = [&] {
    segment->endpoint(1).core = static_cast<std::uint32_t>(sched_getcpu()) + 1;
    return parking.counters().moves == 0;
  };
  parking.wait([] { return false; }, tick, Clock::now() + seconds(30));
  EXPECT_GE(parking.counters().moves, 1U);
}

TEST(Parking, AThrowingReadyLeavesNothingBehind) {
  const auto segment = Segment::create({.endpoints = 1});
  Parking parking(*segment, 0);
  parking.join();
  parking.set_policy({.patience = milliseconds(0)});
  const auto ready = [&]() -> bool {
    if ((segment->endpoint(0).parked.load() & kParked) != 0) throw std::runtime_error("corrupt");
    return false;
  };
  EXPECT_THROW(parking.wait(ready, kNever, Clock::time_point::max()), std::runtime_error);
  EXPECT_EQ(segment->endpoint(0).parked.load() & kParked, 0U);
}

TEST(Parking, AParkedProcessNoticesTheDeathOfAPeerWithinASecond) {
  const auto segment = Segment::create({.endpoints = 2});
  Parking parking(*segment, 0);
  parking.join();
  parking.set_policy({.patience = milliseconds(0)});  // with the ordinary look
  Child victim([] {
    for (;;) pause();
  });
  const auto pid = static_cast<std::uint32_t>(victim.pid());
  const ProcessWatch watch(pid, start_time_of(pid));
  Clock::time_point killed;
  std::thread killer([&] {
    while ((segment->endpoint(0).parked.load() & kParked) == 0) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(50));
    killed = Clock::now();
    kill(victim.pid(), SIGKILL);
  });
  EXPECT_FALSE(parking.wait([] { return false; }, [&] { return watch.running(); }, Clock::now() + seconds(30)));
  const auto noticed = Clock::now();
  killer.join();
  EXPECT_LT(noticed - killed, seconds(1));
  EXPECT_FALSE(watch.running());
}

TEST(Parking, ProcessesWakeOneAnother) {
  constexpr std::uint64_t kRounds = 20'000;
  const auto segment = Segment::create({.endpoints = 2});
  // The first bytes of an unused ring serve as lines of one writer each.
  const auto line = [&](std::uint32_t writer) -> std::atomic<std::uint64_t>& {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(segment->ring(writer, 1 - writer, Lane::kData));
  };
  const auto play = [&](std::uint32_t self) {
    Parking parking(*segment, self);
    parking.join();
    RandomWaits waits(parking, self + 1);  // a seed of 0 would be one of 1, and both would dawdle together
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      if (self == 0) {
        line(0).store(round, std::memory_order_release);
        wake_if_parked(segment->endpoint(1));
      }
      waits.wait([&] { return line(1 - self).load(std::memory_order_acquire) >= round; });
      require(line(1 - self).load() == round, "rounds do not run ahead");
      if (self == 1) {
        line(1).store(round, std::memory_order_release);
        wake_if_parked(segment->endpoint(0));
      }
      waits.dawdle(16);
    }
    require(parking.one_sided(), "both have membarrier");
    require(parking.counters().looks == 0, "no progress by time-out");
    require(parking.counters().sleeps > 100, "sleeps");
  };
  Child one([&] { play(0); });
  Child other([&] { play(1); });
  EXPECT_EQ(one.wait(seconds(200)), 0);
  EXPECT_EQ(other.wait(seconds(200)), 0);
}

TEST(Parking, ServesTheNetworkOfAJob) {
  ThreadJob job(2);
  const auto one = job.endpoint(0);
  const auto other = job.endpoint(1);
  Parking& parking = dynamic_cast<ShmPoe&>(*one).parking();
  EXPECT_TRUE(parking.one_sided());
  parking.set_policy({.patience = milliseconds(0), .look = seconds(3600)});
  std::thread peer([&] {
    for (std::uint32_t n = 0; n < 50; ++n) {
      std::this_thread::sleep_for(milliseconds(1));
      test::until(*other, [&] { return test::try_send(*other, 0, Lane::kData, n, n * 100); });
    }
  });
  for (std::uint32_t n = 0; n < 50; ++n) {
    test::until(*one, [&] { return test::try_receive(*one, 1, Lane::kData, n, n * 100); });
  }
  peer.join();
  EXPECT_GT(parking.counters().sleeps, 10U);
  EXPECT_EQ(parking.counters().looks, 0U);
}

}  // namespace
}  // namespace unisono::shm
