// Which algorithm serves a call when the user names none.
//
// The thresholds follow the costs in the table: few rounds while latency dominates, few bytes per link
// afterwards, and pipelines for large vectors on few ranks. Direct algorithms come first: they admit
// direct calls only, and are there to serve them. These are defaults; a tuned table can be made for a
// machine, an engine or a network.
#include <cstdint>

#include "collectives/table.hpp"

namespace unisono {

namespace {

constexpr std::uint64_t kAnySize = ~std::uint64_t{0};
constexpr std::uint32_t kAnyRanks = ~std::uint32_t{0};
constexpr std::uint64_t kKiB = 1024;

/// The first rule that a call meets, and whose algorithm admits it, decides.
struct Rule {
  std::uint64_t max_bytes;  ///< of the call's count: a vector or a block, as the collective has it
  std::uint32_t max_ranks;
  bool two_levels;  ///< only where the communicator has groups
  int position;     ///< in the table
};

constexpr Rule use(Collective collective, const char* name, std::uint64_t max_bytes = kAnySize,
                   std::uint32_t max_ranks = kAnyRanks, bool two_levels = false) {
  return {max_bytes, max_ranks, two_levels, collectives::position(collective, name)};
}

// clang-format off
constexpr Rule kRules[] = {
    use(Collective::kBcast, "linear", 4 * kKiB, 4),
    use(Collective::kBcast, "binomial", 4 * kKiB),
    use(Collective::kBcast, "direct"),
    use(Collective::kBcast, "linear", 16 * kKiB, 4),
    use(Collective::kBcast, "binomial", 64 * kKiB),
    use(Collective::kBcast, "chain", kAnySize, 64),
    use(Collective::kBcast, "scatter_allgather"),

    use(Collective::kReduce, "linear", 4 * kKiB, 4),
    use(Collective::kReduce, "binomial", 4 * kKiB),
    use(Collective::kReduce, "direct"),
    use(Collective::kReduce, "linear", 16 * kKiB, 4),
    use(Collective::kReduce, "binomial", 64 * kKiB),
    use(Collective::kReduce, "chain", kAnySize, 64),
    use(Collective::kReduce, "binomial"),

    use(Collective::kAllreduce, "two_level", 64 * kKiB, kAnyRanks, true),
    use(Collective::kAllreduce, "recursive_doubling", 4 * kKiB, 2),
    use(Collective::kAllreduce, "flat", 512, 8),
    use(Collective::kAllreduce, "recursive_doubling", 4 * kKiB),
    use(Collective::kAllreduce, "direct"),
    use(Collective::kAllreduce, "recursive_doubling", 16 * kKiB),
    use(Collective::kAllreduce, "rabenseifner", 256 * kKiB),
    use(Collective::kAllreduce, "ring", kAnySize, 64),
    use(Collective::kAllreduce, "rabenseifner"),

    use(Collective::kReduceScatter, "recursive_halving", 4 * kKiB),
    use(Collective::kReduceScatter, "direct"),
    use(Collective::kReduceScatter, "ring"),

    use(Collective::kAllgather, "flat", 4 * kKiB, 8),
    use(Collective::kAllgather, "recursive_doubling", 4 * kKiB),
    use(Collective::kAllgather, "bruck", 4 * kKiB),
    use(Collective::kAllgather, "direct"),
    use(Collective::kAllgather, "ring"),

    use(Collective::kGather, "linear", 4 * kKiB, 4),
    use(Collective::kGather, "binomial", 4 * kKiB),
    use(Collective::kGather, "direct"),
    use(Collective::kGather, "linear", kAnySize, 4),
    use(Collective::kGather, "binomial", 4 * kKiB),
    use(Collective::kGather, "linear"),

    use(Collective::kScatter, "linear", 4 * kKiB, 4),
    use(Collective::kScatter, "binomial", 4 * kKiB),
    use(Collective::kScatter, "direct"),
    use(Collective::kScatter, "linear", kAnySize, 4),
    use(Collective::kScatter, "binomial", 4 * kKiB),
    use(Collective::kScatter, "linear"),

    use(Collective::kGatherv, "linear", kAnySize, 8),
    use(Collective::kGatherv, "binomial", 64 * kKiB),
    use(Collective::kGatherv, "linear"),

    use(Collective::kScatterv, "linear", kAnySize, 8),
    use(Collective::kScatterv, "binomial", 64 * kKiB),
    use(Collective::kScatterv, "linear"),

    use(Collective::kAllgatherv, "ring"),

    use(Collective::kAlltoall, "scattered", 4 * kKiB, 8),
    use(Collective::kAlltoall, "bruck", 256),
    use(Collective::kAlltoall, "scattered", 4 * kKiB),
    use(Collective::kAlltoall, "direct"),
    use(Collective::kAlltoall, "scattered", 32 * kKiB, 8),
    use(Collective::kAlltoall, "bruck", 256),
    use(Collective::kAlltoall, "scattered", 32 * kKiB),
    use(Collective::kAlltoall, "pairwise"),

    use(Collective::kAlltoallv, "scattered"),
    use(Collective::kAlltoallv, "pairwise"),

    use(Collective::kBarrier, "flat", kAnySize, 8),
    use(Collective::kBarrier, "dissemination"),

    use(Collective::kScan, "recursive_doubling", 64 * kKiB),
    use(Collective::kScan, "linear"),

    use(Collective::kExscan, "recursive_doubling", 64 * kKiB),
    use(Collective::kExscan, "linear"),
};
// clang-format on

constexpr bool all_rules_name_an_algorithm() {
  for (const Rule& rule : kRules) {
    if (rule.position < 0) return false;
  }
  return true;
}
static_assert(all_rules_name_an_algorithm());

bool admits(const Algorithm& algorithm, const Call& call) {
  if (needs_order(call.func) && !algorithm.ordered) return false;
  return algorithm.admits == nullptr || algorithm.admits(call);
}

}  // namespace

int choose_algorithm(const Call& call) {
  const std::uint64_t bytes = call.count * element_bytes(call);
  const bool two_levels = call.group_size > 1 && call.group_size < call.size;
  for (const Rule& rule : kRules) {
    const Algorithm& algorithm = collectives::kTable[static_cast<std::size_t>(rule.position)];
    if (algorithm.collective == call.collective && bytes <= rule.max_bytes && call.size <= rule.max_ranks &&
        (two_levels || !rule.two_levels) && admits(algorithm, call)) {
      return rule.position;
    }
  }
  for (std::size_t i = 0; i < collectives::kTable.size(); ++i) {
    if (collectives::kTable[i].collective == call.collective && admits(collectives::kTable[i], call)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace unisono
