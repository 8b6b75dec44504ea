// Which algorithm serves a call when the user names none.
//
// The thresholds follow the costs in the table: few rounds while latency dominates, few bytes per link
// afterwards, and pipelines for large vectors on few ranks. Direct algorithms come first: they admit
// direct calls only, and are there to serve them. These are defaults; rules made for a machine, an engine
// or a network come before them (tuning.hpp).
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/by_position.hpp"
#include "collectives/table.hpp"
#include "collectives/tuning.hpp"

namespace unisono {

namespace {

constexpr std::uint64_t kKiB = 1024;

constexpr std::uint16_t kNoPosition = 0xffff;

constexpr Rule use(Collective collective, const char* name, std::uint64_t max_bytes = kAnyBytes,
                   std::uint32_t max_ranks = kAnyRanks, Which groups = Which::kAll) {
  const int position = collectives::position(collective, name);
  Rule rule;
  rule.max_bytes = max_bytes;
  rule.max_ranks = max_ranks;
  rule.groups = groups;
  rule.position = position < 0 ? kNoPosition : static_cast<std::uint16_t>(position);
  return rule;
}

/// For communicators whose groups are hosts. Between these a message takes ten times as long as within them, or more,
/// so there shall be few, and no byte shall go to the same host twice.
constexpr Rule between_hosts(Collective collective, const char* name, std::uint64_t max_bytes = kAnyBytes) {
  Rule rule = use(collective, name, max_bytes, kAnyRanks, Which::kWith);
  rule.hosts = Which::kWith;
  return rule;
}

/// For communicators with one rank on each host.
constexpr Rule one_on_each(Collective collective, const char* name, std::uint64_t max_bytes, std::uint32_t min_ranks,
                           std::uint32_t max_ranks) {
  Rule rule = use(collective, name, max_bytes, max_ranks, Which::kWithout);
  rule.hosts = Which::kWith;
  rule.min_ranks = min_ranks;
  return rule;
}

/// For ranks of one host that has fewer cores than ranks. A step of a ring waits for the neighbour's, and so for the
/// system to give the neighbour a core; where few ranks combine and the others wait for long, they are in no one's way.
constexpr Rule crowded(Collective collective, const char* name, std::uint64_t max_bytes, std::uint32_t max_ranks) {
  Rule rule = use(collective, name, max_bytes, max_ranks);
  rule.crowded = Which::kWith;
  rule.hosts = Which::kWithout;
  return rule;
}

/// For ranks of one host that has a core for each.
constexpr Rule roomy(Collective collective, const char* name, std::uint64_t max_bytes, std::uint32_t max_ranks) {
  Rule rule = crowded(collective, name, max_bytes, max_ranks);
  rule.crowded = Which::kWithout;
  return rule;
}

// clang-format off
constexpr Rule kRules[] = {
    between_hosts(Collective::kBcast, "two_level"),
    use(Collective::kBcast, "linear", 2 * kKiB, 4),
    use(Collective::kBcast, "binomial", 2 * kKiB),
    use(Collective::kBcast, "direct"),
    use(Collective::kBcast, "linear", 16 * kKiB, 4),
    use(Collective::kBcast, "binomial", 16 * kKiB),
    roomy(Collective::kBcast, "chain", kAnyBytes, 64),
    use(Collective::kBcast, "binomial", 64 * kKiB),
    use(Collective::kBcast, "chain", kAnyBytes, 64),
    use(Collective::kBcast, "scatter_allgather"),

    between_hosts(Collective::kReduce, "two_level"),
    use(Collective::kReduce, "linear", 2 * kKiB, 4),
    use(Collective::kReduce, "binomial", 2 * kKiB),
    use(Collective::kReduce, "direct"),
    use(Collective::kReduce, "linear", 16 * kKiB, 4),
    use(Collective::kReduce, "binomial", 64 * kKiB),
    use(Collective::kReduce, "chain", kAnyBytes, 64),
    use(Collective::kReduce, "binomial"),

    between_hosts(Collective::kAllreduce, "two_level", 512 * kKiB),
    between_hosts(Collective::kAllreduce, "multi_leader"),
    between_hosts(Collective::kAllreduce, "two_level"),
    one_on_each(Collective::kAllreduce, "recursive_doubling", kAnyBytes, 2, 2),
    one_on_each(Collective::kAllreduce, "recursive_doubling", 16 * kKiB, 3, kAnyRanks),
    one_on_each(Collective::kAllreduce, "rabenseifner", kAnyBytes, 4, 4),
    use(Collective::kAllreduce, "two_level", 64 * kKiB, kAnyRanks, Which::kWith),
    use(Collective::kAllreduce, "recursive_doubling", 2 * kKiB, 2),
    use(Collective::kAllreduce, "flat", 512, 8),
    use(Collective::kAllreduce, "recursive_doubling", 2 * kKiB),
    use(Collective::kAllreduce, "direct"),
    use(Collective::kAllreduce, "recursive_doubling", 256 * kKiB, 2),
    use(Collective::kAllreduce, "reduce_bcast", kAnyBytes, 2),
    use(Collective::kAllreduce, "recursive_doubling", 16 * kKiB),
    use(Collective::kAllreduce, "rabenseifner", 256 * kKiB),
    crowded(Collective::kAllreduce, "ring", 1024 * kKiB, 16),
    crowded(Collective::kAllreduce, "reduce_bcast", kAnyBytes, 16),
    use(Collective::kAllreduce, "ring", kAnyBytes, 64),
    use(Collective::kAllreduce, "rabenseifner"),

    between_hosts(Collective::kReduceScatter, "two_level", 4 * kKiB),
    use(Collective::kReduceScatter, "recursive_halving", 2 * kKiB),
    use(Collective::kReduceScatter, "direct"),
    use(Collective::kReduceScatter, "ring"),

    between_hosts(Collective::kAllgather, "two_level"),
    use(Collective::kAllgather, "flat", 2 * kKiB, 8),
    use(Collective::kAllgather, "recursive_doubling", 2 * kKiB),
    use(Collective::kAllgather, "bruck", 2 * kKiB),
    use(Collective::kAllgather, "direct"),
    use(Collective::kAllgather, "flat", 4 * kKiB, 8),
    use(Collective::kAllgather, "ring"),

    between_hosts(Collective::kGather, "two_level", 64 * kKiB),
    use(Collective::kGather, "linear", 2 * kKiB, 4),
    use(Collective::kGather, "binomial", 2 * kKiB),
    use(Collective::kGather, "direct"),
    use(Collective::kGather, "linear", kAnyBytes, 4),
    use(Collective::kGather, "binomial", 4 * kKiB),
    use(Collective::kGather, "linear"),

    between_hosts(Collective::kScatter, "two_level", 64 * kKiB),
    use(Collective::kScatter, "linear", 2 * kKiB, 4),
    use(Collective::kScatter, "binomial", 2 * kKiB),
    use(Collective::kScatter, "direct"),
    use(Collective::kScatter, "linear", kAnyBytes, 4),
    use(Collective::kScatter, "binomial", 4 * kKiB),
    use(Collective::kScatter, "linear"),

    use(Collective::kGatherv, "linear", kAnyBytes, 8),
    use(Collective::kGatherv, "binomial", 64 * kKiB),
    use(Collective::kGatherv, "linear"),

    use(Collective::kScatterv, "linear", kAnyBytes, 8),
    use(Collective::kScatterv, "binomial", 64 * kKiB),
    use(Collective::kScatterv, "linear"),

    between_hosts(Collective::kAllgatherv, "two_level", 64 * kKiB),
    use(Collective::kAllgatherv, "ring"),

    between_hosts(Collective::kAlltoall, "two_level", 256),
    use(Collective::kAlltoall, "scattered", 2 * kKiB, 8),
    use(Collective::kAlltoall, "bruck", 256),
    use(Collective::kAlltoall, "scattered", 2 * kKiB),
    use(Collective::kAlltoall, "direct"),
    use(Collective::kAlltoall, "scattered", 32 * kKiB, 8),
    use(Collective::kAlltoall, "scattered", 32 * kKiB),
    use(Collective::kAlltoall, "pairwise"),

    use(Collective::kAlltoallv, "scattered"),
    use(Collective::kAlltoallv, "pairwise"),

    between_hosts(Collective::kBarrier, "two_level"),
    use(Collective::kBarrier, "flat", kAnyBytes, 8),
    use(Collective::kBarrier, "dissemination"),

    between_hosts(Collective::kScan, "two_level", 64 * kKiB),
    use(Collective::kScan, "recursive_doubling", 64 * kKiB),
    use(Collective::kScan, "linear"),

    between_hosts(Collective::kExscan, "two_level", 64 * kKiB),
    use(Collective::kExscan, "recursive_doubling", 64 * kKiB),
    use(Collective::kExscan, "linear"),

    use(Collective::kReduceScatterv, "pairwise", 64 * kKiB),
    use(Collective::kReduceScatterv, "ring"),
    use(Collective::kReduceScatterv, "linear"),
};
// clang-format on

constexpr Rule kStableRules[] = {
    // In the tree's order, whatever the length.
    use(Collective::kReduce, "switch"),
    use(Collective::kAllreduce, "switch"),
    use(Collective::kReduceScatter, "switch"),
    use(Collective::kReduce, "binomial"),
    use(Collective::kAllreduce, "recursive_doubling"),
    use(Collective::kReduceScatter, "recursive_halving"),
    use(Collective::kScan, "recursive_doubling"),
    use(Collective::kExscan, "recursive_doubling"),
};

constexpr Rule kStreamRules[] = {
    use(Collective::kBcast, "chain"),    use(Collective::kReduce, "chain"),    use(Collective::kAllreduce, "chain"),
    use(Collective::kScan, "linear"),    use(Collective::kExscan, "linear"),   use(Collective::kGather, "linear"),
    use(Collective::kScatter, "linear"), use(Collective::kAllgather, "chain"),
};

constexpr bool all_rules_name_an_algorithm() {
  for (const Rule& rule : kRules) {
    if (rule.position == kNoPosition) return false;
  }
  for (const Rule& rule : kStableRules) {
    if (rule.position == kNoPosition) return false;
  }
  for (const Rule& rule : kStreamRules) {
    if (rule.position == kNoPosition) return false;
  }
  return true;
}
static_assert(all_rules_name_an_algorithm());

constexpr std::size_t kRuleCount = sizeof kRules / sizeof kRules[0];

/// Which of the rules are for a collective. They stand together, so that others need not be looked at.
struct Range {
  std::uint8_t begin = 0;
  std::uint8_t count = 0;
};
constexpr auto kRanges = [] {
  std::array<Range, 32> ranges{};
  for (std::size_t i = kRuleCount; i-- > 0;) {
    Range& range = ranges[static_cast<std::size_t>(collectives::kTable[kRules[i].position].collective)];
    range.begin = static_cast<std::uint8_t>(i);
    ++range.count;
  }
  return ranges;
}();

constexpr bool rules_of_a_collective_stand_together() {
  for (std::size_t i = 0; i < kRuleCount; ++i) {
    const Range& range = kRanges[static_cast<std::size_t>(collectives::kTable[kRules[i].position].collective)];
    if (i < range.begin || i >= std::size_t{range.begin} + range.count) return false;
  }
  return true;
}
static_assert(rules_of_a_collective_stand_together());

/// The rules of this library for a collective.
std::span<const Rule> own_rules(Collective collective) {
  const auto number = static_cast<std::size_t>(collective);
  if (number >= kRanges.size()) return {};
  return std::span<const Rule>(kRules).subspan(kRanges[number].begin, kRanges[number].count);
}

bool admits(const Algorithm& algorithm, const Call& call) {
  if (needs_order(call.func) && !build::keeps_order(algorithm, call)) return false;
  return algorithm.admits == nullptr || algorithm.admits(call);
}

/// Whether the call meets the rule, as far as its algorithm does not matter.
bool is_met(const Rule& rule, const Call& call, const Tuning& tuning) {
  const std::uint64_t bytes = call.count * element_bytes(call);
  const bool groups = (call.group_size > 1 && call.group_size < call.size) || call.groups != nullptr;
  return bytes >= rule.min_bytes && bytes <= rule.max_bytes && call.size >= rule.min_ranks &&
         call.size <= rule.max_ranks && meets(rule.groups, groups) && meets(rule.direct, call.direct) &&
         meets(rule.crowded, tuning.crowded) && meets(rule.hosts, tuning.hosts) && (rule.radix == 0 || tuning.radices);
}

/// The first of `rules` that the call meets and whose algorithm admits it, with any radix. `carried`: switches would.
const Rule* first_met(std::span<const Rule> rules, const Call& call, const Tuning& tuning, bool carried) {
  for (const Rule& rule : rules) {
    const Algorithm& algorithm = collectives::kTable[rule.position];
    if (algorithm.collective == call.collective && (!carried || rule.switches || algorithm.switched) &&
        is_met(rule, call, tuning) && admits(algorithm, call)) {
      return &rule;
    }
  }
  return nullptr;
}

/// The position of the algorithm of the switches that serve the call's communicator; -1 if there are none, or it does
/// not admit the call.
int of_switches(const Call& call) {
  if (call.tree == nullptr) return -1;
  for (std::size_t i = 0; i < collectives::kTable.size(); ++i) {
    const Algorithm& algorithm = collectives::kTable[i];
    if (algorithm.switched && algorithm.collective == call.collective && admits(algorithm, call)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace

Choice choose(const Call& call, const Tuning& tuning) {
  const int carried = of_switches(call);
  const Rule* rule = first_met(tuning.rules, call, tuning, carried >= 0);
  if (rule == nullptr && carried >= 0) return {carried, nullptr, 0};
  if (rule == nullptr) rule = first_met(own_rules(call.collective), call, tuning, false);
  if (rule != nullptr) return {rule->position, rule, rule->radix};
  for (std::size_t i = 0; i < collectives::kTable.size(); ++i) {
    if (collectives::kTable[i].collective == call.collective && admits(collectives::kTable[i], call)) {
      return {static_cast<int>(i), nullptr, 0};
    }
  }
  return {};
}

int choose_algorithm(const Call& call, const Tuning& tuning) { return choose(call, tuning).position; }

int choose_algorithm(const Call& call) { return choose(call, {}).position; }

bool left_to_switches(const Call& call, const Tuning& tuning) {
  bool named = false;
  for (const Rule& rule : tuning.rules) {
    const Algorithm& algorithm = collectives::kTable[rule.position];
    named = named || (algorithm.switched && algorithm.collective == call.collective);
  }
  if (!named) return true;
  for (const Rule& rule : tuning.rules) {
    const Algorithm& algorithm = collectives::kTable[rule.position];
    if (algorithm.collective != call.collective || !is_met(rule, call, tuning)) continue;
    if (algorithm.switched) return true;
    if (rule.switches && admits(algorithm, call)) return false;
  }
  return true;
}

ByteRange same_choice(const Call& call, const Tuning& tuning) {
  const std::uint64_t bytes = call.count * element_bytes(call);
  ByteRange range;
  for (const std::span<const Rule> rules : {tuning.rules, own_rules(call.collective)}) {
    for (const Rule& rule : rules) {
      if (collectives::kTable[rule.position].collective != call.collective) continue;
      // Where a rule begins to hold, and where it has ceased to.
      if (rule.min_bytes <= bytes) {
        range.least = rule.min_bytes > range.least ? rule.min_bytes : range.least;
      } else {
        range.most = rule.min_bytes - 1 < range.most ? rule.min_bytes - 1 : range.most;
      }
      if (rule.max_bytes >= bytes) {
        range.most = rule.max_bytes < range.most ? rule.max_bytes : range.most;
      } else {
        range.least = rule.max_bytes + 1 > range.least ? rule.max_bytes + 1 : range.least;
      }
    }
  }
  return range;
}

std::span<const Rule> default_rules() { return kRules; }

std::span<const Rule> stable_rules() { return kStableRules; }

std::span<const Rule> stream_rules() { return kStreamRules; }

}  // namespace unisono
