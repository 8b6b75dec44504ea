// A pool of slots by itself: what it answers, refuses and keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "core/facts.hpp"
#include "switch/buffering.hpp"
#include "switch/slots.hpp"

namespace unisono::slots {
namespace {

struct Sent {
  SlotFrame head;
  std::vector<std::byte> payload;
};

class PoolTest : public testing::Test, public Outlet {
 protected:
  void down(const SlotFrame& head, std::span<const std::byte> payload) override { keep(head, payload); }
  void down_all(const SlotFrame& head, std::span<const std::byte> payload) override { keep(head, payload); }
  void up(const SlotFrame& head, std::span<const std::byte> payload) override { keep(head, payload); }
  void keep(const SlotFrame& head, std::span<const std::byte> payload) {
    sent.push_back({head, {payload.begin(), payload.end()}});
  }

  static PoolShape shape(std::uint32_t children) {
    PoolShape shape;
    shape.slots = 2;
    shape.payload_bytes = 64;
    for (std::uint32_t i = 0; i < children; ++i) shape.children.push_back({i, 1});
    return shape;
  }
  /// All members begin at turn 0.
  void resume_all(Pool& pool, std::uint32_t children) {
    for (std::uint32_t i = 0; i < children; ++i) {
      SlotFrame head{};
      head.kind = SlotKind::kResume;
      head.generation = pool.generation();
      head.member = i;
      pool.from_child({head, {}});
    }
    ASSERT_EQ(pool.state(), Pool::State::kRunning);
    sent.clear();
  }
  /// The switch above has begun, in generation 4, and so has this one.
  void resume_below(Pool& pool, std::uint32_t children) {
    SlotFrame begin{};
    begin.kind = SlotKind::kRenew;
    begin.generation = 4;
    pool.from_parent({begin, {}});
    for (std::uint32_t child = 0; child < children; ++child) {
      SlotFrame resume{};
      resume.kind = SlotKind::kResume;
      resume.generation = pool.generation();
      resume.member = child;
      pool.from_child({resume, {}});
    }
    begin.kind = SlotKind::kBegin;
    begin.total = pool.generation();
    pool.from_parent({begin, {}});
    ASSERT_EQ(pool.state(), Pool::State::kRunning);
    sent.clear();
  }
  template <class T>
  static Sent share(std::uint32_t member, std::uint64_t turn, Func func, Datatype dtype, const std::vector<T>& values) {
    SlotFrame head{};
    head.kind = SlotKind::kContribute;
    head.opcode = Collective::kAllreduce;
    head.func = func;
    head.dtype = dtype;
    head.generation = 1;
    head.turn = turn;
    head.slot = static_cast<std::uint16_t>(turn % 2);
    head.second = (turn / 2) % 2 != 0;
    head.total = values.size();
    head.count = static_cast<std::uint32_t>(values.size());
    head.member = member;
    const auto bytes = std::as_bytes(std::span(values));
    head.bytes = static_cast<std::uint16_t>(bytes.size());
    return {head, {bytes.begin(), bytes.end()}};
  }
  static void give(Pool& pool, const Sent& one) { pool.from_child({one.head, one.payload}); }
  template <class T>
  std::vector<T> result() const {
    std::vector<T> values(sent.back().payload.size() / sizeof(T));
    std::memcpy(values.data(), sent.back().payload.data(), sent.back().payload.size());
    return values;
  }

  std::vector<Sent> sent;
};

TEST_F(PoolTest, FoldsFloatingPointInListedOrderWhateverComesFirst) {
  // (1e8 + 1) - 1e8 is 0 in fp32, (1e8 - 1e8) + 1 is 1.
  const std::array<float, 3> values{1e8F, 1.0F, -1e8F};
  for (const auto& order : {std::array{0U, 1U, 2U}, std::array{2U, 0U, 1U}, std::array{1U, 2U, 0U}}) {
    Pool pool(shape(3), *this);
    resume_all(pool, 3);
    for (const std::uint32_t member : order) {
      give(pool, share(member, 0, Func::kSum, Datatype::kFp32, std::vector{values[member]}));
    }
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].head.kind, SlotKind::kResult);
    EXPECT_EQ(sent[0].head.member, kEveryone);
    EXPECT_EQ(result<float>(), std::vector{(values[0] + values[1]) + values[2]});
  }
}

