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
constexpr auto kForms = static_cast<std::size_t>(Form::kCount);
constexpr auto kRows = kFunctions * kForms;
constexpr auto kReasons = static_cast<std::size_t>(Reason::kCount);
constexpr std::array<const char*, kFunctions> kNames{"Barrier",
                                                     "Bcast",
                                                     "Reduce",
                                                     "Allreduce",
                                                     "Reduce_scatter_block",
                                                     "Reduce_scatter",
                                                     "Allgather",
                                                     "Allgatherv",
                                                     "Gather",
                                                     "Gatherv",
                                                     "Scatter",
                                                     "Scatterv",
                                                     "Alltoall",
                                                     "Alltoallv",
                                                     "Alltoallw",
                                                     "Scan",
                                                     "Exscan",
                                                     "Neighbor_allgather",
                                                     "Neighbor_allgatherv",
                                                     "Neighbor_alltoall",
                                                     "Neighbor_alltoallv",
                                                     "Neighbor_alltoallw"};
constexpr std::array<const char*, kReasons> kReasonNames{"communicator", "operator", "datatype", "device"};

/// Of one function in one form.
enum Field : std::size_t { kCarried, kBytes, kNanoseconds, kCompared, kOurs, kTheirs, kFell };
constexpr std::size_t kFields = kFell + kReasons;
/// Sums of this rank.
std::array<std::array<std::atomic<std::uint64_t>, kFields>, kRows> sums{};

enum class Wanted : std::uint8_t { kNothing, kReport, kComparison };
Wanted asked() {
  const char* const text = std::getenv("UNISONO_MPI_REPORT");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return Wanted::kNothing;
  return std::strcmp(text, "compare") == 0 ? Wanted::kComparison : Wanted::kReport;
}
std::atomic<Wanted> wanted{Wanted::kNothing};

double microseconds(std::uint64_t nanoseconds, std::uint64_t calls) {
  return calls == 0 ? 0 : static_cast<double>(nanoseconds) / 1000 / static_cast<double>(calls);
}

void print_row(const std::string& name, const std::uint64_t* row) {
  std::fprintf(stderr, "%-26s %10llu %14llu %12.1f ", name.c_str(), static_cast<unsigned long long>(row[kCarried]),
               static_cast<unsigned long long>(row[kBytes]), microseconds(row[kNanoseconds], row[kCarried]));
  for (std::size_t reason = 0; reason < kReasons; ++reason) {
    const std::uint64_t fell = row[kFell + reason];
    if (fell != 0) {
      std::fprintf(stderr, " %s: %llu", kReasonNames.at(reason), static_cast<unsigned long long>(fell));
    }
  }
  std::fputc('\n', stderr);
}

void print_comparison(const std::array<std::uint64_t, kRows * kFields>& all) {
  std::fprintf(stderr, "\nCalls that were made both ways\n%-26s %10s %12s %12s %8s\n", "function", "compared",
               "us Unisono", "us the MPI", "ratio");
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::uint64_t* const of = &all.at(row * kFields);
    if (of[kCompared] == 0) continue;
    const double ours = microseconds(of[kOurs], of[kCompared]);
    const double theirs = microseconds(of[kTheirs], of[kCompared]);
    std::fprintf(stderr, "%-26s %10llu %12.1f %12.1f %8.2f\n",
                 name_of(static_cast<Function>(row / kForms), static_cast<Form>(row % kForms)).c_str(),
                 static_cast<unsigned long long>(of[kCompared]), ours, theirs, theirs == 0 ? 0 : ours / theirs);
  }
}

}  // namespace

std::string name_of(Function function, Form form) {
  std::string name = kNames.at(static_cast<std::size_t>(function));
  if (form == Form::kNonblocking) {
    name.front() = static_cast<char>(name.front() - 'A' + 'a');
    name.insert(0, "I");
  }
  if (form == Form::kPersistent) name += "_init";
  return "MPI_" + name;
}

bool reports() { return wanted.load(std::memory_order_relaxed) != Wanted::kNothing; }
bool compares() { return wanted.load(std::memory_order_relaxed) == Wanted::kComparison; }

std::uint64_t Entry::now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void Entry::note() const {
  auto& own = sums.at(static_cast<std::size_t>(function_) * kForms + static_cast<std::size_t>(form_));
  const auto add = [&](std::size_t field, std::uint64_t value) {
    own.at(field).fetch_add(value, std::memory_order_relaxed);
  };
  if (!carried_) {
    add(kFell + static_cast<std::size_t>(reason_), 1);
    return;
  }
  const std::uint64_t took = now() - begun_;
  add(kCarried, 1);
  add(kBytes, bytes_);
  add(kNanoseconds, took);
  if (below_ == 0) return;
  add(kCompared, 1);
  add(kOurs, took);
  add(kTheirs, below_);
}

void begin_report() {
  int most = static_cast<int>(asked());
  PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  wanted = static_cast<Wanted>(most);
}

void print_report() {
  if (!reports()) return;
  std::array<std::uint64_t, kRows * kFields> own{};
  std::array<std::uint64_t, kRows * kFields> all{};
  for (std::size_t i = 0; i < own.size(); ++i) own.at(i) = sums.at(i / kFields).at(i % kFields);
  PMPI_Reduce(own.data(), all.data(), static_cast<int>(own.size()), MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::fprintf(stderr,
               "\nCollectives of all ranks: carried by Unisono, and left to the MPI\n%-26s %10s %14s %12s  %s\n",
               "function", "carried", "bytes", "us a call", "left to the MPI, for their");
  std::uint64_t carried = 0;
  std::uint64_t calls = 0;
  std::uint64_t compared = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::uint64_t* const of = &all.at(row * kFields);
    std::uint64_t fell = 0;
    for (std::size_t reason = 0; reason < kReasons; ++reason) fell += of[kFell + reason];
    carried += of[kCarried];
    calls += of[kCarried] + fell;
    compared += of[kCompared];
    if (of[kCarried] + fell == 0) continue;
    print_row(name_of(static_cast<Function>(row / kForms), static_cast<Form>(row % kForms)), of);
  }
  if (calls != 0) {
    std::fprintf(stderr, "%.1f %% of %llu calls were carried.\n",
                 100 * static_cast<double>(carried) / static_cast<double>(calls),
                 static_cast<unsigned long long>(calls));
  }
  if (compared != 0) print_comparison(all);
}

}  // namespace unisono::mpi
