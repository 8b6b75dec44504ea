// What endpoints of one process share of each other: a mailbox for each, into which all others put their messages.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "core/generated/spec.hpp"
#include "network/poe.hpp"

namespace unisono::loop {

/// A message on its way. One piece of memory: the payload stands behind it.
struct alignas(64) Message {
  Message* next = nullptr;
  std::uint32_t from = 0;
  Lane lane = Lane::kData;
  std::uint32_t room = 0;  ///< bytes behind it
  Header header;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  std::size_t bytes() const { return sizeof(Message) + room; }

  /// Throws std::bad_alloc.
  static Message* make(std::uint32_t room) {
    void* const memory = ::operator new (sizeof(Message) + room, std::align_val_t{alignof(Message)});
    auto* const message = new (memory) Message;
    message->room = room;
    return message;
  }
  static void free(Message* message) { ::operator delete (message, std::align_val_t{alignof(Message)}); }
};

/// Messages, oldest first. It owns them.
class MessageQueue {
 public:
  MessageQueue() = default;
  ~MessageQueue() {
    while (!empty()) Message::free(pop());
  }
  MessageQueue(MessageQueue&& other) noexcept : first_(other.first_), last_(other.last_) {
    other.first_ = other.last_ = nullptr;
  }
  MessageQueue& operator=(MessageQueue&&) = delete;
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;

  bool empty() const { return first_ == nullptr; }
  Message* front() const { return first_; }
  void push(Message* message) {
    message->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = message;
    last_ = message;
  }
  Message* pop() {
    Message* const message = first_;
    first_ = message->next;
    return message;
  }

 private:
  Message* first_ = nullptr;
  Message* last_ = nullptr;
};

/// Thread-safe.
class Mailbox {
 public:
  enum class State : std::uint8_t { kAbsent, kJoined, kLeft, kEnded };

  State state() const { return state_.load(std::memory_order_acquire); }
  void set_state(State state) { state_.store(state, std::memory_order_release); }
  /// Whether its endpoint takes part, or may still come.
  bool may_read() const { return state() < State::kLeft; }
  /// True for the first one only.
  bool join() {
    State absent = State::kAbsent;
    return state_.compare_exchange_strong(absent, State::kJoined, std::memory_order_acq_rel);
  }

  /// Bytes of messages that its endpoint has not used up.
  std::uint64_t waiting(Lane lane) const { return waiting_[index(lane)].load(std::memory_order_seq_cst); }

  /// Takes room for a message. False if messages of other senders fill it: then `sender` is woken when there is room.
  bool take_room(std::uint32_t sender, Lane lane, std::uint64_t bytes, std::uint64_t most) {
    std::atomic<std::uint64_t>& waiting = waiting_[index(lane)];
    const auto fits = [&] {
      std::uint64_t before = waiting.load(std::memory_order_seq_cst);
      do {
        if (before != 0 && before + bytes > most) return false;
      } while (!waiting.compare_exchange_weak(before, before + bytes, std::memory_order_seq_cst));
      return true;
    };
    if (fits()) return true;
    {
      const std::lock_guard lock(mutex_);
      senders_.push_back(sender);
      wanted_.store(true, std::memory_order_seq_cst);
    }
    return fits();  // room that became free meanwhile was told to nobody
  }
  /// Gives room back; true if senders wait for some, whom `take_senders` gives.
  bool give_room(Lane lane, std::uint64_t bytes) {
    waiting_[index(lane)].fetch_sub(bytes, std::memory_order_seq_cst);
    return wanted_.load(std::memory_order_seq_cst);
  }
  std::vector<std::uint32_t> take_senders() {
    const std::lock_guard lock(mutex_);
    wanted_.store(false, std::memory_order_seq_cst);
    return std::exchange(senders_, {});
  }

  /// Another endpoint has a session with this one, and is to hear of its end.
  void know(std::uint32_t endpoint) {
    const std::lock_guard lock(mutex_);
    known_by_.push_back(endpoint);
  }
  std::vector<std::uint32_t> known_by() {
    const std::lock_guard lock(mutex_);
    return known_by_;
  }

  void put(Message* message) {
    const std::lock_guard lock(mutex_);
    came_.push(message);
    any_.store(true, std::memory_order_release);
    stir();
  }
  /// All that has come since.
  MessageQueue take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    return std::move(came_);
  }
  bool any() const { return any_.load(std::memory_order_acquire); }

  /// Changes whenever something has come, or `poke` was called.
  std::uint32_t activity() const { return activity_.load(std::memory_order_acquire); }
  void poke() {
    const std::lock_guard lock(mutex_);
    stir();
  }
  /// Sleeps until `activity` is another number, or the time has come.
  void sleep(std::uint32_t seen, std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    ++sleepers_;
    changed_.wait_until(lock, until, [&] { return activity() != seen; });
    --sleepers_;
  }

  /// A descriptor that is readable when something has come since `clear_bell`. Made when it is asked for, the
  /// mailbox's. -1 if there is none left.
  int bell() {
    const std::lock_guard lock(mutex_);
    if (bell_ < 0) {
      bell_ = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    return bell_;
  }
  void clear_bell() {
    if (!rung_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    rung_.store(false, std::memory_order_relaxed);
    std::uint64_t count = 0;
    if (bell_ >= 0 && read(bell_, &count, sizeof count) < 0) return;  // it was not rung
  }

  Mailbox() = default;
  ~Mailbox() {
    if (bell_ >= 0) close(bell_);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

 private:
  static std::size_t index(Lane lane) { return static_cast<std::size_t>(lane); }
  /// With the lock.
  void stir() {
    activity_.fetch_add(1, std::memory_order_release);
    if (sleepers_ != 0) changed_.notify_all();
    if (bell_ < 0 || rung_.exchange(true, std::memory_order_acq_rel)) return;
    const std::uint64_t one = 1;
    if (write(bell_, &one, sizeof one) < 0) return;  // it is readable as it is
  }

  std::atomic<State> state_{State::kAbsent};
  std::atomic<bool> any_{false};
  std::atomic<bool> wanted_{false};
  std::atomic<bool> rung_{true};
  std::atomic<std::uint32_t> activity_{0};
  std::atomic<std::uint64_t> waiting_[2]{};
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  MessageQueue came_;
  std::vector<std::uint32_t> senders_;   ///< that want room
  std::vector<std::uint32_t> known_by_;  ///< endpoints that have a session with this one
  std::uint32_t sleepers_ = 0;
  int bell_ = -1;
};

}  // namespace unisono::loop
