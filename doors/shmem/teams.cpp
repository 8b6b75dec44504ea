#include "doors/shmem/teams.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "doors/shmem/failure.hpp"

namespace unisono::shmem {

namespace {

void free_communicator(const Team& team) {
  if (team.owned) unisono_communicator_free(team.communicator);
}

int rank_in(unisono_communicator* communicator) {
  std::uint32_t rank = 0;
  unisono_communicator_rank(communicator, &rank);
  return static_cast<int>(rank);
}

std::string in_words(int start, int stride, int size) {
  return "start " + std::to_string(start) + ", stride " + std::to_string(stride) + ", size " + std::to_string(size);
}

}  // namespace

int Team::find(int pe) const {
  const auto found = std::find(pes.begin(), pes.end(), pe);
  return found == pes.end() ? -1 : static_cast<int>(found - pes.begin());
}

Teams::Teams(unisono_communicator* world, int rank, int size, const std::vector<int>& near) : rank_(rank) {
  world_.communicator = world;
  world_.pes.resize(static_cast<std::size_t>(size));
  std::iota(world_.pes.begin(), world_.pes.end(), 0);
  world_.rank = rank;
  shared_ = world_;
  if (near.size() == static_cast<std::size_t>(size)) return;
  check("shmem_init", unisono_split(world, near.front(), rank, 0, &shared_.communicator));
  shared_.owned = true;
  shared_.pes = near;
  shared_.rank = shared_.find(rank);
}

Teams::~Teams() {
  for (Team* const team : made_) {
    free_communicator(*team);
    delete team;  // NOLINT(cppcoreguidelines-owning-memory): handles are addresses
  }
  for (Ctx* const ctx : contexts_) delete ctx;  // NOLINT(cppcoreguidelines-owning-memory)
  for (const auto& [set, team] : active_sets_) free_communicator(*team);
  free_communicator(shared_);
}

Team& Teams::get(const char* operation, const void* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == kWorld) return world_;
  if (number == kShared) return shared_;
  const std::lock_guard lock(mutex_);
  auto* const team = static_cast<Team*>(const_cast<void*>(handle));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  if (!made_.contains(team)) {
    fail(operation, number == 0 ? "SHMEM_TEAM_INVALID was given; a PE that a split left out has no part in its team"
                                : "the team was destroyed, or is none; give what a split has made, SHMEM_TEAM_WORLD "
                                  "or SHMEM_TEAM_SHARED");
  }
  return *team;
}

const void* Teams::handle_of(const Team& team) const {
  if (&team == &world_) return reinterpret_cast<const void*>(kWorld);    // NOLINT(performance-no-int-to-ptr)
  if (&team == &shared_) return reinterpret_cast<const void*>(kShared);  // NOLINT(performance-no-int-to-ptr)
  return &team;
}

Team* Teams::keep(std::unique_ptr<Team> team) {
  const std::lock_guard lock(mutex_);
  made_.insert(team.get());
  return team.release();
}

Team* Teams::split_strided(const char* operation, const Team& parent, int start, int stride, int size) {
  const std::int64_t last = start + std::int64_t{stride} * (size - 1);
  if (size < 1 || start < 0 || start >= parent.size() || last < 0 || last >= parent.size() ||
      (stride == 0 && size > 1)) {
    fail(operation, in_words(start, stride, size) +
                        " were given; these must be different PEs of the parent, which has " + "0 to " +
                        std::to_string(parent.size() - 1));
  }
  std::vector<std::uint32_t> ranks;
  auto team = std::make_unique<Team>();
  for (int i = 0; i < size; ++i) {
    ranks.push_back(static_cast<std::uint32_t>(start + stride * i));
    team->pes.push_back(parent.pes[ranks.back()]);
  }
  check(operation, unisono_subset(parent.communicator, ranks.data(), ranks.size(), nullptr, &team->communicator));
  if (team->communicator == nullptr) return nullptr;
  team->owned = true;
  team->rank = rank_in(team->communicator);
  return keep(std::move(team));
}

