// What the environment may say about a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "core/error.hpp"
#include "network/ofi/make.hpp"
#include "platform/join/job.hpp"

namespace unisono {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Variables = std::map<std::string, std::string>;

const char* const kNames[] = {"UNISONO_RANK",
                              "UNISONO_SIZE",
                              "UNISONO_RENDEZVOUS",
                              "UNISONO_SECRET",
                              "UNISONO_SECRET_FILE",
                              "UNISONO_JOIN_TIMEOUT_S",
                              "UNISONO_OBSERVER",
                              "UNISONO_STDOUT",
                              "UNISONO_JOIN",
                              "UNISONO_JOIN_FD",
                              "UNISONO_HOST",
                              "UNISONO_TRANSPORT",
                              "UNISONO_INTERFACES",
                              "UNISONO_START",
                              "UNISONO_HOST_TIMEOUT_S",
                              "UNISONO_TLS",
                              "UNISONO_JOIN_HOSTS",
                              "UNISONO_TCP_CONNECTIONS",
                              "UNISONO_OFI_REGISTER_FROM"};
const Variables kGood = {{"UNISONO_RANK", "2"},
                         {"UNISONO_SIZE", "5"},
                         {"UNISONO_JOIN", "unix://job-7"},
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
  EXPECT_EQ(environment.title(), "job \"unix://job-7\"");
  EXPECT_EQ(environment.secret, "00ffAA9900ffAA99");
  EXPECT_EQ(environment.timeout, std::chrono::milliseconds(1500));
}

TEST(Environment, OneRankNeedsNeitherPlaceNorSecret) {
  EXPECT_EQ(read({{"UNISONO_RANK", "0"}, {"UNISONO_SIZE", "1"}}).size, 1U);
}

TEST(Environment, ErrorsNameVariableValueAndWhatIsAllowed) {
  EXPECT_THAT(refusal({{"UNISONO_RANK", "5"}}),
              HasSubstr("UNISONO_RANK is \"5\", but should be this process's rank, 0 to 4"));
  EXPECT_THAT(refusal({}, "UNISONO_RANK"), HasSubstr("UNISONO_RANK is not set"));
  EXPECT_THAT(refusal({}, "UNISONO_SIZE"), HasSubstr("UNISONO_SIZE is not set"));
  EXPECT_THAT(refusal({}, "UNISONO_JOIN"), HasSubstr("UNISONO_JOIN is not set, but should be where the ranks meet"));
  EXPECT_THAT(refusal({}, "UNISONO_SECRET"), HasSubstr("UNISONO_SECRET is not set"));
  for (const char* size : {"", "0", "-1", "+4", "4 ", " 4", "4x", "0x4", "4.0", "99999999999999999999", "2049"}) {
    EXPECT_THAT(refusal({{"UNISONO_SIZE", size}}), HasSubstr("UNISONO_SIZE is \"" + std::string(size) + "\"")) << size;
  }
  for (const char* timeout : {"", "0", "-1", "nan", "inf", "1s", "1e99", "0.0001"}) {
    EXPECT_THAT(
        refusal({{"UNISONO_JOIN_TIMEOUT_S", timeout}}),
        HasSubstr("UNISONO_JOIN_TIMEOUT_S is \"" + std::string(timeout) + "\", but should be a number of seconds"));
  }
  for (const std::string& name : {std::string(), std::string(101, 'a'), std::string("a b"), std::string("a\nb")}) {
    EXPECT_THAT(refusal({{"UNISONO_JOIN", "unix://" + name}}), HasSubstr("UNISONO_JOIN is \"unix://")) << name;
    EXPECT_THAT(refusal({{"UNISONO_RENDEZVOUS", name}}, "UNISONO_JOIN"), HasSubstr("UNISONO_RENDEZVOUS is \"")) << name;
  }
  EXPECT_THAT(refusal({{"UNISONO_JOIN", "unix:///tmp/job"}}), HasSubstr("the job's name, which is no path"));
}

TEST(Environment, TheOldNameOfThePlaceWorksAndIsMentionedOnce) {
  Variables old = kGood;
  old.erase("UNISONO_JOIN");
  old["UNISONO_RENDEZVOUS"] = "job-7";
  const auto said = [&](const std::string& rank) {
    old["UNISONO_RANK"] = rank;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(read(old).rendezvous, "job-7");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said("2"), "") << "rank 0 says it for all";
  EXPECT_EQ(said("0"), "unisono: warning: UNISONO_RENDEZVOUS=job-7 is the old form of UNISONO_JOIN=unix://job-7\n");
  EXPECT_EQ(said("0"), "");
  // Both, as in a job that is started within another one.
  EXPECT_EQ(refusal({{"UNISONO_RENDEZVOUS", "job-7"}}), "");
  EXPECT_THAT(refusal({{"UNISONO_RENDEZVOUS", "job-8"}}),
              HasSubstr("UNISONO_JOIN is \"unix://job-7\", but UNISONO_RENDEZVOUS, its old form, is \"job-8\""));
}

TEST(Environment, SaysOnWhichHostsTheRanksAre) {
  const auto hosts = [](const std::string& rank, const std::string& text) {
    return read({{"UNISONO_RANK", rank},
                 {"UNISONO_SIZE", "5"},
                 {"UNISONO_JOIN", "tcp://a:1"},
                 {"UNISONO_JOIN_HOSTS", text},
                 {"UNISONO_SECRET", "00ffAA9900ffAA99"}})
        .hosts_of_ranks;
  };
  EXPECT_THAT(hosts("0", "a:2,fe80::1%eth0:2,a:1"),
              ::testing::ElementsAre("a", "a", "fe80::1%eth0", "fe80::1%eth0", "a"));
  EXPECT_THAT(hosts("1", "a:2,b:3"), ::testing::IsEmpty()) << "rank 0 alone tells";
  for (const char* wrong : {"", "a", "a:", ":5", "a:5,", "a:4", "a:6", "a:2,b:4294967299", "a:0,b:5", "a:-1,b:6",
                            "a b:5", "a:5x", "a:2,,b:3"}) {
    EXPECT_THAT(
        refusal({{"UNISONO_RANK", "0"}, {"UNISONO_JOIN", "tcp://a:1"}, {"UNISONO_JOIN_HOSTS", wrong}}),
        HasSubstr("UNISONO_JOIN_HOSTS is \"" + std::string(wrong) + "\", but should be the hosts of the 5 ranks"))
        << wrong;
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

TEST(Environment, SaysWhereRankZeroListens) {
  const auto join = [](const std::string& text) {
    return read(
        {{"UNISONO_RANK", "1"}, {"UNISONO_SIZE", "2"}, {"UNISONO_JOIN", text}, {"UNISONO_SECRET", "00ffAA9900ffAA99"}});
  };
  const JobEnvironment one = join("tcp://node-1.example:4711");
  ASSERT_EQ(one.addresses.size(), 1U);
  EXPECT_EQ(one.addresses[0].host, "node-1.example");
  EXPECT_EQ(one.addresses[0].port, 4711);
  EXPECT_EQ(one.title(), "job \"tcp://node-1.example:4711\"");
  const JobEnvironment several = join("tcp://10.0.0.1:1,[fe80::1%eth0]:65535");
  ASSERT_EQ(several.addresses.size(), 2U);
  EXPECT_EQ(several.addresses[1].host, "fe80::1%eth0");
  EXPECT_EQ(several.addresses[1].text(), "[fe80::1%eth0]:65535");
  for (const char* wrong : {"", "tcp://", "node:4711", "udp://node:1", "tcp://node", "tcp://node:0", "tcp://node:65536",
                            "tcp://:1", "tcp://::1:1", "tcp://[::1:1", "tcp://a:1,", "tcp://a b:1", "tcp://a:1x"}) {
    EXPECT_THAT(refusal({{"UNISONO_JOIN", wrong}}), HasSubstr("UNISONO_JOIN is \"" + std::string(wrong) + "\""))
        << wrong;
  }
  for (const char* wrong : {"", "-1", "x", "0", "99999"}) {
    EXPECT_THAT(refusal({{"UNISONO_RANK", "0"}, {"UNISONO_JOIN", "tcp://a:1"}, {"UNISONO_JOIN_FD", wrong}}),
                HasSubstr("UNISONO_JOIN_FD is \""))
        << wrong;
  }
}

TEST(Environment, SaysWhichHostAndWhichNetworks) {
  EXPECT_EQ(read({}).host, "");
  EXPECT_EQ(read({{"UNISONO_HOST", "left"}}).host, "left");
  EXPECT_THAT(refusal({{"UNISONO_HOST", "a b"}}), HasSubstr("UNISONO_HOST is \"a b\""));
  EXPECT_THAT(read({}).transports, ::testing::ElementsAre("tcp"));
  EXPECT_THAT(read({{"UNISONO_TRANSPORT", "tcp"}}).transports, ::testing::ElementsAre("tcp"));
  for (const char* wrong : {"", "tpc", "tcp,", "tcp,quic", "TCP"}) {
    EXPECT_THAT(refusal({{"UNISONO_TRANSPORT", wrong}}), HasSubstr("out of: tcp")) << wrong;
  }
}

TEST(Environment, SaysWhatIsEncrypted) {
  EXPECT_EQ(read({}).tls, Encryption::kNone);
  EXPECT_EQ(read({{"UNISONO_TLS", "off"}, {"UNISONO_TRANSPORT", "udp"}}).tls, Encryption::kNone);
  EXPECT_EQ(read({{"UNISONO_TLS", "on"}}).tls, Encryption::kAll);
  EXPECT_EQ(read({{"UNISONO_TLS", "on"}, {"UNISONO_TRANSPORT", "tcp,udp"}}).tls, Encryption::kAll);
  EXPECT_EQ(read({{"UNISONO_TLS", "tcp"}, {"UNISONO_TRANSPORT", "ofi,tcp"}}).tls, Encryption::kTcp);
  for (const char* wrong : {"", "ON", "1", "yes", "udp"}) {
    EXPECT_THAT(refusal({{"UNISONO_TLS", wrong}}), HasSubstr("UNISONO_TLS is \"")) << wrong;
  }
  EXPECT_THAT(refusal({{"UNISONO_TLS", "on"}, {"UNISONO_TRANSPORT", "udp,tcp"}}),
              HasSubstr("has them go by udp, which encrypts nothing: leave that out, or set UNISONO_TLS=tcp"));
}

TEST(Environment, SaysHowLongAHostMayBeSilent) {
  EXPECT_EQ(read({}).host_timeout, std::chrono::seconds(3));
  EXPECT_EQ(read({{"UNISONO_HOST_TIMEOUT_S", "12.5"}}).host_timeout, std::chrono::milliseconds(12'500));
  for (const char* wrong : {"", "0", "0.5", "3s", "-3", "nan", "1e99"}) {
    EXPECT_THAT(refusal({{"UNISONO_HOST_TIMEOUT_S", wrong}}), HasSubstr("a number of seconds from 1 to ")) << wrong;
  }
}

TEST(Environment, SaysFromWhenOnOrdinaryMemoryIsRegistered) {
  EXPECT_EQ(read({}).ofi_register_from, std::nullopt);
  EXPECT_EQ(read({{"UNISONO_OFI_REGISTER_FROM", "65536"}}).ofi_register_from, 65536U);
  EXPECT_EQ(read({{"UNISONO_OFI_REGISTER_FROM", "off"}}).ofi_register_from, ofi::kNeverRegistered);
  for (const char* wrong : {"", "0", "65535", "-1", "64K", " 65536", "auto", "99999999999999999999"}) {
    EXPECT_THAT(refusal({{"UNISONO_OFI_REGISTER_FROM", wrong}}), HasSubstr("at least 65536, or off")) << wrong;
  }
}

TEST(Environment, SaysHowManyConnectionsAPairMayHave) {
  EXPECT_EQ(read({}).tcp_connections, std::nullopt);
  EXPECT_EQ(read({{"UNISONO_TCP_CONNECTIONS", "1"}}).tcp_connections, 1U);
  EXPECT_EQ(read({{"UNISONO_TCP_CONNECTIONS", "16"}}).tcp_connections, 16U);
  for (const char* wrong : {"", "0", "17", "-1", "4x", " 4", "auto", "99999999999"}) {
    EXPECT_THAT(refusal({{"UNISONO_TCP_CONNECTIONS", wrong}}),
                HasSubstr("UNISONO_TCP_CONNECTIONS is \"" + std::string(wrong) +
                          "\", but should be how many connections of TCP two ranks of different hosts may have for "
                          "long messages, 1 to 16"))
        << wrong;
  }
}

TEST(Environment, TheSecretMayStandInAFileOfOnesOwn) {
  char name[] = "/tmp/unisono-secret-XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  const auto put = [&](const std::string& text, mode_t mode) {
    std::ofstream(name) << text;
    chmod(name, mode);
  };
  put("00ffAA9900ffAA99\n", 0600);
  const JobEnvironment environment = read(
      {{"UNISONO_RANK", "1"}, {"UNISONO_SIZE", "2"}, {"UNISONO_JOIN", "tcp://a:1"}, {"UNISONO_SECRET_FILE", name}});
  EXPECT_EQ(environment.secret, "00ffAA9900ffAA99");
  EXPECT_EQ(environment.secret_source, std::string("file ") + name);
  put("00ffAA9900ffAA99", 0640);
  EXPECT_THAT(refusal({{"UNISONO_SECRET_FILE", name}}), HasSubstr("can be read by others"));
  put("00ffAA99secretive", 0600);
  EXPECT_THAT(refusal({{"UNISONO_SECRET_FILE", name}}),
              ::testing::AllOf(HasSubstr("holds 17 characters"), Not(HasSubstr("secretive"))));
  put(std::string(100'000, 'a'), 0600);
  EXPECT_THAT(refusal({{"UNISONO_SECRET_FILE", name}}), HasSubstr("should hold 16 to 256"));
  EXPECT_THAT(refusal({{"UNISONO_SECRET_FILE", "/tmp"}}), HasSubstr("is no file"));
  EXPECT_THAT(refusal({{"UNISONO_SECRET_FILE", "/nowhere/x"}}), HasSubstr("No such file"));
  close(file);
  unlink(name);
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
