// The jobs of a call that hardware is compared with the interpreter on.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/algorithm.hpp"
#include "reference/job.hpp"

namespace unisono::rtl {

/// One job, or for a v-collective one for each pattern of counts. Empty if the algorithm does not admit the call.
inline std::vector<reference::Job> jobs_of(const Algorithm& algorithm, const Call& call, std::uint64_t seed) {
  std::vector<reference::Job> jobs;
  if (algorithm.admits != nullptr && !algorithm.admits(call)) return jobs;
  if (!reference::is_vector(call.collective)) {
    jobs.push_back(reference::make_job(algorithm, call));
    return jobs;
  }
  using reference::CountPattern;
  for (const CountPattern pattern :
       {CountPattern::kVaried, CountPattern::kOneRank, CountPattern::kUniform, CountPattern::kZero}) {
    jobs.push_back(reference::make_job(algorithm, call, reference::example_counts(call, pattern, seed)));
  }
  return jobs;
}

}  // namespace unisono::rtl
