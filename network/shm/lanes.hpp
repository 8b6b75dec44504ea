// Lanes: the shortest way between two ranks of a communicator, through memory that both map.
//
// A lane leads from one rank to another and has one writer. It is a ring of cache lines, each of which carries up to
// 48 bytes of payload and its own header (HeaderLine of the specification), and a ring of cells for payloads that do
// not fit. The header's second word holds the number of the line; one store of it publishes line and payload. Numbers
// only grow, so nothing is ever reset: a line whose number is not the awaited one has not been written yet.
//
// The receiver says in a line of its own how far it has read. It says so every few lines only, and the sender looks
// only when it has filled what it knew to be free, so that this line hardly ever travels.
//
//   LaneBlock                       of a communicator: one page of head, then
//   TouchLine [rank]                whether the rank is at the memory of others
//   WindowLine [rank]               the rank's window, and
//   visits    [rank][owner]         whether the rank is at the owner's
//   and of each set of lanes (LaneSpace)
//   LaneTail  [receiver][sender]    written by the receiver
//   LaneLine  [receiver][sender][kLaneLines]
//   cells     [receiver][sender]    cell_bytes each, in the sets of small collectives a fourth of that
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/generated/spec.hpp"
#include "network/shm/arena.hpp"
#include "network/shm/segment.hpp"
#include "network/shm/window_table.hpp"

namespace unisono::shm {

/// Payload bytes of a line.
inline constexpr std::uint32_t kInlineBytes = 48;
/// Lines of a lane; a power of two.
inline constexpr std::uint32_t kLaneLines = 32;
/// A receiver says at the latest after so many lines, or so much of the cells, that it has read them.
inline constexpr std::uint32_t kLaneReport = 8;
inline constexpr std::uint32_t kCellReport = 8;  ///< an eighth of the cells

/// What one line announces at most, by the cells of its lane: small enough that sender and receiver work side by side.
constexpr std::uint32_t segment_bytes_for(std::uint32_t cell_bytes) {
  constexpr std::uint32_t kMost = 32 * 1024;
  return cell_bytes / 4 < kMost ? cell_bytes / 4 : kMost;
}

/// One cache line of a lane. Written by the sender only, but for the answers to a loan (engine/loans.hpp).
struct alignas(kLineBytes) LaneLine {
  std::array<std::byte, kInlineBytes> payload;
  std::uint64_t head;               ///< first word of HeaderLine: bytes, tag, type
  std::atomic<std::uint64_t> flag;  ///< second word: number and signature; publishes the line
};
static_assert(sizeof(LaneLine) == kLineBytes);

/// What a receiver says of a lane. A pair of cache lines, because processors fetch lines in pairs.
struct alignas(2 * kLineBytes) LaneTail {
  std::atomic<std::uint64_t> lines;  ///< lines read
  std::atomic<std::uint64_t> bytes;  ///< bytes of cells given back
  /// Not 0: the receiver keeps as many messages as it wants to. Short ones are to be announced, too, until it is 0
  /// again. Only for messages from point to point; seen by the sender with the next look at `lines`.
  std::atomic<std::uint32_t> full;
};

/// The sending end of a lane. One user at a time; private to its process.
struct LaneSender {
  LaneLine* lines = nullptr;
  std::byte* cells = nullptr;
  const LaneTail* tail = nullptr;
  EndpointBlock* peer = nullptr;  ///< to wake it
  std::uint64_t sent = 0;         ///< lines
  std::uint64_t read = 0;         ///< of these, known to be read
  std::uint64_t filled = 0;       ///< bytes of cells, gaps at the ring's end included
  std::uint64_t freed = 0;        ///< of these, known to be free again
  std::uint32_t cell_bytes = 0;   ///< a power of two
  bool full = false;              ///< what LaneTail::full said at the last look

  LaneLine& next() const { return lines[sent % kLaneLines]; }

  /// Whether a line is free; looks at the receiver's word if it must.
  bool has_line() {
    if (sent - read < kLaneLines) [[likely]]
      return true;
    look();
    return sent - read < kLaneLines;
  }
  /// Learns how far the receiver is. What it said of `full` before it gave back the last lines is seen with them, so at
  /// most kLaneLines lines are sent without knowing it.
  void look() {
    read = tail->lines.load(std::memory_order_acquire);
    full = tail->full.load(std::memory_order_relaxed) != 0;
  }

  /// Cells for `bytes` in one piece, or null if they are not free now. Not taken before `publish`.
  std::byte* cell(std::uint32_t bytes) {
    const std::uint64_t gap = gap_before(bytes);
    if (filled + gap + rounded(bytes) - freed > cell_bytes) {
      freed = tail->bytes.load(std::memory_order_acquire);
      if (filled + gap + rounded(bytes) - freed > cell_bytes) return nullptr;
    }
    return cells + ((filled + gap) & (cell_bytes - 1));
  }
  /// Notes that the cells which `cell` gave hold the payload of the line that is published next.
  void take_cell(std::uint32_t bytes) { filled += gap_before(bytes) + rounded(bytes); }

