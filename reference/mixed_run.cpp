#include "reference/mixed_run.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "reference/execution.hpp"
#include "reference/expectation.hpp"
#include "reference/progress.hpp"
#include "reference/schedule.hpp"
#include "reference/symbol_domain.hpp"
#include "reference/waits.hpp"

namespace unisono::reference {
namespace {

/// One run: goes on with what the schedule picks, until nothing is left to pick. All that is given must outlive it.
class MixedRun {
 public:
  MixedRun(Interpreter& interpreter, const Mix& mix, const MakeChannel& make, SymbolRun& run)
      : lowered_(interpreter.lowered()),
        run_(run),
        mix_(mix),
        domain_(lowered_, interpreter.symbols(), interpreter.leaves(), run),
        progress_(lowered_, run, mix.full_segment_dependencies),
        execution_(lowered_, domain_, run, progress_.retired()),
        schedule_(mix, lowered_),
        states_(lowered_.size()) {
    for (std::uint32_t c = 0; c < lowered_.channels().size(); ++c) {
      const Lowered::Channel& channel = lowered_.channels()[c];
      channels_.push_back(make(mix.kind(channel.from, channel.to), mix.segment,
                               [this, c](Course course) { schedule_.departed(c, course); }));
    }
  }

  void run() {
    progress_.begin([this](Node n) { wake(n); });
    while (!run_.finding) {
      const auto pick = schedule_.next();
      if (!pick) break;
      if (pick->node != kNowhere) {
        attempt(pick->node);
      } else {
        deliver(pick->channel, pick->course);
      }
    }
    if (!run_.finding && !progress_.all_finished()) explain();
    for (std::uint32_t c = 0; c < channels_.size() && !run_.finding; ++c) found(c, channels_[c]->at_rest());
  }

 private:
  struct State {
    std::uint64_t length = 0;   ///< elements, or 1 for an empty message that exists
    std::uint64_t done = 0;     ///< of those
    std::uint32_t unended = 0;  ///< messages that have left, but that completion waits for
    bool delivered = false;     ///< all elements are
  };

  void wake(Node n) {
    if (n != kNowhere && !run_.outcomes[n].finished) schedule_.wake(n);
  }
  auto waker() {
    return [this](Node n) { wake(n); };
  }
  bool started(Node n) const { return run_.outcomes[n].started; }

  void found(std::uint32_t c, std::optional<ChannelFault> fault) {
    if (!fault) return;
    const Lowered::Channel& channel = lowered_.channels()[c];
    Finding finding;
    finding.kind = fault->kind;
    finding.rank = channel.to;
    finding.other_rank = channel.from;
    finding.text = formatted("from rank {} to rank {}, {}: {}", channel.from, channel.to, channels_[c]->kind().text(),
                             fault->text);
    execution_.fail(std::move(finding));
  }

  void deliver(std::uint32_t c, Course course) {
    const Channel::Delivery delivery = channels_[c]->deliver(course);
    found(c, delivery.fault);
    if (course == Course::kBack) return wake(progress_.next_sender(c));
    if (delivery.segment == nullptr) return;
    const Segment& segment = *delivery.segment;
    const Node taker = progress_.next_arrival(c);
    if (delivery.lands) {
      const auto& node = lowered_.node(taker);
      const std::uint32_t element = bytes_of(node.move->dtype);
      domain_.write(node.rank, node.move->local.region, run_.outcomes[taker].local + segment.offset * element, element,
                    segment.values.size(), segment.values.data());
    }
    wake(taker);
    if (segment.last() && channels_[c]->kind().ends == ChannelKind::Ends::kArrived) message_ended(segment.sender);
  }

  void message_ended(Node sender) {
    if (--states_[sender].unended == 0 && states_[sender].delivered) finish(sender);
  }

  // Goes on with a move, by one segment at most.
  void attempt(Node n) {
    State& state = states_[n];
    if (state.delivered) return;
    if (!started(n)) {
      if (!progress_.may_start(n) || !start(n)) return;
    }
    if (state.done < state.length && !advance(n)) return;
    if (state.done < state.length) return wake(n);
    state.delivered = true;
    if (state.unended == 0) finish(n);
  }

  bool start(Node n) {
    const Move& move = *lowered_.node(n).move;
    run_.outcomes[n].started = true;
    if (move.kind == MoveKind::kMove && !execution_.resolve(n)) return false;
    const bool exists = progress_.exists(n);
    states_[n].length = exists ? std::max<std::uint64_t>(1, run_.outcomes[n].count) : 0;
    if (!exists) progress_.skip(n, waker());
    return true;
  }

  /// Whether elements up to `end` of what a move follows are visible.
  bool follows(Node n, std::uint64_t end) const {
    for (const Node producer : lowered_.node(n).producers) {
      if (producer != kNowhere && !states_[producer].delivered && states_[producer].done < end) return false;
    }
    return true;
  }

