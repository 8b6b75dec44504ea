// Loans: a long message of a collective stays where it is, and both ends copy it to where it belongs, once.
//
// The sender says in a line where the message stands. The receiver answers in the same line, whose payload nobody uses
// otherwise before it is released: where the message belongs, if the sender can help. Then both take pieces of it, each
// when it has time, until none is left: a root that is busy with its own block leaves the work to the others. When all
// pieces are copied the receiver releases the line, which tells the sender that its memory is its own again.
//
// Memory of arenas is reached by its mapping, ordinary memory by kernel copy. A receiver that cannot take the message
// so declines, and the sender streams it through the cells.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/counters.hpp"
#include "engine/executor.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/segment.hpp"
#include "network/shm/store_pace.hpp"

namespace unisono::cclo {

/// What came over a lane although something else was due, or memory of a peer that cannot be copied.
struct LaneFault {
  std::uint32_t peer = 0;
  bool mismatch = false;   ///< a message of another call, or the ranks' earlier calls differ; else it is malformed
  std::string refused{};   ///< not empty: why the peer's memory cannot be copied
  std::uint64_t came = 0;  ///< bytes of what came, if it is malformed; and of what was due
  std::uint64_t awaited = 0;
};

/// Access to the memory of peers has been forbidden, for the communicator has failed.
struct AccessBanned {};

/// Which of a process's own memory the kernel can copy; asks once for each of the last ranges.
class CopyableRegions {
 public:
  bool holds(const std::byte* region, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(region);
    const std::uintptr_t end = begin + bytes;
    for (const Range& range : known_) {
      if (range.begin <= begin && end <= range.end) return true;
    }
    if (!shm::KernelCopy::copies_own(region, bytes)) return false;
    note({begin, end});
    return true;
  }

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  /// What touches a known range becomes part of it: a buffer is used in blocks, and counts change.
  void note(Range found) {
    for (Range& range : known_) {
      if (range.begin > found.end || found.begin > range.end) continue;
      range = {std::min(range.begin, found.begin), std::max(range.end, found.end)};
      return;
    }
    known_[next_++ % known_.size()] = found;
  }

  std::array<Range, 8> known_{};
  std::size_t next_ = 0;
};

/// Why the memory of `rank` cannot be copied, for the call's error.
std::string refusal_of(const shm::CopyOutcome& outcome, std::uint32_t rank, bool stores);

/// What stands in the line of a message that is lent.
struct Loan {
  std::uint64_t address;              ///< of the message, as shm::Reach has it
  std::uint64_t bytes;                ///< of the message, and kFree
  std::atomic<std::uint64_t> answer;  ///< the receiver's, see below
  std::atomic<std::uint64_t> taken;   ///< bytes that one end copies or has copied, from the front on
  std::atomic<std::uint64_t> stored;  ///< of these, the sender has copied so many
  std::uint64_t fetched;              ///< and the receiver; its own note

  /// The lender has nothing else to do: the receiver leaves the message to it for a while, for what is written to
  /// another core's memory takes less time than what is read from there.
  static constexpr std::uint64_t kFree = std::uint64_t{1} << 63U;
  std::uint64_t length() const { return bytes & ~kFree; }

  // Answers; all others are addresses of the receiver's memory, as shm::Reach has them.
  static constexpr std::uint64_t kNone = 0;                          ///< the receiver has not come so far yet
  static constexpr std::uint64_t kAlone = shm::Reach::kNone;         ///< it copies all
  static constexpr std::uint64_t kDeclined = shm::Reach::kNone - 1;  ///< it cannot; the line is released
};
static_assert(sizeof(Loan) == shm::kInlineBytes && std::atomic<std::uint64_t>::is_always_lock_free);

/// One rank's side of the loans on a set of lanes. What the kernel refuses throws LaneFault, a ban AccessBanned. Not
/// thread-safe.
class Loans {
 public:
  /// A program whose messages are all shorter needs none.
  static constexpr std::uint64_t kWorthIt = 16384;

  /// What they need; `endpoints` by rank, for `copy`, and both outlive the loans.
  struct Ways {
    const shm::LaneSet& lanes;
    std::shared_ptr<shm::Segment> segment;
    bool one_process = false;         ///< every address can be reached
    shm::KernelCopy* copy = nullptr;  ///< null: there is none
    std::span<const std::uint32_t> endpoints;
    LaneTraffic traffic;
  };
  /// Before, nothing is lent.
  void open(const Ways& ways);

  /// Before a launch of a program in the windowed form: whether it lends, and from how many bytes on if the message is
  /// in ordinary memory.
  void begin(const LoweredProgram& program, bool lends, std::uint64_t least_copied);
  /// Whether the launch lends.
  bool lends() const { return lends_; }
  /// Whether this rank does nothing else in it.
  bool free() const { return free_; }

  /// Where a message to `peer` stands, for its Loan; shm::Reach::kNone: it is not to be lent.
  std::uint64_t offer(std::uint32_t peer, const std::byte* data, std::uint64_t bytes);
  /// The receiver's answer, for a message that belongs at `out`; `shared`: the sender may write there.
  std::uint64_t answer(std::uint32_t peer, const Loan& loan, const std::byte* out, bool shared);
  /// The sender copies the next piece. False if none is left, or it has not to copy any.
  bool store_piece(std::uint32_t peer, Loan& loan, const std::byte* data);
  /// The receiver copies the next piece; likewise.
  bool fetch_piece(std::uint32_t peer, Loan& loan, std::byte* out);

  std::uint64_t least = kWorthIt;  ///< bytes of messages that are lent; more than a line holds

 private:
  /// Memory of a peer: mapped, or reached by kernel copy, or not at all.
  struct Far {
    std::byte* mapped = nullptr;
    std::uint64_t address = 0;
  };
  Far reach(std::uint32_t peer, std::uint64_t word, std::uint64_t bytes) const;
  std::uint64_t word_of(std::uint32_t peer, const std::byte* data, std::uint64_t bytes);
  /// Takes the next piece: its begin and length; no length if none is left.
  static std::array<std::uint64_t, 2> take_piece(Loan& loan);

  std::optional<Ways> ways_;
  bool lends_ = false;
  bool free_ = false;
  std::uint64_t least_copied_ = shm::kNeverCopied;
  shm::TouchGuard guard_;
  std::vector<shm::StorePace> paces_;  ///< by the rank that reads what is stored
  CopyableRegions own_;
};

}  // namespace unisono::cclo
