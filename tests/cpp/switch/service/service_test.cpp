// Switches that serve, with members on the loopback: results have the bits of the fold in listed order, whatever the
// network does, whoever else speaks to the switch, and also when a switch starts anew.
#include "switch/service/service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

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
  const Time begin = Member::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members.allreduce(), "");
  ASSERT_TRUE(members.rank(7).path());
  EXPECT_LT(*members.rank(7).path(), Member::now() - begin) << "a way, and not a clock";
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
  const Time begin = Member::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members.allreduce(3), "");
  ASSERT_TRUE(members.rank(5).path());
  EXPECT_LT(*members.rank(5).path(), Member::now() - begin);
  EXPECT_THAT(ask_at(top.address(), "status"), HasSubstr(R"("pools":1)"));
  EXPECT_THAT(ask_at(left.address(), "status"), HasSubstr(R"("connected":true)"));
}

/// Begins a call and lets it get half way.
void begin(Members& members) {
  members.start();
  for (int i = 0; i < 3; ++i) members.step();
}

TEST(Switch, StartedAnewEndsTheCallThatWasInFlight) {
  auto one = std::make_unique<Serving>("one");
  const std::string address = one->address();
  const PoolRequest request = request_for("one", 4, 4);
  auto caller = call_at(address);
  const PoolAnswer first = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(first.made) << first.refusal;
  Members members;
  members.add(request, "one", first.port);
  EXPECT_EQ(members.allreduce(), "");
  members.rank(3).go_to(9);  // what it says is lost, so the call stays in flight
  begin(members);
  one.reset();
  EXPECT_TRUE(comes([&] { return caller->ended(); }, seconds(2)));
  ServiceSettings again = settings_of("one");
  again.listen = address;
  one = std::make_unique<Serving>(again);
  caller = call_at(address);
  const PoolAnswer second = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(second.made) << second.refusal;
  EXPECT_GT(second.generation, first.generation);
  EXPECT_EQ(second.port, first.port);
  EXPECT_FALSE(members.done());
  members.rank(3).go_to(second.port);
  EXPECT_EQ(members.finish(), "");
  EXPECT_EQ(members.allreduce(), "");
}

TEST(Switch, PoolsAreMadeAgainAtATopThatStartsAnew) {
  auto top = std::make_unique<Serving>("top");
  const std::string address = top->address();
  Serving left(settings_of("left", address));
  Serving right(settings_of("right", address));
  const PoolRequest request = tree_for("top", {"left", "right"}, 2);
  const auto at_left = call_at(left.address());
  const auto at_right = call_at(right.address());
  const PoolAnswer from_left = at_left->make(request, within(seconds(10)));
  const PoolAnswer from_right = at_right->make(request, within(seconds(10)));
  ASSERT_TRUE(from_left.made && from_right.made) << from_left.refusal << from_right.refusal;
  Members members;
  members.add(request, "left", from_left.port);
  members.add(request, "right", from_right.port);
  EXPECT_EQ(members.allreduce(2), "");
  members.rank(3).go_to(9);
  begin(members);
  top.reset();
  ServiceSettings again = settings_of("top");
  again.listen = address;
  top = std::make_unique<Serving>(again);
  members.rank(3).go_to(from_right.port);
  EXPECT_EQ(members.finish(2), "");
  EXPECT_EQ(members.allreduce(2), "");
}

