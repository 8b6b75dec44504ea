// The executor (DMP): runs lowered programs. The same template runs live and in the checker.
//
// What lies between ranks is the business of `Channels`, what an operand is and how operands become a value that of
// `Values`. Live, these are the lanes of a communicator, its memory and its kernels (live.hpp); in the checker they are
// queues, and the arithmetic of core/arithmetic.hpp (model.hpp). So what the checker has proven is what runs.
//
// Nothing here blocks. The caller calls `straight` or `windowed` until the flight has ended, and waits in
// between as he likes: what is possible stays possible until it is done. Nothing here allocates.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/lower.hpp"

namespace unisono::cclo {

/// One launch of a lowered program, and how far it has come. Used again for the next launch.
class Flight {
 public:
  /// Takes the program from its begin, in either form. `program` must outlive the flight.
  void start_straight(const LoweredProgram& of) {
    program = &of;
    place = {};
  }
  void start_windowed(const LoweredProgram& of, std::uint32_t ranks) {
    program = &of;
    first = 0;
    complete.fill(false);
    bytes_done.fill(0);
    ways.fill(Way::kOpen);
    sent_to.assign(ranks, 0);
    taken_from.assign(ranks, 0);
  }
  bool ended_straight() const { return place.step == program->steps.size(); }
  bool ended_windowed() const { return first == program->moves.size(); }

  const LoweredProgram* program = nullptr;

  /// Of the straight form: the step that could not go on, and how much of it is done.
  struct Place {
    std::uint32_t step = 0;
    std::uint32_t recipient = 0;  ///< of a short send, which goes to one rank after the other
    bool sent = false;            ///< the send of an exchange is done
    std::uint64_t done = 0;       ///< bytes of an action that goes by segments
    bool operator==(const Place&) const = default;
  };
  Place place;

  // Of the windowed form.
  static constexpr auto kInFlight = static_cast<std::uint32_t>(kWindow);
  std::uint32_t first = 0;                            ///< moves before it have completed
  std::array<bool, kInFlight> complete{};             ///< by number modulo the window
  std::array<std::uint64_t, kInFlight> bytes_done{};  ///< likewise
  enum class Way : std::uint8_t { kOpen, kLent, kStreamed };
  std::array<Way, kInFlight> ways{};               ///< likewise: how what a move sends travels
  std::vector<std::uint32_t> sent_to, taken_from;  ///< messages finished, by rank
};

/// Operands and results of one segment, in the order of the action's lists.
struct Segment {
  std::uint64_t done = 0;  ///< bytes of the action before it
  std::uint64_t bytes = 0;
  const std::byte* const* sources = nullptr;
  std::uint32_t inputs = 0;
  std::byte* const* outputs = nullptr;
  std::uint32_t results = 0;
  const std::uint32_t* ranks = nullptr;  ///< the program's, into which the action's lists point
};

/// How far a loan is, for one of its ends, after it has been looked at.
enum class LoanState : std::uint8_t {
  kNone,   ///< there is none: the message goes by segments
  kWaits,  ///< for the other end
  kMoved,  ///< something has been done
  kEnded,  ///< the message is where it belongs, and its sender may use its memory again
};

/// What is done for loans: only said where memory is; also copied by receivers; or by both ends.
enum class LoanWork : std::uint8_t { kWords, kFetching, kAll };

/// What a rank waits for.
enum class Need : std::uint8_t { kMessage, kRoom };

/// What the executor asks of the ways to other ranks. Short messages, of at most `inline_bytes`, take one line; their
/// ends are looked up once. Arrivals that are not what is awaited throw.
template <class C>
concept Channels = requires(C c, const C& k, std::uint32_t rank, std::uint64_t bytes, std::uint32_t tag,
                            const std::byte* data, const Action& action, decltype(c.sender(rank)) out,
                            decltype(c.receiver(rank)) in) {
  { C::kTraced } -> std::convertible_to<bool>;  // a fault says at which step it was
  { k.inline_bytes() } -> std::convertible_to<std::uint64_t>;
  { k.segment_of(action) } -> std::convertible_to<std::uint64_t>;  // most bytes of it that are done at once
  { c.has_line(out, bytes) } -> std::same_as<bool>;
  c.send_line(out, data, bytes, tag);                                    // copies and publishes
  { c.arrived_line(in, bytes, tag) } -> std::same_as<const std::byte*>;  // null: not yet
  c.taken_line(in, bytes);                                               // it has been read
  { c.arrived(rank, bytes, tag) } -> std::same_as<const std::byte*>;     // a segment, or null
  c.taken(rank, bytes);
  { c.room(rank, bytes) } -> std::same_as<std::byte*>;  // for a segment, or null
  c.sent(rank, bytes, tag);                             // publishes it
  // Long messages that are only sent at one end, and only stored at the other, may be lent (loans.hpp). A sender
  // offers, and looks again until the loan has ended, or the receiver wants segments. Only the windowed form lends:
  // the straight one counts on sends that wait for nobody.
  { k.least_lent() } -> std::convertible_to<std::uint64_t>;       // shorter messages are not looked at
  { c.lend(rank, data, bytes, tag) } -> std::same_as<LoanState>;  // kMoved: it is lent; kWaits: no room to say so
  { c.lent(rank, data) } -> std::same_as<LoanState>;              // kNone: it was declined
  { c.borrow(rank, c.room(rank, bytes), bytes, tag, true) } -> std::same_as<LoanState>;
  // What is done for loans from here on. Whether something was left undone for such a limit since the last call.
  { c.limit_loans(LoanWork::kAll) } -> std::same_as<bool>;
  { k.has_message(rank) } -> std::same_as<bool>;  // of any kind, but a loan that waits for its sender
};

/// What the executor asks of memory and arithmetic.
template <class V>
concept Values = requires(V v, const V& k, const Piece& piece, std::uint32_t rank, std::uint64_t bytes,
                          const std::byte* in, std::byte* out, const Action& action, const Segment& segment) {
  { v.own(piece, bytes, bytes) } -> std::same_as<std::byte*>;        // `done` bytes into a piece, for `bytes`
  { v.far(rank, piece, bytes, bytes) } -> std::same_as<std::byte*>;  // of another rank; null: not mapped here
  v.combine(action, in, in, out, bytes);                             // of a short message
  v.copy_short(out, in, bytes);
  v.copy(action, segment);                               // one operand to one result, both this rank's own
  { v.compute(action, segment) } -> std::same_as<bool>;  // false: a rank whose memory it needs is gone
  { k.gone() } -> std::same_as<const std::uint32_t*>;    // that rank, or null
};

template <Channels C, Values V>
class Executor {
 public:
  /// Both must outlive the executor.
  Executor(C& channels, V& values, std::uint32_t ranks)
      : channels_(channels),
        values_(values),
        sources_(std::size_t{2} * ranks + 2),
        outputs_(std::size_t{2} * ranks + 1) {}

