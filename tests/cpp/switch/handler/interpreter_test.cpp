// What each instruction does.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/arithmetic.hpp"
#include "tests/cpp/switch/handler/words.hpp"

using namespace unisono;           // NOLINT(google-build-using-namespace)
using namespace unisono::handler;  // NOLINT(google-build-using-namespace)

namespace {

constexpr Element kI64 = Element::kI64;
constexpr std::uint64_t kMinus = ~std::uint64_t{0};

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// Puts a number of 64 bits into a register.
void set(std::vector<Instruction>& words, std::uint32_t rd, std::uint64_t value) {
  words.push_back(numbered(Op::kSet, rd, 0, static_cast<std::uint32_t>(value)));
  words.push_back(numbered(Op::kSetHigh, rd, 0, static_cast<std::uint32_t>(value >> 32U)));
}

/// What an instruction makes of two numbers: as a scalar, and the same in all lanes.
std::uint64_t made(Op op, Element element, std::uint64_t a, std::uint64_t b = 0, std::uint32_t aux = 0) {
  const bool unary = (form_of(op) & 8U) == 0;
  std::vector<Instruction> words;
  set(words, 1, a);
  set(words, 2, b);
  words.push_back(registers(op, element, 3, 1, unary ? 0 : 2, 0, aux));
  words.push_back(numbered(Op::kStore, 3, 0, 0));
  words.push_back(vector(registers(Op::kSplat, kI64, 1, 1)));
  words.push_back(vector(registers(Op::kSplat, kI64, 2, 2)));
  words.push_back(vector(registers(op, element, 3, 1, unary ? 0 : 2, 0, aux)));
  words.push_back(vector(numbered(Op::kStore, 3, 0, 64)));
  words.push_back(end());
  const Program program = payload_of(std::move(words));
  EXPECT_FALSE(find_flaw(program)) << name_of(op);
  Room room(program);
  EXPECT_EQ(room.run(program).stop, Stop::kNone) << name_of(op);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(room.at<std::uint64_t>(64 + 8 * lane), room.at<std::uint64_t>(0)) << name_of(op);
  }
  return room.at<std::uint64_t>(0);
}

TEST(HandlerWords, IntegersWrapAtTheirElement) {
  EXPECT_EQ(made(Op::kAdd, Element::kI8, 200, 100), 44U);
  EXPECT_EQ(made(Op::kAdd, Element::kI16, 0xffff, 2), 1U);
  EXPECT_EQ(made(Op::kAdd, Element::kI32, 0xffffffff, 2), 1U);
  EXPECT_EQ(made(Op::kAdd, kI64, kMinus, 2), 1U);
  EXPECT_EQ(made(Op::kSub, Element::kI8, 1, 2), 255U);
  EXPECT_EQ(made(Op::kSub, kI64, 1, 2), kMinus);
  EXPECT_EQ(made(Op::kMul, Element::kI16, 0xffff, 0xffff), 1U);
  EXPECT_EQ(made(Op::kMul, Element::kI32, 0x10001, 0x10001), 0x20001U);
  // What does not belong to the element is not looked at.
  EXPECT_EQ(made(Op::kAdd, Element::kI8, 0xabcd00c8, 0x1200000064), 44U);
}

TEST(HandlerWords, DivisionsAndRemainders) {
  EXPECT_EQ(made(Op::kDivUnsigned, Element::kI8, 200, 7), 28U);
  EXPECT_EQ(made(Op::kRemUnsigned, Element::kI32, 0xffffffff, 10), 5U);
  EXPECT_EQ(made(Op::kDivSigned, Element::kI8, 0xf9, 2), 0xfdU);     // -7 / 2 = -3
  EXPECT_EQ(made(Op::kRemSigned, Element::kI8, 0xf9, 2), 0xffU);     // -7 % 2 = -1
  EXPECT_EQ(made(Op::kDivSigned, Element::kI8, 0x80, 0xff), 0x80U);  // -128 / -1
  EXPECT_EQ(made(Op::kRemSigned, Element::kI8, 0x80, 0xff), 0U);
  EXPECT_EQ(made(Op::kDivSigned, kI64, std::uint64_t{1} << 63U, kMinus), std::uint64_t{1} << 63U);
}

