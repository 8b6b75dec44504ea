// Frames out of the bytes of a stream, and frames that wait to be sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/header.hpp"
#include "network/tcp/arrivals.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono::tcp {
namespace {

constexpr std::uint32_t kFrom = 3;
constexpr std::uint32_t kTo = 4;

/// What a sender would send.
class Stream {
 public:
  void add(Lane lane, std::uint32_t bytes) {
    FrameRing& ring = lane == Lane::kData ? data_ : control_;
    std::uint32_t& number = numbers_[lane == Lane::kData ? 0 : 1];
    std::byte* place = ring.reserve(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) place[i] = test::pattern(kFrom, kTo, number, i);
    ring.commit(test::header_for(kFrom, kTo, number++, bytes));
    std::array<iovec, 2> pieces;
    ASSERT_EQ(ring.gather(pieces, false), 1U);
    const auto* begin = static_cast<const std::byte*>(pieces[0].iov_base);
    bytes_.insert(bytes_.end(), begin, begin + pieces[0].iov_len);
    ring.consume(pieces[0].iov_len, false);
  }
  void bye() { bytes_.insert(bytes_.end(), kBye.begin(), kBye.end()); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  FrameRing data_{kMaxDataPayload, kMostBytes, 0};
  FrameRing control_{kMaxControlPayload, kMostBytes / 8, kControlMark};
  std::uint32_t numbers_[2]{};
  std::vector<std::byte> bytes_;
};

/// Gives `arrivals` up to `most` bytes from `at` on; returns how many it took.
std::size_t feed(Arrivals& arrivals, const std::vector<std::byte>& bytes, std::size_t at, std::size_t most) {
  const auto landing = arrivals.landing();
  const auto room = arrivals.room();
  const std::size_t part = std::min({landing.size() + room.size(), most, bytes.size() - at});
  const std::size_t first = std::min(part, landing.size());
  if (first != 0) std::memcpy(landing.data(), bytes.data() + at, first);
  if (part != first) std::memcpy(room.data(), bytes.data() + at + first, part - first);
  arrivals.received(part);
  return part;
}

/// Gives every message memory of its own, and takes some of it back.
class Fields final : public Landings {
 public:
  std::byte* landing(std::uint32_t peer, const Header& header) override {
    EXPECT_EQ(peer, kFrom);
    EXPECT_EQ(header.magic, kMagic);
    EXPECT_LT(header.session_sequence, kControlMark);
    auto& field = fields_[header.sequence];
    if (!field) field.emplace(header.segment_bytes);
    return gone.contains(header.sequence) || refused(header.sequence) ? nullptr : field->data();
  }
  /// Whether the message's payload lies in its field.
  bool is_in(const Incoming& incoming) { return incoming.payload.data() == fields_[incoming.header.sequence]->data(); }
  bool begun(std::uint32_t number) const { return fields_.contains(number); }
  /// From here on no field is given for the message; nothing may be written to it.
  void take_back(std::uint32_t number) {
    gone.insert(number);
    std::fill(fields_[number]->begin(), fields_[number]->end(), std::byte{0});
  }
  bool untouched(std::uint32_t number) const {
    const auto& bytes = *fields_.at(number);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  }
  static bool refused(std::uint32_t number) { return number % 4 == 3; }
  std::set<std::uint32_t> gone;

