// The pools of a switch: who wants each of them, which worker has it, and whether there is room for more.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "switch/handler_control.hpp"
#include "switch/service/callers.hpp"
#include "switch/service/parent.hpp"
#include "switch/service/places.hpp"
#include "switch/service/report.hpp"
#include "switch/service/worker.hpp"

namespace unisono::slots {

/// An answer for a caller.
struct TableAnswer {
  CallerId caller = 0;
  std::uint32_t number = 0;  ///< of its request
  ControlKind kind = ControlKind::kMake;
  join::Blob body;
};

/// To which groups results for all go.
struct ResultGroups {
  std::string of_all;  ///< ADDRESS:PORT of a group of IPv4; empty: none
  /// Not 0: the first communicator of each job has a group of the loopback at this port, if it has fewer members than
  /// there are `cores`.
  std::uint16_t at_loopback = 0;
  std::size_t cores = 0;
};

/// A pool lives as long as a connection wants it, and a little longer: whoever has its last result may end, while
/// others still ask for theirs. One thread.
class PoolTable {
 public:
  /// So long, unless somebody needs the room. In a tree each level adds its own.
  static constexpr std::chrono::milliseconds kLonger{400};

  /// `parent` is null if this switch has none. All must outlive the table.
  PoolTable(std::string name, std::string secret, std::uint32_t places, std::vector<std::unique_ptr<Worker>>& workers,
            Parent* parent, ResultGroups groups = {});

  /// Makes the pool that a caller asks for, or notes that it wants it, too. Answers: none yet, if the switch above is
  /// asked first.
  std::vector<TableAnswer> make(CallerId caller, std::uint32_t number, const PoolRequest& request);
  void free(CallerId caller, const PoolId& id);
  /// Has a pool fold by an operator of a user. All operators together have so many bytes at most, and those of one job
  /// a quarter of that. Answers: none yet, if the switch above is asked first. It folds there, too, or not at all.
  std::vector<TableAnswer> set_operator(CallerId caller, std::uint32_t number, const OperatorRequest& request,
                                        std::uint64_t most_bytes);
  void gone(CallerId caller);
  /// Frees what nobody has wanted for long enough.
  void free_unwanted(join::Deadline now);
  /// When there is something to free.
  join::Deadline deadline() const;
  /// What the switch above says; the answers that waited for it.
  std::vector<TableAnswer> parent_said(const ParentAnswer& said);

  void drain(bool drains) { draining_ = drains; }
  bool draining() const { return draining_; }
  const Places& places() const { return places_; }
  std::size_t size() const { return pools_.size(); }
  std::size_t jobs() const { return jobs_.size(); }
  /// Bytes of data in all pools.
  std::uint64_t memory_bytes();

  std::vector<JobReport> report_jobs();
  /// Of the communicators with this number, in all jobs.
  std::vector<PoolReport> report_pools(std::uint32_t communicator);
  /// Of all pools.
  std::vector<OperatorReport> report_operators();

 private:
  using Waiting = std::vector<std::pair<CallerId, std::uint32_t>>;  ///< caller and number of its request
  /// An operator of a user, by which a pool folds, or is to fold once the switch above has it.
  struct OwnOperator {
    OperatorReport report;  ///< without what is counted
    std::shared_ptr<OperatorCounters> counters;
    PoolOperator made{};  ///< until the pool has it
    std::uint64_t serial = 0;
    Waiting waiting{};
    bool pending = false;  ///< the switch above has not answered yet
  };
  struct Entry {
    PoolRequest request;
    join::Blob words;  ///< the same, packed
    const PoolNode* node = nullptr;
    std::shared_ptr<HostedPool> pool;
    Worker* worker = nullptr;
    std::uint64_t places = 0;
    std::uint64_t serial = 0;
    std::string group;  ///< to which its results go; empty: none
    std::map<Func, OwnOperator> operators;
    bool pending = false;  ///< the switch above has not answered yet
    std::set<CallerId> wanted_by;
    join::Deadline until = join::Deadline::max();  ///< of one that nobody wants
    Waiting waiting;
  };
  struct Job {
    std::string name;
    std::size_t pools = 0;
    PoolTraffic over;  ///< of pools that were freed
  };
  using Entries = std::map<PoolId, Entry>;

  std::string fault_of(const PoolRequest& request) const;
  std::vector<TableAnswer> take_operator(Entry& entry, Func func, const std::string& why);
  std::vector<TableAnswer> parent_said_of_operator(Entry& entry, const ParentAnswer& said);
  OwnOperator made_operator(const OperatorRequest& request) const;
  OperatorReport report(const Entry& entry, const OwnOperator& op) const;
  std::string without_room(const Entry& entry, Func func, std::uint64_t bytes, std::uint64_t most_bytes) const;
  PoolAnswer make_new(const PoolRequest& request);
  PoolAnswer answer_of(Entry& entry) const;
  Entries::iterator erase(Entries::iterator entry);
  Entries::iterator unwanted(Entries::iterator entry);
  std::string group_of(const PoolRequest& request) const;
  Worker& worker_of(std::uint64_t number) const;
  PoolReport report(const Entry& entry) const;

  const std::string name_;
  const std::string secret_;
  std::vector<std::unique_ptr<Worker>>& workers_;
  Parent* const parent_;
  const ResultGroups groups_;
  Places places_;
  Entries pools_;
  std::map<std::uint64_t, PoolId> numbers_;  ///< in datagrams
  std::map<PoolId, Job> jobs_;               ///< that have pools
  std::uint64_t next_serial_ = 1;
  std::uint64_t last_generation_ = 0;
  bool draining_ = false;
};

}  // namespace unisono::slots
