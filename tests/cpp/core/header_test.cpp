#include "core/header.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/signature.hpp"

namespace unisono {
namespace {

using Random = std::mt19937_64;

std::uint64_t bits(Random& random, unsigned count) { return random() >> (64 - count); }

/// A header of segment data with nothing at its default, sound in itself.
Header random_header(Random& random) {
  Header header = make_header(kAllMessageType[random() % kAllMessageType.size()]);
  header.dtype = kAllDatatype[random() % kAllDatatype.size()];
  header.point_to_point = bits(random, 1) != 0;
  header.stream = bits(random, 1) != 0;
  header.trailer = bits(random, 1) != 0;
  header.aggregate = bits(random, 1) != 0;
  header.credits = static_cast<std::uint16_t>(bits(random, 16));
  header.communicator = static_cast<std::uint32_t>(bits(random, 32));
  header.epoch = static_cast<std::uint16_t>(bits(random, 16));
  header.port = static_cast<std::uint16_t>(bits(random, 16));
  header.source = static_cast<std::uint32_t>(bits(random, 32));
  header.destination = static_cast<std::uint32_t>(bits(random, 32));
  header.sequence = static_cast<std::uint32_t>(bits(random, 32));
  header.tag = static_cast<std::uint32_t>(bits(random, 32));
  header.segment_bytes = static_cast<std::uint32_t>(bits(random, 32));
  header.session_sequence = static_cast<std::uint32_t>(bits(random, 32));
  header.token_slot = static_cast<std::uint16_t>(bits(random, 16));
  header.token_generation = static_cast<std::uint16_t>(bits(random, 16));
  header.signature = static_cast<std::uint32_t>(bits(random, 32));
  header.first = bits(random, 1) != 0;
  header.last = bits(random, 1) != 0;
  header.offset = header.first ? 0 : bits(random, 46);
  header.message_bytes = header.offset + header.segment_bytes + (header.last ? 0 : bits(random, 40));
  return header;
}

/// The context in which `header` is as compressible as it can be.
HeaderContext context_of(const Header& header) {
  HeaderContext context;
  context.source = header.source;
  context.destination = header.destination;
  context.communicator = header.communicator;
  context.epoch = header.epoch;
  context.session_sequence = header.session_sequence;
  context.sequence = header.sequence;
  context.signature = header.signature;
  context.message_bytes = header.message_bytes;
  return context;
}

/// An eager segment in the middle of a message of a collective.
Header eager_segment() {
  Header header = make_header(MessageType::kEager);
  header.dtype = Datatype::kFp32;
  header.communicator = 0xA0007;
  header.epoch = 0x0102;
  header.source = 3;
  header.destination = 70000;
  header.sequence = 1234567;
  header.tag = 17;
  header.segment_bytes = 4096;
  header.session_sequence = 99;
  header.message_bytes = 20000;
  header.offset = 8192;
  header.signature = 0xDEADBEEF;
  return header;
}

Header write_segment() {
  Header header = eager_segment();
  header.type = MessageType::kWrite;
  header.token_slot = 0xABCD;
  header.token_generation = 0x1234;
  return header;
}

TEST(Header, SealedHeaderIsSoundAndComesBack) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Header header = random_header(random);
    seal(header);
    EXPECT_TRUE(verify(header));
    const HeaderWords words = encode(header);
    EXPECT_EQ(check_header(words), HeaderFault::kNone) << meaning_of(check_header(words));
    EXPECT_EQ(decode_header(words), header);
  }
}

TEST(Header, ChecksumCoversTheSixtyBytesBeforeIt) {
  Header header = eager_segment();
  seal(header);
  const HeaderWords words = encode(header);
  std::array<std::uint8_t, 64> bytes{};
  for (std::size_t i = 0; i < 64; ++i) bytes[i] = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
  const std::uint32_t stored = std::uint32_t{bytes[60]} | std::uint32_t{bytes[61]} << 8U |
                               std::uint32_t{bytes[62]} << 16U | std::uint32_t{bytes[63]} << 24U;
  EXPECT_EQ(stored, crc32c(std::span(bytes).first(60)));
  EXPECT_EQ(bytes[0], 'N');
  EXPECT_EQ(bytes[1], 'U');
}

