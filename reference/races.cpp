#include "reference/races.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/text.hpp"

namespace unisono::reference {
namespace {

// Stages of a move, as vertices of the happens-before graph.
enum class Stage : std::uint8_t {
  kStart,     // dependencies have completed; params are read
  kIssue,     // its arrivals have issued
  kElements,  // all its elements, each after all of the access
  kElement,   // all its elements, between their inputs and their results
  kFinish,
  kRetire,
};
constexpr std::uint32_t kStages = 6;

struct Access {
  enum class Kind : std::uint8_t {
    kLocal,   // element by element; a local result is what segment dependencies wait for
    kRemote,  // element by element, in a peer's memory
    kStream,  // a stream port: everything that touches it changes it
    kWhole,   // params words, read at the start
  };
  Kind kind = Kind::kLocal;
  bool write = false;
  Node node = 0;
  std::uint32_t rank = 0;   // whose memory
  std::uint32_t place = 0;  // region, or stream port and direction
  std::uint32_t element = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class RaceFinder {
 public:
  RaceFinder(const Lowered& lowered, const Run& run) : lowered_(lowered), run_(run) {
    successors_.resize(lowered.size());
    arrival_successors_.resize(lowered.size());
    for (const Lowered::Channel& channel : lowered.channels()) link(channel);
    seen_.resize(std::size_t{kStages} * lowered.size());
    pure_.resize(lowered.size());
    wanted_.resize(lowered.size());
  }

  std::optional<Finding> find_early_exit() {
    const std::uint32_t size = lowered_.job().members();
    reached_.resize(lowered_.job().size());
    for (std::uint32_t from = 0; from < size; ++from) {
      begin_search(~std::uint64_t{0});
      wanted_count_ = 1;  // nothing in particular: the walk goes to its end
      const auto moves = static_cast<Node>(lowered_.job().programs[from].moves.size());
      for (Node n = lowered_.first(from); n < lowered_.first(from) + moves; ++n) visit(n, Stage::kStart);
      walk();
      for (std::uint32_t to = 0; to < size; ++to) {
        if (to == from || reached_[to] == stamp_) continue;
        Finding finding;
        finding.kind = FindingKind::kWrongResult;
        finding.rank = to;
        finding.other_rank = from;
        finding.text = formatted(
            "rank {} may leave the barrier before rank {} has entered it: no message of rank {} reaches it, nor one "
            "that waits for such a message",
            to, from, from);
        return finding;
      }
    }
    return std::nullopt;
  }

  std::optional<Finding> find(std::uint64_t* pairs) {
    collect();
    std::vector<std::pair<std::size_t, std::size_t>> conflicts;  // (earlier, later) in accesses_
    for (auto& place : places_) sweep(place, conflicts);
    if (pairs != nullptr) *pairs = conflicts.size();
    if (auto finding = check_exits(pairs)) return finding;
    std::sort(conflicts.begin(), conflicts.end());
    for (std::size_t i = 0; i < conflicts.size();) {
      std::size_t end = i;
      while (end < conflicts.size() && conflicts[end].first == conflicts[i].first) ++end;
      if (auto finding = check(accesses_[conflicts[i].first], conflicts, i, end)) return finding;
      i = end;
    }
    return std::nullopt;
  }

 private:
  static std::size_t vertex(Node n, Stage stage) { return std::size_t{n} * kStages + static_cast<std::size_t>(stage); }
  bool exists(Node n) const { return run_.outcomes[n].count != 0 || lowered_.node(n).move->signal; }

  void link(const Lowered::Channel& channel) {
    const auto sends = lowered_.sends(channel);
    const auto arrivals = lowered_.arrivals(channel);
    std::size_t j = 0;
    Node previous = kNowhere;
    for (const Node send : sends) {
      if (!exists(send)) continue;
      while (j < arrivals.size() && !exists(arrivals[j])) ++j;
      if (j == arrivals.size()) return;
      successors_[send].push_back(arrivals[j]);
      if (previous != kNowhere) arrival_successors_[previous].push_back(arrivals[j]);
      previous = arrivals[j++];
    }
  }

  // Accesses by place: (rank, region) for memory, (rank, port and direction) for streams.
  void collect() {
    constexpr std::size_t kPlaces = kRegions + 2 * kMaxStreamPorts;
    places_.resize(lowered_.job().size() * kPlaces);
    const auto add = [&](Access::Kind kind, bool write, Node n, std::uint32_t rank, std::size_t place,
                         std::uint64_t begin, std::uint64_t bytes) {
      if (bytes == 0) return;
      places_[rank * kPlaces + place].push_back(accesses_.size());
      accesses_.push_back({kind, write, n, rank, static_cast<std::uint32_t>(place),
                           bytes_of(lowered_.node(n).move->dtype), begin, begin + bytes});
    };
    constexpr auto kParams = static_cast<std::size_t>(Region::kParams);
    for (Node n = 0; n < lowered_.size(); ++n) {
      const auto& node = lowered_.node(n);
      const Move& move = *node.move;
      const MoveOutcome& out = run_.outcomes[n];
      if (move.kind != MoveKind::kMove) continue;
      if (move.count_indirect) add(Access::Kind::kWhole, false, n, node.rank, kParams, move.count, 8);
      if (out.count == 0) continue;
      const std::uint64_t bytes = out.count * bytes_of(move.dtype);
      const auto slot = [&](const Operand& operand, std::uint64_t offset, bool write) {
        if (operand.kind == OperandKind::kMemory) {
          add(Access::Kind::kLocal, write, n, node.rank, static_cast<std::size_t>(operand.region), offset, bytes);
          if (operand.indirect) add(Access::Kind::kWhole, false, n, node.rank, kParams, operand.offset, 8);
        } else if (operand.kind == OperandKind::kStream) {
          add(Access::Kind::kStream, true, n, node.rank, kRegions + 2 * operand.offset + (write ? 1 : 0), 0, 1);
        }
      };
      slot(move.op0, out.op0, false);
      slot(move.op1, out.op1, false);
      slot(move.local, out.local, true);
      const RemoteAddress& there = move.remote_address;
      for (const std::uint32_t peer : lowered_.fetches(node)) {
        add(Access::Kind::kRemote, false, n, peer, static_cast<std::size_t>(there.region), there.offset, bytes);
      }
      for (const std::uint32_t peer : lowered_.stores(node)) {
        add(Access::Kind::kRemote, true, n, peer, static_cast<std::size_t>(there.result_region), there.offset, bytes);
      }
      if (move.remote.kind == RemoteKind::kStream) {
        add(Access::Kind::kStream, true, n, move.remote.peer, kRegions + 2 * std::size_t{move.remote.port} + 1, 0, 1);
      }
    }
  }

  void sweep(std::vector<std::size_t>& place, std::vector<std::pair<std::size_t, std::size_t>>& conflicts) const {
    std::sort(place.begin(), place.end(),
              [&](std::size_t a, std::size_t b) { return accesses_[a].begin < accesses_[b].begin; });
    std::vector<std::size_t> reads;
    std::vector<std::size_t> writes;
    for (const std::size_t b : place) {
      const Access& access = accesses_[b];
      const auto over = [&](std::size_t a) { return accesses_[a].end <= access.begin; };
      std::erase_if(reads, over);
      std::erase_if(writes, over);
      const auto meet = [&](std::size_t a) {
        if (accesses_[a].node == access.node) return;
        const bool first = time_of(accesses_[a]) < time_of(access);
        conflicts.emplace_back(first ? a : b, first ? b : a);
      };
      for (const std::size_t a : writes) meet(a);
      if (access.write) {
        for (const std::size_t a : reads) meet(a);
      }
      (access.write ? writes : reads).push_back(b);
    }
  }

  // When the access happens first in the run. If one access is guaranteed to precede another, its time is less.
  std::uint64_t time_of(const Access& access) const {
    const MoveOutcome& out = run_.outcomes[access.node];
    return access.kind == Access::Kind::kWhole ? out.start : out.first;
  }

  // Whether `from` is before all the accesses it conflicts with. In the run it came first, and the run obeys every
  // order there is, so the opposite order is not guaranteed.
  std::optional<Finding> check(const Access& from, const std::vector<std::pair<std::size_t, std::size_t>>& conflicts,
                               std::size_t begin, std::size_t end) {
    std::uint64_t horizon = 0;
    for (std::size_t i = begin; i < end; ++i) {
      horizon = std::max(horizon, run_.outcomes[accesses_[conflicts[i].second].node].finish);
    }
    // First the ways that stay element by element, then, for what is left, all ways, nearest first.
    begin_search(horizon);
    walk_elements(from);
    wanted_count_ = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const Access& to = accesses_[conflicts[i].second];
      if (follows_element_by_element(from, to)) continue;
      Wanted& wanted = wanted_[to.node];
      if (wanted.stamp != stamp_) {
        wanted = {stamp_, false};
        ++wanted_count_;
      }
      wanted.start = wanted.start || to.kind == Access::Kind::kWhole;
    }
    if (wanted_count_ == 0) return std::nullopt;
    walk_all(from);
    for (std::size_t i = begin; i < end && wanted_count_ != 0; ++i) {
      const Access& to = accesses_[conflicts[i].second];
      if (!follows_element_by_element(from, to) && wanted_[to.node].stamp == stamp_) return report(from, to);
    }
    return std::nullopt;
  }