TEST(Switch, TreesStandABadNetwork) {
  ServiceSettings of_top = settings_of("top");
  of_top.impairment = kBad;
  Serving top(of_top);
  ServiceSettings of_left = settings_of("left", top.address());
  of_left.impairment = kBad;
  of_left.threads = 2;
  Serving left(of_left);
  const PoolRequest request = tree_for("top", {"left"}, 3);
  const auto caller = call_at(left.address());
  const PoolAnswer answer = caller->make(request, within(seconds(10)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  Members members;
  members.add(request, "left", answer.port, kBad);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members.allreduce(3), "");
}

TEST(Switch, KeepsAPoolAsLongAsAConnectionWantsIt) {
  Serving one("one");
  auto first = call_at(one.address());
  auto second = call_at(one.address());
  const PoolRequest request = request_for("one", 2);
  const PoolAnswer made = first->make(request, within(seconds(5)));
  const PoolAnswer same = second->make(request, within(seconds(5)));
  EXPECT_TRUE(made.made && same.made);
  EXPECT_EQ(made.generation, same.generation);
  EXPECT_EQ(made.port, same.port);
  PoolRequest other = request;
  other.slots = 16;
  const PoolAnswer refused = second->make(other, within(seconds(5)));
  EXPECT_FALSE(refused.made);
  EXPECT_THAT(refused.refusal, HasSubstr("asked for otherwise"));
  const auto pools = [&](int count) {
    return ask_at(one.address(), "status").find("\"pools\":" + std::to_string(count) + ",") != std::string::npos;
  };
  first.reset();  // as if its process had died
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(pools(1));
  second->free(request.id);
  EXPECT_TRUE(comes([&] { return pools(0); }, seconds(1)));
  EXPECT_TRUE(second->make(request, within(seconds(5))).made);
  EXPECT_TRUE(pools(1));
  second.reset();
  EXPECT_TRUE(comes([&] { return pools(0); }, seconds(1)));
}

TEST(Switch, FreesAboveWhatIsNotWantedBelow) {
  Serving top("top");
  Serving leaf(settings_of("leaf", top.address()));
  auto caller = call_at(leaf.address());
  EXPECT_TRUE(caller->make(tree_for("top", {"leaf"}, 2), within(seconds(10))).made);
  const auto above = [&](const std::string& text) {
    return ask_at(top.address(), "status").find(text) != std::string::npos;
  };
  EXPECT_TRUE(above(R"("pools":1,)"));
  caller.reset();
  EXPECT_TRUE(comes([&] { return above(R"("pools":0,)"); }, seconds(1)));
}

TEST(Switch, GarbageAndReplayedDatagramsChangeNothing) {
  Serving one("one");
  const auto caller = call_at(one.address());
  const PoolRequest request = request_for("one", 2);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  Members members;
  members.add(request, "one", answer.port);
  std::vector<std::byte> recorded;
  members.rank(0).recorded = &recorded;
  EXPECT_EQ(members.allreduce(), "");
  members.rank(0).recorded = nullptr;

  Datagrams stranger(0, 2000);
  tcp::Address loopback;
  loopback.bytes = {127, 0, 0, 1};
  loopback.port = answer.port;
  const tcp::SystemAddress to = stranger.reachable(loopback, 0);
  const auto send = [&](std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), stranger.room().begin());
    stranger.queue(to, bytes.size());
    stranger.flush();
  };
  send(recorded);  // as it was: a duplicate, whose answer goes to the member
  std::vector<std::byte> altered = recorded;
  altered.back() ^= std::byte{1};
  send(altered);  // forged
  altered = recorded;
  altered.front() ^= std::byte{1};
  send(altered);                                        // of another pool
  send(std::span(recorded).first(20));                  // garbage
  send(std::vector<std::byte>(1500, std::byte{0x55}));  // of another pool
  const auto counted = [&](const char* text) {
    return comes([&] { return ask_at(one.address(), "status").find(text) != std::string::npos; }, seconds(2));
  };
  EXPECT_TRUE(counted(R"("garbage":1,"strangers":2,"forged":1)"));
  // On a slow machine members have repeated theirs, too.
  EXPECT_THAT(ask_at(one.address(), "show 7"), Not(HasSubstr(R"("duplicates":0)")));
  EXPECT_FALSE(stranger.receive([](std::span<std::byte>, const tcp::SystemAddress&) {}));
  EXPECT_EQ(members.allreduce(), "");
}

