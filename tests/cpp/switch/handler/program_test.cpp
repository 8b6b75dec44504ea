// Which programs a loader takes, and how their binaries are read.
#include <gmock/gmock.h>

#include <random>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "switch/handler/binary.hpp"
#include "tests/cpp/switch/handler/words.hpp"

using namespace unisono;           // NOLINT(google-build-using-namespace)
using namespace unisono::handler;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

namespace {

constexpr Element kI64 = Element::kI64;

/// Goes round 10 times, and 3 times in each of them.
Program nested() {
  return payload_of({
      numbered(Op::kEnter, 0, 0, 9),               // 0
      immediate(Op::kAdd, kI64, 1, 1, 1),          // 1: outer
      numbered(Op::kSet, 2, 0, 0),                 // 2
      numbered(Op::kEnter, 1, 0, 2),               // 3
      immediate(Op::kAdd, kI64, 2, 2, 1),          // 4: inner
      immediate(Op::kAdd, kI64, 3, 3, 1),          // 5
      immediate(Op::kCompare, kI64, 4, 2, 3, 1),   // 6
      numbered(Op::kAgain, 1, 4, 4, kI64, 0),      // 7
      immediate(Op::kCompare, kI64, 4, 1, 10, 1),  // 8
      numbered(Op::kAgain, 0, 4, 1, kI64, 0),      // 9
      numbered(Op::kStore, 3, 0, 8),               // 10
      end(5),                                      // 11
  });
}

std::string flaw_of(const Program& program) {
  const auto flaw = find_flaw(program);
  return flaw ? flaw->text : "";
}

std::string refusal_of(std::span<const std::byte> bytes) {
  try {
    parse_binary(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMalformedProgram);
    return error.what();
  }
  return "";
}

/// The checksum put right, so that what lies behind it is reached.
std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
  const std::uint32_t sum = crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size() - 4});
  std::memcpy(bytes.data() + bytes.size() - 4, &sum, sizeof sum);
  return bytes;
}

TEST(Handlers, NestedLoopsEndAndTheirCostIsKnown) {
  const Program program = nested();
  EXPECT_EQ(flaw_of(program), "");
  Room room(program);
  const Outcome outcome = room.run(program);
  EXPECT_EQ(outcome.stop, Stop::kNone);
  EXPECT_EQ(outcome.verdict, 5U);
  EXPECT_EQ(room.at<std::uint64_t>(8), 30U);
  // 0, 10 and 11 once; 1 to 3, 8 and 9 ten times; 4 to 7 thirty times.
  EXPECT_EQ(outcome.executed, 3U + 50U + 120U);
  EXPECT_EQ(most_executed(program, Function::kPayload), outcome.executed);
  EXPECT_EQ(most_executed(program, Function::kHeader), 0U);
}

TEST(Handlers, ALoopThatGoesRoundMoreOftenThanItsBoundIsStopped) {
  Program program = nested();
  program.words[3].imm = 1;
  Room room(program);
  const Outcome outcome = room.run(program);
  EXPECT_EQ(outcome.stop, Stop::kLoopBound);
  EXPECT_EQ(outcome.word, 7U);
}

TEST(Handlers, TheBudgetIsExact) {
  const Program program = nested();
  for (const std::uint64_t budget : {0U, 1U, 100U, 172U, 173U, 174U}) {
    Room room(program);
    const Outcome outcome = room.run(program, budget);
    EXPECT_EQ(outcome.stop, budget < 173 ? Stop::kBudget : Stop::kNone) << budget;
    EXPECT_EQ(outcome.executed, std::min<std::uint64_t>(budget, 173));
  }
}

