// What was carried, and what was not: UNISONO_MPI_REPORT=1 has rank 0 print it at the end.
#pragma once

#include <cstdint>

namespace unisono::mpi {

/// Functions that may be carried.
enum class Function : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kReduceScatterBlock,
  kReduceScatter,
  kAllgather,
  kAllgatherv,
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kAlltoall,
  kAlltoallv,
  kScan,
  kExscan,
  kCount,
};
const char* name_of(Function function);

/// Why a call is the MPI's own.
enum class Reason : std::uint8_t { kCommunicator, kOperator, kDatatype, kCount };

/// Whether somebody wants the report: only then calls are counted and timed.
bool reports();

/// Counts one call, from its construction to its end.
class Entry {
 public:
  explicit Entry(Function function) : function_(function), begun_(reports() ? now() : 0) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() {
    if (begun_ != 0) note();
  }
  void carried(std::uint64_t bytes) { carried_ = true, bytes_ = bytes; }
  void fell_through(Reason reason) { reason_ = reason; }

 private:
  static std::uint64_t now();
  void note() const;
  Function function_;
  Reason reason_ = Reason::kCommunicator;
  bool carried_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t begun_;
};

/// Prints the sums of all ranks on rank 0, on standard error. Collective; nothing if nobody wants it.
void print_report();

}  // namespace unisono::mpi