TEST(Switch, CarriesHundredsOfPoolsInMemoryThatDoesNotGrow) {
  ServiceSettings settings = settings_of("one");
  settings.threads = 3;
  Serving one(settings);
  const auto caller = call_at(one.address());
  constexpr std::uint64_t kPools = 300;
  std::vector<PoolRequest> requests;
  std::vector<std::uint16_t> ports;
  for (std::uint64_t i = 0; i < kPools; ++i) {
    requests.push_back(request_for("one", 2, 4));
    const PoolAnswer answer = caller->make(requests.back(), within(seconds(5)));
    ASSERT_TRUE(answer.made) << answer.refusal;
    ports.push_back(answer.port);
  }
  // Which worker has a pool follows from its id, so that it is the same after a restart.
  EXPECT_GT(std::count(ports.begin(), ports.end(), one.port()), static_cast<long>(kPools / 6));
  EXPECT_LT(std::count(ports.begin(), ports.end(), one.port()), static_cast<long>(kPools / 2));
  const std::string memory = "\"memory_bytes\":" + std::to_string(kPools * 2 * 4 * 2 * 1344) + "}";
  EXPECT_THAT(ask_at(one.address(), "status"), HasSubstr(memory));
  for (std::uint64_t i = 0; i < kPools; ++i) {
    Members members;
    members.add(requests[i], "one", ports[i]);
    ASSERT_EQ(members.allreduce(), "");
  }
  EXPECT_THAT(ask_at(one.address(), "status"), HasSubstr(memory));
}

TEST(Switch, SaysForWhomATurnWaits) {
  Serving one("one");
  const auto caller = call_at(one.address());
  const PoolRequest request = request_for("one", 3);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  Members members;
  members.add(request, "one", answer.port);
  EXPECT_THAT(ask_at(one.address(), "show 7"), HasSubstr(R"("state":"resuming")"));
  EXPECT_EQ(members.allreduce(), "");
  members.rank(1).go_to(9);
  begin(members);
  EXPECT_TRUE(comes(
      [&] {
        return ask_at(one.address(), "show 7").find(R"("missing":[{"position":1,"first":1,"ranks":1}])") !=
               std::string::npos;
      },
      seconds(2)));
  members.rank(1).go_to(answer.port);
  EXPECT_EQ(members.finish(), "");
}

TEST(Switch, LeavesRoomForOtherJobs) {
  ServiceSettings settings = settings_of("one");
  settings.slots = 1024;
  Serving one(settings);
  const auto caller = call_at(one.address());
  const auto request = [](std::byte job, std::uint32_t slots) {
    PoolRequest made = request_for("one", 4, slots);
    made.job.fill(job);
    return made;
  };
  const PoolAnswer too_much = caller->make(request(std::byte{1}, 256), within(seconds(5)));
  EXPECT_FALSE(too_much.made);
  EXPECT_EQ(too_much.possible, 64U);  // 512 places; with 128 slots it would be all there are
  EXPECT_THAT(too_much.refusal, HasSubstr("of 1024 in all"));
  int made = 0;
  while (caller->make(request(std::byte{1}, 16), within(seconds(5))).made) ++made;
  EXPECT_EQ(made, 7);
  EXPECT_TRUE(caller->make(request(std::byte{2}, 16), within(seconds(5))).made);
  EXPECT_FALSE(caller->make(request(std::byte{2}, 4), within(seconds(5))).made);
  EXPECT_THAT(ask_at(one.address(), "jobs"), HasSubstr(R"("slots":896)"));
}

TEST(Switch, MakesNoMorePoolsWhileItIsDrained) {
  Serving one("one");
  const auto caller = call_at(one.address());
  const PoolRequest request = request_for("one", 2);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  caller->ask(ControlKind::kDrain, std::array{std::byte{1}}, within(seconds(5)));
  const PoolAnswer refused = caller->make(request_for("one", 2), within(seconds(5)));
  EXPECT_FALSE(refused.made);
  EXPECT_THAT(refused.refusal, HasSubstr("is being drained"));
  EXPECT_TRUE(call_at(one.address())->welcome().draining);
  EXPECT_TRUE(caller->make(request, within(seconds(5))).made);
  Members members;
  members.add(request, "one", answer.port);
  EXPECT_EQ(members.allreduce(), "");
  caller->ask(ControlKind::kDrain, std::array{std::byte{0}}, within(seconds(5)));
  EXPECT_TRUE(caller->make(request_for("one", 2), within(seconds(5))).made);
}

TEST(Switch, EndsWhenItIsToldTo) {
  Service one([] {
    ServiceSettings settings = settings_of("one");
    settings.secret = kSecret;
    return settings;
  }());
  std::thread thread([&] { one.run(); });
  const auto caller = call_at(one.address());
  caller->ask(ControlKind::kStop, {}, within(seconds(5)));
  thread.join();
}

