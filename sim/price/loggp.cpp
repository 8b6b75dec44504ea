#include "sim/price/loggp.hpp"

#include <bit>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "core/error.hpp"
#include "sim/model/peers.hpp"
#include "sim/network/frame.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kWindow = 32;

/// When a message's first segment has come, and its last one.
struct Arrived {
  double first = 0, last = 0;
};

/// A message of a pair, by its number.
struct Message {
  std::uint32_t from = 0, to = 0, number = 0;

  friend bool operator==(const Message&, const Message&) = default;
};
struct MessageHash {
  std::size_t operator()(const Message& of) const {
    const std::uint64_t key = (std::uint64_t{of.from} << 8U | of.to) << 32U | of.number;
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> 16U);
  }
};
template <class Value>
using ByMessage = std::unordered_map<Message, Value, MessageHash>;

class Walk {
 public:
  Walk(const Ways& ways, const ModelledCall& call, const Parameters& parameters, const EndpointCosts& engine)
      : ways_(ways), call_(call), parameters_(parameters), engine_(engine), ranks_(call.members) {
    for (std::uint32_t rank = 0; rank < call.members; ++rank) plan(rank);
  }

  double run() {
    for (std::uint32_t rank = 0; rank < call_.members; ++rank) look(rank);
    while (!ready_.empty()) {
      const auto [time, rank, move] = ready_.top();
      ready_.pop();
      carry_out(rank, move, time);
      look(rank);
      for (const Peer& peer : ranks_[rank].states[move].destinations) look(peer.rank);
      for (const Peer& peer : ranks_[rank].states[move].sources) look(peer.rank);
    }
    double end = 0;
    for (const Rank& rank : ranks_) {
      if (rank.done != rank.states.size()) throw Error(ErrorCode::kUnsupported, "LogGP: programs wait for one another");
      end = std::max(end, rank.end);
    }
    return end + parameters_.call;
  }

 private:
  struct Peer {
    std::uint32_t rank = 0, message = 0;
  };
  struct State {
    std::uint64_t bytes = 0;
    std::uint64_t segment = 0;  ///< bytes of one, at most
    std::vector<Peer> sources, destinations;
    double begin = 0;            ///< the same, and what the move follows has its first segment
    double issue = 0;            ///< nothing holds the move back but what comes, or is granted
    double first = 0, last = 0;  ///< the result's first segment, and all of it
    bool issued = false, waits = false, due = false, done = false;
  };
  struct Rank {
    std::vector<State> states;
    std::size_t first = 0, done = 0;     ///< the first move that is not done, and how many are
    double retired = 0;                  ///< when those before `first` had ended
    double engine = 0, out = 0, in = 0;  ///< from when on dispatcher and link are free
    std::vector<double> coming;          ///< when the last segments come that are under way
    double end = 0;
  };

