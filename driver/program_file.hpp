// Program files: the programs of all ranks as text (docs/program-files.md).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/program.hpp"

namespace unisono::driver {

/// Reads the programs of all ranks. Throws Error(kMalformedProgram) that names the line and what is wrong.
/// Whether the moves obey the model is for the engine and the checker to say.
std::vector<Program> read_program_file(std::span<const std::byte> bytes);

/// What stands behind a move for people to read.
using ProgramComment = std::function<std::string(const Program& program, std::size_t index)>;

/// Writes a program file; the inverse of reading.
std::string write_program_file(std::span<const Program> programs, const ProgramComment& comment = {});

}  // namespace unisono::driver
