// Examination of a program before it runs: everything that can be seen without its data.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/call.hpp"
#include "core/error.hpp"
#include "core/program.hpp"

namespace unisono {
struct Algorithm;
}

namespace unisono::cclo {

/// A program that keeps the rules of docs/model.md, as far as they can be seen on one rank.
struct CheckedProgram {
  Program program;               ///< without its moves if they are made again for each launch
  std::uint32_t move_count = 0;  ///< of its moves, also if they are made again
  /// What makes the moves of a long program (MoveStream), and of which call; null: they stand in `program`.
  const Algorithm* made_by = nullptr;
  Call made_for;
  std::array<std::uint64_t, 5> extents{};  ///< bytes it touches of each Region at fixed offsets
  bool writes_params = false;              ///< indirect values are known only when a move starts
  bool messages = false;                   ///< it exchanges messages
  bool remote_memory = false;              ///< it puts or gets
  /// By Region: all that reads it takes its elements once, in their order, and nothing writes it; and likewise for
  /// results. So a stream can be in its place (docs/streams.md).
  std::array<bool, 5> reads_once{}, writes_once{};
  /// Ports that its moves name: bit n is port n.
  std::uint32_t ports_to_engine = 0, ports_to_kernel = 0;
  bool sends_to_ports = false;  ///< results of its moves go to stream ports of peers
};

/// Examines `program` for a communicator of `size` ranks: the rules of core/program_check.hpp, its memory, and what
/// it asks of the engine. Throws Error(kMalformedProgram) naming the move and the rule, or Error(kUnsupported) for
/// what this engine or a member (`capability`, agreed) lacks. Only if `direct` may it reach src and dst of peers.
std::shared_ptr<CheckedProgram> check_program(Program program, std::uint32_t size, const Capability& capability,
                                              bool direct = false);

}  // namespace unisono::cclo
