// The member's side by itself: what goes when, what goes again, and how it fails.
#include "switch/window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"

namespace unisono::slots {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr Time kBegin{seconds(1000)};

class WindowTest : public testing::Test, public Uplink {
 protected:
  void up(const SlotFrame& head, std::span<const std::byte> payload) override {
    sent.push_back(head);
    payloads.emplace_back(payload.begin(), payload.end());
  }
  static WindowShape shape() {
    WindowShape shape;
    shape.communicator = 3;
    shape.rank = 1;
    shape.ranks = 4;
    shape.position = 1;
    shape.slots = 2;
    shape.payload_bytes = 16;
    shape.generation = 7;
    shape.peer = "switch 10.0.0.9:7000";
    return shape;
  }
  /// An allreduce of int32 with so many turns of four elements.
  SlotCall call(std::uint64_t turns, Time deadline = Time::max()) {
    data.resize(4 * turns);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int32_t>(i);
    SlotCall one;
    one.collective = Collective::kAllreduce;
    one.func = Func::kSum;
    one.dtype = Datatype::kInt32;
    one.count = data.size();
    one.src = reinterpret_cast<const std::byte*>(data.data());
    one.dst = reinterpret_cast<std::byte*>(data.data());  // in place
    one.deadline = deadline;
    one.sequence = 5;
    return one;
  }
  SlotFrame down(SlotKind kind) const {
    SlotFrame head{};
    head.kind = kind;
    head.communicator = 3;
    head.generation = 7;
    head.member = kEveryone;
    return head;
  }
  void begin(Window& window, Time now, std::uint64_t turn = 0) {
    SlotFrame head = down(SlotKind::kBegin);
    head.turn = turn;
    window.take({head, {}}, now);
  }
  /// The result of the frame that went as number `which`: its payload, each byte doubled.
  void result(Window& window, std::size_t which, Time now) {
    SlotFrame head = sent[which];
    head.kind = SlotKind::kResult;
    head.member = kEveryone;
    std::vector<std::byte> doubled = payloads[which];
    for (std::byte& byte : doubled) byte = static_cast<std::byte>(std::to_integer<unsigned>(byte) * 2);
    window.take({head, doubled}, now);
  }
  /// Any result of a turn of `call`.
  void answer(Window& window, std::uint64_t turn) {
    SlotFrame head = window.contribution(turn)->head;
    head.kind = SlotKind::kResult;
    head.member = kEveryone;
    const std::vector<std::byte> block(16);
    window.take({head, block}, kBegin);
  }
  std::size_t turns_sent() const {
    return static_cast<std::size_t>(std::count_if(
        sent.begin(), sent.end(), [](const SlotFrame& one) { return one.kind == SlotKind::kContribute; }));
  }
  std::vector<std::uint64_t> turns() const {
    std::vector<std::uint64_t> turns;
    for (const SlotFrame& one : sent) turns.push_back(one.turn);
    return turns;
  }

  std::vector<std::int32_t> data;
  std::vector<SlotFrame> sent;
  std::vector<std::vector<std::byte>> payloads;
};

TEST_F(WindowTest, ClocksItselfAndStaysWithinItsRounds) {
  Window window(shape(), *this);
  const auto number = window.start(call(9), kBegin);
  sent.clear();
  payloads.clear();
  begin(window, kBegin);
  EXPECT_EQ(turns(), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(sent[1].slot, 1U);
  EXPECT_FALSE(sent[1].second);
  result(window, 1, kBegin);  // turn 1
  EXPECT_EQ(turns(), (std::vector<std::uint64_t>{0, 1, 3}));
  EXPECT_TRUE(sent[2].second);
  result(window, 2, kBegin);  // turn 3: turn 5 is beyond two rounds of slots from turn 0
  EXPECT_EQ(turns(), (std::vector<std::uint64_t>{0, 1, 3}));
  result(window, 0, kBegin);
  EXPECT_EQ(turns(), (std::vector<std::uint64_t>{0, 1, 3, 5, 2}));
  for (std::size_t i = 3; i < 9; ++i) result(window, i, kBegin);
  ASSERT_TRUE(number);
  EXPECT_TRUE(window.done(*number));
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], static_cast<std::int32_t>(2 * i));
  window.tick(window.next_due());
  EXPECT_EQ(window.next_due(), Time::max()) << "nothing is left to do";
}

