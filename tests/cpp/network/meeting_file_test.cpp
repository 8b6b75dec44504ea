// Jobs whose ranks find each other by a file.
#include "platform/join/meeting_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "platform/join/job.hpp"
#include "tests/cpp/network/processes.hpp"

namespace unisono::join {
namespace {

using std::chrono::milliseconds;
using test::Child;
using test::require;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MeetingFile : public ::testing::Test {
 protected:
  MeetingFile() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/job";
  }
  ~MeetingFile() override { std::filesystem::remove_all(folder_); }

  JobEnvironment environment(std::uint32_t rank, std::uint32_t size,
                             milliseconds timeout = milliseconds(20'000)) const {
    JobEnvironment made;
    made.rank = rank;
    made.size = size;
    made.meeting = MeetingPlace::kFile;
    made.file = path_;
    made.timeout = timeout;
    return made;
  }
  static std::string join_error(JobEnvironment environment) {
    try {
      join_job(environment, {});
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
    }
    return {};
  }
  /// A process for each rank, in this order; all must join.
  void run_job(const std::vector<std::uint32_t>& order, std::uint32_t hosts = 1) const {
    std::vector<Child> children;
    for (const std::uint32_t rank : order) {
      children.emplace_back([&, rank] {
        JobEnvironment own = environment(rank, static_cast<std::uint32_t>(order.size()));
        own.host = "host" + std::to_string(rank % hosts);
        const std::vector<std::byte> capabilities(rank + 1, static_cast<std::byte>(rank));
        const JoinedJob job = join_job(own, capabilities);
        require(job.poe->self() == rank && job.poe->size() == order.size(), "rank and size");
        for (std::uint32_t peer = 0; peer < order.size(); ++peer) {
          require(job.all_capabilities[peer] == std::vector<std::byte>(peer + 1, static_cast<std::byte>(peer)),
                  "what everyone brought");
        }
      });
      std::this_thread::sleep_for(milliseconds(20));
    }
    for (Child& child : children) EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "the file is gone, and those beside it";
  }
  static Meeting meeting_at(std::uint16_t port) { return {"host", 1, 2, std::string(64, 'a'), {{"127.0.0.1", port}}}; }
  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }

