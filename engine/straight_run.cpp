#include "engine/straight_run.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include "core/arithmetic.hpp"
#include "network/shm/lanes.hpp"

namespace unisono::cclo {
namespace {

using Kind = LoweredFault::Kind;

constexpr auto kInFlight = static_cast<std::uint32_t>(kWindow);
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::string text_of(const std::vector<std::uint32_t>& moves) {
  if (moves.empty()) return "";
  std::string text = moves.size() == 1 ? " (move " : " (moves ";
  for (std::size_t i = 0; i < moves.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(moves[i]);
  return text + ")";
}

// ------------------------------------------------------------------------------------------------ the run

class Run {
 public:
  Run(std::span<LoweredRank> ranks, const LaneModel& model,
      std::span<const std::vector<std::vector<std::uint32_t>>> moves_of)
      : bound_(ranks), model_(model), moves_of_(moves_of), size_(static_cast<std::uint32_t>(ranks.size())) {
    lanes_.resize(std::size_t{size_} * size_);
    ranks_.resize(size_);
    queued_.assign(size_, true);
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      State& state = ranks_[rank];
      // Not zeros, so that reading scratch before it is written shows in the result.
      state.scratch.assign(ranks[rank].program->scratch_bytes, std::byte{0xa5});
      state.windowed = rank < model.windowed.size() && model.windowed[rank];
      if (state.windowed) {
        state.sent.assign(size_, 0);
        state.taken.assign(size_, 0);
      }
      runnable_.push_back(rank);
    }
  }

  LoweredRun run() {
    LoweredRun result;
    try {
      while (!runnable_.empty()) {
        const std::uint32_t rank = runnable_.front();
        runnable_.pop_front();
        queued_[rank] = false;
        if (ranks_[rank].windowed) {
          run_windowed(rank);
        } else {
          run_straight(rank);
        }
      }
      for (std::uint32_t rank = 0; rank < size_; ++rank) {
        if (!ended(rank)) deadlock(rank);
      }
      for (std::uint32_t from = 0; from < size_; ++from) {
        for (std::uint32_t to = 0; to < size_; ++to) {
          const Lane& lane = lanes_[std::size_t{from} * size_ + to];
          if (lane.taken == lane.lines.size()) continue;
          throw LoweredFault{Kind::kLeftOver,
                             std::to_string(lane.lines.size() - lane.taken) + " segments of rank " +
                                 std::to_string(from) + " to rank " + std::to_string(to) +
                                 " are left over when all ranks have ended; the first has tag " +
                                 std::to_string(lane.lines[lane.taken].tag),
                             {}};
        }
      }
    } catch (LoweredFault& fault) {
      result.fault = std::move(fault);
    }
    result.segments = segments_;
    return result;
  }

 private:
  struct Line {
    std::uint64_t bytes = 0;
    std::uint64_t place = 0;  ///< in the lane's payload
    std::uint32_t tag = 0;
  };
  struct Lane {
    std::vector<Line> lines;  ///< all that were ever sent
    std::vector<std::byte> payload;
    std::size_t taken = 0;
    std::uint64_t held_bytes = 0;
  };
  struct State {
    std::vector<std::byte> scratch;
    bool windowed = false;
    // Straight form.
    std::uint32_t step = 0;
    bool sent_part = false;        ///< the step's `send` is done
    std::uint32_t recipients = 0;  ///< of a send of few bytes, which goes to one rank after the other
    std::uint64_t done = 0;        ///< bytes of the action
    // Windowed form.
    std::uint32_t first = 0;
    std::array<bool, kInFlight> complete{};
    std::array<std::uint64_t, kInFlight> bytes_done{};
    std::vector<std::uint32_t> sent, taken;
  };
  /// What an action waits for.
  struct Wait {
    std::uint32_t peer = kNone;
    bool room = false;  ///< to send; else a message
  };

  Lane& lane(std::uint32_t from, std::uint32_t to) { return lanes_[std::size_t{from} * size_ + to]; }
  const LoweredProgram& program(std::uint32_t rank) const { return *bound_[rank].program; }

  bool ended(std::uint32_t rank) const {
    const State& state = ranks_[rank];
    return state.windowed ? state.first == program(rank).moves.size() : state.step == program(rank).steps.size();
  }

  void wake(std::uint32_t rank) {
    if (queued_[rank]) return;
    queued_[rank] = true;
    runnable_.push_back(rank);
  }

  std::uint32_t peer_at(std::uint32_t rank, std::uint32_t index) const {
    const auto& ranks = program(rank).ranks;
    if (index >= ranks.size() || ranks[index] >= size_) {
      throw LoweredFault{Kind::kOutOfBounds, "rank " + std::to_string(rank) + " names a rank that does not exist", {}};
    }
    return ranks[index];
  }

  std::byte* at(std::uint32_t rank, std::uint32_t owner, const Piece& piece, std::uint64_t done, std::uint64_t bytes) {
    const bool own = rank == owner;
    std::vector<std::byte>* memory = piece.region == Region::kSrc              ? &bound_[owner].src
                                     : piece.region == Region::kDst            ? &bound_[owner].dst
                                     : piece.region == Region::kScratch && own ? &ranks_[owner].scratch
                                                                               : nullptr;
    if (memory == nullptr || piece.offset > memory->size() || done + bytes > memory->size() - piece.offset) {
      throw LoweredFault{Kind::kOutOfBounds,
                         here(rank) + " reaches " + name_of(piece.region) + "[" + std::to_string(piece.offset) + ":" +
                             std::to_string(piece.offset + done + bytes) + "] of rank " + std::to_string(owner) +
                             ", which has " + std::to_string(memory == nullptr ? 0 : memory->size()) + " bytes",
                         {place_of(rank)}};
    }
    return memory->data() + piece.offset + done;
  }

  std::uint64_t segment_of(const Action& action) const {
    const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(action.dtype));
    return std::max(element, model_.segment_bytes / element * element);
  }

