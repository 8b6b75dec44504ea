#include "engine/lowered_comparison.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace unisono::cclo {
namespace {

using Kind = LoweredFault::Kind;

constexpr auto kInFlight = static_cast<std::uint32_t>(kWindow);
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool speaks(const Move& move) { return move.count != 0 || move.signal; }

/// One move as the model defines it, with its peers written out.
struct Expected {
  bool idle = false;  ///< does nothing that a step would stand for
  std::vector<std::uint32_t> from, forward, reach, write;
};

class Comparison {
 public:
  Comparison(const Program& program, const LoweredProgram& lowered, std::uint32_t rank, std::uint32_t size)
      : program_(program), lowered_(lowered), rank_(rank), size_(size), to_(size), from_(size) {}

  LoweredCheck run() {
    LoweredCheck result;
    try {
      expect();
      compare_windowed();
      for (step_ = 0; step_ < lowered_.steps.size(); ++step_) match_step(lowered_.steps[step_]);
      for (std::uint32_t n = 0; n < expected_.size(); ++n) {
        if (!expected_[n].idle && position_[n] == kNone) {
          throw fault(Kind::kNotTheMoves, "move " + std::to_string(n) + " stands in no step", {n});
        }
      }
      check_order();
      result.moves = std::move(moves_);
    } catch (LoweredFault& found) {
      result.fault = std::move(found);
    }
    return result;
  }

 private:
  LoweredFault fault(Kind kind, const std::string& text, std::vector<std::uint32_t> moves) const {
    return {kind,
            "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + text,
            {{rank_, step_, std::move(moves)}}};
  }
  LoweredFault wrong_step(const std::string& text) const {
    return fault(Kind::kNotTheMoves, "step " + std::to_string(step_) + " " + text, {});
  }

  std::vector<std::uint32_t> peers(std::uint32_t peer, PeerMode mode) const {
    if (mode == PeerMode::kRank) return {peer};
    const auto begin = program_.pool.begin() + peer + 1;
    return {begin, begin + program_.pool[peer]};
  }

  void expect() {
    for (std::uint32_t n = 0; n < program_.moves.size(); ++n) {
      const Move& move = program_.moves[n];
      Expected made;
      if (move.kind == MoveKind::kMove) {
        const auto op1 = peers(move.arrival.peer, move.arrival.mode);
        if (move.op1.kind == OperandKind::kArrival && speaks(move)) made.from = op1;
        if (move.op1.kind == OperandKind::kRemoteMemory) made.reach = op1;
        const auto results = peers(move.remote.peer, move.remote.mode);
        if (move.remote.kind == RemoteKind::kMessage && speaks(move)) made.forward = results;
        if (move.remote.kind == RemoteKind::kMemory) made.write = results;
      }
      made.idle = made.from.empty() && made.forward.empty() && (move.kind != MoveKind::kMove || move.count == 0);
      for (const std::uint32_t peer : made.from) from_.at(peer).moves.push_back(n);
      for (const std::uint32_t peer : made.forward) to_.at(peer).moves.push_back(n);
      if (!made.idle && made.from.empty() && made.forward.empty()) local_.push_back(n);
      expected_.push_back(std::move(made));
    }
    position_.assign(expected_.size(), kNone);
    if (lowered_.scratch_bytes != program_.scratch_bytes) {
      throw fault(Kind::kNotTheMoves,
                  "scratch has " + std::to_string(lowered_.scratch_bytes) + " bytes, not " +
                      std::to_string(program_.scratch_bytes),
                  {});
    }
  }

  bool is(const RankList& list, const std::vector<std::uint32_t>& ranks) const {
    if (list.count != ranks.size() || std::size_t{list.begin} + list.count > lowered_.ranks.size()) return false;
    return std::equal(ranks.begin(), ranks.end(), lowered_.ranks.begin() + list.begin);
  }

  static bool is(const Piece& piece, const Operand& operand) {
    if (operand.kind != OperandKind::kMemory) return !piece.present;
    return piece.present && piece.region == operand.region && piece.offset == operand.offset;
  }

  static bool is(const Piece& piece, bool present, Region region, std::uint64_t offset) {
    return piece.present == present && (!present || (piece.region == region && piece.offset == offset));
  }