TEST(HandlerWords, BitsAndShifts) {
  EXPECT_EQ(made(Op::kAnd, Element::kI8, 0x1f3, 0x1ff), 0xf3U);
  EXPECT_EQ(made(Op::kOr, Element::kI16, 0xf0, 0x0f), 0xffU);
  EXPECT_EQ(made(Op::kXor, kI64, kMinus, 1), kMinus - 1);
  EXPECT_EQ(made(Op::kShiftLeft, Element::kI8, 0x81, 1), 2U);
  EXPECT_EQ(made(Op::kShiftLeft, Element::kI8, 0x81, 9), 2U);  // modulo the element's bits
  EXPECT_EQ(made(Op::kShiftRight, Element::kI8, 0x181, 1), 0x40U);
  EXPECT_EQ(made(Op::kShiftSigned, Element::kI8, 0x81, 1), 0xc0U);
  EXPECT_EQ(made(Op::kShiftSigned, kI64, kMinus << 8U, 4), kMinus << 4U);
  EXPECT_EQ(made(Op::kPopcount, Element::kI8, 0xfff), 8U);
  EXPECT_EQ(made(Op::kLeadingZeros, Element::kI16, 1), 15U);
  EXPECT_EQ(made(Op::kLeadingZeros, Element::kI16, 0), 16U);
  EXPECT_EQ(made(Op::kTrailingZeros, Element::kI32, 8), 3U);
  EXPECT_EQ(made(Op::kTrailingZeros, Element::kI8, 0x100), 8U);
  EXPECT_EQ(made(Op::kSwapBytes, Element::kI16, 0x1234), 0x3412U);
  EXPECT_EQ(made(Op::kSwapBytes, kI64, 0x0102030405060708), 0x0807060504030201U);
}

TEST(HandlerWords, ComparisonsAndExtremes) {
  for (std::uint32_t aux = 0; aux < 8; ++aux) {
    EXPECT_EQ(made(Op::kCompare, Element::kI8, 1, 0xff, aux), aux & 1U);
    EXPECT_EQ(made(Op::kCompare, Element::kI8, 0x1ff, 0xff, aux), aux >> 1U & 1U);
    EXPECT_EQ(made(Op::kCompareSigned, Element::kI8, 1, 0xff, aux), aux >> 2U & 1U);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::uint32_t aux = 0; aux < 16; ++aux) {
    EXPECT_EQ(made(Op::kCompare, Element::kFp32, bits(1.0F), bits(2.0F), aux), aux & 1U);
    EXPECT_EQ(made(Op::kCompare, Element::kFp32, bits(-0.0F), bits(0.0F), aux), aux >> 1U & 1U);
    EXPECT_EQ(made(Op::kCompare, Element::kFp64, bits(2.0), bits(-2.0), aux), aux >> 2U & 1U);
    EXPECT_EQ(made(Op::kCompare, Element::kFp32, bits(nan), bits(2.0F), aux), aux >> 3U & 1U);
  }
  EXPECT_EQ(made(Op::kMin, Element::kI8, 1, 0xff), 1U);
  EXPECT_EQ(made(Op::kMax, Element::kI8, 1, 0xff), 0xffU);
  EXPECT_EQ(made(Op::kMinSigned, Element::kI8, 1, 0xff), 0xffU);
  EXPECT_EQ(made(Op::kMaxSigned, Element::kI8, 1, 0xff), 1U);
  EXPECT_EQ(made(Op::kMin, Element::kFp32, bits(0.0F), bits(-0.0F)), bits(-0.0F));
  EXPECT_EQ(made(Op::kMax, Element::kFp64, bits(-0.0), bits(0.0)), bits(0.0));
  EXPECT_TRUE(
      std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(made(Op::kMin, Element::kFp32, bits(nan), 0)))));
}