  /// The turns that it has come to: arrivals issue, and messages may take a credit or ask for a grant.
  bool has_turns(Node n) {
    const auto& node = lowered_.node(n);
    const State& state = states_[n];
    bool turns = true;
    for (const std::uint32_t c : lowered_.arrivals(node)) {
      if (progress_.next_arrival(c) != n) {
        turns = false;
      } else if (!channels_[c]->issued()) {
        // As Dmp::issue_ports: nothing is computed, and nothing else must happen first.
        const bool can_land = lowered_.arrivals(node).size() == 1 && node.move->op0.kind == OperandKind::kNone &&
                              node.move->local.kind == OperandKind::kMemory && run_.outcomes[n].count != 0 &&
                              follows(n, state.length);
        channels_[c]->issue(state.length, can_land);
      }
    }
    for (const std::uint32_t c : lowered_.sends(node)) {
      if (progress_.next_sender(c) != n) {
        turns = false;
      } else {
        channels_[c]->room(state.done, state.length);
      }
    }
    return turns;
  }

  /// Elements that may go on now.
  std::uint64_t enabled(Node n) {
    const auto& node = lowered_.node(n);
    const State& state = states_[n];
    std::uint64_t s = std::min(state.length - state.done, mix_.segment);
    if (schedule_.random()) s = 1 + schedule_.dice().below(s);
    if (!mix_.full_segment_dependencies) {
      for (const Node producer : node.producers) {
        if (producer == kNowhere) continue;
        if (!started(producer) || !execution_.same_count(n, producer)) return 0;
        if (!states_[producer].delivered) s = std::min(s, states_[producer].done - state.done);
      }
    }
    if (node.move->op0.kind == OperandKind::kStream && run_.outcomes[n].count != 0)
      s = std::min<std::uint64_t>(s, domain_.stream_units(node.rank, node.move->op0.offset));
    for (const std::uint32_t c : lowered_.arrivals(node)) {
      s = std::min(s, channels_[c]->readable());
      if (s != 0 && state.done == 0 && !execution_.match(channels_[c]->sender(), n)) return 0;
    }
    for (const std::uint32_t c : lowered_.sends(node)) s = std::min(s, channels_[c]->room(state.done, state.length));
    return s;
  }

  bool advance(Node n) {
    if (!has_turns(n)) return false;
    const std::uint64_t s = enabled(n);
    if (s == 0) return false;
    const auto& node = lowered_.node(n);
    State& state = states_[n];
    ++run_.segments;
    const bool data = run_.outcomes[n].count != 0;
    if (data && !compute(n, s)) return false;
    const bool last = state.done + s == state.length;
    for (const std::uint32_t c : lowered_.arrivals(node)) take(c, s, last);
    for (const std::uint32_t c : lowered_.sends(node)) {
      if (last && channels_[c]->kind().ends != ChannelKind::Ends::kSent) ++state.unended;
      channels_[c]->send(n, state.done, s, state.length, data ? execution_.value() : std::vector<Symbol>{});
      if (last) progress_.sent(c, waker());
    }
    state.done += s;
    for (const Node dependent : lowered_.stream_dependents(node)) wake(dependent);
    return true;
  }

  void take(std::uint32_t c, std::uint64_t s, bool last) {
    const Node sender = channels_[c]->sender();
    channels_[c]->take(s);
    if (!last) return;
    progress_.taken(c, waker());
    if (channels_[c]->kind().ends == ChannelKind::Ends::kTaken) message_ended(sender);
  }

  bool compute(Node n, std::uint64_t s) {
    const auto& node = lowered_.node(n);
    const auto arrivals = lowered_.arrivals(node);
    order_.assign(arrivals.begin(), arrivals.end());
    if (node.move->arrival.mode == PeerMode::kAny) {
      Dice& dice = schedule_.dice();
      for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[dice.below(i)]);
    }
    return execution_.compute(n, states_[n].done, s, order_,
                              [&](std::uint32_t c, Symbol* out, std::size_t count) { channels_[c]->copy(out, count); });
  }

  void finish(Node n) {
    run_.outcomes[n].finished = true;
    progress_.finish(n, waker());
  }

  // --- explanation -------------------------------------------------------------------------------------------------

  std::string move_of(Node n) const {
    return formatted("move {} of rank {}", lowered_.node(n).index, lowered_.node(n).rank);
  }

  void explain() {
    Node start = 0;
    while (run_.outcomes[start].finished) ++start;
    execution_.fail(explain_waits(lowered_, start, [this](Node n) { return why(n); }));
  }

