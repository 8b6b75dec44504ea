// The checker: right result, no deadlock, no race, for all ranks together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "reference/finding.hpp"
#include "reference/job.hpp"

namespace unisono::reference {

/// What to check. Empty lists stand for the defaults, which grow sparser with the number of ranks so that one algorithm
/// takes seconds.
struct CheckOptions {
  std::vector<std::uint32_t> ranks;   ///< default 1 to 17, 24, 32, 33, 64
  std::vector<std::uint64_t> counts;  ///< elements; default around 0, 1, P and 2P+1; for direct algorithms also
                                      ///< around whole cache lines
  std::vector<std::uint32_t> roots;   ///< those below P; default all up to 8 ranks, then 0, 1, P/2, P-1
  std::vector<std::uint8_t> radices;  ///< of algorithms that take one; default 0, 2, 3, 5 and 8
  const CallTree* tree = nullptr;     ///< no other tree than this, with and without virtual ranks
  /// Numbers of switches in the trees of algorithms of switches, children in all orders (trees.hpp). Default: 1 and 2,
  /// in two orders, of which one call in 16 is sampled, and two drawn trees where not all are looked at.
  std::vector<std::uint32_t> switches;
  std::vector<std::uint32_t> group_sizes;  ///< default 0, and with P from 4 upwards 2, 3 and about sqrt(P)
  bool group_lists = false;  ///< also groups of several sizes and of any ranks; always, where `group_sizes` is empty
  bool in_place = true;      ///< also in place, where the collective has it
  Datatype dtype = Datatype::kFp32;
  Func func = Func::kSum;
  std::uint32_t schedules = 24;  ///< random schedules for each call of up to `sampled_ranks` ranks
  std::uint32_t mixes = 4;       ///< drawn mixes of channels for each call of up to `sampled_ranks` ranks, beside the
                                 ///< fixed ones (mix.hpp)
  std::uint32_t sampled_ranks = 9;  ///< more ranks are proven but not sampled
  std::uint64_t seed = 1;
  /// Looks at each job that has been proven: a check by somebody who knows what engines make of programs.
  std::function<std::optional<Finding>(const Job&)> also;
};

/// What was found, and what the absence of findings means.
struct CheckReport {
  std::string subject;
  /// Nothing but the first counterexample is kept.
  std::optional<Finding> finding;
  std::string where;                 ///< the call that fails, in words
  std::optional<Call> failing_call;  ///< the call that fails
  std::optional<Job> failing_job;    ///< its programs, to be run again and drawn

  std::uint64_t calls = 0;    ///< calls proven: deadlock-free, race-free, right result, under both readings of segment
                              ///< dependencies
  std::uint64_t same = 0;     ///< calls left out because their programs equal those of a call already proven
  std::uint64_t refused = 0;  ///< calls the algorithm does not admit
  std::uint64_t moves = 0;    ///< moves of all programs proven
  std::uint64_t pairs = 0;    ///< pairs of accesses to the same byte shown to be ordered
  std::uint64_t schedules = 0;  ///< random schedules run in addition
  std::uint64_t mixed = 0;      ///< runs on mixes of lanes, credits and grants
  std::uint64_t seed = 0;
  std::uint64_t trees = 0;  ///< calls proven on switches: with one slot, too, and in the order of the stand-ins
  std::uint64_t any = 0;    ///< arrivals in any order, whose results are proven by their normal form
  std::vector<std::uint32_t> ranks;
  std::uint32_t most_ranks_sampled = 0;

  std::string compared;  ///< what results were compared with, in words; empty: with nothing

  bool ok() const { return !finding.has_value(); }
  /// Several lines, without an end to the last: what was proven for which calls, what was sampled, and the
  /// counterexample if there is one.
  std::string text() const;
};

/// Checks one job: the least permissive engine under both readings of segment dependencies (deadlock, matching,
/// bounds, uninitialised memory), the result against the collective's promise, races, then `schedules` random schedules
/// and mixes of channels, `mixes` of them drawn, whose results must be the same. A job that has no algorithm and is not
/// meant as a collective (meaning.hpp) promises nothing: its result is compared with nothing.
CheckReport check_job(const Job& job, std::uint32_t schedules = 24, std::uint64_t seed = 1, std::uint32_t mixes = 12);

/// Checks an algorithm over many calls; stops at the first counterexample. Never throws for a wrong algorithm.
CheckReport check_algorithm(const Algorithm& algorithm, const CheckOptions& options = {});

/// The calls that `check_algorithm` looks at, with counts of v-collectives.
struct CheckedCall {
  Call call;
  std::vector<VectorCounts> vectors;
  /// The ranks differ in what the root alone knows: see make_job.
  std::optional<bool> in_place_elsewhere{};
  bool sampled = true;  ///< also on random schedules and mixes, if there are not too many ranks
};
std::vector<CheckedCall> calls_to_check(const Algorithm& algorithm, std::uint32_t size, const CheckOptions& options);

}  // namespace unisono::reference