 private:
  std::map<std::uint32_t, std::optional<std::vector<std::byte>>> fields_;
};

void expect_message(const Incoming& incoming, std::uint32_t number) {
  ASSERT_EQ(incoming.header.sequence, number);
  ASSERT_EQ(incoming.header.session_sequence, number);
  for (std::size_t i = 0; i < incoming.payload.size(); ++i) {
    ASSERT_EQ(incoming.payload[i], test::pattern(kFrom, kTo, number, i)) << "byte " << i << " of " << number;
  }
}

TEST(TcpArrivals, AnyPiecesInAnyOrderOfLanesGiveTheMessages) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    Stream stream;
    std::deque<std::uint32_t> expected[2];
    const std::uint32_t largest = seed % 3 == 0 ? 300 : seed % 3 == 1 ? 20'000 : kMaxDataPayload;
    for (int i = 0; i < 80; ++i) {
      const Lane lane = below(3) == 0 ? Lane::kControl : Lane::kData;
      const std::uint32_t bytes =
          below(std::min(largest, lane == Lane::kData ? kMaxDataPayload : kMaxControlPayload) + 1);
      stream.add(lane, bytes);
      expected[lane == Lane::kData ? 0 : 1].push_back(bytes);
    }
    stream.bye();
    Arrivals arrivals;
    std::uint32_t taken[2]{};
    bool peeked[2]{};
    std::size_t at = 0;
    int idle = 0;
    while (at < stream.bytes().size() || !expected[0].empty() || !expected[1].empty()) {
      const std::size_t fed = feed(arrivals, stream.bytes(), at, 1 + below(seed % 2 == 0 ? 400 : 100'000));
      at += fed;
      bool took = fed != 0;
      for (const std::uint32_t i : {0U, 1U}) {
        const Lane lane = i == 0 ? Lane::kData : Lane::kControl;
        Incoming incoming;
        for (std::uint32_t turns = below(4); turns > 0 || peeked[i]; turns -= turns > 0) {
          if (!arrivals.peek(lane, incoming)) break;
          took = true;
          peeked[i] = below(4) == 0;  // looked at, and left for later
          if (peeked[i]) break;
          ASSERT_FALSE(expected[i].empty());
          ASSERT_EQ(incoming.payload.size(), expected[i].front());
          expected[i].pop_front();
          ASSERT_NO_FATAL_FAILURE(expect_message(incoming, taken[i]++));
          arrivals.release(lane);
        }
      }
      idle = took ? 0 : idle + 1;
      ASSERT_LT(idle, 1000) << "seed " << seed << " is stuck at byte " << at << " of " << stream.bytes().size();
      ASSERT_TRUE(arrivals.fault().empty()) << arrivals.fault();
      ASSERT_LE(arrivals.memory(), kMostBytes);
    }
    EXPECT_TRUE(arrivals.bye());
    EXPECT_FALSE(arrivals.within_frame());
  }
}

TEST(TcpArrivals, LargeMessagesGoWhereTheyBelong) {
  std::size_t landed = 0;
  std::size_t stray = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    Stream stream;
    std::deque<std::uint32_t> expected[2];
    for (int i = 0; i < 60; ++i) {
      const Lane lane = below(4) == 0 ? Lane::kControl : Lane::kData;
      const std::uint32_t bytes = lane == Lane::kControl ? below(kMaxControlPayload)
                                  : below(2) == 0        ? below(300)
                                                         : kMaxDataPayload - below(40'000);
      stream.add(lane, bytes);
      expected[lane == Lane::kData ? 0 : 1].push_back(bytes);
    }
    stream.bye();
    Fields fields;
    Arrivals arrivals;
    arrivals.land_in(&fields, kFrom);
    std::uint32_t taken[2]{};
    std::size_t at = 0;
    int idle = 0;
    while (at < stream.bytes().size() || arrivals.talks()) {
      const std::size_t fed = feed(arrivals, stream.bytes(), at, 1 + below(seed % 2 == 0 ? 9000 : 100'000));
      at += fed;
      // Now and then nobody awaits a message any more, whose first bytes may have come.
      if (const std::uint32_t number = taken[0] + below(2); below(30) == 0 && fields.begun(number)) {
        fields.take_back(number);
      }
      bool took = fed != 0;
      for (const std::uint32_t i : {0U, 1U}) {
        Incoming incoming;
        const Lane lane = i == 0 ? Lane::kData : Lane::kControl;
        for (std::uint32_t turns = below(4); turns > 0 && arrivals.peek(lane, incoming); --turns) {
          took = true;
          // What was taken back once it had begun to land is not handed out; all else is.
          while (i == 0 && incoming.header.sequence != taken[i]) {
            ASSERT_TRUE(fields.gone.contains(taken[i])) << "seed " << seed;
            ++taken[i];
            ++stray;
          }
          ASSERT_EQ(incoming.payload.size(), expected[i][taken[i]]);
          ASSERT_NO_FATAL_FAILURE(expect_message(incoming, taken[i]));
          if (i == 0 && fields.begun(taken[i]) && fields.is_in(incoming)) ++landed;
          ++taken[i];
          arrivals.release(lane);
        }
      }
      for (const std::uint32_t number : fields.gone) ASSERT_TRUE(fields.untouched(number)) << "seed " << seed;
      idle = took ? 0 : idle + 1;
      ASSERT_LT(idle, 1000) << "seed " << seed << " is stuck at byte " << at << " of " << stream.bytes().size();
      ASSERT_TRUE(arrivals.fault().empty()) << arrivals.fault();
      ASSERT_LE(arrivals.memory(), kMostBytes);
    }
    while (taken[0] < expected[0].size() && fields.gone.contains(taken[0])) ++taken[0];
    EXPECT_EQ(taken[0], expected[0].size()) << "seed " << seed;
    EXPECT_EQ(taken[1], expected[1].size());
    EXPECT_TRUE(arrivals.bye());
    EXPECT_FALSE(arrivals.within_frame());
  }
  EXPECT_GT(landed, 500U);
  EXPECT_GT(stray, 3U);
}

TEST(TcpArrivals, ALaneThatIsNotReadDoesNotHoldUpTheOther) {
  Stream stream;
  for (int i = 0; i < 40; ++i) {
    if (i == 0) stream.add(Lane::kControl, 900);
    stream.add(Lane::kData, 5000);
  }
  Arrivals arrivals;
  std::size_t at = 0;
  std::uint32_t taken = 0;
  for (int i = 0; i < 1000 && taken < 40; ++i) {
    at += feed(arrivals, stream.bytes(), at, 10'000);
    Incoming incoming;
    while (arrivals.peek(Lane::kData, incoming)) {
      ASSERT_NO_FATAL_FAILURE(expect_message(incoming, taken++));
      arrivals.release(Lane::kData);
    }
  }
  EXPECT_EQ(taken, 40U);
}

TEST(TcpArrivals, IdleSessionsCostLittle) {
  Arrivals arrivals;
  EXPECT_EQ(arrivals.memory(), 0U);
  EXPECT_LE(arrivals.room().size(), 4096U);
  EXPECT_LE(arrivals.memory(), 4096U);
}

/// What is said of a frame whose header was changed, the checksum made right again.
std::string fault_after(void (*change)(Header&)) {
  Stream stream;
  stream.add(Lane::kData, 100);
  HeaderWords words;
  std::memcpy(words.data(), stream.bytes().data(), sizeof words);
  Header header = decode_header(words);
  change(header);
  words = encode(header);
  words[7] = (words[7] & 0xffffffffU) | (std::uint64_t{checksum_of(words)} << 32U);
  std::memcpy(stream.bytes().data(), words.data(), sizeof words);
  Arrivals arrivals;
  feed(arrivals, stream.bytes(), 0, 1000);
  Incoming incoming;
  EXPECT_EQ(arrivals.peek(Lane::kData, incoming), arrivals.fault().empty());
  EXPECT_EQ(arrivals.room().empty(), !arrivals.fault().empty()) << "what follows a fault is not asked for";
  return arrivals.fault();
}

TEST(TcpArrivals, EveryFieldIsChecked) {
  EXPECT_EQ(fault_after([](Header&) {}), "");
  const auto names = [](const std::string& fault, const char* field) { return fault.find(field) != fault.npos; };
  EXPECT_TRUE(names(fault_after([](Header& h) { h.magic ^= 1U; }), "magic"));
  EXPECT_TRUE(names(fault_after([](Header& h) { h.version = 2; }), "version"));
  EXPECT_TRUE(names(fault_after([](Header& h) { h.session_sequence = 1; }), "session_sequence"));
  EXPECT_TRUE(names(fault_after([](Header& h) { h.session_sequence = kControlMark | 1U; }), "session_sequence"));
  EXPECT_TRUE(names(fault_after([](Header& h) { h.segment_bytes = kMaxDataPayload + 1; }), "segment_bytes"));
  EXPECT_TRUE(names(fault_after([](Header& h) {
                      h.session_sequence = kControlMark;
                      h.segment_bytes = kMaxControlPayload + 1;
                    }),
                    "segment_bytes"));
  EXPECT_TRUE(names(fault_after([](Header& h) { h.type = static_cast<MessageType>(15); }), "type"));
  EXPECT_TRUE(names(fault_after([](Header& h) { h.dtype = static_cast<Datatype>(200); }), "dtype"));
}

TEST(TcpArrivals, EveryAlteredBitOfAHeaderIsNoticed) {
  for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    Stream stream;
    stream.add(Lane::kData, 10);
    stream.bytes()[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    Arrivals arrivals;
    feed(arrivals, stream.bytes(), 0, 1000);
    EXPECT_NE(arrivals.fault(), "") << "bit " << bit;
  }
}

TEST(TcpArrivals, WhatCameBeforeAFaultCanBeRead) {
  Stream stream;
  stream.add(Lane::kData, 10);
  stream.add(Lane::kData, 10);
  stream.bytes()[74] ^= std::byte{1};
  Arrivals arrivals;
  feed(arrivals, stream.bytes(), 0, 1000);
  EXPECT_NE(arrivals.fault(), "");
  Incoming incoming;
  ASSERT_TRUE(arrivals.peek(Lane::kData, incoming));
  expect_message(incoming, 0);
  arrivals.release(Lane::kData);
  EXPECT_FALSE(arrivals.peek(Lane::kData, incoming));
}

TEST(TcpArrivals, NothingFollowsAFarewell) {
  Stream stream;
  stream.bye();
  stream.bytes().push_back({});
  Arrivals arrivals;
  feed(arrivals, stream.bytes(), 0, 1000);
  EXPECT_TRUE(arrivals.bye());
  EXPECT_NE(arrivals.fault(), "");
}

TEST(TcpFrameRing, HoldsFramesInOrderThroughAllPlaces) {
  // Random sizes committed and consumed in random parts: the bytes that leave are those that a queue would give.
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const std::uint32_t largest = seed % 2 == 0 ? 3000 : kMaxDataPayload;
    FrameRing ring(kMaxDataPayload, kMostBytes, 0);
    std::deque<std::byte> expected;
    std::uint32_t number = 0;
    bool refused = false;
    for (int step = 0; step < 500; ++step) {
      const auto bytes = static_cast<std::uint32_t>(random() % (largest + 1));
      std::byte* place = random() % 3 != 0 ? ring.reserve(bytes) : nullptr;
      if (place != nullptr) {
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
        for (std::uint32_t i = 0; i < bytes; ++i) place[i] = test::pattern(1, 2, number, i);
        Header header = test::header_for(1, 2, number, bytes);
        ring.commit(header);
        header.magic = static_cast<std::uint16_t>(kMagic);
        header.version = static_cast<std::uint8_t>(kWireVersion);
        header.session_sequence = number;
        seal(header);
        const auto words = std::bit_cast<std::array<std::byte, 64>>(encode(header));
        expected.insert(expected.end(), words.begin(), words.end());
        for (std::uint32_t i = 0; i < bytes; ++i) expected.push_back(test::pattern(1, 2, number, i));
        ++number;
      } else {
        refused = true;
      }
      ASSERT_LE(ring.memory(), kMostBytes);
      if (random() % 2 != 0) continue;
      std::array<iovec, 3> pieces;
      const bool one = random() % 4 == 0;
      const std::size_t count = ring.gather(pieces, one);
      std::vector<std::byte> out;
      for (std::size_t i = 0; i < count; ++i) {
        const auto* begin = static_cast<const std::byte*>(pieces[i].iov_base);
        out.insert(out.end(), begin, begin + pieces[i].iov_len);
      }
      const std::size_t part = out.empty() ? 0 : random() % (out.size() + 1);
      ASSERT_EQ(ring.consume(part, one), part);
      ASSERT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(part), expected.begin()));
      expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(part));
      ASSERT_EQ(ring.empty(), expected.empty());
    }
    EXPECT_TRUE(refused);
  }
}

}  // namespace
}  // namespace unisono::tcp