  /// Does one step of the straight form after the other. True when all are done; false when one cannot go on now: the
  /// place is saved, on that way out only, and the next call goes on there.
  bool straight(Flight& flight) {
    const LoweredProgram& program = *flight.program;
    const auto count = static_cast<std::uint32_t>(program.steps.size());
    for (std::uint32_t i = flight.place.step; i < count; ++i) {
      if constexpr (C::kTraced) flight.place.step = i;
      if (!step(program.steps[i], flight)) [[unlikely]] {
        flight.place.step = i;
        return false;
      }
    }
    flight.place.step = count;
    return true;
  }

  /// Does of the windowed form what can be done now. False if nothing could.
  bool windowed(Flight& flight) {
    const auto count = static_cast<std::uint32_t>(flight.program->moves.size());
    // What others wait for comes first, what both ends of a loan can do last.
    channels_.limit_loans(LoanWork::kWords);
    bool any = each_ready(flight, false) || each_ready(flight, true);
    for (const LoanWork work : {LoanWork::kFetching, LoanWork::kAll}) {
      if (channels_.limit_loans(work) && !any) any = each_ready(flight, false);
    }
    while (flight.first < count && flight.complete[flight.first % Flight::kInFlight]) {
      flight.complete[flight.first % Flight::kInFlight] = false;
      flight.bytes_done[flight.first % Flight::kInFlight] = 0;
      flight.ways[flight.first % Flight::kInFlight] = Flight::Way::kOpen;
      ++flight.first;
    }
    return any;
  }

