#include "driver/offload.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/process.hpp"
#include "engine/engine.hpp"
#include "network/wait_hook.hpp"

namespace unisono::driver {

using Clock = std::chrono::steady_clock;

namespace {

/// What a place has been called for.
enum CalledFor : std::uint32_t { kForOutput = 1, kForCalls = 2 };

}  // namespace

struct Offload::Place {
  explicit Place(Engine& of) : engine(&of) {}
  ~Place() {
    if (descriptor >= 0) close(descriptor);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  /// Makes the descriptor readable.
  void ring() const {
    const std::uint64_t one = 1;
    // Full, it is readable already.
    static_cast<void>(!write(descriptor, &one, sizeof one));
  }

  /// Held by the thread that is in the engine for this place: the helper, or one that arms. It may arm in a callback.
  std::recursive_mutex at_it;
  Engine* engine;       ///< null when the place is given up. Under `at_it`, as all that follows but for atomics
  bool driven = false;  ///< the thread makes progress until nothing is in flight
  bool armed = false;   ///< `bell` is to be listened to
  Bell bell;
  Clock::time_point again{};  ///< when to look if it is not armed
  bool for_calls = false;     ///< driven for the sake of calls, not only of what may have to be sent again
  bool later = false;         ///< `again` is when there is something to do, and not before
  /// When the thread will next see whether there is something to do, whatever happens. It is `max` from before the
  /// thread looks at the engine until it knows, so whoever has given the engine something, and then reads that the
  /// thread will look, is not forgotten.
  std::atomic<Clock::time_point> looks{Clock::time_point::max()};
  std::atomic<std::uint32_t> called{0};  ///< it is to be driven: `CalledFor`
  std::atomic<bool> watched{false};      ///< the descriptor is to be rung
  std::atomic<bool> stirred{false};      ///< the thread has done something since the descriptor was armed last
  std::atomic<int> descriptor{-1};
};

namespace {

/// How often the thread looks at contexts where a thread of the program waits, or which it cannot sleep for.
constexpr std::chrono::microseconds kElsewhere{500};
/// The same if there are no calls: that thread says when it leaves, and what it leaves is not due so soon.
constexpr std::chrono::microseconds kOutputElsewhere{2000};
/// So much later than asked for does nobody harm to whom it is not urgent: a program that calls on and on, each time
/// with something that is due a little sooner than the thread will look, need not stir it each time.
constexpr std::chrono::microseconds kSlack{2000};
constexpr std::chrono::microseconds kUnheard{1000};
/// How long it stays with an engine that has no bell, if there are others.
constexpr std::chrono::microseconds kShortSlice{200};
constexpr std::chrono::microseconds kSlice{20'000};

/// A word that the kernel is to watch; as linux/futex.h of 5.16 and later has it.
struct WatchedWord {
  std::uint64_t value;
  std::uint64_t address;
  std::uint32_t flags;
  std::uint32_t reserved;
};
constexpr std::size_t kMostWords = 128;  // of one futex_waitv
constexpr long kFutexWaitv = 449;        // on all architectures
constexpr std::uint32_t kWord32 = 2;     // FUTEX_32

class Helper {
 public:
  /// The process's. A child of fork has one of its own; its parent's is left alone, since its thread is not there.
  static Helper& instance() {
    static std::mutex mutex;
    static Helper* helper = nullptr;
    static std::uint32_t generation = 0;
    const std::lock_guard lock(mutex);
    if (helper == nullptr || generation != fork_generation()) {
      helper = new Helper;  // NOLINT(cppcoreguidelines-owning-memory): it lives as long as the process
      generation = fork_generation();
    }
    return *helper;
  }

  void enter(const std::shared_ptr<Offload::Place>& place) {
    const std::lock_guard turn(starting_);
    if (!thread_.joinable()) start();
    const std::lock_guard lock(mutex_);
    places_.push_back(place);
    ++version_;
  }

  void leave(const std::shared_ptr<Offload::Place>& place) {
    // A callback on the thread itself cannot await its end; the thread then sleeps until somebody comes.
    const bool own = std::this_thread::get_id() == thread_.get_id();
    const std::lock_guard turn(starting_);
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      places_.erase(std::find(places_.begin(), places_.end(), place));
      ++version_;
      last = places_.empty();
    }
    if (last && !own) {
      stopping_.store(true);
      stir();
      thread_.join();
      stopping_.store(false);
      return;
    }
    stir();
  }

  /// Something has changed: the thread looks at all places.
  void stir() {
    control_.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &control_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  void start() {
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::error_code refused;
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& failure) {
      refused = failure.code();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (refused) {
      throw Error(ErrorCode::kCapacity, "an offload thread cannot be started: " + refused.message() +
                                            " (a limit of threads or processes, or a sandbox)");
    }
  }

  void serve() {
    pthread_setname_np(pthread_self(), "unisono-helper");
    const WaitHook::Quiet quiet;  // the program's hook is for the program's threads
    std::vector<std::shared_ptr<Offload::Place>> places;
    std::uint64_t known = 0;
    while (!stopping_.load()) {
      const std::uint32_t seen = control_.load(std::memory_order_seq_cst);
      {
        const std::lock_guard lock(mutex_);
        if (known != version_) places = places_;
        known = version_;
      }
      heard_.clear();
      next_ = Clock::time_point::max();
      bool busy = false;
      for (const auto& place : places) busy = attend(place, places.size()) || busy;
      if (!busy) sleep(seen);
    }
  }

  /// Does what is to be done for one place. Whether there may be more.
  bool attend(const std::shared_ptr<Offload::Place>& place, std::size_t places) {
    const std::lock_guard turn(place->at_it);
    Offload::Place& own = *place;
    if (own.engine == nullptr) return false;
    if (const std::uint32_t what = own.called.exchange(0); what != 0) {
      own.driven = true;
      own.for_calls = own.for_calls || (what & kForCalls) != 0;
      own.bell.look = {};  // when it was armed, nothing was known of this call and its deadline
      if (std::exchange(own.later, false)) own.again = {};
    }
    const bool watched = own.watched.load();
    if (watched && std::exchange(own.later, false)) own.again = {};  // who watches wants the bell to be armed
    if (!own.driven && !watched) return false;
    const Clock::time_point now = Clock::now();
    const bool rung = own.armed && own.bell.word->load(std::memory_order_seq_cst) != own.bell.armed;
    if (own.armed && !rung && now < own.bell.look) {
      heard_.push_back(place);
      next_ = std::min(next_, own.bell.look);
      return false;
    }
    if (!own.driven) {  // it is the program's to make progress
      if (!own.armed && now < own.again) {
        next_ = std::min(next_, own.again);
        return false;
      }
      own.engine->disarm();
      own.armed = false;
      tell(own);
      return false;
    }
    if (!own.armed && now < own.again) {
      next_ = std::min(next_, own.again);
      return false;
    }
    own.armed = own.later = false;
    own.again = {};
    own.looks.store(Clock::time_point::max());
    try {
      const Served served = own.engine->serve(own.bell, watched, places == 1 ? kSlice : kShortSlice);
      if (rung || served == Served::kBusy) tell(own);
      switch (served) {
        case Served::kIdle:
          tell(own);
          own.driven = false;
          own.for_calls = false;
          return own.called.load() != 0;
        case Served::kBusy:
          return true;
        case Served::kElsewhere:
          own.later = !own.for_calls;
          again(own, now + (own.later ? kOutputElsewhere : kElsewhere));
          tell(own);
          return false;
        case Served::kArmed:
          own.armed = true;
          own.looks.store(own.bell.look);
          heard_.push_back(place);
          next_ = std::min(next_, own.bell.look);
          return false;
        case Served::kLater:
          own.later = true;
          own.for_calls = false;
          again(own, own.bell.look);
          tell(own);
          return false;
      }
    } catch (const Error&) {
      // The threads that wait for such a call hear of it; the others go on.
      again(own, now + kSlice);
      tell(own);
    }
    return false;
  }

  void again(Offload::Place& place, Clock::time_point when) {
    place.again = when;
    place.looks.store(when);
    next_ = std::min(next_, when);
  }

  static void tell(Offload::Place& place) {
    if (place.driven) place.stirred.store(true);
    if (place.watched.exchange(false)) place.ring();
  }

  /// Sleeps until a bell rings, somebody stirs, or it is time to look.
  void sleep(std::uint32_t seen) {
    if (knows_several_) {
      std::vector<WatchedWord>& words = words_;
      words.clear();
      words.push_back({seen, reinterpret_cast<std::uintptr_t>(&control_), kWord32 | FUTEX_PRIVATE_FLAG, 0});
      for (const auto& place : heard_) {
        if (words.size() == kMostWords) break;
        words.push_back({place->bell.armed, reinterpret_cast<std::uintptr_t>(place->bell.word), kWord32, 0});
      }
      if (heard_.size() >= kMostWords) next_ = std::min(next_, Clock::now() + kUnheard);
      const timespec until = clock_time(next_);
      const long result =
          syscall(kFutexWaitv, words.data(), static_cast<unsigned>(words.size()), 0U, &until, CLOCK_MONOTONIC);
      if (result >= 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR) return;
      knows_several_ = false;  // a kernel before 5.16, or a sandbox
    }
    // It sleeps on one word, and looks at the others now and then.
    if (heard_.empty()) return wait_on(control_, seen, FUTEX_PRIVATE_FLAG);
    next_ = std::min(next_, Clock::now() + kUnheard);
    const Bell& bell = heard_.front()->bell;
    if (control_.load(std::memory_order_seq_cst) == seen) wait_on(*bell.word, bell.armed, 0);
  }

  void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen, int flags) const {
    const timespec until = clock_time(next_);
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | flags, seen, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  }

  /// Of the monotonic clock, which steady_clock is; what nobody waits for is a day away.
  static timespec clock_time(Clock::time_point when) {
    const Clock::time_point most = Clock::now() + std::chrono::hours(24);
    const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(std::min(when, most).time_since_epoch());
    return {static_cast<time_t>(since.count() / 1'000'000'000), static_cast<long>(since.count() % 1'000'000'000)};
  }

  std::mutex starting_;  ///< held to start or end the thread
  std::mutex mutex_;     ///< guards the list
  std::vector<std::shared_ptr<Offload::Place>> places_;
  std::uint64_t version_ = 0;              ///< of the list
  std::atomic<std::uint32_t> control_{0};  ///< changes whenever the thread is to look
  std::atomic<bool> stopping_{false};
  std::thread thread_;

  // Of the thread.
  bool knows_several_ = true;                           ///< the kernel can watch several words
  std::vector<std::shared_ptr<Offload::Place>> heard_;  ///< armed ones
  std::vector<WatchedWord> words_;
  Clock::time_point next_{};
};

}  // namespace

Offload::Offload(Engine& engine) : place_(std::make_shared<Place>(engine)) { Helper::instance().enter(place_); }

Offload::~Offload() {
  {
    const std::lock_guard turn(place_->at_it);
    place_->engine->disarm();
    place_->engine = nullptr;
    if (place_->watched.exchange(false)) place_->ring();  // so that nobody sleeps for a context that has gone
  }
  Helper::instance().leave(place_);
}

void Offload::wake(Clock::time_point due) {
  if (due != kAtOnce && place_->looks.load() - kSlack <= due) return;
  const std::uint32_t what = due == kAtOnce ? kForCalls : kForOutput;
  if ((place_->called.fetch_or(what) & what) == 0) Helper::instance().stir();
}

int Offload::descriptor() {
  const std::lock_guard turn(place_->at_it);
  if (place_->descriptor < 0) {
    if (!place_->engine->has_bell()) {
      throw Error(ErrorCode::kUnsupported,
                  "this engine cannot tell when there is progress to make, so there is no descriptor to wait for; call "
                  "unisono_progress now and then, or have the offload thread do so");
    }
    const int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0) {
      throw Error(ErrorCode::kCapacity, std::string("a descriptor cannot be had: ") + std::strerror(errno) +
                                            " (a limit of open files; ulimit -n)");
    }
    place_->descriptor = made;
  }
  return place_->descriptor;
}

bool Offload::arm() {
  const int own = descriptor();
  Place& place = *place_;
  place.watched.store(false);
  std::uint64_t rings = 0;
  static_cast<void>(!read(own, &rings, sizeof rings));
  {
    const std::lock_guard turn(place.at_it);
    if (place.stirred.exchange(false)) return true;
    if (!place.driven) {
      place.armed = false;
      switch (place.engine->serve(place.bell, true, std::chrono::microseconds(0))) {
        case Served::kBusy:
          place.engine->disarm();
          place.stirred.store(false);
          return true;
        case Served::kArmed:
          place.armed = true;
          break;
        default:  // another thread waits for this context, and makes the progress
          place.again = Clock::now() + kUnheard;
      }
    }
    place.watched.store(true);
  }
  Helper::instance().stir();
  return false;
}

}  // namespace unisono::driver
