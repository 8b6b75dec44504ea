#include "engine/kernel_values.hpp"

#include <unistd.h>

#include <algorithm>

namespace unisono::cclo {

std::uint64_t KernelValues::streaming_bytes_for(std::uint32_t size) {
  constexpr long kUsual = 32L << 20U;
  static const long last_cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return static_cast<std::uint64_t>(last_cache > 0 ? last_cache : kUsual) / size;
}

void KernelValues::open(const shm::LaneSet& lanes, std::uint32_t size, shm::KernelCopy* copy,
                        std::span<const std::uint32_t> endpoints) {
  far_->copy = copy;
  far_->endpoints = endpoints;
  streaming_bytes = streaming_bytes_for(size);
  guard = lanes.touch_guard();
  const std::size_t operands = std::size_t{2} * size + 2;
  far_->sources.resize(operands);
  far_->outputs.resize(operands);
  far_->tile_sources.resize(operands);
  far_->tile_outputs.resize(operands);
  far_->paces.resize(size);
}

/// Does an action with long results for peers, in cells or in their memory. The first recipient stands for all.
void KernelValues::compute_for_peers(const Action& action, const Segment& segment) {
  const bool streaming = action.bytes > streaming_bytes;
  const std::uint32_t first = action.forward.count != 0 ? action.forward.begin : action.write.begin;
  far_->paces[segment.ranks[first]].store(segment.bytes, [&](bool past_caches) {
    if (!past_caches || !action.out.present) return compute_here(action, segment, streaming || past_caches);
    // What stays here belongs into this core's cache, from which the peers' part is then copied.
    Segment here = segment;
    here.results = 1;
    compute_here(action, here, streaming);
    copy_to_many(segment.outputs[0], segment.outputs + 1, segment.results - 1, segment.bytes, true);
  });
}

bool KernelValues::compute_far(const Action& action, const Segment& segment) {
  struct Touch {
    explicit Touch(const shm::TouchGuard& of) : guard(of) {
      if (!guard.enter()) throw AccessBanned{};
    }
    ~Touch() { guard.leave(); }
    Touch(const Touch&) = delete;
    Touch& operator=(const Touch&) = delete;
    const shm::TouchGuard& guard;
  };
  const Touch touch(guard);  // an operator of the user may fail
  if (segment.bytes == 0) return true;
  if (copies) [[unlikely]] {
    name_far_operands(action, segment);
    return compute_by_copy(action, segment);
  }
  compute_mapped(action, segment);
  return true;
}

// ------------------------------------------------------------------------------------ memory of peers, by kernel copy

/// Says of each operand that the executor has found whether it must be copied from a peer or to it, and where it is
/// there.
void KernelValues::name_far_operands(const Action& action, const Segment& segment) {
  const std::uint32_t* ranks = segment.ranks;
  const auto name = [&](Copied& place, std::uint32_t rank, const Piece& piece) {
    const FarRegion& region = region_of(rank, piece);
    place = {rank, region.mapped != nullptr ? 0 : region.address + piece.offset + segment.done};
  };
  std::uint32_t next = 0;
  if (action.own.present) far_->sources[next++] = {};
  for (std::uint32_t i = 0; i < action.from.count; ++i) far_->sources[next++] = {};
  for (std::uint32_t i = 0; i < action.reach.count; ++i) {
    name(far_->sources[next++], ranks[action.reach.begin + i], action.reach_in);
  }
  if (action.other.present) far_->sources[next++] = {};
  next = 0;
  if (action.out.present) far_->outputs[next++] = {};
  for (std::uint32_t i = 0; i < action.forward.count; ++i) far_->outputs[next++] = {};
  for (std::uint32_t i = 0; i < action.write.count; ++i) {
    name(far_->outputs[next++], ranks[action.write.begin + i], action.reach_out);
  }
}

/// Does an action of which some operands must be copied, tile by tile: what is fetched is still in the core's own cache
/// when it is combined, and so is the result when it is stored. False if a peer's process has ended.
bool KernelValues::compute_by_copy(const Action& action, const Segment& segment) {
  const std::uint64_t bytes = segment.bytes;
  constexpr std::uint64_t kLeastTile = std::uint64_t{16} << 10U;
  std::uint32_t tiles = 1;  // the result
  for (std::uint32_t i = 0; i < segment.inputs; ++i) tiles += far_->sources[i].address != 0 ? 1 : 0;
  const std::uint64_t element = bytes_of(action.dtype);
  // What is only copied from one place to one other needs no place in between.
  const bool plain =
      segment.inputs == 1 && action.mean == nullptr && (action.out.present || far_->sources[0].address == 0);
  const std::uint64_t tile = plain ? bytes : std::max(kLeastTile, kAllTiles / tiles) / element * element;
  if (!plain && far_->tiles.size() < tile * tiles) far_->tiles.resize(tile * tiles);
  for (std::uint64_t offset = 0; offset < bytes; offset += tile) {
    if (!compute_tile(action, segment, offset, std::min(tile, bytes - offset), tile)) return false;
  }
  return true;
}

bool KernelValues::compute_tile(const Action& action, const Segment& segment, std::uint64_t offset, std::uint64_t bytes,
                                std::uint64_t tile) {
  const bool copies_only = segment.inputs == 1 && action.mean == nullptr;
  std::byte* const local = action.out.present ? segment.outputs[0] + offset : nullptr;
  std::byte* spare = far_->tiles.data();
  const auto take_tile = [&] {
    spare += tile;
    return spare - tile;
  };

  for (std::uint32_t i = 0; i < segment.inputs; ++i) {
    const Copied& from = far_->sources[i];
    if (from.address == 0) {
      far_->tile_sources[i] = segment.sources[i] + offset;
      continue;
    }
    std::byte* const into = copies_only && local != nullptr ? local : take_tile();
    if (!copied(far_->copy->fetch(far_->endpoints[from.rank], from.address + offset, into, bytes), from.rank, false))
      return false;
    far_->tile_sources[i] = into;
  }

  // The value is made once: where it is wanted here, or else where a peer's copy of it is taken from.
  const std::byte* value = copies_only ? far_->tile_sources[0] : nullptr;
  std::uint32_t here = 0;
  for (std::uint32_t i = 0; i < segment.results; ++i) {
    if (far_->outputs[i].address == 0) far_->tile_outputs[here++] = segment.outputs[i] + offset;
  }
  if (here == 0 && value == nullptr) far_->tile_outputs[here++] = take_tile();
  if (here != 0 && (value == nullptr || far_->tile_outputs[0] != value || here > 1)) {
    compute_here(
        action, {0, bytes, far_->tile_sources.data(), segment.inputs, far_->tile_outputs.data(), here, nullptr}, false);
  }
  if (value == nullptr) value = far_->tile_outputs[0];
  for (std::uint32_t i = 0; i < segment.results; ++i) {
    const Copied& to = far_->outputs[i];
    if (to.address == 0) continue;
    if (!copied(far_->copy->store(far_->endpoints[to.rank], to.address + offset, value, bytes), to.rank, true))
      return false;
  }
  return true;
}

/// False if the peer's process has ended; the wait for it then finds out. Throws LaneFault if the kernel refuses.
bool KernelValues::copied(const shm::CopyOutcome& outcome, std::uint32_t rank, bool stores) {
  if (outcome.done()) return true;
  if (outcome.kind == shm::CopyOutcome::Kind::kGone) {
    far_->gone = rank;
    return false;
  }
  throw LaneFault{rank, false, refusal_of(outcome, rank, stores)};
}

}  // namespace unisono::cclo
