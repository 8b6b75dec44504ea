#include "switch/handler/sentence.hpp"

#include "core/text.hpp"

namespace unisono::handler {
namespace {

std::string why(const Surroundings& around, const Outcome& outcome) {
  switch (outcome.stop) {
    case Stop::kBudget:
      return formatted("it has executed {} instructions, which is its budget", outcome.executed);
    case Stop::kLoopBound:
      return "the loop has gone round more often than its bound";
    case Stop::kMemory:
      return "it reaches beyond its memory";
    case Stop::kPayload:
      return formatted("it reads beyond the payload's {} bytes", around.payload.size());
    case Stop::kOutput:
      return "it writes more than the output stream has room for";
    case Stop::kDivide:
      return "it divides by 0";
    case Stop::kNone:
      break;
  }
  return "";
}

}  // namespace

std::string place_of(const Program& program, std::uint32_t word) {
  const std::uint32_t line = word < program.lines.size() ? program.lines[word] : 0;
  return line == 0 ? program.source : formatted("{}:{}", program.source, line);
}

std::string sentence_of(const Program& program, Function function, const Surroundings& around, const Outcome& outcome) {
  const std::uint32_t packet = around.info[static_cast<std::size_t>(Info::kPacket)];
  if (outcome.stop != Stop::kNone) {
    return formatted("{}: {} is stopped at packet {}: {}", place_of(program, outcome.word), name_of(function), packet,
                     why(around, outcome));
  }
  if (outcome.verdict == kGoOn || outcome.verdict == kDrop) return "";
  return formatted("{}: {} fails at packet {} with {}", place_of(program, outcome.word), name_of(function), packet,
                   outcome.verdict);
}

}  // namespace unisono::handler
