// Data-movement processor: runs the moves of a call, 32 in flight, segment by segment.
//
// A segment starts only when all its inputs are there and all its outputs have space, so nothing in
// the data path ever waits. Moves start when their dependencies allow, and retire in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/state.hpp"

namespace unisono::cclo {

class Dmp {
 public:
  explicit Dmp(const Blocks& blocks) : blocks_(blocks) {}

  /// Does everything of the call that can be done now. Returns whether anything was done. Throws Error
  /// if a move cannot be executed.
  bool step(CallState& call);
  static bool finished(const CallState& call) { return call.retired == call.program->move_count; }
  /// Advances one move that has started, as far as inputs and outputs allow.
  bool advance(CallState& call, MoveState& move);
  /// Called for everything the call waits for: rank, and what of it.
  static void waiting_for(const CallState& call, const std::function<void(std::uint32_t, const std::string&)>& report);
  /// Whether any one of those may end the wait: a receive of any source that has no message yet.
  static bool awaits_anybody(const CallState& call);
  /// "waits for a message (tag 5) from any source"
  static std::string awaited_message(const CallState& call);

 private:
  void enter(CallState& call);
  bool try_start(CallState& call, MoveState& move);
  static void resolve(const CallState& call, MoveState& move);
  static bool exists(const CallState& call, const MoveState& move);
  /// Bytes of the move that may go on, as far as the move `index` before it is concerned.
  static std::uint64_t visible(CallState& call, const MoveState& state, std::uint32_t index);
  bool issue_ports(CallState& call, MoveState& move);
  /// Finds out which of a move's operands and results are streams, as it enters the window.
  void attach_streams(CallState& call, MoveState& move);
  StreamAccess access(CallState& call, StreamSide side, std::uint32_t port);
  /// Whether it is the move's turn at a stream; of no access, it always is.
  bool has_turn(const CallState& call, const StreamAccess& access) const;
  /// Bytes of the move that its streams have elements and room for; 0 if it is not its turn.
  std::uint64_t streamable(const CallState& call, const MoveState& move) const;
  static void streamed(CallState& call, MoveState& move, std::uint64_t bytes);
  static bool granted(const Communicator& communicator, const Pair& pair, const Part& part, bool asks);
  /// Bytes from `done` on that may be sent now; nothing if the message may not begin yet.
  std::optional<std::uint64_t> secure(CallState& call, MoveState& move, Part& part);
  bool reserve(CallState& call, MoveState& move, std::uint64_t bytes);
  void compute(const CallState& call, MoveState& move, std::uint64_t bytes);
  Header header_of(CallState& call, const MoveState& move, const Part& part, std::uint64_t done,
                   std::uint64_t bytes) const;
  static bool sends_as_is(const MoveState& move);
  static const std::byte* operand_of(const MoveState& move);
  bool send_as_is(CallState& call, MoveState& move, std::uint64_t bytes);
  bool can_lend(const CallState& call, const MoveState& move) const;
  bool lend(CallState& call, MoveState& move, std::uint64_t bytes, std::uint64_t segment);
  /// Memory in which what a move sends to one rank stands until it ends; null if there is none.
  static const std::byte* standing(const MoveState& move);
  /// Writes to where the peer's grant lets it; the bytes that were taken. 0: messages are to go.
  std::uint64_t write(CallState& call, MoveState& move, std::uint64_t bytes);
  /// Whether all that a move does is to put an operand that stands in memory.
  static bool puts_as_is(const MoveState& move);
  /// Writes a piece of a put to what the peer shows of its window; false: messages are to go.
  bool write_to_window(CallState& call, MoveState& move, std::uint64_t bytes);
  /// Bytes that were lent to the network and are the call's again; nothing if it is still at them.
  std::optional<std::uint64_t> returned(const CallState& call, MoveState& move) const;
  void commit(CallState& call, MoveState& move, std::uint64_t bytes);
  bool send_to_port(const CallState& call, MoveState& move);
  bool advance_empty(CallState& call, MoveState& move);
  void complete(CallState& call, MoveState& move);

  const Blocks& blocks_;
  std::byte* put_space_ = nullptr;
  std::vector<const std::byte*> inputs_;  ///< of the segment being computed
};

/// Ends message `ordinal` of one direction of a pair (or finds that it does not exist). `done` is the
/// ordinal whose turn it is; bit i of `ended` says that message done + i has ended before its turn.
inline void end_ordinal(std::uint32_t ordinal, std::uint32_t& done, std::uint32_t& ended) {
  ended |= std::uint32_t{1} << (ordinal - done);
  for (; (ended & 1U) != 0; ended >>= 1U) ++done;
}

}  // namespace unisono::cclo
