// The handlers that are loaded into a switch, and the thread that runs them (docs/handlers.md).
//
// All handlers share one thread, so that none holds up aggregation, and one function runs at a time. Callers take turns
// there: a turn ends after a number of instructions, whatever was asked for. What a caller of one handler does reaches
// no other handler.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "switch/handler/interpreter.hpp"
#include "switch/handler_control.hpp"
#include "switch/service/callers.hpp"

namespace unisono::slots {

struct HandlerLimits {
  std::uint32_t most = 64;                                ///< handlers; 0: the switch takes none
  std::uint64_t memory_bytes = std::uint64_t{64} << 20U;  ///< of all handlers together, with their binaries
  std::uint64_t budget = std::uint64_t{1} << 20U;         ///< instructions of a function, each time it runs
};
/// Budgets are bounded, for a function that has begun runs to its end.
inline constexpr std::uint64_t kMostBudget = std::uint64_t{1} << 28U;

/// One handler, for people.
struct HandlerReport {
  HandlerName which;
  Digest hash{};
  std::string source;
  std::uint32_t words = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t element_bytes = 0;                                 ///< of an operator; 0: it is none
  std::array<std::uint64_t, handler::kFunctions> most_executed{};  ///< 0: there is no such function
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t runs = 0;  ///< of functions
  std::uint64_t instructions = 0;
  std::uint64_t outputs = 0;
  std::map<std::string, std::uint64_t> stops;  ///< by reason; `verdict`: it failed by its own word
  std::string last_stop;                       ///< a sentence with file:line; empty: none
};

struct HandlersReport {
  HandlerLimits limits;
  std::uint64_t memory_bytes = 0;  ///< taken
  std::vector<HandlerReport> handlers;
};

/// An answer to ControlKind::kRun.
struct HandlerAnswer {
  CallerId caller = 0;
  std::uint32_t number = 0;  ///< of its request
  RunAnswer answer;
};

/// All functions but `stop` are for the thread that serves callers.
class Handlers {
 public:
  /// `ring` is called by the thread when there are answers to take.
  Handlers(HandlerLimits limits, std::function<void()> ring);
  ~Handlers();
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

  void start();
  /// Ends the thread after the function that runs, and waits for that. May be called again.
  void stop() noexcept;

  LoadAnswer load(CallerId caller, const LoadRequest& request);
  /// A sentence if there is nothing to unload.
  std::string unload(const HandlerName& which);
  /// Answers later, by `take_answers`.
  void run(CallerId caller, std::uint32_t number, RunRequest request);
  std::vector<HandlerAnswer> take_answers();
  /// The binary of an operator that is loaded for everybody, by its hash; nothing: none is.
  std::optional<join::Blob> operator_binary(const Digest& hash);
  /// Its messages are over, and what was to go with it is unloaded.
  void gone(CallerId caller);

  /// Of all handlers, or of those with a name.
  HandlersReport report(const std::string& name);

 private:
  struct Loaded {
    explicit Loaded(std::atomic<std::uint64_t>& all) : of_all(all) {}
    ~Loaded() { of_all -= bytes; }
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;

    std::atomic<std::uint64_t>& of_all;
    std::uint64_t number = 0;  ///< each that was ever loaded has its own, from 1 on
    handler::Program program;
    std::optional<handler::Code> code;  ///< once the program is there
    Digest hash{};
    join::Blob binary;              ///< of an operator
    std::uint64_t bytes = 0;        ///< that count against the limit, until the last request that uses it has ended
    bool stays = true;              ///< when nobody wants it
    std::set<CallerId> wanted_by;   ///< those with the last of whom it goes
    std::vector<std::byte> memory;  ///< of the thread alone
    HandlerReport report;           ///< counters: by the lock
  };
  /// Where a caller is in its message. Of the thread alone.
  struct Message {
    std::uint64_t loaded = 0;  ///< its number, so that a message which waits keeps no handler; 0: no message has begun
    std::uint32_t next = 0;    ///< packet
  };
  struct Task {
    std::uint32_t number = 0;
    RunRequest request;
    std::shared_ptr<Loaded> loaded;
    RunAnswer answer;
    std::uint64_t budget = 0;
    std::uint64_t output_bytes = 0;
    bool begun = false;
  };
  struct Caller {
    std::deque<Task> tasks;
    Message message;
  };

  std::string fault_of(const LoadRequest& request, std::uint64_t bytes, const std::shared_ptr<Loaded>& there) const;
  void work();
  bool take_turn(Task& task, Message& message);
  bool begin(Task& task, Message& message);
  bool run_one(Task& task, handler::Function function, std::uint32_t packet);
  void note(const Task& task, handler::Function function, const handler::Outcome& outcome, const std::string& sentence);

  const HandlerLimits limits_;
  const std::function<void()> ring_;
  std::mutex mutex_;
  std::condition_variable something_;
  std::atomic<std::uint64_t> bytes_{0};  ///< of all that is loaded or in use; outlives it
  std::uint64_t last_loaded_ = 0;
  std::map<HandlerName, std::shared_ptr<Loaded>> loaded_;
  std::map<CallerId, Caller> callers_;  ///< that have run something
  CallerId last_ = 0;                   ///< whose turn it was
  std::vector<HandlerAnswer> answers_;
  bool stopped_ = false;
  std::vector<std::byte> output_;  ///< of the thread alone
  std::thread thread_;
};

}  // namespace unisono::slots