TEST(Handlers, WhatBreaksARuleIsRefusedWithTheRule) {
  const auto with = [](std::size_t at, Instruction word) {
    Program program = nested();
    program.words[at] = word;
    return flaw_of(program);
  };
  EXPECT_THAT(with(1, numbered(Op::kJump, 0, 0, 1)),
              HasSubstr("jump goes to word 1; allowed are those ahead, up to 11"));
  EXPECT_THAT(with(1, numbered(Op::kBranch, 0, 1, 12)), HasSubstr("branch goes to word 12"));
  EXPECT_THAT(with(9, numbered(Op::kAgain, 0, 4, 2)), HasSubstr("the word before it must be `enter` of loop 0"));
  EXPECT_THAT(with(9, numbered(Op::kAgain, 1, 4, 1)), HasSubstr("the word before it must be `enter` of loop 1"));
  EXPECT_THAT(with(3, numbered(Op::kEnter, 0, 0, 2)), HasSubstr("loop 0 is entered at a second place"));
  EXPECT_THAT(with(3, numbered(Op::kEnter, 64, 0, 2)), HasSubstr("loop 64; there are 64"));
  EXPECT_THAT(with(11, numbered(Op::kSet, 2, 0, 2)), HasSubstr("a function's last word must be end"));
  EXPECT_THAT(with(1, immediate(Op::kAdd, kI64, 64, 1, 1)), HasSubstr("rd is register 64; there are 64"));
  EXPECT_THAT(with(1, vector(immediate(Op::kAdd, kI64, 1, 32, 1))), HasSubstr("ra is register 32; there are 32"));
  EXPECT_THAT(with(1, registers(Op::kAdd, kI64, 1, 1, 70)), HasSubstr("rb is register 70"));
  EXPECT_THAT(with(1, registers(Op::kAdd, kI64, 1, 1, 1, 1)), HasSubstr("rc is 1; the instruction has none"));
  EXPECT_THAT(with(1, immediate(Op::kSelect, kI64, 1, 1, 1)), HasSubstr("select takes no immediate"));
  EXPECT_THAT(with(1, registers(Op::kAnd, Element::kFp32, 1, 1)), HasSubstr("and has no fp32"));
  EXPECT_THAT(with(1, registers(Op::kCompareSigned, kI64, 1, 1, 1, 0, 8)), HasSubstr("aux of compare_signed is 8"));
  EXPECT_THAT(with(1, vector(end())), HasSubstr("end has no vector form"));
  EXPECT_THAT(with(1, registers(Op::kSplat, kI64, 1, 1)), HasSubstr("splat has no scalar form"));
  EXPECT_THAT(with(1, registers(Op::kConvert, Element::kFp16, 1, 1, 0, 0, 7)), HasSubstr("convert to fp16 from bf16"));
  EXPECT_THAT(with(1, registers(Op::kSignExtend, Element::kI8, 1, 1, 0, 0, 2)),
              HasSubstr("sign_extend to i8 from i32"));
  EXPECT_THAT(with(1, numbered(Op::kInfo, 1, 0, 6)), HasSubstr("it asks for info 6"));
  EXPECT_THAT(with(1, Instruction{}), HasSubstr("it is no instruction"));
  EXPECT_EQ(find_flaw(payload_of({}))->text, "it has 0 words; allowed are 1 to 16384");
  Program program = nested();
  program.memory_bytes = kMostMemoryBytes + 1;
  EXPECT_THAT(flaw_of(program), HasSubstr("bytes of memory"));
  program = nested();
  program.entries[0] = 0;
  EXPECT_THAT(flaw_of(program), HasSubstr("two functions begin here"));
  program.entries[0] = 12;
  EXPECT_THAT(flaw_of(program), HasSubstr("function 0 begins at word 12 of 12"));
}

TEST(Handlers, AFunctionDoesNotGoOnInAnother) {
  Program program = nested();
  program.entries[static_cast<std::size_t>(Function::kCompletion)] = 11;
  EXPECT_THAT(flaw_of(program), HasSubstr("a function's last word must be end"));
  program.words[10] = end();
  EXPECT_EQ(flaw_of(program), "");
  program.words[8] = numbered(Op::kJump, 0, 0, 11);
  EXPECT_THAT(flaw_of(program), HasSubstr("jump goes to word 11"));
}

TEST(Handlers, ABinaryIsReadAsItWasWritten) {
  Program program = nested();
  program.data = {1, 2, 3};
  program.lines[4] = 77;
  const auto bytes = write_binary(program);
  EXPECT_EQ(parse_binary(bytes), program);
  EXPECT_EQ(write_binary(parse_binary(bytes)), bytes);
}

TEST(Handlers, ABinaryThatWasChangedIsRefused) {
  const auto bytes = write_binary(nested());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{0x10};
    EXPECT_NE(refusal_of(changed), "") << i;
    EXPECT_NE(refusal_of(std::span(bytes).first(i)), "") << i;
  }
  auto other = bytes;
  other[4] = std::byte{2};
  EXPECT_THAT(refusal_of(sealed(other)), HasSubstr("handler: version 2; this library reads version 1"));
  other = bytes;
  other[32] ^= std::byte{1};  // elements
  EXPECT_THAT(refusal_of(sealed(other)), HasSubstr("it says that it needs elements"));
  other = bytes;
  other[40 + 7 * 8 + 4] = std::byte{9};  // again goes elsewhere
  EXPECT_THAT(refusal_of(sealed(other)), HasSubstr("handler: word 7 (by hand:0): again goes to word 9"));
}

TEST(Handlers, AnyWordsAreRefusedOrEndInTime) {
  std::mt19937 random(20);  // NOLINT(bugprone-random-generator-seed): the same on every machine
  const auto begin = write_binary(nested());
  std::uint32_t ran = 0;
  for (std::uint32_t round = 0; round < 60000; ++round) {
    auto bytes = begin;
    for (std::uint32_t changes = 1 + static_cast<std::uint32_t>(random() % 3); changes-- > 0;) {
      const std::size_t at = random() % 8 == 0 ? random() % bytes.size() : 40 + random() % (12 * 8);
      bytes[at] = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 64);
    }
    Program program;
    try {
      program = parse_binary(sealed(bytes));
    } catch (const Error&) {
      // Which elements it needs is no part of what is looked for.
      continue;
    }
    ++ran;
    if (program.memory_bytes > 1U << 16U) continue;
    Room room(program);
    room.payload.resize(random() % 100);
    const Outcome outcome = room.run(program, 20000);
    EXPECT_LE(outcome.executed, 20000U);
    EXPECT_LE(outcome.executed, most_executed(program, Function::kPayload));
    EXPECT_LT(outcome.word, program.words.size());
  }
  EXPECT_GT(ran, 500U);
}

