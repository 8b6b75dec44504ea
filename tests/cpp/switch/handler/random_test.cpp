// Random programs, run by the interpreter and word by word as instructions are described: memory, output, how they end,
// where, and after how many instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/cpp/switch/handler/simple_interpreter.hpp"
#include "tests/cpp/switch/handler/words.hpp"

namespace unisono::handler {
namespace {

constexpr std::uint32_t kMemory = 2048;
constexpr std::uint32_t kUnordered = 8;

class Writer {
 public:
  explicit Writer(std::uint32_t seed) : random_(seed) {}

  Program program() {
    // Numbers of all sizes in registers 1 to 9, some that are elements of memory, and 0 in register 0.
    for (std::uint32_t rd = 1; rd < 10; ++rd) {
      words_.push_back(numbered(Op::kSet, rd, 0, odd() ? number() : below(kMemory)));
      if (odd()) words_.push_back(numbered(Op::kSetHigh, rd, 0, number()));
    }
    for (std::uint32_t rd = 1; rd < 6; ++rd) {
      words_.push_back(vector(numbered(Op::kLoad, rd, 0, 128 * rd, Element::kI64)));
    }
    for (std::uint32_t loop = 0; loop < 3; ++loop) {
      words_.push_back(numbered(Op::kEnter, loop, 0, below(8)));
      const auto begin = static_cast<std::uint32_t>(words_.size());
      for (std::uint32_t i = 0; i < 25; ++i) any();
      words_.push_back(numbered(Op::kAgain, loop, 1 + below(9), begin, Element::kI64, below(2)));
    }
    for (std::uint32_t rd = 1; rd < 10; ++rd) words_.push_back(numbered(Op::kStore, rd, 0, 8 * rd));
    words_.push_back(odd() ? end(below(3)) : registers(Op::kEnd, Element::kI64, 0, 0, 3));
    return payload_of(words_, kMemory);
  }

  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> made(count);
    for (std::byte& byte : made) byte = static_cast<std::byte>(random_());
    return made;
  }
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_()) % end; }

 private:
  bool odd() { return below(2) == 1; }
  std::uint32_t number() { return static_cast<std::uint32_t>(random_()) >> below(32); }

  /// One instruction that a program may have, with registers as they come.
  void any() {
    for (;;) {
      Instruction word;
      word.op = kAllOp[below(kAllOp.size())];
      word.element = kAllElement[below(kAllElement.size())];
      word.vector = odd();
      word.immediate = below(3) == 0;
      word.aux = static_cast<std::uint8_t>(below(16));
      word.rd = static_cast<std::uint8_t>(1 + below(9));
      word.ra = static_cast<std::uint8_t>(below(10));
      word.imm = word.immediate ? number() : (1 + below(9)) | (1 + below(9)) << 8U;
      const bool goes = word.op == Op::kJump || word.op == Op::kBranch;
      if (word.op == Op::kEnd || word.op == Op::kEnter || word.op == Op::kAgain) continue;
      const bool has_offset = (form_of(word.op) & 2048U) != 0;
      if (has_offset) word.imm = below(20) == 0 ? number() : below(kMemory - 128);
      // Most addresses are numbers of their own, so that most programs come further than a few words.
      if (has_offset && below(20) != 0) word.ra = 0;
      if (word.op == Op::kInfo) word.imm = below(kInfos);
      if (goes) word.imm = static_cast<std::uint32_t>(words_.size()) + 1;
      tidy(word);
      std::vector<Instruction> alone{word, end(), end()};
      if (goes) alone.front().imm = 1;
      if (find_flaw(payload_of(alone, kMemory))) continue;
      words_.push_back(word);
      if (goes) words_.push_back(numbered(Op::kSet, 1 + below(9), 0, number()));  // which is jumped over, or not
      if (goes) words_[words_.size() - 2].imm += 1;
      without_nan(word);
      return;
    }
  }

  /// Fields that an instruction does not have are 0.
  static void tidy(Instruction& word) {
    const std::uint32_t form = form_of(word.op);
    if ((form & 3U) == 0) word.rd = 0;
    if ((form & 4U) == 0) word.ra = 0;
    const bool keeps = word.immediate || (form & (2048U | 4096U)) != 0 || word.op == Op::kSet ||
                       word.op == Op::kSetHigh || word.op == Op::kInfo;
    if (keeps) return;
    if ((form & 8U) == 0) word.imm &= 0xff00U;
    if ((form & 16U) == 0) word.imm &= 0xffU;
  }

  /// Which NaN comes out is not specified; 0 takes its place.
  void without_nan(const Instruction& word) {
    const bool floats = word.element >= Element::kFp32 && (form_of(word.op) & 1U) != 0 && word.op != Op::kCompare;
    if (!floats || word.op >= Op::kLoad) return;
    const Element element = word.element == Element::kFp64 ? Element::kFp64 : Element::kFp32;
    const bool vectors = word.vector && word.op != Op::kSum;
    if (word.element >= Element::kFp16) {  // as bits, which are no fp32
      Instruction mask = immediate(Op::kAnd, Element::kI16, word.rd, word.rd, 0x7bff);
      words_.push_back(vectors ? vector(mask) : mask);
      return;
    }
    Instruction compare = registers(Op::kCompare, element, 20, word.rd, word.rd, 0, kUnordered);
    Instruction select = registers(Op::kSelect, Element::kI64, word.rd, 20, 21, word.rd);  // register 21 is 0
    words_.push_back(vectors ? vector(compare) : compare);
    words_.push_back(vectors ? vector(select) : select);
  }

  std::mt19937 random_;
  std::vector<Instruction> words_;
};

