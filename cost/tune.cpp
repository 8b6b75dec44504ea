#include "cost/tune.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/facts.hpp"
#include "cost/predict.hpp"

namespace unisono::cost {
namespace {

constexpr std::uint64_t kLeast = 16;                       ///< bytes
constexpr std::uint64_t kMost = std::uint64_t{16} << 20U;  ///< bytes that a rank has, all blocks together
constexpr double kWorthwhile = 0.85;  ///< another choice than the built-in one must be so much better: models err
constexpr double kAlike = 0.95;       ///< the choice of the size below stays while it is so near to the best
constexpr std::uint32_t kClasses[] = {2, 4, 8, 16, 32, 64};  ///< ranks, up to

/// Of a v-collective nobody knows how its counts differ.
bool is_tuned(Collective collective) {
  const CollectiveFacts facts = facts_of(collective);
  return facts.kind == CallKind::kCollective && !facts.vectors;
}

Call call_of(Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
  Call call;
  call.collective = collective;
  call.dtype = Datatype::kNone;
  call.size = ranks;
  if (!facts_of(collective).data) return call;
  call.dtype = Datatype::kFp32;
  call.count = bytes / element_bytes(call);
  if (facts_of(collective).reduces) call.func = Func::kSum;
  return call;
}

/// A job that rules of a class of ranks are made for.
struct Shape {
  std::uint32_t ranks;
  std::uint32_t group_size;  ///< ranks of a host, if there are several and they have several; 0 otherwise
  Machine machine;

