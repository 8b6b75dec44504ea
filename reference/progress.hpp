// Which moves of a run may start, whose messages have their turn, and what has retired.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/generated/spec.hpp"
#include "reference/interpreter.hpp"
#include "reference/lowered.hpp"

namespace unisono::reference {

/// The rules 5, 8, 9 and 10 of docs/model.md, as one run obeys them. Functions that may let others go on call
/// `wake(node)` for each of those. The job and the run's outcomes must outlive this.
class Progress {
 public:
  /// `full`: segment dependencies are read as full ones. `slots` of a switch: each holds
  /// what goes up and its result that comes down, two moves.
  Progress(const Lowered& lowered, const Run& run, bool full, std::uint32_t slots = kWindow)
      : lowered_(lowered),
        run_(run),
        full_(full),
        slots_(slots),
        missing_(lowered.size()),
        unfinished_(lowered.size()),
        retired_(lowered.job().size()),
        sent_(lowered.channels().size()),
        taken_(lowered.channels().size()) {
    for (Node n = 0; n < lowered.size(); ++n) {
      const auto& node = lowered.node(n);
      missing_[n] = node.full;
      if (!full) continue;
      for (const std::uint32_t producer : node.producers) missing_[n] += producer != kNowhere ? 1 : 0;
    }
  }

  /// Wakes the first moves of all ranks.
  template <class Wake>
  void begin(Wake&& wake) const {
    for (std::uint32_t rank = 0; rank < lowered_.job().size(); ++rank) {
      const std::size_t moves = lowered_.job().programs[rank].moves.size();
      for (std::uint32_t i = 0; i < std::min<std::size_t>(moves, window(rank)); ++i) wake(lowered_.first(rank) + i);
    }
  }

  /// Whether it is in the window, and full dependencies have completed.
  bool may_start(Node n) const { return missing_[n] == 0 && in_window(n); }
  bool in_window(Node n) const {
    const auto& node = lowered_.node(n);
    return node.index < retired_[node.rank] + window(node.rank);
  }
  /// How many moves of a rank may be in flight.
  std::uint32_t window(std::uint32_t rank) const {
    const auto window = static_cast<std::uint32_t>(kWindow);
    return rank < lowered_.job().members() ? window : std::min(window, 2 * slots_);
  }
  bool all_finished() const { return unfinished_ == 0; }
  /// By rank: moves that have retired.
  const std::vector<std::uint32_t>& retired() const { return retired_; }

  /// A move has completed; its outcome says so already.
  template <class Wake>
  void finish(Node n, Wake&& wake) {
    --unfinished_;
    const auto& node = lowered_.node(n);
    const auto release = [&](Node dependent) {
      if (--missing_[dependent] == 0) wake(dependent);
    };
    for (const Node dependent : lowered_.dependents(node)) release(dependent);
    if (full_) {
      for (const Node dependent : lowered_.stream_dependents(node)) release(dependent);
    }
    const auto moves = static_cast<std::uint32_t>(lowered_.job().programs[node.rank].moves.size());
    std::uint32_t& retired = retired_[node.rank];
    while (retired < moves && run_.outcomes[lowered_.first(node.rank) + retired].finished) {
      ++retired;
      const Node last = retired + window(node.rank) - 1;
      if (last < moves) wake(lowered_.first(node.rank) + last);
    }
  }

  /// The move of a channel whose message is sent, or taken, next; or kNowhere.
  Node next_sender(std::uint32_t c) const { return at(lowered_.sends(lowered_.channels()[c]), sent_[c]); }
  Node next_arrival(std::uint32_t c) const { return at(lowered_.arrivals(lowered_.channels()[c]), taken_[c]); }

  /// The message of the next one has been sent, or taken.
  template <class Wake>
  void sent(std::uint32_t c, Wake&& wake) {
    ++sent_[c];
    pass(lowered_.sends(lowered_.channels()[c]), sent_[c], wake);
  }
  template <class Wake>
  void taken(std::uint32_t c, Wake&& wake) {
    ++taken_[c];
    pass(lowered_.arrivals(lowered_.channels()[c]), taken_[c], wake);
  }
  /// A move has started whose messages do not exist: those behind it have their turn.
  template <class Wake>
  void skip(Node n, Wake&& wake) {
    const auto& node = lowered_.node(n);
    for (const std::uint32_t c : lowered_.sends(node)) pass(lowered_.sends(lowered_.channels()[c]), sent_[c], wake);
    for (const std::uint32_t c : lowered_.arrivals(node))
      pass(lowered_.arrivals(lowered_.channels()[c]), taken_[c], wake);
  }

  /// Whether the messages of a move that has started exist.
  bool exists(Node n) const {
    const Move& move = *lowered_.node(n).move;
    return move.kind == MoveKind::kMove && (run_.outcomes[n].count != 0 || move.signal);
  }

 private:
  static Node at(std::span<const Node> nodes, std::uint32_t cursor) {
    return cursor < nodes.size() ? nodes[cursor] : kNowhere;
  }
  template <class Wake>
  void pass(std::span<const Node> nodes, std::uint32_t& cursor, Wake&& wake) {
    while (cursor < nodes.size() && run_.outcomes[nodes[cursor]].started && !exists(nodes[cursor])) ++cursor;
    if (cursor < nodes.size()) wake(nodes[cursor]);
  }

  const Lowered& lowered_;
  const Run& run_;
  const bool full_;
  const std::uint32_t slots_;
  std::vector<std::uint32_t> missing_;  ///< by node: full dependencies that have not completed
  std::uint32_t unfinished_;
  std::vector<std::uint32_t> retired_;
  std::vector<std::uint32_t> sent_;   ///< by channel: moves that have sent or send nothing
  std::vector<std::uint32_t> taken_;  ///< by channel
};

}  // namespace unisono::reference
