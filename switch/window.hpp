// The member's side of aggregation: what goes up next, and what must go again (docs/switch-protocol.md).
//
// The window clocks itself, as in SwitchML (NSDI 2021): the result of turn t lets turn t + slots go. Nothing else
// limits it but this: a member is never more than `rounds_ahead` rounds of slots beyond the oldest turn that it has no
// result of, so that what a switch may ask for again after a restart is bounded, and is kept.
//
// No sockets and no clock: frames are given to it, with the time, and it gives frames to its outlet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "network/udp/round_trip.hpp"
#include "switch/call_turns.hpp"
#include "switch/frame.hpp"
#include "switch/windows_to_switch.hpp"

namespace unisono::slots {

using udp::RoundTrip;
using udp::Span;

/// What is fixed when a communicator is made.
struct WindowShape {
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  std::uint32_t rank = 0;                     ///< in the tree's order
  std::uint32_t ranks = 1;                    ///< of the communicator
  std::uint32_t position = 0;                 ///< of this member among its switch's children
  std::uint32_t slots = 64;                   ///< as in PoolShape
  std::uint16_t payload_bytes = 1344;         ///< as in PoolShape
  std::uint32_t rounds_ahead = 2;             ///< at least 1
  std::uint64_t generation = 0;               ///< of the switch's pool, if it is known already
  std::uint64_t incarnation = 0;              ///< larger each time that this member has forgotten what it contributed
  std::string peer = "the switch";            ///< name and address, for errors
  Span longest_pause = Span::max();           ///< between repeats, so that a switch that is there is heard of so often
  std::shared_ptr<WindowsToSwitch> others{};  ///< nothing: there are none
};

/// Where a window's frames go. The payload is valid during the call only, in which the window must not be used.
class Uplink {
 public:
  virtual ~Uplink() = default;
  virtual void up(const SlotFrame& head, std::span<const std::byte> payload) = 0;
};

/// Why a window has failed. It sends nothing more, and its calls do not end.
struct WindowFailure {
  ErrorCode code{};
  std::string text;
};

/// What a window has seen.
struct WindowCounters {
  std::uint64_t sent = 0;      ///< contributions, repeats included
  std::uint64_t repeated = 0;  ///< of these, for want of a result
  std::uint64_t results = 0;   ///< taken
  std::uint64_t late = 0;      ///< results that had come before, or of generations that are over
  std::uint64_t faults = 0;    ///< frames that no switch sends which keeps to the protocol
  std::uint64_t resumed = 0;   ///< generations begun
};

/// The window of one rank in one communicator. Memory is allocated at construction only (but for the text of a
/// failure), 2 rounds_ahead * slots payloads of it. Not thread-safe: one thread at a time.
class Window {
 public:
  /// Calls that may be open at once.
  static constexpr std::uint32_t kMostCalls = kMaxOutstandingCalls;

  /// Throws Error(kInvalidArgument) if the shape is not allowed. `uplink` must outlive the window.
  Window(const WindowShape& shape, Uplink& uplink);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Begins a call behind those that were begun before; its number, from 0. Nothing if kMostCalls are open. Throws
  /// Error(kInvalidArgument) if slots do not carry the call. What can go at once goes.
  std::optional<std::uint64_t> start(const SlotCall& call, Time now);
  /// Whether another call can be begun.
  bool has_room() const { return !stopped_ && next_call_ - first_call_ < kMostCalls; }
  /// Name and address of the switch.
  const std::string& peer() const { return shape_.peer; }
  /// Whether a call has ended: its results stand in dst, and its buffers are free.
  bool done(std::uint64_t number) const;
  /// Takes a frame that the switch has sent, as the caller knows, and in which `parse` has found no fault. `path`: how
  /// long frames take to the switch and back, as this one says; nothing if it does not say it.
  void take(const FrameView& frame, Time now, std::optional<Span> path = {});
  /// Does what is due: repeats, and deadlines. To be called at `next_due`; may be called at any time.
  void tick(Time now);
  /// Before this time `tick` has nothing to do; Time::max() if only a frame or a call changes that.
  Time next_due() const { return due_; }

  // For members that go on without the switch.

  /// Nothing more is sent or taken; calls that have not ended stay open, and none can be begun.
  void stop();
  /// The turns of all calls that were begun lie below.
  std::uint64_t end() const { return end_; }
  /// What this member gave to a turn, as it went.
  struct Contribution {
    SlotFrame head{};
    std::span<const std::byte> payload;
    bool has_result = false;
  };
  /// Nothing if it has given nothing, or too long ago.
  std::optional<Contribution> contribution(std::uint64_t turn) const;
  /// The result of such a turn has come by another way, if the turn lacked one; it is stored. Only after `stop`.
  void give(std::uint64_t turn, std::span<const std::byte> result);
  /// Where src and dst are the same memory: what a call gave to the turns from `turn` on stands there again, in the
  /// place of results. The call's number, as `start` gave it. Only after `stop`.
  void restore(std::uint64_t number, std::uint64_t turn);
  /// Whom the oldest turn without a result waits for, as the switch last said: a rank, kEveryone for a switch above, or
  /// nothing if that is not known.
  std::optional<std::uint32_t> awaited() const;
  /// Whether that is a switch above, and the rank one of those that it waits for, if it has named any: the first below
  /// a switch of which nothing has come.
  bool waits_above() const { return missing_ == 0; }

