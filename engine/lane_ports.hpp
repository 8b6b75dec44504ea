// The lanes of one communicator from one rank's side, and the work of one segment on them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/lower.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/parking.hpp"

namespace unisono::cclo {

/// A region of a rank's call: mapped here, or an address of the rank's process, for kernel copy.
struct FarRegion {
  std::byte* mapped = nullptr;
  std::uint64_t address = 0;
};

/// The regions of one rank's call, as this process reaches them.
struct ReachableRegions {
  FarRegion src, dst;
};

/// What one call binds a lowered program to.
struct Frame {
  std::array<std::byte*, 5> regions{};      ///< by Region
  const ReachableRegions* peers = nullptr;  ///< by rank; for programs that touch memory of peers
  const LoweredProgram* program = nullptr;
  std::uint32_t digest = 0;  ///< of the communicator's calls up to this one
  bool copies = false;       ///< some region of a peer is reached by kernel copy

  std::byte* at(const Piece& piece) const { return regions[static_cast<std::size_t>(piece.region)] + piece.offset; }
  const FarRegion& far(std::uint32_t rank, const Piece& piece) const {
    return piece.region == Region::kSrc ? peers[rank].src : peers[rank].dst;
  }
  /// Null if it is not mapped here.
  std::byte* at(std::uint32_t rank, const Piece& piece, std::uint64_t done) const {
    std::byte* const mapped = far(rank, piece).mapped;
    return mapped == nullptr ? nullptr : mapped + piece.offset + done;
  }
};

/// What came over a lane although something else was due, or memory of a peer that cannot be copied.
struct LaneFault {
  std::uint32_t peer = 0;
  bool mismatch = false;  ///< a message of another call, or the ranks' earlier calls differ; else it is malformed
  std::string refused{};  ///< not empty: why the peer's memory cannot be copied
};

/// Access to the memory of peers has been forbidden, for the communicator has failed.
struct AccessBanned {};

/// One rank's ends of all lanes of a communicator's collective space.
///
/// A message of more than `segment_bytes` is cut into segments of exactly that size and a rest; each takes a line, and,
/// beyond 48 bytes, cells. The framing is the same for every executor, so each rank may choose its own.
class LanePorts {
 public:
  /// `endpoints` by rank, for `copy`; both outlive this.
  void open(const shm::LaneSet& lanes, shm::LaneSpace space, std::uint32_t rank, std::uint32_t size,
            shm::KernelCopy* copy = nullptr, std::span<const std::uint32_t> endpoints = {});

  /// Makes the room that kernel copy needs, which otherwise the first call that copies does.
  void prepare_copies() { far_->tiles.resize(kAllTiles); }

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(send.size()); }
  std::uint32_t segment_bytes() const { return segment_bytes_; }
  /// The most bytes of an action that `advance` does at once.
  std::uint64_t segment_of(const Action& action) const {
    constexpr std::uint64_t kLocalBlock = std::uint64_t{256} * 1024;
    return action.from.count != 0 || action.forward.count != 0 ? segment_bytes_ : kLocalBlock;
  }
  /// Whether all that a program sends over one lane finds room in it at once.
  bool holds(const LoweredProgram& program) const;

  /// Does the next segment of an action if everything it needs is there: messages, and room for what it sends. `done`
  /// counts the bytes of the action that are finished. Throws LaneFault, or AccessBanned. Allocates nothing.
  bool advance(const Action& action, const Frame& frame, std::uint64_t& done);
  /// Calls `use(rank)` for the ranks without which `advance` cannot go on: whose messages have not come, or, if all
  /// have, who must take some before there is room.
  template <class Use>
  void for_each_awaited(const Action& action, const LoweredProgram& program, Use&& use) const {
    if (far_->gone) {
      use(*far_->gone);
      return;
    }
    bool missing = false;
    for (std::uint32_t i = action.from.begin; i < action.from.begin + action.from.count; ++i) {
      if (receive[program.ranks[i]].has_line()) continue;
      missing = true;
      use(program.ranks[i]);
    }
    if (missing) return;
    for (std::uint32_t i = action.forward.begin; i < action.forward.begin + action.forward.count; ++i) {
      use(program.ranks[i]);
    }
  }
  /// Whether an action is finished; one without elements is when it has been advanced once.
  static bool finished(const Action& action, std::uint64_t done) { return done > 0 && done >= action.bytes; }

