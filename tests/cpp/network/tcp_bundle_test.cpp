// Several connections as one session: order, loans, landings and ends, whichever connection is ahead.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "network/tcp/bundle.hpp"
#include "tests/cpp/network/traffic.hpp"
#include "tests/cpp/network/wire.hpp"

namespace unisono::tcp {
namespace {

using test::header_for;
using test::pattern;
using test::Wire;
using State = Bundle::State;

/// Gives every long message memory of its own, unless it was taken back.
class Fields final : public Landings {
 public:
  std::byte* landing(std::uint32_t /*peer*/, const Header& header) override {
    if (gone.contains(header.sequence)) return nullptr;
    auto& field = fields_[header.sequence];
    field.resize(std::max<std::size_t>(1, header.segment_bytes));
    return field.data();
  }
  bool has(std::uint32_t number, const std::byte* at) const {
    const auto found = fields_.find(number);
    return found != fields_.end() && found->second.data() == at;
  }
  std::set<std::uint32_t> gone;

 private:
  std::map<std::uint32_t, std::vector<std::byte>> fields_;
};

/// Two ends, 0 and 1, and as many wires between them as asked for; nothing moves on a wire unless it is pumped.
class Pair {
 public:
  explicit Pair(std::uint32_t connections, Landings* landings = nullptr) {
    for (std::uint32_t i = 0; i < connections; ++i) wires.push_back(std::make_unique<Wire>());
    for (std::size_t end = 0; end < 2; ++end) {
      ends[end].land_in(landings, 0);
      open(end, 0);
      ends[end].widen(connections, landings);
      for (std::size_t i = 1; i < connections; ++i) open(end, i);
    }
  }
  /// Everything moves, once.
  void turn(const std::set<std::size_t>& delayed = {}) {
    for (std::size_t i = 0; i < wires.size(); ++i) {
      if (!delayed.contains(i)) wires[i]->pump();
      for (Bundle& end : ends) {
        end.at(i).connection.send();
        end.at(i).connection.receive();
      }
    }
  }
  std::vector<std::unique_ptr<Wire>> wires;
  std::array<Bundle, 2> ends;

