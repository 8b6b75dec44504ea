#include "doors/mpi/door.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "doors/mpi/device.hpp"
#include "doors/mpi/job.hpp"

namespace unisono::mpi {

namespace {

int keyval = MPI_KEYVAL_INVALID;
/// Of doors that have gone: a handle may be that of another communicator then.
std::atomic<std::uint64_t> generation{1};

int forget(MPI_Comm /*comm*/, int /*key*/, void* value, void* /*state*/) {
  generation.fetch_add(1, std::memory_order_release);
  drop(*static_cast<Door*>(value));
  return MPI_SUCCESS;
}

/// The ranks of a communicator, in its order, by their numbers in MPI_COMM_WORLD; none if one is not of it.
std::vector<std::uint32_t> world_ranks(MPI_Comm comm, int size) {
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  std::vector<int> own(static_cast<std::size_t>(size));
  std::vector<int> world(own.size());
  for (int rank = 0; rank < size; ++rank) own[static_cast<std::size_t>(rank)] = rank;
  PMPI_Group_translate_ranks(group, size, own.data(), job()->group, world.data());
  PMPI_Group_free(&group);
  std::vector<std::uint32_t> found;
  for (const int rank : world) {
    if (rank == MPI_UNDEFINED) return {};
    found.push_back(static_cast<std::uint32_t>(rank));
  }
  return found;
}

/// Ranks of a new communicator tell each other by it where Unisono makes one of them. MPI knows no deadlines.
int all_gather(void* comm, const void* own, std::size_t bytes, void* all, double /*seconds*/) {
  const auto count = static_cast<int>(bytes);
  return PMPI_Allgather(own, count, MPI_BYTE, all, count, MPI_BYTE, *static_cast<MPI_Comm*>(comm)) == MPI_SUCCESS ? 0
                                                                                                                  : 1;
}

std::unique_ptr<Door> made(MPI_Comm comm) {
  auto door = std::make_unique<Door>();
  int between = 0;
  PMPI_Comm_test_inter(comm, &between);
  PMPI_Comm_rank(comm, &door->rank);
  PMPI_Comm_size(comm, &door->size);
  if (between != 0 || door->size == 1) return door;
  if (comm == MPI_COMM_WORLD) {
    door->communicator = job()->world;
    return door;
  }
  const std::vector<std::uint32_t> ranks = world_ranks(comm, door->size);
  if (ranks.empty()) return door;
  unisono_result result = 0;
  const bool of_devices = on_devices() && door->size == job()->size;  // which know no groups
  if (of_devices) {
    result = unisono_split(job()->world, 0, door->rank, 0, &door->communicator);
  } else {
    unisono_communicator_settings settings{};
    settings.struct_size = sizeof settings;
    settings.all_gather = all_gather;
    settings.user = &comm;
    result = unisono_create_group(job()->world, ranks.data(), ranks.size(), 0, &settings, &door->communicator);
  }
  int all = result == 0 ? 1 : 0;
  if (all == 0) {
    std::fprintf(stderr, "unisono: %s; collectives of this communicator are the MPI's own\n", unisono_last_error());
  }
  // Ranks that have told each other by the MPI all have the communicator, or none has it.
  if (of_devices) PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  if (all == 0) {
    if (door->communicator != nullptr) unisono_communicator_free(door->communicator);
    door->communicator = nullptr;
  }
  door->owned = door->communicator != nullptr;
  if (door->owned && !on_devices()) door->neighbours = neighbours_of(comm, door->communicator);
  return door;
}

}  // namespace

void keep(const Door& door) { door.users.fetch_add(1, std::memory_order_relaxed); }

void drop(const Door& door) {
  if (door.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  unisono_communicator* const communicator = door.owned && job() != nullptr ? door.communicator : nullptr;
  delete &door;  // NOLINT(cppcoreguidelines-owning-memory): the attribute held it
  if (communicator != nullptr) unisono_communicator_free(communicator);
}

void open_doors() {
  if (job() == nullptr) return;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, nullptr);
  door_of(MPI_COMM_WORLD);
}

void close_doors() {
  if (keyval == MPI_KEYVAL_INVALID) return;
  // Those of other communicators go with these, or with the process; the job that they are of ends now.
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, keyval, static_cast<void*>(&value), &found);
  if (found != 0) PMPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
  generation.fetch_add(1, std::memory_order_release);
}

const Door* door_of(MPI_Comm comm, Make make) {
  if (job() == nullptr || comm == MPI_COMM_NULL) return nullptr;
  struct Last {
    MPI_Comm comm = MPI_COMM_NULL;
    std::uint64_t generation = 0;
    const Door* door = nullptr;
  };
  thread_local Last last;
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  if (last.comm == comm && last.generation == now) return last.door;
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, keyval, static_cast<void*>(&value), &found);
  const Door* door = static_cast<const Door*>(value);
  if (found == 0 && make == Make::kNo) return nullptr;
  if (found == 0) {
    std::unique_ptr<Door> fresh = made(comm);
    door = fresh.get();
    PMPI_Comm_set_attr(comm, keyval, fresh.release());
  }
  last = {comm, now, door->communicator == nullptr ? nullptr : door};
  return last.door;
}

}  // namespace unisono::mpi
