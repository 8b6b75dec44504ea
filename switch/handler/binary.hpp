// Binaries of handlers, `.uh`: a program in a container that can be checked by itself (docs/handlers.md, "The binary").
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "switch/handler/program.hpp"

namespace unisono::handler {

/// The binary's bytes. Throws Error(kMalformedProgram) if the program has a flaw, so that what was written can be read.
/// Pure.
std::vector<std::byte> write_binary(const Program& program);

/// Reads and checks everything: lengths, checksum, every instruction (`find_flaw`). Throws Error(kMalformedProgram)
/// that says where, what was found and what is allowed. Safe on any bytes; allocates no more than a small multiple of
/// their number.
Program parse_binary(std::span<const std::byte> bytes);

}  // namespace unisono::handler
