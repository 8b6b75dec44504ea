// The machine inside the interpreter: one run of all ranks' moves on some domain of values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reference/dice.hpp"
#include "reference/execution.hpp"
#include "reference/fifo.hpp"
#include "reference/interpreter.hpp"
#include "reference/port_turns.hpp"
#include "reference/progress.hpp"
#include "reference/waits.hpp"

namespace unisono::reference {

/// One run. `Domain` gives Unit, units per element, memory and operators.
///
/// A move advances when it is looked at and its next segment is enabled; everything that may enable a segment puts the
/// moves concerned back on the worklist. Nothing that was enabled is ever disabled, so a drained worklist with moves
/// left is a deadlock.
template <class Domain>
class Machine {
  using Unit = typename Domain::Unit;

 public:
  Machine(const Lowered& lowered, Domain& domain, Run& run, const Policy& policy, bool record_events)
      : lowered_(lowered),
        domain_(domain),
        run_(run),
        policy_(policy),
        record_(record_events),
        dice_(Dice::apart(policy.seed)),
        progress_(lowered, run, policy.full_segment_dependencies, policy.slots),
        ports_(lowered, policy.shared_ports),
        execution_(lowered, domain, run, progress_.retired()) {}

  void run() {
    prepare();
    Node node = 0;
    while (!run_.finding && take(node)) attempt(node);
    if (!run_.finding && !progress_.all_finished()) explain_block();
    if (!run_.finding) check_left_over();
  }

 private:
  struct State {
    std::uint64_t length = 0;  // elements, or 1 for an empty message that exists
    std::uint64_t done = 0;
    std::uint32_t unacked = 0;   // messages not consumed yet that completion waits for
    std::uint32_t priority = 0;  // random policy: who goes first
    bool delivered = false;      // all elements delivered
    bool queued = false;
    bool synchronous = false;  // completion waits for consumption
  };
  struct Header {
    Node sender = 0;
    std::uint64_t sent = 0;
    bool complete = false;
    bool checked = false;
  };
  struct Pair {
    bool issued = false;  // the arrival whose turn it is has issued
    std::uint64_t taken = 0;
    std::uint64_t tokens = 0;    // elements in the channel, over all messages
    std::uint64_t capacity = 0;  // elements it buffers before an arrival has issued
    std::vector<Header> headers;
    std::size_t front = 0;
    Fifo<Unit> data;

    bool empty() const { return front == headers.size(); }
    void pop_header() {
      ++front;
      if (front == headers.size()) {
        headers.clear();
        front = 0;
      }
    }
  };

  bool random() const { return policy_.kind == Policy::Kind::kRandom; }
  bool least() const { return policy_.kind == Policy::Kind::kLeastPermissive; }

  void prepare() {
    states_.resize(lowered_.size());
    pairs_.resize(lowered_.channels().size());
    if (random()) {
      style_ = static_cast<std::uint32_t>(dice_.below(4));
      for (Pair& pair : pairs_) {
        constexpr std::uint64_t kCapacities[] = {0, 0, 1, 3, 17, ~std::uint64_t{0}};
        pair.capacity = kCapacities[dice_.below(6)];
      }
    } else if (policy_.kind == Policy::Kind::kGenerous) {
      for (Pair& pair : pairs_) pair.capacity = ~std::uint64_t{0};
    }
    std::vector<std::uint32_t> rank_priority(lowered_.job().size());
    if (random()) {
      for (std::uint32_t& p : rank_priority) p = static_cast<std::uint32_t>(dice_.below(1U << 20U));
    }
    for (Node n = 0; n < lowered_.size(); ++n) {
      const auto& node = lowered_.node(n);
      State& state = states_[n];
      state.synchronous = least() || (random() && dice_.below(3) == 0);
      if (random()) {
        state.priority = style_ == 1 ? rank_priority[node.rank] : static_cast<std::uint32_t>(dice_.below(1U << 20U));
      }
    }
    progress_.begin(waker());
  }

  void wake(Node n) {
    State& state = states_[n];
    if (state.queued || run_.outcomes[n].finished) return;
    state.queued = true;
    queue_.push_back(n);
  }
  auto waker() {
    return [this](Node n) { wake(n); };
  }

