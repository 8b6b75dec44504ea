// The reference interpreter: runs all ranks' programs together, by the rules of docs/model.md and nothing else.
//
// It exists to be right, not fast: every engine is compared with it. The same machine runs on two domains of values:
// bytes, with the operators of core/arithmetic.hpp, and symbols, which say what each element was computed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/finding.hpp"
#include "reference/job.hpp"
#include "reference/lowered.hpp"
#include "reference/symbols.hpp"

namespace unisono::reference {

/// Which of the legal schedules is run.
struct Policy {
  enum class Kind : std::uint8_t {
    kLeastPermissive,  ///< one element at a time, one element of landing space, rendezvous, completion after
                       ///< consumption
    kGenerous,         ///< whole messages, unlimited buffering
    kRandom,           ///< everything the rules leave open is drawn from `seed`
  };
  Kind kind = Kind::kGenerous;
  std::uint64_t seed = 0;
  /// Segment dependencies are read as full ones (rule 10).
  bool full_segment_dependencies = false;
  /// Of a switch: what is in flight there at a time, each with its result that comes down, two moves.
  std::uint32_t slots = kWindow;
  /// Members that follow one another below a switch are behind one port of it (port_turns.hpp).
  bool shared_ports = false;
  /// Of symbols: arrivals in any order are combined in an order of symbols, so that the run stands for all orders.
  bool all_orders = false;

  /// The same on switches that have one slot.
  Policy with_one_slot() const {
    Policy one = *this;
    one.slots = 1;
    return one;
  }
  /// The same on switches whose ports are as few and as narrow as can be.
  Policy with_shared_ports() const {
    Policy shared = *this;
    shared.shared_ports = true;
    return shared;
  }
  /// The same for all orders of arrivals at once.
  Policy with_all_orders() const {
    Policy all = *this;
    all.all_orders = true;
    return all;
  }
  static Policy least_permissive(bool full_segment_dependencies = false) {
    return {Kind::kLeastPermissive, 0, full_segment_dependencies};
  }
  static Policy generous() { return {}; }
  static Policy random(std::uint64_t seed) { return {Kind::kRandom, seed, (seed & 7U) == 7U}; }
};

/// One thing that happened, for drawing. Times count events of the whole run.
struct Event {
  enum class Kind : std::uint8_t { kStart, kSegment, kFinish } kind = Kind::kStart;
  std::uint64_t time = 0;
  Node node = 0;
  std::uint64_t elements = 0;  ///< done so far, for kSegment
};

/// What the run of a move came to.
struct MoveOutcome {
  std::uint64_t count = 0;  ///< elements, read from params if indirect
  std::uint64_t op0 = 0;    ///< byte offsets, read from params if indirect
  std::uint64_t op1 = 0;
  std::uint64_t local = 0;
  std::uint64_t start = 0;   ///< time at which it started
  std::uint64_t first = 0;   ///< time at which its first element was done
  std::uint64_t finish = 0;  ///< time at which it completed
  bool started = false;
  bool finished = false;
};

/// Result of a run, whatever the domain.
struct Run {
  std::optional<Finding> finding;     ///< the first thing that went wrong; the run stopped there
  std::vector<MoveOutcome> outcomes;  ///< by node
  std::vector<Event> events;          ///< only if asked for
  std::uint64_t segments = 0;         ///< segments executed
};

/// What one stream port's kernel was given.
struct SymbolStream {
  std::uint32_t rank = 0;
  std::uint32_t port = 0;
  std::vector<Symbol> values;
};

/// First symbols of what memory and input streams hold before a run; the others follow. Equal for all runs of a job.
struct SymbolLeaves {
  std::vector<std::array<Symbol, kRegions>> memory;  ///< by rank and region
  std::vector<Symbol> streams;                       ///< by number of the job's stream
};

/// Symbolic memory after a run: cells by rank and region.
struct SymbolRun : Run {
  std::vector<std::array<std::vector<Symbol>, kRegions>> memory;
  std::vector<SymbolStream> streams;
  bool all_orders = false;  ///< it stands for all orders of arrivals
};

/// What each rank's memory holds before a run; missing bytes are zero, and so is scratch.
struct RankInput {
  std::vector<std::byte> src;
  std::vector<std::byte> dst;
  std::vector<std::byte> window;
};

/// Memory and streams after a run on numbers.
struct NumberRun : Run {
  std::vector<std::array<std::vector<std::byte>, kRegions>> memory;
  std::vector<StreamInput> streams;  ///< what each rank's kernel was given, by rank and port
};

/// Runs a job as often as wanted. Not thread-safe; different objects are independent.
class Interpreter {
 public:
  /// Lowers the job, which must outlive this. Throws Error(kInvalidArgument) if the job's sizes are inconsistent.
  explicit Interpreter(const Job& job);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  const Lowered& lowered() const { return lowered_; }
  SymbolTable& symbols() { return symbols_; }
  const SymbolLeaves& leaves() const { return leaves_; }

  /// Runs on symbols. Initially every element of src, dst and window is a leaf of its own, scratch is uninitialised,
  /// params are constants. Equal runs give equal symbols. If the programs are malformed, that is the finding.
  SymbolRun run_symbols(const Policy& policy, bool record_events = false);
  /// Whether two runs on symbols of this leave the same expressions in src, dst and window; scratch is nobody's
  /// business. If one of them does not stand for all orders, and arrivals are combined in any order, the expressions
  /// have the same normal form. `what` the second is, in words.
  std::optional<Finding> compare(const SymbolRun& one, const SymbolRun& other, const std::string& what);
  /// Runs on numbers, from `inputs` by rank (which may be empty).
  NumberRun run_numbers(const std::vector<RankInput>& inputs, const Policy& policy, bool record_events = false);

 private:
  class NumberDomain;

  Lowered lowered_;
  SymbolTable symbols_;
  SymbolLeaves leaves_;
};

/// The final dst of every rank. Throws Error(kMalformedProgram) with the finding's text if anything goes wrong.
std::vector<std::vector<std::byte>> interpret(const Job& job, const std::vector<RankInput>& inputs,
                                              const Policy& policy = Policy::generous());

}  // namespace unisono::reference
