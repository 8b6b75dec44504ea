// The generated records: every field survives, and what is not a legal value is refused.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono {
namespace {

template <typename Words>
void randomise(Words& words, std::mt19937_64& random) {
  for (std::uint64_t& word : words) word = random();
}

/// A record as the tests see it: how words come back, and when they are legal.
template <std::size_t Words>
struct Shape {
  std::string name;
  std::array<std::uint64_t, Words> (*again)(const std::array<std::uint64_t, Words>&);
  bool (*well_formed)(const std::array<std::uint64_t, Words>&);
  std::vector<unsigned> reserved;  ///< bits that must be zero
};

std::vector<unsigned> range(unsigned begin, unsigned end) {
  std::vector<unsigned> bits;
  for (unsigned bit = begin; bit < end; ++bit) bits.push_back(bit);
  return bits;
}

template <std::size_t Words>
void check(const Shape<Words>& shape) {
  SCOPED_TRACE(shape.name);
  std::array<std::uint64_t, Words> zero{};
  EXPECT_TRUE(shape.well_formed(zero)) << "a cleared record is legal";
  std::mt19937_64 random(Words);
  int legal = 0;
  for (int i = 0; i < 5000; ++i) {
    std::array<std::uint64_t, Words> words{};
    randomise(words, random);
    for (const unsigned bit : shape.reserved) words[bit / 64] &= ~(std::uint64_t{1} << (bit % 64));
    EXPECT_EQ(shape.again(words), words) << "decoding and encoding loses a bit";
    if (shape.well_formed(words)) ++legal;
    for (const unsigned bit : shape.reserved) {
      std::array<std::uint64_t, Words> set = words;
      set[bit / 64] |= std::uint64_t{1} << (bit % 64);
      EXPECT_FALSE(shape.well_formed(set)) << "reserved bit " << bit;
      EXPECT_EQ(shape.again(set), words) << "reserved bit " << bit << " leaks into a field";
    }
  }
  EXPECT_LT(legal, 5000) << "unknown enumerators are refused";
}

TEST(Records, EveryBitIsAFieldOrReserved) {
  check<1>({"operand", [](const auto& w) { return encode(decode_operand(w)); }, well_formed_operand, range(59, 64)});
  check<1>({"arrival", [](const auto& w) { return encode(decode_arrival(w)); }, well_formed_arrival, range(50, 64)});
  check<1>({"remote", [](const auto& w) { return encode(decode_remote(w)); }, well_formed_remote, range(63, 64)});
  check<1>({"remote_address", [](const auto& w) { return encode(decode_remote_address(w)); },
            well_formed_remote_address, range(11, 16)});
  std::vector<unsigned> move = range(28, 32);
  const auto add = [&move](unsigned begin, unsigned end) {
    for (const unsigned bit : range(begin, end)) move.push_back(bit);
  };
  add(116, 128);
  add(128 + 59, 192);
  add(192 + 59, 256);
  add(256 + 50, 320);
  add(320 + 59, 384);
  add(384 + 63, 448);
  add(448 + 11, 448 + 16);
  check<8>({"move", [](const auto& w) { return encode(decode_move(w)); }, well_formed_move, move});
  check<8>({"header", [](const auto& w) { return encode(decode_header(w)); }, well_formed_header, range(38, 48)});
  check<4>({"header_connection",
            [](const auto& w) { return encode(decode_header_connection(w)); },
            well_formed_header_connection,
            {}});
  check<2>({"header_line", [](const auto& w) { return encode(decode_header_line(w)); }, well_formed_header_line,
            range(60, 64)});
  check<8>({"slot_frame", [](const auto& w) { return encode(decode_slot_frame(w)); }, well_formed_slot_frame,
            range(56, 64)});
  check<4>({"slot_refusal", [](const auto& w) { return encode(decode_slot_refusal(w)); }, well_formed_slot_refusal,
            range(8, 32)});
  std::vector<unsigned> call = range(45, 48);
  for (const unsigned bit : range(56, 64)) call.push_back(bit);
  for (const unsigned bit : range(960, 1024)) call.push_back(bit);
  check<16>({"call_descriptor", [](const auto& w) { return encode(decode_call_descriptor(w)); },
             well_formed_call_descriptor, call});
}

TEST(Records, CapabilityUsesEveryBit) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 1000; ++i) {
    const std::array<std::uint64_t, 1> words{random()};
    EXPECT_TRUE(well_formed_capability(words));
    EXPECT_EQ(encode(decode_capability(words)), words);
  }
}

TEST(Records, ValuesBeyondTheirFieldDoNotFit) {
  Move move{};
  EXPECT_TRUE(fits(move));
  move.count = kMaxCount;
  EXPECT_TRUE(fits(move));
  move.count = kMaxCount + 1;
  EXPECT_FALSE(fits(move));
  move.count = 0;
  move.op1.offset = std::uint64_t{1} << 48U;
  EXPECT_FALSE(fits(move)) << "nested records are looked into";
  move.op1.offset = 0;
  move.arrival.tag = static_cast<std::uint32_t>(kMaxTag) + 1;
  EXPECT_FALSE(fits(move));
  move.arrival.tag = 0;
  move.local.kind = static_cast<OperandKind>(7);
  EXPECT_FALSE(fits(move));
}

TEST(Records, AValueTooLargeDoesNotSpillIntoItsNeighbour) {
  Arrival arrival{};
  arrival.peer = 0xFFFFFFFF;
  EXPECT_EQ(decode_arrival(encode(arrival)).peer, 0xFFFFFFU);
  EXPECT_EQ(decode_arrival(encode(arrival)).mode, PeerMode::kRank);
  EXPECT_EQ(decode_arrival(encode(arrival)).tag, 0U);
}

TEST(Records, SizesAreThoseOfTheLimits) {
  EXPECT_EQ(kMoveWords * 8, kMoveBytes);
  EXPECT_EQ(kHeaderWords * 8, kHeaderBytes);
  EXPECT_EQ(kCallDescriptorWords * 8, 128U);
  EXPECT_EQ(exchange::kCallSlot + kCallDescriptorWords * 8 <= exchange::kCounters, true);
}

TEST(Enumerations, NamesAreKnownAndDistinct) {
  for (const Collective a : kAllCollective) {
    EXPECT_TRUE(is_known(a));
    for (const Collective b : kAllCollective) EXPECT_EQ(a == b, std::string(name_of(a)) == name_of(b));
  }
  EXPECT_FALSE(is_known(static_cast<Collective>(30)));
  EXPECT_STREQ(name_of(static_cast<Collective>(30)), "?");
  EXPECT_EQ(bytes_of(Datatype::kFp64), 8U);
  EXPECT_STREQ(name_of(ErrorCode::kPeerDead), "peer_dead");
  EXPECT_NE(std::string(advice_for(ErrorCode::kTimeout)), "");
}

}  // namespace
}  // namespace unisono