TEST(HandlerWords, FloatingPoint) {
  EXPECT_EQ(made(Op::kAdd, Element::kFp32, bits(16777216.0F), bits(1.0F)), bits(16777216.0F));
  EXPECT_EQ(made(Op::kAdd, Element::kFp64, bits(0.1), bits(0.2)), bits(0.1 + 0.2));
  EXPECT_EQ(made(Op::kSub, Element::kFp32, bits(1.0F), bits(3.5F)), bits(-2.5F));
  EXPECT_EQ(made(Op::kMul, Element::kFp32, bits(1e-30F), bits(1e-10F)), bits(1e-30F * 1e-10F));  // subnormal
  EXPECT_EQ(made(Op::kDiv, Element::kFp64, bits(1.0), bits(3.0)), bits(1.0 / 3.0));
  EXPECT_EQ(made(Op::kDiv, Element::kFp32, bits(-1.0F), 0), bits(-std::numeric_limits<float>::infinity()));
}

TEST(HandlerWords, Conversions) {
  const auto from = [](Element element) { return static_cast<std::uint32_t>(element); };
  EXPECT_EQ(made(Op::kTruncate, Element::kI8, 0x1234), 0x34U);
  EXPECT_EQ(made(Op::kSignExtend, kI64, 0x80, 0, from(Element::kI8)), kMinus << 7U);
  EXPECT_EQ(made(Op::kSignExtend, Element::kI16, 0x180, 0, from(Element::kI8)), 0xff80U);
  EXPECT_EQ(made(Op::kFromUnsigned, Element::kFp32, 0x1ff, 0, from(Element::kI8)), bits(255.0F));
  EXPECT_EQ(made(Op::kFromSigned, Element::kFp64, 0xff, 0, from(Element::kI8)), bits(-1.0));
  EXPECT_EQ(made(Op::kFromUnsigned, Element::kFp32, kMinus, 0, from(kI64)), bits(18446744073709551616.0F));
  EXPECT_EQ(made(Op::kToUnsigned, Element::kI8, bits(300.7F), 0, from(Element::kFp32)), 255U);
  EXPECT_EQ(made(Op::kToUnsigned, Element::kI8, bits(-3.0F), 0, from(Element::kFp32)), 0U);
  EXPECT_EQ(made(Op::kToSigned, Element::kI8, bits(-3.7), 0, from(Element::kFp64)), 0xfdU);
  EXPECT_EQ(made(Op::kToSigned, Element::kI8, bits(-300.0), 0, from(Element::kFp64)), 0x80U);
  EXPECT_EQ(made(Op::kToSigned, kI64, bits(9223372036854775808.0), 0, from(Element::kFp64)), kMinus >> 1U);
  EXPECT_EQ(made(Op::kToUnsigned, kI64, bits(1e30F), 0, from(Element::kFp32)), kMinus);
  EXPECT_EQ(made(Op::kToSigned, kI64, bits(std::nan("")), 0, from(Element::kFp64)), 0U);
  EXPECT_EQ(made(Op::kConvert, Element::kFp64, bits(0.1F), 0, from(Element::kFp32)), bits(static_cast<double>(0.1F)));
  EXPECT_EQ(made(Op::kConvert, Element::kFp32, bits(0.1), 0, from(Element::kFp64)), bits(0.1F));
  for (const float value : {0.0F, 1.0F, -2.5F, 65504.0F, 65520.0F, 1e-7F, 6e-8F, 3.14159F}) {
    EXPECT_EQ(made(Op::kConvert, Element::kFp16, bits(value), 0, from(Element::kFp32)),
              arithmetic::narrow_fp16(value).bits);
    EXPECT_EQ(made(Op::kConvert, Element::kBf16, bits(value), 0, from(Element::kFp32)),
              arithmetic::narrow_bf16(value).bits);
  }
  EXPECT_EQ(made(Op::kConvert, Element::kFp32, 0x3c00, 0, from(Element::kFp16)), bits(1.0F));
  EXPECT_EQ(made(Op::kConvert, Element::kFp32, 0x4049, 0, from(Element::kBf16)), bits(3.140625F));
}

