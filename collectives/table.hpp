// The table of all algorithms, put together at compile time. Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/algorithm.hpp"
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

/// The arrays one after the other.
template <std::size_t... N>
constexpr auto concatenate(const std::array<Algorithm, N>&... arrays) {
  std::array<Algorithm, (N + ...)> table{};
  std::size_t end = 0;
  const auto append = [&](const auto& array) {
    for (const Algorithm& algorithm : array) table[end++] = algorithm;
  };
  (append(arrays), ...);
  return table;
}

/// All algorithms in order of Collective's values.
inline constexpr auto kTable =
    concatenate(kPrimitives, kBcast, kReduce, kAllreduce, kReduceScatter, kAllgather, kGather, kScatter, kGatherv,
                kScatterv, kAllgatherv, kAlltoall, kAlltoallv, kScan, kExscan, kBarrier, kReduceScatterv);

constexpr bool same_name(const char* a, const char* b) {
  for (; *a != '\0' && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

/// The position in kTable, or -1.
constexpr int position(Collective collective, const char* name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].collective == collective && same_name(kTable[i].name, name)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace unisono::collectives
