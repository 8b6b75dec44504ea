// What was carried, and what was not: UNISONO_MPI_REPORT=1 has rank 0 print it at the end; UNISONO_MPI_REPORT=compare
// makes some calls both ways, and shows the two times.
#pragma once

#include <cstdint>
#include <string>

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
  kAlltoallw,
  kScan,
  kExscan,
  kNeighborAllgather,
  kNeighborAllgatherv,
  kNeighborAlltoall,
  kNeighborAlltoallv,
  kNeighborAlltoallw,
  kCount,
};
/// How they are called. Of persistent ones each start counts.
enum class Form : std::uint8_t { kBlocking, kNonblocking, kPersistent, kCount };
std::string name_of(Function function, Form form = Form::kBlocking);

/// Why a call is the MPI's own.
enum class Reason : std::uint8_t { kCommunicator, kOperator, kDatatype, kDevice, kCount };

/// Whether somebody wants the report: only then calls are counted and timed.
bool reports();
/// Whether calls are compared; the same on all ranks after `begin_report`.
bool compares();
/// Of calls that can be compared, one in so many is.
inline constexpr std::uint32_t kComparedOf = 8;

/// Counts one call, from its construction to its end.
class Entry {
 public:
  Entry(Function function, Form form) : function_(function), form_(form), begun_(reports() ? now() : 0) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() {
    if (begun_ != 0) note();
  }
  void carried(std::uint64_t bytes) { carried_ = true, bytes_ = bytes; }
  void fell_through(Reason reason) { reason_ = reason; }
  /// It has been made by the MPI, too, which took so many nanoseconds; the time of the carried call begins now.
  void compared(std::uint64_t nanoseconds) { below_ = nanoseconds, begun_ = now(); }
  void counts_not() { begun_ = 0; }
  static std::uint64_t now();

 private:
  void note() const;
  Function function_;
  Form form_;
  Reason reason_ = Reason::kCommunicator;
  bool carried_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t begun_;
  std::uint64_t below_ = 0;
};

/// Agrees on what is wanted. Collective over MPI_COMM_WORLD.
void begin_report();
/// Prints the sums of all ranks on rank 0, on standard error. Collective; nothing if nobody wants it.
void print_report();

}  // namespace unisono::mpi
