// Switches that serve, with members on the loopback: results have the bits of the fold in listed order, whatever the
// network does, whoever else speaks to the switch, and also when a switch starts anew.
#include "switch/service/service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/switch/service/members.hpp"

namespace unisono::slots {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr udp::ImpairmentSettings kBad{.loss = 0.05, .reorder = 0.1, .duplicate = 0.05, .seed = 3};

ServiceSettings settings_of(const std::string& name, const std::string& uplink = "") {
  ServiceSettings settings;
  settings.listen = "127.0.0.1:0";
  settings.name = name;
  settings.uplink = uplink;
  return settings;
}

TEST(Switch, GivesEightMembersTheFoldInListedOrder) {
  Serving one("one");
  const auto caller = call_at(one.address());
  EXPECT_EQ(caller->welcome().name, "one");
  const PoolRequest request = request_for("one", 8);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  EXPECT_NE(answer.generation, 0U);
  Members members;
  members.add(request, "one", answer.port);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members.allreduce(), "");
  const std::string shown = ask_at(one.address(), "show 7");
  EXPECT_THAT(shown, HasSubstr(R"("state":"running")"));
  EXPECT_THAT(shown, HasSubstr(R"(test \"quoted\")"));
  EXPECT_THAT(shown, HasSubstr(R"("entry_bytes":96)"));
  EXPECT_THAT(ask_at(one.address(), "show 8"), HasSubstr(R"("pools":[])"));
  EXPECT_THAT(ask_at(one.address(), "nonsense"), HasSubstr("status, jobs, show N"));
}

TEST(Switch, LossCopiesAndReorderingChangeNothing) {
  ServiceSettings settings = settings_of("one");
  settings.impairment = kBad;
  Serving one(settings);
  const auto caller = call_at(one.address());
  const PoolRequest request = request_for("one", 5);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  Members members;
  members.add(request, "one", answer.port, kBad);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(members.allreduce(), "");
}

TEST(Switch, LeavesFoldForTheTop) {
  Serving top("top");
  Serving left(settings_of("left", top.address()));
  Serving right(settings_of("right", top.address()));
  const PoolRequest request = tree_for("top", {"left", "right"}, 3);
  const auto at_left = call_at(left.address());
  EXPECT_THAT(at_left->welcome().above, testing::ElementsAre("top"));
  const PoolAnswer from_left = at_left->make(request, within(seconds(10)));
  ASSERT_TRUE(from_left.made) << from_left.refusal;
  const auto at_right = call_at(right.address());
  const PoolAnswer from_right = at_right->make(request, within(seconds(10)));
  ASSERT_TRUE(from_right.made) << from_right.refusal;
  Members members;
  members.add(request, "left", from_left.port);
  members.add(request, "right", from_right.port);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members.allreduce(3), "");
  EXPECT_THAT(ask_at(top.address(), "status"), HasSubstr(R"("pools":1)"));
  EXPECT_THAT(ask_at(left.address(), "status"), HasSubstr(R"("connected":true)"));
}

}  // namespace
}  // namespace unisono::slots
