// Examination of a program before it runs: everything that can be seen without its data.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/error.hpp"
#include "core/program.hpp"

namespace unisono::cclo {

/// A program that keeps the rules of docs/model.md, as far as they can be seen on one rank.
struct CheckedProgram {
  Program program;
  std::array<std::uint64_t, 5> extents{};  ///< bytes it touches of each Region at fixed offsets
  bool writes_params = false;              ///< indirect values are known only when a move starts
  bool messages = false;                   ///< it exchanges messages
  bool remote_memory = false;              ///< it puts or gets
};

/// Examines `program` for a communicator of `size` ranks: the rules of core/program_check.hpp, its memory, and what
/// it asks of the engine. Throws Error(kMalformedProgram) naming the move and the rule, or Error(kUnsupported) for
/// what this engine or a member (`capability`, agreed) lacks. Only if `direct` may it reach src and dst of peers.
std::shared_ptr<const CheckedProgram> check_program(Program program, std::uint32_t size, const Capability& capability,
                                                    bool direct = false);

}  // namespace unisono::cclo
