// What the environment may say about a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/error.hpp"
#include "platform/native/job.hpp"

namespace unisono {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Variables = std::map<std::string, std::string>;

const char* const kNames[] = {"UNISONO_RANK",           "UNISONO_SIZE",     "UNISONO_RENDEZVOUS", "UNISONO_SECRET",
                              "UNISONO_JOIN_TIMEOUT_S", "UNISONO_OBSERVER", "UNISONO_STDOUT"};
const Variables kGood = {{"UNISONO_RANK", "2"},
                         {"UNISONO_SIZE", "5"},
                         {"UNISONO_RENDEZVOUS", "job-7"},
                         {"UNISONO_SECRET", "00ffAA9900ffAA99"},
                         {"UNISONO_JOIN_TIMEOUT_S", "1.5"}};

JobEnvironment read(const Variables& variables) {
  for (const char* name : kNames) unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  struct Cleared {
    ~Cleared() {
      for (const char* name : kNames) unsetenv(name);
    }
  } cleared;
  return JobEnvironment::from_environment();
}

std::string refusal(const Variables& changes, const std::string& without = "") {
  Variables variables = kGood;
  for (const auto& [name, value] : changes) variables[name] = value;
  variables.erase(without);
  try {
    read(variables);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
  }
  return "";
}

TEST(Environment, EmptyIsAJobOfOne) {
  const JobEnvironment environment = read({});
  EXPECT_EQ(environment.rank, 0U);
  EXPECT_EQ(environment.size, 1U);
  EXPECT_EQ(environment.timeout, std::chrono::seconds(60));
}

TEST(Environment, IsReadWhole) {
  const JobEnvironment environment = read(kGood);
  EXPECT_EQ(environment.rank, 2U);
  EXPECT_EQ(environment.size, 5U);
  EXPECT_EQ(environment.rendezvous, "job-7");
  EXPECT_EQ(environment.secret, "00ffAA9900ffAA99");
  EXPECT_EQ(environment.timeout, std::chrono::milliseconds(1500));
}

TEST(Environment, OneRankNeedsNeitherRendezvousNorSecret) {
  EXPECT_EQ(read({{"UNISONO_RANK", "0"}, {"UNISONO_SIZE", "1"}}).size, 1U);
}

TEST(Environment, ErrorsNameVariableValueAndWhatIsAllowed) {
  EXPECT_THAT(refusal({{"UNISONO_RANK", "5"}}),
              HasSubstr("UNISONO_RANK is \"5\", but should be this process's rank, 0 to 4"));
  EXPECT_THAT(refusal({}, "UNISONO_RANK"), HasSubstr("UNISONO_RANK is not set"));
  EXPECT_THAT(refusal({}, "UNISONO_SIZE"), HasSubstr("UNISONO_SIZE is not set"));
  EXPECT_THAT(refusal({}, "UNISONO_RENDEZVOUS"), HasSubstr("UNISONO_RENDEZVOUS is not set"));
  EXPECT_THAT(refusal({}, "UNISONO_SECRET"), HasSubstr("UNISONO_SECRET is not set"));
  for (const char* size : {"", "0", "-1", "+4", "4 ", " 4", "4x", "0x4", "4.0", "99999999999999999999", "1025"}) {
    EXPECT_THAT(refusal({{"UNISONO_SIZE", size}}), HasSubstr("UNISONO_SIZE is \"" + std::string(size) + "\"")) << size;
  }
  for (const char* timeout : {"", "0", "-1", "nan", "inf", "1s", "1e99", "0.0001"}) {
    EXPECT_THAT(
        refusal({{"UNISONO_JOIN_TIMEOUT_S", timeout}}),
        HasSubstr("UNISONO_JOIN_TIMEOUT_S is \"" + std::string(timeout) + "\", but should be a number of seconds"));
  }
  for (const std::string& name : {std::string(), std::string(101, 'a'), std::string("a b"), std::string("a\nb")}) {
    EXPECT_THAT(refusal({{"UNISONO_RENDEZVOUS", name}}), HasSubstr("UNISONO_RENDEZVOUS is \"")) << name;
  }
}

TEST(Environment, SaysWhoLooksAndHowStdoutIsWritten) {
  EXPECT_EQ(read({}).observer, "");
  EXPECT_FALSE(read({}).lines);
  EXPECT_EQ(read({{"UNISONO_OBSERVER", "eye-7"}}).observer, "eye-7");
  EXPECT_TRUE(read({{"UNISONO_STDOUT", "lines"}}).lines);
  EXPECT_FALSE(read({{"UNISONO_STDOUT", "blocks"}}).lines);
  EXPECT_THAT(refusal({{"UNISONO_STDOUT", "words"}}), HasSubstr("UNISONO_STDOUT is \"words\", but should be lines"));
  EXPECT_THAT(refusal({{"UNISONO_OBSERVER", std::string(101, 'a')}}), HasSubstr("at most 100 printable characters"));
}

TEST(Environment, ErrorsDoNotShowTheSecret) {
  for (const std::string& secret : {std::string("0123"), std::string("0123456789abcdeg"), std::string(300, 'a')}) {
    const std::string text = refusal({{"UNISONO_SECRET", secret}});
    EXPECT_THAT(text, HasSubstr("UNISONO_SECRET is set to " + std::to_string(secret.size()) + " characters"));
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
}

}  // namespace
}  // namespace unisono
