// What is proven of programs of switches besides what is proven of all: docs/switches.md.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/finding.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"

namespace unisono::reference {

/// Arrivals in any order, which are added to `count`. An algorithm may have them only where the order changes no bit.
/// Fills `all`, if there are any, with a run that stands for all their orders; `least`, which took them as listed, must
/// have its normal form.
std::optional<Finding> check_any(Interpreter& interpreter, const SymbolRun& least, std::optional<SymbolRun>& all,
                                 std::uint64_t& count);

/// Of a job that has switches: it ends where switches have one slot, and members that follow one another are behind one
/// port; and members that stand in for the switches make the same expressions as `least`, operand by operand.
std::optional<Finding> check_switches(Interpreter& interpreter, const SymbolRun& least);

/// Whether there are programs of switches.
bool has_switches(const Job& job);

}  // namespace unisono::reference