  // The next move to look at.
  bool take(Node& n) {
    if (head_ == queue_.size()) return false;
    if (random()) {
      std::size_t best = head_ + dice_.below(queue_.size() - head_);
      if (style_ != 0) {
        for (int i = 0; i < 3; ++i) {
          const std::size_t other = head_ + dice_.below(queue_.size() - head_);
          if (states_[queue_[other]].priority > states_[queue_[best]].priority) best = other;
        }
      }
      std::swap(queue_[best], queue_.back());
      n = queue_.back();
      queue_.pop_back();
    } else {
      n = queue_[head_++];
      if (head_ > 4096 && head_ * 2 > queue_.size()) {
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
        head_ = 0;
      }
    }
    states_[n].queued = false;
    return true;
  }

  void event(Event::Kind kind, Node n, std::uint64_t elements = 0) {
    ++time_;
    if (record_) run_.events.push_back({kind, time_, n, elements});
  }

  // --- issue -------------------------------------------------------------------------------------------------------

  bool issue(Node n) {
    MoveOutcome& out = run_.outcomes[n];
    out.started = true;
    event(Event::Kind::kStart, n);
    out.start = time_;
    if (lowered_.node(n).move->kind == MoveKind::kMove && !execution_.resolve(n)) return false;
    const bool exists = progress_.exists(n);
    states_[n].length = exists ? std::max<std::uint64_t>(1, out.count) : 0;
    if (!exists) progress_.skip(n, waker());
    return true;
  }

  // --- channels ----------------------------------------------------------------------------------------------------

  bool arrival_turn(std::uint32_t c, Node n) const { return next_arrival(c) == n; }
  bool send_turn(std::uint32_t c, Node n) const { return next_sender(c) == n; }
  Node next_sender(std::uint32_t c) const { return progress_.next_sender(c); }
  Node next_arrival(std::uint32_t c) const { return progress_.next_arrival(c); }
  void wake_if(Node n) {
    if (n != kNowhere) wake(n);
  }

  // Elements that a message may be advanced by now, at most `wanted`.
  std::uint64_t room(std::uint32_t c, Node sender, std::uint64_t wanted) const {
    const Pair& pair = pairs_[c];
    std::uint64_t space = pair.capacity > pair.tokens ? pair.capacity - pair.tokens : 0;
    // Rule 13: whatever else goes on, the issued arrival of this very message has space for one segment.
    const bool mine = pair.empty() || pair.headers[pair.front].sender == sender;
    if (pair.issued && mine && pair.tokens == 0) space = std::max(space, wanted);
    return std::min(space, wanted);
  }

  bool check_header(std::uint32_t c) {
    Pair& pair = pairs_[c];
    if (pair.empty() || !pair.issued || pair.headers[pair.front].checked) return true;
    Header& header = pair.headers[pair.front];
    header.checked = true;
    return execution_.match(header.sender, next_arrival(c));
  }

  // --- execution ---------------------------------------------------------------------------------------------------

  void attempt(Node n) {
    const auto& node = lowered_.node(n);
    State& state = states_[n];
    if (state.delivered) return;
    if (!run_.outcomes[n].started && (!progress_.may_start(n) || !issue(n))) return;
    if (progress_.exists(n)) {
      if (ports_.before(n) != kNowhere) return;
      bool turn = true;
      for (const std::uint32_t c : lowered_.arrivals(node)) {
        if (!arrival_turn(c, n)) {
          turn = false;
        } else if (!pairs_[c].issued) {
          pairs_[c].issued = true;
          if (!check_header(c)) return;
          wake_if(next_sender(c));
        }
      }
      for (const std::uint32_t c : lowered_.sends(node)) turn = turn && send_turn(c, n);
      if (!turn) return;
    }
    while (state.done < state.length) {
      std::uint64_t s = state.length - state.done;
      if (least()) s = 1;
      if (random()) s = dice_.below(2) == 0 ? 1 + dice_.below(s) : 1 + dice_.below(std::min<std::uint64_t>(s, 3));
      s = enabled(n, s);
      if (s == 0) return;
      if (!advance(n, s)) return;
      if (random() && state.done < state.length) {
        wake(n);
        return;
      }
    }
    deliver(n);
  }

  // How many of `s` elements may go now.
  std::uint64_t enabled(Node n, std::uint64_t s) {
    const auto& node = lowered_.node(n);
    const Move& move = *node.move;
    const State& state = states_[n];
    if (!policy_.full_segment_dependencies) {
      for (const std::uint32_t producer : node.producers) {
        if (producer == kNowhere) continue;
        if (!run_.outcomes[producer].started) return 0;
        if (!execution_.same_count(n, producer)) return 0;
        if (!states_[producer].delivered) s = std::min(s, states_[producer].done - state.done);
      }
    }
    if (move.op0.kind == OperandKind::kStream && run_.outcomes[n].count != 0) {
      s = std::min<std::uint64_t>(
          s, domain_.stream_units(node.rank, move.op0.offset) / domain_.units(bytes_of(move.dtype)));
    }
    for (const std::uint32_t c : lowered_.arrivals(node)) {
      const Pair& pair = pairs_[c];
      s = pair.empty() ? 0 : std::min(s, pair.headers[pair.front].sent - pair.taken);
    }
    if (s == 0) return 0;
    for (const std::uint32_t c : lowered_.sends(node)) s = std::min(s, room(c, n, s));
    return s;
  }

