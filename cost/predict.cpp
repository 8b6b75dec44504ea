#include "cost/predict.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>
#include <string>
#include <vector>

#include "collectives/record.hpp"
#include "core/error.hpp"
#include "core/footprint.hpp"
#include "core/group_table.hpp"
#include "core/text.hpp"
#include "cost/lanes.hpp"

namespace unisono::cost {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// A message of more segments is walked in this many equal pieces: beyond it pipelines hardly differ.
constexpr std::uint64_t kMostPieces = 32;
/// Between hosts so much of a message goes at once, by loans.
constexpr std::uint64_t kFarSegment = std::uint64_t{256} << 10U;
constexpr auto kInFlight = static_cast<std::uint32_t>(kWindow);

const Time& later(const Time& a, const Time& b) { return a.total >= b.total ? a : b; }

Time plus_latency(Time time, double ns) {
  time.total += ns;
  time.latency += ns;
  return time;
}

/// One move, with everything looked up that does not change while it runs.
struct Step {
  std::uint64_t bytes = 0;
  std::uint32_t pieces = 1;
  std::vector<std::uint32_t> from, to;  ///< ranks; of messages
  std::vector<std::uint32_t> from_lane, to_lane;
  std::vector<std::uint32_t> from_ordinal, to_ordinal;
  std::uint32_t dependencies = 0;
  std::array<std::uint8_t, 2> follows{};
  Time piece_cost;  ///< of one piece; the last may be shorter, which is not seen here
  std::uint32_t done = 0;
  bool complete = false;
  Time finished;  ///< of the last piece that is done
};

class Walk {
 public:
  Walk(std::span<const RankWork> ranks, bool direct, const Machine& machine)
      : machine_(machine),
        several_(!machine.host_of.empty()),
        work_(ranks),
        size_(static_cast<std::uint32_t>(ranks.size())),
        lanes_(machine.lane_segments, machine.lane_lines) {
    ranks_.resize(size_);
    std::uint64_t everything = 0;
    for (const RankWork& rank : ranks) everything += rank.bytes;
    for (std::uint32_t r = 0; r < size_; ++r) {
      const auto own = static_cast<double>(ranks[r].bytes);
      copy_.push_back(at_level(machine.copy, own, static_cast<double>(everything)));
      cross_.push_back(at_level(machine.cross, own, static_cast<double>(everything)));
    }
    for (std::uint32_t r = 0; r < size_; ++r) decode(r);
    if (several_) {
      const std::uint32_t hosts = 1 + *std::max_element(machine.host_of.begin(), machine.host_of.end());
      out_free_.resize(hosts);
      in_free_.resize(hosts);
    }
    const std::uint32_t cores = several_ || machine.cores == 0 ? size_ : std::min(machine.cores, size_);
    cores_.resize(cores);
    for (std::uint32_t r = 0; r < size_; ++r) cores_[r % cores].ranks.push_back(r);
    for (Core& core : cores_) core.awake.resize((core.ranks.size() + 63) / 64, ~std::uint64_t{0});
    if (direct && size_ > 1) enter();
  }

  Prediction run() {
    for (std::uint32_t core = 0; core < cores_.size(); ++core) renew(core);
    while (!agenda_.empty()) {
      const Entry entry = agenda_.top();
      agenda_.pop();
      if (entry.version != cores_[entry.core].version) continue;
      act(entry.core);
    }
    for (std::uint32_t r = 0; r < size_; ++r) {
      if (ranks_[r].first != ranks_[r].steps.size()) {
        throw Error(ErrorCode::kMalformedProgram,
                    formatted("the programs cannot be priced, for they do not end: rank {} waits in move {}", r,
                              ranks_[r].first));
      }
      result_.time = later(result_.time, ranks_[r].end);
    }
    return result_;
  }

 private:
  struct Rank {
    std::vector<Step> steps;
    std::uint32_t first = 0;  ///< all moves before it are complete
    Time end;
  };
  struct Core {
    std::vector<std::uint32_t> ranks;
    /// A bit for each of them: it may have something to do. One that has found nothing has nothing before it or a
    /// peer has done something.
    std::vector<std::uint64_t> awake;
    std::uint32_t turn = 0;  ///< index of the rank that ran last
    Time free;
    std::uint64_t version = 0;
  };
  struct Entry {
    double time;
    std::uint32_t core;
    std::uint64_t version;
    bool operator<(const Entry& other) const { return time != other.time ? time > other.time : core > other.core; }
  };
  /// What a rank could do next.
  struct Next {
    Time ready{kNever, 0, 0, 0, 0};  ///< inputs are there
    std::uint32_t move = 0;
  };

