// Teams: numbered sets of PEs, each with a communicator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "unisono/unisono.h"

namespace unisono::shmem {

struct Team {
  unisono_communicator* communicator = nullptr;
  bool owned = false;    ///< the communicator is freed with the team
  std::vector<int> pes;  ///< PE of the world by PE of the team
  int rank = 0;          ///< of this PE
  int contexts = 0;      ///< that were asked for, which is no bound

  int size() const { return static_cast<int>(pes.size()); }
  /// PE of the team that is PE `pe` of the world; -1: none.
  int find(int pe) const;
};

/// A context: the team whose PEs its operations name.
struct Ctx {
  const Team* team;
};

/// The teams of a job, by handle. A handle is an address that is looked up, never followed blindly. Thread-safe.
class Teams {
 public:
  static constexpr std::uintptr_t kWorld = 1;
  static constexpr std::uintptr_t kShared = 2;

  /// Collective. `near`: the PEs of this host.
  Teams(unisono_communicator* world, int rank, int size, const std::vector<int>& near);
  ~Teams();
  Teams(const Teams&) = delete;
  Teams& operator=(const Teams&) = delete;

  /// Throws Failure unless there is such a team.
  Team& get(const char* operation, const void* handle);
  Team& world() { return world_; }
  /// What `get` takes.
  const void* handle_of(const Team& team) const;

  /// Collective over the parent, of which PEs start, start + stride, ... are members; null for others.
  Team* split_strided(const char* operation, const Team& parent, int start, int stride, int size);
  /// Collective over the parent: those with equal colour, in the parent's order.
  Team* split(const char* operation, const Team& parent, int colour);
  void destroy(const char* operation, const void* handle);
  /// Collective over the PEs of the set only, which may be the first that hear of it.
  Team& active_set(const char* operation, int start, int log_stride, int size);

  Ctx* make_ctx(const Team& team);
  void free_ctx(const char* operation, const void* handle);
  /// PE of the world that a context calls `pe`. Throws Failure.
  int translate(const char* operation, const void* ctx, int pe);
  const Team& team_of(const char* operation, const void* ctx);

 private:
  Team* keep(std::unique_ptr<Team> team);

  int rank_;
  Team world_;
  Team shared_;
  std::mutex mutex_;
  std::unordered_set<Team*> made_;
  std::unordered_set<Ctx*> contexts_;
  std::map<std::tuple<int, int, int>, std::unique_ptr<Team>> active_sets_;
};

}  // namespace unisono::shmem