TEST(Header, EveryFlippedBitIsDetected) {
  Header header = write_segment();
  seal(header);
  const HeaderWords sound = encode(header);
  for (unsigned bit = 0; bit < 512; ++bit) {
    HeaderWords words = sound;
    words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
    const HeaderFault fault = check_header(words);
    const HeaderFault expected = bit < 16   ? HeaderFault::kBadMagic
                                 : bit < 20 ? HeaderFault::kOtherVersion
                                            : HeaderFault::kBadChecksum;
    EXPECT_EQ(fault, expected) << "bit " << bit;
  }
}

TEST(Header, EveryBurstOf32BitsIsDetected) {
  // What a CRC of 32 bits promises. The burst's ends are set, its inside is random.
  Random random(2);
  Header header = random_header(random);
  seal(header);
  const HeaderWords sound = encode(header);
  for (unsigned begin = 20; begin + 32 <= 480; ++begin) {
    HeaderWords words = sound;
    const std::uint64_t burst = 0x80000001U | bits(random, 32);
    for (unsigned i = 0; i < 32; ++i) {
      if ((burst >> i & 1U) != 0) words[(begin + i) / 64] ^= std::uint64_t{1} << ((begin + i) % 64);
    }
    EXPECT_EQ(check_header(words), HeaderFault::kBadChecksum) << "from bit " << begin;
  }
}

TEST(Header, ReservedBitsAndUnknownEnumeratorsAreRefusedThoughSealed) {
  const auto reseal = [](HeaderWords words) {
    words[7] = (words[7] & 0xFFFFFFFFU) | std::uint64_t{checksum_of(words)} << 32U;
    return words;
  };
  const HeaderWords sound = encode(eager_segment());
  ASSERT_EQ(check_header(reseal(sound)), HeaderFault::kNone);
  for (unsigned bit = 38; bit < 48; ++bit) {
    HeaderWords words = sound;
    words[0] |= std::uint64_t{1} << bit;
    EXPECT_EQ(check_header(reseal(words)), HeaderFault::kMalformed) << "reserved bit " << bit;
  }
  for (std::uint64_t type = 0; type < 16; ++type) {
    HeaderWords words = sound;
    words[0] = (words[0] & ~(std::uint64_t{0xF} << 20U)) | type << 20U;
    EXPECT_EQ(check_header(reseal(words)), type < 8 ? HeaderFault::kNone : HeaderFault::kMalformed) << type;
  }
  for (std::uint64_t dtype = 0; dtype < 256; ++dtype) {
    HeaderWords words = sound;
    words[0] = (words[0] & ~(std::uint64_t{0xFF} << 24U)) | dtype << 24U;
    EXPECT_EQ(check_header(reseal(words)), dtype < kAllDatatype.size() ? HeaderFault::kNone : HeaderFault::kMalformed)
        << dtype;
  }
}

TEST(Header, SegmentsThatDoNotLieInTheirMessageAreRefused) {
  const auto fault_after = [](const std::function<void(Header&)>& change) {
    Header header = eager_segment();
    change(header);
    seal(header);
    return check_header(encode(header));
  };
  EXPECT_EQ(fault_after([](Header&) {}), HeaderFault::kNone);
  EXPECT_EQ(fault_after([](Header& h) { h.offset = 20000 - 4096; }), HeaderFault::kNone);
  EXPECT_EQ(fault_after([](Header& h) { h.offset = 20000 - 4095; }), HeaderFault::kBadExtent);
  EXPECT_EQ(fault_after([](Header& h) { h.offset = (std::uint64_t{1} << 48U) - 1; }), HeaderFault::kBadExtent);
  EXPECT_EQ(fault_after([](Header& h) { h.first = true; }), HeaderFault::kBadExtent);
  EXPECT_EQ(fault_after([](Header& h) { h.last = true; }), HeaderFault::kBadExtent);
  EXPECT_EQ(fault_after([](Header& h) {
              h.last = true;
              h.message_bytes = 8192 + 4096;
            }),
            HeaderFault::kNone);
}

TEST(Header, SequencesCompleteNearTheExpectedOne) {
  Random random(3);
  for (int i = 0; i < 10000; ++i) {
    const auto meant = static_cast<std::uint32_t>(bits(random, 32));
    const auto distance = static_cast<std::uint32_t>(bits(random, 15));  // below 2^15
    EXPECT_EQ(complete_sequence(meant & 0xFFFFU, 16, meant + distance), meant);
    EXPECT_EQ(complete_sequence(meant & 0xFFFFU, 16, meant - distance), meant);
  }
  EXPECT_EQ(complete_sequence(0xFFFF, 16, 0x00010000), 0x0000FFFFU);
  EXPECT_EQ(complete_sequence(0x0001, 16, 0xFFFFFFFF), 0x00000001U) << "wraps";
}