  // Whether every access to a peer's src and dst is certainly over when that peer's program ends. The window is not the
  // call's: it stays when the call has ended.
  std::optional<Finding> check_exits(std::uint64_t* pairs) {
    const auto window = static_cast<std::uint32_t>(Region::kWindow);
    reached_.resize(lowered_.job().size());
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      const Access& from = accesses_[i];
      if (from.kind != Access::Kind::kRemote || from.place == window) continue;
      if (from.rank == lowered_.node(from.node).rank) continue;
      if (pairs != nullptr) ++*pairs;
      // What comes after one element-wise access comes after all of the same kind of a move: one walk for them.
      const bool again = i != 0 && reached_from_ == from.node && reached_by_write_ == from.write;
      if (!again) {
        begin_search(~std::uint64_t{0});
        walk_elements(from);
        wanted_count_ = 1;  // nothing in particular: the walk goes to its end
        walk_all(from);
        reached_from_ = from.node;
        reached_by_write_ = from.write;
      }
      if (reached_[from.rank] == stamp_) continue;
      const auto& node = lowered_.node(from.node);
      Finding finding =
          lowered_.at(FindingKind::kUnfinished, from.node,
                      formatted("{}[{}:{}] of rank {} may still be {} by rank {} when the call of rank {} ends: no "
                                "message tells it that the access is over\n  {}",
                                name_of(static_cast<Region>(from.place)), from.begin, from.end, from.rank,
                                from.write ? "written" : "read", node.rank, from.rank, lowered_.place(from.node)));
      finding.other_rank = from.rank;
      return finding;
    }
    return std::nullopt;
  }