std::uint32_t drawn(std::mt19937& random) { return static_cast<std::uint32_t>(random()); }

/// Any instruction but those that go elsewhere, as the rules have it; most numbers are small.
Instruction sound_word(std::mt19937& random) {
  const auto up_to = [&](std::uint32_t most) { return drawn(random) % (most + 1); };
  while (true) {
    Instruction word;
    word.op = kAllOp[up_to(static_cast<std::uint32_t>(kAllOp.size()) - 1)];
    const std::uint32_t form = form_of(word.op);
    if (word.op == Op::kEnd || (form & (4096U | 8192U)) != 0) continue;
    word.vector = up_to(1) != 0;
    word.element = static_cast<Element>(up_to(7));
    word.aux = static_cast<std::uint8_t>(up_to(15));
    word.rd = static_cast<std::uint8_t>(up_to(7) & ((form & 3U) != 0 ? 7U : 0U));
    word.ra = static_cast<std::uint8_t>(up_to(7) & ((form & 4U) != 0 ? 7U : 0U));
    const bool second = (form & 8U) != 0;
    const bool third = (form & 16U) != 0;
    word.immediate = second && !third && up_to(1) != 0;
    if (word.immediate || (form & 2048U) != 0 || word.op == Op::kSet || word.op == Op::kSetHigh) {
      word.imm = up_to(3) == 0 ? drawn(random) : up_to(300);
    } else if (word.op == Op::kInfo) {
      word.imm = up_to(kInfos - 1);
    } else {
      word.imm = (second ? up_to(7) : 0) | (third ? up_to(7) : 0) << 8U;
    }
    if (!find_flaw(payload_of({word, end()}))) return word;
  }
}

TEST(Handlers, SoundProgramsStayWithinTheirWallsAndBounds) {
  std::mt19937 random(21);  // NOLINT(bugprone-random-generator-seed): the same on every machine
  std::array<std::uint32_t, kAllStop.size()> stops{};
  for (std::uint32_t round = 0; round < 3000; ++round) {
    std::vector<Instruction> words;
    std::vector<std::uint32_t> open;  // loops, by the word behind their enter
    std::uint32_t loops = 0;
    while (words.size() < 60) {
      const std::uint32_t choice = drawn(random) % 20;
      const auto at = static_cast<std::uint32_t>(words.size());
      if (choice == 0 && loops < 5) {
        words.push_back(numbered(Op::kEnter, loops++, 0, drawn(random) % 5));
        open.push_back(at + 1);
      } else if (choice == 1 && !open.empty() && open.back() <= at) {
        const std::uint32_t always = drawn(random) % 3;
        words.push_back(numbered(Op::kAgain, words[open.back() - 1].rd, always == 2 ? 0 : drawn(random) % 8,
                                 open.back(), kI64, always));
        if (drawn(random) % 2 == 0) open.pop_back();
      } else if (choice == 2) {
        words.push_back(
            numbered(Op::kBranch, 0, drawn(random) % 8, at + 1 + drawn(random) % (60 - at), kI64, drawn(random) % 2));
      } else {
        words.push_back(sound_word(random));
      }
    }
    words.push_back(end());
    Program program = payload_of(std::move(words), 512);
    ASSERT_EQ(flaw_of(program), "");
    EXPECT_EQ(parse_binary(write_binary(program)), program);
    EXPECT_FALSE(text_of(program).empty());
    Room room(program);
    room.payload.resize(drawn(random) % 300, std::byte{0x41});
    room.output.resize(200);
    const std::uint64_t most = most_executed(program, Function::kPayload);
    const Outcome outcome = room.run(program, 1U << 20U);
    EXPECT_LE(outcome.executed, most);
    EXPECT_LE(outcome.output_bytes, room.output.size());
    ++stops[static_cast<std::size_t>(outcome.stop)];
  }
  for (const Stop stop : {Stop::kNone, Stop::kLoopBound, Stop::kMemory, Stop::kPayload, Stop::kOutput, Stop::kDivide}) {
    EXPECT_GT(stops[static_cast<std::size_t>(stop)], 0U) << name_of(stop);
  }
}

TEST(Handlers, TheTextNamesWordsAndLines) {
  Program program = nested();
  program.lines.assign(program.words.size(), 3);
  const std::string text = text_of(program);
  EXPECT_THAT(text, HasSubstr("payload: at most 173 instructions\n"));
  EXPECT_THAT(text, HasSubstr("enter                    loop 0, 9 times"));
  EXPECT_THAT(text, HasSubstr("again.nonzero            loop 1, s4, to 4"));
  EXPECT_THAT(text, HasSubstr("store.i64                s3, [s0 + 8]"));
  EXPECT_THAT(text, HasSubstr("; by hand:3"));
}

}  // namespace
