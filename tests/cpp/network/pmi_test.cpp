// The client of PMI-1 against a launcher that says what it is told to.
#include "platform/join/pmi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "platform/join/hexadecimal.hpp"

namespace unisono::join {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// For each line that comes, what to say; empty: nothing. It hangs up at its end.
using Script = std::vector<std::pair<std::string, std::string>>;

class Server {
 public:
  explicit Server(Script script) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client = Descriptor(ends[0]);
    own_ = Descriptor(ends[1]);
    thread_ = std::thread([this, script = std::move(script)] {
      for (const auto& [expected, answer] : script) {
        heard.push_back(line());
        EXPECT_THAT(heard.back(), HasSubstr(expected));
        // In two pieces, so that lines are put together.
        const std::size_t half = answer.size() / 2;
        send(own_.get(), answer.data(), half, MSG_NOSIGNAL);
        std::this_thread::sleep_for(milliseconds(1));
        send(own_.get(), answer.data() + half, answer.size() - half, MSG_NOSIGNAL);
      }
      // A client that waits for nothing is not hung up on.
      if (!script.empty() && script.back().second.empty()) std::this_thread::sleep_for(milliseconds(300));
      shutdown(own_.get(), SHUT_RDWR);
    });
  }
  ~Server() { thread_.join(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Descriptor client;
  std::vector<std::string> heard;

 private:
  std::string line() const {
    std::string text;
    char c = 0;
    while (recv(own_.get(), &c, 1, 0) == 1 && c != '\n') text.push_back(c);
    return text;
  }

  Descriptor own_;
  std::thread thread_;
};

const Script kBegin = {{"cmd=init pmi_version=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
                       {"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"},
                       {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7\n"}};

Deadline soon(milliseconds time = milliseconds(5'000)) { return Clock::now() + time; }

/// What a client says that begins and then does `rest`, with such a server.
std::string failure(Script script, const std::function<void(Pmi1Client&)>& rest = {}) {
  Server server(std::move(script));
  Pmi1Client client(server.client.get(), "PMI_FD 7");
  std::string text;
  try {
    client.init(soon());
    if (rest) rest(client);
  } catch (const Error& error) {
    text = error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
  }
  server.client.reset();
  return text;
}

Script with(Script more) {
  Script all = kBegin;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(PmiLines, AreTakenApart) {
  const auto line = parse_pmi_line("cmd=get_result rc=-1 msg=key a b not found value=x=y");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->command, "get_result");
  EXPECT_EQ(line->word("rc"), "-1");
  EXPECT_EQ(line->word("msg"), "key a b not found");
  EXPECT_EQ(line->word("value"), "x=y");
  EXPECT_EQ(line->word("nothing"), "");
  for (const char* wrong : {"", " ", "cmd=", "rc=0", "garbage", "=x", "cmd=a =x", "rc=0 cmd=a", "cmd=a rc=0 rc=1"}) {
    EXPECT_FALSE(parse_pmi_line(wrong)) << wrong;
  }
}

TEST(PmiLines, BytesAreDigits) {
  Blob bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(bytes_of_hexadecimal(hexadecimal_of(bytes)), bytes);
  for (const char* wrong : {"0", "0g", "-1", "+1", " 1", "0x"}) EXPECT_FALSE(bytes_of_hexadecimal(wrong)) << wrong;
}

TEST(PmiClient, BeginsPutsWaitsAndGets) {
  EXPECT_EQ(failure(with({{"cmd=put kvsname=kvs_7 key=a value=00ff", "cmd=put_result rc=0 msg=success\n"},
                          {"cmd=barrier_in", "cmd=barrier_out\n"},
                          {"cmd=get kvsname=kvs_7 key=a", "cmd=get_result rc=0 msg=success value=00ff\n"},
                          {"cmd=get kvsname=kvs_7 key=b", "cmd=get_result rc=-1 msg=key_b_not_found value=unknown\n"},
                          {"cmd=finalize", "cmd=finalize_ack\n"}}),
                    [](PmiClient& client) {
                      EXPECT_EQ(client.max_value(), 1023U);
                      client.put("a", "00ff", soon());
                      EXPECT_TRUE(client.barrier(soon()));
                      EXPECT_EQ(client.get("a", soon()), "00ff");
                      EXPECT_EQ(client.get("b", soon()), std::nullopt);
                      client.finalize(soon());
                    }),
            "");
}

TEST(PmiClient, SaysWhatItDoesNotUnderstand) {
  const auto answering = [](const std::string& answer) { return failure({{"cmd=init", answer}}); };
  EXPECT_THAT(answering("hello there\n"),
              HasSubstr("the launcher (PMI_FD 7) answered \"cmd=init\" by \"hello there\", where "
                        "\"cmd=response_to_init\" was expected"));
  EXPECT_THAT(answering("cmd=maxes vallen_max=1\n"), HasSubstr("was expected"));
  EXPECT_THAT(answering("\x1b[31m\n"), HasSubstr("\"?[31m\""));
  EXPECT_THAT(answering(std::string(500, 'x') + "\n"), AllOf(HasSubstr("\"…"), Not(HasSubstr(std::string(100, 'x')))));
  EXPECT_THAT(answering(std::string(kMaxPmiLine + 1, 'x')), HasSubstr("a line of more than 32768 bytes"));
  EXPECT_THAT(answering("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"),
              HasSubstr("version \"2\" of PMI"));
  EXPECT_THAT(answering("cmd=response_to_init pmi_version=1 rc=-1\n"), HasSubstr("rc \"-1\""));
  EXPECT_THAT(answering("cmd=response_to"), HasSubstr("closed the connection in the middle of \"cmd=response_to\""));
  for (const char* limits :
       {"cmd=maxes kvsname_max=256", "cmd=maxes keylen_max=64 vallen_max=-1", "cmd=maxes keylen_max=64 vallen_max=3",
        "cmd=maxes keylen_max=64 vallen_max=99999999999"}) {
    EXPECT_THAT(failure({kBegin[0], {"cmd=get_maxes", std::string(limits) + "\n"}}), HasSubstr("as vallen_max"))
        << limits;
  }
  EXPECT_THAT(failure({kBegin[0], {"cmd=get_maxes", "cmd=maxes keylen_max=10 vallen_max=1024\n"}}),
              HasSubstr("keys of 10 characters"));
}

TEST(PmiClient, SaysThatTheLauncherHasGone) {
  EXPECT_THAT(failure({kBegin[0]}), HasSubstr("has closed the connection"));
  EXPECT_THAT(failure(with({{"cmd=barrier_in", ""}}), [](PmiClient& client) { client.barrier(soon()); }),
              HasSubstr("has closed the connection"));
  Pmi1Client nowhere(-1, "PMI_FD -1");
  EXPECT_THROW(nowhere.init(soon()), Error);
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  Pmi1Client no_socket(ends[1], "PMI_FD 9");
  EXPECT_THROW(no_socket.init(soon()), Error);
  close(ends[0]);
  close(ends[1]);
}

TEST(PmiClient, WaitsNoLongerThanTheDeadline) {
  const auto before = Clock::now();
  EXPECT_EQ(failure(with({{"cmd=barrier_in", ""}}),
                    [](PmiClient& client) {
                      EXPECT_FALSE(client.barrier(soon(milliseconds(50))));
                      // The answer may come still, and would be taken for another's.
                      EXPECT_THROW(client.get("a", soon()), Error);
                    }),
            "");
  EXPECT_THAT(failure(with({{"cmd=get", ""}}), [](PmiClient& client) { client.get("a", soon(milliseconds(50))); }),
              HasSubstr("has not answered \"cmd=get\" by the deadline"));
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(4));
}

TEST(PmiClient, NeverShowsAValue) {
  const std::string text =
      failure(with({{"cmd=put", "no\n"}}), [](PmiClient& client) { client.put("a", "5ec2e7", soon()); });
  EXPECT_THAT(text, AllOf(HasSubstr("answered \"cmd=put\" by \"no\""), Not(HasSubstr("5ec2e7"))));
}

TEST(PmiClient, IntroducesItselfAtAPort) {
  const auto place = [](const Script& script) {
    Server server(script);
    Pmi1Client client(server.client.get(), "PMI_PORT a:1");
    std::string text;
    try {
      const auto found = client.introduce("3", soon());
      text = std::to_string(found.rank) + " of " + std::to_string(found.size);
    } catch (const Error& error) {
      text = error.what();
    }
    server.client.reset();
    return text;
  };
  EXPECT_EQ(place({{"cmd=initack pmiid=3", "cmd=initack\ncmd=set size=5\ncmd=set rank=3\ncmd=set debug=0\n"}}),
            "3 of 5");
  EXPECT_THAT(place({{"cmd=initack", "cmd=initack rc=-1\n"}}), HasSubstr("refuses process 3"));
  EXPECT_THAT(place({{"cmd=initack", "cmd=initack\ncmd=set size=5\ncmd=set rank=5\ncmd=set debug=0\n"}}),
              HasSubstr("has not told rank and size"));
}

TEST(PmiStore, RefusesWhatNobodyPut) {
  Server server(with({{"cmd=get", "cmd=get_result rc=0 value=zz\n"}}));
  Pmi1Client client(server.client.get(), "PMI_FD 7");
  client.init(soon());
  JobEnvironment environment;
  environment.size = 2;
  const auto store = make_pmi_store(client, environment);
  EXPECT_EQ(store->max_value(), 511U);
  EXPECT_THROW(store->get(0, "a", soon()), Error);
  server.client.reset();
}

TEST(PmiStore, KnowsWhoOfThisHostHasCome) {
  setenv("MPI_LOCALNRANKS", "3", 1);
  Server one(with({{"cmd=barrier_in", ""}}));
  Server other(with({{"cmd=barrier_in", ""}}));
  Pmi1Client first(one.client.get(), "PMI_FD 7");
  Pmi1Client second(other.client.get(), "PMI_FD 8");
  first.init(soon());
  second.init(soon());
  JobEnvironment environment;
  environment.size = 3;
  const auto store = make_pmi_store(first, environment);
  environment.rank = 2;
  const auto another = make_pmi_store(second, environment);
  EXPECT_FALSE(store->fence(soon(milliseconds(20))));
  EXPECT_EQ(store->late(), "of the ranks, all on this host, these have not come, or have gone again: 1, 2");
  setenv("MPI_LOCALNRANKS", "2", 1);
  EXPECT_FALSE(another->fence(soon(milliseconds(20))));
  EXPECT_EQ(another->late(), "not all ranks have come: on this host there are 2; of others PMI tells nothing");
  unsetenv("MPI_LOCALNRANKS");
  one.client.reset();
  other.client.reset();
}

}  // namespace
}  // namespace unisono::join
