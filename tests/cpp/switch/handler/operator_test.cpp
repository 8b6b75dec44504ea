// Operators of users: what is one, and that folds depend on their operands alone.
#include "switch/handler/operator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "switch/handler/binary.hpp"
#include "switch/handler/sentence.hpp"
#include "tests/cpp/switch/handler/words.hpp"

namespace unisono::handler {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kLeft = 128;
constexpr std::uint32_t kBlock = 512;
constexpr std::uint32_t kRight = kLeft + 8 * kBlock;
constexpr std::uint32_t kMemory = 10'000;
constexpr std::uint32_t kCount = kMemory - 8;  ///< a word of memory that an operator must find as it was at the begin

/// left[i] += right[i] on 64-bit integers, `kBlock` at once; each function adds `kCount`, which is 0, and then changes
/// it.
Program adds() {
  std::vector<Instruction> words{
      numbered(Op::kEnter, 0, 0, kBlock - 1),
      numbered(Op::kLoad, 2, 1, kLeft),
      numbered(Op::kLoad, 3, 1, kRight),
      registers(Op::kAdd, Element::kI64, 2, 2, 3),
      numbered(Op::kLoad, 3, 0, kCount),
      registers(Op::kAdd, Element::kI64, 2, 2, 3),
      numbered(Op::kStore, 2, 1, kLeft),
      immediate(Op::kAdd, Element::kI64, 1, 1, 8),
      immediate(Op::kAdd, Element::kI64, 4, 4, 1),
      numbered(Op::kInfo, 5, 0, static_cast<std::uint32_t>(Info::kLength)),
      registers(Op::kCompare, Element::kI64, 6, 4, 5, 0, 1),
      numbered(Op::kAgain, 0, 6, 1),
      numbered(Op::kStore, 4, 0, kCount),
      end(),
  };
  Program program = payload_of(std::move(words), kMemory);
  const std::uint32_t shape[] = {kOperatorMagic, 8, kBlock, kLeft, kRight};
  program.data.resize(sizeof shape);
  std::memcpy(program.data.data(), shape, sizeof shape);
  program.source = "adds.c";
  return program;
}

TEST(HandlerOperator, FoldsBlocksOfWhichNoneSeesAnother) {
  const Operator op(write_binary(adds()));
  EXPECT_EQ(op.element_bytes(), 8U);
  for (const std::size_t count : {1U, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock + 7}) {
    // One byte off, so that nothing is aligned.
    std::vector<std::byte> a(8 * count + 1);
    std::vector<std::byte> b(8 * count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t left = 1000 * i;
      const std::uint64_t right = ~i;
      std::memcpy(a.data() + 1 + 8 * i, &left, 8);
      std::memcpy(b.data() + 1 + 8 * i, &right, 8);
    }
    std::string why;
    ASSERT_TRUE(op.fold(a.data() + 1, b.data() + 1, a.data() + 1, count, why)) << why;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t sum = 0;
      std::memcpy(&sum, a.data() + 1 + 8 * i, 8);
      ASSERT_EQ(sum, 999 * i - 1) << i << " of " << count;
    }
  }
}

TEST(HandlerOperator, SaysWhereItIsStopped) {
  Program program = adds();
  program.words[3] = registers(Op::kDivUnsigned, Element::kI64, 2, 2, 3);
  program.lines[3] = 7;
  const Operator op(write_binary(program));
  const std::uint64_t zero = 0;
  std::uint64_t out = 5;
  std::string why;
  const auto* const bytes = reinterpret_cast<const std::byte*>(&zero);
  EXPECT_FALSE(op.fold(bytes, bytes, reinterpret_cast<std::byte*>(&out), 1, why));
  EXPECT_THAT(why, HasSubstr("adds.c:7: payload is stopped at packet 0: it divides by 0"));
  EXPECT_EQ(out, 5U);
  program = adds();
  program.words[13] = end(kDrop);
  EXPECT_FALSE(Operator(write_binary(program)).fold(bytes, bytes, reinterpret_cast<std::byte*>(&out), 1, why));
  EXPECT_THAT(why, HasSubstr("it gives 1, not US_GO_ON"));
}

TEST(HandlerOperator, BlocksShareABudgetThatIsGiven) {
  const Operator op(write_binary(adds()));
  std::vector<std::byte> data(8 * 3 * kBlock);
  std::string why;
  constexpr std::uint64_t kLots = 1U << 20U;
  std::uint64_t budget = kLots;
  ASSERT_TRUE(op.fold(data.data(), data.data(), data.data(), kBlock, budget, why)) << why;
  const std::uint64_t one = kLots - budget;
  EXPECT_GT(one, 10U * kBlock);
  budget = 3 * one;
  ASSERT_TRUE(op.fold(data.data(), data.data(), data.data(), 3 * kBlock, budget, why)) << why;
  EXPECT_EQ(budget, 0U);
  budget = 3 * one - 1;
  EXPECT_FALSE(op.fold(data.data(), data.data(), data.data(), 3 * kBlock, budget, why));
  EXPECT_THAT(why, HasSubstr(formatted("it has executed {} instructions", one - 1)));
  EXPECT_EQ(budget, 0U);
  EXPECT_FALSE(op.fold(data.data(), data.data(), data.data(), 1, budget, why));
}

TEST(HandlerOperator, IsNoneIfItsShapeCannotBe) {
  using Change = std::function<void(Program&)>;
  const auto word = [](std::size_t at, std::uint32_t value) -> Change {
    return [=](Program& program) { std::memcpy(program.data.data() + 4 * at, &value, 4); };
  };
  const std::vector<Change> changes{
      word(0, kOperatorMagic + 1),
      word(1, 0),
      word(1, 65),
      word(2, 0),
      word(2, kBlock - 1),  // less than 4096 bytes
      word(2, kBlock + 1),  // left reaches into right
      word(3, 16),          // into the shape
      word(4, kMemory - 8 * kBlock + 1),
      word(4, ~0U),
      [](Program& program) { program.data.clear(); },
      [](Program& program) { program.memory_bytes = kMostOperatorMemory + 1; },
      [](Program& program) { std::swap(program.entries[0], program.entries[1]); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Program program = adds();
    changes[i](program);
    EXPECT_FALSE(operator_shape(program).has_value()) << i;
    EXPECT_THROW(Operator(write_binary(program)), Error) << i;
  }
  EXPECT_THROW(Operator(std::vector<std::byte>(kMostOperatorBinary + 1)), Error);
}

}  // namespace
}  // namespace unisono::handler
