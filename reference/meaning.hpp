// What programs that no algorithm made are meant to do, so that the checker can compare their results with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/job.hpp"

namespace unisono::reference {

/// A collective, as somebody names it who has written its programs.
struct Meaning {
  Collective collective = Collective::kNop;
  Func func = Func::kNone;             ///< of reductions; kNone stands for sum
  std::optional<std::uint32_t> root;   ///< of collectives with a root; 0 if none is given
  bool in_place = false;               ///< the in-place form; broadcast has no other
  std::optional<std::uint64_t> count;  ///< elements, as the call counts them; otherwise what the programs reach
  /// Elements of each rank's block, packed: of v-collectives. For alltoallv a row for each rank, with what it sends to
  /// each.
  std::vector<std::uint64_t> counts;
};

/// `job`, whose programs are given, meant as the collective: src and dst have the sizes that its call binds on each
/// rank, and `call` is that of rank 0. Throws Error if there is no such call: no collective of several ranks, an op,
/// root or counts that it does not take.
Job meant_as(Job job, const Meaning& meaning);

/// What a job is compared with, in words: "allreduce, count 5 fp64 sum". Empty if it promises nothing.
std::string describe_promise(const Job& job);

}  // namespace unisono::reference
