// Operators of users in the pools of switches: whose they are, how much room they have, and what trees make of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/switch/service/client.hpp"

namespace unisono::slots {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

std::string text_of_operator(ControlConnection& by, const OperatorRequest& request) {
  const auto said = by.ask(ControlKind::kOperator, packed(request), within(seconds(10)));
  return {reinterpret_cast<const char*>(said.data()), said.size()};
}

TEST(SwitchOperators, AreForTheCommunicatorOfWhoAsks) {
  Serving one("one");
  const PoolRequest pool = request_for("one", 2);
  const auto owner = call_at(one.address());
  const auto foreign = call_at(one.address());
  ASSERT_TRUE(owner->make(pool, within(seconds(5))).made);
  const auto ask = [&](ControlConnection& by, const OperatorRequest& request) -> std::string {
    const auto said = by.ask(ControlKind::kOperator, packed(request), within(seconds(5)));
    return {reinterpret_cast<const char*>(said.data()), said.size()};
  };
  const join::Blob binary = handler::write_binary(handler::adds_elements());
  OperatorRequest request{pool.id, Func::kUser0, sha256_of(binary), binary};
  EXPECT_EQ(ask(*owner, request), "");
  EXPECT_THAT(ask(*foreign, request), HasSubstr("no such communicator of this caller"));
  OperatorRequest wrong = request;
  wrong.hash[0] ^= std::byte{1};
  EXPECT_THAT(ask(*owner, wrong), HasSubstr("another operator than its caller says"));
  wrong = request;
  wrong.binary = adds_lengths();
  wrong.hash = sha256_of(wrong.binary);
  EXPECT_THAT(ask(*owner, wrong), HasSubstr("US_OPERATOR"));
  wrong.binary.resize(50);
  wrong.hash = sha256_of(wrong.binary);
  EXPECT_THAT(ask(*owner, wrong), HasSubstr("handler: "));
  wrong = request;
  wrong.func = Func::kSum;
  EXPECT_FALSE(operator_request_in(packed(wrong)).has_value());
  EXPECT_EQ(ask(*owner, request), "");
}

TEST(SwitchOperators, HaveAQuarterOfTheRoomOfHandlersForOneJob) {
  ServiceSettings settings;
  settings.listen = "127.0.0.1:0";
  settings.name = "one";
  settings.handlers.memory_bytes = 4 * 19'000;
  Serving one(settings);
  const auto caller = call_at(one.address());
  const PoolRequest pool = request_for("one", 2);
  ASSERT_TRUE(caller->make(pool, within(seconds(5))).made);
  const auto ask = [&](const PoolRequest& of, Func func) -> std::string {
    const OperatorRequest request{of.id, func, sha256_of(handler::write_binary(handler::adds_elements())),
                                  handler::write_binary(handler::adds_elements())};
    const auto said = caller->ask(ControlKind::kOperator, packed(request), within(seconds(5)));
    return {reinterpret_cast<const char*>(said.data()), said.size()};
  };
  EXPECT_EQ(ask(pool, Func::kUser0), "");
  EXPECT_EQ(ask(pool, Func::kUser0), "");  // in its own place
  EXPECT_EQ(ask(pool, Func::kUser1), "");
  EXPECT_THAT(ask(pool, Func::kUser2), HasSubstr("no room for one of"));
  PoolRequest other = request_for("one", 2);
  other.job[0] = std::byte{1};
  other.communicator = 9;
  ASSERT_TRUE(caller->make(other, within(seconds(5))).made);
  EXPECT_EQ(ask(other, Func::kUser0), "");
  EXPECT_THAT(ask_at(one.address(), "show 9"), HasSubstr(R"("source":"by hand","element_bytes":8)"));
  caller->free(pool.id);
  EXPECT_TRUE(comes([&] { return ask_at(one.address(), "show 7").find("[]") != std::string::npos; }, seconds(2)));
  EXPECT_EQ(ask(other, Func::kUser1), "");
}

TEST(SwitchOperators, OneThatIsLoadedForEverybodyIsNamedByItsHash) {
  Serving one("one");
  const auto caller = call_at(one.address());
  const PoolRequest pool = request_for("one", 2);
  ASSERT_TRUE(caller->make(pool, within(seconds(5))).made);
  const join::Blob binary = handler::write_binary(handler::adds_elements());
  const OperatorRequest by_hash{pool.id, Func::kUser0, sha256_of(binary), {}};
  EXPECT_THAT(text_of_operator(*caller, by_hash), HasSubstr("the switch one has no operator with this hash"));
  ASSERT_EQ(Client(one.address()).load("adds", binary).refusal, "");
  ASSERT_EQ(Client(one.address()).load("lengths", adds_lengths()).refusal, "");
  EXPECT_EQ(text_of_operator(*caller, by_hash), "");
  OperatorRequest handler = by_hash;
  handler.func = Func::kUser1;
  handler.hash = sha256_of(adds_lengths());
  EXPECT_THAT(text_of_operator(*caller, handler), HasSubstr("no operator with this hash"));
  const std::string stat = ask_at(one.address(), "stat adds");
  EXPECT_THAT(stat, HasSubstr(R"("element_bytes":8,"most_executed")"));
  EXPECT_THAT(stat, HasSubstr(R"("elements":0,"stops":0,"last_stop":null,"communicator":7)"));
  EXPECT_THAT(ask_at(one.address(), "stat lengths"), HasSubstr(R"("operators":[])"));
}

/// Two leaves below a top, with a pool that a caller at each wants.
struct OperatorsInATree : testing::Test {
  static ServiceSettings settings(const std::string& name, const std::string& uplink = "", std::uint32_t most = 64) {
    ServiceSettings made{.listen = "127.0.0.1:0", .name = name, .uplink = uplink};
    made.handlers.most = most;
    return made;
  }
  void start(std::uint32_t most_above = 64, std::uint32_t most_right = 64) {
    top = std::make_unique<Serving>(settings("top", "", most_above));
    left = std::make_unique<Serving>(settings("left", top->address()));
    right = std::make_unique<Serving>(settings("right", top->address(), most_right));
    for (const auto& leaf : {std::cref(left), std::cref(right)}) {
      callers.push_back(call_at(leaf.get()->address()));
      ASSERT_TRUE(callers.back()->make(pool, within(seconds(10))).made);
    }
  }
  static bool has(const Serving& one) {
    return ask_at(one.address(), "show 7").find(R"("source":"by hand","element_bytes":8)") != std::string::npos;
  }

