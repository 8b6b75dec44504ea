// The shared segment: one nameless piece of memory that all endpoints of a machine map.
//
//   SegmentHeader                          who may talk: written once by the creator
//   EndpointBlock  [endpoint]              process, state, the word it sleeps on
//   DirectoryEntry [endpoint][entry]       which communicators' lanes stand in the endpoint's arena, and where
//   SendCursors    [receiver][sender]      how far the sender has published; one line, written by the sender
//   ReceiveCursors [sender][receiver]      how far the receiver has consumed; one line, written by the receiver
//   rings          [receiver][sender]      a data ring and a control ring, bytes
//   CommunicatorRecord [endpoint][record]  flight records (network/flight_record.hpp)
//   NativeCounters   [endpoint]              counters (network/counters.hpp)
//   JobOrders                              what tools ask of the job
//   arenas         [endpoint]              memory that the endpoint hands out: buffers and lanes (arena.hpp)
//
// Fresh memory reads as zero, and zero is the initial state of every cursor and block, so a ring that
// is never used never costs a page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "network/counters.hpp"
#include "network/flight_record.hpp"
#include "network/poe.hpp"

namespace unisono::shm {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLanes = 2;
inline constexpr std::uint64_t kSegmentMagic = 0x544e454d47455355;  ///< "USEGMENT" in memory order
inline constexpr std::uint32_t kSegmentVersion = 6;
inline constexpr std::uint32_t kMaxEndpoints = 1024;

/// Position of a lane in the pairs of a cursor line.
constexpr std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }

/// Name of a lane in a message to people.
constexpr const char* name_of(Lane lane) { return lane == Lane::kData ? "data" : "control"; }

inline constexpr std::uint64_t kNeverCopied = ~std::uint64_t{0};

/// From how many bytes on (of a message; of a vector or block) the kernel copies between ordinary buffers, since that
/// is faster than cells; kNeverCopied: it never is. What is taken where nobody has measured stands here.
struct CopyFrom {
  std::uint64_t one_way = 65536;           ///< messages, and collectives with a root that only move data
  std::uint64_t exchange = 65536;          ///< allgather, alltoall
  std::uint64_t reduction = kNeverCopied;  ///< reduce, allreduce, reduce_scatter
  std::uint64_t measured = 0;  ///< 1: found by a measurement, so it may be another one in the next run of a program
  static constexpr CopyFrom never() { return {kNeverCopied, kNeverCopied, kNeverCopied, 0}; }
  bool ever() const { return one_way != kNeverCopied || exchange != kNeverCopied || reduction != kNeverCopied; }
  friend bool operator==(const CopyFrom&, const CopyFrom&) = default;
};

/// Sizes of a segment, in bytes, by lane. A ring is a power of two and holds two of the largest
/// records (payload and one line of header), so a record always finds a contiguous place.
struct Geometry {
  std::uint32_t endpoints = 1;
  std::uint32_t ring_bytes[kLanes] = {256 * 1024, 32 * 1024};
  std::uint32_t max_payload[kLanes] = {64 * 1024, 1024};
  /// Address space of one endpoint's arena, a multiple of kArenaAlignment. Only what is touched costs memory.
  std::uint64_t arena_bytes = std::uint64_t{1} << 34U;
  std::uint32_t one_process = 0;  ///< 1: all endpoints are threads of the creator's process
  std::uint32_t reserved = 0;
  CopyFrom copy_from{};
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// Arenas begin and end at multiples of a huge page.
inline constexpr std::uint64_t kArenaAlignment = std::uint64_t{2} << 20U;

/// The arena that each endpoint of a job of processes gets: generous, for it is address space alone.
constexpr std::uint64_t arena_bytes_for(std::uint32_t endpoints) {
  constexpr std::uint64_t kAll = std::uint64_t{1} << 40U;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 38U;
  const std::uint64_t share = kAll / (endpoints == 0 ? 1 : endpoints) / kArenaAlignment * kArenaAlignment;
  return share < kMost ? share : kMost;
}

/// First bytes of the segment.
struct alignas(kLineBytes) SegmentHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved;
  Geometry geometry;
  std::uint64_t total_bytes;
};

/// Whether an endpoint takes part.
enum class EndpointState : std::uint32_t { kAbsent = 0, kJoined = 1, kLeft = 2 };

/// What an endpoint shows the others. Words that are written often and words that are read often stand in
/// different pairs of lines, for processors fetch lines in pairs.
struct EndpointBlock {
  /// Counts what may interest the endpoint. Written by its peers.
  alignas(2 * kLineBytes) std::atomic<std::uint32_t> activity;

  /// Written by the endpoint when it joins and leaves.
  alignas(kLineBytes) std::atomic<EndpointState> state;
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint64_t> start_time;       ///< of the process, in clock ticks since boot; tells a reused pid
  std::atomic<std::uint32_t> thread;           ///< the one that joined: whose affinity says where the endpoint runs
  std::atomic<std::uint32_t> can_order_peers;  ///< 1: membarrier works here, both ways; see Parking
  std::atomic<std::uint64_t> nonce_address;    ///< in the process, of what KernelCopy tries; 0: it copies nothing
  std::atomic<std::uint64_t> nonce[2];         ///< what stands there
  std::atomic<std::uint64_t> doorbell;         ///< number of its Doorbell; 0: it has none
  std::atomic<std::uint32_t> core;             ///< where it last waited for long, plus 1; 0: nowhere

