// The client of PMI-2 against a small launcher, and against one that says what it is told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "platform/join/pmi.hpp"

namespace unisono::join {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Deadline soon(milliseconds time = milliseconds(10'000)) { return Clock::now() + time; }

/// When values that are put can be got: at the end of a fence that all wait for, as with SLURM; or after one that ends
/// at once, by `get`, which waits, as with MPICH's hydra.
enum class Fence { kWaits, kEndsAtOnce };

/// One launcher of several processes, each with a connection.
class Launcher2 {
 public:
  Launcher2(std::uint32_t size, Fence fence) : fence_(fence), size_(size), ranks_(size) {
    for (Rank& rank : ranks_) {
      int ends[2] = {-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      clients.emplace_back(ends[0]);
      rank.connection = Descriptor(ends[1]);
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~Launcher2() {
    clients.clear();
    thread_.join();
  }
  Launcher2(const Launcher2&) = delete;
  Launcher2& operator=(const Launcher2&) = delete;

  std::vector<Descriptor> clients;
  std::uint32_t finalized = 0;  ///< to be read when the clients have come back

 private:
  struct Rank {
    Descriptor connection;
    std::string heard{};
    bool begun = false;
    std::uint32_t fences = 0;
    std::string asks{};  ///< the key that it waits for
  };

  void serve() {
    std::vector<pollfd> watched(size_);
    for (std::uint32_t open = size_; open > 0;) {
      for (std::uint32_t i = 0; i < size_; ++i) watched[i] = {ranks_[i].connection.get(), POLLIN, 0};
      poll(watched.data(), watched.size(), 1000);
      for (std::uint32_t i = 0; i < size_; ++i) {
        if (watched[i].revents == 0) continue;
        char piece[64];
        const ssize_t bytes = recv(ranks_[i].connection.get(), piece, sizeof piece, 0);
        if (bytes <= 0) {
          ranks_[i].connection.reset();
          --open;
          continue;
        }
        ranks_[i].heard.append(piece, static_cast<std::size_t>(bytes));
        while (take(i)) {
        }
      }
    }
  }

  bool take(std::uint32_t i) {
    Rank& rank = ranks_[i];
    if (!rank.begun) {
      if (rank.heard.find('\n') == std::string::npos) return false;
      EXPECT_EQ(rank.heard, "cmd=init pmi_version=2 pmi_subversion=0\n");
      rank.heard.clear();
      rank.begun = true;
      return write(i, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
    }
    if (rank.heard.size() < 6) return false;
    const std::size_t bytes = std::stoul(rank.heard.substr(0, 6));
    if (rank.heard.size() < 6 + bytes) return false;
    const auto message = parse_pmi_message(std::string_view(rank.heard).substr(6, bytes));
    rank.heard.erase(0, 6 + bytes);
    EXPECT_TRUE(message);
    return message && answer(i, *message);
  }

  bool answer(std::uint32_t i, const PmiLine& asked) {
    const std::string key = asked.word("key");
    if (asked.command == "fullinit") {
      return say(i, "fullinit", {{"rank", std::to_string(i)}, {"size", std::to_string(size_)}});
    }
    if (asked.command == "job-getid") return say(i, "job-getid", {{"jobid", "job;7"}});
    if (asked.command == "info-getnodeattr") {
      EXPECT_EQ(key, "localRanksCount");
      return say(i, "info-getnodeattr", {{"found", "TRUE"}, {"value", std::to_string(size_)}});
    }
    if (asked.command == "kvs-put") {
      EXPECT_LE(asked.word("value").size(), 1023U);
      EXPECT_TRUE(values_.emplace(key, asked.word("value")).second) << key;
      return say(i, "kvs-put", {});
    }
    if (asked.command == "kvs-fence") {
      ++ranks_[i].fences;
      if (fence_ == Fence::kEndsAtOnce) say(i, "kvs-fence", {});
      if (!all_at(ranks_[i].fences)) return true;
      for (std::uint32_t other = 0; other < size_; ++other) {
        if (fence_ == Fence::kWaits) say(other, "kvs-fence", {});
        if (const std::string wanted = std::exchange(ranks_[other].asks, ""); !wanted.empty()) get(other, wanted);
      }
      return true;
    }
    if (asked.command == "kvs-get") {
      EXPECT_EQ(asked.word("jobid"), "job;7");
      if (all_at(ranks_[i].fences)) return get(i, key);
      ranks_[i].asks = key;
      return true;
    }
    EXPECT_EQ(asked.command, "finalize");
    ++finalized;
    return say(i, "finalize", {});
  }

  bool get(std::uint32_t i, const std::string& key) {
    const auto found = values_.find(key);
    if (found == values_.end()) return say(i, "kvs-get", {{"found", "FALSE"}});
    return say(i, "kvs-get", {{"found", "TRUE"}, {"value", found->second}});
  }
  bool all_at(std::uint32_t fences) const {
    return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.fences >= fences; });
  }
  bool say(std::uint32_t i, const std::string& command,
           std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
    std::string text = pmi_message(command + "-response", words);
    const std::string rest = text.substr(6) + "rc=0;";
    std::string length = std::to_string(rest.size());
    length.insert(0, 6 - length.size(), ' ');
    return write(i, length + rest);
  }
  /// In two pieces, so that messages are put together.
  bool write(std::uint32_t i, const std::string& text) {
    const int to = ranks_[i].connection.get();
    const std::size_t half = text.size() / 2;
    send(to, text.data(), half, MSG_NOSIGNAL);
    return send(to, text.data() + half, text.size() - half, MSG_NOSIGNAL) >= 0;
  }

  const Fence fence_;
  const std::uint32_t size_;
  std::vector<Rank> ranks_;
  std::map<std::string, std::string> values_;
  std::thread thread_;
};

/// Does the same in a thread for each rank, and says what failed, by rank.
template <class Part>
std::vector<std::string> among(Launcher2& launcher, Part&& part) {
  std::vector<std::string> failures(launcher.clients.size());
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < failures.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        part(rank);
      } catch (const Error& error) {
        failures[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

JobEnvironment environment_of(std::uint32_t rank, std::uint32_t size, milliseconds timeout = milliseconds(20'000)) {
  JobEnvironment made;
  made.rank = rank;
  made.size = size;
  made.launcher = Launcher::kPmi;
  made.pmi_version = 2;
  made.meeting = MeetingPlace::kStore;
  made.timeout = timeout;
  return made;
}

class Pmi2Job : public ::testing::TestWithParam<Fence> {};

TEST_P(Pmi2Job, RanksMeet) {
  constexpr std::uint32_t kRanks = 4;
  Launcher2 launcher(kRanks, GetParam());
  const auto failures = among(launcher, [&](std::uint32_t rank) {
    Pmi2Client client(launcher.clients[rank].get(), "PMI_FD 7");
    client.init(soon());
    EXPECT_EQ(client.place()->rank, rank);
    EXPECT_EQ(client.place()->size, kRanks);
    EXPECT_EQ(client.local_ranks(), kRanks);
    EXPECT_EQ(client.store_name(), "job;7");
    const JobEnvironment environment = environment_of(rank, kRanks);
    const auto exchange = make_store_exchange(environment, make_pmi_store(client, environment), 0);
    // One value, and values of several pieces, of every rank another length.
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{511}, std::size_t{5000}}) {
      const Blob own(bytes + rank, static_cast<std::byte>(rank));
      const auto all = exchange->all_gather(own);
      ASSERT_EQ(all.size(), kRanks);
      for (std::uint32_t of = 0; of < kRanks; ++of) EXPECT_EQ(all[of], Blob(bytes + of, static_cast<std::byte>(of)));
    }
    client.finalize(soon());
  });
  EXPECT_EQ(failures, std::vector<std::string>(kRanks));
  launcher.clients.clear();
}

TEST_P(Pmi2Job, AllHearWhyOneGivesUp) {
  constexpr std::uint32_t kRanks = 4;
  Launcher2 launcher(kRanks, GetParam());
  const auto failures = among(launcher, [&](std::uint32_t rank) {
    Pmi2Client client(launcher.clients[rank].get(), "PMI_FD 7");
    client.init(soon());
    const JobEnvironment environment = environment_of(rank, kRanks);
    const auto exchange = make_store_exchange(environment, make_pmi_store(client, environment), 0);
    exchange->all_gather({});
    if (rank == 2) {
      exchange->give_up("its reason");
    } else {
      exchange->all_gather({});
    }
  });
  for (const std::uint32_t rank : {0U, 1U, 3U}) EXPECT_THAT(failures[rank], HasSubstr("its reason"));
}

TEST_P(Pmi2Job, NamesWhoIsLate) {
  constexpr std::uint32_t kRanks = 4;
  Launcher2 launcher(kRanks, GetParam());
  const auto failures = among(launcher, [&](std::uint32_t rank) {
    if (rank == 1 || rank == 3) return;
    Pmi2Client client(launcher.clients[rank].get(), "PMI_FD 7");
    client.init(soon());
    const JobEnvironment environment = environment_of(rank, kRanks, milliseconds(400));
    // Both ask under the same number of a fence, for they are threads of one process.
    const auto exchange = make_store_exchange(environment, make_pmi_store(client, environment), 0);
    exchange->all_gather({});
  });
  for (const std::uint32_t rank : {0U, 2U}) {
    EXPECT_THAT(failures[rank],
                AllOf(HasSubstr("PMI-2"), HasSubstr("of the ranks, all on this host, these have not come"),
                      HasSubstr("1, "), HasSubstr("3 within 0.4 s")));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Pmi2Job, ::testing::Values(Fence::kWaits, Fence::kEndsAtOnce),
                         [](const auto& instance) { return instance.param == Fence::kWaits ? "fence" : "get"; });

/// For each question that comes, what to say; it hangs up at its end.
std::string failure(const std::vector<std::string>& answers, milliseconds patience = milliseconds(5'000)) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor client_end(ends[0]);
  Descriptor own(ends[1]);
  for (const std::string& answer : answers) send(own.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  // A client that still waits is not hung up on.
  if (patience > milliseconds(1'000)) shutdown(own.get(), SHUT_WR);
  try {
    Pmi2Client client(client_end.get(), "PMI_FD 7");
    client.init(soon(patience));
    client.put("key", "5ec2e7", soon(patience));
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
  }
  return "";
}

const std::string kGreeting = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
const std::string kPlace = pmi_message("fullinit-response", {{"rank", "1"}, {"size", "4"}, {"rc", "0"}});
const std::string kId = pmi_message("job-getid-response", {{"jobid", "7"}, {"rc", "0"}});
const std::string kCount = pmi_message("info-getnodeattr-response", {{"found", "FALSE"}, {"rc", "0"}});

TEST(Pmi2Messages, AreTakenApart) {
  const auto message = parse_pmi_message("cmd=kvs-get-response;found=TRUE;value=a;;b=c;;;rc=0;");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->command, "kvs-get-response");
  EXPECT_EQ(message->word("found"), "TRUE");
  EXPECT_EQ(message->word("value"), "a;b=c;");
  EXPECT_EQ(message->word("rc"), "0");
  EXPECT_EQ(parse_pmi_message("cmd=a;b=;")->word("b"), "");
  for (const char* wrong : {"", ";", "cmd", "cmd=", "cmd=;", "cmd=a", "rc=0;", "=x;", "cmd=a;=x;", "cmd=a;b;",
                            "cmd=a;b=1;b=2;", "cmd=a;b;c=1;", "cmd=a;;", "cmd=a;b=1"}) {
    EXPECT_FALSE(parse_pmi_message(wrong)) << wrong;
  }
  EXPECT_EQ(pmi_message("kvs-put", {{"key", "a"}, {"value", "b;c"}}), "    29cmd=kvs-put;key=a;value=b;;c;");
  const auto again = parse_pmi_message(std::string_view(pmi_message("x", {{"value", ";;a;"}})).substr(6));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->word("value"), ";;a;");
}

TEST(Pmi2Client, SaysWhatItDoesNotUnderstand) {
  EXPECT_THAT(failure({"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"}),
              HasSubstr("speaks version \"1\" of PMI (rc \"-1\"); this library speaks 1.1 and 2.0"));
  EXPECT_THAT(failure({"hello\n"}), HasSubstr("where \"cmd=response_to_init\" was expected"));
  EXPECT_THAT(failure({kGreeting, "twelve"}), HasSubstr("said \"twelve\", where the length of a message"));
  EXPECT_THAT(failure({kGreeting, "     0"}), HasSubstr("1 to 32762 bytes was expected"));
  EXPECT_THAT(failure({kGreeting, " 32763"}), HasSubstr("1 to 32762 bytes was expected"));
  EXPECT_THAT(failure({kGreeting, "    -1"}), HasSubstr("was expected"));
  EXPECT_THAT(failure({kGreeting, "     5\x1b[31m"}),
              HasSubstr("answered \"cmd=fullinit\" by \"?[31m\", where \"cmd=fullinit-response\" was expected"));
  EXPECT_THAT(failure({kGreeting, kId}), HasSubstr("where \"cmd=fullinit-response\" was expected"));
  EXPECT_THAT(failure({kGreeting, pmi_message("fullinit-response", {{"rc", "14"}, {"errmsg", "no; thanks"}})}),
              HasSubstr("refuses \"cmd=fullinit\": rc \"14\", \"no; thanks\""));
  EXPECT_THAT(failure({kGreeting, pmi_message("fullinit-response", {{"rank", "4"}, {"size", "4"}, {"rc", "0"}})}),
              HasSubstr("said \"4\" as rank"));
  EXPECT_THAT(failure({kGreeting, kPlace, pmi_message("job-getid-response", {{"rc", "0"}})}),
              HasSubstr("has not told the name of its job"));
  EXPECT_THAT(failure({kGreeting, kPlace, kId, kCount, pmi_message("kvs-put-response", {{"rc", "1"}})}),
              AllOf(HasSubstr("refuses \"cmd=kvs-put\""), Not(HasSubstr("5ec2e7"))));
  EXPECT_EQ(failure({kGreeting, kPlace, kId, kCount, pmi_message("kvs-put-response", {{"rc", "0"}})}), "");
}

TEST(Pmi2Client, SaysThatTheLauncherHasGone) {
  EXPECT_THAT(failure({}), HasSubstr("has closed the connection"));
  EXPECT_THAT(failure({kGreeting}), HasSubstr("has closed the connection"));
  EXPECT_THAT(failure({kGreeting, "    99cmd=full"}), HasSubstr("in the middle of \"    99cmd=full\""));
}

TEST(Pmi2Client, WaitsNoLongerThanTheDeadline) {
  const auto before = Clock::now();
  EXPECT_THAT(failure({}, milliseconds(30)), HasSubstr("has not answered \"cmd=init\" by the deadline"));
  EXPECT_THAT(failure({kGreeting, "   "}, milliseconds(30)), HasSubstr("has not answered \"cmd=fullinit\""));
  EXPECT_THAT(failure({kGreeting, kPlace, kId, kCount}, milliseconds(30)), HasSubstr("\"cmd=kvs-put\" by the"));
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(4));
}

TEST(PmiVersions, TheSecondIsSpokenWhereTheFirstIsRefused) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor client_end(ends[0]);
  const Descriptor own(ends[1]);
  const std::string text =
      "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n" + kGreeting + kPlace + kId + kCount;
  const auto half = static_cast<std::ptrdiff_t>(text.find('\n') + 1);
  send(own.get(), text.data(), static_cast<std::size_t>(half), 0);
  Pmi1Client first(client_end.get(), "PMI_FD 7");
  EXPECT_FALSE(first.begin(soon()));
  send(own.get(), text.data() + half, text.size() - static_cast<std::size_t>(half), 0);
  Pmi2Client second(client_end.get(), "PMI_FD 7");
  EXPECT_TRUE(second.begin(soon()));
  EXPECT_EQ(second.place()->rank, 1U);
  EXPECT_EQ(second.local_ranks(), std::nullopt);
}

}  // namespace
}  // namespace unisono::join
