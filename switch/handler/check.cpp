#include <algorithm>
#include <limits>

#include "core/text.hpp"
#include "switch/handler/program.hpp"

namespace unisono::handler {
namespace {

// Sums that `form_of` gives (spec/handlers.yaml).
constexpr std::uint32_t kWritesRd = 1;
constexpr std::uint32_t kReadsRd = 2;
constexpr std::uint32_t kReadsRa = 4;
constexpr std::uint32_t kReadsSecond = 8;
constexpr std::uint32_t kReadsRc = 16;
constexpr std::uint32_t kScalarForm = 512;
constexpr std::uint32_t kVectorForm = 1024;
constexpr std::uint32_t kOffset = 2048;
constexpr std::uint32_t kTarget = 4096;
constexpr std::uint32_t kLoop = 8192;

constexpr bool has_number(Op op) { return op == Op::kSet || op == Op::kSetHigh || op == Op::kInfo || op == Op::kEnter; }

constexpr std::uint32_t bit(Element element) { return 1U << static_cast<std::uint32_t>(element); }

/// From `first` to before `end`: a function.
struct Span {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

Span span_of(const Program& program, std::uint32_t first) {
  auto end = static_cast<std::uint32_t>(program.words.size());
  for (const std::uint32_t entry : program.entries) {
    if (entry != kNoFunction && entry > first) end = std::min(end, entry);
  }
  return {first, end};
}

std::optional<std::string> register_flaw(const char* name, std::uint32_t number, bool used, bool vector) {
  if (!used) {
    if (number == 0) return std::nullopt;
    return formatted("{} is {}; the instruction has none, so that it must be 0", name, number);
  }
  const std::uint32_t registers = vector ? kVectorRegisters : kScalarRegisters;
  if (number < registers) return std::nullopt;
  return formatted("{} is register {}; there are {}", name, number, registers);
}

bool is_conversion(Op op, Element to, Element from) {
  const bool wide_from = from == Element::kFp32 || from == Element::kFp64;
  if (op == Op::kToSigned || op == Op::kToUnsigned) return wide_from;
  if (op == Op::kSignExtend) return from <= to;
  if (op != Op::kConvert) return true;
  // What is narrow is converted by way of fp32, so that it is rounded once.
  return (to == Element::kFp32) != (from == Element::kFp32) && from >= Element::kFp32;
}

/// What is wrong with a word by itself.
std::optional<std::string> word_flaw(const Instruction& word) {
  if (!fits(word) || word.op == Op::kNone) return "it is no instruction";
  const std::uint32_t form = form_of(word.op);
  const char* const name = name_of(word.op);
  if ((form & (word.vector ? kVectorForm : kScalarForm)) == 0) {
    return formatted("{} has no {} form", name, word.vector ? "vector" : "scalar");
  }
  if ((types_of(word.op) & bit(word.element)) == 0) return formatted("{} has no {}", name, name_of(word.element));
  if (word.aux >= auxes_of(word.op)) {
    return formatted("aux of {} is {}; allowed is 0 to {}", name, word.aux, auxes_of(word.op) - 1);
  }
  if (!is_conversion(word.op, word.element, static_cast<Element>(word.aux & 7U))) {
    return formatted("{} to {} from {}", name, name_of(word.element), name_of(static_cast<Element>(word.aux & 7U)));
  }
  const bool always = word.op == Op::kAgain && word.aux == 2;
  const auto is_vector = [&](std::uint32_t of) { return word.vector && (form & of) != 0; };
  if ((form & kLoop) != 0) {
    if (word.rd >= kMostLoops) return formatted("loop {}; there are {}", word.rd, kMostLoops);
  } else if (auto flaw = register_flaw("rd", word.rd, (form & (kWritesRd | kReadsRd)) != 0, is_vector(32))) {
    return flaw;
  }
  if (auto flaw = register_flaw("ra", word.ra, (form & kReadsRa) != 0 && !always, is_vector(64))) return flaw;
  if (word.immediate && ((form & kReadsSecond) == 0 || (form & kReadsRc) != 0)) {
    return formatted("{} takes no immediate", name);
  }
  if (word.immediate || (form & (kOffset | kTarget)) != 0 || has_number(word.op)) {
    if (word.op == Op::kInfo && !is_known(static_cast<Info>(std::min<std::uint32_t>(word.imm, 255)))) {
      return formatted("it asks for info {}", word.imm);
    }
    return std::nullopt;
  }
  if (word.imm >> 16U != 0) return formatted("imm is {}; without an immediate it holds two registers", word.imm);
  if (auto flaw = register_flaw("rb", rb_of(word), (form & kReadsSecond) != 0, is_vector(128))) return flaw;
  return register_flaw("rc", rc_of(word), (form & kReadsRc) != 0, is_vector(256));
}

/// What is wrong with where a function goes.
std::optional<Flaw> flow_flaw(const Program& program, Span span) {
  const auto& words = program.words;
  const Instruction& last = words[span.end - 1];
  if (last.op != Op::kEnd && !(last.op == Op::kAgain && last.aux == 2)) {
    return Flaw{span.end - 1, "a function's last word must be end, or again that always goes round"};
  }
  for (std::uint32_t at = span.first; at < span.end; ++at) {
    const Instruction& word = words[at];
    if (word.op == Op::kJump || word.op == Op::kBranch) {
      if (word.imm <= at || word.imm >= span.end) {
        return Flaw{at, formatted("{} goes to word {}; allowed are those ahead, up to {}", name_of(word.op), word.imm,
                                  span.end - 1)};
      }
    } else if (word.op == Op::kAgain) {
      if (word.imm > at || word.imm <= span.first || words[word.imm - 1].op != Op::kEnter ||
          words[word.imm - 1].rd != word.rd) {
        return Flaw{at, formatted("again goes to word {}; the word before it must be `enter` of loop {}, in the same "
                                  "function and not ahead",
                                  word.imm, word.rd)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Flaw> find_flaw(const Program& program) {
  const auto size = static_cast<std::uint32_t>(program.words.size());
  if (program.words.empty() || program.words.size() > kMostWords) {
    return Flaw{size, formatted("it has {} words; allowed are 1 to {}", program.words.size(), kMostWords)};
  }
  if (program.lines.size() != program.words.size()) return Flaw{size, "it has not as many lines as words"};
  if (program.memory_bytes > kMostMemoryBytes || program.data.size() > program.memory_bytes) {
    return Flaw{size, formatted("it has {} bytes of memory that begins with {}; allowed are {}, and no more than that",
                                program.memory_bytes, program.data.size(), kMostMemoryBytes)};
  }
  std::uint32_t first = kNoFunction;
  for (std::uint32_t i = 0; i < kFunctions; ++i) {
    const std::uint32_t entry = program.entries[i];
    if (entry == kNoFunction) continue;
    if (entry >= size) return Flaw{size, formatted("function {} begins at word {} of {}", i, entry, size)};
    for (std::uint32_t k = 0; k < i; ++k) {
      if (program.entries[k] == entry) return Flaw{entry, "two functions begin here"};
    }
    first = std::min(first, entry);
  }
  if (first != 0) return Flaw{size, "no function begins at word 0"};
  std::array<bool, kMostLoops> entered{};
  for (std::uint32_t at = 0; at < size; ++at) {
    const Instruction& word = program.words[at];
    if (auto text = word_flaw(word)) return Flaw{at, *text};
    if (word.op != Op::kEnter) continue;
    if (entered[word.rd]) return Flaw{at, formatted("loop {} is entered at a second place", word.rd)};
    entered[word.rd] = true;
  }
  for (const std::uint32_t entry : program.entries) {
    if (entry == kNoFunction) continue;
    if (auto flaw = flow_flaw(program, span_of(program, entry))) return flaw;
  }
  return std::nullopt;
}

std::uint64_t most_executed(const Program& program, Function function) {
  // A word is executed once, and once more for each time that a loop around it goes round. A loop goes round as often
  // as its `enter` is executed, times its bound; that word stands before the loop, so that only loops that begin
  // earlier can be around it.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint32_t entry = program.entries[static_cast<std::size_t>(function)];
  if (entry == kNoFunction) return 0;
  const Span span = span_of(program, entry);
  const auto plus = [](std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; };
  const auto times = [](std::uint64_t a, std::uint64_t b) { return b != 0 && a > kMost / b ? kMost : a * b; };
  std::array<std::uint32_t, kMostLoops> last{};
  for (std::uint32_t at = span.first; at < span.end; ++at) {
    if (program.words[at].op == Op::kAgain) last[program.words[at].rd] = at;
  }
  std::array<std::uint64_t, kMostLoops> rounds{};
  std::array<std::uint32_t, kMostLoops> begin{};
  std::uint32_t loops = 0;
  std::array<std::uint32_t, kMostLoops> order{};
  std::uint64_t total = 0;
  for (std::uint32_t at = span.first; at < span.end; ++at) {
    std::uint64_t executed = 1;
    for (std::uint32_t i = 0; i < loops; ++i) {
      const std::uint32_t loop = order[i];
      if (begin[loop] <= at && at <= last[loop]) executed = plus(executed, rounds[loop]);
    }
    total = plus(total, executed);
    const Instruction& word = program.words[at];
    if (word.op != Op::kEnter || last[word.rd] == 0) continue;
    begin[word.rd] = at + 1;
    rounds[word.rd] = times(executed, word.imm);
    order[loops++] = word.rd;
  }
  return total;
}

std::uint32_t elements_of(const Program& program) {
  std::uint32_t found = 0;
  for (const Instruction& word : program.words) {
    found |= bit(word.element);
    const bool converts = word.op >= Op::kSignExtend && word.op <= Op::kConvert;
    if (converts) found |= 1U << word.aux;
  }
  return found;
}

}  // namespace unisono::handler
