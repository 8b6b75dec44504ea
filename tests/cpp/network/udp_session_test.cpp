// The two ends of a session of UDP, without sockets and without a clock: time is what the test says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "core/header.hpp"
#include "network/udp/ack_window.hpp"
#include "network/udp/receiver.hpp"
#include "network/udp/sender.hpp"
#include "network/udp/tagger.hpp"
#include "tests/cpp/network/traffic.hpp"

namespace unisono::udp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kRing = std::size_t{1} << 20U;
constexpr std::size_t kControl = std::size_t{1} << 16U;
constexpr Time kBegin{seconds(1000)};

TEST(UdpAckWindow, RemembersThe256BeforeTheLargest) {
  AckWindow window;
  EXPECT_FALSE(window.has(1));
  EXPECT_TRUE(window.add(1));
  EXPECT_TRUE(window.add(2));
  EXPECT_FALSE(window.add(5));
  EXPECT_FALSE(window.add(4));
  for (const std::uint64_t number : {1, 2, 4, 5}) EXPECT_TRUE(window.has(number)) << number;
  EXPECT_FALSE(window.has(3));
  EXPECT_FALSE(window.has(6));
  EXPECT_EQ(window.before()[0], 0b1101U);
  window.add(260);
  EXPECT_TRUE(window.has(3)) << "too old to be told from one that has come";
  EXPECT_TRUE(window.has(4));
  EXPECT_TRUE(window.has(5));
  EXPECT_FALSE(window.has(6));
  window.add(5000);
  EXPECT_EQ(window.before(), (std::array<std::uint64_t, 4>{}));
}

TEST(UdpAckWindow, IsAsASetOfNumbers) {
  std::mt19937 random(3);  // NOLINT(*-msc51-cpp): the same every time
  AckWindow window;
  std::vector<bool> come(100'000);
  std::uint64_t largest = 0;
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t number =
        std::max<std::uint64_t>(1, largest + random() % 80 - std::min<std::uint64_t>(largest, 70));
    if (number + kAckBits < largest || number >= come.size()) continue;
    ASSERT_EQ(window.has(number), come[number] || number + kAckBits < largest) << number << " of " << largest;
    if (come[number]) continue;
    window.add(number);
    come[number] = true;
    largest = std::max(largest, number);
    for (std::size_t bit = 0; bit < kAckBits && bit + 1 < largest; ++bit) {
      ASSERT_EQ((window.before()[bit / 64] >> (bit % 64) & 1U) != 0, come[largest - 1 - bit]);
    }
  }
}

TEST(UdpRoundTrip, FollowsWhatItIsToldAndBacksOff) {
  RoundTrip trip;
  EXPECT_FALSE(trip.known());
  trip.add(milliseconds(10), Span(0), kBegin);
  EXPECT_EQ(trip.smoothed(), milliseconds(10));
  EXPECT_EQ(trip.variation(), milliseconds(5));
  for (int i = 0; i < 200; ++i) trip.add(milliseconds(20), milliseconds(5), kBegin);
  EXPECT_NEAR(static_cast<double>(trip.smoothed().count()), 15e6, 1e5);
  EXPECT_EQ(trip.least(), milliseconds(10));
  EXPECT_EQ(trip.timeout(1), 2 * trip.timeout(0));
  EXPECT_EQ(trip.timeout(40), RoundTrip::kLongestTimeout);
  // The shortest one is forgotten after a while: routes change.
  trip.add(milliseconds(20), Span(0), kBegin + seconds(11));
  EXPECT_EQ(trip.least(), milliseconds(20));
}

