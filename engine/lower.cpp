#include "engine/lower.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/program_check.hpp"
#include "core/user_op.hpp"

namespace unisono::cclo {
namespace {

constexpr auto kInFlight = static_cast<std::uint32_t>(kWindow);
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool plain(const Operand& operand) {
  return operand.kind != OperandKind::kStream && operand.cast == Cast::kNone &&
         (operand.kind != OperandKind::kMemory || operand.region != Region::kParams);
}

class Lowering {
 public:
  Lowering(const Program& program, std::uint32_t size) : program_(program), sends_(size), arrivals_(size) {}

  std::optional<LoweredProgram> run() {
    for (const Move& move : program_.moves) {
      if (!carried(move)) return std::nullopt;
    }
    order();
    std::vector<Action> actions;
    for (const Move& move : program_.moves) actions.push_back(decode(move));
    for (std::uint32_t n = 0; n < actions.size(); ++n) append_windowed(program_.moves[n], actions[n]);
    for (const std::uint32_t n : order_) append_step(n, actions[n]);
    for (const Indirect& part : lowered_.indirect) {
      const Step& step = lowered_.steps[part.step];
      const bool known = std::any_of(lowered_.indirect_steps.begin(), lowered_.indirect_steps.end(),
                                     [&](const IndirectStep& other) { return other.step == part.step; });
      if (!known) lowered_.indirect_steps.push_back({part.step, step.kind, step.moves});
    }
    for (std::uint32_t n = 0; n < actions.size(); ++n) {
      const bool later = std::any_of(lowered_.indirect.begin(), lowered_.indirect.end(),
                                     [&](const Indirect& part) { return part.move == n; });
      if (!later) lowered_.fixed.add(actions[n]);
    }
    lowered_.scratch_bytes = program_.scratch_bytes;
    lowered_.size = static_cast<std::uint32_t>(sends_.size());
    return std::move(lowered_);
  }

 private:
  static bool carried(const Move& move) {
    if (move.kind != MoveKind::kMove) return true;
    return plain(move.op0) && plain(move.op1) && plain(move.local) && move.remote.kind != RemoteKind::kStream &&
           move.remote.cast == Cast::kNone;
  }

  /// Messages without elements exist only as signals. Whether one of indirect count exists is known at its launch.
  static bool speaks(const Move& move) { return move.count_indirect || move.count != 0 || move.signal; }
  static bool sends(const Move& move) { return move.remote.kind == RemoteKind::kMessage && speaks(move); }
  static bool takes(const Move& move) { return move.op1.kind == OperandKind::kArrival && speaks(move); }

  template <class Use>
  void for_each_peer(std::uint32_t peer, PeerMode mode, Use&& use) const {
    if (mode == PeerMode::kRank) {
      use(peer);
      return;
    }
    const std::uint32_t count = program_.pool[peer];
    for (std::uint32_t i = 1; i <= count; ++i) use(program_.pool[peer + i]);
  }

