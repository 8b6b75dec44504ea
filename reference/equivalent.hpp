// Mutants that are none: mistakes that provably change nothing.
#pragma once

#include <optional>
#include <string>

#include "reference/job.hpp"
#include "reference/mutate.hpp"

namespace unisono::reference {

/// Whether a mutant provably behaves like the job it was made of, with the reason in words. Decided without the
/// checker, by these rules:
///
/// - a dependency was dropped, and the plain event graph (reference/event_graph.hpp) still orders all accesses;
/// - swap was flipped, and the algorithm promises no order: the functions are commutative;
/// - scratch was made smaller, and no move touches what is gone;
/// - two neighbours changed places that share no peer in the same direction, and no link between them was lost, for
///   then program order says nothing about them (rule 11); or one was lost in a program that fits in the window, and
///   the event graph of the result still orders all accesses. Their order is then the old one: everything that could
///   turn it round was in the old program as well, and would have closed a cycle there;
/// - an operand is read where an earlier move had copied it from, nothing writes either place after that move, and the
///   event graph of the result still orders all accesses;
/// - an element more is kept in memory, and the event graph of the result still orders all accesses. An earlier move
/// had
///   copied it there; or by the graph something else is written there before anybody reads it, and before the end,
///   unless the collective leaves open what stands there then;
/// - a signal was dropped, and the plain event graph still orders all accesses and exits.
std::optional<std::string> equivalent(const Job& original, const Mutant& mutant);

}  // namespace unisono::reference
