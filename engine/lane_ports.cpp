#include "engine/lane_ports.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace unisono::cclo {
namespace {

/// Does an action on operands that are all mapped here. In line, for it is the work of every short call.
[[gnu::always_inline]] inline void compute(const Action& action, const std::byte* const* sources, std::uint32_t inputs,
                                           std::byte* const* outputs, std::uint32_t results, std::uint64_t bytes,
                                           bool streaming) {
  if (action.mean != nullptr) {
    for (std::uint32_t i = 0; i < results; ++i) {
      action.mean(sources[0], outputs[i], bytes / bytes_of(action.dtype), action.divisor);
    }
  } else if (inputs == 1) {
    if (results == 1) {
      if (outputs[0] != sources[0]) copy_bytes(outputs[0], sources[0], bytes, streaming);
    } else {
      copy_to_many(sources[0], outputs, results, bytes, streaming);
    }
  } else if (inputs == 2 && results == 1 && !streaming) {
    const std::byte* a = sources[action.swap ? 1 : 0];
    const std::byte* b = sources[action.swap ? 0 : 1];
    action.combine(a, b, outputs[0], bytes / bytes_of(action.dtype));
  } else {
    action.reduce(sources, inputs, outputs, results, bytes / bytes_of(action.dtype), streaming);
  }
}

}  // namespace

void LanePorts::open(const shm::LaneSet& lanes, shm::LaneSpace space, std::uint32_t rank, std::uint32_t size,
                     shm::KernelCopy* copy, std::span<const std::uint32_t> endpoints) {
  far_->copy = copy;
  far_->endpoints = endpoints;
  rank_ = rank;
  segment_bytes_ = shm::segment_bytes_for(lanes.cell_bytes());
  // What does not fit this rank's share of the last cache will not be found there afterwards.
  constexpr long kUsual = 32L << 20U;
  const long last_cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  streaming_bytes = static_cast<std::uint64_t>(last_cache > 0 ? last_cache : kUsual) / size;
  guard = lanes.touch_guard();
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    send.push_back(lanes.sender(space, peer));
    receive.push_back(lanes.receiver(space, peer));
  }
  sources_.resize(std::size_t{2} * size + 2);
  outputs_.resize(std::size_t{2} * size + 1);
  far_->sources.resize(sources_.size());
  far_->outputs.resize(outputs_.size());
  far_->tile_sources.resize(sources_.size());
  far_->tile_outputs.resize(outputs_.size());
}

bool LanePorts::holds(const LoweredProgram& program) const {
  // Beyond what this program sends, the receiver may owe the report of an eighth of the cells and of some lines, and a
  // payload may leave a gap at the end of the ring.
  const std::uint32_t most = send.front().cell_bytes / 4;
  return program.most_lane_bytes <= most && program.most_lane_messages <= shm::kLaneLines / 2;
}

bool LanePorts::advance(const Action& action, const Frame& frame, std::uint64_t& done) {
  const LoweredProgram& program = *frame.program;
  const std::uint64_t left = action.bytes - done;
  const std::uint64_t bytes = std::min(left, segment_of(action));
  const auto payload = static_cast<std::uint32_t>(bytes);
  const bool in_line = bytes <= shm::kInlineBytes;
  const std::uint32_t* ranks = program.ranks.data();

  std::uint32_t inputs = 0;
  if (action.own.present) sources_[inputs++] = frame.at(action.own) + done;
  for (std::uint32_t i = 0; i < action.from.count; ++i) {
    const std::uint32_t peer = ranks[action.from.begin + i];
    const shm::LaneReceiver& lane = receive[peer];
    const shm::LaneLine& line = lane.next();
    const std::uint64_t flag = line.flag.load(std::memory_order_acquire);
    const std::uint64_t awaited = lane.awaited(frame.digest);
    if (flag != awaited) {
      if (static_cast<std::uint32_t>(flag) != static_cast<std::uint32_t>(awaited)) return false;
      throw LaneFault{peer, true};
    }
    if (line.head != head(bytes, action.tag_in)) throw LaneFault{peer, false};
    sources_[inputs++] = in_line ? line.payload.data() : lane.cell(payload);
  }
  for (std::uint32_t i = 0; i < action.reach.count; ++i) {
    sources_[inputs++] = frame.at(ranks[action.reach.begin + i], action.reach_in, done);
  }
  if (action.other.present) sources_[inputs++] = frame.at(action.other) + done;

  std::uint32_t results = 0;
  if (action.out.present) outputs_[results++] = frame.at(action.out) + done;
  for (std::uint32_t i = 0; i < action.forward.count; ++i) {
    shm::LaneSender& lane = send[ranks[action.forward.begin + i]];
    if (!lane.has_line()) return false;
    std::byte* place = in_line ? lane.next().payload.data() : lane.cell(payload);
    if (place == nullptr) return false;
    outputs_[results++] = place;
  }
  for (std::uint32_t i = 0; i < action.write.count; ++i) {
    outputs_[results++] = frame.at(ranks[action.write.begin + i], action.reach_out, done);
  }

  const bool touches = action.reach.count != 0 || action.write.count != 0;
  if (touches && !guard.enter()) throw AccessBanned{};
  if (bytes != 0) {
    if (touches && frame.copies) [[unlikely]] {
      name_far_operands(action, frame, done);
      if (!compute_by_copy(action, {inputs, results}, bytes)) {
        guard.leave();
        return false;
      }
    } else {
      compute(action, sources_.data(), inputs, outputs_.data(), results, bytes, action.bytes > streaming_bytes);
    }
  }
  if (touches) guard.leave();

  for (std::uint32_t i = 0; i < action.from.count; ++i) {
    shm::LaneReceiver& lane = receive[ranks[action.from.begin + i]];
    if (!in_line) lane.release_cell(payload);
    if (lane.release()) shm::wake_if_parked(*lane.peer);
  }
  for (std::uint32_t i = 0; i < action.forward.count; ++i) {
    shm::LaneSender& lane = send[ranks[action.forward.begin + i]];
    if (!in_line) lane.take_cell(payload);
    lane.publish(head(bytes, action.tag_forward), frame.digest);
    shm::wake_if_parked(*lane.peer);
  }
  done += std::max<std::uint64_t>(bytes, 1);
  return true;
}