TEST(UdpCongestion, BearsALossInFiftyAndShrinksBy30PercentOnce) {
  Congestion congestion(1000, 10'000'000);
  Time now = kBegin;
  const auto come = [&](std::size_t datagrams) {
    now += milliseconds(1);
    congestion.acknowledged(datagrams * 1000, datagrams, true, milliseconds(1), now);
  };
  while (congestion.window() < 1'000'000) come(100);
  const std::size_t before = congestion.window();
  for (int i = 0; i < 4; ++i) congestion.lost(now, now);
  EXPECT_EQ(congestion.window(), before) << "four in many";
  for (int i = 0; i < 30; ++i) congestion.lost(now, now);
  EXPECT_EQ(congestion.window(), static_cast<std::size_t>(0.7 * static_cast<double>(before))) << "one round trip";
  EXPECT_FALSE(congestion.slow_start());
  for (int i = 0; i < 30; ++i) congestion.found();
  EXPECT_EQ(congestion.window(), before) << "they had only been late";
}

TEST(UdpCongestion, GrowsBackAndPastWhereItShrank) {
  Congestion congestion(1000, 10'000'000);
  Time now = kBegin;
  while (congestion.window() < 200'000) congestion.acknowledged(10'000, 10, true, milliseconds(10), now);
  for (int i = 0; i < 5; ++i) congestion.lost(now, now);
  const std::size_t low = congestion.window();
  std::size_t last = low;
  for (int i = 0; i < 2000; ++i) {
    now += milliseconds(10);
    congestion.acknowledged(congestion.window(), congestion.window() / 1000, true, milliseconds(10), now);
    EXPECT_GE(congestion.window(), last);
    last = congestion.window();
  }
  EXPECT_GT(last, 2 * low);
  congestion.acknowledged(1000, 1, false, milliseconds(10), now);
  EXPECT_EQ(congestion.window(), last) << "who did not use it needs no more";
}

