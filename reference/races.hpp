// Races: bytes that two moves touch in no certain order.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/interpreter.hpp"

namespace unisono::reference {

/// Looks for a race in a job, given one complete run of it (which tells counts and offsets). Exact for the orders that
/// docs/model.md guarantees to every engine, independent of the schedule of `run`:
///
/// - a move's elements lie between its start and its completion; element k reads its operands when its inputs are
///   there, then writes its local result and sends, in no certain order;
/// - full dependencies and the window order completion before start;
/// - a segment dependency orders element k's local result before element k;
/// - a message orders the sending of element k before element k of the arrival;
/// - an arrival starts after the earlier arrivals from that peer have been consumed.
///
/// Two accesses to a byte, one of them writing, must be ordered as wholes, or element by element where both touch the
/// byte with the same element. Stream ports count as memory that every access writes. `accesses`, if given, receives
/// the number of pairs examined.
///
/// Programs of direct calls also have to end in order: every access to src or dst of another rank must come before the
/// completion of some move of that rank, or the rank could leave the call with its memory still in use.
std::optional<Finding> find_race(const Lowered& lowered, const Run& run, std::uint64_t* pairs = nullptr);

/// Looks for two ranks of a barrier of which one may leave before the other has entered: there must be a way, over
/// messages and dependencies, from some move of each rank to the completion of a move of every other rank. `run` is a
/// complete run of the job.
std::optional<Finding> find_early_exit(const Lowered& lowered, const Run& run);

}  // namespace unisono::reference