  /// The moves in the order of their steps.
  void order() {
    const auto count = static_cast<std::uint32_t>(program_.moves.size());
    // What must come before: dependencies, segment dependencies read as full ones, the window, and the order of pairs.
    std::vector<std::vector<std::uint32_t>> after(count);
    std::vector<std::uint32_t> waits(count, 0);
    const auto precede = [&](std::uint32_t before, std::uint32_t move) {
      after[before].push_back(move);
      ++waits[move];
    };
    std::vector<std::uint32_t> last_send(sends_.size(), kNone);
    std::vector<std::uint32_t> last_arrival(arrivals_.size(), kNone);
    for (std::uint32_t n = 0; n < count; ++n) {
      const Move& move = program_.moves[n];
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        if ((move.dependencies >> bit & 1U) != 0 && bit < n) precede(n - 1 - bit, n);
      }
      if (move.segment_dependency0 != 0) precede(n - move.segment_dependency0, n);
      if (move.segment_dependency1 != 0) precede(n - move.segment_dependency1, n);
      if (n >= kInFlight) precede(n - kInFlight, n);
      if (move.kind != MoveKind::kMove) continue;
      if (sends(move)) {
        for_each_peer(move.remote.peer, move.remote.mode, [&](std::uint32_t rank) {
          if (last_send[rank] != kNone) precede(last_send[rank], n);
          last_send[rank] = n;
        });
      }
      if (takes(move)) {
        for_each_peer(move.arrival.peer, move.arrival.mode, [&](std::uint32_t rank) {
          if (last_arrival[rank] != kNone) precede(last_arrival[rank], n);
          last_arrival[rank] = n;
        });
      }
    }
    // First what sends and waits for nobody, then other work at hand, at last the earliest arrival.
    std::vector<bool> done(count, false);
    const auto rank_of = [&](std::uint32_t n) {
      const Move& move = program_.moves[n];
      if (move.kind != MoveKind::kMove) return 0;
      return takes(move) ? 2 : sends(move) ? 0 : 1;
    };
    std::uint32_t first = 0;  // all before it are done
    while (order_.size() < count) {
      std::uint32_t best = kNone;
      while (done[first]) ++first;
      for (std::uint32_t n = first; n < std::min(count, first + kInFlight); ++n) {
        if (done[n] || waits[n] != 0) continue;
        if (best == kNone || rank_of(n) < rank_of(best)) best = n;
        if (rank_of(best) == 0) break;
      }
      done[best] = true;
      order_.push_back(best);
      for (const std::uint32_t n : after[best]) --waits[n];
    }
  }

  Piece piece(const Operand& operand) const {
    return {operand.indirect ? 0 : operand.offset, operand.region, operand.kind == OperandKind::kMemory};
  }
  static bool reads(const Operand& operand) { return operand.kind == OperandKind::kMemory && operand.indirect; }
  static bool indirect(const Move& move) {
    return move.count_indirect || reads(move.op0) || reads(move.op1) || reads(move.local);
  }

  RankList list(std::uint32_t peer, PeerMode mode) {
    const auto begin = static_cast<std::uint32_t>(lowered_.ranks.size());
    for_each_peer(peer, mode, [&](std::uint32_t rank) { lowered_.ranks.push_back(rank); });
    return {begin, static_cast<std::uint32_t>(lowered_.ranks.size()) - begin};
  }

  Action decode(const Move& move) {
    Action action;
    if (move.kind != MoveKind::kMove) return action;
    action.dtype = move.dtype;
    action.func = move.func;
    action.swap = move.swap;
    action.count = move.count_indirect ? 0 : move.count;
    action.bytes = action.count * bytes_of(move.dtype);
    if (move.func == Func::kAvg) {
      action.mean = mean_kernel(move.dtype);
      action.divisor = static_cast<std::uint32_t>(sends_.size());
    } else if (move.func != Func::kNone) {
      action.combine = combine_kernel(move.func, move.dtype);
      action.reduce = reduce_kernel(move.func, move.dtype, move.swap);
    }
    action.own = piece(move.op0);
    action.other = piece(move.op1);
    action.out = piece(move.local);
    if (takes(move)) {
      action.from = list(move.arrival.peer, move.arrival.mode);
      action.tag_in = move.arrival.tag;
    }
    if (sends(move)) {
      action.forward = list(move.remote.peer, move.remote.mode);
      action.tag_forward = move.remote.tag;
    }
    if (move.op1.kind == OperandKind::kRemoteMemory) {
      action.reach = list(move.arrival.peer, move.arrival.mode);
      action.reach_in = {move.remote_address.offset, move.remote_address.region, true};
      lowered_.remote_memory = true;
    }
    if (move.remote.kind == RemoteKind::kMemory) {
      action.write = list(move.remote.peer, move.remote.mode);
      action.reach_out = {move.remote_address.offset, move.remote_address.result_region, true};
      lowered_.remote_memory = true;
    }
    return action;
  }

