// Tuning files, pins, and what is in force: what is read, and what is refused and how.
#include "cost/tuning_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "core/error.hpp"
#include "cost/in_force.hpp"
#include "cost/json.hpp"
#include "cost/pins.hpp"
#include "cost/tune.hpp"

namespace unisono::cost {
namespace {

using testing::HasSubstr;

Rule rule(Collective collective, const char* name) {
  Rule made;
  made.position = static_cast<std::uint16_t>(find_algorithm(collective, name));
  return made;
}

TuningFile sample() {
  TuningFile file;
  file.processor = "a \"fast\" one\\two";
  file.machine.line = 51.25;
  file.machine.copy = {0.015, 0.1 + 0.2, 0.5};
  file.machine.cross = {0.07, 0.4, 0.5};
  file.machine.cores = 6;
  Rule first = rule(Collective::kAllreduce, "ring");
  first.min_bytes = 4097;
  first.max_bytes = 1 << 20U;
  first.min_ranks = 3;
  first.max_ranks = 4;
  first.direct = Which::kWith;
  first.crowded = Which::kWithout;
  first.groups = Which::kWithout;
  file.rules = {first, rule(Collective::kBcast, "chain")};
  return file;
}

std::string refusal(const std::string& text) {
  try {
    parse_tuning(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(TuningFile, ComesBackAsItWasWritten) {
  const TuningFile file = sample();
  EXPECT_EQ(parse_tuning(write_tuning(file)), file);
  TuningFile plain;
  EXPECT_EQ(parse_tuning(write_tuning(plain)), plain) << "no rules";
}

TEST(TuningFile, SaysHowManyConnectionsPay) {
  TuningFile file = sample();
  file.network = MeasuredNetwork{"tcp", {}, 4};
  const std::string text = write_tuning(file);
  EXPECT_EQ(parse_tuning(text), file);
  EXPECT_EQ(parse_tuning(replaced(text, ",\n    \"connections\": 4", "")).network->connections, 1U)
      << "a file that was written before says nothing";
  for (const char* wrong : {"0", "17", "2.5", "\"4\""}) {
    EXPECT_THAT(refusal(replaced(text, "\"connections\": 4", std::string("\"connections\": ") + wrong)),
                HasSubstr("network.connections: here is "))
        << wrong;
  }
}

TEST(TuningFile, SaysFromWhenOnOrdinaryMemoryIsRegistered) {
  TuningFile file = sample();
  file.network = MeasuredNetwork{"ofi", {}, 1, 262'144};
  const std::string text = write_tuning(file);
  EXPECT_EQ(parse_tuning(text), file);
  for (const char* wrong : {"0", "65535", "1e30", "\"off\""}) {
    EXPECT_THAT(refusal(replaced(text, "\"register_from\": 262144", std::string("\"register_from\": ") + wrong)),
                HasSubstr("network.register_from: here is "))
        << wrong;
  }
}

TEST(TuningFile, SaysLineAndFieldOfWhatIsWrong) {
  const std::string good = write_tuning(sample());
  ASSERT_EQ(refusal(good), "");
  const struct {
    const char* what;
    const char* by;
    const char* said;
  } kCases[] = {
      {"\"unisono_tuning\": 1", "\"unisono_tuning\": 2", "line 2, unisono_tuning: the file is of version 2"},
      {"\"unisono_tuning\": 1", "\"tuning\": 1", "line 1: field unisono_tuning is missing"},
      {"\"line\": 51.25", "\"line\": -1", "line 6, machine.line: here is -1; allowed are 0 to"},
      {"\"line\": 51.25", "\"line\": \"fast\"", "machine.line: here is a string; needed is a number"},
      {"\"line\": 51.25", "\"line\": 1e999", "line 6: \"1e999\" is no value"},
      {"\"line\": 51.25", "\"line\": nan", "line 6: \"nan\" is no value"},
      {"\"line\": 51.25,", "", "line 5, machine: field line is missing"},
      {"\"line\": 51.25", "\"line\": 51.25, \"line\": 3", "field line stands here twice"},
      {"\"cores\": 6", "\"cores\": 6.5", "machine.cores: here is 6.5; needed is a whole number"},
      {"[0.015, ", "[", "machine.copy: here are 2 numbers; needed are 3"},
      {"[0.015, ", "[0.9, ", "machine.copy[1]: the cost falls"},
      {"[0.07, ", "[0.01, ", "machine.cross[0]: data of another core costs less"},
      {"\"ring\"", "\"rnig\"",
       "rules[0].algorithm: allreduce has no algorithm \"rnig\"; there are recursive_doubling, ring"},
      {"\"allreduce\"", "\"alreduce\"", "rules[0].collective: there is no collective \"alreduce\""},
      {"\"max_bytes\": 1048576", "\"max_bytes\": 1", "rules[0]: min_bytes is more than max_bytes"},
      {"\"max_ranks\": 4", "\"most_ranks\": 4", "rules[0].most_ranks: there is no such field; there are collective"},
      {"\"direct\": true", "\"direct\": 1", "rules[0].direct: here is a number; needed is true or false"},
      {"\"max_ranks\": 4", "\"max_ranks\": 5", "line 4, hash: here is \""},
      {"\"rules\": [", "\"rules\": {", "line 20: "},
  };
  for (const auto& each : kCases) {
    EXPECT_THAT(refusal(replaced(good, each.what, each.by)), HasSubstr(each.said)) << each.what << " -> " << each.by;
  }
  EXPECT_THAT(refusal(""), HasSubstr("line 1: a value is missing; the text ends here"));
  EXPECT_THAT(refusal("[]"), HasSubstr("here is a list; needed is an object"));
  EXPECT_THAT(refusal(good + "x"), HasSubstr("something follows"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("values stand in more than"));
  EXPECT_THAT(refusal(std::string(5U << 20U, ' ')), HasSubstr("allowed are"));
}

TEST(TuningFile, CannotTakeHoursOrAllMemory) {
  // Every value knows its path: a long name before a long list would be copied for each entry.
  const std::string name(1U << 20U, 'n');
  std::string ones = "[1";
  for (int i = 0; i < 100'000; ++i) ones += ",1";
  EXPECT_THAT(refusal("{\"" + name + "\": " + ones + "]}"),
              HasSubstr("a field has 1048576 characters; allowed are 64"));
  EXPECT_THAT(refusal("{\"rules\": " + ones + "]}"), HasSubstr("a list has more than 65536 entries"));
  std::string fields = "{\"field\": 0";
  for (int i = 0; i < 100'000; ++i) fields += ", \"" + std::to_string(i) + "\": 0";
  EXPECT_THAT(refusal(fields + "}"), HasSubstr("an object has more than 64 fields"));
}

TEST(TuningFile, MayBeChangedByHandWithoutTheHash) {
  std::string text = replaced(write_tuning(sample()), "\"max_ranks\": 4", "\"max_ranks\": 5");
  const std::size_t at = text.find("  \"hash\"");
  text.erase(at, text.find('\n', at) + 1 - at);
  EXPECT_EQ(parse_tuning(text).rules[0].max_ranks, 5U);
}

TEST(TuningFile, SurvivesAnyBytes) {
  const std::string good = write_tuning(sample());
  std::mt19937 random(7);
  const std::string interesting = "{}[],:\"\\0123456789.eE+-truefalsn \n\t";
  int taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = interesting[random() % interesting.size()];
          break;
        case 2:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
      }
      if (text.empty()) break;
    }
    try {
      const TuningFile file = parse_tuning(text);
      ++taken;
      // What was taken is sound: it names algorithms that exist, and can be written and read again.
      for (const Rule& each : file.rules) ASSERT_LT(each.position, algorithms().size());
      ASSERT_EQ(parse_tuning(write_tuning(file)), file);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument);
      ASSERT_THAT(error.what(), HasSubstr("line ")) << text;
    }
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 20'000);
}

TEST(Pins, AreRules) {
  const std::vector<Rule> rules =
      parse_pins(" allreduce=ring , bcast=binomial:64K-,bcast=linear:-4k, reduce=chain:1M-2G ,");
  ASSERT_EQ(rules.size(), 4U);
  const auto pin = [](Collective collective, const char* name) {
    Rule made = rule(collective, name);
    made.switches = true;  // what is pinned holds of switches, too
    return made;
  };
  EXPECT_EQ(rules[0], pin(Collective::kAllreduce, "ring"));
  Rule from = pin(Collective::kBcast, "binomial");
  from.min_bytes = 65536;
  EXPECT_EQ(rules[1], from);
  Rule to = pin(Collective::kBcast, "linear");
  to.max_bytes = 4096;
  EXPECT_EQ(rules[2], to);
  EXPECT_EQ(rules[3].min_bytes, std::uint64_t{1} << 20U);
  EXPECT_EQ(rules[3].max_bytes, std::uint64_t{2} << 30U);
  EXPECT_TRUE(parse_pins("").empty());
}

TEST(Pins, NameARadix) {
  const std::vector<Rule> rules =
      parse_pins("bcast=knomial:8, bcast = knomial:255:64K- ,bcast=knomial:2:-4K,bcast=knomial:4");
  ASSERT_EQ(rules.size(), 4U);
  Rule expected = rule(Collective::kBcast, "knomial");
  expected.switches = true;
  EXPECT_EQ(rules[3], expected) << "4 is the radix that it has anyway";
  expected.radix = 8;
  EXPECT_EQ(rules[0], expected);
  expected.radix = 255;
  expected.min_bytes = 65536;
  EXPECT_EQ(rules[1], expected);
  EXPECT_EQ(rules[2].radix, 2);
  EXPECT_EQ(rules[2].max_bytes, 4096U);
  EXPECT_NE(hash_of(rules),
            hash_of(parse_pins("bcast=knomial,bcast=knomial:255:64K-,bcast=knomial:2:-4K,bcast=knomial")))
      << "ranks that differ in it are told";
}

TEST(TuningFile, NamesARadix) {
  TuningFile file;
  file.rules = parse_pins("allreduce=recursive_multiplying:8:1K-,bcast=knomial");
  const std::string text = write_tuning(file);
  EXPECT_THAT(text, HasSubstr("\"algorithm\": \"recursive_multiplying:8\""));
  EXPECT_EQ(parse_tuning(text).rules, file.rules);
  std::string wrong = text;
  wrong.replace(wrong.find("multiplying:8"), 13, "multiplying:1");
  try {
    parse_tuning(wrong);
    ADD_FAILURE() << "there is no such radix";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"1\"; allowed are 2 to 255"));
  }
}

TEST(TuningFile, SaysWhichRulesHoldOfSwitches) {
  TuningFile file;
  file.rules = {rule(Collective::kReduce, "switch"), rule(Collective::kReduce, "chain")};
  const std::string without = write_tuning(file);
  EXPECT_EQ(without.find("switches"), std::string::npos);
  EXPECT_EQ(parse_tuning(without).rules, file.rules);
  file.rules[1].switches = true;
  const std::string with = write_tuning(file);
  EXPECT_THAT(with, HasSubstr("\"algorithm\": \"chain\", \"switches\": true"));
  EXPECT_EQ(parse_tuning(with).rules, file.rules);
  EXPECT_NE(hash_of(parse_tuning(with).rules), hash_of(parse_tuning(without).rules));
}

TEST(Pins, SayWhatIsWrong) {
  const struct {
    const char* text;
    const char* said;
  } kCases[] = {
      {"ring", "\"ring\": there is no ="},
      {"allreduce=", "allreduce has no algorithm \"\"; there are"},
      {"allreduce=rnig", "allreduce has no algorithm \"rnig\"; there are recursive_doubling, ring"},
      {"alreduce=ring", "there is no collective \"alreduce\"; there are"},
      {"bcast=linear:64", "the algorithm \"linear\" has no radix; \":64\" was given behind its name"},
      {"bcast=linear:2:64K-", "the algorithm \"linear\" has no radix"},
      {"bcast=knomial:1", "the radix of the algorithm \"knomial\" is \"1\"; allowed are 2 to 255"},
      {"bcast=knomial:256:-4K", "is \"256\"; allowed are 2 to 255"},
      {"bcast=knomial:64K", "is \"64K\"; allowed are 2 to 255"},
      {"bcast=knomial:", "is \"\"; allowed are 2 to 255"},
      {"bcast=knomial:-4K:8", "is \"-4K:8\"; allowed are 2 to 255"},
      {"bcast=linear:-", "\"-\" is no range"},
      {"bcast=linear:x-", "\"x\" is no number of bytes"},
      {"bcast=linear:1-2Q", "\"2Q\" is no number of bytes"},
      {"bcast=linear:2-1", "the range ends before it begins"},
      {"bcast=linear:99999999999G-", "is no number of bytes"},
      {"bcast=linear:99999999999999999999999-", "is no number of bytes"},
  };
  for (const auto& each : kCases) {
    try {
      parse_pins(each.text);
      ADD_FAILURE() << each.text << " was taken";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(each.said)) << each.text;
      EXPECT_THAT(error.what(), HasSubstr("UNISONO_ALGORITHM")) << each.text;
    }
  }
}

Call call_of(Collective collective, std::uint32_t size, std::uint64_t bytes) {
  Call call;
  call.collective = collective;
  call.size = size;
  call.count = bytes / 4;
  call.dtype = Datatype::kFp32;
  if (collective == Collective::kAllreduce) call.func = Func::kSum;
  return call;
}

std::string chosen(const Call& call, std::span<const Rule> rules, bool crowded = false) {
  return algorithms()[static_cast<std::size_t>(choose_algorithm(call, {rules, crowded}))].name;
}

TEST(Choice, FollowsPinsWithinTheirRangeAndWhereTheyAreAdmitted) {
  const std::vector<Rule> rules =
      parse_pins("bcast=scatter_allgather:64K-1M,allgather=recursive_doubling,allreduce=direct");
  EXPECT_EQ(chosen(call_of(Collective::kBcast, 4, 65'532), rules), chosen(call_of(Collective::kBcast, 4, 65'532), {}));
  EXPECT_EQ(chosen(call_of(Collective::kBcast, 4, 65'536), rules), "scatter_allgather");
  EXPECT_EQ(chosen(call_of(Collective::kBcast, 4, 1 << 20U), rules), "scatter_allgather");
  EXPECT_EQ(chosen(call_of(Collective::kBcast, 4, (1 << 20U) + 4), rules), "chain");
  EXPECT_EQ(chosen(call_of(Collective::kAllgather, 4, 1 << 20U), rules), "recursive_doubling");
  EXPECT_EQ(chosen(call_of(Collective::kAllgather, 3, 1 << 20U), rules), "ring") << "not a power of two";
  Call call = call_of(Collective::kAllreduce, 4, 64);
  EXPECT_EQ(chosen(call, rules), "flat") << "its buffers cannot be reached";
  call.direct = true;
  EXPECT_EQ(chosen(call, rules), "direct");
}

TEST(Choice, HasTheRadixOfItsRuleIfAllMembersTakeIt) {
  const std::vector<Rule> rules = parse_pins("bcast=knomial:8:64-,bcast=linear");
  const Call call = call_of(Collective::kBcast, 9, 4096);
  Choice choice = choose(call, {rules, false});
  EXPECT_EQ(choice.rule, rules.data());
  EXPECT_EQ(choice.radix, 8);
  choice = choose(call, {rules, false, false});
  EXPECT_EQ(choice.rule, rules.data() + 1) << "some engine has the usual radix only";
  EXPECT_EQ(choice.radix, 0);
  EXPECT_EQ(choose(call, {}).radix, 0);
}

TEST(Choice, LooksAtEveryConditionOfARule) {
  Rule only = rule(Collective::kAllreduce, "reduce_bcast");
  only.min_bytes = 100;
  only.max_bytes = 200;
  only.min_ranks = 3;
  only.max_ranks = 5;
  only.direct = Which::kWithout;
  only.crowded = Which::kWith;
  only.groups = Which::kWithout;
  only.hosts = Which::kWithout;
  const std::vector<Rule> rules{only};
  const Call fits = call_of(Collective::kAllreduce, 4, 128);
  EXPECT_EQ(chosen(fits, rules, true), "reduce_bcast");
  EXPECT_NE(chosen(fits, rules, false), "reduce_bcast");
  Tuning several_hosts{rules, true};
  several_hosts.hosts = true;
  EXPECT_NE(choose(fits, several_hosts).rule, rules.data());
  for (const auto& change : std::vector<void (*)(Call&)>{
           [](Call& c) { c.count = 24; },
           [](Call& c) { c.count = 51; },
           [](Call& c) { c.size = 2; },
           [](Call& c) { c.size = 6; },
           [](Call& c) { c.direct = true; },
           [](Call& c) { c.group_size = 2; },
       }) {
    Call other = fits;
    change(other);
    EXPECT_NE(chosen(other, rules, true), "reduce_bcast");
  }
}

TEST(Choice, HashesTellTablesApart) {
  const std::vector<Rule> rules = sample().rules;
  EXPECT_EQ(hash_of({}), 0U);
  EXPECT_EQ(hash_of(rules), hash_of(std::vector<Rule>(rules)));
  for (const auto& change : std::vector<void (*)(Rule&)>{
           [](Rule& r) { ++r.min_bytes; },
           [](Rule& r) { ++r.max_bytes; },
           [](Rule& r) { ++r.min_ranks; },
           [](Rule& r) { ++r.max_ranks; },
           [](Rule& r) { ++r.position; },
           [](Rule& r) { r.direct = Which::kAll; },
           [](Rule& r) { r.crowded = Which::kAll; },
           [](Rule& r) { r.groups = Which::kAll; },
           [](Rule& r) { r.hosts = Which::kWithout; },
           [](Rule& r) { r.switches = true; },
       }) {
    std::vector<Rule> other = rules;
    change(other[0]);
    EXPECT_NE(hash_of(other), hash_of(rules));
  }
  std::vector<Rule> turned{rules[1], rules[0]};
  EXPECT_NE(hash_of(turned), hash_of(rules)) << "the order of rules matters";
}

class InForceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("tuning-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "unisono");
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    unsetenv("UNISONO_TUNING");
    unsetenv("UNISONO_ALGORITHM");
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    for (const char* name : {"XDG_CONFIG_HOME", "UNISONO_TUNING", "UNISONO_ALGORITHM"}) unsetenv(name);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::filesystem::path folder_;
};

TEST_F(InForceTest, WithoutAnythingTheBuiltInRulesHold) {
  const InForce found = rules_in_force();
  EXPECT_TRUE(found.rules.empty());
  EXPECT_EQ(found.path, "");
  EXPECT_EQ(found.warning, "");
}

TEST_F(InForceTest, TheFileAtTheUsualPlaceIsFound) {
  const std::string path = write("unisono/tuning.json", write_tuning(sample()));
  EXPECT_EQ(usual_tuning_path(), path);
  const InForce found = rules_in_force();
  EXPECT_EQ(found.path, path);
  EXPECT_EQ(found.rules, sample().rules);
  EXPECT_EQ(found.machine, sample().machine);
  setenv("UNISONO_TUNING", "off", 1);
  EXPECT_TRUE(rules_in_force().rules.empty());
}

TEST_F(InForceTest, AMalformedFileAtTheUsualPlaceIsLeftAside) {
  const std::string path = write("unisono/tuning.json", "{\n\"unisono_tuning\": 1,\n}");
  const InForce found = rules_in_force();
  EXPECT_TRUE(found.rules.empty());
  EXPECT_THAT(found.warning, HasSubstr(path + ": line 3: the name of a field is missing"));
  EXPECT_THAT(found.warning, HasSubstr("left aside"));
}

TEST_F(InForceTest, AFileThatIsNamedMustBeRight) {
  for (const std::string& path : {write("bad.json", "{}"), (folder_ / "none.json").string(), folder_.string()}) {
    setenv("UNISONO_TUNING", path.c_str(), 1);
    try {
      rules_in_force();
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("UNISONO_TUNING names the tuning file " + path));
    }
  }
}

TEST_F(InForceTest, PinsComeFirst) {
  setenv("UNISONO_TUNING", write("good.json", write_tuning(sample())).c_str(), 1);
  setenv("UNISONO_ALGORITHM", "bcast=linear", 1);
  const InForce found = rules_in_force();
  ASSERT_EQ(found.rules.size(), 3U);
  EXPECT_EQ(found.pins, 1U);
  Rule pin = rule(Collective::kBcast, "linear");
  pin.switches = true;
  EXPECT_EQ(found.rules[0], pin);
}

}  // namespace
}  // namespace unisono::cost