/// Runs a program both ways; what ended it.
Stop compare(std::uint32_t seed) {
  Writer writer(seed);
  const Program program = writer.program();
  const auto flaw = find_flaw(program);
  EXPECT_FALSE(flaw) << "seed " << seed << ", word " << flaw->word << ": " << flaw->text;
  if (flaw) return Stop::kNone;
  Room one(program);
  one.memory = writer.bytes(kMemory);
  one.payload = writer.bytes(writer.below(1000));
  one.output.assign(writer.below(writer.below(3) == 0 ? 40 : 4000), std::byte{});
  for (std::uint32_t& info : one.info) info = writer.below(5000);
  Room other = one;
  const std::uint64_t budget = writer.below(3) == 0 ? writer.below(600) : 1U << 20U;
  const Outcome got = one.run(program, budget);
  const Outcome due =
      simple::run(program, Function::kPayload, {other.info, other.payload, other.memory, other.output}, budget);
  EXPECT_EQ(got.stop, due.stop) << "seed " << seed;
  EXPECT_EQ(got.word, due.word) << "seed " << seed;
  EXPECT_EQ(got.executed, due.executed) << "seed " << seed;
  EXPECT_EQ(got.verdict, due.verdict) << "seed " << seed;
  EXPECT_EQ(got.output_bytes, due.output_bytes) << "seed " << seed;
  EXPECT_EQ(one.memory, other.memory) << "seed " << seed << "\n" << text_of(program);
  EXPECT_EQ(one.output, other.output) << "seed " << seed;
  return due.stop;
}

TEST(HandlerRandom, TheInterpreterGivesWhatInstructionsAreDescribedAs) {
  std::array<std::uint32_t, kAllStop.size()> stops{};
  for (std::uint32_t seed = 0; seed < 1500 && !testing::Test::HasFailure(); ++seed) {
    ++stops[static_cast<std::size_t>(compare(seed))];
  }
  for (const Stop stop : kAllStop) EXPECT_GT(stops[static_cast<std::size_t>(stop)], 10U) << name_of(stop);
}

}  // namespace
}  // namespace unisono::handler
