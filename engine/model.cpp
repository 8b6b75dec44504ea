#include "engine/model.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include "core/arithmetic.hpp"
#include "engine/executor.hpp"
#include "network/shm/lanes.hpp"

namespace unisono::cclo {
namespace {

using Kind = LoweredFault::Kind;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::string text_of(const std::vector<std::uint32_t>& moves) {
  if (moves.empty()) return "";
  std::string text = moves.size() == 1 ? " (move " : " (moves ";
  for (std::size_t i = 0; i < moves.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(moves[i]);
  return text + ")";
}

/// Where a rank is, for messages about it.
class Places {
 public:
  virtual ~Places() = default;
  Places() = default;
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  virtual std::string here(std::uint32_t rank) const = 0;
  virtual LoweredFault::Place place_of(std::uint32_t rank) const = 0;
  /// Something has changed for a rank that may have waited for it.
  virtual void wake(std::uint32_t rank) = 0;
};

/// All lanes of a communicator, and the ends of one rank at a time: Channels of executor.hpp.
class ModelChannels {
 public:
  static constexpr bool kTraced = true;
  struct Line {
    std::uint64_t bytes = 0;
    std::uint64_t place = 0;  ///< in the lane's payload
    std::uint32_t tag = 0;
    const std::byte* lent = nullptr;  ///< where the message stands that the line lends
  };
  struct Lane {
    std::vector<Line> lines;         ///< all that were ever sent
    std::vector<std::byte> payload;  ///< of all; a byte more, so that that of none has an address
    std::vector<std::byte> pending;  ///< the segment that is being made
    std::size_t taken = 0;
    std::uint64_t held_bytes = 0;
    bool declined = false;  ///< the last loan was
  };
  /// An end of a lane.
  struct End {
    Lane& lane;
    std::uint32_t peer;
  };

  ModelChannels(const LaneModel& model, std::uint32_t size, Places& places)
      : model_(model), size_(size), places_(places), lanes_(std::size_t{size} * size) {}

  std::uint64_t inline_bytes() const { return std::min<std::uint64_t>(shm::kInlineBytes, model_.segment_bytes); }
  std::uint64_t segment_of(const Action& action) const {
    const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(action.dtype));
    return std::max(element, model_.segment_bytes / element * element);
  }
  End sender(std::uint32_t peer) { return {lane(rank, peer), peer}; }
  End receiver(std::uint32_t peer) { return {lane(peer, rank), peer}; }
  bool has_line(const End& end, std::uint64_t bytes) const { return has_room(end.peer, end.lane, bytes); }
  void send_line(const End& end, const std::byte* data, std::uint64_t bytes, std::uint32_t tag) {
    end.lane.pending.assign(bytes + 1, std::byte{0});
    if (bytes != 0 && data != nullptr) std::memcpy(end.lane.pending.data(), data, bytes);
    publish(end, bytes, tag);
    ++segments;
  }
  const std::byte* arrived_line(const End& end, std::uint64_t bytes, std::uint32_t tag) const {
    const Lane& of = end.lane;
    if (of.taken == of.lines.size()) return nullptr;
    const Line& line = of.lines[of.taken];
    if (line.bytes != bytes || line.tag != tag) mismatch(end, line, bytes, tag);
    return of.payload.data() + line.place;
  }
  void taken_line(const End& end, std::uint64_t bytes) {
    ++end.lane.taken;
    end.lane.held_bytes -= bytes;
    places_.wake(end.peer);
  }
  const std::byte* arrived(std::uint32_t peer, std::uint64_t bytes, std::uint32_t tag) {
    Lane& of = lane(peer, rank);
    if (of.taken == of.lines.size() || of.lines[of.taken].lent == nullptr)
      return arrived_line(receiver(peer), bytes, tag);
    of.declined = true;
    taken_line(receiver(peer), 0);
    return nullptr;
  }
  void taken(std::uint32_t peer, std::uint64_t bytes) { taken_line(receiver(peer), bytes); }
  std::byte* room(std::uint32_t peer, std::uint64_t bytes) {
    Lane& of = lane(rank, peer);
    if (!has_room(peer, of, bytes)) return nullptr;
    of.pending.resize(bytes + 1);
    return of.pending.data();
  }
  void sent(std::uint32_t peer, std::uint64_t bytes, std::uint32_t tag) { publish(sender(peer), bytes, tag); }
  bool has_message(std::uint32_t peer) const {
    const Lane& of = lanes_[index(peer, rank)];
    return of.taken != of.lines.size() && of.lines[of.taken].lent == nullptr;
  }

  /// As live, never what fits a line.
  std::uint64_t least_lent() const {
    return model_.loans == LaneModel::Loans::kNever ? LaneModel::kUnlimited : inline_bytes() + 1;
  }
  LoanState lend(std::uint32_t peer, const std::byte* data, std::uint64_t bytes, std::uint32_t tag) {
    Lane& of = lane(rank, peer);
    if (!has_room(peer, of, 0)) return LoanState::kWaits;
    of.lines.push_back({bytes, 0, tag, data});
    of.declined = false;
    places_.wake(peer);
    return LoanState::kMoved;
  }
  LoanState lent(std::uint32_t peer, const std::byte* /*data*/) {
    const Lane& of = lane(rank, peer);
    if (of.taken != of.lines.size()) return LoanState::kWaits;
    return of.declined ? LoanState::kNone : LoanState::kEnded;
  }
  LoanState borrow(std::uint32_t peer, std::byte* out, std::uint64_t bytes, std::uint32_t tag, bool /*shared*/) {
    Lane& of = lane(peer, rank);
    if (of.taken == of.lines.size() || of.lines[of.taken].lent == nullptr) return LoanState::kNone;
    const Line& line = of.lines[of.taken];
    if (line.bytes != bytes || line.tag != tag) mismatch(receiver(peer), line, bytes, tag);
    of.declined = model_.loans == LaneModel::Loans::kDeclined;
    if (!of.declined) std::memmove(out, line.lent, bytes);
    taken_line(receiver(peer), 0);
    ++segments;
    return of.declined ? LoanState::kMoved : LoanState::kEnded;
  }

  static bool limit_loans(LoanWork /*work*/) { return false; }

  const Lane& between(std::uint32_t from, std::uint32_t to) const { return lanes_[index(from, to)]; }

  std::uint32_t rank = 0;      ///< whose ends are in use
  std::uint64_t segments = 0;  ///< executed

 private:
  [[noreturn]] void mismatch(const End& end, const Line& line, std::uint64_t bytes, std::uint32_t tag) const {
    throw LoweredFault{Kind::kMismatch,
                       places_.here(rank) + " awaits " + std::to_string(bytes) + " bytes with tag " +
                           std::to_string(tag) + " of rank " + std::to_string(end.peer) + "; there came " +
                           std::to_string(line.bytes) + " bytes with tag " + std::to_string(line.tag),
                       {places_.place_of(rank)}};
  }
  std::size_t index(std::uint32_t from, std::uint32_t to) const { return std::size_t{from} * size_ + to; }
  Lane& lane(std::uint32_t from, std::uint32_t to) { return lanes_[index(from, to)]; }
  bool windowed(std::uint32_t of) const { return of < model_.windowed.size() && model_.windowed[of]; }

  bool has_room(std::uint32_t to, const Lane& of, std::uint64_t bytes) const {
    if (!model_.straight_is_limited && !(windowed(rank) && windowed(to))) return true;
    const std::uint64_t held = of.lines.size() - of.taken;
    return held < model_.lines && (held == 0 || of.held_bytes + bytes <= model_.bytes);
  }

  void publish(const End& end, std::uint64_t bytes, std::uint32_t tag) {
    Lane& of = end.lane;
    of.lines.push_back({bytes, of.payload.size(), tag, nullptr});
    of.payload.insert(of.payload.end(), of.pending.begin(),
                      of.pending.begin() + static_cast<std::ptrdiff_t>(bytes) + 1);
    of.held_bytes += bytes;
    places_.wake(end.peer);
  }

  const LaneModel& model_;
  std::uint32_t size_;
  Places& places_;
  std::vector<Lane> lanes_;  ///< [from][to]
};

/// The regions of all ranks, as one of them at a time reaches them: Values of executor.hpp.
class ModelValues {
 public:
  ModelValues(std::span<LoweredRank> bound, std::vector<std::vector<std::byte>>& scratch, ModelChannels& channels,
              Places& places)
      : bound_(bound), scratch_(scratch), channels_(channels), places_(places) {}