  /// Whether an action is move n; with `forward_only` its list of ranks is not compared.
  bool same(const Action& action, std::uint32_t n, bool any_forward = false) const {
    const Move& move = program_.moves[n];
    const Expected& expected = expected_[n];
    if (move.kind != MoveKind::kMove) {
      return action.bytes == 0 && action.from.count == 0 && action.forward.count == 0 && action.reach.count == 0 &&
             action.write.count == 0 && !action.own.present && !action.other.present && !action.out.present;
    }
    const bool reduces = move.func != Func::kNone;
    const RemoteAddress& there = move.remote_address;
    return is(action.own, move.op0) && is(action.other, move.op1) && is(action.out, move.local) &&
           is(action.from, expected.from) && (any_forward || is(action.forward, expected.forward)) &&
           is(action.reach, expected.reach) && is(action.write, expected.write) &&
           is(action.reach_in, !expected.reach.empty(), there.region, there.offset) &&
           is(action.reach_out, !expected.write.empty(), there.result_region, there.offset) &&
           action.count == move.count && action.bytes == move.count * bytes_of(move.dtype) &&
           action.dtype == move.dtype && action.func == move.func && action.swap == move.swap &&
           action.combine == (reduces ? combine_kernel(move.func, move.dtype) : nullptr) &&
           action.reduce == (reduces ? reduce_kernel(move.func, move.dtype) : nullptr) &&
           (expected.from.empty() || action.tag_in == move.arrival.tag) &&
           (expected.forward.empty() || action.tag_forward == move.remote.tag);
  }

  void compare_windowed() {
    const auto not_the_move = [&](std::uint32_t n) {
      return fault(Kind::kNotTheMoves, "the windowed form of move " + std::to_string(n) + " is not the move", {n});
    };
    if (lowered_.moves.size() != expected_.size()) {
      throw fault(Kind::kNotTheMoves,
                  "the windowed form has " + std::to_string(lowered_.moves.size()) + " moves, the program " +
                      std::to_string(expected_.size()),
                  {});
    }
    std::vector<std::uint32_t> sent(size_, 0), taken(size_, 0);
    std::vector<std::uint64_t> bytes_to(size_, 0), bytes_from(size_, 0);
    std::uint64_t most_bytes = 0;
    std::uint32_t most_messages = 0;
    bool remote = false;
    for (std::uint32_t n = 0; n < expected_.size(); ++n) {
      const Move& move = program_.moves[n];
      const WindowedMove& windowed = lowered_.moves[n];
      if (!same(windowed, n) || windowed.dependencies != move.dependencies ||
          windowed.follows[0] != move.segment_dependency0 || windowed.follows[1] != move.segment_dependency1) {
        throw not_the_move(n);
      }
      remote = remote || !expected_[n].reach.empty() || !expected_[n].write.empty();
      const auto number = [&](const RankList& list, std::vector<std::uint32_t>& counters,
                              std::vector<std::uint64_t>& bytes) {
        for (std::uint32_t i = list.begin; i < list.begin + list.count; ++i) {
          const std::uint32_t peer = lowered_.ranks[i];
          if (i >= lowered_.ordinals.size() || lowered_.ordinals[i] != counters[peer]) throw not_the_move(n);
          most_messages = std::max(most_messages, ++counters[peer]);
          most_bytes = std::max(most_bytes, bytes[peer] += windowed.bytes);
        }
      };
      number(windowed.forward, sent, bytes_to);
      number(windowed.from, taken, bytes_from);
    }
    if (lowered_.most_lane_bytes != most_bytes || lowered_.most_lane_messages != most_messages ||
        lowered_.remote_memory != remote) {
      throw fault(Kind::kNotTheMoves,
                  "one lane carries up to " + std::to_string(most_bytes) + " bytes in " +
                      std::to_string(most_messages) + " messages; the lowered form says " +
                      std::to_string(lowered_.most_lane_bytes) + " in " + std::to_string(lowered_.most_lane_messages),
                  {});
    }
  }

  /// Messages of a pair that steps have not stood for yet.
  struct Pair {
    std::vector<std::uint32_t> moves;
    std::size_t next = 0;
  };

  std::uint32_t next_of(const Pair& pair, const char* what) const {
    if (pair.next == pair.moves.size())
      throw wrong_step(std::string("has ") + what + " that the program does not have");
    return pair.moves[pair.next];
  }

  /// Notes that the current step stands for move n, whose messages must be the next of their pairs.
  void assign(std::uint32_t n) {
    const auto turn = [&](std::vector<Pair>& pairs, const std::vector<std::uint32_t>& peers_of_move) {
      for (const std::uint32_t peer : peers_of_move) {
        Pair& pair = pairs[peer];
        if (next_of(pair, "a message") != n) {
          throw fault(Kind::kOrder,
                      "step " + std::to_string(step_) + " (move " + std::to_string(n) +
                          ") is not the next message of its pair with rank " + std::to_string(peer),
                      {n});
        }
        ++pair.next;
      }
    };
    turn(from_, expected_[n].from);
    turn(to_, expected_[n].forward);
    if (position_[n] != kNone) {
      throw fault(Kind::kNotTheMoves, "move " + std::to_string(n) + " stands in two steps", {n});
    }
    position_[n] = position_count_++;
    moves_.back().push_back(n);
  }

  void match_step(const Step& step) {
    moves_.emplace_back();
    const bool sends = step.kind == Step::Kind::kSend || step.kind == Step::Kind::kExchange;
    if (sends) match_send(step.send);
    if (step.kind != Step::Kind::kSend && step.kind != Step::Kind::kNothing) match_take(step.take, step.kind);
    if (step.moves != moves_.back().size()) {
      throw wrong_step("says that it stands for " + std::to_string(step.moves) + " moves, and stands for " +
                       std::to_string(moves_.back().size()));
    }
  }

