// A message of a channel that is on its way, and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "engine/engine.hpp"

namespace unisono::kernels {

class Flight;

/// Who hears of the end of a flight, from the driver of its rank.
class Receiver {
 public:
  Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  virtual void landed(const std::shared_ptr<Flight>& flight) = 0;

 protected:
  ~Receiver() = default;
};

/// One send or receive of the engine. Its memory stays where it is until the engine has let go of it.
class Flight {
 public:
  explicit Flight(std::size_t capacity)
      : memory_(static_cast<std::byte*>(::operator new[](capacity, std::align_val_t{kAlignment}))),
        capacity_(capacity) {}
  ~Flight() { ::operator delete[](memory_, std::align_val_t{kAlignment}); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  std::byte* memory() const { return memory_; }
  std::size_t capacity() const { return capacity_; }

  std::uint64_t bytes = 0;  ///< of the message
  CallId id = 0;
  bool sends = false;
  bool complete = false;
  CallResult result;
  Receiver* receiver = nullptr;  ///< null: nobody asks
  std::size_t position = 0;      ///< among those in flight

 private:
  static constexpr std::size_t kAlignment = 64;
  std::byte* memory_;
  std::size_t capacity_;
};

/// Flights that have ended and of which the rank has not heard. Thread-safe: whoever makes progress on the engine fills
/// it, and it outlives the rank for those that end late.
class Inbox {
 public:
  void put(std::shared_ptr<Flight> flight, const CallResult& result) {
    const std::lock_guard lock(mutex_);
    flight->result = result;
    landed_.push_back(std::move(flight));
    any_.store(true, std::memory_order_release);
  }
  void take(std::vector<std::shared_ptr<Flight>>& to) {
    const std::lock_guard lock(mutex_);
    to.swap(landed_);
    landed_.clear();
    any_.store(false, std::memory_order_relaxed);
  }
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Flight>> landed_;
  std::atomic<bool> any_{false};
};

}  // namespace unisono::kernels