  std::byte* own(const Piece& piece, std::uint64_t done, std::uint64_t bytes) {
    return at(channels_.rank, piece, done, bytes);
  }
  std::byte* far(std::uint32_t owner, const Piece& piece, std::uint64_t done, std::uint64_t bytes) {
    return at(owner, piece, done, bytes);
  }
  void combine(const Action& action, const std::byte* own, const std::byte* payload, std::byte* out,
               std::uint64_t bytes) {
    const std::byte* const sources[] = {own, payload};
    compute(action, {0, bytes, sources, 2, &out, 1, nullptr});
  }
  static void copy_short(std::byte* out, const std::byte* in, std::uint64_t bytes) {
    if (bytes != 0) std::memmove(out, in, bytes);
  }
  void copy(const Action& action, const Segment& segment) { compute(action, segment); }
  /// All sources are read before anything is written.
  bool compute(const Action& action, const Segment& segment) {
    ++channels_.segments;
    if (segment.bytes == 0) return true;
    if (segment.inputs == 0 || (segment.inputs > 1 && action.func == Func::kNone)) {
      throw LoweredFault{Kind::kNotTheMoves,
                         places_.here(channels_.rank) + " has " + std::to_string(segment.inputs) +
                             " operands, and no function that makes one value of them",
                         {places_.place_of(channels_.rank)}};
    }
    value_.resize(segment.bytes);
    const std::uint64_t count = segment.bytes / std::max<std::uint64_t>(1, bytes_of(action.dtype));
    if (segment.inputs == 1) {
      if (action.func != Func::kAvg || !mean(action.dtype, segment.sources[0], value_.data(), count, action.divisor)) {
        std::memcpy(value_.data(), segment.sources[0], segment.bytes);
      }
    } else {
      accumulator_.resize(count * accumulator_bytes(action.dtype));
      fold_begin(action.dtype, segment.sources[0], accumulator_.data(), count);
      for (std::uint32_t i = 1; i < segment.inputs; ++i) {
        fold_step(action.func, action.dtype, action.swap, accumulator_.data(), segment.sources[i], count);
      }
      fold_end(action.dtype, accumulator_.data(), value_.data(), count);
    }
    for (std::uint32_t i = 0; i < segment.results; ++i) {
      std::memcpy(segment.outputs[i], value_.data(), segment.bytes);
    }
    return true;
  }
  static const std::uint32_t* gone() { return nullptr; }