TEST_F(PoolTest, RoundsHalfPrecisionOnce) {
  // 2048 + 1 + 1 is 2050 in fp32; a fold that rounds each step to fp16 stays at 2048.
  Pool pool(shape(3), *this);
  resume_all(pool, 3);
  for (const std::uint32_t member : {2U, 1U, 0U}) {
    const std::uint16_t bits = arithmetic::narrow_fp16(member == 0 ? 2048.0F : 1.0F).bits;
    give(pool, share(member, 0, Func::kSum, Datatype::kFp16, std::vector{bits}));
  }
  EXPECT_EQ(result<std::uint16_t>(), std::vector{arithmetic::narrow_fp16(2050.0F).bits});
}

TEST_F(PoolTest, ExactOperatorsNeedOnePlaceAVersion) {
  PoolShape exact = shape(3);
  exact.keeps_order = false;
  Pool pool(exact, *this);
  EXPECT_EQ(pool.data_bytes(), 2U * 2 * 64);
  EXPECT_EQ(Pool(shape(3), *this).data_bytes(), 2U * 2 * 64 * 3) << "members * payload for each version of each slot";
  resume_all(pool, 3);
  for (const std::uint32_t member : {1U, 2U, 0U}) {
    give(pool, share(member, 0, Func::kSum, Datatype::kInt32, std::vector<std::int32_t>{1 << member, -5}));
  }
  EXPECT_EQ(result<std::int32_t>(), (std::vector<std::int32_t>{7, -15}));
  sent.clear();
  give(pool, share(2, 1, Func::kSum, Datatype::kFp32, std::vector{1.0F}));
  ASSERT_EQ(pool.state(), Pool::State::kRefused);
  EXPECT_EQ(sentence_of(pool.refusal()).find("call 0: rank 2 asks for sum of fp32, whose bits depend on the order"),
            0U);
}

TEST_F(PoolTest, EveryOperatorIsFreeOfOrderOrHasBitsThatShowIt) {
  // The claim of folds_in_any_order is tested, not only stated: three operands in every order and both bracketings.
  std::mt19937_64 random(4);
  for (const Datatype dtype : kAllDatatype) {
    for (const Func func : kAllFunc) {
      if (is_user(func) || func == Func::kAvg || !is_operator(func, dtype)) continue;
      bool differs = false;
      const std::size_t size = bytes_of(dtype);
      for (int round = 0; round < 3000; ++round) {
        std::array<std::array<std::byte, 16>, 3> operands{};
        for (auto& one : operands) {
          for (std::size_t i = 0; i < size; ++i) one[i] = static_cast<std::byte>(random());
          if (dtype == Datatype::kFp64Int32) std::memset(&one[12], 0, 4);
          // Some with all bits of the exponent set: which NaN results may depend on the order (docs/model.md).
          if (random() % 3 == 0) {
            for (std::size_t i = 1; i < size; i += 2) one[i] = std::byte{0xff};
          }
          // Of a pair, the second half is the index, which decides among equal values.
          if (random() % 3 == 0) std::memcpy(&one[size / 2], &operands[0][size / 2], size - size / 2);
        }
        const auto fold = [&](int a, int b, int c, bool right) {
          std::array<std::byte, 16> out{};
          const auto x = operands[a].data(), y = operands[b].data(), z = operands[c].data();
          EXPECT_TRUE(combine(func, dtype, right ? y : x, right ? z : y, out.data(), 1));
          EXPECT_TRUE(combine(func, dtype, right ? x : out.data(), right ? out.data() : z, out.data(), 1));
          return out;
        };
        const auto first = fold(0, 1, 2, false);
        for (const auto& p : {std::array{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 1, 2}}) {
          differs = differs || fold(p[0], p[1], p[2], false) != first || fold(p[0], p[1], p[2], true) != first;
        }
      }
      EXPECT_EQ(folds_in_any_order(func, dtype), !differs) << name_of(func) << " of " << name_of(dtype);
    }
  }
}

