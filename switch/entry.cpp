#include "switch/entry.hpp"

#include <string>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::slots {

namespace {

Action down_to(const Entry& entry, std::uint32_t position) {
  Action action{.kind = Action::Kind::kPass};
  action.only = port_of(entry, position);
  if (action.only == kNoPort) action.kind = Action::Kind::kNothing;
  return action;
}

/// From where `source` is to where `target` is, if this switch is on that way.
Action between(const Entry& entry, std::uint32_t source, std::uint32_t target, bool from_above) {
  const std::uint32_t from = port_of(entry, source);
  const std::uint32_t to = port_of(entry, target);
  if (source == target || from_above != (from == kNoPort)) return {};
  // Behind one port there may be several members, but behind a switch there is a switch for that.
  if (from == to && (from == kNoPort || entry.ports[from].is_switch())) return {};
  Action action{.kind = Action::Kind::kPass};
  action.up = to == kNoPort;
  action.only = to;
  return action;
}

/// From where `source` is to all other sides.
Action spread(const Entry& entry, std::uint32_t source, bool from_above) {
  const std::uint32_t from = port_of(entry, source);
  if (from_above != (from == kNoPort)) return {};
  Action action{.kind = Action::Kind::kPass};
  action.up = !from_above && entry.head.up != kNoPort;
  const bool alone = !from_above && entry.head.shares == 1;
  action.below = !alone;
  if (!from_above && action.below) action.but = from;
  return action.up || action.below ? action : Action{};
}

}  // namespace

Positions positions_below(const CallTree& tree, std::uint32_t node) {
  if (node < tree.members) return {tree.position[node], 1};
  const std::uint32_t s = node - tree.members;
  Positions all{tree.members, 0};
  for (std::uint32_t i = tree.first[s]; i < tree.first[s + 1]; ++i) {
    const Positions below = positions_below(tree, tree.children[i]);
    if (below.first < all.first) all.first = below.first;
    all.count += below.count;
  }
  return all;
}

std::uint32_t port_of(const Entry& entry, std::uint32_t position) {
  for (std::uint32_t i = 0; i < entry.ports.size(); ++i) {
    // Unsigned: positions before the first are far away, too.
    if (position - entry.ports[i].first < entry.ports[i].count()) return i;
  }
  return kNoPort;
}

Entry make_entry(const CallTree& tree, std::uint32_t number, std::uint32_t communicator, std::uint16_t epoch,
                 std::uint16_t up) {
  if (number >= tree.switches) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("there is no switch {}; the tree has {}", number, tree.switches));
  }
  const std::uint32_t node = tree.members + number;
  Entry entry;
  const Positions all = positions_below(tree, node);
  entry.head.communicator = communicator;
  entry.head.epoch = epoch;
  entry.head.members = tree.members;
  entry.head.first = all.first;
  entry.head.count = all.count;
  entry.head.up = all.count == tree.members ? static_cast<std::uint16_t>(kNoPort) : up;
  entry.head.shares = tree.first[number + 1] - tree.first[number];
  std::uint32_t last = 0;
  for (std::uint32_t i = tree.first[number]; i < tree.first[number + 1]; ++i) {
    const std::uint32_t child = tree.children[i];
    const Positions below = positions_below(tree, child);
    const std::uint32_t port = tree.port[child];
    const bool is_switch = child >= tree.members;
    if (entry.ports.empty()) {
      entry.head.first_port = static_cast<std::uint16_t>(port);
    } else if (port == last && !is_switch && !entry.ports.back().is_switch()) {
      ++entry.ports.back().word;
      continue;
    } else if (port != last + 1) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("switch {}: behind port {} comes port {}; ports count up, and members behind one port "
                            "follow one another",
                            number, last, port));
    }
    last = port;
    entry.ports.push_back({below.first, below.count | (is_switch ? 1U << 31U : 0U)});
  }
  entry.head.ports = static_cast<std::uint16_t>(entry.ports.size());
  const bool leads_up = all.count != tree.members;
  if (last >= kNoPort || (leads_up && (up >= kNoPort || (up >= entry.head.first_port && up <= last)))) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("switch {}: ports {} to {} lead down and {} up; allowed are different ones below {}", number,
                          last + 1 - entry.ports.size(), last, up, kNoPort));
  }
  return entry;
}

Action action_of(const Entry& entry, const Arriving& arriving) {
  const EntryHead& head = entry.head;
  if (head.count == head.members && head.shares == 1) return {};  // nobody to join
  const bool is_top = head.up == kNoPort;
  if (arriving.from_above && is_top) return {};
  switch (arriving.opcode) {
    case Collective::kBcast:
      return spread(entry, arriving.root, arriving.from_above);
    case Collective::kAllgather:
      return spread(entry, arriving.block, arriving.from_above);
    case Collective::kScatter:
      return between(entry, arriving.root, arriving.block, arriving.from_above);
    case Collective::kGather:
      return between(entry, arriving.block, arriving.root, arriving.from_above);
    case Collective::kBarrier:
    case Collective::kAllreduce:
      if (arriving.from_above) return {.kind = Action::Kind::kPass, .below = true};
      return {.kind = Action::Kind::kFold, .up = !is_top, .below = is_top};
    case Collective::kReduce:
    case Collective::kReduceScatter: {
      const std::uint32_t target = arriving.opcode == Collective::kReduceScatter ? arriving.block : arriving.root;
      if (arriving.from_above) return down_to(entry, target);
      Action action = is_top ? down_to(entry, target) : Action{.kind = Action::Kind::kPass, .up = true};
      if (action.kind == Action::Kind::kPass) action.kind = Action::Kind::kFold;
      return action;
    }
    default:
      return {};
  }
}

}  // namespace unisono::slots
