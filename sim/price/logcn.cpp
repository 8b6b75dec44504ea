#include "sim/price/logcn.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/facts.hpp"
#include "sim/model/peers.hpp"
#include "sim/network/frame.hpp"
#include "sim/network/unit_tree.hpp"

namespace unisono::sim {
namespace {

/// A way along the tree.
struct Way {
  double latency = 0;
  std::uint32_t switches = 0;
  double further = 0;  ///< messages that these fold beyond two each; one that only passes is one less than two
};

class Tree {
 public:
  Tree(const Ways& ways, const ModelledCall& call, std::uint64_t frame) : ways_(ways), call_(call), frame_(frame) {
    std::vector<std::uint32_t> nodes(call.members);
    std::iota(nodes.begin(), nodes.end(), 0U);
    tree_ = lay_tree(ways.topology(), nodes);
    children_.resize(tree_.parent.size());
    for (const std::uint32_t unit : tree_.hangs) ++children_[unit];
    for (const std::uint32_t unit : tree_.parent) {
      if (unit != kNoUnit) ++children_[unit];
    }
  }

  /// From a member to another one, by the top or by the first switch that both are below.
  Way between(std::uint32_t from, std::uint32_t to, bool by_top) const {
    std::vector<std::uint32_t> up = above(from), down = above(to);
    while (!by_top && up.size() > 2 && down.size() > 2 && up[up.size() - 2] == down[down.size() - 2]) {
      up.pop_back();
      down.pop_back();
    }
    // Each is the rank and the switches above it, up to the one that they have in common.
    Way way;
    for (std::size_t i = 0; i + 1 < up.size(); ++i) way.latency += hop(up[i], up[i + 1]);
    for (std::size_t i = 0; i + 1 < down.size(); ++i) way.latency += hop(down[i + 1], down[i]);
    way.switches = static_cast<std::uint32_t>(up.size() + down.size() - 3);
    way.further = -static_cast<double>(way.switches);
    for (std::size_t i = 1; by_top && i < up.size(); ++i) way.further += children_[up[i] - call_.members] - 1;
    return way;
  }

  /// The switch that a member hangs at.
  std::uint32_t home(std::uint32_t rank) const { return tree_.hangs[rank]; }

  /// From the first member to the last one, by the switches of all in the order of ranks.
  Way in_order() const {
    Way way{hop(0, call_.members + tree_.hangs[0]), 1, -1};
    std::uint32_t last = 0;
    for (std::uint32_t rank = 1; rank < call_.members; ++rank) {
      if (tree_.hangs[rank] == tree_.hangs[last]) continue;
      const Way next = between(last, rank, false);
      way.latency +=
          next.latency - hop(last, call_.members + tree_.hangs[last]) - hop(call_.members + tree_.hangs[rank], rank);
      way.switches += next.switches - 1;
      way.further = -static_cast<double>(way.switches);
      last = rank;
    }
    way.latency += hop(call_.members + tree_.hangs[last], call_.members - 1);
    return way;
  }

 private:
  std::vector<std::uint32_t> above(std::uint32_t rank) const {
    std::vector<std::uint32_t> found{rank};
    for (std::uint32_t unit = tree_.hangs[rank]; unit != kNoUnit; unit = tree_.parent[unit]) {
      found.push_back(call_.members + unit);
    }
    return found;
  }
  double hop(std::uint32_t from, std::uint32_t to) const {
    return ways_.frame(call_.addresses[from], call_.addresses[to], frame_);
  }