// ------------------------------------------------------------------------------------ memory of peers, by kernel copy

/// Says of each operand that `advance` has found whether it must be copied from a peer or to it, and where it is there.
void LanePorts::name_far_operands(const Action& action, const Frame& frame, std::uint64_t done) {
  const std::uint32_t* ranks = frame.program->ranks.data();
  const auto name = [&](Copied& place, std::uint32_t rank, const Piece& piece) {
    const FarRegion& region = frame.far(rank, piece);
    place = {rank, region.mapped != nullptr ? 0 : region.address + piece.offset + done};
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
bool LanePorts::compute_by_copy(const Action& action, Operands operands, std::uint64_t bytes) {
  constexpr std::uint64_t kLeastTile = std::uint64_t{16} << 10U;
  std::uint32_t tiles = 1;  // the result
  for (std::uint32_t i = 0; i < operands.inputs; ++i) tiles += far_->sources[i].address != 0 ? 1 : 0;
  const std::uint64_t element = bytes_of(action.dtype);
  // What is only copied from one place to one other needs no place in between.
  const bool plain =
      operands.inputs == 1 && action.mean == nullptr && (action.out.present || far_->sources[0].address == 0);
  const std::uint64_t tile = plain ? bytes : std::max(kLeastTile, kAllTiles / tiles) / element * element;
  if (!plain && far_->tiles.size() < tile * tiles) far_->tiles.resize(tile * tiles);
  for (std::uint64_t offset = 0; offset < bytes; offset += tile) {
    if (!compute_tile(action, operands, offset, std::min(tile, bytes - offset), tile)) return false;
  }
  return true;
}

bool LanePorts::compute_tile(const Action& action, Operands operands, std::uint64_t offset, std::uint64_t bytes,
                             std::uint64_t tile) {
  const bool copies_only = operands.inputs == 1 && action.mean == nullptr;
  std::byte* const local = action.out.present ? outputs_[0] + offset : nullptr;
  std::byte* spare = far_->tiles.data();
  const auto take_tile = [&] {
    spare += tile;
    return spare - tile;
  };

  for (std::uint32_t i = 0; i < operands.inputs; ++i) {
    const Copied& from = far_->sources[i];
    if (from.address == 0) {
      far_->tile_sources[i] = sources_[i] + offset;
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
  for (std::uint32_t i = 0; i < operands.results; ++i) {
    if (far_->outputs[i].address == 0) far_->tile_outputs[here++] = outputs_[i] + offset;
  }
  if (here == 0 && value == nullptr) far_->tile_outputs[here++] = take_tile();
  if (here != 0 && (value == nullptr || far_->tile_outputs[0] != value || here > 1)) {
    compute(action, far_->tile_sources.data(), operands.inputs, far_->tile_outputs.data(), here, bytes, false);
  }
  if (value == nullptr) value = far_->tile_outputs[0];
  for (std::uint32_t i = 0; i < operands.results; ++i) {
    const Copied& to = far_->outputs[i];
    if (to.address == 0) continue;
    if (!copied(far_->copy->store(far_->endpoints[to.rank], to.address + offset, value, bytes), to.rank, true))
      return false;
  }
  return true;
}

/// False if the peer's process has ended; whoever waits for it then finds out. Throws LaneFault if the kernel refuses.
bool LanePorts::copied(const shm::CopyOutcome& outcome, std::uint32_t rank, bool stores) {
  if (outcome.done()) return true;
  if (outcome.kind == shm::CopyOutcome::Kind::kGone) {
    far_->gone = rank;
    return false;
  }
  guard.leave();
  std::array<char, 2 + 16 + 1> place{};
  static_cast<void>(
      std::snprintf(place.data(), place.size(), "0x%llx", static_cast<unsigned long long>(outcome.address)));
  throw LaneFault{rank, false,
                  "the kernel does not let this rank " + std::string(stores ? "write to" : "read") + " rank " +
                      std::to_string(rank) + "'s buffer at " + place.data() + " (" + std::strerror(outcome.error) +
                      "): it was unmapped, or is memory of a device. Keep buffers mapped until the call has ended; for "
                      "memory of devices set UNISONO_KERNEL_COPY=off on all ranks"};
}

}  // namespace unisono::cclo