  Call call(Collective collective, std::uint64_t bytes) const {
    Call made = call_of(collective, ranks, bytes);
    made.group_size = group_size;
    return made;
  }
};

/// Predictions of one call by all algorithms, by position.
using Prices = std::map<int, double>;

Prices price(Call call, const Machine& machine) {
  Prices prices;
  for (std::size_t i = 0; i < algorithms().size(); ++i) {
    const Algorithm& algorithm = algorithms()[i];
    if (algorithm.collective != call.collective) continue;
    call.direct = algorithm.direct;
    if (algorithm.direct && !machine.host_of.empty()) continue;
    if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
    prices[static_cast<int>(i)] = predict(call, algorithm, machine).time.total;
  }
  return prices;
}

/// By position, an algorithm's time as a part of that of the usual choice, the worst of all shapes. Only those that
/// every shape admits.
Prices compare(const std::vector<Prices>& by_shape, const std::vector<int>& usual, bool direct) {
  Prices worst;
  for (const auto& [position, ignored] : by_shape.front()) {
    if (algorithms()[static_cast<std::size_t>(position)].direct && !direct) continue;
    double most = 0;
    for (std::size_t i = 0; i < by_shape.size(); ++i) {
      const auto here = by_shape[i].find(position);
      if (here == by_shape[i].end()) {
        most = -1;
        break;
      }
      most = std::max(most, here->second / by_shape[i].at(usual[i]));
    }
    if (most >= 0) worst[position] = most;
  }
  return worst;
}

constexpr int kUsual = -1;  ///< as the built-in rules have it

int best_of(const Prices& parts, const std::vector<int>& usual, int before) {
  int best = kUsual;
  double least = kWorthwhile;
  for (const auto& [position, part] : parts) {
    if (part < least) {
      best = position;
      least = part;
    }
  }
  // The same by its name, so that a rule may cover sizes at which the usual choice is another one.
  const bool alike = std::set<int>(usual.begin(), usual.end()).size() == 1;
  if (best == kUsual && alike) return usual.front();
  if (before < 0) return best;
  const auto stays = parts.find(before);
  return stays != parts.end() && stays->second * kAlike <= least ? before : best;
}

/// Rules for a collective in a class of ranks, with the conditions of `rule`. Where shapes have different usual
/// choices, and none is worth while in all, there is no rule for these sizes.
void add_rules(Collective collective, const std::vector<Shape>& shapes, const Tuning& tuning, Rule rule, bool direct,
               const std::map<std::uint64_t, std::vector<Prices>>& prices, std::vector<Rule>& rules) {
  std::vector<Rule> found;
  bool all_usual = true;
  bool gap = false;
  int before = kUsual;
  for (const auto& [bytes, by_shape] : prices) {
    std::vector<int> usual;
    for (const Shape& shape : shapes) {
      Call call = shape.call(collective, bytes);
      call.direct = direct;
      usual.push_back(choose_algorithm(call, tuning));
    }
    const int best = best_of(compare(by_shape, usual, direct), usual, before);
    all_usual = all_usual && (best == kUsual || std::set<int>(usual.begin(), usual.end()) == std::set<int>{best});
    if (best == before && best != kUsual) {
      found.back().max_bytes = bytes;
      continue;
    }
    // The change lies somewhere between two sizes that were priced.
    if (before != kUsual) found.back().max_bytes += found.back().max_bytes / 2;
    before = best;
    gap = gap || best == kUsual;  // where the built-in rules hold; what follows must leave it alone
    if (best == kUsual) continue;
    if (gap) rule.min_bytes = bytes - bytes / 4;
    rule.max_bytes = bytes;
    rule.position = static_cast<std::uint16_t>(best);
    found.push_back(rule);
  }
  if (all_usual || found.empty()) return;
  if (before != kUsual) found.back().max_bytes = kAnyBytes;
  rules.insert(rules.end(), found.begin(), found.end());
}

std::map<std::uint64_t, std::vector<Prices>> price_all(Collective collective, const std::vector<Shape>& shapes) {
  std::map<std::uint64_t, std::vector<Prices>> prices;  // by bytes, then by shape
  const std::uint64_t all = facts_of(collective).blocks ? kMost / shapes.front().ranks : kMost;
  const std::uint64_t most = collective == Collective::kBarrier ? kLeast : all;
  for (std::uint64_t bytes = kLeast; bytes <= most; bytes *= 2) {
    for (const Shape& shape : shapes) prices[bytes].push_back(price(shape.call(collective, bytes), shape.machine));
  }
  return prices;
}

/// `use(collective, fewest, most)` for all classes of ranks.
template <class Use>
void for_each_class(std::uint32_t most_ranks, const Use& use) {
  for (const Collective collective : kAllCollective) {
    if (!is_tuned(collective)) continue;
    std::uint32_t below = 1;
    for (const std::uint32_t upper : kClasses) {
      const std::uint32_t lower = below + 1;
      below = upper;
      if (lower > most_ranks) break;
      use(collective, lower, upper);
    }
  }
}

}  // namespace

Machine for_ranks(Machine machine, std::uint32_t ranks, bool crowded) {
  // As the lanes of a communicator are: they share a fixed amount of memory.
  constexpr std::uint64_t kAll = std::uint64_t{16} << 20U;
  constexpr std::uint32_t kMostOfSegment = 32 * 1024;
  std::uint32_t cells = 1024 * 1024;
  while (cells > 8 * 1024 && std::uint64_t{cells} * ranks * ranks > kAll) cells /= 2;
  machine.segment_bytes = std::min(cells / 4, kMostOfSegment);
  machine.lane_segments = cells / machine.segment_bytes;
  if (!crowded) machine.cores = 0;
  if (crowded && machine.cores == 0) machine.cores = 1;
  return machine;
}

Machine for_hosts(Machine machine, const Network& network, std::vector<std::uint32_t> host_of) {
  machine = for_ranks(machine, static_cast<std::uint32_t>(host_of.size()), false);
  machine.network = network;
  machine.host_of = std::move(host_of);
  return machine;
}

std::vector<Rule> tune(const Machine& machine, std::uint32_t most_ranks) {
  std::vector<Rule> rules;
  const std::uint32_t cores = std::max(machine.cores, 1U);
  for_each_class(most_ranks, [&](Collective collective, std::uint32_t lower, std::uint32_t upper) {
    for (const bool crowded : {false, true}) {
      // On this machine a job of more ranks than cores is crowded, and no other one is.
      if (crowded ? upper <= cores : lower > cores) continue;
      const std::uint32_t ranks = crowded ? upper : std::min(upper, cores);
      const std::vector<Shape> shapes{{ranks, 0, for_ranks(machine, ranks, crowded)}};
      const auto prices = price_all(collective, shapes);
      for (const bool direct : {false, true}) {
        Rule rule;
        rule.min_ranks = lower;
        rule.max_ranks = upper;
        rule.groups = Which::kWithout;
        rule.direct = direct ? Which::kWith : Which::kWithout;
        rule.hosts = Which::kWithout;  // what was measured is one machine
        rule.crowded = crowded ? Which::kWith : Which::kWithout;
        Tuning tuning;  // what would be chosen without the rules
        tuning.crowded = crowded;
        add_rules(collective, shapes, tuning, rule, direct, prices, rules);
      }
    }
  });
  return rules;
}

std::vector<Rule> tune_hosts(const Machine& machine, const Network& network, std::uint32_t most_ranks) {
  std::vector<Rule> rules;
  Tuning tuning;
  tuning.hosts = true;
  const auto shape = [&](std::uint32_t ranks, std::uint32_t of_each) {
    std::vector<std::uint32_t> host_of;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) host_of.push_back(rank / of_each);
    return Shape{ranks, of_each > 1 ? of_each : 0, for_hosts(machine, network, std::move(host_of))};
  };
  for_each_class(most_ranks, [&](Collective collective, std::uint32_t lower, std::uint32_t upper) {
    for (const bool groups : {false, true}) {
      // Few hosts with many ranks, and many with two: a rule is to be worth while for both.
      std::vector<Shape> shapes;
      if (!groups) shapes.push_back(shape(upper, 1));
      if (groups && upper >= 4) shapes.push_back(shape(upper, upper / 2));
      if (groups && upper >= 8) shapes.push_back(shape(upper, 2));
      if (shapes.empty()) continue;
      Rule rule;
      rule.min_ranks = lower;
      rule.max_ranks = upper;
      rule.groups = groups ? Which::kWith : Which::kWithout;
      rule.hosts = Which::kWith;
      rule.crowded = Which::kWithout;
      add_rules(collective, shapes, tuning, rule, false, price_all(collective, shapes), rules);
    }
  });
  return rules;
}

}  // namespace unisono::cost
