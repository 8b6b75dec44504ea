// Program files: the programs of all ranks in one container (docs/program-files.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/program.hpp"

namespace unisono {

/// What a program file holds: one program per rank, and the bytes of each region it is meant to run on.
struct ProgramFile {
  std::vector<Program> programs;  ///< by rank
  /// Bytes of src, dst, scratch, params and window, by rank; scratch and params are at least what the program asks for.
  std::vector<std::array<std::uint64_t, 5>> region_bytes;

  friend bool operator==(const ProgramFile&, const ProgramFile&) = default;
};

/// The file's bytes. Throws Error(kMalformedProgram) if a program breaks a rule of docs/model.md, so that what was
/// written can be read. Pure.
std::vector<std::byte> write_program_file(const ProgramFile& file);

/// Reads and checks everything: lengths, checksum, every move. Throws Error(kMalformedProgram) that says where, what
/// was found and what is allowed. Safe on any bytes; allocates no more than a small multiple of their number.
ProgramFile parse_program_file(std::span<const std::byte> bytes);

}  // namespace unisono