 private:
  std::byte* at(std::uint32_t owner, const Piece& piece, std::uint64_t done, std::uint64_t bytes) {
    const std::uint32_t rank = channels_.rank;
    std::vector<std::byte>* memory = piece.region == Region::kSrc                        ? &bound_[owner].src
                                     : piece.region == Region::kDst                      ? &bound_[owner].dst
                                     : piece.region == Region::kWindow                   ? &bound_[owner].window
                                     : piece.region == Region::kScratch && rank == owner ? &scratch_[owner]
                                                                                         : nullptr;
    if (memory == nullptr || piece.offset > memory->size() || done + bytes > memory->size() - piece.offset) {
      throw LoweredFault{Kind::kOutOfBounds,
                         places_.here(rank) + " reaches " + name_of(piece.region) + "[" + std::to_string(piece.offset) +
                             ":" + std::to_string(piece.offset + done + bytes) + "] of rank " + std::to_string(owner) +
                             ", which has " + std::to_string(memory == nullptr ? 0 : memory->size()) + " bytes",
                         {places_.place_of(rank)}};
    }
    return memory->data() + piece.offset + done;
  }

  std::span<LoweredRank> bound_;
  std::vector<std::vector<std::byte>>& scratch_;
  ModelChannels& channels_;
  Places& places_;
  std::vector<std::byte> value_, accumulator_;
};

using Proof = Executor<ModelChannels, ModelValues>;

class Run final : public Places {
 public:
  Run(std::span<LoweredRank> ranks, const LaneModel& model,
      std::span<const std::vector<std::vector<std::uint32_t>>> moves_of)
      : bound_(ranks),
        model_(model),
        moves_of_(moves_of),
        size_(static_cast<std::uint32_t>(ranks.size())),
        channels_(model, size_, *this),
        values_(ranks, scratch_, channels_, *this),
        executor_(channels_, values_, size_),
        flights_(size_),
        queued_(size_, true) {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      // Not zeros, so that reading scratch before it is written shows in the result.
      scratch_.emplace_back(program(rank).scratch_bytes, std::byte{0xa5});
      if (windowed(rank)) {
        flights_[rank].start_windowed(program(rank), size_);
      } else {
        flights_[rank].start_straight(program(rank));
      }
      runnable_.push_back(rank);
    }
  }

  LoweredRun run() {
    LoweredRun result;
    try {
      for (std::uint32_t rank = 0; rank < size_; ++rank) check_lists(rank);
      while (!runnable_.empty()) {
        channels_.rank = runnable_.front();
        runnable_.pop_front();
        queued_[channels_.rank] = false;
        Flight& flight = flights_[channels_.rank];
        if (!windowed(channels_.rank)) {
          executor_.straight(flight);
        } else {
          while (executor_.windowed(flight)) continue;
        }
      }
      for (std::uint32_t rank = 0; rank < size_; ++rank) {
        if (!ended(rank)) deadlock(rank);
      }
      for (std::uint32_t from = 0; from < size_; ++from) {
        for (std::uint32_t to = 0; to < size_; ++to) check_empty(from, to);
      }
    } catch (LoweredFault& fault) {
      result.fault = std::move(fault);
    }
    result.segments = channels_.segments;
    return result;
  }