TEST(UdpTagger, CoversEveryBitAndTheNumber) {
  const Digest secret{std::byte{1}};
  const Tagger tagger(secret, "a");
  DataFrame frame;
  frame.number = 7;
  std::vector<std::byte> piece(3200);
  for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<std::byte>(i * 5 + i / 256);
  const Tag tag = tagger.tag_of(7, bytes_of(frame), piece);
  EXPECT_TRUE(tagger.verify(tag, 7, bytes_of(frame), piece));
  EXPECT_FALSE(tagger.verify(tag, 8, bytes_of(frame), piece));
  EXPECT_FALSE(Tagger(secret, "b").verify(tag, 7, bytes_of(frame), piece));
  EXPECT_FALSE(Tagger(Digest{std::byte{2}}, "a").verify(tag, 7, bytes_of(frame), piece));
  for (std::size_t bit = 0; bit < 8 * piece.size(); bit += 13) {
    piece[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(tagger.verify(tag, 7, bytes_of(frame), piece)) << bit;
    piece[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  std::swap_ranges(piece.begin(), piece.begin() + 1024, piece.begin() + 1024);
  EXPECT_FALSE(tagger.verify(tag, 7, bytes_of(frame), piece)) << "blocks change places";
  std::swap_ranges(piece.begin(), piece.begin() + 1024, piece.begin() + 1024);
  frame.offset ^= 1U;
  EXPECT_FALSE(tagger.verify(tag, 7, bytes_of(frame), piece));
}

TEST(UdpTagger, GivesTheSameTagOnEveryProcessor) {
  DataFrame frame;
  frame.number = 7;
  std::vector<std::byte> piece(3200);
  for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<std::byte>(i * 5 + i / 256);
  const Tag tag = Tagger(Digest{std::byte{1}}, "a").tag_of(7, bytes_of(frame), piece);
  // As builds with other instructions made it: ranks of two processors understand each other.
  const std::array<unsigned, 16> known{0xC0, 0x41, 0x28, 0x27, 0x79, 0x08, 0xB6, 0xE6,
                                       0x0A, 0x17, 0xAB, 0xCA, 0x6E, 0x1C, 0x10, 0x9E};
  for (std::size_t i = 0; i < tag.size(); ++i) EXPECT_EQ(static_cast<unsigned>(tag[i]), known[i]) << i;
}

/// A way with a delay, chances and an end to what it carries at once; both ends of a session; and time.
struct World {
  struct Flight {
    Time at;
    std::vector<std::byte> bytes;
    bool is_ack;
  };
  explicit World(double of_loss, double of_reorder = 0, double of_duplicate = 0, std::uint32_t seed = 1)
      : loss(of_loss), reorder(of_reorder), duplicate(of_duplicate), random(seed) {
    sender.begin(piece);
    acknowledge();
    run_for(milliseconds(1));
  }
  bool happens(double chance) { return std::uniform_real_distribution<double>(0, 1)(random) < chance; }
  void carry(std::vector<std::byte> bytes, bool is_ack) {
    ++carried;
    if (blocked || happens(loss) || (largest != 0 && bytes.size() > largest)) return;
    Time at = now + delay;
    if (!is_ack && pace > Span(0))
      at = delay + (free_at = std::max(free_at, now) + pace * static_cast<int>(bytes.size()) / 1000);
    if (happens(reorder)) at += microseconds(random() % 500);
    if (happens(duplicate)) flights.push_back({at + microseconds(3), bytes, is_ack});
    flights.push_back({at, std::move(bytes), is_ack});
  }
  void acknowledge() {
    const AckFrame frame = receiver.ack(now);
    const auto bytes = bytes_of(frame);
    carry({bytes.begin(), bytes.end()}, true);
  }
  void step() {
    now += microseconds(20);
    for (std::size_t i = 0; i < flights.size();) {
      if (flights[i].at > now) {
        ++i;
        continue;
      }
      const Flight flight = std::move(flights[i]);
      flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(i));
      if (flight.is_ack) {
        sender.acknowledged(*frame_in<AckFrame>(flight.bytes, Kind::kAck), now);
      } else {
        receiver.take(*frame_in<DataFrame>(flight.bytes, Kind::kData),
                      std::span(flight.bytes).subspan(sizeof(DataFrame)), now);
        // As a network does after what it took with one call.
        if (++taken % 16 == 0 && receiver.ack_due(now)) acknowledge();
      }
    }
    if (receiver.ack_due(now)) acknowledge();
    sender.tick(now);
    Plan plan;
    while (sender.next(now, plan)) {
      DataFrame frame;
      frame.lane = plan.lane;
      frame.bytes = static_cast<std::uint16_t>(plan.bytes);
      frame.number = plan.number;
      frame.offset = plan.offset;
      const auto head = bytes_of(frame);
      std::vector<std::byte> bytes(head.begin(), head.end());
      const auto body = sender.piece(plan);
      bytes.insert(bytes.end(), body.begin(), body.end());
      carry(std::move(bytes), false);
    }
  }
  void run_for(Span span) {
    const Time until = now + span;
    while (now < until) step();
  }
  /// Sends the messages from `first` on and takes them, in so much time at most; false if that was too short.
  bool exchange(std::uint32_t first, std::uint32_t count, std::uint32_t bytes, Span at_most) {
    const Time until = now + at_most;
    std::uint32_t sent = 0;
    std::uint32_t got = 0;
    while (got < count && now < until) {
      while (sent < count) {
        std::byte* const place = sender.stream(Lane::kData).reserve(bytes);
        if (place == nullptr) break;
        for (std::uint32_t i = 0; i < bytes; ++i) place[i] = test::pattern(0, 1, first + sent, i);
        sender.stream(Lane::kData).commit(test::header_for(0, 1, first + sent++, bytes));
      }
      step();
      Incoming incoming;
      while (receiver.peek(Lane::kData, incoming)) {
        EXPECT_EQ(incoming.header.sequence, first + got);
        EXPECT_EQ(incoming.payload.size(), bytes);
        for (std::uint32_t i = 0; i < bytes; i += 97) {
          EXPECT_EQ(incoming.payload[i], test::pattern(0, 1, first + got, i));
        }
        receiver.release(Lane::kData);
        ++got;
      }
    }
    return got == count;
  }

  std::size_t piece = 1344;
  double loss, reorder, duplicate;
  std::size_t largest = 0;
  bool blocked = false;
  Span pace{};  ///< time that 1000 bytes take
  Time free_at{};
  Span delay = microseconds(100);
  std::mt19937 random;
  Time now = kBegin;
  Sender sender{65408, kRing, kControl};
  Receiver receiver{kRing, kControl};
  std::deque<Flight> flights;
  std::uint64_t carried = 0, taken = 0;
};

TEST(UdpSession, NothingIsSentTwiceWithoutLoss) {
  World world(0);
  ASSERT_TRUE(world.exchange(0, 200, 20'000, seconds(5)));
  EXPECT_EQ(world.sender.resent(), 0U);
  world.run_for(milliseconds(50));
  EXPECT_TRUE(world.sender.delivered());
  EXPECT_EQ(world.sender.in_flight(), 0U);
  EXPECT_EQ(world.sender.deadline(world.now), Time::max()) << "nothing is left to be done";
}

TEST(UdpSession, ShortMessagesAreAcknowledgedTogetherAndLongOnesInPairs) {
  /// Messages of one datagram each.
  struct Way {
    explicit Way(std::size_t bytes) : bytes(bytes) {}
    void come() {
      const auto payload = static_cast<std::uint32_t>(bytes - kHeaderBytes);
      ASSERT_NE(out.reserve(payload), nullptr);
      out.commit(test::header_for(0, 1, number, payload));
      DataFrame frame;
      frame.offset = number * bytes;
      frame.bytes = static_cast<std::uint16_t>(bytes);
      frame.number = ++number;
      EXPECT_TRUE(receiver.take(frame, out.piece(frame.offset, bytes), kBegin));
    }
    std::size_t bytes;
    std::uint32_t number = 0;
    OutStream out{kMaxPayload[0], kRing};
    Receiver receiver{kRing, kControl};
  };
  Way small(128);
  while (!small.receiver.ack_due(kBegin) && small.number < 100) small.come();
  EXPECT_EQ(small.number, 18U);
  Way one(128);
  one.come();
  EXPECT_FALSE(one.receiver.ack_due(kBegin + microseconds(900)));
  EXPECT_TRUE(one.receiver.ack_due(kBegin + milliseconds(1))) << "none of any length waits for longer";
  EXPECT_TRUE(one.receiver.ack_presses(kBegin + milliseconds(1)));
  Way large(1344);
  large.come();
  EXPECT_FALSE(large.receiver.ack_due(kBegin));
  large.come();
  EXPECT_TRUE(large.receiver.ack_due(kBegin));
  EXPECT_FALSE(large.receiver.ack_presses(kBegin)) << "who waits for the message gets it first";
  for (int i = 0; i < 6; ++i) large.come();
  EXPECT_TRUE(large.receiver.ack_presses(kBegin));
  large.receiver.ack(kBegin);
  EXPECT_FALSE(large.receiver.ack_due(kBegin));
}

TEST(UdpSession, EverythingComesOnceAndInOrderThroughAnyWay) {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    for (const double loss : {0.001, 0.01, 0.05, 0.3}) {
      World world(loss, seed % 2 == 0 ? 0.1 : 0, seed % 3 == 0 ? 0.1 : 0, seed);
      ASSERT_TRUE(world.exchange(0, 100, 10'000, seconds(60))) << seed << " " << loss;
      world.run_for(seconds(3));
      EXPECT_TRUE(world.sender.delivered()) << seed << " " << loss;
    }
  }
}

TEST(UdpSession, ALossInAHundredCostsLessThanHalf) {
  Span times[2];
  for (int i = 0; i < 2; ++i) {
    World world(i == 0 ? 0 : 0.01);
    world.pace = microseconds(1);
    const Time begin = world.now;
    ASSERT_TRUE(world.exchange(0, 2000, 16'000, seconds(60)));
    times[i] = world.now - begin;
  }
  EXPECT_LT(times[1], 2 * times[0]);
}

TEST(UdpSession, WhatIsLateIsNotTakenForLost) {
  World world(0, 0.1, 0, 7);
  ASSERT_TRUE(world.exchange(0, 500, 20'000, seconds(20)));
  EXPECT_LT(world.sender.resent(), world.sender.datagrams() / 50);
}

TEST(UdpSession, TheLastDatagramIsAskedFor) {
  World world(0);
  ASSERT_TRUE(world.exchange(0, 10, 1000, seconds(1)));
  world.run_for(milliseconds(10));
  world.blocked = true;  // for one flight
  std::byte* const place = world.sender.stream(Lane::kData).reserve(8);
  ASSERT_NE(place, nullptr);
  world.sender.stream(Lane::kData).commit(test::header_for(0, 1, 10, 8));
  world.step();
  world.blocked = false;
  world.run_for(milliseconds(20));
  EXPECT_TRUE(world.sender.delivered());
}

TEST(UdpSession, AWayThatIsCutForTenSecondsIsAskedNowAndThenAndGoesOn) {
  World world(0);
  ASSERT_TRUE(world.exchange(0, 50, 20'000, seconds(1)));
  world.blocked = true;
  EXPECT_FALSE(world.exchange(50, 100, 20'000, seconds(10)));
  const std::uint64_t before = world.carried;
  world.run_for(seconds(10));
  EXPECT_LT(world.carried - before, 60U);
  world.blocked = false;
  world.run_for(seconds(3));
  EXPECT_TRUE(world.sender.delivered());
}

TEST(UdpSession, QuestionsDoNotUseUpTheTableOfWhatIsInFlight) {
  World world(0);
  ASSERT_TRUE(world.exchange(0, 10, 20'000, seconds(1)));
  world.blocked = true;
  EXPECT_FALSE(world.exchange(10, 60, 16'000, milliseconds(100)));
  // Far more questions than the table has places.
  for (int i = 0; i < 3000; ++i) {
    world.now += seconds(2);
    world.sender.tick(world.now);
    Plan plan;
    while (world.sender.next(world.now, plan)) continue;
  }
  world.blocked = false;
  world.run_for(seconds(5));
  EXPECT_TRUE(world.sender.delivered());
}

TEST(UdpSession, AClosedWindowOpensAlsoIfTheWordOfItIsLost) {
  World world(0);
  ASSERT_TRUE(world.exchange(0, 5, 20'000, seconds(1)));
  std::uint32_t sent = 5;
  for (Time until = world.now + milliseconds(500); world.now < until; world.step()) {
    if (world.sender.stream(Lane::kData).reserve(20'000) == nullptr) continue;
    world.sender.stream(Lane::kData).commit(test::header_for(0, 1, sent++, 20'000));
  }
  EXPECT_EQ(world.sender.in_flight(), 0U) << "what the peer had room for has come";
  EXPECT_FALSE(world.sender.delivered());
  Incoming incoming;
  while (world.receiver.peek(Lane::kData, incoming)) world.receiver.release(Lane::kData);
  world.blocked = true;
  world.run_for(microseconds(100));
  world.blocked = false;
  world.run_for(milliseconds(400));
  while (world.receiver.peek(Lane::kData, incoming)) world.receiver.release(Lane::kData);
  world.run_for(milliseconds(400));
  EXPECT_TRUE(world.sender.delivered());
}

TEST(UdpSession, AWayThatSwallowsLongDatagramsIsFoundOut) {
  World world(0);
  world.sender = Sender(65408, kRing, kControl);
  world.receiver = Receiver(kRing, kControl);
  world.sender.begin(65408);
  world.acknowledge();
  world.largest = 1400;
  ASSERT_TRUE(world.exchange(0, 20, 60'000, seconds(10)));
  EXPECT_LE(world.sender.most_piece() + sizeof(DataFrame), 1400U + 8);
}

TEST(UdpSession, ThatIsFoundOutWithMessagesWhoseDatagramsAreFarFromTheLongestToo) {
  for (const std::uint32_t bytes : {2000U, 4096U, 20'000U}) {
    World world(0);
    world.sender.begin(65408);
    world.largest = 1400;
    for (std::uint32_t number = 0; number < 10; ++number) {
      ASSERT_TRUE(world.exchange(number, 1, bytes, seconds(4))) << bytes << " bytes, message " << number;
    }
    EXPECT_LE(world.sender.most_piece() + sizeof(DataFrame), 1400U + 8);
  }
}

TEST(UdpSession, ALossInTenIsNotTakenForAWayThatSwallowsLongDatagrams) {
  World world(0.1);
  world.sender.begin(65408);
  for (std::uint32_t number = 0; number < 300; ++number) {
    ASSERT_TRUE(world.exchange(number, 1, number % 2 == 0 ? 4096 : 12'000, seconds(4))) << number;
  }
  EXPECT_EQ(world.sender.most_piece(), 65408U);
}

TEST(UdpSession, AcknowledgementsOfWhatWasNotSentAndOldOnesDoNothing) {
  World world(0);
  AckFrame frame;
  frame.largest = 1'000'000;
  EXPECT_FALSE(world.sender.acknowledged(frame, world.now));
  ASSERT_TRUE(world.exchange(0, 10, 10'000, seconds(1)));
  world.run_for(milliseconds(10));
  frame.largest = 1;
  frame.before.fill(~std::uint64_t{0});
  for (int i = 0; i < 10; ++i) world.sender.acknowledged(frame, world.now);
  EXPECT_EQ(world.sender.in_flight(), 0U);
  ASSERT_TRUE(world.exchange(10, 10, 10'000, seconds(1)));
}

TEST(UdpSession, APeerThatOffersAPartOfAWordIsSentWholeOnes) {
  Sender sender(1152, kRing, kControl);
  const Header header = [] {
    Header made = make_header(MessageType::kEager);
    made.segment_bytes = 1000;
    return made;
  }();
  ASSERT_NE(sender.stream(Lane::kData).reserve(1000), nullptr);
  sender.stream(Lane::kData).commit(header);
  AckFrame frame;
  frame.limits[0] = 200;
  sender.acknowledged(frame, kBegin);
  Plan plan;
  ASSERT_TRUE(sender.next(kBegin, plan));
  EXPECT_EQ(plan.bytes, 192U);
  EXPECT_FALSE(sender.next(kBegin, plan));
}

TEST(UdpSession, DatagramsThatAreNoMessagesAreAFaultAndTakeNoMemory) {
  Receiver receiver(kRing, kControl);
  std::vector<std::byte> piece(128);
  DataFrame frame;
  frame.number = 1;
  frame.offset = 2 * kRing;
  EXPECT_FALSE(receiver.take(frame, piece, kBegin)) << "beyond the window";
  frame.offset = ~std::uint64_t{0} - 63;
  EXPECT_FALSE(receiver.take(frame, piece, kBegin));
  frame.offset = 0;
  frame.lane = 2;
  EXPECT_FALSE(receiver.take(frame, piece, kBegin));
  frame.lane = 0;
  EXPECT_TRUE(receiver.take(frame, piece, kBegin));
  EXPECT_NE(receiver.fault(Lane::kData), "");
  Incoming incoming;
  EXPECT_FALSE(receiver.peek(Lane::kData, incoming));
  EXPECT_THROW(receiver.release(Lane::kData), Error);
}

}  // namespace
}  // namespace unisono::udp