  const Ways& ways_;
  const ModelledCall& call_;
  std::uint64_t frame_;
  UnitTree tree_;
  std::vector<double> children_;  // of each unit
};

/// Who has the most messages, in or out, and what they take one after the other behind the first one.
double serial(const Ways& ways, const ModelledCall& call, std::uint64_t message, const Parameters& parameters,
              const EndpointCosts& engine) {
  double most = 0;
  for (std::uint32_t rank = 0; rank < call.programs.size(); ++rank) {
    const Program& program = call.programs[rank];
    const bool member = rank < call.members;
    double sent = 0, taken = 0;
    std::map<std::uint32_t, double> granted;  // to each
    for (const Move& move : program.moves) {
      taken += takes(move) ? 1 : 0;
      if (!sends(move)) continue;
      ++sent;
      if (message <= engine.eager_limit) continue;
      for (const std::uint32_t peer : ranks_of(program, move.remote.mode, move.remote.peer)) ++granted[peer];
    }
    most = std::max({most, (sent - 1) * (member ? parameters.gap : parameters.gap_switch),
                     member ? (taken - 1) * parameters.gap_receive_row : 0});
    for (const auto& [peer, messages] : granted) {
      const std::uint32_t from = call.addresses[rank], to = call.addresses[peer];
      const double back = ways.frame(to, from, kWordBytes);
      const std::uint64_t longest = member && peer < call.members ? engine.segment_of(message) : engine.segment;
      const std::uint64_t segment = std::min(message, longest);
      const double more = static_cast<double>(message - segment) / static_cast<double>(longest) *
                          ways.busy(from, to, kWordBytes + longest);
      // A switch is asked for each when the one before has left; a member grants two at a time.
      const double each = peer >= call.members
                              ? (member ? parameters.gap_asked : 0) + ways.frame(from, to, kWordBytes) + back + more
                              : parameters.gap_granted + (ways.frame(from, to, kWordBytes + segment) + back + more) / 2;
      most = std::max(most, (messages - 1) * each);
    }
  }
  return most;
}

}  // namespace

LogcnTerms logcn(const Ways& ways, const Call& call, const ModelledCall& programs, const Parameters& parameters,
                 const EndpointCosts& engine) {
  const CollectiveFacts facts = facts_of(call.collective);
  const std::uint64_t message = call.count * element_bytes(call);
  const std::uint64_t segment = std::min(message, engine.segment);
  const Tree tree(ways, programs, kWordBytes + segment);

  const bool from_root = facts.rooted && !facts.reduces && call.collective != Collective::kGather;
  const bool to_root = facts.rooted && !from_root;
  const bool by_top = facts.reduces || !facts.data;
  LogcnTerms terms;
  // The first segment is a part of L already.
  const Busiest busiest = busiest_of(ways, programs, engine);
  const double first = ways.busy(ways.topology().uplink[programs.addresses[0]], kWordBytes + segment);
  const double serial_bytes = std::max(serial(ways, programs, message, parameters, engine), busiest.cycles - first);
  const auto length = static_cast<double>(segment);
  const double alpha = parameters.alpha.of(length);
  const auto computing = [&](const Way& way) { return way.switches * alpha + way.further * parameters.alpha_child; };

  // The blocks of a gather come, and those of a scatter leave, in the order of ranks: not all are behind the one, or
  // before the one, that has the longest way.
  const double blocks = std::max(1.0, static_cast<double>(call.size) - 2);
  Way longest;
  double most = 0;
  for (std::uint32_t from = 0; from < call.size; ++from) {
    if (from_root && from != call.root) continue;
    for (std::uint32_t to = 0; to < call.size; ++to) {
      if ((to_root && to != call.root) || (from == to && !by_top)) continue;
      const Way way = tree.between(from, to, by_top);
      double part = 1;
      if (facts.blocks && to_root) part = (call.size - 1 - from) / blocks;
      if (facts.blocks && from_root) part = (to - 1) / blocks;
      const double time = way.latency + computing(way) + part * serial_bytes;
      if (time <= most) continue;
      most = time;
      longest = way;
      terms.bytes = part * serial_bytes;
    }
  }
  // Blocks of an allgather pass each switch in the order of ranks, so those of one switch wait for those of the one
  // before it.
  if (facts.blocks && !facts.rooted && !facts.reduces) longest = tree.in_order();

  terms.switches = longest.switches;
  terms.o = parameters.call + parameters.send.of(length) + parameters.receive.of(length);
  terms.latency = longest.latency;
  terms.c = computing(longest);
  if (message > engine.eager_limit) {
    // The first link's switch is asked.
    const std::uint32_t home = programs.addresses[call.size + tree.home(call.root)];
    terms.grant = parameters.grant + ways.frame(call.root, home, kWordBytes) + ways.frame(home, call.root, kWordBytes);
  }
  return terms;
}

}  // namespace unisono::sim
