// What operands and results are on a CPU: the call's memory, that of peers, and the kernels that combine it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/executor.hpp"
#include "engine/kernels.hpp"
#include "engine/lane_channels.hpp"
#include "engine/lower.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/store_pace.hpp"

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

/// The memory of a call and what computes on it. Values of executor.hpp; what the kernel does not copy throws
/// LaneFault, a ban AccessBanned. One call at a time.
class alignas(shm::kLineBytes) KernelValues {
 public:
  /// `endpoints` by rank, for `copy`; both outlive this.
  void open(const shm::LaneSet& lanes, std::uint32_t size, shm::KernelCopy* copy = nullptr,
            std::span<const std::uint32_t> endpoints = {});

  /// What does not fit this share of a rank, of so many, of the last cache will not be found there afterwards.
  static std::uint64_t streaming_bytes_for(std::uint32_t size);

  /// Makes the room that kernel copy needs, which otherwise the first call that copies does.
  void prepare_copies() { far_->tiles.resize(kAllTiles); }

  std::byte* own(const Piece& piece, std::uint64_t done, std::uint64_t /*bytes*/) const {
    return regions[static_cast<std::size_t>(piece.region)] + piece.offset + done;
  }
  std::byte* far(std::uint32_t rank, const Piece& piece, std::uint64_t done, std::uint64_t /*bytes*/) const {
    std::byte* const mapped = region_of(rank, piece).mapped;
    return mapped == nullptr ? nullptr : mapped + piece.offset + done;
  }
  static void combine(const Action& action, const std::byte* own, const std::byte* payload, std::byte* out,
                      std::uint64_t /*bytes*/) {
    action.combine(action.swap ? payload : own, action.swap ? own : payload, out, action.count);
  }
  static void copy_short(std::byte* out, const std::byte* in, std::uint64_t bytes) {
    copy_inline(out, in, static_cast<std::uint32_t>(bytes));
  }
  void copy(const Action& action, const Segment& segment) const {
    compute_here(action, segment, action.bytes > streaming_bytes);
  }
  bool compute(const Action& action, const Segment& segment) {
    if (action.reach.count != 0 || action.write.count != 0) return compute_far(action, segment);
    compute_mapped(action, segment);
    return true;
  }
  shm::StorePace& pace(std::uint32_t rank) { return far_->paces[rank]; }
  const std::uint32_t* gone() const { return far_->gone ? &*far_->gone : nullptr; }

  std::array<std::byte*, 5> regions{};                ///< by Region
  const ReachableRegions* peers = nullptr;            ///< by rank; for programs that touch memory of peers
  bool copies = false;                                ///< some region of a peer is reached by kernel copy
  shm::TouchGuard guard;                              ///< of the memory of peers
  std::uint64_t streaming_bytes = ~std::uint64_t{0};  ///< actions of more than this bypass the caches

 private:
  /// Memory of a peer that is copied.
  struct Copied {
    std::uint32_t rank = 0;
    std::uint64_t address = 0;  ///< 0: it is mapped
  };
  static constexpr std::uint64_t kAllTiles = std::uint64_t{256} << 10U;

  const FarRegion& region_of(std::uint32_t rank, const Piece& piece) const {
    return piece.region == Region::kSrc ? peers[rank].src : peers[rank].dst;
  }
  /// Does an action on operands that are all mapped here. In line, for it is the work of every short call.
  static void compute_here(const Action& action, const Segment& segment, bool streaming) {
    const std::byte* const* sources = segment.sources;
    if (action.mean != nullptr) {
      for (std::uint32_t i = 0; i < segment.results; ++i) {
        action.mean(sources[0], segment.outputs[i], segment.bytes / bytes_of(action.dtype), action.divisor);
      }
    } else if (segment.inputs == 1) {
      if (segment.results == 1) {
        if (segment.outputs[0] != sources[0]) copy_bytes(segment.outputs[0], sources[0], segment.bytes, streaming);
      } else {
        copy_to_many(sources[0], segment.outputs, segment.results, segment.bytes, streaming);
      }
    } else if (segment.inputs == 2 && segment.results == 1 && !streaming) {
      const std::byte* a = sources[action.swap ? 1 : 0];
      const std::byte* b = sources[action.swap ? 0 : 1];
      action.combine(a, b, segment.outputs[0], segment.bytes / bytes_of(action.dtype));
    } else {
      action.reduce(sources, segment.inputs, segment.outputs, segment.results, segment.bytes / bytes_of(action.dtype),
                    streaming);
    }
  }
  /// Does an action on operands that are all mapped here, cells and memory of peers among them.
  void compute_mapped(const Action& action, const Segment& segment) {
    if (segment.bytes >= shm::StorePace::kLeastBytes && action.forward.count + action.write.count != 0) {
      compute_for_peers(action, segment);
    } else if (segment.bytes != 0) {
      compute_here(action, segment, action.bytes > streaming_bytes);
    }
  }
  [[gnu::noinline]] void compute_for_peers(const Action& action, const Segment& segment);
  [[gnu::noinline]] bool compute_far(const Action& action, const Segment& segment);
  void name_far_operands(const Action& action, const Segment& segment);
  bool compute_by_copy(const Action& action, const Segment& segment);
  bool compute_tile(const Action& action, const Segment& segment, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t tile);
  bool copied(const shm::CopyOutcome& outcome, std::uint32_t rank, bool stores);

  /// What long results for peers and kernel copy need, apart from what every call touches.
  struct Copying {
    shm::KernelCopy* copy = nullptr;
    std::span<const std::uint32_t> endpoints;
    std::vector<Copied> sources, outputs;  ///< by place in the segment's sources and outputs
    std::vector<const std::byte*> tile_sources;
    std::vector<std::byte*> tile_outputs;
    std::vector<std::byte> tiles;       ///< what is copied from peers and to them
    std::optional<std::uint32_t> gone;  ///< a rank whose process had ended when its memory was copied
    std::vector<shm::StorePace> paces;  ///< by the rank that reads what is stored
  };
  std::unique_ptr<Copying> far_ = std::make_unique<Copying>();
};

}  // namespace unisono::cclo