  static constexpr std::uint64_t head(std::uint64_t bytes, std::uint32_t tag) {
    return bytes | std::uint64_t{tag} << 32U;
  }
  std::vector<shm::LaneSender> send;                  ///< by rank
  std::vector<shm::LaneReceiver> receive;             ///< by rank
  shm::TouchGuard guard;                              ///< of the memory of peers
  std::uint64_t streaming_bytes = ~std::uint64_t{0};  ///< actions of more than this bypass the caches

 private:
  std::uint32_t rank_ = 0;
  std::uint32_t segment_bytes_ = 0;
  /// Operands and results of one step, each here or with a peer.
  struct Operands {
    std::uint32_t inputs = 0;
    std::uint32_t results = 0;
  };
  /// Memory of a peer that is copied.
  struct Copied {
    std::uint32_t rank = 0;
    std::uint64_t address = 0;  ///< 0: it is mapped
  };
  static constexpr std::uint64_t kAllTiles = std::uint64_t{256} << 10U;
  [[gnu::noinline]] void name_far_operands(const Action& action, const Frame& frame, std::uint64_t done);
  [[gnu::noinline]] bool compute_by_copy(const Action& action, Operands operands, std::uint64_t bytes);
  bool compute_tile(const Action& action, Operands operands, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t tile);
  [[gnu::noinline]] bool copied(const shm::CopyOutcome& outcome, std::uint32_t rank, bool stores);

  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> outputs_;
  /// What only kernel copy needs, apart from what every call touches.
  struct Copying {
    shm::KernelCopy* copy = nullptr;
    std::span<const std::uint32_t> endpoints;
    std::vector<Copied> sources, outputs;  ///< by place in sources_ and outputs_
    std::vector<const std::byte*> tile_sources;
    std::vector<std::byte*> tile_outputs;
    std::vector<std::byte> tiles;       ///< what is copied from peers and to them
    std::optional<std::uint32_t> gone;  ///< a rank whose process had ended when its memory was copied
  };
  std::unique_ptr<Copying> far_ = std::make_unique<Copying>();
};

/// As memcpy, for at most kInlineBytes bytes: no call, few branches.
inline void copy_inline(std::byte* out, const std::byte* in, std::uint32_t bytes) {
  if (bytes >= 16) {
    std::byte head[16];
    std::byte middle[16];
    std::byte tail[16];
    const std::uint32_t second = bytes >= 32 ? 16 : 0;
    std::memcpy(head, in, 16);
    std::memcpy(middle, in + second, 16);
    std::memcpy(tail, in + bytes - 16, 16);
    std::memcpy(out, head, 16);
    std::memcpy(out + second, middle, 16);
    std::memcpy(out + bytes - 16, tail, 16);
  } else if (bytes >= 8) {
    std::uint64_t head;
    std::uint64_t tail;
    std::memcpy(&head, in, 8);
    std::memcpy(&tail, in + bytes - 8, 8);
    std::memcpy(out, &head, 8);
    std::memcpy(out + bytes - 8, &tail, 8);
  } else if (bytes >= 4) {
    std::uint32_t head;
    std::uint32_t tail;
    std::memcpy(&head, in, 4);
    std::memcpy(&tail, in + bytes - 4, 4);
    std::memcpy(out, &head, 4);
    std::memcpy(out + bytes - 4, &tail, 4);
  } else {
    for (std::uint32_t i = 0; i < bytes; ++i) out[i] = in[i];
  }
}

}  // namespace unisono::cclo