  void append_windowed(const Move& move, const Action& action) {
    WindowedMove windowed;
    static_cast<Action&>(windowed) = action;
    windowed.dependencies = move.dependencies;
    windowed.follows[0] = move.segment_dependency0;
    windowed.follows[1] = move.segment_dependency1;
    lowered_.ordinals.resize(lowered_.ranks.size());
    const auto number = [&](const RankList& list, std::vector<Lane>& lanes) {
      for (std::uint32_t i = list.begin; i < list.begin + list.count; ++i) {
        Lane& lane = lanes[lowered_.ranks[i]];
        lowered_.ordinals[i] = lane.messages++;
        lane.bytes += action.bytes;
        lowered_.most_lane_bytes = std::max(lowered_.most_lane_bytes, lane.bytes);
        lowered_.most_lane_messages = std::max(lowered_.most_lane_messages, lane.messages);
      }
    };
    number(action.forward, sends_);
    number(action.from, arrivals_);
    if (action.forward.count + action.from.count != 0)
      lowered_.longest_message = std::max(lowered_.longest_message, action.bytes);
    lowered_.load.messages += action.forward.count;
    lowered_.load.bytes += action.forward.count * action.bytes;
    lowered_.load.direct_bytes += std::uint64_t{action.reach.count + action.write.count} * action.bytes;
    lowered_.moves.push_back(windowed);
  }

  void append_step(std::uint32_t n, const Action& action) {
    const Move& move = program_.moves[n];
    if (move.kind != MoveKind::kMove) return;
    const bool later = indirect(move);
    if (!later && move.count == 0 && action.from.count == 0 && action.forward.count == 0) return;
    Step step;
    const bool only_sends = action.forward.count != 0 && action.from.count == 0 && action.reach.count == 0 &&
                            action.write.count == 0 && !action.other.present && !action.out.present &&
                            action.mean == nullptr;
    if (only_sends) {
      step.kind = Step::Kind::kSend;
      step.send = action;
      if (!later && joins_broadcast(action)) return;
    } else {
      step.take = action;
      const bool simple = action.from.count == 1 && action.forward.count == 0 && !action.other.present &&
                          action.mean == nullptr && action.reach.count == 0 && action.write.count == 0;
      if (simple) {
        step.kind = Step::Kind::kTake;
        if (joins_exchange(action)) {
          if (later) append_indirect(n, action, false);
          return;
        }
      } else if (copies_locally(action)) {
        step.kind = Step::Kind::kCopy;
      }
    }
    lowered_.steps.push_back(step);
    if (later) append_indirect(n, action, only_sends);
  }

  static bool copies_locally(const Action& action) {
    return action.own.present && action.out.present && !action.other.present && action.mean == nullptr &&
           action.from.count + action.reach.count + action.forward.count + action.write.count == 0;
  }

  /// Notes that move n, which is part of the last step, is bound at launch.
  void append_indirect(std::uint32_t n, const Action& action, bool sends) {
    const Move& move = program_.moves[n];
    const auto word = [](bool reads, std::uint64_t offset) {
      return reads ? static_cast<std::uint32_t>(offset / 8) : Indirect::kFixed;
    };
    Indirect part;
    part.move = n;
    part.step = static_cast<std::uint32_t>(lowered_.steps.size()) - 1;
    part.sends = sends;
    part.signal = move.signal;
    part.count = word(move.count_indirect, move.count);
    part.own = word(reads(move.op0), move.op0.offset);
    part.other = word(reads(move.op1), move.op1.offset);
    part.out = word(reads(move.local), move.local.offset);
    part.from = action.from;
    part.forward = action.forward;
    lowered_.indirect.push_back(part);
  }