TEST(HeaderConnection, WhatCompressesComesBack) {
  Random random(4);
  int compressible = 0;
  for (int i = 0; i < 20000; ++i) {
    Header header = random_header(random);
    header.port &= 0xFFU;
    const bool token =
        header.type == MessageType::kGrant || header.type == MessageType::kWrite || header.type == MessageType::kDone;
    if (!token) header.token_slot = header.token_generation = 0;
    if (header.type == MessageType::kGrant || header.type == MessageType::kRequest) header.offset = 0;
    const HeaderContext context = context_of(header);
    const auto compressed = compress_connection(header, context);
    ASSERT_TRUE(compressed.has_value()) << name_of(header.type) << " number " << i;
    ++compressible;
    const auto words = encode(*compressed);
    ASSERT_TRUE(well_formed_header_connection(words));
    Header back = rebuild(decode_header_connection(words), context);
    EXPECT_EQ(back, header);
    seal(back);
    seal(header);
    EXPECT_EQ(back.checksum, header.checksum);
  }
  EXPECT_EQ(compressible, 20000);
}

TEST(HeaderConnection, RefusesWhatWouldNotComeBack) {
  struct Case {
    std::string name;
    std::function<void(Header&)> change;
  };
  const std::vector<Case> cases{
      {"magic", [](Header& h) { h.magic ^= 1; }},
      {"version", [](Header& h) { h.version ^= 1; }},
      {"source", [](Header& h) { ++h.source; }},
      {"destination", [](Header& h) { ++h.destination; }},
      {"communicator, high bits", [](Header& h) { h.communicator ^= 0x10000U; }},
      {"epoch, high bits", [](Header& h) { h.epoch ^= 0x100U; }},
      {"session sequence", [](Header& h) { ++h.session_sequence; }},
      {"message length of a later segment", [](Header& h) { ++h.message_bytes; }},
      {"offset of a first segment", [](Header& h) { h.first = true; }},
      {"token beside a signature", [](Header& h) { h.token_slot = 1; }},
      {"generation beside a signature", [](Header& h) { h.token_generation = 1; }},
      {"stream port", [](Header& h) { h.port = 256; }},
      {"dtype", [](Header& h) { h.dtype = static_cast<Datatype>(60); }},
  };
  const HeaderContext context = context_of(eager_segment());
  ASSERT_TRUE(compress_connection(eager_segment(), context).has_value());
  for (const Case& c : cases) {
    Header header = eager_segment();
    c.change(header);
    EXPECT_FALSE(compress_connection(header, context).has_value()) << c.name;
  }
  // What the form carries itself may differ from the context.
  Header free = eager_segment();
  free.communicator ^= 0xFFFFU;
  free.epoch ^= 0xFFU;
  free.sequence += 0x40000000U;
  free.signature ^= 0x80000000U;
  free.credits = 7;
  const auto compressed = compress_connection(free, context);
  ASSERT_TRUE(compressed.has_value());
  EXPECT_EQ(rebuild(*compressed, context), free);
}

TEST(HeaderConnection, AMismatchedSignatureStaysMismatchedWhenOnlyLowBitsTravel) {
  const Header header = write_segment();
  const auto compressed = compress_connection(header, context_of(header));
  ASSERT_TRUE(compressed.has_value());
  HeaderContext receiver = context_of(header);
  receiver.signature = 0xDEADBEEE;  // another call
  const Header wrong = rebuild(*compressed, receiver);
  EXPECT_NE(wrong.signature, receiver.signature);
  EXPECT_FALSE(signatures_agree(wrong.signature, receiver.signature, 16));
  receiver.signature = 0;  // not called yet
  EXPECT_TRUE(signatures_agree(rebuild(*compressed, receiver).signature, header.signature, 16));
}

TEST(HeaderLine, LeavesTheRestOfTheLineToThePayload) {
  EXPECT_EQ(kLinePayloadBytes, 48U);
  EXPECT_EQ(kHeaderLineWords * 8 + kLinePayloadBytes, 64U);
}

}  // namespace
}  // namespace unisono
