#include "doors/mpi/door.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "doors/mpi/job.hpp"

namespace unisono::mpi {

namespace {

int keyval = MPI_KEYVAL_INVALID;
/// Of doors that have gone: a handle may be that of another communicator then.
std::atomic<std::uint64_t> generation{1};

int forget(MPI_Comm /*comm*/, int /*key*/, void* value, void* /*state*/) {
  generation.fetch_add(1, std::memory_order_release);
  const std::unique_ptr<Door> door(static_cast<Door*>(value));
  if (door->owned && job() != nullptr) unisono_communicator_free(door->communicator);
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
  int all =
      unisono_create_group(job()->world, ranks.data(), ranks.size(), 0, nullptr, &door->communicator) == 0 ? 1 : 0;
  if (all == 0) {
    std::fprintf(stderr, "unisono: %s; collectives of this communicator are the MPI's own\n", unisono_last_error());
  }
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  if (all == 0) {
    if (door->communicator != nullptr) unisono_communicator_free(door->communicator);
    door->communicator = nullptr;
  }
  door->owned = door->communicator != nullptr;
  return door;
}

}  // namespace

void open_doors() {
  if (job() != nullptr) PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, nullptr);
}

void close_doors() {
  if (keyval == MPI_KEYVAL_INVALID) return;
  // Those of other communicators go with these, or with the process; the job that they are of ends now.
  PMPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
  generation.fetch_add(1, std::memory_order_release);
}

const Door* door_of(MPI_Comm comm) {
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
  if (found == 0) {
    std::unique_ptr<Door> fresh = made(comm);
    door = fresh.get();
    PMPI_Comm_set_attr(comm, keyval, fresh.release());
  }
  last = {comm, now, door->communicator == nullptr ? nullptr : door};
  return last.door;
}

}  // namespace unisono::mpi
