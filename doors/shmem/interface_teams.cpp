// The teams of shmem.h.
#include <algorithm>
#include <string>

#include "doors/shmem/collectives.hpp"
#include "doors/shmem/failure.hpp"
#include "doors/shmem/interface.hpp"

using namespace unisono::shmem;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

Team& team_at(const char* operation, shmem_team_t team) { return Job::of(operation).teams().get(operation, team); }

/// The handle of a team that a split has made as `config` says, or of none.
shmem_team_t handle(Team* team, const shmem_team_config_t* config, long mask) {
  if (team != nullptr && config != nullptr && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) {
    team->contexts = config->num_contexts;
  }
  return reinterpret_cast<shmem_team_t>(team);
}

}  // namespace

extern "C" {

int shmem_team_my_pe(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  return guarded([&] { return team_at("shmem_team_my_pe", team).rank; });
}

int shmem_team_n_pes(shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  return guarded([&] { return team_at("shmem_team_n_pes", team).size(); });
}

int shmem_team_get_config(shmem_team_t team, long mask, shmem_team_config_t* config) {
  if (team == SHMEM_TEAM_INVALID) return -1;
  return guarded([&] {
    const Team& of = team_at("shmem_team_get_config", team);
    if ((mask & SHMEM_TEAM_NUM_CONTEXTS) != 0 && config != nullptr) config->num_contexts = of.contexts;
    return 0;
  });
}

int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to) {
  if (from == SHMEM_TEAM_INVALID || to == SHMEM_TEAM_INVALID) return -1;
  return guarded([&] {
    const Team& there = team_at("shmem_team_translate_pe", from);
    if (pe < 0 || pe >= there.size()) return -1;
    return team_at("shmem_team_translate_pe", to).find(there.pes[static_cast<std::size_t>(pe)]);
  });
}

int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t* config,
                             long mask, shmem_team_t* made) {
  UNISONO_SHMEM_NAMED("shmem_team_split_strided");
  *made = SHMEM_TEAM_INVALID;
  if (parent == SHMEM_TEAM_INVALID || size == 0) return 1;  // nobody makes no team
  return guarded([&] {
    Teams& teams = Job::of(kOperation).teams();
    Team* const team = teams.split_strided(kOperation, teams.get(kOperation, parent), start, stride, size);
    *made = handle(team, config, mask);
    return 0;
  });
}

int shmem_team_split_2d(shmem_team_t parent, int width, const shmem_team_config_t* x_config, long x_mask,
                        shmem_team_t* x, const shmem_team_config_t* y_config, long y_mask, shmem_team_t* y) {
  UNISONO_SHMEM_NAMED("shmem_team_split_2d");
  *x = SHMEM_TEAM_INVALID;
  *y = SHMEM_TEAM_INVALID;
  if (parent == SHMEM_TEAM_INVALID) return 1;
  return guarded([&] {
    Teams& teams = Job::of(kOperation).teams();
    const Team& all = teams.get(kOperation, parent);
    if (width < 1) fail(kOperation, "a width of " + std::to_string(width) + " was given; allowed are 1 and more");
    const int columns = std::min(width, all.size());
    *x = handle(teams.split(kOperation, all, all.rank / columns), x_config, x_mask);
    *y = handle(teams.split(kOperation, all, all.rank % columns), y_config, y_mask);
    return 0;
  });
}

void shmem_team_destroy(shmem_team_t team) {
  guarded([&] { Job::of("shmem_team_destroy").teams().destroy("shmem_team_destroy", team); });
}

int shmem_team_sync(shmem_team_t team) {
  return guarded([&] {
    sync("shmem_team_sync", team_at("shmem_team_sync", team));
    return 0;
  });
}

}  // extern "C"

UNISONO_SHMEM_NAMES_TEAMS