TEST_F(WindowTest, BusyWindowsOfAProcessShareWhatMayBeOnItsWay) {
  WindowShape one = shape();
  one.slots = 64;
  one.others = std::make_shared<WindowsToSwitch>();
  const SlotCall long_call = call(1000);
  Window first(one, *this);
  first.start(long_call, kBegin);
  begin(first, kBegin);
  EXPECT_EQ(turns_sent(), 64U) << "alone";
  {
    std::vector<std::unique_ptr<Window>> more;
    for (int i = 0; i < 3; ++i) {
      sent.clear();
      more.push_back(std::make_unique<Window>(one, *this));
      more.back()->start(long_call, kBegin);
      begin(*more.back(), kBegin);
      EXPECT_EQ(turns_sent(), 64U / (i + 2)) << "a part of it, at once";
    }
    sent.clear();
    for (std::uint64_t turn = 0; turn < 48; ++turn) answer(first, turn);
    EXPECT_EQ(turns_sent(), 0U) << "from 64 down to 16";
    answer(first, 48);
    EXPECT_EQ(turns_sent(), 1U);
    more.clear();  // and with them what they had on their way
    answer(first, 49);
    EXPECT_EQ(turns_sent(), 50U) << "alone again";
  }
  std::vector<std::unique_ptr<Window>> many;
  for (int i = 0; i < 100; ++i) {
    sent.clear();
    many.push_back(std::make_unique<Window>(one, *this));
    many.back()->start(long_call, kBegin);
    begin(*many.back(), kBegin);
    EXPECT_GE(turns_sent(), 1U) << "however many there are";
  }
}

TEST_F(WindowTest, RepeatsAfterTheMeasuredRoundTripAndLaterEachTime) {
  const auto repeats_after = [this](std::chrono::nanoseconds way) {
    Window window(shape(), *this);
    window.start(call(100), kBegin);
    sent.clear();
    payloads.clear();
    begin(window, kBegin);
    Time now = kBegin;
    for (std::size_t answered = 0; answered < 80; answered += 2) {
      now += way;
      result(window, answered, now);
      result(window, answered + 1, now);
    }
    EXPECT_EQ(window.counters().repeated, 0U);
    std::vector<std::chrono::nanoseconds> pauses;
    for (std::size_t before = sent.size(); pauses.size() < 4; before = sent.size()) {
      const Time due = window.next_due();
      window.tick(due);
      if (sent.size() > before) pauses.push_back(due - now);
      now = sent.size() > before ? due : now;
    }
    return pauses;
  };
  const auto fast = repeats_after(microseconds(50));
  const auto slow = repeats_after(milliseconds(30));
  EXPECT_LT(fast[0], milliseconds(10));
  EXPECT_GT(slow[0], milliseconds(30));
  EXPECT_LT(slow[0], milliseconds(60));
  EXPECT_GT(slow[2], slow[0] * 3 / 2) << "longer each time";
}

