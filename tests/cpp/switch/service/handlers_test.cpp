// Handlers in a switch that serves: what is refused, that their memory stays, and that callers disturb nobody.
#include "switch/service/handlers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "platform/join/hexadecimal.hpp"
#include "switch/handler/binary.hpp"
#include "tests/cpp/switch/service/client.hpp"

namespace unisono::slots {
namespace {

using handler::Element;
using handler::Info;
using handler::Op;
using std::chrono::seconds;
using testing::HasSubstr;
using State = RunAnswer::State;

/// Goes round until it is stopped: 2^20 times.
join::Blob goes_round() {
  handler::Program program = handler::payload_of({
      handler::numbered(Op::kEnter, 0, 0, 1U << 20U),
      handler::immediate(Op::kAdd, Element::kI64, 1, 1, 1),
      handler::numbered(Op::kAgain, 0, 0, 1, Element::kI64, 2),
  });
  program.source = "round.c";
  program.lines = {4, 5, 6};
  return handler::write_binary(program);
}

/// Adds the lengths of all packets, and writes the sum behind each of them, after some 100,000 instructions.
join::Blob sums_slowly() {
  return handler::write_binary(handler::payload_of({
      handler::numbered(Op::kEnter, 0, 0, 32'999),
      handler::immediate(Op::kAdd, Element::kI64, 3, 3, 1),
      handler::immediate(Op::kCompare, Element::kI64, 4, 3, 33'000, 1),
      handler::numbered(Op::kAgain, 0, 4, 1),
      handler::numbered(Op::kLoad, 1, 0, 0),
      handler::numbered(Op::kInfo, 2, 0, static_cast<std::uint32_t>(Info::kLength)),
      handler::registers(Op::kAdd, Element::kI64, 1, 1, 2),
      handler::numbered(Op::kStore, 1, 0, 0),
      handler::registers(Op::kPut, Element::kI64, 0, 1),
      handler::end(),
  }));
}

std::uint64_t sum_in(const RunAnswer& answer) {
  std::uint64_t sum = 0;
  if (answer.outputs.size() == 1 && answer.outputs[0].size() == 8) std::memcpy(&sum, answer.outputs[0].data(), 8);
  return sum;
}

TEST(SwitchHandlers, MemoryStaysAcrossMessagesAndCallers) {
  Serving one("one");
  Client first(one.address());
  Client second(one.address());
  EXPECT_TRUE(first.load("lengths", adds_lengths()).fresh);
  const LoadAnswer again = second.load("lengths", adds_lengths());
  EXPECT_EQ(again.refusal, "");
  EXPECT_FALSE(again.fresh);
  EXPECT_EQ(sum_in(first.run("lengths", {5, 8192, 0})), 8197U);
  EXPECT_EQ(sum_in(second.run("lengths", {3})), 8200U);
  EXPECT_EQ(sum_in(second.run("lengths", {})), 8200U);
  EXPECT_EQ(sum_in(first.run("lengths", {1, 2}, 0, 3)), 0U);  // its end has not come
  EXPECT_EQ(sum_in(second.run("lengths", {10})), 8213U);      // another message comes between
  EXPECT_EQ(sum_in(first.run("lengths", {4}, 2, 3)), 8217U);
  EXPECT_TRUE(second.load("lengths", adds_lengths(), true, true).fresh);
  EXPECT_EQ(sum_in(first.run("lengths", {7})), 7U);
  const std::string stat = ask_at(one.address(), "stat lengths");
  EXPECT_THAT(stat, HasSubstr(join::hexadecimal_of(sha256_of(adds_lengths()))));
  EXPECT_THAT(stat, HasSubstr(R"("messages":1,"packets":1)"));
  EXPECT_EQ(first.unload("lengths"), "");
  EXPECT_THAT(first.unload("lengths"), HasSubstr("there is no handler lengths"));
  EXPECT_THAT(ask_at(one.address(), "stat"), HasSubstr(R"("handlers":[])"));
}

TEST(SwitchHandlers, RefusesInASentenceAndOthersGoOn) {
  ServiceSettings settings;
  settings.listen = "127.0.0.1:0";
  settings.name = "one";
  settings.handlers = {.most = 4, .memory_bytes = 1U << 16U, .budget = 1000};
  Serving one(settings);
  Client good(one.address());
  EXPECT_EQ(good.load("good", adds_lengths()).refusal, "");
  Client other(one.address());
  EXPECT_THAT(other.load("good", adds_lengths(1)).refusal, HasSubstr("another handler good is loaded"));
  EXPECT_THAT(other.load("broken", join::Blob(60)).refusal, HasSubstr("not with the letters UHDL"));
  join::Blob cut = adds_lengths();
  cut[45] ^= std::byte{1};
  EXPECT_THAT(other.load("cut", cut).refusal, HasSubstr("checksum"));
  LoadRequest wrong{{{}, "wrong"}, true, false, sha256_of(adds_lengths(2)), adds_lengths(3)};
  EXPECT_THAT(other.load(wrong).refusal, HasSubstr("load what was compiled"));
  EXPECT_THAT(other.load("large", adds_lengths(0, 1U << 16U)).refusal, HasSubstr("--handlers-memory"));
  EXPECT_EQ(other.load("second", adds_lengths(4)).refusal, "");
  EXPECT_EQ(other.load("third", adds_lengths(5)).refusal, "");
  EXPECT_EQ(other.load("fourth", adds_lengths(6)).refusal, "");
  EXPECT_THAT(other.load("fifth", adds_lengths(7)).refusal, HasSubstr("4 handlers are loaded"));
  EXPECT_EQ(other.run("none", {1}).state, State::kRefused);
  // A job finds its own handlers only, and has a quarter of the room.
  Client foreign(one.address());
  fill_random(foreign.owner);
  EXPECT_THAT(foreign.run("good", {1}).sentence, HasSubstr("no handler good that this caller may run"));
  EXPECT_THAT(foreign.unload("good"), HasSubstr("no handler good that this caller may unload"));
  EXPECT_EQ(other.unload("fourth"), "");
  EXPECT_EQ(foreign.load("good", adds_lengths(8)).refusal, "");
  EXPECT_EQ(sum_in(foreign.run("good", {1})), 9U);
  EXPECT_THAT(foreign.load("more", adds_lengths(9)).refusal, HasSubstr("for this job"));
  // Who knows an owner may do as it does, so that nobody is told more than which handlers are of the same.
  const std::string stat = ask_at(one.address(), "stat good");
  EXPECT_THAT(stat, HasSubstr("\"job\":\"" + join::hexadecimal_of(sha256_of(foreign.owner)).substr(0, 16) + "\""));
  EXPECT_EQ(sum_in(good.run("good", {3})), 3U);
}

TEST(SwitchHandlers, StopsWhatIsOverBudgetAndSaysWhere) {
  Serving one("one");
  Client client(one.address());
  ASSERT_EQ(client.load("round", goes_round()).refusal, "");
  const RunAnswer stopped = client.run("round", {1, 1});
  EXPECT_EQ(stopped.state, State::kStopped);
  EXPECT_EQ(stopped.sentence.substr(0, 8), "round.c:");
  EXPECT_THAT(stopped.sentence, HasSubstr("payload is stopped at packet 0: it has executed 1048576 instructions"));
  EXPECT_EQ(stopped.taken, 1U);
  EXPECT_THAT(client.run("round", {1}, 0, 1, 500).sentence, HasSubstr("it has executed 500 instructions"));
  EXPECT_EQ(client.run("round", {1}, 1, 2).state, State::kRefused);  // that message is over
  const std::string stat = ask_at(one.address(), "stat");
  EXPECT_THAT(stat, HasSubstr(R"("stops":{"budget":2})"));
  EXPECT_THAT(stat, HasSubstr(R"("last_stop":"round.c:)"));
}

TEST(SwitchHandlers, MessagesThatBreakOffLeaveAHandlerUsable) {
  Serving one("one");
  auto dying = std::make_unique<Client>(one.address());
  ASSERT_EQ(dying->load("lengths", adds_lengths()).refusal, "");
  ASSERT_EQ(dying->load("own", adds_lengths(1), false).refusal, "");
  EXPECT_EQ(dying->run("lengths", {100, 100}, 0, 9).state, State::kGoesOn);
  EXPECT_THAT(dying->run("lengths", {100}, 3, 9).sentence, HasSubstr("packet 3 is sent, and packet 2 is the next"));
  dying.reset();
  Client other(one.address());
  EXPECT_EQ(other.run("lengths", {1}, 2, 9).state, State::kRefused);  // what is begun is another caller's
  EXPECT_EQ(sum_in(other.run("lengths", {11})), 211U);
  EXPECT_TRUE(comes([&] { return other.run("own", {1}).state == State::kRefused; }, seconds(2)));
}

TEST(SwitchHandlers, GoesWithTheLastWhoWantedIt) {
  Serving one("one");
  auto first = std::make_unique<Client>(one.address());
  auto second = std::make_unique<Client>(one.address());
  ASSERT_TRUE(first->load("lengths", adds_lengths(), false).fresh);
  ASSERT_FALSE(second->load("lengths", adds_lengths(), false).fresh);
  ASSERT_TRUE(first->load("anew", adds_lengths(1), false).fresh);
  ASSERT_TRUE(second->load("anew", adds_lengths(1), false, true).fresh);
  ASSERT_TRUE(first->load("stays", adds_lengths(2), false).fresh);
  ASSERT_FALSE(second->load("stays", adds_lengths(2), true).fresh);
  ASSERT_TRUE(first->load("own", adds_lengths(3), false).fresh);
  first.reset();
  Client other(one.address());
  ASSERT_TRUE(comes([&] { return other.run("own", {1}).state == State::kRefused; }, seconds(2)));
  EXPECT_EQ(sum_in(other.run("lengths", {11})), 11U);
  EXPECT_EQ(sum_in(other.run("anew", {11})), 12U);
  second.reset();
  EXPECT_TRUE(comes([&] { return other.run("lengths", {1}).state == State::kRefused; }, seconds(2)));
  EXPECT_TRUE(comes([&] { return other.run("anew", {1}).state == State::kRefused; }, seconds(2)));
  EXPECT_EQ(sum_in(other.run("stays", {11})), 13U);
}

TEST(SwitchHandlers, OthersHaveTheirTurnsWithinARequest) {
  Serving one("one");
  Client slow(one.address());
  Client quick(one.address());
  ASSERT_EQ(slow.load("sums", sums_slowly()).refusal, "");
  ASSERT_EQ(quick.load("lengths", adds_lengths()).refusal, "");
  std::atomic<bool> answered{false};
  RunAnswer answer;
  std::thread working([&] {
    RunRequest request{{{}, "sums"}, 0, 1, 0, 0, kMostPacketsAtOnce, 0, {}};
    for (std::uint32_t i = 0; i < kMostPacketsAtOnce; ++i) request.payloads.emplace_back(i % 7);
    answer = *run_answer_in(slow.connection().ask(ControlKind::kRun, packed(request), within(seconds(120))));
    answered.store(true);
  });
  const auto begun = [&] { return ask_at(one.address(), "stat sums").find("\"packets\":0,") == std::string::npos; };
  EXPECT_TRUE(comes(begun, seconds(10)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sum_in(quick.run("lengths", {3})), 3U * (i + 1));
  EXPECT_FALSE(answered.load()) << "the quick one has waited for the slow one's end";
  working.join();
  // As if nobody had come between.
  EXPECT_EQ(answer.state, State::kGoesOn) << answer.sentence;
  EXPECT_EQ(answer.taken, kMostPacketsAtOnce);
  ASSERT_EQ(answer.outputs.size(), kMostPacketsAtOnce);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < kMostPacketsAtOnce; ++i) {
    std::uint64_t written = 0;
    ASSERT_EQ(answer.outputs[i].size(), sizeof written);
    std::memcpy(&written, answer.outputs[i].data(), sizeof written);
    ASSERT_EQ(written, sum += i % 7) << i;
  }
}

TEST(SwitchHandlers, MemoryCountsUntilTheLastRequestHasEnded) {
  const join::Blob binary = adds_lengths();
  const std::uint64_t bytes = 4096 + 4 * binary.size();
  Handlers handlers({.most = 64, .memory_bytes = 3 * bytes}, [] {});
  const auto load = [&](const char* name, bool anew = false) {
    return handlers.load(1, {{{}, name}, true, anew, sha256_of(binary), binary}).refusal;
  };
  std::uint32_t number = 0;
  const auto run = [&](const char* name, std::uint32_t packets) {
    handlers.run(1, number++, {{{}, name}, 0, 1, 0, 0, packets, 0, {join::Blob(1)}});
  };
  ASSERT_EQ(load("a"), "");
  ASSERT_EQ(load("b"), "");
  run("a", 1);
  run("b", 9);  // of which the other packets never come
  EXPECT_EQ(handlers.unload({{}, "a"}), "");
  EXPECT_EQ(handlers.unload({{}, "b"}), "");
  EXPECT_EQ(handlers.report("").memory_bytes, 2 * bytes);
  EXPECT_EQ(load("c"), "");
  EXPECT_THAT(load("d"), HasSubstr("unload one"));
  EXPECT_EQ(load("c", true), "");
  run("c", 1);
  EXPECT_THAT(load("c", true), HasSubstr("unload one"));
  handlers.start();
  EXPECT_TRUE(comes([&] { return handlers.report("").memory_bytes == bytes; }, seconds(5)));
  EXPECT_EQ(load("d"), "");
  EXPECT_EQ(load("c", true), "");
  EXPECT_EQ(handlers.report("").memory_bytes, 2 * bytes);
}

TEST(SwitchHandlers, FourRequestsOfACallerWait) {
  Handlers handlers({}, [] {});
  ASSERT_EQ(handlers.load(1, {{{}, "lengths"}, true, false, sha256_of(adds_lengths()), adds_lengths()}).refusal, "");
  for (std::uint32_t i = 0; i < 6; ++i) {
    handlers.run(1, i, {{{}, "lengths"}, 0, 1, 0, 0, 1, 0, {join::Blob(i + 1)}});
  }
  handlers.run(2, 6, {{{}, "lengths"}, 0, 1, 0, 0, 1, 0, {join::Blob(100)}});  // another's own four
  const std::vector<HandlerAnswer> refused = handlers.take_answers();
  ASSERT_EQ(refused.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(refused[i].number, 4 + i);
    EXPECT_EQ(refused[i].answer.state, State::kRefused);
    EXPECT_THAT(refused[i].answer.sentence, HasSubstr("4 requests of this caller wait already"));
  }
  handlers.start();
  std::vector<std::uint32_t> numbers;
  EXPECT_TRUE(comes(
      [&] {
        for (const HandlerAnswer& one : handlers.take_answers()) {
          EXPECT_EQ(one.answer.state, State::kGoesOn);
          numbers.push_back(one.number);
        }
        return numbers.size() == 5;
      },
      seconds(5)));
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 6, 1, 2, 3}));
}

TEST(SwitchHandlers, AggregationGoesOnWhileTheyRun) {
  Serving one("one");
  Client slow(one.address());
  ASSERT_EQ(slow.load("slow", sums_slowly()).refusal, "");
  const auto caller = call_at(one.address());
  const PoolRequest request = request_for("one", 4);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  ASSERT_TRUE(answer.made) << answer.refusal;
  Members members;
  members.add(request, "one", answer.port);
  // One request of some four hundred million instructions: calls that are carried meanwhile end before it does.
  std::atomic<bool> answered{false};
  std::thread working([&] {
    EXPECT_EQ(slow.run("slow", std::vector<std::size_t>(4096, 1)).outputs.size(), 4096U);
    answered.store(true);
  });
  EXPECT_TRUE(comes([&] { return ask_at(one.address(), "stat slow").find(R"("packets":0,)") == std::string::npos; },
                    seconds(5)));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members.allreduce(), "");
  EXPECT_FALSE(answered.load());
  working.join();
}

TEST(SwitchHandlers, PacketsInPiecesAreAnsweredInPieces) {
  Serving one("one");
  Client client(one.address());
  // Each packet writes 64 KiB, so that no answer has all of what 40 packets write.
  handler::Program program = handler::payload_of({
      handler::numbered(Op::kEnter, 0, 0, 8191),
      handler::registers(Op::kPut, Element::kI64, 0, 1),
      handler::immediate(Op::kAdd, Element::kI64, 1, 1, 1),
      handler::immediate(Op::kCompare, Element::kI64, 2, 1, 8192, 1),
      handler::numbered(Op::kAgain, 0, 2, 1),
      handler::end(),
  });
  ASSERT_EQ(client.load("writes", handler::write_binary(program)).refusal, "");
  std::uint32_t at = 0;
  std::size_t outputs = 0;
  int answers = 0;
  while (at < 40) {
    const RunAnswer answer = client.run("writes", std::vector<std::size_t>(40 - at, 1), at, 40);
    ASSERT_EQ(answer.state, State::kGoesOn) << answer.sentence;
    ASSERT_GT(answer.taken, 0U);
    at += answer.taken;
    outputs += answer.outputs.size();
    ++answers;
  }
  EXPECT_EQ(outputs, 40U);
  EXPECT_EQ(answers, 3);
}

TEST(SwitchHandlers, ABrokenRequestEndsItsConnectionAlone) {
  Serving one("one");
  Client good(one.address());
  ASSERT_EQ(good.load("lengths", adds_lengths()).refusal, "");
  for (const ControlKind kind : {ControlKind::kLoad, ControlKind::kUnload, ControlKind::kRun}) {
    Client bad(one.address());
    EXPECT_THROW(bad.connection().ask(kind, join::Blob(33, std::byte{7}), within(seconds(5))), Error);
  }
  RunRequest late{{{}, "lengths"}, 0, 1, 0, 5, 4, 0, {join::Blob(1)}};
  EXPECT_FALSE(run_request_in(packed(late)).has_value());
  EXPECT_EQ(sum_in(good.run("lengths", {3})), 3U);
}

TEST(SwitchHandlers, ASwitchThatTakesNoneSaysSo) {
  ServiceSettings settings;
  settings.listen = "127.0.0.1:0";
  settings.handlers.most = 0;
  Serving one(settings);
  EXPECT_THAT(Client(one.address()).load("lengths", adds_lengths()).refusal, HasSubstr("takes no handlers"));
}

}  // namespace
}  // namespace unisono::slots
