#include "doors/mpi/job.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "doors/mpi/device.hpp"
#include "doors/mpi/time.hpp"

namespace unisono::mpi {

namespace {

Job current;
MPI_Comm alone = MPI_COMM_NULL;  ///< of this rank, with nobody else on it
/// A receive of what nobody sends. To be asked for it the MPI below makes progress; to be asked for messages
/// (MPI_Iprobe) MPICH makes none.
MPI_Request never = MPI_REQUEST_NULL;
char nothing = 0;
bool joined = false;
Time* simulated = nullptr;  ///< not freed by itself: a child of fork that exits has no thread to end

/// Called in waits, one thread at a time: at first each few microseconds, in longer waits between naps.
void make_progress_below(void* /*context*/) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  constexpr int kTests = 2;  // between two looks at the clock
  static Clock::time_point last;
  const Clock::time_point now = Clock::now();
  // Between naps a long message takes a piece a time. Not for longer: it may be one of many short waits, and the ranks
  // that it keeps waiting would call theirs.
  const Clock::time_point until = now - last > microseconds(8) ? now + microseconds(2) : now;
  int flag = 0;
  do {
    for (int i = 0; i < kTests; ++i) PMPI_Test(&never, &flag, MPI_STATUS_IGNORE);
    last = Clock::now();
  } while (last < until);
}

bool on_all(bool here) {
  int all = here ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

/// Ranks tell each other by the MPI below where they are, and what proves that they are of this job.
int all_gather(void* /*user*/, const void* own, std::size_t bytes, void* all, double /*seconds*/) {
  const auto count = static_cast<int>(bytes);
  return PMPI_Allgather(own, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : 1;
}

bool join(int rank, int size) {
  unisono_join_functions functions{};
  functions.struct_size = sizeof functions;
  functions.rank = static_cast<std::uint32_t>(rank);
  functions.size = static_cast<std::uint32_t>(size);
  functions.all_gather = all_gather;
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  // MPI knows none; a device ends calls whose deadline has passed.
  if (!on_devices()) settings.deadlines = UNISONO_DEADLINE_WARNS;
  if (unisono_join(&functions, &settings, &current.context) == 0 &&
      unisono_world(current.context, &current.world) == 0) {
    return true;
  }
  std::fprintf(stderr, "unisono: rank %d: %s; collectives are the MPI's own\n", rank, unisono_last_error());
  return false;
}

}  // namespace

void begin() {
  const char* const wanted = std::getenv("UNISONO_MPI");
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool carries = wanted == nullptr || std::strcmp(wanted, "off") != 0;
  // A rank that does not join would leave the others waiting for it.
  if (!on_all(carries && (size == 1 || take_device(rank))) || size == 1) return;
  if (!on_all(join(rank, size))) {
    if (current.context != nullptr) unisono_finalize(current.context);
    current = {};
    return;
  }
  PMPI_Comm_dup(MPI_COMM_SELF, &alone);
  PMPI_Irecv(&nothing, 1, MPI_CHAR, 0, 0, alone, &never);
  current.size = size;
  PMPI_Comm_group(MPI_COMM_WORLD, &current.group);
  joined = true;
  if (in_simulated_time()) simulated = new Time(current.world, rank, size);  // NOLINT(cppcoreguidelines-owning-memory)
  unisono_set_wait_hook(make_progress_below, nullptr);
}

void end() {
  if (!joined) return;
  joined = false;
  delete std::exchange(simulated, nullptr);  // NOLINT(cppcoreguidelines-owning-memory)
  unisono_set_wait_hook(nullptr, nullptr);
  if (unisono_finalize(current.context) != 0) std::fprintf(stderr, "unisono: %s\n", unisono_last_error());
  PMPI_Group_free(&current.group);
  PMPI_Cancel(&never);
  PMPI_Wait(&never, MPI_STATUS_IGNORE);
  PMPI_Comm_free(&alone);
  current = {};
}

const Job* job() { return joined ? &current : nullptr; }

}  // namespace unisono::mpi
