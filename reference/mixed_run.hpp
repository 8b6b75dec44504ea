// Runs a job on a mix of lanes, credits and grants (mix.hpp says what and why), by a schedule that a seed chooses.
//
// The proofs need one run each, for on their channels nothing that can go on is ever stopped. Here that does not hold
// by itself: whether a message goes by a credit or by a grant depends on what has come back by then. So runs of
// several schedules test what one cannot prove.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/channel.hpp"
#include "reference/interpreter.hpp"
#include "reference/mix.hpp"

namespace unisono::reference {

/// Runs the interpreter's job, whose programs are well formed, to its end or to what is wrong; who waits for whom
/// included. `make` may give other channels than those of the mix, for tests. Throws Error(kInvalidArgument) if the mix
/// is one of another number of ranks, or has a channel on which nothing could ever be sent.
SymbolRun run_mixed(Interpreter& interpreter, const Mix& mix, const MakeChannel& make = make_channel);

/// Runs a job on `mixes_of(job, draws, seed)` one after the other, and compares all memory with that of `least`, a run
/// of the same interpreter that has ended well; of programs with arrivals in `any` order, the result with the promise.
/// Returns the first thing wrong, with the mix in words. Counts the runs that were made.
std::optional<Finding> check_mixes(Interpreter& interpreter, const SymbolRun& least, std::uint32_t draws,
                                   std::uint64_t seed, std::uint64_t& runs);

}  // namespace unisono::reference