  /// How much of what a rank works on lies beyond a cache: none while the cache has twice as much room, all when it has
  /// half as much.
  static double beyond(double bytes, std::uint64_t cache) {
    if (bytes <= 0) return 0;
    return std::clamp((std::log2(bytes / static_cast<double>(cache)) + 1) / 2, 0.0, 1.0);
  }
  double at_level(const std::array<double, kLevels>& costs, double own, double everything) const {
    const double shared = beyond(own, machine_.near_bytes);
    const double memory = beyond(everything, machine_.shared_bytes);
    const double cached = costs[0] + (costs[1] - costs[0]) * shared;
    return cached + (costs[2] - cached) * memory;
  }

  bool far(std::uint32_t one, std::uint32_t other) const {
    return several_ && machine_.host_of[one] != machine_.host_of[other];
  }
  /// From a rank's store, or its last system call, until the other one can see it.
  double latency(std::uint32_t from, std::uint32_t to) const {
    return !several_ ? machine_.line : far(from, to) ? machine_.network.latency : machine_.network.near_latency;
  }
  /// Finding a move ready and handling a segment of each of its messages.
  double handling(std::uint32_t r, const Step& step, bool cells) const {
    if (!several_) {
      // A message to or from each further peer is a line of its own.
      const auto lines = static_cast<double>(std::max<std::size_t>(1, step.from.size() + step.to.size()));
      return machine_.issue * lines + (cells ? machine_.segment * lines : 0);
    }
    double cost = machine_.issue;
    for (const auto* peers : {&step.from, &step.to}) {
      for (const std::uint32_t peer : *peers) {
        cost += far(r, peer) ? machine_.network.message : machine_.network.near_message;
      }
    }
    return cost;
  }
  /// How long the pieces of a move's messages are.
  std::uint64_t segment(std::uint32_t r, const Step& step) const {
    const auto is_far = [&](std::uint32_t peer) { return far(r, peer); };
    const bool some =
        std::any_of(step.from.begin(), step.from.end(), is_far) || std::any_of(step.to.begin(), step.to.end(), is_far);
    return some ? kFarSegment : machine_.segment_bytes;
  }
  /// A piece goes from host to host, behind all that goes there before.
  Time carried(const Time& end, std::uint32_t from, std::uint32_t to, double bytes) {
    double& out = out_free_[machine_.host_of[from]];
    double& in = in_free_[machine_.host_of[to]];
    const double there = std::max({end.total, out, in}) + bytes * machine_.network.byte;
    out = in = there;
    Time arrival = end;
    arrival.copy += there - end.total;
    arrival.total = there;
    return plus_latency(arrival, machine_.network.latency);
  }

  template <class Use>
  static void for_each_peer(const Program& program, std::uint32_t peer, PeerMode mode, Use&& use) {
    if (mode == PeerMode::kRank) {
      use(peer);
      return;
    }
    for (std::uint32_t i = 1; i <= program.pool[peer]; ++i) use(program.pool[peer + i]);
  }

