// Whether one rank's program obeys the rules that its own text shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/program.hpp"

namespace unisono {

/// The first rule of docs/model.md that a program breaks.
struct Malformation {
  std::size_t move = 0;
  std::string text;  ///< what was given and what is allowed
};

/// Checks the program of `rank` in a communicator of `size` ranks: known enumerators, fields in range, peers and lists
/// that exist, dependencies that do not reach before the start, combinations of operands, function and datatype that
/// have a meaning. Does not look at other ranks, at region sizes or at memory. Thread-safe.
std::optional<Malformation> check_program(const Program& program, std::uint32_t size);

}  // namespace unisono