  // Executes the next `s` elements (or the one token of an empty message).
  bool advance(Node n, std::uint64_t s) {
    const auto& node = lowered_.node(n);
    const Move& move = *node.move;
    State& state = states_[n];
    const MoveOutcome& out = run_.outcomes[n];
    const bool data = out.count != 0;
    ++run_.segments;
    if (data && !compute(n, s)) return false;
    for (const std::uint32_t c : lowered_.arrivals(node)) consume(c, s);
    for (const std::uint32_t c : lowered_.sends(node)) {
      Pair& pair = pairs_[c];
      if (pair.empty() || pair.headers.back().sender != n || pair.headers.back().complete) {
        pair.headers.push_back({n, 0, false, false});
        if (!check_header(c)) return false;
        if (state.synchronous) ++state.unacked;
      }
      Header& header = pair.headers.back();
      header.sent += s;
      header.complete = header.sent == state.length;
      pair.tokens += s;
      if (data) pair.data.push(execution_.value().data(), s * domain_.units(bytes_of(move.dtype)));
      wake_if(next_arrival(c));
      if (header.complete) {
        progress_.sent(c, waker());
      }
    }
    state.done += s;
    event(Event::Kind::kSegment, n, state.done);
    if (run_.outcomes[n].first == 0) run_.outcomes[n].first = time_;
    for (const Node dependent : lowered_.stream_dependents(node)) wake(dependent);
    return true;
  }

  void consume(std::uint32_t c, std::uint64_t s) {
    Pair& pair = pairs_[c];
    Header& header = pair.headers[pair.front];
    pair.taken += s;
    pair.tokens -= s;
    if (header.complete && pair.taken == header.sent) {
      State& sender = states_[header.sender];
      const Node sender_node = header.sender;
      pair.taken = 0;
      pair.issued = false;
      pair.pop_header();
      progress_.taken(c, waker());
      if (sender.unacked != 0 && --sender.unacked == 0 && sender.delivered) finish(sender_node);
    }
    wake_if(next_sender(c));
  }

  bool compute(Node n, std::uint64_t s) {
    const auto& node = lowered_.node(n);
    const auto channels = lowered_.arrivals(node);
    order_.assign(channels.begin(), channels.end());
    if (random() && node.move->arrival.mode == PeerMode::kAny) {
      for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[dice_.below(i)]);
    }
    return execution_.compute(n, states_[n].done, s, order_,
                              [&](std::uint32_t c, Unit* out, std::size_t units) { pairs_[c].data.pop(out, units); });
  }

  void deliver(Node n) {
    State& state = states_[n];
    state.delivered = true;
    ports_.over(n, waker());
    if (state.unacked == 0) finish(n);
  }

  void finish(Node n) {
    MoveOutcome& out = run_.outcomes[n];
    if (out.finished) return;
    out.finished = true;
    event(Event::Kind::kFinish, n);
    out.finish = time_;
    progress_.finish(n, waker());
  }

  // --- explanation -------------------------------------------------------------------------------------------------