TEST(Switch, RefusesTreesThatAreNotItsOwn) {
  Serving top("top");
  Serving leaf(settings_of("leaf", top.address()));
  const auto refusal_of = [&](const std::string& where, const PoolRequest& request) {
    return call_at(where)->make(request, within(seconds(10))).refusal;
  };
  EXPECT_THAT(refusal_of(top.address(), request_for("elsewhere", 2)), HasSubstr("top is not in the tree"));
  EXPECT_THAT(refusal_of(top.address(), tree_for("more", {"top"}, 2)), HasSubstr("has no uplink"));
  EXPECT_THAT(refusal_of(leaf.address(), tree_for("more", {"leaf"}, 2)), HasSubstr("leads to top"));
  PoolRequest large = request_for("top", 2);
  large.payload_bytes = 16000;
  EXPECT_THAT(refusal_of(top.address(), large), HasSubstr("takes up to 8848"));
}

std::string fault_of(const ServiceSettings& given) {
  ServiceSettings settings = given;
  settings.secret = settings.secret.empty() ? kSecret : settings.secret;
  try {
    const Service service(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Switch, SaysInASentenceWhyItDoesNotStart) {
  Serving top("top");
  ServiceSettings settings = settings_of("other");
  settings.listen = top.address();
  EXPECT_THAT(fault_of(settings), HasSubstr("another process of this host has port"));
  EXPECT_THAT(fault_of(settings_of("top", top.address())), HasSubstr("has that name, too"));
  settings = settings_of("a name");
  EXPECT_THAT(fault_of(settings), HasSubstr("without blanks"));
  settings = settings_of("one");
  settings.listen = "nowhere";
  EXPECT_THAT(fault_of(settings), HasSubstr("allowed is HOST:PORT"));
  settings = settings_of("one");
  settings.secret = "short";
  EXPECT_THAT(fault_of(settings), HasSubstr("5 characters"));
  EXPECT_EQ(fault_of(settings_of("")), "nothing");
}

TEST(Switch, WaitsForItsUplink) {
  std::string address;
  {
    const Serving gone("top");
    address = gone.address();
  }
  std::unique_ptr<Serving> top;
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(300));
    ServiceSettings settings = settings_of("top");
    settings.listen = address;
    top = std::make_unique<Serving>(settings);
  });
  Serving leaf(settings_of("leaf", address));
  later.join();
  EXPECT_TRUE(call_at(leaf.address())->make(tree_for("top", {"leaf"}, 2), within(seconds(10))).made);
}

TEST(Switch, KnowsWhoIsAboveTheSwitchAboveIt) {
  Serving top("top");
  Serving middle(settings_of("middle", top.address()));
  Serving leaf(settings_of("leaf", middle.address()));
  EXPECT_THAT(call_at(leaf.address())->welcome().above, testing::ElementsAre("middle", "top"));
}

TEST(Switch, AllocatesNothingForMessages) {
  Serving one("one");
  const auto caller = call_at(one.address());
  const PoolRequest request = request_for("one", 4);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  Members members;
  members.add(request, "one", answer.port);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(members.allreduce(), "");
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(members.allreduce(), "");
  // Each call brings 144 kB of frames.
  EXPECT_LT(mallinfo2().uordblks, before + 100'000);
}

TEST(Switch, SaysThatTheSwitchAboveDoesNotAnswer) {
  auto top = std::make_unique<Serving>("top");
  Serving leaf(settings_of("leaf", top->address()));
  const auto caller = call_at(leaf.address());
  top.reset();
  const auto begin = join::Clock::now();
  const PoolAnswer answer = caller->make(tree_for("top", {"leaf"}, 2), within(seconds(15)));
  EXPECT_FALSE(answer.made);
  EXPECT_THAT(answer.refusal, HasSubstr("the switch above leaf does not answer"));
  EXPECT_LT(join::Clock::now() - begin, seconds(10));
  EXPECT_THAT(ask_at(leaf.address(), "status"), HasSubstr(R"("pools":0)"));
}

}  // namespace
}  // namespace unisono::slots