  /// Calls `use(rank, need)` for every rank that a flight which cannot go on waits for.
  template <class Use>
  void awaited_straight(const Flight& flight, Use&& use) {
    if (flight.ended_straight()) return;
    const Step& step = flight.program->steps[flight.place.step];
    const bool sends = has_send(step) && !flight.place.sent;
    const Action& action = sends ? step.send : step.take;
    if (sends && action.bytes <= channels_.inline_bytes()) {
      use(flight.program->ranks[action.forward.begin + flight.place.recipient], Need::kRoom);
    } else {
      awaited(action, *flight.program, flight.place.done, use);
    }
  }
  template <class Use>
  void awaited_windowed(const Flight& flight, Use&& use) {
    const auto count = static_cast<std::uint32_t>(flight.program->moves.size());
    for (std::uint32_t n = flight.first; n < std::min(count, flight.first + Flight::kInFlight); ++n) {
      if (completed(flight, n) || !ready(flight, n)) continue;
      if (flight.ways[n % Flight::kInFlight] == Flight::Way::kLent) {
        use(flight.program->ranks[flight.program->moves[n].forward.begin], Need::kRoom);
        continue;
      }
      awaited(flight.program->moves[n], *flight.program, flight.bytes_done[n % Flight::kInFlight], use);
    }
  }

 private:
  static bool has_send(const Step& step) {
    return step.kind == Step::Kind::kSend || step.kind == Step::Kind::kExchange;
  }
  /// Whether an action is finished; one without elements is when it has been advanced once.
  static bool finished(const Action& action, std::uint64_t done) { return done > 0 && done >= action.bytes; }

  // ---------------------------------------------------------------------------------------- the straight form

  bool step(const Step& step, Flight& flight) {
    switch (step.kind) {
      case Step::Kind::kSend:
        return send(step.send, flight);
      case Step::Kind::kExchange:
        if (!flight.place.sent && !send(step.send, flight)) [[unlikely]]
          return false;
        if (!take(step.take, flight)) [[unlikely]] {
          flight.place.sent = true;
          return false;
        }
        if (flight.place.sent) [[unlikely]]
          flight.place.sent = false;
        return true;
      case Step::Kind::kTake:
        return take(step.take, flight);
      case Step::Kind::kCopy:
        return copy(step.take, flight);
      case Step::Kind::kGeneral:
        return finish(step.take, flight);
      case Step::Kind::kNothing:
        return true;
    }
    return true;
  }

  bool send(const Action& action, Flight& flight) {
    if (action.bytes > channels_.inline_bytes()) return finish(action, flight);
    const std::byte* data = action.own.present ? values_.own(action.own, 0, action.bytes) : nullptr;
    const std::uint32_t* ranks = flight.program->ranks.data() + action.forward.begin;
    for (std::uint32_t i = flight.place.recipient; i < action.forward.count; ++i) {
      auto&& lane = channels_.sender(ranks[i]);
      if (!channels_.has_line(lane, action.bytes)) [[unlikely]] {
        flight.place.recipient = i;
        return false;
      }
      channels_.send_line(lane, data, action.bytes, action.tag_forward);
    }
    if (flight.place.recipient != 0) [[unlikely]]
      flight.place.recipient = 0;
    return true;
  }

  bool take(const Action& action, Flight& flight) {
    if (action.bytes > channels_.inline_bytes()) return finish(action, flight);
    auto&& lane = channels_.receiver(flight.program->ranks[action.from.begin]);
    const std::byte* payload = channels_.arrived_line(lane, action.bytes, action.tag_in);
    if (payload == nullptr) [[unlikely]]
      return false;
    if (action.own.present) {
      values_.combine(action, values_.own(action.own, 0, action.bytes), payload,
                      values_.own(action.out, 0, action.bytes), action.bytes);
    } else if (action.out.present) {
      values_.copy_short(values_.own(action.out, 0, action.bytes), payload, action.bytes);
    }
    channels_.taken_line(lane, action.bytes);
    return true;
  }

  bool copy(const Action& action, Flight& flight) {
    if (action.bytes > channels_.inline_bytes()) return finish(action, flight);
    values_.copy_short(values_.own(action.out, 0, action.bytes), values_.own(action.own, 0, action.bytes),
                       action.bytes);
    return true;
  }

  bool finish(const Action& action, Flight& flight) {
    std::uint64_t done = flight.place.done;
    while (!finished(action, done)) {
      if (advance(action, *flight.program, done, true)) continue;
      flight.place.done = done;
      return false;
    }
    if (flight.place.done != 0) [[unlikely]]
      flight.place.done = 0;
    return true;
  }

  // ---------------------------------------------------------------------------------------- the windowed form

  static bool completed(const Flight& flight, std::uint32_t move) {
    return move < flight.first || flight.complete[move % Flight::kInFlight];
  }

  bool ready(const Flight& flight, std::uint32_t n) const {
    const WindowedMove& move = flight.program->moves[n];
    for (std::uint32_t bits = move.dependencies; bits != 0; bits &= bits - 1) {
      const auto distance = static_cast<std::uint32_t>(__builtin_ctz(bits)) + 1;
      if (!completed(flight, n - distance)) return false;
    }
    const std::uint64_t end =
        std::min(move.bytes, flight.bytes_done[n % Flight::kInFlight] + channels_.segment_of(move));
    for (const std::uint8_t distance : move.follows) {
      if (distance == 0 || completed(flight, n - distance)) continue;
      if (done_of(flight, n - distance) < end) return false;
    }
    return has_turn(flight, move);
  }