  bool follows_element_by_element(const Access& from, const Access& to) const {
    const auto by_element = [](const Access& access) {
      return access.kind == Access::Kind::kLocal || access.kind == Access::Kind::kRemote;
    };
    return by_element(from) && by_element(to) && from.element == to.element && from.begin == to.begin &&
           pure_[to.node] == stamp_;
  }

  void begin_search(std::uint64_t horizon) {
    ++stamp_;
    horizon_ = horizon;
    work_.clear();
    head_ = 0;
    pure_list_.clear();
  }

  void walk_elements(const Access& from) {
    const auto step = [&](Node n) {
      if (pure_[n] == stamp_ || run_.outcomes[n].start > horizon_) return;
      pure_[n] = stamp_;
      pure_list_.push_back(n);
    };
    const bool read = !from.write && from.kind != Access::Kind::kWhole;
    if (read) {
      for (const Node next : successors_[from.node]) step(next);
    }
    if (read || (from.write && from.kind == Access::Kind::kLocal)) {
      for (const Node next : lowered_.stream_dependents(lowered_.node(from.node))) step(next);
    }
    for (std::size_t i = 0; i < pure_list_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list grows
      const Node n = pure_list_[i];
      for (const Node next : successors_[n]) step(next);
      for (const Node next : lowered_.stream_dependents(lowered_.node(n))) step(next);
    }
  }

  // Marks everything that is certainly after the access, until all that is wanted has been found.
  void walk_all(const Access& from) {
    visit(from.node, Stage::kFinish);
    if (from.kind == Access::Kind::kWhole) visit(from.node, Stage::kIssue);
    if (!from.write && from.kind != Access::Kind::kWhole) {
      for (const Node next : arrival_successors_[from.node]) visit(next, Stage::kIssue);
    }
    for (const Node n : pure_list_) visit(n, Stage::kElement);
    walk();
  }