  bool has_room(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    if (!model_.straight_is_limited && !(ranks_[from].windowed && ranks_[to].windowed)) return true;
    const Lane& of = lane(from, to);
    const std::uint64_t held = of.lines.size() - of.taken;
    return held < model_.lines && (held == 0 || of.held_bytes + bytes <= model_.bytes);
  }

  void put(std::uint32_t from, std::uint32_t to, const std::byte* data, std::uint64_t bytes, std::uint32_t tag) {
    Lane& of = lane(from, to);
    of.lines.push_back({bytes, of.payload.size(), tag});
    if (bytes != 0) of.payload.insert(of.payload.end(), data, data + bytes);
    of.held_bytes += bytes;
    wake(to);
  }

  /// The next segment of an action, or what it waits for.
  std::optional<Wait> advance(std::uint32_t rank, const Action& action, std::uint64_t& done) {
    const std::uint64_t bytes = std::min(action.bytes - done, segment_of(action));
    sources_.clear();
    if (action.own.present) sources_.push_back(at(rank, rank, action.own, done, bytes));
    for (std::uint32_t i = 0; i < action.from.count; ++i) {
      const std::uint32_t peer = peer_at(rank, action.from.begin + i);
      Lane& of = lane(peer, rank);
      if (of.taken == of.lines.size()) return Wait{peer, false};
      const Line& line = of.lines[of.taken];
      if (line.bytes != bytes || line.tag != action.tag_in) {
        throw LoweredFault{Kind::kMismatch,
                           here(rank) + " awaits " + std::to_string(bytes) + " bytes with tag " +
                               std::to_string(action.tag_in) + " of rank " + std::to_string(peer) + "; there came " +
                               std::to_string(line.bytes) + " bytes with tag " + std::to_string(line.tag),
                           {place_of(rank)}};
      }
      sources_.push_back(of.payload.data() + line.place);
    }
    for (std::uint32_t i = 0; i < action.reach.count; ++i) {
      sources_.push_back(at(rank, peer_at(rank, action.reach.begin + i), action.reach_in, done, bytes));
    }
    if (action.other.present) sources_.push_back(at(rank, rank, action.other, done, bytes));
    for (std::uint32_t i = 0; i < action.forward.count; ++i) {
      const std::uint32_t peer = peer_at(rank, action.forward.begin + i);
      if (!has_room(rank, peer, bytes)) return Wait{peer, true};
    }
    const std::byte* value = combine(rank, action, bytes);
    if (action.out.present && bytes != 0) std::memmove(at(rank, rank, action.out, done, bytes), value, bytes);
    for (std::uint32_t i = 0; i < action.write.count; ++i) {
      std::byte* there = at(rank, peer_at(rank, action.write.begin + i), action.reach_out, done, bytes);
      if (bytes != 0) std::memmove(there, value, bytes);
    }
    for (std::uint32_t i = 0; i < action.forward.count; ++i) {
      put(rank, peer_at(rank, action.forward.begin + i), value, bytes, action.tag_forward);
    }
    for (std::uint32_t i = 0; i < action.from.count; ++i) {
      const std::uint32_t peer = peer_at(rank, action.from.begin + i);
      Lane& of = lane(peer, rank);
      ++of.taken;
      of.held_bytes -= bytes;
      wake(peer);
    }
    done += std::max<std::uint64_t>(bytes, 1);
    ++segments_;
    return std::nullopt;
  }