  /// Whether a send of the same message to more ranks could be added to the step before.
  bool joins_broadcast(const Action& action) {
    if (lowered_.steps.empty()) return false;
    Step& before = lowered_.steps.back();
    const auto last = static_cast<std::uint32_t>(lowered_.steps.size()) - 1;
    const bool bound_later = !lowered_.indirect.empty() && lowered_.indirect.back().step == last;
    if (bound_later || before.kind != Step::Kind::kSend || !(before.send.own == action.own) ||
        before.send.bytes != action.bytes || before.send.tag_forward != action.tag_forward) {
      return false;
    }
    const auto begin = static_cast<std::uint32_t>(lowered_.ranks.size());
    for (const RankList& part : {before.send.forward, action.forward}) {
      for (std::uint32_t i = 0; i < part.count; ++i) {
        const std::uint32_t rank = lowered_.ranks[part.begin + i];
        lowered_.ranks.push_back(rank);
      }
    }
    before.send.forward = {begin, before.send.forward.count + action.forward.count};
    before.moves += 1;
    return true;
  }

  /// Whether the taking in of one message could be joined with a send before it.
  bool joins_exchange(const Action& action) {
    if (lowered_.steps.empty()) return false;
    Step& before = lowered_.steps.back();
    if (before.kind != Step::Kind::kSend) return false;
    before.kind = Step::Kind::kExchange;
    before.take = action;
    before.moves += 1;
    return true;
  }

  /// What a program sends to, or takes from, one rank.
  struct Lane {
    std::uint64_t bytes = 0;
    std::uint32_t messages = 0;
  };

  const Program& program_;
  std::vector<Lane> sends_, arrivals_;  ///< by rank
  std::vector<std::uint32_t> order_;
  LoweredProgram lowered_;
};

}  // namespace

void Launcher::count(LoweredProgram& program, const RankList& list, std::uint64_t bytes, std::vector<Lane>& lanes) {
  for (std::uint32_t i = list.begin; i < list.begin + list.count; ++i) {
    Lane& lane = lanes[program.ranks[i]];
    program.ordinals[i] = lane.messages++;
    lane.bytes += bytes;
    program.most_lane_bytes = std::max(program.most_lane_bytes, lane.bytes);
    program.most_lane_messages = std::max(program.most_lane_messages, lane.messages);
  }
}

namespace {

bool fits(const Piece& piece, std::uint64_t bytes, const std::array<std::uint64_t, 5>& regions) {
  const std::uint64_t size = regions[static_cast<std::size_t>(piece.region)];
  return !piece.present || (piece.offset <= size && bytes <= size - piece.offset);
}

bool overlaps(const Piece& operand, const Piece& result, std::uint64_t bytes) {
  return operand.present && result.present && operand.region == result.region && operand.offset != result.offset &&
         operand.offset < result.offset + bytes && result.offset < operand.offset + bytes;
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_move(std::uint32_t number, const WindowedMove& move,
                                                        const std::array<std::uint64_t, 5>& regions) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidCount, "move " + std::to_string(number) + what);
  };
  if (move.count > kMaxCount) {
    refuse(" has an indirect count of " + std::to_string(move.count) + "; the largest is " + std::to_string(kMaxCount));
  }
  const auto place = [&](const Piece& piece, const char* what) {
    if (fits(piece, move.bytes, regions)) return;
    refuse(std::string(": ") + what + " is " + std::to_string(move.bytes) + " bytes at byte " +
           std::to_string(piece.offset) + " of " + name_of(piece.region) + ", which has " +
           std::to_string(regions[static_cast<std::size_t>(piece.region)]) + " bytes");
  };
  place(move.own, "op0");
  place(move.other, "op1");
  place(move.out, "the local result");
  throw Error(ErrorCode::kInvalidCount,
              "move " + std::to_string(number) + ": an operand and the local result overlap without being the same");
}

}  // namespace

