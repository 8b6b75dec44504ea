#include "engine/lane_ports.hpp"

#include <unistd.h>

#include <algorithm>

namespace unisono::cclo {

void LanePorts::open(const shm::LaneSet& lanes, shm::LaneSpace space, std::uint32_t rank, std::uint32_t size) {
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
    sources_[inputs++] = frame.at(ranks[action.reach.begin + i], action.reach_in) + done;
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
    outputs_[results++] = frame.at(ranks[action.write.begin + i], action.reach_out) + done;
  }

  const bool touches = action.reach.count != 0 || action.write.count != 0;
  if (touches && !guard.enter()) throw AccessBanned{};
  if (bytes != 0) {
    const bool streaming = action.bytes > streaming_bytes;
    if (action.mean != nullptr) {
      for (std::uint32_t i = 0; i < results; ++i) {
        action.mean(sources_[0], outputs_[i], bytes / bytes_of(action.dtype), action.divisor);
      }
    } else if (inputs == 1) {
      if (results == 1) {
        if (outputs_[0] != sources_[0]) copy_bytes(outputs_[0], sources_[0], bytes, streaming);
      } else {
        copy_to_many(sources_[0], outputs_.data(), results, bytes, streaming);
      }
    } else if (inputs == 2 && results == 1 && !streaming) {
      const std::byte* a = sources_[action.swap ? 1 : 0];
      const std::byte* b = sources_[action.swap ? 0 : 1];
      action.combine(a, b, outputs_[0], bytes / bytes_of(action.dtype));
    } else {
      action.reduce(sources_.data(), inputs, outputs_.data(), results, bytes / bytes_of(action.dtype), streaming);
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

}  // namespace unisono::cclo