TEST_F(PoolTest, ChildrenOfATurnShareOneBudget) {
  Pool pool(shape(4), *this);
  std::vector<std::uint64_t> budgets;
  const auto fold = [&](const std::byte*, const std::byte*, std::byte*, std::uint64_t, std::uint64_t& budget) {
    budgets.push_back(budget);
    budget -= std::min<std::uint64_t>(budget, 20'000);
    return budget != 0;
  };
  pool.set_operator(Func::kUser0, {8, fold});
  resume_all(pool, 4);
  for (const std::uint32_t member : {2U, 0U, 1U, 3U}) {
    give(pool, share(member, 0, Func::kUser0, Datatype::kUint64, std::vector<std::uint64_t>{member, 1}));
  }
  EXPECT_EQ(budgets, (std::vector<std::uint64_t>{4096 * 8, 4096 * 8 - 20'000}));
  EXPECT_EQ(pool.state(), Pool::State::kRefused);
  // A switch is held up for some milliseconds, however many elements an operator has.
  EXPECT_EQ(fold_budget(1), 4096U);
  EXPECT_EQ(fold_budget(1000), 1U << 19U);
  EXPECT_EQ(fold_budget(100'000), 3'200'000U);
}

TEST_F(PoolTest, ADuplicateGetsTheResultOrLearnsWhoIsMissing) {
  Pool pool(shape(3), *this);
  resume_all(pool, 3);
  const auto of = [](std::uint32_t member) { return share(member, 0, Func::kMax, Datatype::kInt32, std::vector{7}); };
  give(pool, of(1));
  give(pool, of(1));
  ASSERT_EQ(sent.size(), 3U) << "the answer, and a word to both that are missing";
  EXPECT_EQ(sent[0].head.kind, SlotKind::kMissing);
  EXPECT_EQ(sent[0].head.member, 1U);
  EXPECT_EQ(sent[0].head.count, 2U);
  EXPECT_EQ(sent[0].head.root, 0U);
  EXPECT_EQ(pool.missing(0), (std::vector<std::uint32_t>{0, 2}));
  give(pool, of(0));
  give(pool, of(2));
  sent.clear();
  give(pool, of(2));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].head.kind, SlotKind::kResult);
  EXPECT_EQ(sent[0].head.member, 2U);
}

TEST_F(PoolTest, WhomTheSwitchAboveWaitsForIsToldToAllMembers) {
  PoolShape leaf = shape(2);
  leaf.uplink = 0;
  Pool pool(leaf, *this);
  resume_below(pool, 2);
  for (const std::uint32_t member : {0U, 1U}) {
    Sent one = share(member, 0, Func::kMax, Datatype::kInt32, std::vector{7});
    one.head.generation = pool.generation();
    give(pool, one);
  }
  SlotFrame missing{};
  missing.kind = SlotKind::kMissing;
  missing.generation = 4;
  missing.count = 1;
  missing.root = 5;
  const auto hear = [&] {
    sent.clear();
    pool.from_parent({missing, {}});
  };
  hear();
  ASSERT_EQ(sent.size(), 2U);
  for (const std::uint32_t member : {0U, 1U}) {
    const SlotFrame& head = sent[member].head;
    EXPECT_EQ(head.kind, SlotKind::kMissing);
    EXPECT_EQ(std::tuple(head.member, head.root, head.count), std::tuple(member, 5U, 0U));
    EXPECT_EQ(head.generation, pool.generation());
  }
  // It is not kept: when a member asks again, that rank may have made its call, and left.
  sent.clear();
  Sent again = share(1, 0, Func::kMax, Datatype::kInt32, std::vector{7});
  again.head.generation = pool.generation();
  give(pool, again);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].head.root, kEveryone);
  missing.root = 0;  // this switch itself
  hear();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].head.kind, SlotKind::kContribute);
  missing.turn = 1;
  missing.slot = 1;
  missing.root = 5;
  hear();
  EXPECT_TRUE(sent.empty()) << "of a turn that is not complete here nobody waits for those above";
}

