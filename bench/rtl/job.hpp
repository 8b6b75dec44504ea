// A simulated cluster as the measurements use it: kernels on every node that call and are answered.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/generated/spec.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::bench {

/// A collective gave another result than it must. Ends the program: no figure of a wrong engine is worth printing.
struct WrongResult : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What one call of all ranks is to do.
struct Work {
  Collective collective = Collective::kNop;
  int algorithm = -1;       ///< position in the table; negative: the engine chooses
  std::uint64_t count = 0;  ///< elements of fp32, as in a descriptor
  std::uint32_t root = 0;
  std::uint32_t place = 0;  ///< of the communicator
};

struct Outcome {
  std::uint64_t cycles = 0;        ///< from the call, in the same cycle on all ranks, to the last answer
  std::uint64_t first_done = 0;    ///< to the first answer
  std::uint64_t first_word = 0;    ///< to the first word that any rank sent; 0: none was sent
  std::uint64_t source_bytes = 0;  ///< the most that a rank reads of its user's memory
  std::uint64_t result_bytes = 0;  ///< the most that a rank writes there
};

/// How clusters are simulated, which changes no figure; and at the end, how fast they were.
struct Simulation {
  bool skip = true;      ///< see NodeConfig
  unsigned threads = 1;  ///< see ClusterConfig
  struct Pace {
    double cycles = 0, seconds = 0, evaluated = 0;  ///< seconds of processors' time; cycles that were evaluated
  };
  std::map<std::uint32_t, Pace> paces;  ///< by number of nodes
};
Simulation& simulation();

/// A cluster with communicators of all its nodes.
class Job {
 public:
  explicit Job(const sim::ClusterConfig& config);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Communicator at `place`, of all nodes.
  void create(std::uint32_t place, const sim::Host::Agreed& agreed);

  sim::Cluster& cluster() { return cluster_; }
  sim::Host& host(std::uint32_t node) { return hosts_[node]; }
  std::uint32_t size() const { return cluster_.nodes(); }
  std::uint64_t now() const { return cluster_.cycle(); }
  std::uint32_t next_id() { return ++last_id_; }

  /// Gives a call of a kernel and returns at once; the port must be free.
  void call(std::uint32_t node, const CallDescriptor& descriptor);
  void tick();
  /// Called after every cycle of `tick` and `run`. Empty: none.
  void watch(std::function<void()> hook) { hook_ = std::move(hook); }
  /// What only ends things under way: credits that return, for instance.
  void settle(std::uint64_t cycles = 400);

  /// Calls on all ranks in one cycle, with fresh data, and checks what came out. Throws WrongResult.
  Outcome run(const Work& work);
  /// A barrier that the last rank enters late: nobody may leave before. Throws WrongResult.
  void check_barrier(std::uint32_t place);
  /// Ticks until the node has answered this call, which must succeed. The cycle of the answer.
  std::uint64_t answer_of(std::uint32_t node, std::uint32_t id);

 private:
  void check(const Work& work, std::uint32_t salt);

  sim::Cluster cluster_;
  const double began_;  ///< seconds of processors' time
  std::vector<sim::Host> hosts_;
  std::uint32_t last_id_ = 0;
  std::uint32_t communicators_ = 0;
  std::function<void()> hook_;
};

/// Where a region of a rank stands. Odd places, so that nothing relies on alignment to words.
std::uint64_t place_of(std::uint32_t rank, std::uint32_t region);
/// Whole numbers, so that sums are exact in any order; different on every rank and in every run.
float value_of(std::uint32_t salt, std::uint32_t rank, std::uint64_t index);
std::vector<float> values_of(std::uint32_t salt, std::uint32_t rank, std::uint64_t count);

}  // namespace unisono::bench