  /// The value of a segment, from `sources_`. All of them are read before anything is written.
  const std::byte* combine(std::uint32_t rank, const Action& action, std::uint64_t bytes) {
    if (bytes == 0) return nullptr;
    if (sources_.empty() || (sources_.size() > 1 && action.func == Func::kNone)) {
      throw LoweredFault{Kind::kNotTheMoves,
                         here(rank) + " has " + std::to_string(sources_.size()) +
                             " operands, and no function that makes one value of them",
                         {place_of(rank)}};
    }
    value_.resize(bytes);
    if (sources_.size() == 1) {
      std::memcpy(value_.data(), sources_[0], bytes);
      return value_.data();
    }
    const std::uint64_t count = bytes / bytes_of(action.dtype);
    accumulator_.resize(count * accumulator_bytes(action.dtype));
    fold_begin(action.dtype, sources_[0], accumulator_.data(), count);
    for (std::size_t i = 1; i < sources_.size(); ++i) {
      fold_step(action.func, action.dtype, action.swap, accumulator_.data(), sources_[i], count);
    }
    fold_end(action.dtype, accumulator_.data(), value_.data(), count);
    return value_.data();
  }

  static bool finished(const Action& action, std::uint64_t done) { return done > 0 && done >= action.bytes; }

  // ---------------------------------------------------------------------------------------- straight

  std::optional<Wait> send(std::uint32_t rank, const Action& action) {
    State& state = ranks_[rank];
    if (action.bytes > shm::kInlineBytes) return finish(rank, action);
    const std::byte* data = action.own.present ? at(rank, rank, action.own, 0, action.bytes) : nullptr;
    for (; state.recipients < action.forward.count; ++state.recipients) {
      const std::uint32_t peer = peer_at(rank, action.forward.begin + state.recipients);
      // Few bytes are cut too if the model says so; receivers cut alike.
      while (!finished(action, state.done)) {
        const std::uint64_t bytes = std::min(action.bytes - state.done, segment_of(action));
        if (!has_room(rank, peer, bytes)) return Wait{peer, true};
        put(rank, peer, data == nullptr ? nullptr : data + state.done, bytes, action.tag_forward);
        state.done += std::max<std::uint64_t>(bytes, 1);
        ++segments_;
      }
      state.done = 0;
    }
    state.recipients = 0;
    return std::nullopt;
  }

  std::optional<Wait> finish(std::uint32_t rank, const Action& action) {
    std::uint64_t& done = ranks_[rank].done;
    while (!finished(action, done)) {
      if (const auto wait = advance(rank, action, done)) return wait;
    }
    done = 0;
    return std::nullopt;
  }

  /// The current step, or what it waits for.
  std::optional<Wait> run_step(std::uint32_t rank) {
    State& state = ranks_[rank];
    const Step& step = program(rank).steps[state.step];
    const bool sends = step.kind == Step::Kind::kSend || step.kind == Step::Kind::kExchange;
    if (sends && !state.sent_part) {
      if (const auto wait = send(rank, step.send)) return wait;
      state.sent_part = true;
    }
    if (step.kind != Step::Kind::kSend) {
      if (const auto wait = finish(rank, step.take)) return wait;
    }
    state.sent_part = false;
    ++state.step;
    return std::nullopt;
  }

  void run_straight(std::uint32_t rank) {
    while (!ended(rank)) {
      if (run_step(rank)) return;
    }
  }

  // ---------------------------------------------------------------------------------------- windowed

  bool complete(const State& state, std::uint32_t move) const {
    return move < state.first || state.complete[move % kInFlight];
  }

  bool ready(std::uint32_t rank, std::uint32_t n) const {
    const State& state = ranks_[rank];
    const WindowedMove& move = program(rank).moves[n];
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      if ((move.dependencies >> bit & 1U) != 0 && bit < n && !complete(state, n - 1 - bit)) return false;
    }
    const std::uint64_t end =
        std::min(move.bytes - state.bytes_done[n % kInFlight], segment_of(move)) + state.bytes_done[n % kInFlight];
    for (const std::uint8_t distance : move.follows) {
      if (distance == 0 || complete(state, n - distance)) continue;
      if (state.bytes_done[(n - distance) % kInFlight] < end) return false;
    }
    for (std::uint32_t i = 0; i < move.from.count; ++i) {
      if (state.taken[peer_at(rank, move.from.begin + i)] != program(rank).ordinals[move.from.begin + i]) return false;
    }
    for (std::uint32_t i = 0; i < move.forward.count; ++i) {
      const std::uint32_t place = move.forward.begin + i;
      if (state.sent[peer_at(rank, place)] != program(rank).ordinals[place]) return false;
    }
    return true;
  }