Team* Teams::split(const char* operation, const Team& parent, int colour) {
  auto team = std::make_unique<Team>();
  check(operation, unisono_split(parent.communicator, colour, parent.rank, 0, &team->communicator));
  team->owned = true;
  std::uint32_t size = 0;
  check(operation, unisono_communicator_size(team->communicator, &size));
  team->rank = rank_in(team->communicator);
  team->pes.resize(size);
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLGATHER;
  call.datatype = UNISONO_INT32;
  call.count = 1;
  call.src = &rank_;
  call.src_bytes = sizeof rank_;
  call.dst = team->pes.data();
  call.dst_bytes = size * sizeof(int);
  check(operation, unisono_run(team->communicator, &call));
  return keep(std::move(team));
}

void Teams::destroy(const char* operation, const void* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 0) return;
  if (number == kWorld || number == kShared) fail(operation, "the teams of all PEs and of a host cannot be destroyed");
  const std::unique_ptr<Team> team(&get(operation, handle));
  {
    const std::lock_guard lock(mutex_);
    made_.erase(team.get());
  }
  free_communicator(*team);
}

Team& Teams::active_set(const char* operation, int start, int log_stride, int size) {
  constexpr int kMostLog = 30;
  const std::int64_t stride = log_stride < 0 || log_stride > kMostLog ? -1 : std::int64_t{1} << log_stride;
  const int all = world_.size();
  if (stride < 0 || size < 1 || start < 0 || start + stride * (size - 1) >= all) {
    fail(operation, "PE_start " + std::to_string(start) + ", logPE_stride " + std::to_string(log_stride) +
                        " and PE_size " + std::to_string(size) + " were given; these must be PEs of 0 to " +
                        std::to_string(all - 1));
  }
  if (size == all) return world_;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Team>& team = active_sets_[{start, log_stride, size}];
  if (team != nullptr) return *team;
  auto made = std::make_unique<Team>();
  std::vector<std::uint32_t> ranks;
  for (int i = 0; i < size; ++i) {
    made->pes.push_back(static_cast<int>(start + stride * i));
    ranks.push_back(static_cast<std::uint32_t>(made->pes.back()));
  }
  made->rank = made->find(rank_);
  if (made->rank < 0) {
    fail(operation, "PE " + std::to_string(rank_) + " is not in the active set (" +
                        in_words(start, static_cast<int>(stride), size) + "), of which it calls a collective");
  }
  check(operation,
        unisono_create_group(world_.communicator, ranks.data(), ranks.size(), 0, nullptr, &made->communicator));
  made->owned = true;
  team = std::move(made);
  return *team;
}

Ctx* Teams::make_ctx(const Team& team) {
  auto made = std::make_unique<Ctx>(Ctx{&team});
  const std::lock_guard lock(mutex_);
  contexts_.insert(made.get());
  return made.release();
}

void Teams::free_ctx(const char* operation, const void* handle) {
  if (handle == nullptr) return;
  team_of(operation, handle);
  if (reinterpret_cast<std::uintptr_t>(handle) == 1) fail(operation, "the default context cannot be destroyed");
  auto* const ctx = static_cast<Ctx*>(const_cast<void*>(handle));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  const std::lock_guard lock(mutex_);
  contexts_.erase(ctx);
  delete ctx;  // NOLINT(cppcoreguidelines-owning-memory)
}

const Team& Teams::team_of(const char* operation, const void* handle) {
  if (reinterpret_cast<std::uintptr_t>(handle) == 1) return world_;
  const std::lock_guard lock(mutex_);
  auto* const ctx = static_cast<Ctx*>(const_cast<void*>(handle));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  if (!contexts_.contains(ctx)) {
    fail(operation, handle == nullptr ? "SHMEM_CTX_INVALID was given"
                                      : "the context was destroyed, or is none; give what shmem_ctx_create made");
  }
  return *ctx->team;
}

int Teams::translate(const char* operation, const void* ctx, int pe) {
  const Team& team = team_of(operation, ctx);
  if (pe < 0 || pe >= team.size()) {
    fail(operation, "PE " + std::to_string(pe) + " of the context's team was given; it has 0 to " +
                        std::to_string(team.size() - 1));
  }
  return team.pes[static_cast<std::size_t>(pe)];
}

}  // namespace unisono::shmem