  std::string here(std::uint32_t rank) const override {
    const LoweredFault::Place place = place_of(rank);
    return "rank " + std::to_string(rank) +
           (windowed(rank) ? ", windowed, oldest move " + std::to_string(place.step)
                           : ", step " + std::to_string(place.step) + text_of(place.moves));
  }
  LoweredFault::Place place_of(std::uint32_t rank) const override {
    const Flight& flight = flights_[rank];
    if (windowed(rank)) return {rank, flight.first, {flight.first}};
    LoweredFault::Place place{rank, flight.place.step, {}};
    if (rank < moves_of_.size() && flight.place.step < moves_of_[rank].size())
      place.moves = moves_of_[rank][flight.place.step];
    return place;
  }
  void wake(std::uint32_t rank) override {
    if (queued_[rank]) return;
    queued_[rank] = true;
    runnable_.push_back(rank);
  }

 private:
  const LoweredProgram& program(std::uint32_t rank) const { return *bound_[rank].program; }
  bool windowed(std::uint32_t rank) const { return rank < model_.windowed.size() && model_.windowed[rank]; }
  bool ended(std::uint32_t rank) const {
    return windowed(rank) ? flights_[rank].ended_windowed() : flights_[rank].ended_straight();
  }

  /// What the executor does not ask, for `lower` makes it so.
  void check_lists(std::uint32_t rank) const {
    const auto& ranks = program(rank).ranks;
    const auto check = [&](const Action& action) {
      for (const RankList& list : {action.from, action.reach, action.forward, action.write}) {
        const std::uint64_t end = std::uint64_t{list.begin} + list.count;
        const auto known = [&](std::uint32_t peer) { return peer < size_; };
        if (list.count == 0) continue;
        if (end > ranks.size() ||
            !std::all_of(ranks.begin() + list.begin, ranks.begin() + static_cast<std::ptrdiff_t>(end), known)) {
          throw LoweredFault{
              Kind::kOutOfBounds, "rank " + std::to_string(rank) + " names a rank that does not exist", {}};
        }
      }
    };
    for (const WindowedMove& move : program(rank).moves) check(move);
    for (const Step& step : program(rank).steps) {
      if (takes_message(step.kind) && step.take.from.count != 1) {
        throw LoweredFault{Kind::kNotTheMoves,
                           "rank " + std::to_string(rank) + " has a step that takes one message, and awaits none",
                           {}};
      }
      check(step.send);
      check(step.take);
    }
  }

  void check_empty(std::uint32_t from, std::uint32_t to) const {
    const ModelChannels::Lane& lane = channels_.between(from, to);
    if (lane.taken == lane.lines.size()) return;
    throw LoweredFault{Kind::kLeftOver,
                       std::to_string(lane.lines.size() - lane.taken) + " segments of rank " + std::to_string(from) +
                           " to rank " + std::to_string(to) +
                           " are left over when all ranks have ended; the first has tag " +
                           std::to_string(lane.lines[lane.taken].tag),
                       {}};
  }

  /// What a rank that cannot go on waits for. The oldest move of a window depends on nothing but lanes.
  std::pair<std::uint32_t, Need> wait_of(std::uint32_t rank) {
    std::pair<std::uint32_t, Need> first{kNone, Need::kMessage};
    const auto note = [&](std::uint32_t peer, Need need) {
      if (first.first == kNone) first = {peer, need};
    };
    channels_.rank = rank;
    if (windowed(rank)) {
      executor_.awaited_windowed(flights_[rank], note);
    } else {
      executor_.awaited_straight(flights_[rank], note);
    }
    return first;
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
      const auto [peer, need] = wait_of(at);
      lines.push_back("  " + here(at) + ": waits for " +
                      (need == Need::kRoom ? "room for a message to rank " : "a message of rank ") +
                      std::to_string(peer));
      fault.places.push_back(place_of(at));
      if (peer == kNone) break;
      if (ended(peer)) {
        lines.back() += ", which has ended";
        circle = false;
        break;
      }
      at = peer;
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
  std::vector<std::vector<std::byte>> scratch_;
  ModelChannels channels_;
  ModelValues values_;
  Proof executor_;
  std::vector<Flight> flights_;  ///< by rank
  std::deque<std::uint32_t> runnable_;
  std::vector<bool> queued_;
};

}  // namespace

LoweredRun run_lowered(std::span<LoweredRank> ranks, const LaneModel& model,
                       std::span<const std::vector<std::vector<std::uint32_t>>> moves_of) {
  return Run(ranks, model, moves_of).run();
}

}  // namespace unisono::cclo