  /// The messages of a pair go one after the other.
  static bool has_turn(const Flight& flight, const WindowedMove& move) {
    const LoweredProgram& program = *flight.program;
    for (std::uint32_t i = move.from.begin; i < move.from.begin + move.from.count; ++i) {
      if (flight.taken_from[program.ranks[i]] != program.ordinals[i]) return false;
    }
    for (std::uint32_t i = move.forward.begin; i < move.forward.begin + move.forward.count; ++i) {
      if (flight.sent_to[program.ranks[i]] != program.ordinals[i]) return false;
    }
    return true;
  }

  static void complete(Flight& flight, std::uint32_t n) {
    const LoweredProgram& program = *flight.program;
    const WindowedMove& move = program.moves[n];
    for (std::uint32_t i = 0; i < move.from.count; ++i) ++flight.taken_from[program.ranks[move.from.begin + i]];
    for (std::uint32_t i = 0; i < move.forward.count; ++i) ++flight.sent_to[program.ranks[move.forward.begin + i]];
    flight.complete[n % Flight::kInFlight] = true;
  }

  /// Bytes of a move that others may follow. What is lent must stay as it is.
  static std::uint64_t done_of(const Flight& flight, std::uint32_t n) {
    const std::uint32_t slot = n % Flight::kInFlight;
    return flight.ways[slot] == Flight::Way::kLent ? 0 : flight.bytes_done[slot];
  }

  /// Does what can be done of the moves that concern this rank `alone`, or of those that do not.
  bool each_ready(Flight& flight, bool alone) {
    const auto& moves = flight.program->moves;
    const auto count = static_cast<std::uint32_t>(moves.size());
    bool any = false;
    for (std::uint32_t n = flight.first; n < std::min(count, flight.first + Flight::kInFlight); ++n) {
      const std::uint32_t slot = n % Flight::kInFlight;
      const WindowedMove& move = moves[n];
      if (flight.complete[slot] || (move.from.count + move.forward.count == 0) != alone || !ready(flight, n)) continue;
      const bool nothing = move.bytes == 0 && alone;
      if (!nothing && !go_on(move, flight, n)) continue;
      any = true;
      if (nothing || (flight.ways[slot] != Flight::Way::kLent && finished(move, flight.bytes_done[slot])))
        complete(flight, n);
    }
    return any;
  }

  /// Does what can be done of a move: by a loan, or by its next segment.
  bool go_on(const WindowedMove& move, Flight& flight, std::uint32_t n) {
    std::uint64_t& done = flight.bytes_done[n % Flight::kInFlight];
    Flight::Way& way = flight.ways[n % Flight::kInFlight];
    if (way == Flight::Way::kStreamed || move.bytes < channels_.least_lent())
      return advance(move, *flight.program, done, true);
    if (way == Flight::Way::kLent) return go_on_lent(move, flight, n);
    // What follows another move segment by segment is not there as a whole, or may not be overwritten as a whole.
    const bool whole = std::all_of(std::begin(move.follows), std::end(move.follows), [&](std::uint8_t distance) {
      return distance == 0 || completed(flight, n - distance);
    });
    if (done != 0 || !move.only_sends() || !whole) return advance(move, *flight.program, done, whole);
    switch (channels_.lend(flight.program->ranks[move.forward.begin], values_.own(move.own, 0, move.bytes), move.bytes,
                           move.tag_forward)) {
      case LoanState::kWaits:
        return false;
      case LoanState::kNone:
        way = Flight::Way::kStreamed;
        return advance(move, *flight.program, done, true);
      case LoanState::kMoved:
      case LoanState::kEnded:
        break;
    }
    way = Flight::Way::kLent;
    return true;
  }