  /// The word the endpoint sleeps on, and what senders must do about it: bits of `ParkedBit`.
  alignas(2 * kLineBytes) std::atomic<std::uint32_t> parked;

  /// For tools, of a job of several hosts; written once, the name first.
  alignas(kLineBytes) std::atomic<std::uint64_t> network;  ///< what carries data to other hosts: text, with zeros
  std::atomic<std::uint64_t> seat;  ///< this endpoint's number in the job (32 bits), the job's endpoints; 0: one host
};
static_assert(sizeof(EndpointBlock) == 4 * kLineBytes);

/// Where the lanes of a communicator stand. Written by the endpoint whose entry it is.
struct DirectoryEntry {
  std::atomic<std::uint64_t> key;    ///< names the communicator; 0: none
  std::atomic<std::uint64_t> place;  ///< offset in the segment. Written before the key
};
/// Communicators whose lanes one endpoint can own at a time.
inline constexpr std::uint32_t kDirectoryEntries = 512;

/// Written by the sender of a pair (`wants_space` is cleared by the receiver).
struct alignas(kLineBytes) SendCursors {
  std::atomic<std::uint64_t> published[kLanes];    ///< bytes ever published on the ring
  std::atomic<std::uint32_t> wants_space[kLanes];  ///< 1: the sender found the ring full and awaits a release
};

/// Written by the receiver of a pair.
struct alignas(kLineBytes) ReceiveCursors {
  std::atomic<std::uint64_t> consumed[kLanes];  ///< bytes ever consumed of the ring
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<EndpointState>::is_always_lock_free,
              "processes share these words, so they must need no lock");
static_assert(sizeof(SendCursors) == kLineBytes && sizeof(ReceiveCursors) == kLineBytes);

/// A mapping of a segment. The memory lives as long as somebody maps it; it never has a name.
/// Thread-safe: it hands out addresses only.
class Segment {
 public:
  /// Makes a segment (memfd, sealed against change of size) and maps it. Throws Error: kCapacity for
  /// too many endpoints or an impossible geometry, kOutOfMemory if the system refuses.
  static std::shared_ptr<Segment> create(const Geometry& geometry);
  /// Maps a segment received as file descriptor `fd`, which stays the caller's. Throws
  /// Error(kBootstrap) if it is not a sealed segment of this version.
  static std::shared_ptr<Segment> attach(int fd);
  /// Maps a segment for reading only, to look at a job from outside. Nothing of it may be written. Throws as `attach`.
  static std::shared_ptr<Segment> observe(int fd);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Read once at creation or attachment: later changes of the shared header have no effect.
  const Geometry& geometry() const { return geometry_; }
  std::uint32_t size() const { return geometry_.endpoints; }

  EndpointBlock& endpoint(std::uint32_t endpoint) const;
  /// The kDirectoryEntries entries of an endpoint.
  DirectoryEntry* directory(std::uint32_t endpoint) const;
  SendCursors& send_cursors(std::uint32_t sender, std::uint32_t receiver) const;
  ReceiveCursors& receive_cursors(std::uint32_t sender, std::uint32_t receiver) const;
  /// First byte of a ring; 64-byte aligned.
  std::byte* ring(std::uint32_t sender, std::uint32_t receiver, Lane lane) const;

  /// The kRecordedCommunicators flight records of an endpoint.
  CommunicatorRecord* records(std::uint32_t endpoint) const;
  NativeCounters& counters(std::uint32_t endpoint) const;
  JobOrders& orders() const;

  /// First byte of an endpoint's arena, at a multiple of kArenaAlignment.
  std::byte* arena(std::uint32_t endpoint) const;
  /// Where an address lies in the segment, in bytes from its start, which is the same on all endpoints; only
  /// arenas count. Zero: it is no address of an arena.
  std::uint64_t offset_of(const void* address, std::uint64_t bytes) const {
    const auto distance = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    if (distance < arenas_ || distance >= total_ || bytes > total_ - distance) return 0;
    return any_detached_.load(std::memory_order_acquire) && detached(distance, bytes) ? 0 : distance;
  }
  /// The address of such an offset here; null unless `bytes` from there lie in arenas.
  std::byte* at(std::uint64_t offset, std::uint64_t bytes) const {
    return offset >= arenas_ && offset < total_ && bytes <= total_ - offset ? base_ + offset : nullptr;
  }

  /// Gives an arena's bytes pages of this process's own, with the same contents; peers that still write to them write
  /// to pages that nobody reads. From then on `offset_of` does not know them. What lies on the same pages goes with
  /// them. Not for segments of one process, whose threads see the same pages whatever is done.
  void detach(std::byte* address, std::uint64_t bytes);

  /// The descriptor to hand to others. It stays open, so that `unisono dump` finds the segment through the process;
  /// -1 if `attach` found no descriptor left for it.
  int descriptor() const { return descriptor_; }

 private:
  Segment(const Geometry& geometry, std::byte* base, int descriptor);
  static std::shared_ptr<Segment> map(int fd, bool writable);
  bool detached(std::uint64_t offset, std::uint64_t bytes) const;

  Geometry geometry_;
  std::byte* base_;
  int descriptor_;
  std::uint64_t arenas_;  ///< where they begin
  mutable std::mutex detached_mutex_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> detached_;  ///< offsets: from, until
  std::atomic<bool> any_detached_{false};
  std::uint64_t total_;
};

}  // namespace unisono::shm