  void run_windowed(std::uint32_t rank) {
    State& state = ranks_[rank];
    const auto& moves = program(rank).moves;
    const auto count = static_cast<std::uint32_t>(moves.size());
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t n = state.first; n < std::min(count, state.first + kInFlight); ++n) {
        if (state.complete[n % kInFlight] || !ready(rank, n)) continue;
        const WindowedMove& move = moves[n];
        std::uint64_t& done = state.bytes_done[n % kInFlight];
        const bool nothing = move.bytes == 0 && move.from.count == 0 && move.forward.count == 0;
        if (!nothing && advance(rank, move, done)) continue;
        any = true;
        if (!nothing && !finished(move, done)) continue;
        state.complete[n % kInFlight] = true;
        for (std::uint32_t i = 0; i < move.from.count; ++i) ++state.taken[peer_at(rank, move.from.begin + i)];
        for (std::uint32_t i = 0; i < move.forward.count; ++i) ++state.sent[peer_at(rank, move.forward.begin + i)];
      }
      while (state.first < count && state.complete[state.first % kInFlight]) {
        state.complete[state.first % kInFlight] = false;
        state.bytes_done[state.first % kInFlight] = 0;
        ++state.first;
        any = true;
      }
    }
  }

  // ---------------------------------------------------------------------------------------- messages

  LoweredFault::Place place_of(std::uint32_t rank) const {
    const State& state = ranks_[rank];
    if (state.windowed) return {rank, state.first, {state.first}};
    LoweredFault::Place place{rank, state.step, {}};
    if (rank < moves_of_.size() && state.step < moves_of_[rank].size()) place.moves = moves_of_[rank][state.step];
    return place;
  }

  std::string here(std::uint32_t rank) const {
    const LoweredFault::Place place = place_of(rank);
    return "rank " + std::to_string(rank) +
           (ranks_[rank].windowed ? ", windowed, oldest move " + std::to_string(place.step)
                                  : ", step " + std::to_string(place.step) + text_of(place.moves));
  }

  /// What a rank that cannot go on waits for. The oldest move of a window depends on nothing but lanes.
  Wait wait_of(std::uint32_t rank) {
    State& state = ranks_[rank];
    const auto wait = state.windowed
                          ? advance(rank, program(rank).moves[state.first], state.bytes_done[state.first % kInFlight])
                          : run_step(rank);
    return wait.value_or(Wait{});
  }

  [[noreturn]] void deadlock(std::uint32_t rank) {
    LoweredFault fault;
    fault.kind = Kind::kDeadlock;
    std::vector<std::uint32_t> way;
    std::vector<std::string> lines;
    std::size_t begin = 0;
    bool circle = true;
    for (std::uint32_t at = rank;;) {
      const auto seen = std::find(way.begin(), way.end(), at);
      if (seen != way.end()) {
        begin = static_cast<std::size_t>(seen - way.begin());
        break;
      }
      way.push_back(at);
      const Wait wait = wait_of(at);
      lines.push_back("  " + here(at) + ": waits for " +
                      (wait.room ? "room for a message to rank " : "a message of rank ") + std::to_string(wait.peer));
      fault.places.push_back(place_of(at));
      if (wait.peer == kNone) break;
      if (ended(wait.peer)) {
        lines.back() += ", which has ended";
        circle = false;
        break;
      }
      at = wait.peer;
    }
    fault.text = circle ? "these wait for each other:" : "these never end:";
    for (std::size_t i = begin; i < lines.size(); ++i) fault.text += "\n" + lines[i];
    fault.places.erase(fault.places.begin(), fault.places.begin() + static_cast<std::ptrdiff_t>(begin));
    throw LoweredFault(std::move(fault));
  }

  std::span<LoweredRank> bound_;
  const LaneModel& model_;
  std::span<const std::vector<std::vector<std::uint32_t>>> moves_of_;
  std::uint32_t size_;
  std::vector<Lane> lanes_;  ///< [from][to]
  std::vector<State> ranks_;
  std::deque<std::uint32_t> runnable_;
  std::vector<bool> queued_;
  std::uint64_t segments_ = 0;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte> value_, accumulator_;
};

// ----------------------------------------------------------------------------------------- the comparison

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
    if (step.kind != Step::Kind::kSend) match_take(step.take, step.kind != Step::Kind::kGeneral);
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

  void match_take(const Action& action, bool simple) {
    if (simple && (action.from.count != 1 || action.forward.count != 0 || action.other.present ||
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

LoweredRun run_lowered(std::span<LoweredRank> ranks, const LaneModel& model,
                       std::span<const std::vector<std::vector<std::uint32_t>>> moves_of) {
  return Run(ranks, model, moves_of).run();
}

LoweredCheck compare_lowered(const Program& program, const LoweredProgram& lowered, std::uint32_t rank,
                             std::uint32_t size) {
  return Comparison(program, lowered, rank, size).run();
}

}  // namespace unisono::cclo
