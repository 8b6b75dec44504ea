// One ring: wrap-around, fullness, every size, and what happens to nonsense in shared memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "network/shm/record.hpp"
#include "network/shm/ring_receiver.hpp"
#include "network/shm/ring_sender.hpp"
#include "network/shm/segment.hpp"
#include "network/shm/shm_poe.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono::shm {
namespace {

using test::header_for;
using test::pattern;
using test::try_receive;
using test::try_send;

constexpr std::uint32_t kRing = 4096;
constexpr std::uint32_t kPayload = 1024;
constexpr Geometry kSmall{.endpoints = 2, .ring_bytes = {kRing, kRing}, .max_payload = {kPayload, kPayload}};

/// Two endpoints of a segment with small rings, in one thread.
struct Pair {
  std::shared_ptr<Segment> segment = Segment::create(kSmall);
  ShmPoe sender{segment, 0};
  ShmPoe receiver{segment, 1};
  std::byte* ring = segment->ring(0, 1, Lane::kData);
  SendCursors& sent = segment->send_cursors(0, 1);
  ReceiveCursors& received = segment->receive_cursors(0, 1);
};

TEST(Ring, EverySizeArrivesWhole) {
  Pair pair;
  for (std::uint32_t bytes = 0; bytes <= kPayload; ++bytes) {
    ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, bytes, bytes));
    ASSERT_TRUE(try_receive(pair.receiver, 0, Lane::kData, bytes, bytes)) << bytes;
  }
  Incoming none;
  EXPECT_FALSE(pair.receiver.peek(0, Lane::kData, none));
}

TEST(Ring, RandomTrafficWrapsFillsAndKeepsOrder) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    Pair pair;
    std::mt19937 random(seed);
    std::deque<std::uint32_t> in_ring;
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    std::uint32_t refused = 0;
    while (received < 20'000) {
      const std::uint32_t bytes = static_cast<std::uint32_t>(random() % (random() % 3 == 0 ? kPayload + 1 : 100));
      if (random() % 5 < 3) {
        if (try_send(pair.sender, 1, Lane::kData, sent, bytes)) {
          in_ring.push_back(bytes);
          ++sent;
        } else {
          ++refused;
          ASSERT_FALSE(in_ring.empty()) << "an empty ring takes every message";
        }
      } else if (!in_ring.empty()) {
        ASSERT_TRUE(try_receive(pair.receiver, 0, Lane::kData, received, in_ring.front()));
        in_ring.pop_front();
        ++received;
      }
    }
    EXPECT_GT(refused, 100U) << "the ring was never full";
    EXPECT_GT(pair.sent.published[0].load(), 100 * kRing) << "the ring never wrapped";
  }
}

TEST(Ring, PayloadIsAlignedToLines) {
  Pair pair;
  for (std::uint32_t n = 0; n < 100; ++n) {
    const std::byte* place = pair.sender.reserve(1, Lane::kData, n);
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
    ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, n, n));
    ASSERT_TRUE(try_receive(pair.receiver, 0, Lane::kData, n, n));
  }
}

TEST(Ring, AReservationCanBeDroppedAndShortened) {
  Pair pair;
  ASSERT_NE(pair.sender.reserve(1, Lane::kData, kPayload), nullptr);
  ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, 0, 10));
  std::byte* place = pair.sender.reserve(1, Lane::kData, kPayload);
  ASSERT_NE(place, nullptr);
  for (std::uint32_t i = 0; i < 70; ++i) place[i] = pattern(0, 1, 1, i);
  pair.sender.commit(1, Lane::kData, header_for(0, 1, 1, 70));
  EXPECT_TRUE(try_receive(pair.receiver, 0, Lane::kData, 0, 10));
  EXPECT_TRUE(try_receive(pair.receiver, 0, Lane::kData, 1, 70));
  EXPECT_EQ(pair.sent.published[0].load(), record_bytes(10) + record_bytes(70));
}