/// Lanes 0, 1, 2 and so on times a factor, from memory at 128.
Program counting(std::vector<Instruction> words) {
  std::vector<Instruction> all{vector(numbered(Op::kLoad, 1, 0, 128, Element::kI32))};
  all.insert(all.end(), words.begin(), words.end());
  all.push_back(end());
  return payload_of(std::move(all));
}
Room counted(const Program& program, std::uint32_t factor = 1) {
  Room room(program);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    const std::uint32_t value = i * factor;
    std::memcpy(room.memory.data() + 128 + 4 * i, &value, 4);
  }
  return room;
}

TEST(HandlerWords, LanesAreTakenOutPutInAndSummed) {
  const Program program = counting({
      numbered(Op::kSet, 1, 0, 21),                                // lane 5, modulo 16
      vector(registers(Op::kExtract, kI64, 2, 1, 1)),              //
      vector(immediate(Op::kInsert, kI64, 1, 1, 0xfffffff3)),      // lane 3 = 21
      vector(registers(Op::kMove, kI64, 2, 1)),                    //
      numbered(Op::kSet, 3, 0, 1000),                              //
      vector(registers(Op::kSum, Element::kI32, 3, 2)),            //
      vector(immediate(Op::kCompare, Element::kI32, 3, 1, 8, 1)),  // less than 8
      vector(registers(Op::kSelect, kI64, 4, 3, 1, 3)),            //
      vector(immediate(Op::kStreamout, Element::kI16, 0, 4, 20)),  // 16 at most
      registers(Op::kPut, Element::kI32, 0, 2),                    //
      registers(Op::kPut, Element::kI32, 0, 3),                    //
  });
  ASSERT_FALSE(find_flaw(program));
  Room room = counted(program);
  const Outcome outcome = room.run(program);
  ASSERT_EQ(outcome.stop, Stop::kNone);
  EXPECT_EQ(outcome.output_bytes, 40U);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    const bool less = i < 8 && i != 3;
    EXPECT_EQ(room.written<std::uint16_t>(i), less ? i : 0) << i;
  }
  EXPECT_EQ(room.written<std::uint32_t>(8), 5U);
  EXPECT_EQ(room.written<std::uint32_t>(9), 1000U + 120 + 21 - 3);
}

TEST(HandlerWords, SumsGoFromLaneToLane) {
  // In this order the sum is 16777216; the ones together are more.
  const Program program = payload_of({
      numbered(Op::kSet, 2, 0, static_cast<std::uint32_t>(bits(1.0F))),
      vector(registers(Op::kSplat, kI64, 1, 2)),
      numbered(Op::kSet, 3, 0, static_cast<std::uint32_t>(bits(16777216.0F))),
      vector(registers(Op::kSum, Element::kFp32, 3, 1)),
      registers(Op::kPut, Element::kI32, 0, 3),
      end(),
  });
  Room room(program);
  ASSERT_EQ(room.run(program).stop, Stop::kNone);
  EXPECT_EQ(room.written<float>(0), 16777216.0F);
}

