#include "cost/tune.hpp"

#include <algorithm>
#include <map>

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

/// Predictions of one call by all algorithms, by position.
std::map<int, double> price(Call call, const Machine& machine) {
  std::map<int, double> prices;
  for (std::size_t i = 0; i < algorithms().size(); ++i) {
    const Algorithm& algorithm = algorithms()[i];
    if (algorithm.collective != call.collective) continue;
    call.direct = algorithm.direct;
    if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
    prices[static_cast<int>(i)] = predict(call, algorithm, machine).time.total;
  }
  return prices;
}

int best_of(const std::map<int, double>& prices, const Call& call, int before) {
  const int usual = choose_algorithm(call);
  int best = usual;
  double least = prices.at(usual) * kWorthwhile;
  for (const auto& [position, price] : prices) {
    if (algorithms()[static_cast<std::size_t>(position)].direct && !call.direct) continue;
    if (price < least) {
      best = position;
      least = price;
    }
  }
  if (best == usual || before < 0) return best;
  const auto stays = prices.find(before);
  return stays != prices.end() && stays->second * kAlike <= least ? before : best;
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

std::vector<Rule> tune(const Machine& machine, std::uint32_t most_ranks) {
  std::vector<Rule> rules;
  const std::uint32_t cores = std::max(machine.cores, 1U);
  for (const Collective collective : kAllCollective) {
    if (!is_tuned(collective)) continue;
    std::uint32_t below = 1;
    for (const std::uint32_t upper : kClasses) {
      const std::uint32_t lower = below + 1;
      below = upper;
      if (lower > most_ranks) break;
      for (const bool crowded : {false, true}) {
        // On this machine a job of more ranks than cores is crowded, and no other one is.
        if (crowded ? upper <= cores : lower > cores) continue;
        const std::uint32_t ranks = crowded ? upper : std::min(upper, cores);
        const Machine own = for_ranks(machine, ranks, crowded);
        std::map<std::uint64_t, std::map<int, double>> prices;  // by bytes
        const std::uint64_t all = facts_of(collective).blocks ? kMost / ranks : kMost;
        const std::uint64_t most = collective == Collective::kBarrier ? kLeast : all;
        for (std::uint64_t bytes = kLeast; bytes <= most; bytes *= 2) {
          prices[bytes] = price(call_of(collective, ranks, bytes), own);
        }
        for (const bool direct : {false, true}) {
          std::vector<Rule> found;
          bool all_usual = true;
          for (const auto& [bytes, of_algorithms] : prices) {
            Call call = call_of(collective, ranks, bytes);
            call.direct = direct;
            const int best = best_of(of_algorithms, call, found.empty() ? -1 : found.back().position);
            all_usual = all_usual && best == choose_algorithm(call);
            if (!found.empty() && found.back().position == best) {
              found.back().max_bytes = bytes;
              continue;
            }
            // The change lies somewhere between two sizes that were priced.
            if (!found.empty()) found.back().max_bytes += found.back().max_bytes / 2;
            Rule rule;
            rule.max_bytes = bytes;
            rule.min_ranks = lower;
            rule.max_ranks = upper;
            rule.position = static_cast<std::uint16_t>(best);
            rule.groups = Which::kWithout;
            rule.direct = direct ? Which::kWith : Which::kWithout;
            rule.hosts = Which::kWithout;  // what was measured is one machine
            rule.crowded = crowded ? Which::kWith : Which::kWithout;
            found.push_back(rule);
          }
          if (all_usual || found.empty()) continue;
          found.back().max_bytes = kAnyBytes;
          rules.insert(rules.end(), found.begin(), found.end());
        }
      }
    }
  }
  return rules;
}

}  // namespace unisono::cost