  /// The same of one that is lent, and that may have a result of this rank's own.
  bool go_on_lent(const WindowedMove& move, Flight& flight, std::uint32_t n) {
    constexpr std::uint64_t kBlock = std::uint64_t{16} * 1024;
    std::uint64_t& done = flight.bytes_done[n % Flight::kInFlight];
    const LoanState state =
        channels_.lent(flight.program->ranks[move.forward.begin], values_.own(move.own, 0, move.bytes));
    if (state == LoanState::kMoved) return true;
    if (state == LoanState::kNone) {
      flight.ways[n % Flight::kInFlight] = Flight::Way::kStreamed;
      done = 0;
      return true;
    }
    if (move.out.present && done < move.bytes) {
      const std::uint64_t bytes = std::min(kBlock, move.bytes - done);
      sources_[0] = values_.own(move.own, done, bytes);
      outputs_[0] = values_.own(move.out, done, bytes);
      values_.copy(move, {done, bytes, sources_.data(), 1, outputs_.data(), 1, flight.program->ranks.data()});
      done += bytes;
      return true;
    }
    if (state == LoanState::kWaits) return false;
    flight.ways[n % Flight::kInFlight] = Flight::Way::kStreamed;
    done = move.bytes;
    return true;
  }

  // ---------------------------------------------------------------------------------------- one segment

  /// Does the next segment of an action if everything it needs is there: messages, and room for what it sends. `done`
  /// counts the bytes of the action that are finished.
  /// A message that is lent is declined unless `whole`.
  bool advance(const Action& action, const LoweredProgram& program, std::uint64_t& done, bool whole) {
    if (whole && done == 0 && action.bytes >= channels_.least_lent() && action.only_stores()) {
      // Others do not know of scratch that it is not to be touched after an error.
      const LoanState state =
          channels_.borrow(program.ranks[action.from.begin], values_.own(action.out, 0, action.bytes), action.bytes,
                           action.tag_in, action.out.region != Region::kScratch);
      if (state == LoanState::kEnded) done = action.bytes;
      if (state != LoanState::kNone) return state != LoanState::kWaits;
    }
    const std::uint64_t bytes = std::min(action.bytes - done, std::uint64_t{channels_.segment_of(action)});
    const std::uint32_t* ranks = program.ranks.data();

    std::uint32_t inputs = 0;
    if (action.own.present) sources_[inputs++] = values_.own(action.own, done, bytes);
    for (std::uint32_t i = 0; i < action.from.count; ++i) {
      const std::byte* payload = channels_.arrived(ranks[action.from.begin + i], bytes, action.tag_in);
      if (payload == nullptr) return false;
      sources_[inputs++] = payload;
    }
    for (std::uint32_t i = 0; i < action.reach.count; ++i) {
      sources_[inputs++] = values_.far(ranks[action.reach.begin + i], action.reach_in, done, bytes);
    }
    if (action.other.present) sources_[inputs++] = values_.own(action.other, done, bytes);

    std::uint32_t results = 0;
    if (action.out.present) outputs_[results++] = values_.own(action.out, done, bytes);
    for (std::uint32_t i = 0; i < action.forward.count; ++i) {
      std::byte* place = channels_.room(ranks[action.forward.begin + i], bytes);
      if (place == nullptr) return false;
      outputs_[results++] = place;
    }
    for (std::uint32_t i = 0; i < action.write.count; ++i) {
      outputs_[results++] = values_.far(ranks[action.write.begin + i], action.reach_out, done, bytes);
    }

    if (!values_.compute(action, {done, bytes, sources_.data(), inputs, outputs_.data(), results, ranks})) {
      return false;
    }

    for (std::uint32_t i = 0; i < action.from.count; ++i) channels_.taken(ranks[action.from.begin + i], bytes);
    for (std::uint32_t i = 0; i < action.forward.count; ++i) {
      channels_.sent(ranks[action.forward.begin + i], bytes, action.tag_forward);
    }
    done += std::max<std::uint64_t>(bytes, 1);
    return true;
  }

  /// Those without whom `advance` cannot go on: whose messages have not come, or, if all have, who must take some
  /// before there is room.
  template <class Use>
  void awaited(const Action& action, const LoweredProgram& program, std::uint64_t done, Use&& use) {
    if (const std::uint32_t* gone = values_.gone()) return use(*gone, Need::kMessage);
    bool missing = false;
    for (std::uint32_t i = action.from.begin; i < action.from.begin + action.from.count; ++i) {
      if (channels_.has_message(program.ranks[i])) continue;
      missing = true;
      use(program.ranks[i], Need::kMessage);
    }
    if (missing) return;
    const std::uint64_t bytes = std::min(action.bytes - done, std::uint64_t{channels_.segment_of(action)});
    for (std::uint32_t i = action.forward.begin; i < action.forward.begin + action.forward.count; ++i) {
      if (channels_.room(program.ranks[i], bytes) == nullptr) use(program.ranks[i], Need::kRoom);
    }
  }

  C& channels_;
  V& values_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> outputs_;
};

}  // namespace unisono::cclo