  void decode(std::uint32_t r) {
    const Program& program = work_[r].program;
    Rank& rank = ranks_[r];
    const double copy = copy_[r];
    const double stream = copy / 2;  // one byte read or written at hand
    const double cross = cross_[r] - stream;
    const double cell = machine_.cross[0] - machine_.copy[0] / 2;  // lanes stay in the caches
    for (const Move& move : program.moves) {
      Step step;
      step.dependencies = move.dependencies;
      step.follows = {move.segment_dependency0, move.segment_dependency1};
      if (move.kind == MoveKind::kMove) {
        const std::uint64_t count = move.count_indirect ? work_[r].params[move.count / 8] : move.count;
        step.bytes = count * bytes_of(move.dtype);
        const bool speaks = count != 0 || move.signal;
        std::uint32_t operands = 0;
        double per_byte = 0;
        const auto read = [&](double cost) {
          per_byte += cost;
          ++operands;
        };
        const bool arrives = move.op1.kind == OperandKind::kArrival && speaks;
        const bool sends = move.remote.kind == RemoteKind::kMessage && speaks;
        const bool in_line = !several_ && step.bytes <= machine_.inline_bytes;
        if (move.op0.kind == OperandKind::kMemory) read(stream);
        if (move.op1.kind == OperandKind::kMemory) read(stream);
        if (arrives) {
          for_each_peer(program, move.arrival.peer, move.arrival.mode, [&](std::uint32_t peer) {
            step.from.push_back(peer);
            read(in_line ? 0 : cell);
          });
        }
        if (move.op1.kind == OperandKind::kRemoteMemory) {
          for_each_peer(program, move.arrival.peer, move.arrival.mode, [&](std::uint32_t peer) {
            read(peer == r ? stream : cross);
            if (peer != r) result_.remote_bytes += step.bytes;
          });
        }
        if (move.local.kind == OperandKind::kMemory) per_byte += stream;
        if (sends) {
          for_each_peer(program, move.remote.peer, move.remote.mode, [&](std::uint32_t peer) {
            step.to.push_back(peer);
            per_byte += in_line ? 0 : cell;
          });
        }
        if (move.remote.kind == RemoteKind::kMemory) {
          for_each_peer(program, move.remote.peer, move.remote.mode, [&](std::uint32_t peer) {
            per_byte += peer == r ? stream : cross;
            if (peer != r) result_.remote_bytes += step.bytes;
          });
        }
        const bool half = move.dtype == Datatype::kFp16 || move.dtype == Datatype::kBf16;
        const double reduce = operands > 1 ? (operands - 1) * (half ? machine_.reduce_half : machine_.reduce) : 0;
        const bool cells = !in_line && (!step.from.empty() || !step.to.empty());
        const std::uint64_t one = segment(r, step);
        const std::uint64_t segments = step.bytes == 0 ? 1 : (step.bytes + one - 1) / one;
        step.pieces = static_cast<std::uint32_t>(std::min(segments, kMostPieces));
        const double piece = static_cast<double>(step.bytes) / step.pieces;
        const double segments_of_piece = static_cast<double>(segments) / step.pieces;
        const bool nothing = count == 0 && step.from.empty() && step.to.empty();  // the engine does not even look
        step.piece_cost.latency = nothing ? 0 : segments_of_piece * handling(r, step, cells);
        step.piece_cost.copy = piece * per_byte;
        step.piece_cost.reduce = piece * reduce;
        step.piece_cost.total = step.piece_cost.latency + step.piece_cost.copy + step.piece_cost.reduce;
        for (const std::uint32_t peer : step.to) {
          step.to_lane.push_back(lanes_.number(r, peer));
          Lane& out = lanes_[step.to_lane.back()];
          step.to_ordinal.push_back(static_cast<std::uint32_t>(out.messages.size()));
          out.messages.push_back({step.pieces, in_line, {}, {}});
          ++result_.messages;
          result_.message_bytes += step.bytes;
          if (work_[peer].host != work_[r].host) {
            ++result_.between_messages;
            result_.between_bytes += step.bytes;
          }
        }
        for (const std::uint32_t peer : step.from) {
          step.from_lane.push_back(lanes_.number(peer, r));
          step.from_ordinal.push_back(lanes_[step.from_lane.back()].expected++);
        }
      }
      rank.steps.push_back(std::move(step));
    }
    result_.moves += program.moves.size();
    result_.most_moves = std::max<std::uint64_t>(result_.most_moves, program.moves.size());
  }

  /// The ranks of a direct call tell each other where their buffers are.
  void enter() {
    const double own = machine_.sync * (size_ - 1);
    for (Core& core : cores_) {
      const auto sharing = static_cast<double>(core.ranks.size());
      core.free.sync = own * sharing + (sharing > 1 ? machine_.yield * sharing : 0) + machine_.line;
      core.free.total = core.free.sync;
    }
    // Nobody is through before all have entered.
    Time last;
    for (const Core& core : cores_) last = later(last, core.free);
    for (Core& core : cores_) core.free = last;
  }

