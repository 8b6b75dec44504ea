// Generated from spec/ by `python -m spec.generator`. Do not edit.
// The algorithms of every collective, in order of Collective's values. Freestanding.
#pragma once

#include "collectives/allgather/allgather.hpp"
#include "collectives/allgatherv/allgatherv.hpp"
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/alltoall/alltoall.hpp"
#include "collectives/alltoallv/alltoallv.hpp"
#include "collectives/barrier/barrier.hpp"
#include "collectives/bcast/bcast.hpp"
#include "collectives/exscan/exscan.hpp"
#include "collectives/gather/gather.hpp"
#include "collectives/gatherv/gatherv.hpp"
#include "collectives/primitives/primitives.hpp"
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"
#include "collectives/scan/scan.hpp"
#include "collectives/scatter/scatter.hpp"
#include "collectives/scatterv/scatterv.hpp"

namespace unisono::collectives {

/// Calls `use` with the array of each folder, all at once.
constexpr auto with_all_algorithms(const auto& use) {
  return use(kPrimitives, kBcast, kReduce, kAllreduce, kReduceScatter, kAllgather, kGather, kScatter, kGatherv,
             kScatterv, kAllgatherv, kAlltoall, kAlltoallv, kScan, kExscan, kBarrier, kReduceScatterv);
}

}  // namespace unisono::collectives