  std::string folder_ = "/tmp/unisono-meeting-XXXXXX";
  std::string path_;
};

TEST_F(MeetingFile, RanksComeInAnyOrder) {
  run_job({0, 1, 2});
  run_job({2, 1, 0});
  run_job({1, 0, 2, 3}, 2);
}

TEST_F(MeetingFile, OfAnEarlierJobIsWaitedOut) {
  // Nobody listens there any more.
  write(meeting_at(1).text());
  run_job({1, 0});
  // Somebody does, and does not know the secret: he says nothing, hangs up, or talks of other things.
  Descriptor other = listen_anywhere();
  write(meeting_at(port_of(other)).text());
  std::thread stranger([&] {
    const Deadline end = Clock::now() + std::chrono::seconds(1);
    while (Clock::now() < end) {
      sleep_until_readable(other, end);
      const Descriptor connection = accept_from(other);
      if (connection.valid()) {
        [[maybe_unused]] const auto said = ::write(connection.get(), "HTTP/1.1 400\r\n\r\n padding padding", 32);
      }
    }
  });
  run_job({1, 0});
  stranger.join();
  write("unisono meeting 1\nhost");  // half a file, as a full disk leaves it
  run_job({1, 0});
}

TEST_F(MeetingFile, OthersMayNotReadIt) {
  write(meeting_at(1).text(), 0640);
  EXPECT_THAT(join_error(environment(1, 2)),
              AllOf(HasSubstr(path_ + " can be read by others"), HasSubstr("rank 1 could not join job \"file:///tmp")));
  EXPECT_THAT(join_error(environment(0, 2)), HasSubstr("can be read by others"));
  if (geteuid() == 0) {
    write(meeting_at(1).text());
    ASSERT_EQ(chown(path_.c_str(), 12345, 0), 0);
    EXPECT_THAT(join_error(environment(1, 2)), HasSubstr("belongs to user 12345, not to user 0"));
  }
}

TEST_F(MeetingFile, NothingElseIsRemoved) {
  write("my thesis\n");
  EXPECT_THAT(join_error(environment(0, 2)), HasSubstr("is none of a job that forms"));
  EXPECT_THAT(join_error(environment(1, 2, milliseconds(50))), HasSubstr("something else stands in it"));
  EXPECT_TRUE(std::filesystem::exists(path_));
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("elsewhere", path_);
  EXPECT_THAT(join_error(environment(1, 2, milliseconds(50))), HasSubstr("cannot be read"));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_THAT(join_error(environment(1, 2)), HasSubstr("is no file"));
}

TEST_F(MeetingFile, WhoHasNotComeIsSaid) {
  EXPECT_THAT(join_error(environment(1, 2, milliseconds(50))),
              AllOf(HasSubstr("has led to no rank 0 within 0.05 s"), HasSubstr("there is no such file")));
  write(meeting_at(1).text());
  EXPECT_THAT(join_error(environment(1, 2, milliseconds(50))),
              AllOf(HasSubstr("it is of process 1 on host with 2 ranks"), HasSubstr("Connection refused"),
                    Not(HasSubstr("aaaa"))));
  EXPECT_THAT(join_error(environment(0, 3, milliseconds(50))), HasSubstr("ranks 1 and 2 have not come within 0.05 s"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(MeetingFile, ASecondRankZeroAndAnotherSizeAreTold) {
  Child first([&] {
    const std::string error = join_error(environment(0, 2));
    require(error.find("a second rank 0 came, process ") != std::string::npos, error);
  });
  while (!std::filesystem::exists(path_)) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_THAT(join_error(environment(0, 2)), HasSubstr("a second rank 0 came"));
  EXPECT_EQ(first.wait(), 0);
  Child root([&] {
    const std::string error = join_error(environment(0, 2));
    require(error.find("says that the job has 3 ranks, rank 0 says 2") != std::string::npos, error);
  });
  EXPECT_THAT(join_error(environment(1, 3)), HasSubstr("says that the job has 3 ranks, rank 0 says 2"));
  EXPECT_EQ(root.wait(), 0);
}

TEST_F(MeetingFile, IsForItsUserAlone) {
  Child root([&] { join_error(environment(0, 2, milliseconds(2'000))); });
  while (!std::filesystem::exists(path_)) std::this_thread::sleep_for(milliseconds(1));
  struct stat what {};
  ASSERT_EQ(stat(path_.c_str(), &what), 0);
  EXPECT_EQ(what.st_mode & 0777U, 0600U);
  EXPECT_EQ(what.st_nlink, 1U);
  EXPECT_EQ(join_error(environment(1, 2)), "");
  EXPECT_EQ(root.wait(), 0);
}

TEST_F(MeetingFile, AFolderThatIsNotThereIsTold) {
  path_ = folder_ + "/nowhere/job";
  EXPECT_THAT(join_error(environment(0, 2)), AllOf(HasSubstr("cannot be made"), HasSubstr("No such file")));
}

TEST(MeetingText, IsReadAsItWasWritten) {
  Meeting meeting{"node-1", 77, 5, std::string(64, '7'), {{"10.0.0.1", 4711}, {"fe80::1", 1}}};
  const std::string text = meeting.text();
  const auto read = parse_meeting(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), text);
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) EXPECT_FALSE(parse_meeting(text.substr(0, bytes))) << bytes;
  const auto broken = [&](const std::string& what, const std::string& by) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), by);
    return !parse_meeting(changed);
  };
  EXPECT_TRUE(broken("meeting 1", "meeting 2"));
  EXPECT_TRUE(broken("size 5", "size 0"));
  EXPECT_TRUE(broken("size 5", "size 2049"));
  EXPECT_TRUE(broken("size 5", "size -5"));
  EXPECT_TRUE(broken("secret 77", "secret 7g"));
  EXPECT_TRUE(broken("secret 77", "secret 7"));
  EXPECT_TRUE(broken("host node-1", "host "));
  EXPECT_TRUE(broken("address 10.0.0.1:4711", "address 10.0.0.1"));
  EXPECT_TRUE(broken("pid 77\n", ""));
  EXPECT_FALSE(parse_meeting(text + "more\n"));
}

}  // namespace
}  // namespace unisono::join