  /// The time at which piece `piece` of a move has its inputs and room for its results; never if that is not known yet.
  Time ready(std::uint32_t r, const Step& step, std::uint32_t n) {
    const Rank& rank = ranks_[r];
    Time when{};
    const Time never{kNever, 0, 0, 0, 0};
    for (std::uint32_t bits = step.dependencies; bits != 0; bits &= bits - 1) {
      const auto distance = static_cast<std::uint32_t>(__builtin_ctz(bits)) + 1;
      if (distance > n) continue;
      const Step& before = rank.steps[n - distance];
      if (!before.complete) return never;
      when = later(when, before.finished);
    }
    for (const std::uint8_t distance : step.follows) {
      if (distance == 0 || distance > n) continue;
      const Step& before = rank.steps[n - distance];
      if (before.complete) continue;  // this rank did it, so it lies in the past
      // The share of the producer that covers this piece.
      const auto needed =
          static_cast<std::uint32_t>((std::uint64_t{step.done + 1} * before.pieces + step.pieces - 1) / step.pieces);
      if (before.done < needed) return never;
    }
    for (std::size_t i = 0; i < step.from.size(); ++i) {
      const Lane& in = lanes_[step.from_lane[i]];
      if (in.consumed != step.from_ordinal[i] || in.messages.size() <= step.from_ordinal[i]) return never;
      const Lane::Message& message = in.messages[step.from_ordinal[i]];
      const auto needed = std::min<std::size_t>(
          message.pieces, (std::size_t{step.done + 1} * message.pieces + step.pieces - 1) / step.pieces);
      if (message.arrived.size() < needed) return never;
      when = later(when, message.arrived[needed - 1]);
    }
    for (std::size_t i = 0; i < step.to.size(); ++i) {
      const Lane& out = lanes_[step.to_lane[i]];
      if (out.sent != step.to_ordinal[i]) return never;
      const bool in_line = out.messages[step.to_ordinal[i]].inline_payload;
      if (out.free_lines == 0) {
        if (out.line_space.empty()) return never;
        when = later(when, out.line_space.front());
      }
      if (!in_line && out.free_pieces == 0) {
        if (out.space.empty()) return never;
        when = later(when, out.space.front());
      }
    }
    return when;
  }

  /// The first piece in the window that could run, by the time at which it could.
  Next next(std::uint32_t r, double now) {
    Rank& rank = ranks_[r];
    Next best;
    const auto end = std::min<std::size_t>(rank.steps.size(), std::size_t{rank.first} + kInFlight);
    for (auto n = rank.first; n < end; ++n) {
      Step& step = rank.steps[n];
      if (step.complete) continue;
      const Time when = ready(r, step, n);
      if (when.total < best.ready.total) best = {when, n};
      if (when.total <= now) break;  // it is at hand, and those before are not
    }
    return best;
  }

  /// What a core does next: which rank, and when it can start.
  struct Plan {
    Time start{kNever, 0, 0, 0, 0};
    std::uint32_t index = 0;  ///< of the rank on the core
    std::uint32_t move = 0;
  };
  /// How many ranks from this one on are known to find nothing; not all, if they are many.
  static std::uint32_t asleep_from(const Core& core, std::uint32_t index) {
    const std::uint64_t rest = core.awake[index / 64] >> (index % 64);
    const auto asleep = rest == 0 ? 64 - index % 64 : static_cast<std::uint32_t>(std::countr_zero(rest));
    return std::min(asleep, static_cast<std::uint32_t>(core.ranks.size()) - index);
  }
  Plan plan(Core& core) {
    Plan best;
    const auto count = static_cast<std::uint32_t>(core.ranks.size());
    for (std::uint32_t distance = 0; distance < count; ++distance) {
      const std::uint32_t index = (core.turn + distance) % count;
      if (const std::uint32_t asleep = asleep_from(core, index); asleep != 0) {
        distance += asleep - 1;
        continue;
      }
      // Every rank in between looks, finds nothing, and gives the core on.
      const Time from = plus_latency(core.free, distance * machine_.yield);
      const Next found = next(core.ranks[index], from.total);
      if (found.ready.total == kNever) {
        core.awake[index / 64] &= ~(std::uint64_t{1} << (index % 64));
        continue;
      }
      const Time start = found.ready.total > from.total && count > 1
                             ? plus_latency(found.ready, machine_.yield)  // somewhere in the round of those who wait
                             : later(found.ready, from);
      if (start.total < best.start.total) best = {start, index, found.move};
      if (best.start.total <= from.total) break;
    }
    return best;
  }

  void wake(std::uint32_t r) {
    const auto index = static_cast<std::uint32_t>(r / cores_.size());
    cores_[r % cores_.size()].awake[index / 64] |= std::uint64_t{1} << (index % 64);
  }

  void renew(std::uint32_t c) {
    Core& core = cores_[c];
    ++core.version;
    const Plan found = plan(core);
    if (found.start.total != kNever) agenda_.push({found.start.total, c, core.version});
  }

