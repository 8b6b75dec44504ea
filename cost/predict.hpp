// How long a call takes by an algorithm, from the algorithm's own programs.
//
// The programs of all ranks are walked as the engine would run them: moves enter a window of 32 in order, a segment
// starts when everything it needs is there, each rank does one thing at a time, and ranks that share a core take turns.
// Every piece of work costs what the machine says. So an algorithm is priced by being in the table; nobody writes
// formulas.
//
// What this leaves out: memory bandwidth is what one rank has while all ranks copy (calibration measures it so), a
// receiver's report of what it has read is as fast as a message, and all ranks enter at the same time. Between hosts,
// the way out of a host and the way into one carry one message after the other, of all ranks.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/algorithm.hpp"
#include "core/program.hpp"
#include "cost/machine.hpp"

namespace unisono::cost {

/// Nanoseconds, and what they are spent on along the critical path.
struct Time {
  double total = 0;
  double latency = 0;  ///< messages on their way, issue of moves, turns of ranks on one core
  double copy = 0;     ///< moving bytes
  double reduce = 0;   ///< combining them
  double sync = 0;     ///< entry into a direct call

  friend bool operator==(const Time&, const Time&) = default;
};

struct Prediction {
  Time time;                     ///< until the last rank has ended
  std::uint64_t moves = 0;       ///< of all ranks
  std::uint64_t most_moves = 0;  ///< of one rank
  std::uint64_t messages = 0;    ///< with data or without
  std::uint64_t message_bytes = 0;
  std::uint64_t remote_bytes = 0;      ///< read from or written to memory of other ranks
  std::uint64_t between_messages = 0;  ///< those of the messages that go from one host to another
  std::uint64_t between_bytes = 0;     ///< with so many bytes
};

/// One rank's part of what is to be priced.
struct RankWork {
  Program program;
  std::span<const std::uint64_t> params;  ///< of indirect counts
  std::uint64_t bytes = 0;                ///< of all buffers of the call: says where its data lies
  std::uint32_t host = 0;                 ///< a number of its own for each host
};

/// Prices programs. `direct`: the ranks enter together and exchange addresses first. Throws Error(kMalformedProgram) if
/// the programs do not end.
Prediction predict(std::span<const RankWork> ranks, bool direct, const Machine& machine);

/// Prices a call by an algorithm that admits it. `call.rank` does not matter. In v-collectives all blocks are equal:
/// `call.count` is their sum, for alltoallv one block. `hosts`: the call's groups are hosts; without groups each rank
/// has one of its own. Between hosts messages are counted, their time is not known.
Prediction predict(const Call& call, const Algorithm& algorithm, const Machine& machine, bool hosts = false);

}  // namespace unisono::cost