TEST_F(PoolTest, OthersAskForAMemberThatHasEnded) {
  // Of members that wait the lowest one's repeats go up; it may have ended after it contributed.
  PoolShape below = shape(3);
  below.uplink = 0;
  Pool pool(below, *this);
  SlotFrame renew{};
  renew.kind = SlotKind::kRenew;
  renew.generation = 4;
  pool.from_parent({renew, {}});
  const auto resume = [&](std::uint32_t child) {
    SlotFrame head{};
    head.kind = SlotKind::kResume;
    head.generation = pool.generation();
    head.member = child;
    pool.from_child({head, {}});
  };
  const auto went_up = [&](SlotKind kind) {
    return std::count_if(sent.begin(), sent.end(), [&](const Sent& one) { return one.head.kind == kind; });
  };
  for (std::uint32_t child = 0; child < 3; ++child) resume(child);
  sent.clear();
  for (int round = 0; round < 4; ++round) {
    resume(1);
    resume(2);
  }
  EXPECT_GE(went_up(SlotKind::kResume), 1) << "the frame upwards may have been lost";
  EXPECT_LE(went_up(SlotKind::kResume), 2);

  SlotFrame begin{};
  begin.kind = SlotKind::kBegin;
  begin.generation = 4;
  begin.total = pool.generation();
  pool.from_parent({begin, {}});
  ASSERT_EQ(pool.state(), Pool::State::kRunning);
  const auto give_again = [&](std::uint32_t child) {
    Sent one = share(child, 0, Func::kSum, Datatype::kInt32, std::vector<std::int32_t>{1});
    one.head.generation = pool.generation();
    give(pool, one);
  };
  for (std::uint32_t child = 0; child < 3; ++child) give_again(child);
  sent.clear();
  for (int round = 0; round < 4; ++round) {
    give_again(1);
    give_again(2);
  }
  EXPECT_GE(went_up(SlotKind::kContribute), 1) << "the frame upwards may have been lost";
  EXPECT_LE(went_up(SlotKind::kContribute), 2);

  sent.clear();
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t child = 0; child < 3; ++child) give_again(child);
  }
  EXPECT_EQ(went_up(SlotKind::kContribute), 4) << "while the lowest one repeats, it serves for all";
}

TEST_F(PoolTest, AMemberThatIsDoneTakesNoResultAway) {
  Pool pool(shape(2), *this);
  resume_all(pool, 2);
  const auto of = [](std::uint32_t member, std::uint64_t turn) {
    return share(member, turn, Func::kSum, Datatype::kInt32, std::vector{static_cast<int>(10 * turn + member)});
  };
  for (const std::uint32_t member : {0U, 1U}) give(pool, of(member, 0));
  // Member 0 goes on in this slot; member 1 has lost the result of turn 0.
  give(pool, of(0, 2));
  sent.clear();
  give(pool, of(0, 4));
  EXPECT_EQ(pool.counters().faults, 1U) << "turn 4 needs the result of turn 2, which lacks member 1";
  give(pool, of(1, 0));
  EXPECT_EQ(result<int>(), std::vector{1});
  give(pool, of(1, 2));
  EXPECT_EQ(result<int>(), std::vector{41});
  // Frames of turn 0 that come now are late, from whomever they are.
  sent.clear();
  give(pool, of(0, 0));
  give(pool, of(1, 0));
  EXPECT_EQ(pool.counters().late, 2U);
  give(pool, of(0, 4));
  give(pool, of(1, 4));
  EXPECT_EQ(result<int>(), std::vector{81});
}

TEST_F(PoolTest, WhatDiffersIsRefusedByName) {
  const auto base = [](std::uint32_t member) {
    return share(member, 0, Func::kSum, Datatype::kInt32, std::vector{1, 2});
  };
  const auto expect = [&](auto change, const std::string& sentence) {
    Pool pool(shape(3), *this);
    resume_all(pool, 3);
    give(pool, base(0));
    Sent other = base(2);
    change(other);
    give(pool, other);
    ASSERT_EQ(pool.state(), Pool::State::kRefused) << sentence;
    EXPECT_EQ(sentence_of(pool.refusal()), sentence);
    EXPECT_EQ(sent.back().head.kind, SlotKind::kRefuse);
    EXPECT_EQ(sent.back().head.member, kEveryone);
    sent.clear();
    give(pool, base(1));
    EXPECT_EQ(sent.back().head.kind, SlotKind::kRefuse) << "also to who did not hear it";
    EXPECT_EQ(sent.back().head.member, 1U);
  };
  const std::string all = "; all ranks must say the same";
  expect([](Sent& one) { one.head.total = 9; }, "call 0: rank 0 says total 2, rank 2 says total 9" + all);
  expect([](Sent& one) { one.head.dtype = Datatype::kUint32; }, "call 0: rank 0 says int32, rank 2 says uint32" + all);
  expect([](Sent& one) { one.head.func = Func::kMin; }, "call 0: rank 0 says sum, rank 2 says min" + all);
  expect([](Sent& one) { one.head.call = 4; }, "call 0: rank 0 says call 0, rank 2 says call 4" + all);
  expect([](Sent& one) { one.head.opcode = Collective::kReduce; },
         "call 0: rank 0 says allreduce, rank 2 says reduce" + all);
  expect([](Sent& one) { one.payload.clear(); },
         "call 0: rank 2 sends 0 bytes of payload in a turn that has 8 from it");
}