  void act(std::uint32_t c) {
    Core& core = cores_[c];
    const Plan found = plan(core);
    if (found.start.total == kNever) return;
    const std::uint32_t r = core.ranks[found.index];
    Rank& rank = ranks_[r];
    Step& step = rank.steps[found.move];
    Time end = found.start;
    end.total += step.piece_cost.total;
    end.latency += step.piece_cost.latency;
    end.copy += step.piece_cost.copy;
    end.reduce += step.piece_cost.reduce;
    core.turn = found.index;
    core.free = end;
    const std::uint32_t piece = step.done++;
    step.finished = end;
    step.complete = step.done == step.pieces;

    touched_.clear();
    for (std::size_t i = 0; i < step.from.size(); ++i) take(r, step, i, piece, end);
    for (std::size_t i = 0; i < step.to.size(); ++i) put(r, step, i, end);
    if (step.complete) {
      while (rank.first < rank.steps.size() && rank.steps[rank.first].complete) ++rank.first;
      rank.end = later(rank.end, end);
    }
    wake(r);
    for (const std::uint32_t peer : touched_) wake(peer);
    renew(c);
    for (const std::uint32_t peer : touched_) {
      const auto other = static_cast<std::uint32_t>(peer % cores_.size());
      if (other != c) renew(other);
    }
  }

  void take(std::uint32_t r, const Step& step, std::size_t i, std::uint32_t piece, const Time& end) {
    Lane& in = lanes_[step.from_lane[i]];
    Lane::Message& message = in.messages[step.from_ordinal[i]];
    const Time free = plus_latency(end, latency(r, step.from[i]));
    // Pieces of the message that this piece of the move has used up.
    const std::size_t used = std::size_t{piece + 1} * message.pieces / step.pieces;
    while (message.released.size() < used) {
      message.released.push_back(free);
      in.line_space.push_back(free);
      if (!message.inline_payload) in.space.push_back(free);
    }
    if (step.complete) ++in.consumed;
    touched_.push_back(step.from[i]);
  }

  void put(std::uint32_t r, const Step& step, std::size_t i, const Time& end) {
    Lane& out = lanes_[step.to_lane[i]];
    Lane::Message& message = out.messages[step.to_ordinal[i]];
    const auto spend = [](std::uint32_t& free, Times& space) {
      if (free != 0) {
        --free;
      } else {
        space.pop_front();
      }
    };
    spend(out.free_lines, out.line_space);
    if (!message.inline_payload) spend(out.free_pieces, out.space);
    // A message to a rank on the same core is there when that rank runs.
    const bool same_core = r % cores_.size() == step.to[i] % cores_.size();
    message.arrived.push_back(far(r, step.to[i])
                                  ? carried(end, r, step.to[i], static_cast<double>(step.bytes) / step.pieces)
                              : same_core ? end
                                          : plus_latency(end, latency(r, step.to[i])));
    if (step.complete) ++out.sent;
    touched_.push_back(step.to[i]);
  }

  const Machine& machine_;
  bool several_;                            ///< hosts
  std::vector<double> out_free_, in_free_;  ///< by host: when its way out, and its way in, is free
  std::span<const RankWork> work_;
  std::uint32_t size_;
  std::vector<double> copy_, cross_;  ///< by rank: the machine's, where the rank's data lies
  std::vector<Rank> ranks_;
  Lanes lanes_;
  std::vector<Core> cores_;
  std::priority_queue<Entry> agenda_;
  std::vector<std::uint32_t> touched_;
  Prediction result_;
};

}  // namespace

Prediction predict(std::span<const RankWork> ranks, bool direct, const Machine& machine) {
  return Walk(ranks, direct, machine).run();
}

Prediction predict(const Call& call, const Algorithm& algorithm, const Machine& machine, bool hosts) {
  const Grouping groups{call.group_size, call.groups};
  const bool apart = groups_of(groups, call.size) == 1;
  std::vector<RankWork> ranks;
  std::vector<std::vector<std::uint64_t>> params(call.size);
  const bool varied = algorithm.fill_params != nullptr;
  const bool all_pairs = facts_of(call.collective).pairwise();
  const std::uint64_t block = all_pairs ? call.count : call.count / call.size;
  const std::vector<std::uint64_t> counts(varied ? call.size : 0, block);
  for (std::uint32_t r = 0; r < call.size; ++r) {
    Call own = call;
    own.rank = r;
    RankWork work{record(algorithm, own), {}, 0, 0};
    if (hosts) work.host = apart ? r : group_of(groups, r);
    VectorExtents extents;
    if (varied) {
      params[r].resize(work.program.params_bytes / 8);
      algorithm.fill_params(own, {counts.data(), nullptr, counts.data(), nullptr}, params[r].data());
      work.params = params[r];
      extents = {block, block * call.size, block * call.size};
    }
    const Footprint footprint = footprint_of(own, extents);
    work.bytes = (footprint.src + footprint.dst) * element_bytes(call) + work.program.scratch_bytes;
    ranks.push_back(std::move(work));
  }
  return predict(ranks, algorithm.direct, machine);
}

}  // namespace unisono::cost
