// Counts what the engine does (network/counters.hpp).
#pragma once

#include <sys/single_threaded.h>

#include <algorithm>
#include <cstdint>

#include "network/counters.hpp"

namespace unisono::cclo {

/// Writes the counters of one endpoint, under its engine's lock. A count is a load and a store.
class Counters {
 public:
  /// `shared`: where others can read them; null if nobody can.
  explicit Counters(NativeCounters* shared) : words_(shared != nullptr ? shared : &own_) {}
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters() = default;

  void count(NativeCounter counter, std::uint64_t number = 1) {
    auto& word = words_->words[static_cast<std::size_t>(counter)];
    word.store(word.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
  }
  std::uint64_t value(std::size_t position) const { return words_->words[position].load(std::memory_order_relaxed); }

 private:
  NativeCounters own_{};
  NativeCounters* const words_;
};

/// What one rank moves over lanes and by direct access; known of a program before it runs.
struct LaneLoad {
  std::uint64_t messages = 0;      ///< sent
  std::uint64_t bytes = 0;         ///< of these
  std::uint64_t direct_bytes = 0;  ///< read and written in memory of ranks
  friend bool operator==(const LaneLoad&, const LaneLoad&) = default;
};

/// Counts what has gone over lanes, for calls that take no lock. Threads of an endpoint may count at once.
class LaneTraffic {
 public:
  explicit LaneTraffic(NativeCounters& counters) : words_(&counters) {}
  void add(const LaneLoad& load) {
    add(NativeCounter::kLaneMessages, load.messages);
    add(NativeCounter::kLaneBytes, load.bytes);
    if (load.direct_bytes != 0) add(NativeCounter::kDirectBytes, load.direct_bytes);
  }
  void add_direct(std::uint64_t bytes) { add(NativeCounter::kDirectBytes, bytes); }

 private:
  void add(NativeCounter counter, std::uint64_t number) {
    auto& word = words_->words[static_cast<std::size_t>(counter)];
    if (__libc_single_threaded != 0) {
      word.store(word.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
    } else {
      word.fetch_add(number, std::memory_order_relaxed);
    }
  }

  NativeCounters* words_;
};

}  // namespace unisono::cclo