TEST_F(PoolTest, OldGenerationsAreToldAndNotTaken) {
  PoolShape later = shape(2);
  later.generation = 5;
  Pool pool(later, *this);
  resume_all(pool, 2);
  give(pool, share(0, 0, Func::kSum, Datatype::kInt32, std::vector{1}));  // of generation 1
  EXPECT_EQ(pool.counters().contributions, 0U);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].head.kind, SlotKind::kRenew);
  EXPECT_EQ(sent[0].head.generation, 5U);
}

TEST_F(PoolTest, AllBeginWhereTheLastOfThemHasNoResult) {
  Pool pool(shape(3), *this);
  SlotFrame head{};
  head.kind = SlotKind::kResume;
  head.generation = 1;
  for (const auto& [member, turn] : {std::pair{1U, 9U}, {0U, 12U}, {2U, 11U}}) {
    head.member = member;
    head.turn = turn;
    pool.from_child({head, {}});
  }
  ASSERT_EQ(pool.state(), Pool::State::kRunning);
  EXPECT_EQ(sent.back().head.kind, SlotKind::kBegin);
  EXPECT_EQ(sent.back().head.turn, 9U);
}

TEST_F(PoolTest, OtherFactorsOfTheResultAreRefused) {
  Pool pool(shape(2), *this);
  resume_below(pool, 2);
  Sent one = share(0, 0, Func::kSum, Datatype::kFp32, std::vector<float>{1});
  one.head.generation = pool.generation();
  one.head.factor = 7;
  give(pool, one);
  ASSERT_EQ(pool.state(), Pool::State::kRunning);
  one.head.member = 1;
  one.head.factor = 0;
  give(pool, one);
  ASSERT_EQ(pool.state(), Pool::State::kRefused);
  EXPECT_EQ(pool.refusal().field, SlotField::kFactor);
}

TEST_F(PoolTest, WhatNoChildCarriesMustFitTooForItComesFromAbove) {
  PoolShape leaf = shape(2);
  leaf.uplink = 0;
  Pool pool(leaf, *this);
  Sent one = share(0, 0, Func::kNone, Datatype::kFp32, std::vector<float>{});
  one.head.opcode = Collective::kBcast;
  one.head.root = 5;  // hangs elsewhere
  resume_below(pool, 2);
  one.head.generation = pool.generation();
  one.head.count = 16;
  one.head.total = 16;
  give(pool, one);
  ASSERT_EQ(pool.state(), Pool::State::kRunning) << "64 bytes fit";
  one.head.member = 1;
  give(pool, one);
  one.head.turn = 1;
  one.head.slot = 1;
  one.head.count = 17;
  one.head.total = 17;
  give(pool, one);
  ASSERT_EQ(pool.state(), Pool::State::kRefused);
  EXPECT_EQ(pool.refusal().field, SlotField::kPayload);
  EXPECT_EQ(pool.refusal().first_value, 68U);
  EXPECT_EQ(pool.refusal().second_value, 64U);
}

TEST_F(PoolTest, ShapesThatCannotBeAreRefused) {
  const auto refused = [this](auto change) {
    PoolShape bad = shape(2);
    change(bad);
    EXPECT_THROW(Pool(bad, *this), Error);
  };
  refused([](PoolShape& bad) { bad.slots = 3; });
  refused([](PoolShape& bad) { bad.payload_bytes = 24; });
  refused([](PoolShape& bad) { bad.children.clear(); });
  refused([](PoolShape& bad) { bad.children[1].first = 0; });
  refused([](PoolShape& bad) { bad.generation = 0; });
  // Eq. 3.1: (2 + (3 + 1) * 440 ns / 4 ns) phits of 64 bytes.
  const LinkShape link{.margin = 2, .depth = 3, .slack = 1, .latency_ns = 440, .clock_ns = 4, .phit_bytes = 64};
  EXPECT_EQ(least_buffer_bytes(link), (2U + 440) * 64);
  EXPECT_EQ(least_slots(link, 1408), 32U);
  refused([&](PoolShape& bad) { bad.least_buffer = least_buffer_bytes(link); });
  EXPECT_EQ(least_buffer_bytes(LinkShape{}), 0U);
  EXPECT_EQ(least_slots({.margin = ~0U, .phit_bytes = ~0U}, 16), 1U << 31U) << "no number is enough, and it ends";
  PoolShape good = shape(2);
  good.slots = least_slots(link, 64);
  good.least_buffer = least_buffer_bytes(link);
  EXPECT_NO_THROW(Pool(good, *this));
}

}  // namespace
}  // namespace unisono::slots