void Launcher::bind(LoweredProgram& program, std::span<const std::uint64_t> params,
                    const std::array<std::uint64_t, 5>& regions) {
  const auto set = [&](std::uint64_t& value, std::uint32_t word) {
    if (word != Indirect::kFixed) value = params[word];
  };
  Totals totals = program.fixed;
  for (const Indirect& part : program.indirect) {
    WindowedMove& move = program.moves[part.move];
    set(move.count, part.count);
    set(move.own.offset, part.own);
    set(move.other.offset, part.other);
    set(move.out.offset, part.out);
    const std::uint64_t bytes = move.count * bytes_of(move.dtype);
    move.bytes = bytes;
    const bool good = move.count <= kMaxCount &&
                      (bytes == 0 || (fits(move.own, bytes, regions) && fits(move.other, bytes, regions) &&
                                      fits(move.out, bytes, regions) && !overlaps(move.own, move.out, bytes) &&
                                      !overlaps(move.other, move.out, bytes)));
    if (!good) [[unlikely]]
      refuse_move(part.move, move, regions);
    const bool exists = bytes != 0 || part.signal;
    move.from.count = exists ? part.from.count : 0;
    move.forward.count = exists ? part.forward.count : 0;
    totals.add(move);
    Step& step = program.steps[part.step];
    Action& action = part.sends ? step.send : step.take;
    action.count = move.count;
    action.bytes = bytes;
    action.own.offset = move.own.offset;
    action.other.offset = move.other.offset;
    action.out.offset = move.out.offset;
    action.from.count = move.from.count;
    action.forward.count = move.forward.count;
  }
  for (const IndirectStep& of : program.indirect_steps) {
    Step& step = program.steps[of.step];
    const bool may_send = of.kind == Step::Kind::kSend || of.kind == Step::Kind::kExchange;
    const bool sends = may_send && step.send.forward.count != 0;
    const bool message = takes_message(of.kind);
    const bool takes = message ? step.take.from.count != 0
                               : of.kind != Step::Kind::kSend && (step.take.bytes != 0 || step.take.from.count != 0 ||
                                                                  step.take.forward.count != 0);
    step.kind = sends     ? (takes ? Step::Kind::kExchange : Step::Kind::kSend)
                : !takes  ? Step::Kind::kNothing
                : message ? Step::Kind::kTake
                          : of.kind;
    step.moves = of.moves - (may_send && !sends ? 1 : 0) - (of.kind != Step::Kind::kSend && !takes ? 1 : 0);
  }
  program.load = totals.load;
  program.most_lane_bytes = totals.lane_bytes;
  program.most_lane_messages = totals.lane_messages;
  program.longest_message = totals.longest;
}

void Launcher::number(LoweredProgram& program) {
  sends_.assign(program.size, {});
  arrivals_.assign(program.size, {});
  program.most_lane_bytes = 0;
  program.most_lane_messages = 0;
  for (const WindowedMove& move : program.moves) {
    count(program, move.forward, move.bytes, sends_);
    count(program, move.from, move.bytes, arrivals_);
  }
}

std::optional<LoweredProgram> lower(const Program& program, std::uint32_t size) {
  return Lowering(program, size).run();
}

bool lanes_carry(std::span<const std::shared_ptr<const Program>> programs) {
  const auto size = static_cast<std::uint32_t>(programs.size());
  return std::all_of(programs.begin(), programs.end(), [&](const auto& program) {
    if (check_program(*program, size)) return false;
    const bool users =
        std::any_of(program->moves.begin(), program->moves.end(), [](const Move& move) { return is_user(move.func); });
    if (users) return false;
    const auto lowered = lower(*program, size);
    if (!lowered || lowered->remote_memory || !lowered->indirect.empty()) return false;
    return std::all_of(lowered->moves.begin(), lowered->moves.end(), [](const WindowedMove& move) {
      return move.func == Func::kNone || move.mean != nullptr || (move.combine != nullptr && move.reduce != nullptr);
    });
  });
}

LoweredProgram lower_windowed(const Program& program, std::uint32_t size) {
  std::optional<LoweredProgram> lowered = lower(program, size);
  if (!lowered) throw Error(ErrorCode::kInternal, "the program uses what lanes do not carry");
  lowered->most_lane_messages = kNone;  // more than any lane holds at once
  return std::move(*lowered);
}

}  // namespace unisono::cclo
