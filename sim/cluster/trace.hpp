// What a cluster tells of its engines when it has run: a timeline of moves, and counters.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "core/generated/spec.hpp"
#include "sim/cluster/call_log.hpp"
#include "sim/cluster/cluster.hpp"

namespace unisono::sim {

struct NodeTrace {
  std::vector<MoveRecord> records;
  std::vector<LoggedCall> calls;
};

/// Moves of all nodes on one timeline, in the Trace Event Format, which Perfetto and chrome://tracing show. A process
/// for each node; in it, for each slot of active calls, a row of calls and as many rows of moves as overlap. Arrows
/// lead from moves that send to those that receive.
void write_trace(std::ostream& out, std::span<const NodeTrace> nodes, std::uint64_t clock_khz);
void write_trace(std::ostream& out, const Cluster& cluster);

/// The counters of all nodes as JSON, by their names. Reads them as hosts do, so time passes. Throws
/// std::runtime_error.
void write_counters(std::ostream& out, Cluster& cluster);

}  // namespace unisono::sim