TEST(Ring, PeekedMessageIsPrivateAndStaysTheSame) {
  Pair pair;
  ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, 5, 64));
  Incoming first;
  ASSERT_TRUE(pair.receiver.peek(0, Lane::kData, first));
  std::memset(pair.ring, 0xff, kLineBytes);  // the peer changes its mind after the check
  Incoming second;
  ASSERT_TRUE(pair.receiver.peek(0, Lane::kData, second));
  EXPECT_EQ(first.header, second.header);
  EXPECT_EQ(second.payload.size(), 64U);
  pair.receiver.release(0, Lane::kData);
  ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, 6, 64));
  EXPECT_TRUE(try_receive(pair.receiver, 0, Lane::kData, 6, 64));
}

/// Expects kCorruptMessage whose text names the peer, the lane and `part`.
void expect_corrupt(const std::function<void()>& action, const std::string& peer, const std::string& part) {
  try {
    action();
    FAIL() << "nonsense was accepted: " << part;
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::kCorruptMessage) << text;
    EXPECT_NE(text.find(peer), std::string::npos) << text;
    EXPECT_NE(text.find("data lane"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(Corruption, OfEveryHeaderFieldIsNoticed) {
  struct Case {
    const char* part;
    std::function<void(Header&)> spoil;
  };
  const Case cases[] = {
      {"magic", [](Header& header) { header.magic = 1; }},
      {"version", [](Header& header) { header.version = 2; }},
      {"session_sequence", [](Header& header) { header.session_sequence = 7; }},
      {"segment_bytes", [](Header& header) { header.segment_bytes = kPayload + 1; }},
      {"segment_bytes", [](Header& header) { header.segment_bytes = 0xffffffff; }},
      {"segment_bytes", [](Header& header) { header.segment_bytes = 65; }},  // more than was published
      {"type", [](Header& header) { header.type = static_cast<MessageType>(15); }},
      {"dtype", [](Header& header) { header.dtype = static_cast<Datatype>(99); }},
  };
  for (const Case& wrong : cases) {
    Pair pair;
    ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, 0, 64));
    std::array<std::uint64_t, kHeaderWords> words{};
    std::memcpy(words.data(), pair.ring, sizeof words);
    Header header = decode_header(words);
    wrong.spoil(header);
    const auto spoiled = encode(header);
    std::memcpy(pair.ring, spoiled.data(), sizeof spoiled);
    Incoming incoming;
    for (int again = 0; again < 2; ++again) {
      expect_corrupt([&] { pair.receiver.peek(0, Lane::kData, incoming); }, "peer endpoint 0", wrong.part);
    }
    std::memcpy(pair.ring, words.data(), sizeof words);
    EXPECT_TRUE(try_receive(pair.receiver, 0, Lane::kData, 0, 64)) << "the check must not consume";
  }
}

TEST(Corruption, OfReservedBitsIsNoticed) {
  Pair pair;
  ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, 0, 64));
  pair.ring[5] |= std::byte{0x40};  // bit 46 of the first word
  Incoming incoming;
  expect_corrupt([&] { pair.receiver.peek(0, Lane::kData, incoming); }, "peer endpoint 0", "reserved bits");
}

TEST(Corruption, OfCursorsIsNoticed) {
  for (const std::uint64_t published : {std::uint64_t{1}, std::uint64_t{kRing + 64}, ~std::uint64_t{63}}) {
    Pair pair;
    pair.sent.published[0].store(published);
    Incoming incoming;
    expect_corrupt([&] { pair.receiver.peek(0, Lane::kData, incoming); }, "peer endpoint 0", "published cursor");
  }
  for (const std::uint64_t consumed : {std::uint64_t{1}, std::uint64_t{1} << 40, ~std::uint64_t{63}}) {
    Pair pair;
    for (std::uint32_t n = 0; n < 3; ++n) ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, n, kPayload));
    pair.received.consumed[0].store(consumed);
    expect_corrupt([&] { pair.sender.reserve(1, Lane::kData, kPayload); }, "peer endpoint 1", "consumed cursor");
  }
}