  /// Publishes the next line, whose payload has been written.
  void publish(std::uint64_t head, std::uint32_t signature) {
    LaneLine& line = next();
    ++sent;
    line.head = head;
    line.flag.store(static_cast<std::uint32_t>(sent) | std::uint64_t{signature} << 32U, std::memory_order_release);
  }

 private:
  static std::uint64_t rounded(std::uint32_t bytes) {
    return (std::uint64_t{bytes} + kLineBytes - 1) & ~(kLineBytes - 1);
  }
  std::uint64_t gap_before(std::uint32_t bytes) const {
    const std::uint64_t left = cell_bytes - (filled & (cell_bytes - 1));
    return left < rounded(bytes) ? left : 0;
  }
};

/// The receiving end of a lane. One user at a time; private to its process.
struct LaneReceiver {
  LaneLine* lines = nullptr;
  const std::byte* cells = nullptr;
  LaneTail* tail = nullptr;
  EndpointBlock* peer = nullptr;  ///< the sender, who may sleep until there is room
  std::uint64_t taken = 0;        ///< lines
  std::uint64_t reported = 0;     ///< of these, the sender has been told
  std::uint64_t emptied = 0;      ///< bytes of cells, gaps included
  std::uint64_t emptied_reported = 0;
  std::uint32_t cell_bytes = 0;

  LaneLine& next() const { return lines[taken % kLaneLines]; }
  /// The second header word that the next line will have.
  std::uint64_t awaited(std::uint32_t signature) const {
    return static_cast<std::uint32_t>(taken + 1) | std::uint64_t{signature} << 32U;
  }
  /// Whether the next line has come, whatever its signature.
  bool has_line() const {
    return static_cast<std::uint32_t>(next().flag.load(std::memory_order_acquire)) ==
           static_cast<std::uint32_t>(taken + 1);
  }
  /// The same for a thread that is not the lane's user, who may take the line meanwhile.
  bool stirs() {
    const std::uint64_t before = std::atomic_ref(taken).load(std::memory_order_relaxed);
    return static_cast<std::uint32_t>(lines[before % kLaneLines].flag.load(std::memory_order_acquire)) ==
           static_cast<std::uint32_t>(before + 1);
  }

  /// Where the cells of the next line's payload stand; null if that many cannot be.
  const std::byte* cell(std::uint32_t bytes) const {
    if (bytes > cell_bytes) return nullptr;
    return cells + ((emptied + gap_before(bytes)) & (cell_bytes - 1));
  }
  /// Notes that the cells of the line that is released next have been read.
  void release_cell(std::uint32_t bytes) { emptied += gap_before(bytes) + rounded(bytes); }

  /// The line has been read, and so have its cells. True if the sender was told, who may be waiting for it; `now`: it
  /// is told in any case.
  bool release(bool now = false) {
    std::atomic_ref(taken).store(taken + 1, std::memory_order_relaxed);  // others look at it: see `stirs`
    bool tells = false;
    if (taken - reported >= kLaneReport || now) {
      reported = taken;
      tail->lines.store(taken, std::memory_order_release);
      tells = true;
    }
    if (emptied - emptied_reported >= cell_bytes / kCellReport) {
      emptied_reported = emptied;
      tail->bytes.store(emptied, std::memory_order_release);
      tells = true;
    }
    return tells;
  }

 private:
  static std::uint64_t rounded(std::uint32_t bytes) {
    return (std::uint64_t{bytes} + kLineBytes - 1) & ~(kLineBytes - 1);
  }
  std::uint64_t gap_before(std::uint32_t bytes) const {
    const std::uint64_t left = cell_bytes - (emptied & (cell_bytes - 1));
    return left < rounded(bytes) ? left : 0;
  }
};

/// Whether a rank reads or writes memory of its peers right now. Written by the rank, in a cache line of its own.
struct alignas(kLineBytes) TouchLine {
  std::atomic<std::uint32_t> touching;
};

/// Who may touch whose memory, and until when. Before a rank gives a buffer back to its user after an error, it forbids
/// all access for good and waits until no rank is accessing it. Either the accessing rank sees the ban, or the owner
/// sees the access: both store, then load, with sequential consistency.
class TouchGuard {
 public:
  TouchGuard() = default;
  TouchGuard(std::atomic<std::uint32_t>& banned, TouchLine* lines, std::uint32_t rank)
      : banned_(&banned), lines_(lines), rank_(rank) {}
  /// Announces an access by this rank; false, and there must be none, if access is forbidden.
  bool enter() const {
    lines_[rank_].touching.fetch_add(1, std::memory_order_seq_cst);
    if (banned_->load(std::memory_order_seq_cst) == 0) return true;
    leave();
    return false;
  }
  void leave() const { lines_[rank_].touching.fetch_sub(1, std::memory_order_release); }
  void ban() const { banned_->store(1, std::memory_order_seq_cst); }
  bool banned() const { return banned_->load(std::memory_order_relaxed) != 0; }
  /// Whether a rank is at memory of its peers; meaningful after `ban`.
  bool touches(std::uint32_t rank) const { return lines_[rank].touching.load(std::memory_order_seq_cst) != 0; }