  void walk() {
    while (head_ != work_.size() && wanted_count_ != 0) {
      const auto [n, stage] = work_[head_++];
      const auto& at = lowered_.node(n);
      switch (stage) {
        case Stage::kStart:
          visit(n, Stage::kIssue);
          break;
        case Stage::kIssue:
          visit(n, Stage::kElements);
          break;
        case Stage::kElements:
          visit(n, Stage::kElement);
          for (const Node next : successors_[n]) visit(next, Stage::kElements);
          for (const Node next : lowered_.stream_dependents(at)) visit(next, Stage::kElements);
          break;
        case Stage::kElement:
          visit(n, Stage::kFinish);
          for (const Node next : successors_[n]) visit(next, Stage::kElement);
          for (const Node next : lowered_.stream_dependents(at)) visit(next, Stage::kElement);
          for (const Node next : arrival_successors_[n]) visit(next, Stage::kIssue);
          break;
        case Stage::kFinish:
          visit(n, Stage::kRetire);
          for (const Node next : lowered_.dependents(at)) visit(next, Stage::kStart);
          break;
        case Stage::kRetire: {
          const auto moves = lowered_.job().programs[at.rank].moves.size();
          if (at.index + 1 < moves) visit(n + 1, Stage::kRetire);
          if (at.index + kWindow < moves) visit(n + static_cast<Node>(kWindow), Stage::kStart);
          break;
        }
      }
    }
  }

  void visit(Node n, Stage stage) {
    // What starts later than everything asked about has finished cannot lie on a way to it. Retiring has no time.
    if (stage != Stage::kRetire && run_.outcomes[n].start > horizon_) return;
    std::uint32_t& seen = seen_[vertex(n, stage)];
    if (seen == stamp_) return;
    seen = stamp_;
    if (stage == Stage::kFinish && !reached_.empty()) reached_[lowered_.node(n).rank] = stamp_;
    Wanted& wanted = wanted_[n];
    const bool before_elements = stage == Stage::kIssue || stage == Stage::kElements;
    if (wanted.stamp == stamp_ && (stage == Stage::kStart || (before_elements && !wanted.start))) {
      wanted.stamp = 0;
      --wanted_count_;
    }
    work_.emplace_back(n, stage);
  }

  Finding report(const Access& a, const Access& b) const {
    const auto verb = [](const Access& access) { return access.write ? "writes" : "reads"; };
    std::string where;
    if (a.place < kRegions) {
      where = formatted("{}[{}:{}]", name_of(static_cast<Region>(a.place)), std::max(a.begin, b.begin),
                        std::min(a.end, b.end));
    } else {
      where = formatted("stream port {}", (a.place - kRegions) / 2);
    }
    Finding finding =
        lowered_.at(FindingKind::kRace, a.node,
                    formatted("{} of rank {}: the first move {}, the second {}, and nothing orders them\n  {}\n  {}",
                              where, a.rank, verb(a), verb(b), lowered_.place(a.node), lowered_.place(b.node)));
    finding.other_rank = lowered_.node(b.node).rank;
    finding.other_move = lowered_.node(b.node).index;
    return finding;
  }

  const Lowered& lowered_;
  const Run& run_;
  std::vector<std::vector<Node>> successors_;          // arrivals of its messages
  std::vector<std::vector<Node>> arrival_successors_;  // next arrival from the same peer
  std::vector<Access> accesses_;
  std::vector<std::vector<std::size_t>> places_;
  std::vector<std::uint32_t> seen_;
  std::vector<std::uint32_t> pure_;
  std::uint32_t stamp_ = 0;
  std::uint64_t horizon_ = 0;
  std::vector<std::pair<Node, Stage>> work_;
  std::size_t head_ = 0;
  std::vector<Node> pure_list_;
  // Moves not yet found to come after the access under examination; `start`: their start, not only their elements.
  struct Wanted {
    std::uint32_t stamp = 0;
    bool start = false;
  };
  std::vector<Wanted> wanted_;
  std::size_t wanted_count_ = 0;
  // Exits: the ranks at which some move certainly completes after the access, as stamps of the last walk.
  std::vector<std::uint32_t> reached_;
  Node reached_from_ = kNowhere;
  bool reached_by_write_ = false;
};

}  // namespace

std::optional<Finding> find_race(const Lowered& lowered, const Run& run, std::uint64_t* pairs) {
  return RaceFinder(lowered, run).find(pairs);
}

std::optional<Finding> find_early_exit(const Lowered& lowered, const Run& run) {
  return RaceFinder(lowered, run).find_early_exit();
}

}  // namespace unisono::reference