 private:
  void open(std::size_t end, std::size_t number) {
    ends[end].at(number).connection.open(Socket(dup(wires[number]->end(end))), 1);
  }
};

std::vector<std::byte> payload_of(std::uint32_t number, std::uint32_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) payload[i] = pattern(0, 1, number, i);
  return payload;
}

/// Lengths on both sides of every limit there is.
std::uint32_t length_of(std::uint32_t number) {
  constexpr std::uint32_t kSpread = Bundle::kSpread;
  constexpr std::uint32_t kLengths[] = {0,      1,      kSpread - 1, kSpread,         kSpread + 1,     16'384,
                                        40'000, 32'768, 65'535,      kMaxDataPayload, kMaxDataPayload, 12'345};
  return kLengths[number * 7 % std::size(kLengths)];
}

void expect_message(const Incoming& incoming, std::uint32_t number, std::uint32_t bytes) {
  ASSERT_EQ(incoming.header.sequence, number);
  ASSERT_EQ(incoming.payload.size(), bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(incoming.payload[i], pattern(0, 1, number, i)) << i;
}

/// Sends message `number` in one of the ways that there are. What is lent is kept in `memory` until it is returned.
bool send_one(Bundle& by, std::uint32_t number, std::uint32_t way, std::vector<std::byte>& memory) {
  const Header header = header_for(0, 1, number, length_of(number));
  if (by.lends()) return false;
  memory = payload_of(number, length_of(number));
  if (way == 0) return by.send(Lane::kData, header, memory, false);
  if (way == 1) return by.lend({&header, 1}, memory.data()) != Sent::kNo;
  std::byte* const place = by.reserve(Lane::kData, header.segment_bytes);
  if (place == nullptr) return false;
  std::copy(memory.begin(), memory.end(), place);
  by.commit(Lane::kData, header, false);
  return true;
}

TEST(TcpBundle, AnyDelaysKeepOrderAndContent) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    Fields fields;
    Pair pair(2 + seed % 4, seed % 3 == 0 ? nullptr : &fields);
    constexpr std::uint32_t kMessages = 150;
    std::uint32_t sent = 0;
    std::uint32_t got = 0;
    std::uint32_t control_sent = 0;
    std::uint32_t control_got = 0;
    std::vector<std::byte> memory;
    std::set<std::size_t> delayed;
    for (int idle = 0; got < kMessages || control_got < kMessages; ++idle) {
      ASSERT_LT(idle, 100'000) << "seed " << seed << " is stuck at message " << got;
      if (below(10) == 0) {
        delayed.clear();
        for (std::size_t i = 0; i < pair.wires.size(); ++i) {
          if (below(2) == 0) delayed.insert(i);
        }
      }
      for (std::uint32_t more = below(6); more > 0 && sent < kMessages; --more) {
        if (send_one(pair.ends[0], sent, below(3), memory)) ++sent;
      }
      if (control_sent < kMessages && pair.ends[0].reserve(Lane::kControl, 8) != nullptr) {
        pair.ends[0].commit(Lane::kControl, header_for(0, 1, control_sent++, 8), false);
      }
      pair.turn(delayed);
      Incoming incoming;
      for (std::uint32_t more = below(6); more > 0 && pair.ends[1].peek(Lane::kData, incoming); --more) {
        ASSERT_NO_FATAL_FAILURE(expect_message(incoming, got, length_of(got))) << "seed " << seed;
        if (below(4) == 0) break;  // looked at, and left
        pair.ends[1].release(Lane::kData);
        ++got;
      }
      while (pair.ends[1].peek(Lane::kControl, incoming)) {
        ASSERT_EQ(incoming.header.sequence, control_got++);
        pair.ends[1].release(Lane::kControl);
      }
      ASSERT_EQ(pair.ends[1].state(), State::kOpen) << pair.ends[1].cause();
      for (std::size_t i = 0; i < pair.wires.size(); ++i) {
        ASSERT_LE(pair.ends[1].at(i).connection.memory(), 3 * kMostBytes) << "a delay must not cost memory";
      }
    }
    for (std::size_t i = 0; i < pair.wires.size(); ++i) {
      EXPECT_GT(pair.wires[i]->from(0).seen.size(), 0U) << "connection " << i << " was not used";
    }
  }
}

TEST(TcpBundle, ALoanIsSpreadAndEndsWhenAllPartsHaveGone) {
  Pair pair(4);
  std::vector<Header> headers;
  std::vector<std::byte> memory;
  for (std::uint32_t number = 0; number < Poe::kMostLent; ++number) {
    headers.push_back(header_for(0, 1, number, kMaxDataPayload));
    const auto payload = payload_of(number, kMaxDataPayload);
    memory.insert(memory.end(), payload.begin(), payload.end());
  }
  // The wires take less than a part each, at first.
  std::uint32_t loans = 0;
  while (pair.ends[0].lend(headers, memory.data()) == Sent::kWhole) ASSERT_LT(++loans, 1000U);
  EXPECT_TRUE(pair.ends[0].lends());
  EXPECT_EQ(pair.ends[0].lend(headers, memory.data()), Sent::kNo) << "one loan at a time";
  // Asked back, the rest goes from memory of the session's own.
  pair.ends[0].settle();
  EXPECT_FALSE(pair.ends[0].lends());
  std::fill(memory.begin(), memory.end(), std::byte{0xee});
  const std::uint32_t frames = (loans + 1) * Poe::kMostLent;
  Incoming incoming;
  std::uint32_t got = 0;
  for (int turns = 0; got < frames; ++turns) {
    ASSERT_LT(turns, 100'000) << got;
    pair.turn();
    while (pair.ends[1].peek(Lane::kData, incoming)) {
      ASSERT_NO_FATAL_FAILURE(expect_message(incoming, got % Poe::kMostLent, kMaxDataPayload)) << got;
      pair.ends[1].release(Lane::kData);
      ++got;
    }
  }
  for (const auto& wire : pair.wires) EXPECT_GE(wire->from(0).seen.size(), frames / 4 * kMaxDataPayload);
}

TEST(TcpBundle, ALandingThatIsTakenBackIsDroppedInItsTurn) {
  Fields fields;
  Pair pair(3, &fields);
  std::vector<std::byte> memory;
  for (std::uint32_t number = 0; number < 9; ++number) {
    const auto payload = payload_of(number, kMaxDataPayload);
    ASSERT_TRUE(pair.ends[0].send(Lane::kData, header_for(0, 1, number, kMaxDataPayload), payload, false)) << number;
  }
  // The first wire is late, so what the others brought waits, and loses its place meanwhile.
  for (int i = 0; i < 200; ++i) pair.turn({0});
  Incoming incoming;
  EXPECT_FALSE(pair.ends[1].peek(Lane::kData, incoming));
  fields.gone = {1, 2, 5};
  std::vector<std::uint32_t> got;
  for (int turns = 0; got.empty() || got.back() != 8; ++turns) {
    ASSERT_LT(turns, 10'000);
    pair.turn();
    while (pair.ends[1].peek(Lane::kData, incoming)) {
      ASSERT_NO_FATAL_FAILURE(expect_message(incoming, incoming.header.sequence, kMaxDataPayload));
      got.push_back(incoming.header.sequence);
      pair.ends[1].release(Lane::kData);
    }
  }
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  // Those that had been put where nobody awaits them any more are gone; others may have come into the session's memory.
  EXPECT_LT(got.size(), 9U);
  for (const std::uint32_t number : {0U, 3U, 4U, 6U, 7U, 8U}) EXPECT_EQ(std::count(got.begin(), got.end(), number), 1);
}

TEST(TcpBundle, OneThatIsCutEndsAllAndWhatCameBeforeIsRead) {
  Pair pair(4);
  for (std::uint32_t number = 0; number < 8; ++number) {
    const auto payload = payload_of(number, 20'000);
    ASSERT_TRUE(pair.ends[0].send(Lane::kData, header_for(0, 1, number, 20'000), payload, false));
  }
  for (int i = 0; i < 100; ++i) {
    for (const auto& wire : pair.wires) wire->pump();
  }
  pair.wires[2]->end_stream(0);
  // Only the connection that was cut is looked at: the others are read because of it.
  for (int i = 0; i < 10; ++i) pair.ends[1].at(2).connection.receive();
  ASSERT_TRUE(pair.ends[1].is_ending());
  EXPECT_TRUE(pair.ends[1].end_together());
  EXPECT_EQ(pair.ends[1].state(), State::kDead);
  EXPECT_NE(pair.ends[1].cause().find("without leaving"), std::string::npos) << pair.ends[1].cause();
  Incoming incoming;
  for (std::uint32_t number = 0; number < 8; ++number) {
    ASSERT_TRUE(pair.ends[1].peek(Lane::kData, incoming)) << number;
    ASSERT_NO_FATAL_FAILURE(expect_message(incoming, number, 20'000));
    pair.ends[1].release(Lane::kData);
  }
  EXPECT_EQ(pair.ends[1].reserve(Lane::kData, 8), nullptr);
  EXPECT_EQ(pair.ends[1].reserve(Lane::kControl, 8), nullptr);
  EXPECT_FALSE(pair.ends[1].send(Lane::kData, header_for(1, 0, 0, 20'000), payload_of(0, 20'000), false));
}

TEST(TcpBundle, WhatIsUnreadForWantOfRoomOutlivesTheCut) {
  Pair pair(2);
  std::uint32_t sent = 0;
  // The receiver takes nothing: its memory and the wires fill up.
  while (sent < 4 * kMostBytes / kMaxDataPayload) {
    const auto payload = payload_of(sent, kMaxDataPayload);
    if (pair.ends[0].send(Lane::kData, header_for(0, 1, sent, kMaxDataPayload), payload, false)) ++sent;
    pair.turn();
  }
  Incoming incoming;
  std::uint32_t got = 0;
  pair.wires[1]->end_stream(0);
  for (int turns = 0; pair.ends[1].state() != State::kDead; ++turns) {
    ASSERT_LT(turns, 1000);
    for (std::size_t i = 0; i < 2; ++i) pair.ends[1].at(i).connection.receive();
    if (pair.ends[1].is_ending()) pair.ends[1].end_together();
    while (pair.ends[1].peek(Lane::kData, incoming)) {
      ASSERT_NO_FATAL_FAILURE(expect_message(incoming, got++, kMaxDataPayload));
      pair.ends[1].release(Lane::kData);
    }
  }
  EXPECT_GT(got, 2 * kMostBytes / kMaxDataPayload - 2);
}

TEST(TcpBundle, AFarewellIsOneOfAllConnections) {
  Pair pair(3);
  const auto payload = payload_of(0, 40'000);
  ASSERT_TRUE(pair.ends[0].send(Lane::kData, header_for(0, 1, 0, 40'000), payload, false));
  ASSERT_TRUE(pair.ends[0].send(Lane::kData, header_for(0, 1, 1, 40'000), payload_of(1, 40'000), false));
  pair.ends[0].leave();
  for (int i = 0; i < 100; ++i) pair.turn({1});
  EXPECT_EQ(pair.ends[1].at(0).connection.state(), State::kLeft);
  EXPECT_EQ(pair.ends[1].state(), State::kOpen) << "more may come by the late one";
  // The end that has read a farewell closes its connection: that ends none of the others, by which messages still go.
  pair.wires[0]->end_stream(1);
  pair.turn({1});
  EXPECT_EQ(pair.ends[0].at(0).connection.state(), State::kLeft) << pair.ends[0].at(0).connection.cause();
  EXPECT_FALSE(pair.ends[0].is_ending());
  for (int i = 0; i < 100; ++i) pair.turn();
  EXPECT_EQ(pair.ends[1].state(), State::kLeft) << pair.ends[1].cause();
  Incoming incoming;
  for (std::uint32_t number = 0; number < 2; ++number) {
    ASSERT_TRUE(pair.ends[1].peek(Lane::kData, incoming));
    ASSERT_NO_FATAL_FAILURE(expect_message(incoming, number, 40'000));
    pair.ends[1].release(Lane::kData);
  }
}

/// What a peer would send that breaks the rules: frames with numbers of its own choice.
class Liar {
 public:
  explicit Liar(std::uint32_t connections) : pair_(connections) {}
  void say(std::size_t connection, std::uint32_t number, bool control = false) {
    Header header = header_for(0, 1, number, 0);
    header.magic = static_cast<std::uint16_t>(kMagic);
    header.version = static_cast<std::uint8_t>(kWireVersion);
    header.session_sequence = number | (control ? kControlMark : 0);
    seal(header);
    const HeaderWords words = encode(header);
    ASSERT_EQ(write(pair_.wires[connection]->end(0), words.data(), sizeof words), static_cast<ssize_t>(sizeof words));
    pair_.turn();
  }
  /// How many messages can be had.
  std::uint32_t take() {
    Incoming incoming;
    std::uint32_t count = 0;
    for (; end().peek(Lane::kData, incoming); ++count) end().release(Lane::kData);
    return count;
  }
  Bundle& end() { return pair_.ends[1]; }

 private:
  Pair pair_;
};

TEST(TcpBundle, NumbersThatCannotBeAreNoMessages) {
  {
    Liar twice(2);
    twice.say(0, 0);
    twice.say(1, 0);
    EXPECT_EQ(twice.take(), 1U);
    EXPECT_EQ(twice.end().state(), State::kDead);
    EXPECT_NE(twice.end().fault().find("two messages with the number 0"), std::string::npos) << twice.end().fault();
  }
  {
    Liar gap(2);
    gap.say(0, 1);
    EXPECT_EQ(gap.take(), 0U);
    EXPECT_EQ(gap.end().state(), State::kOpen) << "the other one may bring it";
    gap.say(1, 2);
    EXPECT_EQ(gap.take(), 0U);
    EXPECT_EQ(gap.end().state(), State::kDead);
    EXPECT_NE(gap.end().fault().find("the message with the number 0 can come by none"), std::string::npos);
  }
  {
    Liar back(2);
    back.say(1, 3);
    back.say(1, 2);
    EXPECT_NE(back.end().fault().find("session_sequence is 2"), std::string::npos) << back.end().fault();
  }
  {
    Liar control(2);
    control.say(1, 0, true);
    EXPECT_NE(control.end().fault().find("a connection for data alone"), std::string::npos) << control.end().fault();
  }
}

}  // namespace
}  // namespace unisono::tcp