  Wait why(Node n) const {
    const auto& node = lowered_.node(n);
    const Move& move = *node.move;
    const State& state = states_[n];
    const auto number = [&](Node other) {
      return "move " + std::to_string(lowered_.node(other).index) + " of rank " +
             std::to_string(lowered_.node(other).rank);
    };
    if (!progress_.in_window(n)) {
      const Node oldest = lowered_.first(node.rank) + progress_.retired()[node.rank];
      return {"waits for the window of " + std::to_string(progress_.window(node.rank)) + ": " + number(oldest) +
                  " has not completed",
              oldest, false};
    }
    if (!progress_.may_start(n)) {
      for (std::uint32_t bits = move.dependencies; bits != 0; bits &= bits - 1) {
        const Node other = n - 1 - static_cast<Node>(std::countr_zero(bits));
        if (!run_.outcomes[other].finished) return {"depends on " + number(other), other, false};
      }
      for (const std::uint32_t producer : node.producers) {
        if (producer != kNowhere && policy_.full_segment_dependencies && !run_.outcomes[producer].finished) {
          return {"has a segment dependency, read as full, on " + number(producer), producer, false};
        }
      }
    }
    if (const Node earlier = state.delivered ? kNowhere : ports_.before(n); earlier != kNowhere) {
      return {"waits for its turn at the port of ranks " + ports_.port_text(n, earlier) + ": " + number(earlier) +
                  " has not gone through",
              earlier, false};
    }
    for (const std::uint32_t c : lowered_.arrivals(node)) {
      const Node earlier = next_arrival(c);
      if (!arrival_turn(c, n) && earlier != kNowhere) {
        return {"waits for its turn: the earlier arrival from rank " + std::to_string(lowered_.channels()[c].from) +
                    ", " + number(earlier) + ", is not consumed",
                earlier, false};
      }
    }
    for (const std::uint32_t c : lowered_.sends(node)) {
      const Node earlier = next_sender(c);
      if (state.done < state.length && !send_turn(c, n) && earlier != kNowhere) {
        return {"waits for its turn: the earlier message to rank " + std::to_string(lowered_.channels()[c].to) + ", " +
                    number(earlier) + ", is not sent",
                earlier, false};
      }
    }
    if (!state.delivered) {
      for (const std::uint32_t producer : node.producers) {
        if (producer != kNowhere && !states_[producer].delivered && states_[producer].done <= state.done) {
          return {"waits for element " + std::to_string(state.done) + " of " + number(producer), producer, false};
        }
      }
      if (move.op0.kind == OperandKind::kStream &&
          domain_.stream_units(node.rank, move.op0.offset) < domain_.units(bytes_of(move.dtype))) {
        return {"waits for stream port " + std::to_string(move.op0.offset) + ", which gives no more", kNowhere, false};
      }
      for (const std::uint32_t c : lowered_.arrivals(node)) {
        const Pair& pair = pairs_[c];
        if (!pair.empty() && pair.headers[pair.front].sent > pair.taken) continue;
        const Node sender = pair.empty() ? next_sender(c) : pair.headers[pair.front].sender;
        const std::string from = "waits for the message of rank " + std::to_string(lowered_.channels()[c].from) +
                                 ", tag " + std::to_string(move.arrival.tag);
        if (sender == kNowhere) return {from + ", which rank sends no further message here", kNowhere, true};
        return {from + ", to be sent by " + number(sender), sender, false};
      }
    }
    for (const std::uint32_t c : lowered_.sends(node)) {
      if (state.done == state.length) {
        // Delivered, waiting for consumption.
        const Pair& pair = pairs_[c];
        bool waiting = false;
        for (std::size_t i = pair.front; i < pair.headers.size(); ++i) waiting |= pair.headers[i].sender == n;
        if (!waiting) continue;
      } else if (room(c, n, 1) != 0) {
        continue;
      }
      const Node taker = next_arrival(c);
      const std::string to = "waits until rank " + std::to_string(lowered_.channels()[c].to) +
                             " takes its message, tag " + std::to_string(move.remote.tag);
      if (taker == kNowhere) return {to + ", which has no further arrival for it", kNowhere, true};
      return {to + ", by " + number(taker), taker, false};
    }
    return {"is blocked", kNowhere, false};
  }

  void explain_block() {
    Node start = kNowhere;
    for (Node n = 0; n < lowered_.size() && start == kNowhere; ++n) {
      if (!run_.outcomes[n].finished) start = n;
    }
    execution_.fail(explain_waits(lowered_, start, [&](Node n) { return why(n); }));
  }

  void check_left_over() {
    for (std::size_t c = 0; c < pairs_.size(); ++c) {
      if (pairs_[c].empty()) continue;
      const Node sender = pairs_[c].headers[pairs_[c].front].sender;
      execution_.fail(lowered_.at(FindingKind::kUnmatched, sender,
                                  "a message to rank " + std::to_string(lowered_.channels()[c].to) +
                                      " is never consumed\n  sent by " + lowered_.place(sender)));
      return;
    }
  }

  const Lowered& lowered_;
  Domain& domain_;
  Run& run_;
  Policy policy_;
  bool record_;
  Dice dice_;
  std::uint32_t style_ = 0;
  std::vector<State> states_;
  std::vector<Pair> pairs_;
  Progress progress_;
  PortTurns ports_;
  Execution<Domain> execution_;
  std::vector<Node> queue_;
  std::size_t head_ = 0;
  std::uint64_t time_ = 0;
  std::vector<std::uint32_t> order_;
};

}  // namespace unisono::reference