  const PoolRequest pool = tree_for("top", {"left", "right"}, 2);
  const join::Blob binary = handler::write_binary(handler::adds_elements());
  const OperatorRequest request{pool.id, Func::kUser0, sha256_of(binary), binary};
  std::unique_ptr<Serving> top, left, right;
  std::vector<std::unique_ptr<ControlConnection>> callers;
};

TEST_F(OperatorsInATree, AreThoseOfAllSwitchesOnTheWayUp) {
  start();
  EXPECT_EQ(text_of_operator(*callers[0], request), "");
  EXPECT_TRUE(has(*top));
  EXPECT_TRUE(has(*left));
  EXPECT_FALSE(has(*right));
  EXPECT_EQ(text_of_operator(*callers[1], request), "");
  EXPECT_EQ(text_of_operator(*callers[1], request), "");  // which changes nothing
  EXPECT_TRUE(has(*right));
  EXPECT_EQ(text_of_operator(*callers[0], {pool.id, Func::kUser0, {}, {}}), "");
  EXPECT_FALSE(has(*left));
  EXPECT_TRUE(comes([&] { return !has(*top); }, seconds(5)));
  EXPECT_EQ(text_of_operator(*callers[0], request), "");
  EXPECT_TRUE(has(*top));
  for (const auto& caller : callers) caller->free(pool.id);
  EXPECT_TRUE(comes([&] { return !has(*top) && !has(*left) && !has(*right); }, seconds(5)));
}

TEST_F(OperatorsInATree, WhatTheTopRefusesALeafDoes) {
  start(0);
  EXPECT_THAT(text_of_operator(*callers[0], request), HasSubstr("the switch top takes no operators of users"));
  EXPECT_FALSE(has(*left));
  EXPECT_THAT(text_of_operator(*callers[1], request), HasSubstr("the switch top takes no operators of users"));
}

TEST_F(OperatorsInATree, ATopThatStartsAgainGetsThemAgain) {
  start();
  ASSERT_EQ(text_of_operator(*callers[0], request), "");
  const std::string address = top->address();
  const auto again = [&](std::uint32_t most) {
    top.reset();
    ServiceSettings same = settings("top", "", most);
    same.listen = address;
    top = std::make_unique<Serving>(same);
  };
  again(64);
  EXPECT_TRUE(comes([&] { return has(*top); }, seconds(10)));
  EXPECT_TRUE(has(*left));
  // One that takes none any more: the leaf does not fold what could not be finished above it.
  again(0);
  EXPECT_TRUE(comes([&] { return !has(*left); }, seconds(10)));
}

}  // namespace
}  // namespace unisono::slots
