// A handler as its machine sees it (docs/handlers.md): instructions of up to three functions, and memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "switch/handler/generated/isa.hpp"

namespace unisono::handler {

inline constexpr std::uint32_t kNoFunction = 0xffffffff;
inline constexpr std::uint32_t kFunctions = 3;

struct Program {
  std::vector<Instruction> words;
  std::vector<std::uint32_t> lines;  ///< of the source, by word; 0 where none is known
  /// First words of the functions, by `Function`; kNoFunction where there is none. A function ends where the next
  /// begins.
  std::array<std::uint32_t, kFunctions> entries{kNoFunction, kNoFunction, kNoFunction};
  std::uint32_t memory_bytes = 0;
  std::vector<std::uint8_t> data;  ///< what the memory begins with; the rest is 0
  std::string source;              ///< name of the source file

  friend bool operator==(const Program&, const Program&) = default;
};

/// The register that the second operand names, if the instruction has no immediate; and the third.
constexpr std::uint32_t rb_of(const Instruction& word) { return word.imm & 0xffU; }
constexpr std::uint32_t rc_of(const Instruction& word) { return (word.imm >> 8U) & 0xffU; }

/// What is wrong with a program.
struct Flaw {
  std::uint32_t word;  ///< where; the number of words if it is no word's
  std::string text;
};

/// The first rule of docs/handlers.md that the program breaks, or nothing. What has passed reads and writes no register
/// and no loop that is not there, leaves no function, and ends after `most_executed` instructions at the latest.
/// Whether addresses are within memory, payload and output is seen when it runs. Pure.
std::optional<Flaw> find_flaw(const Program& program);

/// How many instructions a function executes at most; the largest number there is if it is more. 0 for a function that
/// is not there. The program must have no flaw. Pure.
std::uint64_t most_executed(const Program& program, Function function);

/// Of a program without flaw: bit e is set if it has instructions of element e, or converts from it.
std::uint32_t elements_of(const Program& program);

/// The program in words, a line for each, as `unisono switch compile --text` prints it.
std::string text_of(const Program& program);

}  // namespace unisono::handler