  const std::optional<WindowFailure>& failure() const { return failure_; }
  const WindowCounters& counters() const { return counters_; }
  const RoundTrip& round_trip() const { return round_trip_; }
  std::uint64_t generation() const { return generation_; }
  /// The oldest turn without a result.
  std::uint64_t lacking() const { return lacking_; }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// So many results of later turns say that something of a turn was lost.
  static constexpr std::uint8_t kReordered = 3;
  /// By so much a result may be later than usual before it counts as lost, at least.
  static constexpr Span kGrain = std::chrono::microseconds(500);
  /// So often the time until the next repeat doubles.
  static constexpr std::uint32_t kMostDoublings = 6;
  /// So many turns may go again before one of them is answered.
  static constexpr std::uint32_t kLeastAsking = 8;
  /// Doublings of what the switch itself takes to answer, which results may take before they count as lost.
  static constexpr std::uint32_t kMostOverAnswer = 3;

  /// A turn that was contributed to, and is kept so that it can be again.
  struct Kept {
    std::uint64_t turn = kNever;
    SlotFrame head{};
    std::uint32_t call = 0;  ///< place in calls_
    Time first_sent{};       ///< in this generation
    Time sent{};             ///< last
    Time answered_at{};      ///< in this generation, if it went twice: was that in vain?
    Time due = Time::max();
    std::uint32_t sends = 0;  ///< in this generation
    std::uint8_t later = 0;   ///< results of later turns that have come meanwhile
    bool asks = false;        ///< went again since it was due, and has not been answered
    bool has_result = false;  ///< in dst, from whatever generation
    bool answered = false;    ///< in this generation
  };
  struct Open {
    SlotCall call{};
    CallTurns turns;
    std::uint64_t base = 0;  ///< first turn
    std::uint64_t left = 0;  ///< turns without a result
  };

  static WindowShape checked(WindowShape shape);
  void check(const SlotCall& call) const;
  Kept& kept(std::uint64_t turn) { return kept_[turn % kept_.size()]; }
  std::span<const std::byte> payload(const Kept& one) const;
  std::uint64_t ahead() const { return std::uint64_t{shape_.rounds_ahead} * shape_.slots; }

  void tell_busy();
  void offer(std::uint64_t from, std::uint64_t to, Time now);
  void offer(std::uint64_t turn, Time now);
  void build(std::uint64_t turn);
  void send(Kept& one, Time now);
  void repeat_what_is_due(Time now);
  void take_result(const FrameView& frame, Time now);
  Span timeout(std::uint32_t repeats) const;
  void measure(Kept& one, Time now);
  void measure_again(Kept& one, Time now);
  void store(Kept& one, const FrameView& frame);
  void slide(Time now);
  void repeat_earlier(std::uint64_t turn, Time now);
  void take_begin(const SlotFrame& head, Time now);
  void take_missing(const SlotFrame& head, Time now);
  void send_resume(Time now);
  SlotFrame head(SlotKind kind) const;
  void fail(ErrorCode code, const std::string& text);
  std::string place_of(const Open& open) const;

  WindowShape shape_;
  WindowsToSwitch& others_;
  Uplink& uplink_;
  RoundTrip round_trip_;  ///< from a contribution to the result
  RoundTrip answer_;      ///< from a repeat to the word that others are missing
  std::vector<Kept> kept_;
  std::unique_ptr<std::byte[]> payloads_;  ///< not touched before it is used
  std::array<Open, kMostCalls> calls_{};
  std::uint64_t first_call_ = 0;  ///< numbers of open calls: first_call_ <= number < next_call_
  std::uint64_t next_call_ = 0;
  std::uint64_t end_ = 0;                 ///< turns of all calls that were begun
  std::uint64_t built_ = 0;               ///< turns that were ever contributed to lie below
  std::uint64_t lacking_ = 0;             ///< below, there is a result of every turn
  std::uint64_t unanswered_ = 0;          ///< below, every turn was answered in this generation, or is before its begin
  std::uint64_t begin_ = 0;               ///< of this generation
  std::uint64_t held_ = kNever;           ///< the lowest turn that waits for its part of what may be on its way
  bool busy_ = false;                     ///< counted among `others`
  std::uint32_t asking_ = 0;              ///< turns that ask
  std::uint32_t may_ask_ = kLeastAsking;  ///< so many at once, and the oldest
  std::uint32_t backoff_ = 0;  ///< doublings of a first timeout: answers took so much longer than samples say

  std::uint64_t generation_;
  bool resuming_ = true;
  std::uint32_t resume_sends_ = 0;
  Time resume_due_{};
  Time due_{};

  std::uint64_t missing_turn_ = kNever;  ///< what the switch last said of a turn that waits
  std::uint32_t missing_rank_ = 0;
  std::uint32_t missing_ = 0;
  bool heard_ = false;
  bool stopped_ = false;
  std::optional<WindowFailure> failure_;
  WindowCounters counters_;
};

}  // namespace unisono::slots