  void plan(std::uint32_t rank) {
    const Program& program = call_.programs[rank];
    std::map<std::uint32_t, std::uint32_t> sent, taken;
    for (const Move& move : program.moves) {
      State state;
      state.bytes = move.count * bytes_of(move.dtype);
      if (takes(move)) {
        for (const std::uint32_t peer : ranks_of(program, move.arrival.mode, move.arrival.peer)) {
          grants_at_[{peer, rank, taken[peer]}] = {rank, static_cast<std::uint32_t>(ranks_[rank].states.size())};
          state.sources.push_back({peer, taken[peer]++});
        }
      }
      if (sends(move)) {
        for (const std::uint32_t peer : ranks_of(program, move.remote.mode, move.remote.peer)) {
          state.destinations.push_back({peer, sent[peer]++});
        }
        std::sort(state.destinations.begin(), state.destinations.end(),
                  [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
      }
      const bool message = !state.sources.empty() || !state.destinations.empty();
      state.segment = message ? engine_.segment_of(state.bytes) : engine_.segment;
      ranks_[rank].states.push_back(std::move(state));
    }
  }

  bool granted(const State& state) const { return state.bytes > engine_.eager_limit; }

  /// Looks at a rank, and at those that what it finds lets go on. No recursion: chains of them are as long as programs.
  void look(std::uint32_t number) {
    look_later_.push_back(number);
    while (!look_later_.empty()) {
      const std::uint32_t next = look_later_.back();
      look_later_.pop_back();
      look_at(next);
    }
  }

  /// Finds moves that can be issued, and those of them of which everything is known that they wait for.
  void look_at(std::uint32_t number) {
    Rank& rank = ranks_[number];
    const Program& program = call_.programs[number];
    for (; rank.first < rank.states.size() && rank.states[rank.first].done; ++rank.first) {
      rank.retired = std::max(rank.retired, rank.states[rank.first].last);
    }
    const bool known = rank.states.size() <= engine_.known_moves;
    for (std::size_t i = rank.first; i < std::min(rank.states.size(), rank.first + kWindow); ++i) {
      State& state = rank.states[i];
      if (state.due) continue;
      if (!state.issued) {
        const Move& move = program.moves[i];
        double issue = known ? static_cast<double>(i) : parameters_.gap_program * static_cast<double>(i);
        if (i >= kWindow) issue = std::max(issue, rank.retired);
        bool held = false;
        for (std::uint32_t bits = move.dependencies; bits != 0; bits &= bits - 1) {
          const State& before = rank.states[i - static_cast<std::size_t>(std::countr_zero(bits)) - 1];
          held = held || !before.done;
          if (before.last > issue) state.waits = true;
          issue = std::max(issue, before.last);
        }
        for (const std::uint32_t back : {move.segment_dependency0, move.segment_dependency1}) {
          if (back == 0) continue;
          held = held || !rank.states[i - back].issued;
          issue = std::max(issue, rank.states[i - back].issue);
        }
        // Of the messages of a pair, one is taken and one more waits; one is sent.
        for (const Peer& peer : state.sources) {
          if (peer.message < 2) continue;
          const auto before = arrived_.find({peer.rank, number, peer.message - 2});
          held = held || before == arrived_.end();
          if (!held) issue = std::max(issue, before->second.last);
        }
        for (const Peer& peer : state.destinations) {
          if (peer.message == 0) continue;
          const auto before = left_.find({number, peer.rank, peer.message - 1});
          held = held || before == left_.end();
          if (!held) issue = std::max(issue, before->second);
        }
        if (held) continue;
        state.issued = true;
        state.issue = issue;
        // Senders may have waited for it.
        if (granted(state)) {
          for (const Peer& peer : state.sources) look_later_.push_back(peer.rank);
        }
      }
      double start = state.issue;
      bool held = false;
      for (const std::uint32_t back : {program.moves[i].segment_dependency0, program.moves[i].segment_dependency1}) {
        if (back == 0) continue;
        held = held || !rank.states[i - back].done;
        if (rank.states[i - back].first > start) state.waits = true;
        start = std::max(start, rank.states[i - back].first);
      }
      state.begin = start;
      for (const Peer& peer : state.sources) {
        const auto come = arrived_.find({peer.rank, number, peer.message});
        held = held || come == arrived_.end();
        if (!held) start = std::max(start, come->second.first);
      }
      for (const Peer& peer : state.destinations) {
        if (!granted(state)) continue;
        const auto [there, at] = grants_at_.at({number, peer.rank, peer.message});
        const State& taker = ranks_[there].states[at];
        held = held || !taker.issued;
        if (!held) start = std::max(start, taker.issue + parameters_.grant + frame(peer.rank, number, 0));
      }
      if (held) continue;
      state.due = true;
      ready_.push({start, number, static_cast<std::uint32_t>(i)});
    }
  }

  void carry_out(std::uint32_t number, std::uint32_t index, double start) {
    Rank& rank = ranks_[number];
    State& state = rank.states[index];
    const Move& move = call_.programs[number].moves[index];
    const double bytes = static_cast<double>(state.bytes);
    const double segment = std::min(bytes, static_cast<double>(state.segment));
    const std::size_t segments = std::max<std::size_t>(1, (state.bytes + state.segment - 1) / state.segment);
    const bool folds = move.op0.kind == OperandKind::kMemory && move.op1.kind != OperandKind::kNone;
    start = std::max(start, rank.engine);
    const bool row = !state.sources.empty() && state.sources.front().message > 0;
    rank.engine = start + (state.sources.empty() ? parameters_.gap
                           : row                 ? parameters_.gap_receive_row
                                                 : parameters_.gap_receive) *
                              static_cast<double>(std::max<std::size_t>(1, state.destinations.size()) * segments);
    // The first segment comes, is in its place, and can leave; the last one has come.
    double base = start, kept = start, out = start, last_in = 0;
    if (is_work(move) && state.sources.empty()) {
      const Overhead& cost = state.waits ? parameters_.send_after : parameters_.send;
      out = start + cost.of(segment);
      // A copy is a send whose end is the memory's.
      kept = state.destinations.empty() ? out : start;
      for (const std::uint32_t back : {move.segment_dependency0, move.segment_dependency1}) {
        if (back != 0) last_in = std::max(last_in, rank.states[index - back].last);
      }
    } else if (is_work(move)) {
      bool late = true;
      double come = 0;
      for (const Peer& peer : state.sources) {
        const Arrived& arrived = arrived_.at({peer.rank, number, peer.message});
        come = std::max(come, arrived.first);
        last_in = std::max(last_in, arrived.last);
        late = late && arrived.first + parameters_.receive.signal < state.begin;
      }
      const bool list = state.sources.size() > 1 || state.destinations.size() > 1;
      const double fan_in = std::max(parameters_.gap_fan_in.of(segment), segment * parameters_.byte) *
                            static_cast<double>(state.sources.size() - 1);
      // What has not been waited for goes into a buffer, and comes from there.
      const double stored = parameters_.receive_list.of(segment) - parameters_.receive_late.of(segment);
      const double fold = folds && !late && !list ? parameters_.fold.of(segment) : 0;
      base = late ? std::max(come + stored, start) : std::max(come, start);
      kept = base + fan_in + fold +
             (late   ? parameters_.receive_late.of(segment)
              : list ? parameters_.receive_list.of(segment)
                     : parameters_.receive.of(segment));
      // What is passed on leaves as much earlier, or later, as with a message that comes in time.
      out = kept + parameters_.forward.of(segment) - parameters_.receive.of(segment);
      if (rank.engine < base) rank.engine = base;
    }
    // What several messages are folded to goes through the operator anew for each one that it is sent to.
    const double inputs = static_cast<double>(std::max<std::size_t>(1, state.sources.size()));
    const double outputs = static_cast<double>(std::max<std::size_t>(1, state.destinations.size()));
    const double jobs = inputs * outputs;
    const auto end_of = [&](double first) {
      return std::max(first + parameters_.byte * (bytes - segment) * jobs, last_in + first - base);
    };
    state.first = kept;
    state.last = end_of(kept);
    const double pace = inputs * std::max(parameters_.gap_list.of(segment), segment * parameters_.byte);
    double link = rank.out, list = 0;
    for (const Peer& peer : state.destinations) {
      link = std::max(link, out);
      if (list == 0) list = link;
      const double left = send(number, peer, state, link, end_of(out), list);
      // The last job has begun before its segment leaves.
      left_[{number, peer.rank, peer.message}] = std::max(start, left - parameters_.send.of(segment));
      state.last = std::max(state.last, left);
      state.first = std::max(state.first, out);
      out += pace;
      link += busy(number, peer.rank, static_cast<std::uint64_t>(segment));
    }
    state.done = true;
    ++rank.done;
    rank.end = std::max(rank.end, state.last);
  }

  /// A message whose first segment leaves at `first`, and its last one at `last` at the earliest. Of a list, each
  /// segment goes to all before the next one does; `list` is when the first one of all leaves. Returns when the last
  /// one of the message begins to leave.
  double send(std::uint32_t from, const Peer& to, const State& state, double first, double last, double list) {
    const std::uint64_t segment = std::min(state.bytes, state.segment);
    const std::uint64_t rest = state.bytes % state.segment;
    const bool single = state.bytes <= state.segment;
    const std::uint64_t ending = single || rest == 0 ? segment : rest;
    Arrived& come = arrived_[{from, to.rank, to.message}];
    if (from == to.rank) {
      constexpr double kLoopback = 4;
      come = {first + kLoopback + static_cast<double>(segment) / kWordBytes,
              last + kLoopback + static_cast<double>(ending) / kWordBytes};
      return last;
    }
    const double one = busy(from, to.rank, segment), end = busy(from, to.rank, ending);
    const std::uint64_t between = single ? 0 : (state.bytes - 1) / state.segment - 1;  // the first and the last
    const double later = single ? 0 : one * static_cast<double>(between) + end;
    const auto all = static_cast<double>(state.destinations.size());
    last = std::max(last, single ? first : list + all * (later + one - end) + (first - list) * end / one);
    Rank& sender = ranks_[from];
    sender.out = std::max(sender.out, first) + one + later;
    Rank& receiver = ranks_[to.rank];
    const double soonest = first + frame(from, to.rank, segment);
    std::erase_if(receiver.coming, [&](double until) { return until <= soonest - one; });
    const double before = std::max(0.0, receiver.in - (soonest - one));
    come.first = soonest + std::min(before, one * static_cast<double>(receiver.coming.size()));
    receiver.in = std::max(receiver.in, soonest - one) + one + later;
    come.last = single ? come.first : std::max({come.first + later, receiver.in, last + frame(from, to.rank, ending)});
    receiver.coming.push_back(come.last);
    return last;
  }

  double frame(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) { return way(from, to, bytes).first; }
  double busy(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) { return way(from, to, bytes).second; }
  const std::pair<double, double>& way(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    const auto [at, is_new] = known_.try_emplace({from, to, static_cast<std::uint32_t>(bytes)});
    if (is_new) {
      const std::uint32_t a = call_.addresses[from], b = call_.addresses[to];
      at->second = {ways_.frame(a, b, kWordBytes + bytes), ways_.busy(a, b, kWordBytes + bytes)};
    }
    return at->second;
  }

  const Ways& ways_;
  const ModelledCall& call_;
  const Parameters& parameters_;
  const EndpointCosts& engine_;
  std::vector<Rank> ranks_;
  ByMessage<Arrived> arrived_;
  ByMessage<double> left_;
  ByMessage<std::pair<std::uint32_t, std::uint32_t>> grants_at_;  ///< rank and move that take it
  ByMessage<std::pair<double, double>> known_;                    ///< ways of frames, by their bytes
  using Ready = std::tuple<double, std::uint32_t, std::uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::vector<std::uint32_t> look_later_;
};

}  // namespace

double loggp(const Ways& ways, const ModelledCall& call, const Parameters& parameters, const EndpointCosts& engine) {
  return Walk(ways, call, parameters, engine).run();
}

}  // namespace unisono::sim