  /// A step's send may stand for several moves that send the same.
  void match_send(const Action& action) {
    if (action.forward.count == 0 || action.from.count != 0 || action.reach.count != 0 || action.write.count != 0 ||
        action.other.present || action.out.present || action.func != Func::kNone) {
      throw wrong_step("does more than its kind, a send, is executed with");
    }
    for (std::uint32_t i = 0; i < action.forward.count;) {
      const std::uint32_t peer = lowered_.ranks.at(action.forward.begin + i);
      const std::uint32_t n = next_of(to_.at(peer), "a send");
      const auto& to = expected_[n].forward;
      if (!same(action, n, true) || !is({action.forward.begin + i, static_cast<std::uint32_t>(to.size())}, to)) {
        throw wrong_step("sends to rank " + std::to_string(peer) + " what is not move " + std::to_string(n));
      }
      assign(n);
      i += static_cast<std::uint32_t>(to.size());
    }
  }

  void match_take(const Action& action, Step::Kind kind) {
    if (kind == Step::Kind::kCopy &&
        (!action.own.present || !action.out.present || action.other.present || action.mean != nullptr ||
         action.from.count + action.reach.count + action.forward.count + action.write.count != 0)) {
      throw wrong_step("does more than its kind, a copy, is executed with");
    }
    if (takes_message(kind) && (action.from.count != 1 || action.forward.count != 0 || action.other.present ||
                                action.reach.count != 0 || action.write.count != 0)) {
      throw wrong_step("does more than its kind, the taking of one message, is executed with");
    }
    std::uint32_t n = kNone;
    if (action.from.count != 0) {
      n = next_of(from_.at(lowered_.ranks.at(action.from.begin)), "an arrival");
    } else if (action.forward.count != 0) {
      n = next_of(to_.at(lowered_.ranks.at(action.forward.begin)), "a send");
    } else {
      const auto found = std::find_if(local_.begin(), local_.end(), [&](std::uint32_t candidate) {
        return position_[candidate] == kNone && same(action, candidate);
      });
      if (found == local_.end()) throw wrong_step("is no move of the program that no other step stands for");
      n = *found;
    }
    if (!same(action, n)) throw wrong_step("is not move " + std::to_string(n));
    assign(n);
  }

  /// Whether the steps are a linear extension of what the program demands. A move that does nothing has completed when
  /// what it depends on has.
  void check_order() {
    std::vector<std::uint32_t> after(expected_.size(), 0);  // positions before this are needed for completion
    std::uint32_t before_window = 0;
    for (std::uint32_t n = 0; n < expected_.size(); ++n) {
      const Move& move = program_.moves[n];
      std::uint32_t needed = 0;
      std::uint32_t culprit = kNone;
      const auto require = [&](std::uint32_t earlier) {
        if (after[earlier] > needed) {
          needed = after[earlier];
          culprit = earlier;
        }
      };
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        if ((move.dependencies >> bit & 1U) != 0 && bit < n) require(n - 1 - bit);
      }
      for (const std::uint8_t distance : {move.segment_dependency0, move.segment_dependency1}) {
        if (distance != 0) require(n - distance);
      }
      if (n >= kInFlight) {
        before_window = std::max(before_window, after[n - kInFlight]);
        if (before_window > needed) {
          needed = before_window;
          culprit = n - kInFlight;
        }
      }
      if (!expected_[n].idle) {
        if (position_[n] < needed) {
          throw fault(Kind::kOrder,
                      "move " + std::to_string(n) + " is done before move " + std::to_string(culprit) +
                          ", or one that it implies, has completed",
                      {n, culprit});
        }
        needed = position_[n] + 1;
      }
      after[n] = needed;
    }
  }

  const Program& program_;
  const LoweredProgram& lowered_;
  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint32_t step_ = 0;
  std::vector<Expected> expected_;
  std::vector<Pair> to_, from_;          ///< by rank
  std::vector<std::uint32_t> local_;     ///< moves without messages
  std::vector<std::uint32_t> position_;  ///< by move, in the order of the straight form
  std::uint32_t position_count_ = 0;
  std::vector<std::vector<std::uint32_t>> moves_;  ///< by step
};

}  // namespace

Program with_params(Program program, std::span<const std::uint64_t> params) {
  for (Move& move : program.moves) {
    if (std::exchange(move.count_indirect, false)) move.count = params[move.count / 8];
    for (Operand* operand : {&move.op0, &move.op1, &move.local}) {
      if (std::exchange(operand->indirect, false)) operand->offset = params[operand->offset / 8];
    }
  }
  return program;
}

LoweredCheck compare_lowered(const Program& program, const LoweredProgram& lowered, std::uint32_t rank,
                             std::uint32_t size) {
  return Comparison(program, lowered, rank, size).run();
}

}  // namespace unisono::cclo
