// What a switch says of itself to people: one object of JSON for each question.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "switch/service/callers.hpp"
#include "switch/service/handlers.hpp"
#include "switch/service/hosted_pool.hpp"
#include "switch/service/parent.hpp"
#include "switch/service/worker.hpp"

namespace unisono::slots {

struct StatusReport {
  std::string name;
  std::string listen;
  double uptime_s = 0;
  std::uint64_t slots_total = 0;
  std::uint64_t slots_used = 0;
  std::size_t threads = 0;
  std::uint64_t up_to_bytes = 0;  ///< see ServiceSettings
  std::size_t pools = 0;
  std::size_t jobs = 0;
  std::size_t callers = 0;
  std::string uplink;  ///< HOST:PORT; empty: none
  ParentState parent;
  bool draining = false;
  std::uint64_t memory_bytes = 0;  ///< of data, over all pools
  WorkerCounters frames;
  CallersCounters calls;
};

struct JobReport {
  PoolId job{};
  std::string name;
  std::vector<std::uint32_t> communicators;
  std::uint64_t slots = 0;  ///< places
  PoolTraffic traffic;
};

/// A turn that waits, and for which members.
struct WaitReport {
  std::uint64_t turn = 0;
  std::vector<std::uint32_t> missing;  ///< positions
};

/// What an operator of a user has done in one pool. By the lock of the pool's worker.
struct OperatorCounters {
  std::uint64_t elements = 0;  ///< that it has folded into others
  std::uint64_t stops = 0;
  std::string last_stop;  ///< a sentence with file:line; empty: none
};

/// An operator of a user, by which a pool folds.
struct OperatorReport {
  std::uint32_t communicator = 0;
  std::string job_name{};
  Digest hash{};
  std::string source{};
  std::uint32_t element_bytes = 0;
  std::uint64_t bytes = 0;  ///< that it takes of the switch's memory
  OperatorCounters counters{};
};

struct PoolReport {
  std::uint32_t communicator = 0;
  std::uint16_t epoch = 0;
  PoolId id{};
  PoolId job{};
  std::string job_name;
  std::vector<PoolNode::Below> members;
  std::string above;
  std::uint32_t slots = 0;
  std::uint32_t payload_bytes = 0;
  bool keeps_order = true;
  Pool::State state{};
  std::string refusal;  ///< a sentence, if it is refused
  std::uint64_t generation = 0;
  std::uint64_t memory_bytes = 0;
  PoolCounters counters;
  PoolTraffic traffic;
  std::vector<std::uint32_t> silent;  ///< positions that have not resumed yet
  std::vector<WaitReport> waits;
  std::vector<OperatorReport> operators;
  std::uint64_t waiting = 0;  ///< turns that wait; more than `waits` has room for, maybe
};

std::string text_of(const StatusReport& report);
std::string text_of(const std::vector<JobReport>& jobs);
std::string text_of(const std::vector<PoolReport>& pools);
/// Handlers, and operators of communicators.
std::string text_of(const HandlersReport& handlers, const std::vector<OperatorReport>& operators);
/// {"error": "..."}: what was asked is no question.
std::string text_of_error(std::string_view sentence);

/// The names of the switches above the one that has said this status; nothing if it is none.
std::optional<std::vector<std::string>> chain_in_status(std::string_view status);

}  // namespace unisono::slots
