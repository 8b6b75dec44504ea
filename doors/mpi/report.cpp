#include "doors/mpi/report.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "doors/mpi/mpi.hpp"

namespace unisono::mpi {

namespace {

constexpr auto kFunctions = static_cast<std::size_t>(Function::kCount);
constexpr auto kReasons = static_cast<std::size_t>(Reason::kCount);
constexpr std::array<const char*, kFunctions> kNames{
    "MPI_Barrier",        "MPI_Bcast",     "MPI_Reduce",     "MPI_Allreduce", "MPI_Reduce_scatter_block",
    "MPI_Reduce_scatter", "MPI_Allgather", "MPI_Allgatherv", "MPI_Gather",    "MPI_Gatherv",
    "MPI_Scatter",        "MPI_Scatterv",  "MPI_Alltoall",   "MPI_Alltoallv", "MPI_Scan",
    "MPI_Exscan"};
constexpr std::array<const char*, kReasons> kReasonNames{"communicator", "operator", "datatype"};

/// Of one function, on this rank.
struct Sums {
  std::atomic<std::uint64_t> carried{0}, bytes{0}, nanoseconds{0};
  std::array<std::atomic<std::uint64_t>, kReasons> fell{};
};
std::array<Sums, kFunctions> sums;

constexpr std::size_t kFields = 3 + kReasons;

}  // namespace

const char* name_of(Function function) { return kNames.at(static_cast<std::size_t>(function)); }

bool reports() {
  static const bool wanted = [] {
    const char* const text = std::getenv("UNISONO_MPI_REPORT");
    return text != nullptr && std::strcmp(text, "0") != 0 && *text != '\0';
  }();
  return wanted;
}

std::uint64_t Entry::now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void Entry::note() const {
  Sums& own = sums.at(static_cast<std::size_t>(function_));
  if (carried_) {
    own.carried.fetch_add(1, std::memory_order_relaxed);
    own.bytes.fetch_add(bytes_, std::memory_order_relaxed);
    own.nanoseconds.fetch_add(now() - begun_, std::memory_order_relaxed);
  } else {
    own.fell.at(static_cast<std::size_t>(reason_)).fetch_add(1, std::memory_order_relaxed);
  }
}

void print_report() {
  int wanted = reports() ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (wanted == 0) return;
  std::array<std::uint64_t, kFunctions * kFields> own{};
  std::array<std::uint64_t, kFunctions * kFields> all{};
  for (std::size_t i = 0; i < kFunctions; ++i) {
    own.at(i * kFields) = sums.at(i).carried;
    own.at(i * kFields + 1) = sums.at(i).bytes;
    own.at(i * kFields + 2) = sums.at(i).nanoseconds;
    for (std::size_t r = 0; r < kReasons; ++r) own.at(i * kFields + 3 + r) = sums.at(i).fell.at(r);
  }
  PMPI_Reduce(own.data(), all.data(), static_cast<int>(own.size()), MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::fprintf(stderr,
               "\nCollectives of all ranks: carried by Unisono, and left to the MPI\n%-26s %10s %14s %12s  %s\n",
               "function", "carried", "bytes", "us a call", "left to the MPI, for their");
  std::uint64_t carried = 0;
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    const std::uint64_t* const of = &all.at(i * kFields);
    std::uint64_t fell = 0;
    for (std::size_t r = 0; r < kReasons; ++r) fell += of[3 + r];
    carried += of[0];
    calls += of[0] + fell;
    if (of[0] + fell == 0) continue;
    const double each = of[0] == 0 ? 0 : static_cast<double>(of[2]) / 1000 / static_cast<double>(of[0]);
    std::fprintf(stderr, "%-26s %10llu %14llu %12.1f ", kNames.at(i), static_cast<unsigned long long>(of[0]),
                 static_cast<unsigned long long>(of[1]), each);
    for (std::size_t r = 0; r < kReasons; ++r) {
      if (of[3 + r] != 0) {
        std::fprintf(stderr, " %s: %llu", kReasonNames.at(r), static_cast<unsigned long long>(of[3 + r]));
      }
    }
    std::fputc('\n', stderr);
  }
  if (calls != 0) {
    std::fprintf(stderr, "%.1f %% of %llu calls were carried.\n",
                 100 * static_cast<double>(carried) / static_cast<double>(calls),
                 static_cast<unsigned long long>(calls));
  }
}

}  // namespace unisono::mpi
