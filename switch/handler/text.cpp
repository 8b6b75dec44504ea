#include "core/text.hpp"

#include "switch/handler/program.hpp"

namespace unisono::handler {
namespace {

std::string register_text(std::uint32_t number, bool vector) { return formatted("{}{}", vector ? 'v' : 's', number); }

std::string number_text(std::uint32_t imm) { return formatted("{}", static_cast<std::int32_t>(imm)); }

std::string operands_of(const Instruction& word) {
  const std::uint32_t form = form_of(word.op);
  std::string text;
  const auto add = [&](const std::string& operand) { text += (text.empty() ? " " : ", ") + operand; };
  const auto is_vector = [&](std::uint32_t of) { return word.vector && (form & of) != 0; };
  if ((form & 8192U) != 0) add(formatted("loop {}", word.rd));
  if ((form & 3U) != 0) add(register_text(word.rd, is_vector(32)));
  if ((form & 2048U) != 0) {
    add(formatted("[{} + {}]", register_text(word.ra, false), number_text(word.imm)));
    return text;
  }
  if ((form & 4U) != 0 && !(word.op == Op::kAgain && word.aux == 2)) add(register_text(word.ra, is_vector(64)));
  if ((form & 8U) != 0) {
    add(word.immediate ? number_text(word.imm) : register_text(rb_of(word), is_vector(128)));
  }
  if ((form & 16U) != 0) add(register_text(rc_of(word), is_vector(256)));
  if ((form & 4096U) != 0) add(formatted("to {}", word.imm));
  if (word.op == Op::kSet || word.op == Op::kSetHigh) add(number_text(word.imm));
  if (word.op == Op::kEnter) add(formatted("{} times", word.imm));
  if (word.op == Op::kInfo) add(name_of(static_cast<Info>(word.imm)));
  return text;
}

std::string variant_of(const Instruction& word) {
  if (word.op == Op::kBranch || word.op == Op::kAgain) {
    constexpr const char* kWhen[] = {".nonzero", ".zero", ".always"};
    return kWhen[word.aux];
  }
  if (word.op == Op::kCompare || word.op == Op::kCompareSigned) {
    std::string text = ".";
    for (std::uint32_t i = 0; i < 4; ++i) {
      if ((word.aux >> i & 1U) != 0) text += "legu"[i];
    }
    return text;
  }
  if (word.op >= Op::kSignExtend && word.op <= Op::kConvert) {
    return formatted(".{}", name_of(static_cast<Element>(word.aux)));
  }
  return "";
}

}  // namespace

std::string text_of(const Program& program) {
  std::string text;
  std::uint32_t line = 0;
  for (std::uint32_t at = 0; at < program.words.size(); ++at) {
    for (std::uint32_t i = 0; i < kFunctions; ++i) {
      if (program.entries[i] != at) continue;
      const auto function = static_cast<Function>(i);
      text += formatted("{}: at most {} instructions\n", name_of(function), most_executed(program, function));
    }
    const Instruction& word = program.words[at];
    std::string what = name_of(word.op);
    // What has one element only has 64 bits.
    if (types_of(word.op) != 1U << static_cast<std::uint32_t>(Element::kI64))
      what += formatted(".{}", name_of(word.element));
    what += variant_of(word) + (word.vector ? ".v" : "");
    std::string row = formatted("  {:>5}  {:<24}{}", at, what, operands_of(word));
    if (program.lines[at] != line && program.lines[at] != 0) {
      line = program.lines[at];
      row = formatted("{:<64}; {}:{}", row, program.source, line);
    }
    text += row + "\n";
  }
  return text;
}

}  // namespace unisono::handler
