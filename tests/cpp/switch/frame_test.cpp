// Frames as bytes.
#include "switch/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/crc32c.hpp"

namespace unisono::slots {
namespace {

SlotFrame contribution() {
  SlotFrame head{};
  head.kind = SlotKind::kContribute;
  head.opcode = Collective::kAllreduce;
  head.func = Func::kSum;
  head.dtype = Datatype::kFp32;
  head.generation = 0x0102030405060708;
  head.communicator = 7;
  head.epoch = 9;
  head.slot = 3;
  head.second = true;
  head.turn = (std::uint64_t{1} << 40U) + 7;
  head.total = 1000;
  head.call = 11;
  head.count = 4;
  head.member = 5;
  return head;
}

std::vector<std::byte> payload(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
  return data;
}

std::vector<std::byte> written(const SlotFrame& head, std::span<const std::byte> data) {
  std::vector<std::byte> bytes(frame_bytes(data.size()));
  EXPECT_EQ(write(head, data, bytes), bytes.size());
  return bytes;
}

/// With the checksum made right again after a change of a byte of the header.
void reseal(std::vector<std::byte>& bytes) {
  const std::uint32_t sum = crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), 60});
  std::memcpy(&bytes[60], &sum, sizeof sum);
}

FrameFault fault_of(const std::vector<std::byte>& bytes) {
  FrameView frame;
  return parse(bytes, frame);
}

TEST(SlotFrames, ComeBackAsTheyWere) {
  const auto data = payload(16);
  const auto bytes = written(contribution(), data);
  EXPECT_EQ(bytes.size(), 64U + 16 + 4);
  FrameView frame;
  ASSERT_EQ(parse(bytes, frame), FrameFault::kNone);
  SlotFrame expected = contribution();
  expected.magic = kSlotMagic;
  expected.version = kSlotProtocol;
  expected.bytes = 16;
  expected.checksum = frame.head.checksum;
  EXPECT_EQ(frame.head, expected);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), frame.payload.begin(), frame.payload.end()));
}

TEST(SlotFrames, LieWhereThePageSaysTheyDo) {
  const auto bytes = written(contribution(), payload(16));
  const auto number = [&bytes](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes[at], size);
    return value;
  };
  EXPECT_EQ(number(0, 2), 0x4c53U);
  EXPECT_EQ(number(2, 1), 1U);
  EXPECT_EQ(number(3, 1), 1U);
  EXPECT_EQ(number(4, 1), static_cast<std::uint64_t>(Collective::kAllreduce));
  EXPECT_EQ(number(5, 1), static_cast<std::uint64_t>(Func::kSum));
  EXPECT_EQ(number(6, 1), static_cast<std::uint64_t>(Datatype::kFp32));
  EXPECT_EQ(number(8, 8), 0x0102030405060708U);
  EXPECT_EQ(number(16, 4), 7U);
  EXPECT_EQ(number(20, 2), 9U);
  EXPECT_EQ(number(22, 2), 0x8003U);
  EXPECT_EQ(number(24, 8), (std::uint64_t{1} << 40U) + 7);
  EXPECT_EQ(number(32, 8), 1000U);
  EXPECT_EQ(number(40, 4), 11U);
  EXPECT_EQ(number(48, 4), 4U);
  EXPECT_EQ(number(52, 2), 16U);
  EXPECT_EQ(number(56, 4), 5U);
}

TEST(SlotFrames, EveryAlteredBitIsNoticed) {
  const auto bytes = written(contribution(), payload(16));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto altered = bytes;
    altered[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(fault_of(altered), FrameFault::kNone) << "bit " << bit;
  }
}

TEST(SlotFrames, SayWhatIsWrong) {
  const auto good = written(contribution(), payload(16));
  auto bytes = good;
  bytes.resize(63);
  EXPECT_EQ(fault_of(bytes), FrameFault::kTooShort);
  bytes = good;
  bytes.pop_back();
  EXPECT_EQ(fault_of(bytes), FrameFault::kBadLength);
  bytes = good;
  bytes[2] = std::byte{2};
  reseal(bytes);
  EXPECT_EQ(fault_of(bytes), FrameFault::kOtherVersion);
  bytes = good;
  bytes[64] ^= std::byte{1};
  EXPECT_EQ(fault_of(bytes), FrameFault::kBadPayload);
  bytes = good;
  bytes[7] = std::byte{1};  // reserved
  reseal(bytes);
  EXPECT_EQ(fault_of(bytes), FrameFault::kMalformed);
  SlotFrame head = contribution();
  head.factor = 5;
  EXPECT_EQ(fault_of(written(head, payload(16))), FrameFault::kNone);
  head.opcode = Collective::kBcast;  // has no result to multiply
  head.func = Func::kNone;
  EXPECT_EQ(fault_of(written(head, payload(16))), FrameFault::kMalformed);
  head = contribution();
  head.opcode = Collective::kAlltoall;  // not carried by slots
  EXPECT_EQ(fault_of(written(head, payload(16))), FrameFault::kMalformed);
  head = contribution();
  head.count = 5;
  EXPECT_EQ(fault_of(written(head, payload(16))), FrameFault::kBadLength);
  head = SlotFrame{};
  head.kind = SlotKind::kResume;
  head.turn = 8;
  head.total = 3;
  EXPECT_EQ(fault_of(written(head, {})), FrameFault::kNone);
  head.factor = 1;
  EXPECT_EQ(fault_of(written(head, {})), FrameFault::kMalformed);
  head.factor = 0;
  head.count = 1;
  EXPECT_EQ(fault_of(written(head, {})), FrameFault::kMalformed);
}

TEST(SlotFrames, RefusalsAreSentences) {
  const SlotRefusal refusal{SlotField::kDtype,
                            3,
                            0,
                            2,
                            static_cast<std::uint64_t>(Datatype::kFp32),
                            static_cast<std::uint64_t>(Datatype::kInt32)};
  SlotFrame head{};
  head.kind = SlotKind::kRefuse;
  const auto data = bytes_of(refusal);
  const auto bytes = written(head, data);
  FrameView frame;
  ASSERT_EQ(parse(bytes, frame), FrameFault::kNone);
  EXPECT_EQ(refusal_in(frame), refusal);
  EXPECT_EQ(sentence_of(refusal), "call 3: rank 0 says fp32, rank 2 says int32; all ranks must say the same");
  EXPECT_EQ(
      sentence_of({SlotField::kFactor, 3, 0, 2, 17, 0}),
      "call 3: rank 0 and rank 2 give different factors of the result (post_scale); all ranks must give the same");
}

}  // namespace
}  // namespace unisono::slots