TEST(HandlerWords, SparseAccumulationLeavesOutWhatIsBeyondAndCountsTwiceWhatComesTwice) {
  std::vector<Instruction> words{
      numbered(Op::kSet, 1, 0, 256),                                // the table
      numbered(Op::kSet, 2, 0, 3),                                  // value
      numbered(Op::kSet, 3, 0, 12),                                 // entries
      vector(immediate(Op::kShiftRight, Element::kI32, 1, 1, 1)),   // 0 0 1 1 2 2 3 3 ...
      vector(immediate(Op::kMul, Element::kI32, 1, 1, 2)),          // 0 0 2 2 4 4 6 6 ... 14 14
      vector(registers(Op::kSpvaccVx, Element::kI32, 1, 1, 2, 3)),  //
      vector(registers(Op::kSpvaccVv, Element::kI32, 1, 1, 1, 3)),  //
      numbered(Op::kSet, 4, 0, 100),                                //
      vector(registers(Op::kSpvaccXv, Element::kI32, 4, 1, 1, 3)),  //
      registers(Op::kPut, Element::kI32, 0, 4),                     //
  };
  const Program program = counting(words);
  ASSERT_FALSE(find_flaw(program));
  Room room = counted(program);
  ASSERT_EQ(room.run(program).stop, Stop::kNone);
  std::uint32_t sum = 100;
  for (std::uint32_t i = 0; i < 16; ++i) {
    const bool hit = i < 12 && i % 2 == 0;
    EXPECT_EQ(room.at<std::uint32_t>(256 + 4 * i), hit ? 2 * (3 + i) : 0) << i;
    sum += hit ? 2 * 2 * (3 + i) : 0;
  }
  EXPECT_EQ(room.written<std::uint32_t>(0), sum);
}

TEST(HandlerWords, NarrowTablesRoundAtEachStep) {
  const Program program = payload_of({
      numbered(Op::kSet, 1, 0, static_cast<std::uint32_t>(bits(0.5F))),
      numbered(Op::kSet, 3, 0, 1),
      vector(registers(Op::kSpvaccVx, Element::kFp16, 1, 0, 1, 3)),  // all lanes to entry 0
      numbered(Op::kSet, 2, 0, 64),
      vector(registers(Op::kSpvaccVx, Element::kBf16, 1, 2, 1, 3)),
      end(),
  });
  Room room(program);
  const std::uint16_t half = arithmetic::narrow_fp16(2048.0F).bits;  // its next is 2050
  const std::uint16_t brain = arithmetic::narrow_bf16(1.0F).bits;
  std::memcpy(room.memory.data(), &half, 2);
  std::memcpy(room.memory.data() + 64, &brain, 2);
  ASSERT_EQ(room.run(program).stop, Stop::kNone);
  EXPECT_EQ(room.at<std::uint16_t>(0), half);
  EXPECT_EQ(room.at<std::uint16_t>(64), arithmetic::narrow_bf16(9.0F).bits);
}

TEST(HandlerWords, PayloadIsReadByElementsAndByLanesWithWhatIsBeyondItsEnd) {
  const Program program = payload_of({
      numbered(Op::kTake, 1, 0, 3, Element::kI32),
      registers(Op::kPut, Element::kI32, 0, 1),
      numbered(Op::kSet, 2, 0, 77),
      vector(registers(Op::kSplat, kI64, 1, 2)),
      vector(numbered(Op::kTakeLanes, 1, 0, 1, Element::kI16)),
      vector(immediate(Op::kStreamout, Element::kI16, 0, 1, 16)),
      end(),
  });
  ASSERT_FALSE(find_flaw(program));
  Room room(program);
  for (std::uint8_t i = 0; i < 8; ++i) room.payload.push_back(std::byte{i});
  ASSERT_EQ(room.run(program).stop, Stop::kNone);
  EXPECT_EQ(room.written<std::uint32_t>(0), 0x06050403U);
  EXPECT_EQ(room.written<std::uint16_t>(2), 0x0201U);
  EXPECT_EQ(room.written<std::uint16_t>(4), 0x0605U);
  for (std::size_t i = 5; i < 18; ++i) EXPECT_EQ(room.written<std::uint16_t>(i), 77U) << i;
}