  Wait why(Node n) {
    const auto& node = lowered_.node(n);
    if (!progress_.in_window(n)) {
      const Node oldest = lowered_.first(node.rank) + progress_.retired()[node.rank];
      return {"waits for the window of 32: " + move_of(oldest) + " has not completed", oldest};
    }
    for (std::uint32_t bits = node.move->dependencies; bits != 0; bits &= bits - 1) {
      const Node other = n - 1 - static_cast<Node>(std::countr_zero(bits));
      if (!run_.outcomes[other].finished) return {"depends on " + move_of(other), other};
    }
    for (const Node producer : node.producers) {
      if (producer == kNowhere || run_.outcomes[producer].finished) continue;
      if (mix_.full_segment_dependencies)
        return {"has a segment dependency, read as full, on " + move_of(producer), producer};
      if (!states_[producer].delivered && states_[producer].done <= states_[n].done)
        return {formatted("waits for element {} of {}", states_[n].done, move_of(producer)), producer};
    }
    if (const auto wait = why_message(n)) return *wait;
    return {node.move->op0.kind == OperandKind::kStream
                ? formatted("waits for stream port {}, which gives no more", node.move->op0.offset)
                : "is blocked"};
  }

  /// What it waits for of its channels.
  std::optional<Wait> why_message(Node n) {
    const auto& node = lowered_.node(n);
    const State& state = states_[n];
    for (const std::uint32_t c : lowered_.arrivals(node)) {
      if (state.delivered) break;
      const Node earlier = progress_.next_arrival(c);
      const std::uint32_t from = lowered_.channels()[c].from;
      if (earlier != n && earlier != kNowhere) {
        return Wait{formatted("waits for its turn: the earlier arrival from rank {}, {}, has not ended", from,
                              move_of(earlier)),
                    earlier};
      }
      if (channels_[c]->readable() != 0) continue;
      return Wait{formatted("waits for the message of rank {}, tag {}, by {}", from, node.move->arrival.tag,
                            channels_[c]->kind().text()),
                  progress_.next_sender(c)};
    }
    for (const std::uint32_t c : lowered_.sends(node)) {
      const std::uint32_t to = lowered_.channels()[c].to;
      const std::string by = channels_[c]->kind().text();
      const Node taker = progress_.next_arrival(c);
      if (state.delivered) return Wait{formatted("waits until rank {} has its message, by {}", to, by), taker};
      const Node earlier = progress_.next_sender(c);
      if (earlier != n && earlier != kNowhere) {
        return Wait{
            formatted("waits for its turn: the earlier message to rank {}, {}, is not sent", to, move_of(earlier)),
            earlier};
      }
      if (channels_[c]->room(state.done, state.length) != 0) continue;
      return Wait{formatted("waits for {} of rank {} for its message, tag {}, by {}", channels_[c]->awaited(), to,
                            node.move->remote.tag, by),
                  taker};
    }
    return std::nullopt;
  }

  const Lowered& lowered_;
  SymbolRun& run_;
  const Mix& mix_;
  SymbolDomain domain_;
  Progress progress_;
  Execution<SymbolDomain> execution_;
  Schedule schedule_;
  std::vector<State> states_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::uint32_t> order_;
};

void check(const Mix& mix, const Lowered& lowered) {
  const std::uint32_t ranks = lowered.job().size();
  if (mix.size != ranks || (!mix.hosts.empty() && mix.hosts.size() != ranks)) {
    throw Error(ErrorCode::kInvalidArgument, formatted("a mix of {} ranks, on hosts {} of them, for a job of {}",
                                                       mix.size, mix.hosts.size(), ranks));
  }
  if (mix.segment == 0) throw Error(ErrorCode::kInvalidArgument, "segments of 0 elements; the least is 1");
  for (const Lowered::Channel& channel : lowered.channels()) {
    const ChannelKind kind = mix.kind(channel.from, channel.to);
    const bool credits = kind.way == ChannelKind::Way::kCredit;
    if (kind.lines == 0 || kind.landing == 0 || kind.batch == 0 || (credits && kind.buffers == 0 && !kind.asks) ||
        (credits && kind.batch > std::max(1U, kind.buffers))) {
      throw Error(ErrorCode::kInvalidArgument,
                  "nothing can be sent by " + kind.text() +
                      "; lines, segments and batches are at least 1, batches at most the buffers, and a sender without "
                      "buffers asks");
    }
  }
}

}  // namespace

SymbolRun run_mixed(Interpreter& interpreter, const Mix& mix, const MakeChannel& make) {
  check(mix, interpreter.lowered());
  SymbolRun run;
  run.all_orders = true;
  run.finding = interpreter.lowered().finding();
  if (!run.finding) MixedRun(interpreter, mix, make, run).run();
  return run;
}

std::optional<Finding> check_mixes(Interpreter& interpreter, const SymbolRun& least, std::uint32_t draws,
                                   std::uint64_t seed, std::uint64_t& runs) {
  const Lowered& lowered = interpreter.lowered();
  for (const Mix& mix : mixes_of(lowered.job(), draws, seed)) {
    SymbolRun run = run_mixed(interpreter, mix);
    ++runs;
    std::optional<Finding> finding = std::move(run.finding);
    if (!finding) finding = interpreter.compare(least, run, "a mix of lanes, credits and grants");
    if (!finding) continue;
    finding->text += "\n  (a mix of lanes, credits and grants: " + mix.text(lowered) + ")";
    return finding;
  }
  return std::nullopt;
}

}  // namespace unisono::reference
