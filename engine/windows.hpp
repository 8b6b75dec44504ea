// The windows of a communicator whose members share memory: a put or get is one copy by who asks for it.
//
// Each rank shows its peers where its window is, as soon as it binds it: in an arena, in the one process of all, or in
// ordinary memory, for kernel copy. The rank that puts or gets does all the work; the owner takes no part. Where a
// window cannot be reached, or what is asked for is not inside it, nothing is done here: the owner serves the call by
// messages, and says what is wrong.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/counters.hpp"
#include "engine/engine.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/shm_poe.hpp"

namespace unisono::cclo {

/// A put or get of one rank.
struct WindowAccess {
  bool stores = false;  ///< a put
  std::uint32_t peer = 0;
  std::uint64_t offset = 0;   ///< in the peer's window
  std::byte* data = nullptr;  ///< own memory; of a put only read
  std::uint64_t bytes = 0;
};

/// One rank's side. Thread-safe.
class Windows {
 public:
  /// `endpoints` by rank; everything that is referred to outlives this.
  Windows(shm::ShmPoe& network, std::uint32_t rank, std::span<const std::uint32_t> endpoints, LaneTraffic traffic);

  /// Takes the lanes into use, and shows what was bound before. Once.
  void open(const shm::LaneSet& lanes, bool one_process, std::uint64_t streaming_bytes);

  /// Takes this rank's window from its peers, and waits until none of them is at it. Returns the ranks that still are
  /// after `patience`, in words, or nothing: those were stopped. `for_good`: no other will be shown.
  std::string hide(std::chrono::milliseconds patience, bool for_good);
  /// Shows the window that this rank's engine has bound, or that there is none. After `hide`.
  void show(Binding window);

  /// Does a whole put or get if the window can be reached, and `look_due` says no. Once it returns, the bytes are where
  /// they belong, for everybody. False if the call must go by messages; what it has copied until then does no harm, for
  /// the messages copy it again.
  bool try_reach(const WindowAccess& access) {
    return opened_.load(std::memory_order_acquire) && !look_due(access.peer) && reach(access);
  }
  /// The same, by who has looked at the peer.
  bool reach_after_look(const WindowAccess& access);
  /// A part of one, of at most `most` bytes from byte `done` on. Returns the bytes that are done, or 0.
  std::uint64_t reach_piece(const WindowAccess& access, std::uint64_t done, std::uint64_t most = kPiece);

  /// At most so many bytes of a call that does not block are copied before the engine looks at others.
  static constexpr std::uint64_t kPiece = std::uint64_t{256} << 10U;

 private:
  bool reach(const WindowAccess& access) {
    std::uint64_t done = 0;
    do {
      const std::uint64_t piece = reach_piece(access, done, kMost);
      if (piece == 0) return false;
      done += piece;
    } while (done < access.bytes);
    return true;
  }
  /// Who only puts and gets would never notice that a peer has died, or that the communicator was revoked. So the first
  /// access in about a millisecond goes through the engine, which looks.
  bool look_due(std::uint32_t peer) const;
  bool copy(const WindowAccess& access, std::uint64_t done, std::uint64_t bytes, std::uint64_t reach) const;
  shm::WindowTable::Place place_of(Binding window);

  /// At most so many bytes are copied between two looks at whether the window is still the same.
  static constexpr std::uint64_t kMost = shm::KernelCopy::kPiece;

  shm::ShmPoe& network_;
  std::shared_ptr<shm::Segment> segment_;
  std::uint32_t rank_;
  std::vector<std::uint32_t> endpoints_;  ///< by rank
  LaneTraffic traffic_;
  std::uint64_t streaming_bytes_ = ~std::uint64_t{0};
  bool one_process_ = false;
  std::atomic<bool> opened_{false};
  shm::WindowTable table_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> looked_;  ///< by rank: when its life was looked at, in ticks

  std::mutex mutex_;  ///< of what follows, and of who shows
  Binding window_;
  bool ended_ = false;
};

}  // namespace unisono::cclo