TEST(HandlerWords, WhatReachesTooFarIsStopped) {
  const auto stop = [](std::vector<Instruction> words, std::size_t payload = 0) {
    words.push_back(end());
    const Program program = payload_of(std::move(words), 64);
    EXPECT_FALSE(find_flaw(program));
    Room room(program);
    room.payload.resize(payload);
    return room.run(program).stop;
  };
  EXPECT_EQ(stop({numbered(Op::kLoad, 1, 0, 56)}), Stop::kNone);
  EXPECT_EQ(stop({numbered(Op::kLoad, 1, 0, 57)}), Stop::kMemory);
  EXPECT_EQ(stop({numbered(Op::kStore, 1, 0, 63, Element::kI8)}), Stop::kNone);
  EXPECT_EQ(stop({numbered(Op::kStore, 1, 0, 64, Element::kI8)}), Stop::kMemory);
  EXPECT_EQ(stop({numbered(Op::kLoad, 1, 0, 0xffffffff, Element::kI8)}), Stop::kMemory);
  EXPECT_EQ(stop({numbered(Op::kSet, 2, 0, 0xffffffff), numbered(Op::kLoad, 1, 2, 1, Element::kI8)}), Stop::kNone);
  EXPECT_EQ(stop({vector(numbered(Op::kLoad, 1, 0, 0, Element::kI32))}), Stop::kNone);
  EXPECT_EQ(stop({vector(numbered(Op::kLoad, 1, 0, 1, Element::kI32))}), Stop::kMemory);
  EXPECT_EQ(stop({vector(numbered(Op::kStore, 1, 0, 0, kI64))}), Stop::kMemory);
  EXPECT_EQ(stop({numbered(Op::kTake, 1, 0, 4, Element::kI32)}, 8), Stop::kNone);
  EXPECT_EQ(stop({numbered(Op::kTake, 1, 0, 5, Element::kI32)}, 8), Stop::kPayload);
  EXPECT_EQ(stop({vector(numbered(Op::kTakeLanes, 1, 0, 8, Element::kI32))}, 8), Stop::kNone);
  EXPECT_EQ(stop({vector(numbered(Op::kTakeLanes, 1, 0, 9, Element::kI32))}, 8), Stop::kPayload);
  // A payload of no bytes ends where it begins, whether its address is null or not.
  EXPECT_EQ(stop({vector(numbered(Op::kTakeLanes, 1, 0, 0, Element::kI32))}, 0), Stop::kNone);
  EXPECT_EQ(stop({vector(numbered(Op::kTakeLanes, 1, 0, 1, Element::kI32))}, 0), Stop::kPayload);
  EXPECT_EQ(stop({registers(Op::kDivUnsigned, Element::kI8, 1, 0, 0)}), Stop::kDivide);
  EXPECT_EQ(stop({numbered(Op::kSet, 2, 0, 256), registers(Op::kRemSigned, Element::kI8, 1, 0, 2)}), Stop::kDivide);
  EXPECT_EQ(stop({vector(registers(Op::kDivSigned, kI64, 1, 0, 0))}), Stop::kDivide);
  EXPECT_EQ(stop({registers(Op::kDiv, Element::kFp32, 1, 0, 0)}), Stop::kNone);
  // An entry of the table that is within its limit, but not within memory.
  EXPECT_EQ(stop({numbered(Op::kSet, 1, 0, 1), numbered(Op::kSet, 2, 0, 61),
                  vector(registers(Op::kSpvaccVx, Element::kI32, 0, 2, 1, 1))}),
            Stop::kMemory);
  EXPECT_EQ(stop({numbered(Op::kEnter, 0, 0, 70000), registers(Op::kPut, Element::kI8, 0, 0),
                  numbered(Op::kAgain, 0, 0, 1, kI64, 2)}),
            Stop::kOutput);
}

TEST(HandlerWords, ThePacketIsTold) {
  std::vector<Instruction> words;
  for (std::uint32_t i = 0; i < kInfos; ++i) {
    words.push_back(numbered(Op::kInfo, 1, 0, i));
    words.push_back(registers(Op::kPut, Element::kI32, 0, 1));
  }
  words.push_back(end());
  const Program program = payload_of(std::move(words));
  Room room(program);
  for (std::uint32_t i = 0; i < kInfos; ++i) room.info[i] = 100 + i;
  ASSERT_EQ(room.run(program).stop, Stop::kNone);
  for (std::uint32_t i = 0; i < kInfos; ++i) EXPECT_EQ(room.written<std::uint32_t>(i), 100 + i);
}

}  // namespace
