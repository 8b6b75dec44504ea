#include "doors/mpi/job.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
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

/// What rank 0 tells the others.
struct Meeting {
  std::array<char, 256> where{};
  std::array<char, 65> secret{};
};

std::string random_hex(std::size_t digits) {
  std::random_device source;
  std::string text;
  while (text.size() < digits) {
    std::array<char, 9> part{};
    std::snprintf(part.data(), part.size(), "%08x", static_cast<unsigned>(source()));
    text += part.data();
  }
  text.resize(digits);
  return text;
}

/// A port that is free now.
int free_port() {
  const int one = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t bytes = sizeof address;
  int port = 0;
  if (one >= 0 && bind(one, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      getsockname(one, reinterpret_cast<sockaddr*>(&address), &bytes) == 0) {
    port = ntohs(address.sin6_port);
  }
  if (one >= 0) close(one);
  return port;
}

Meeting meeting(bool one_host) {
  Meeting made;
  std::string where;
  if (one_host) {
    where = "unix://unisono-mpi-" + std::to_string(getpid()) + "-" + random_hex(8);
  } else {
    std::array<char, 128> host{};
    gethostname(host.data(), host.size() - 1);
    where = std::string("tcp://") + host.data() + ":" + std::to_string(free_port());
  }
  where.copy(made.where.data(), made.where.size() - 1);
  random_hex(made.secret.size() - 1).copy(made.secret.data(), made.secret.size() - 1);
  return made;
}

/// A variable that says something for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// Called in every wait, one thread at a time: at first each few microseconds, in longer waits between naps.
void make_progress_below(void* /*context*/) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  constexpr int kTests = 8;  // between two looks at the clock
  static Clock::time_point last;
  const Clock::time_point now = Clock::now();
  // A long message takes a piece a time, and on a busy machine the next nap may last milliseconds.
  const Clock::time_point until = now + (now - last > microseconds(8) ? microseconds(50) : microseconds(1));
  int flag = 0;
  do {
    for (int i = 0; i < kTests; ++i) PMPI_Test(&never, &flag, MPI_STATUS_IGNORE);
    last = Clock::now();
  } while (last < until);
}

bool on_one_host(int size) {
  MPI_Comm host = MPI_COMM_NULL;
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int here = 0;
  PMPI_Comm_size(host, &here);
  PMPI_Comm_free(&host);
  int all = here == size ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

bool join(int rank, int size, const Meeting& at) {
  if (!take_device(rank)) return false;
  const Variable place("UNISONO_JOIN", at.where.data());
  const Variable secret("UNISONO_SECRET", at.secret.data());
  const Variable own("UNISONO_RANK", std::to_string(rank));
  const Variable of("UNISONO_SIZE", std::to_string(size));
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  // MPI knows none; a device ends calls whose deadline has passed.
  if (!on_devices()) settings.deadlines = UNISONO_DEADLINE_WARNS;
  if (unisono_init(&settings, &current.context) != 0 || unisono_world(current.context, &current.world) != 0) {
    std::fprintf(stderr, "unisono: rank %d: %s; collectives are the MPI's own\n", rank, unisono_last_error());
    return false;
  }
  return true;
}

}  // namespace

void begin() {
  const char* const wanted = std::getenv("UNISONO_MPI");
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  int all = wanted == nullptr || std::strcmp(wanted, "off") != 0 ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all == 0 || size == 1) return;
  const bool one_host = on_one_host(size);
  Meeting at;
  if (rank == 0) at = meeting(one_host);
  PMPI_Bcast(&at, sizeof at, MPI_BYTE, 0, MPI_COMM_WORLD);
  all = join(rank, size, at) ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all == 0) {
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
