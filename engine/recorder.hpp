// Writes the flight record of one communicator (network/flight_record.hpp): four words as a call begins, one as it
// ends.
#pragma once

#include <sys/single_threaded.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/call.hpp"
#include "core/error.hpp"
#include "engine/matcher.hpp"
#include "network/flight_record.hpp"

namespace unisono::cclo {

/// A recorded call.
struct RecordMark {
  std::uint64_t position = 0;
  std::uint64_t head = 0;
};

/// What is recorded of a call that does not change from one time to the next.
struct RecordEntry {
  std::uint64_t head = 0;  ///< without sequence and state
  std::uint64_t count = 0;
  std::uint64_t peer = 0;
  std::uint64_t algorithm = 0;  ///< of which the factor alone is known as a call begins

  /// `tag_or_signature`: of CallRecord::peer; `flags`: of CallRecord::count.
  static RecordEntry of(const Call& call, std::uint32_t tag_or_signature, std::uint64_t flags, double post_scale = 1);
};

/// The flags of what a receive takes.
inline std::uint64_t record_flags(const Wanted& wanted) {
  return (wanted.any_source ? kRecordedAnySource : 0) | (wanted.any_tag ? kRecordedAnyTag : 0);
}

/// Thread-safe in so far as the record may tell a call of one thread with words of another's, if both begin at once.
class CallRecorder {
 public:
  /// Takes a free record of `records` (kRecordedCommunicators; or null), or else one that nobody sees.
  CallRecorder(CommunicatorRecord* records, std::uint32_t number, std::uint16_t epoch, std::uint32_t rank,
               std::uint32_t size);
  ~CallRecorder();
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  /// Inlined wherever it stands, for calls of a few hundred instructions begin with it.
  [[gnu::always_inline]] RecordMark begin(const RecordEntry& entry, std::uint32_t sequence) {
    std::uint64_t position = 0;
    if (__libc_single_threaded != 0) {
      position = record_->begun.load(std::memory_order_relaxed);
      record_->begun.store(position + 1, std::memory_order_relaxed);
    } else {
      position = record_->begun.fetch_add(1, std::memory_order_relaxed);
    }
    const std::uint64_t head = entry.head | sequence;
    CallRecord& call = record_->calls[position % kRecordedCalls];
    // A reader that finds the same head before and after the other words has read one call (flight_reader.hpp).
    call.head.store(0, std::memory_order_relaxed);
    call.count.store(entry.count, std::memory_order_release);
    call.peer.store(entry.peer, std::memory_order_release);
    call.algorithm.store(entry.algorithm, std::memory_order_release);
    call.head.store(head | with(RecordedState::kBegun), std::memory_order_release);
    return {position, head};
  }
  /// `word`: CallRecord::algorithm.
  void set_algorithm(const RecordMark& mark, std::uint64_t word) {
    record_->calls[mark.position % kRecordedCalls].algorithm.store(word, std::memory_order_relaxed);
  }
  void end(const RecordMark& mark, RecordedState state) {
    if (record_->begun.load(std::memory_order_relaxed) - mark.position > kRecordedCalls) return;  // it gave way
    record_->calls[mark.position % kRecordedCalls].head.store(mark.head | with(state), std::memory_order_relaxed);
  }

  /// The call has waited since `since` for `awaited` ranks; `phase` says what for. Of several the first is told.
  void wait(const RecordMark& mark, std::chrono::steady_clock::time_point since, const char* phase,
            std::span<const std::uint32_t> awaited);
  /// It does no longer.
  void waits_no_more(const RecordMark& mark);
  /// What people call the communicator, kRecordedName characters at most; empty: nothing.
  void name(std::string_view name);
  /// The communicator in errors, with its name where it has one. Thread-safe.
  std::string title() const;
  /// Calls begun so far.
  std::uint64_t begun() const { return record_->begun.load(std::memory_order_relaxed); }
  /// This rank makes no further call: `calls` and `digest` as of CallOrder. What it has called stays in sight.
  void leave(std::uint32_t calls, std::uint32_t digest);
  const CommunicatorRecord& record() const { return *record_; }
  void revoked() { record_->revoked.store(1, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t with(RecordedState state) {
    return static_cast<std::uint64_t>(state) << kRecordedStateShift;
  }

  std::unique_ptr<CommunicatorRecord> own_;
  CommunicatorRecord* record_ = nullptr;
  bool left_ = false;
};

}  // namespace unisono::cclo