TEST_F(WindowTest, WhatIsSentBeforeARestartIsSentAgainFromTheCommonBegin) {
  Window window(shape(), *this);
  window.start(call(6), kBegin);
  sent.clear();
  payloads.clear();
  begin(window, kBegin);
  result(window, 0, kBegin);
  result(window, 1, kBegin);
  EXPECT_EQ(turns(), (std::vector<std::uint64_t>{0, 1, 2, 3}));
  const auto before = payloads;
  const auto results = data;
  SlotFrame renew = down(SlotKind::kRenew);
  renew.generation = 9;
  window.take({renew, {}}, kBegin);
  ASSERT_EQ(sent.size(), 5U);
  EXPECT_EQ(sent[4].kind, SlotKind::kResume);
  EXPECT_EQ(sent[4].turn, 2U) << "the oldest without a result";
  result(window, 2, kBegin);
  EXPECT_EQ(window.lacking(), 2U) << "a result of the generation before is not taken";
  SlotFrame again = down(SlotKind::kBegin);
  again.generation = 9;
  again.turn = 1;  // another member lacks turn 1
  window.take({again, {}}, kBegin);
  EXPECT_EQ(turns(), (std::vector<std::uint64_t>{0, 1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(payloads[5], before[1]) << "the contribution, though its result stands in its place by now";
  EXPECT_EQ(sent[5].generation, 9U);
  result(window, 5, kBegin);
  EXPECT_EQ(data, results) << "a result that is there already is not stored once more";
}

TEST_F(WindowTest, DeadlinesSayWhatIsMissing) {
  const auto text = [this](auto change) {
    Window window(shape(), *this);
    window.start(call(3, kBegin + seconds(1)), kBegin);
    change(window);
    window.tick(kBegin + milliseconds(999));
    EXPECT_FALSE(window.failure());
    window.tick(kBegin + seconds(1));
    EXPECT_TRUE(window.failure());
    EXPECT_EQ(window.failure()->code, ErrorCode::kTimeout);
    return window.failure()->text;
  };
  const std::string first =
      "allreduce, call 5 of communicator 3: rank 1 has no result of chunk 1 of 3 from switch 10.0.0.9:7000 by the "
      "deadline; ";
  EXPECT_EQ(text([](Window&) {}), first +
                                      "nothing has come from there: is it running, and does the network let frames "
                                      "of 84 bytes through?");
  EXPECT_EQ(text([this](Window& window) {
              SlotFrame renew = down(SlotKind::kRenew);
              renew.generation = 8;
              window.take({renew, {}}, kBegin);
            }),
            first + "it has begun anew and waits until all members have answered it");
  EXPECT_EQ(text([this](Window& window) {
              begin(window, kBegin);
              SlotFrame missing = down(SlotKind::kMissing);
              missing.count = 2;
              missing.root = 3;
              window.take({missing, {}}, kBegin);
            }),
            first + "it waits for rank 3 and 1 more: has it made this call?");
  const auto above = [this](Window& window) {
    begin(window, kBegin);
    SlotFrame missing = down(SlotKind::kMissing);
    for (const std::uint32_t rank : {kEveryone, 3U, kEveryone}) {  // the last word is of its own switch alone
      missing.root = rank;
      window.take({missing, {}}, kBegin);
    }
    EXPECT_TRUE(window.waits_above());
    EXPECT_EQ(window.awaited(), 3U);
  };
  EXPECT_EQ(text(above), first +
                             "it waits for the switch above it, and that for rank 3, or for ranks behind it that are "
                             "below the same switch");
}

TEST_F(WindowTest, RefusesWhatSlotsDoNotCarry) {
  Window window(shape(), *this);
  const auto refused = [&](auto change) {
    SlotCall one = call(1);
    change(one);
    EXPECT_THROW(window.start(one, kBegin), Error);
  };
  refused([](SlotCall& one) { one.collective = Collective::kAlltoall; });
  refused([](SlotCall& one) { one.collective = Collective::kGather; });
  refused([](SlotCall& one) { one.func = Func::kAvg; });
  refused([](SlotCall& one) { one.func = Func::kNone; });
  refused([](SlotCall& one) { one.root = 4; });
  refused([](SlotCall& one) { one.dtype = Datatype::kNone; });
  EXPECT_TRUE(sent.empty());
}

TEST_F(WindowTest, ARefusalFailsTheWindowByName) {
  Window window(shape(), *this);
  window.start(call(1), kBegin);
  const auto refusal = bytes_of(SlotRefusal{SlotField::kTotal, 5, 0, 2, 4, 8});
  window.take({down(SlotKind::kRefuse), refusal}, kBegin);
  ASSERT_TRUE(window.failure());
  EXPECT_EQ(window.failure()->code, ErrorCode::kMismatchedCall);
  EXPECT_EQ(
      window.failure()->text,
      "the calls of communicator 3 are not aggregated in switch 10.0.0.9:7000: call 5: rank 0 says total 4, rank 2 "
      "says total 8; all ranks must say the same");
}

}  // namespace
}  // namespace unisono::slots
