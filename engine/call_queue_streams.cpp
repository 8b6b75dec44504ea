// The call queue, as far as calls have streams: what stands in a copy before and after a call, and what is awaited.
#include <algorithm>
#include <cstring>
#include <string>

#include "core/text.hpp"
#include "engine/call_queue.hpp"

namespace unisono::cclo {

/// Takes what kernels have given for a staged call. Returns whether all of it is there.
bool CallQueue::take_streams(CallState& call) {
  bool whole = true;
  CallStreams& streams = *call.streams;
  for (CallStreams::Bound& bound : streams.bounds) {
    if (bound.side != StreamSide::kToEngine || !bound.staged) continue;
    if (!blocks_.streams->has_turn(bound.side, bound.port, call.id)) {
      whole = false;  // also if it takes nothing: it begins after those before it
      continue;
    }
    StreamQueue& queue = blocks_.streams->queue(bound.side, bound.port);
    const std::uint64_t bytes = std::min(queue.here(), bound.bytes - bound.done);
    if (bytes != 0) {
      std::memcpy(streams.memory[static_cast<std::size_t>(bound.region)].data() + bound.done, queue.front(), bytes);
      queue.taken(bytes);
      bound.done += bytes;
      streams.moved += bytes;
    }
    whole = whole && bound.done == bound.bytes;
  }
  if (!whole) return false;
  for (const CallStreams::Bound& bound : streams.bounds) {  // the next call's elements may come
    const bool moves = std::any_of(streams.bounds.begin(), streams.bounds.end(), [&](const CallStreams::Bound& other) {
      return other.side == bound.side && other.port == bound.port && !other.staged;
    });
    if (bound.side == StreamSide::kToEngine && !moves) blocks_.streams->leave(bound.side, bound.port, call.id);
  }
  return true;
}

/// Gives kernels what a staged call has brought. Returns whether all of it has gone.
bool CallQueue::give_streams(CallState& call) {
  bool whole = true;
  CallStreams& streams = *call.streams;
  for (CallStreams::Bound& bound : streams.bounds) {
    if (bound.side != StreamSide::kToKernel || !bound.staged) continue;
    // A message may have been shorter than the receive.
    const std::uint64_t all = call.call.collective == Collective::kRecv ? call.received_bytes : bound.bytes;
    if (blocks_.streams->has_turn(bound.side, bound.port, call.id)) {
      StreamQueue& queue = blocks_.streams->queue(bound.side, bound.port);
      const std::uint64_t bytes = std::min(queue.room(), all - bound.done);
      if (bytes != 0) {
        std::memcpy(queue.back(bytes), streams.memory[static_cast<std::size_t>(bound.region)].data() + bound.done,
                    bytes);
        queue.put(bytes);
        bound.done += bytes;
        streams.moved += bytes;
      }
    }
    whole = whole && bound.done == all;
  }
  return whole;
}

/// The call has ended, and uses its ports no more. A kernel that reads on learns that what it awaits does not come.
void CallQueue::leave_streams(CallState& call, ErrorCode code, const std::string& message) {
  for (const CallStreams::Use& use : call.streams->uses) {
    blocks_.streams->leave(use.side, use.port, call.id);
    if (code != ErrorCode::kOk && use.side == StreamSide::kToKernel) blocks_.streams->fail(use.port, code, message);
  }
}

/// What a call waits for at stream ports, in words; empty if nothing.
std::string CallQueue::awaited_streams(const CallState& call) const {
  std::string text;
  if (!call.streams) return text;
  const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(call.call.dtype));
  const auto say = [&](StreamSide side, std::uint32_t port, std::uint64_t done, std::uint64_t all) {
    const bool takes = side == StreamSide::kToEngine;
    text += text.empty() ? "" : "; ";
    if (!blocks_.streams->has_turn(side, port, call.id)) {
      text += formatted("waits until calls before it have done with stream port {}", port);
    } else if (all == 0) {
      text += formatted("stream port {}: its kernel {} {} elements", port, takes ? "has given" : "was given",
                        done / element);
    } else {
      text += formatted("stream port {}: its kernel has {} {} of {} elements", port, takes ? "given" : "taken",
                        takes ? done / element : (done - blocks_.streams->queue(side, port).here()) / element,
                        all / element);
    }
  };
  const CallStreams& streams = *call.streams;
  if (!call.started || streams.gives) {
    if (std::any_of(call.wait_for.begin(), call.wait_for.end(), [&](CallId id) { return !result(id).complete; })) {
      return text;
    }
    const StreamSide side = streams.gives ? StreamSide::kToKernel : StreamSide::kToEngine;
    for (const CallStreams::Bound& bound : streams.bounds) {
      if (bound.staged && bound.side == side && bound.done != bound.bytes) {
        say(side, bound.port, bound.done, bound.bytes);
      }
    }
    return text;
  }
  for (std::uint32_t index = call.retired; index < call.entered; ++index) {
    const MoveState& state = call.window[index % kWindow];
    if (state.state != MoveState::State::kStarted) continue;
    for (const StreamAccess* access : {&state.in, &state.out}) {
      if (access->queue == nullptr) continue;
      const bool takes = access->side == StreamSide::kToEngine;
      if (takes ? access->queue->here() >= element : access->queue->room() >= element) continue;
      const CallStreams::Use& use = call.streams->use(access->side, access->port);
      std::uint64_t all = 0;
      for (const CallStreams::Bound& bound : streams.bounds) {
        if (bound.side == access->side && bound.port == access->port) all += bound.bytes;
      }
      if (use.done == access->ordinal) say(access->side, access->port, use.bytes, all);
    }
  }
  return text;
}

}  // namespace unisono::cclo