TEST(Corruption, OfWrapMarksIsNoticed) {
  Pair at_begin;
  ASSERT_TRUE(try_send(at_begin.sender, 1, Lane::kData, 0, 64));
  std::memcpy(at_begin.ring, &kWrapMark, sizeof kWrapMark);
  Incoming incoming;
  expect_corrupt([&] { at_begin.receiver.peek(0, Lane::kData, incoming); }, "peer endpoint 0", "wrap mark");

  Pair too_early;  // the bytes up to the ring's end were never published
  ASSERT_TRUE(try_send(too_early.sender, 1, Lane::kData, 0, 64));
  ASSERT_TRUE(try_receive(too_early.receiver, 0, Lane::kData, 0, 64));
  ASSERT_TRUE(try_send(too_early.sender, 1, Lane::kData, 1, 64));
  std::memcpy(too_early.ring + record_bytes(64), &kWrapMark, sizeof kWrapMark);
  expect_corrupt([&] { too_early.receiver.peek(0, Lane::kData, incoming); }, "peer endpoint 0", "wrap mark");
}

TEST(Corruption, RandomBytesNeverCrash) {
  std::mt19937_64 random(42);
  std::uint32_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    Pair pair;
    for (std::uint32_t n = 0; n < 6; ++n) ASSERT_TRUE(try_send(pair.sender, 1, Lane::kData, n, 8 * n));
    for (int hits = 0; hits < 3; ++hits) {
      const std::uint64_t word = random() % (6 * record_bytes(40) / 8);
      const std::uint64_t value = random();
      std::memcpy(pair.ring + word * 8, &value, sizeof value);
    }
    try {
      Incoming incoming;
      while (pair.receiver.peek(0, Lane::kData, incoming)) {
        ASSERT_LE(incoming.payload.size(), kPayload);
        for (const std::byte& byte : incoming.payload) {
          ASSERT_TRUE(&byte >= pair.ring && &byte < pair.ring + kRing);
        }
        pair.receiver.release(0, Lane::kData);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptMessage);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50U);
}

TEST(SegmentMemory, IdleEndpointsCostLittle) {
  constexpr std::uint32_t kEndpoints = 64;
  // The arenas, which nobody touches here, are short: the thread sanitizer has no place for a terabyte.
  const auto segment = Segment::create({.endpoints = kEndpoints, .arena_bytes = std::uint64_t{1} << 30U});
  std::vector<std::unique_ptr<ShmPoe>> endpoints;
  for (std::uint32_t i = 0; i < kEndpoints; ++i) endpoints.push_back(std::make_unique<ShmPoe>(segment, i));
  Incoming incoming;
  for (auto& poe : endpoints) {
    for (std::uint32_t peer = 0; peer < kEndpoints; ++peer) {
      EXPECT_FALSE(poe->peek(peer, Lane::kData, incoming));
      EXPECT_FALSE(poe->peek(peer, Lane::kControl, incoming));
    }
  }
  struct stat status {};
  ASSERT_EQ(fstat(segment->descriptor(), &status), 0);
  EXPECT_GT(status.st_size, 1'000'000'000);
  EXPECT_LT(status.st_blocks * 512, 1'000'000) << "bytes of memory behind 64 endpoints that only looked";
}

TEST(SegmentMemory, OnlyASealedSegmentOfThisVersionIsMapped) {
  const auto segment = Segment::create(kSmall);
  EXPECT_EQ(Segment::attach(segment->descriptor())->geometry(), kSmall);
  EXPECT_NE(ftruncate(segment->descriptor(), 1), 0) << "a member could crash the others by shrinking the segment";

  const auto expect_refused = [](int fd, const std::string& part) {
    try {
      Segment::attach(fd);
      FAIL() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBootstrap);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, 1 << 20), 0);
  expect_refused(unsealed, "sealed");
  ASSERT_EQ(fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  expect_refused(unsealed, "magic");
  SegmentHeader header{kSegmentMagic, kSegmentVersion + 1, 0, kSmall, 1 << 20};
  ASSERT_EQ(pwrite(unsealed, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  expect_refused(unsealed, "version");
  header.version = kSegmentVersion;
  ASSERT_EQ(pwrite(unsealed, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  expect_refused(unsealed, "bytes instead of");
  header.geometry.ring_bytes[0] = 1000;
  ASSERT_EQ(pwrite(unsealed, &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  expect_refused(unsealed, "power of two");
  close(unsealed);
}

}  // namespace
}  // namespace unisono::shm