 private:
  std::atomic<std::uint32_t>* banned_ = nullptr;
  TouchLine* lines_ = nullptr;
  std::uint32_t rank_ = 0;
};

/// Sets of lanes of one communicator: collectives and point-to-point messages do not wait for each other, and neither
/// do messages and the answers to them. Of collectives, the large ones share a set, one after the other; the small ones
/// have several, from kSmall on, and take them in turn, so that as many may be in flight.
enum class LaneSpace : std::uint8_t { kCollective, kPointToPoint, kAnswers, kSmall };
inline constexpr std::uint32_t kSmallSets = 4;
/// The n-th set of small collectives.
constexpr LaneSpace small_set(std::uint32_t n) {
  return static_cast<LaneSpace>(static_cast<std::uint32_t>(LaneSpace::kSmall) + n);
}

struct LaneBlock;

/// The lanes of one communicator, as one of its members sees them. The block is made by the member of rank 0 in its
/// arena and found by the others through a table that only that member writes. Not thread-safe.
class LaneSet {
 public:
  /// `endpoints` by rank; `arena` is this endpoint's. `number` and `epoch` name the communicator. Throws Error:
  /// kCapacity or kOutOfMemory if this is rank 0's endpoint and has no place for the lanes.
  LaneSet(std::shared_ptr<Segment> segment, std::shared_ptr<Arena> arena, std::uint32_t self, std::uint32_t number,
          std::uint16_t epoch, std::span<const std::uint32_t> endpoints);
  /// Gives up this member's part; rank 0's endpoint uses the block again when all have done so. If it has not even made
  /// it yet, that is made up for when this endpoint makes its next set.
  ~LaneSet();
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  /// Whether the block is there; looks for it until rank 0 has made it. Throws Error(kCorruptMessage) if what is found
  /// cannot be it.
  bool open();

  LaneSender sender(LaneSpace space, std::uint32_t peer) const;
  LaneReceiver receiver(LaneSpace space, std::uint32_t peer) const;
  std::uint32_t cell_bytes(LaneSpace space) const {
    return space < LaneSpace::kSmall ? cell_bytes_ : small_cell_bytes(cell_bytes_);
  }
  TouchGuard touch_guard() const;
  WindowTable windows() const;

  /// Bytes of cells of each lane, for a communicator of that many ranks. A process may have hundreds of communicators,
  /// of which few carry much: beyond the first ones of an endpoint, `others`, they get less.
  static std::uint32_t cell_bytes_for(std::uint32_t ranks, std::uint32_t others = 0);
  /// The sets of small collectives together have as many cells as any other set.
  static constexpr std::uint32_t small_cell_bytes(std::uint32_t cell_bytes) { return cell_bytes / kSmallSets; }
  /// How many sets of small collectives there are. Beyond 64 ranks, whose lanes are many, none.
  static constexpr std::uint32_t small_sets(std::uint32_t ranks) { return ranks <= 64 ? kSmallSets : 0; }
  /// Up to how many bytes of payload a collective is small: then what one lane carries, be it the blocks of half the
  /// ranks, finds room in a fourth of its cells. Negative where none is.
  static std::int64_t small_bytes_for(std::uint32_t ranks);

 private:
  static LaneBlock* find(const Segment& segment, std::uint32_t owner, std::uint64_t key, std::uint32_t size,
                         std::uint32_t& cell_bytes);
  std::uint64_t place(LaneSpace space, std::uint32_t sender, std::uint32_t receiver) const;
  std::uint64_t cells_of(LaneSpace space, std::uint32_t sender, std::uint32_t receiver) const;
  void create();

  std::shared_ptr<Segment> segment_;
  std::shared_ptr<Arena> arena_;
  std::uint32_t self_;
  std::uint32_t rank_ = 0;
  std::uint64_t key_;
  std::uint32_t cell_bytes_;
  std::vector<std::uint32_t> endpoints_;
  std::uint32_t size_;
  LaneBlock* block_ = nullptr;
};

}  // namespace unisono::shm
