// What a process's environment says of its platform, and what is wrong with it: named with what is allowed.
#include "driver/platform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/error.hpp"

namespace unisono::driver {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Variables that stand in the environment until the end of a test; what was there before comes back.
class Variables {
 public:
  Variables() {
    for (const char* name : {"UNISONO_PLATFORM", "UNISONO_DEVICE_FD", "UNISONO_DEVICE_TIMEOUT_S", "UNISONO_FIRMWARE",
                             "UNISONO_RANK", "UNISONO_SIZE", "UNISONO_JOIN", "UNISONO_SECRET"}) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      unsetenv(name);
    }
  }
  ~Variables() {
    for (const std::string& name : set_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> set_;
};

template <class Body>
void refuses(Body&& body, ErrorCode code, const testing::Matcher<std::string>& message) {
  try {
    body();
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), message);
  }
}

void join_device() {
  join_as_process(Platform::kRtl, default_settings(Platform::kRtl), JobEnvironment::from_environment());
}

TEST(Platforms, HaveNames) {
  Variables variables;
  EXPECT_EQ(platform_of_process(), Platform::kNative);
  for (const Platform platform : {Platform::kNative, Platform::kFunctional, Platform::kRtl}) {
    variables.set("UNISONO_PLATFORM", name_of(platform));
    EXPECT_EQ(platform_of_process(), platform);
  }
  variables.set("UNISONO_PLATFORM", "");
  EXPECT_EQ(platform_of_process(), Platform::kNative);
  variables.set("UNISONO_PLATFORM", "fpga");
  refuses(
      [] { platform_of_process(); }, ErrorCode::kBootstrap,
      AllOf(HasSubstr("UNISONO_PLATFORM is \"fpga\""), HasSubstr("native"), HasSubstr("functional"), HasSubstr("rtl")));
}

TEST(Platforms, DevicesHaveSmallerBuffersAndTheirOwnTime) {
  EXPECT_GT(default_settings(Platform::kNative).segment_bytes, default_settings(Platform::kFunctional).segment_bytes);
  EXPECT_LT(default_settings(Platform::kRtl).timeout, default_settings(Platform::kFunctional).timeout);
}

TEST(Platforms, AProcessAloneIsAJobOnNativeAndFunctional) {
  const Variables variables;
  for (const Platform platform : {Platform::kNative, Platform::kFunctional}) {
    const auto context = join_as_process(platform, default_settings(platform), JobEnvironment::from_environment());
    EXPECT_EQ(context->endpoint()->engine->size(0), 1U) << name_of(platform);
    context->close();
    refuses([&] { context->endpoint(); }, ErrorCode::kWrongProcess, HasSubstr("the context was closed"));
  }
}

TEST(Platforms, ThreadsHaveNoNodesOfTheirOwn) {
  SharedJob job(1);
  refuses([&] { join_as_thread(Platform::kRtl, {}, job, 0); }, ErrorCode::kUnsupported,
          HasSubstr("a thread job on platform rtl"));
}

TEST(Platforms, ADevicesDescriptorIsASocketThatWasInherited) {
  Variables variables;
  refuses(join_device, ErrorCode::kBootstrap,
          AllOf(HasSubstr("UNISONO_DEVICE_FD is not set"), HasSubstr("unisono run")));
  for (const char* text : {"", "x", "3x", "-1", "99999999999"}) {
    variables.set("UNISONO_DEVICE_FD", text);
    refuses(join_device, ErrorCode::kBootstrap, HasSubstr(std::string("UNISONO_DEVICE_FD is \"") + text + "\""));
  }
  variables.set("UNISONO_DEVICE_FD", "987");  // closed
  refuses(join_device, ErrorCode::kBootstrap, HasSubstr("a socket that this process inherited and has not closed"));
  variables.set("UNISONO_DEVICE_FD", std::to_string(STDERR_FILENO));  // no socket
  refuses(join_device, ErrorCode::kBootstrap, HasSubstr("a socket that this process inherited and has not closed"));
}

TEST(Platforms, PatienceWithADeviceIsANumberOfSeconds) {
  Variables variables;
  for (const char* text : {"", "x", "0", "nan", "-3", "1e9", "2s"}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    variables.set("UNISONO_DEVICE_FD", std::to_string(ends[0]));
    variables.set("UNISONO_DEVICE_TIMEOUT_S", text);
    refuses(
        join_device, ErrorCode::kBootstrap,
        AllOf(HasSubstr(std::string("UNISONO_DEVICE_TIMEOUT_S is \"") + text + "\""), HasSubstr("0.001 to 604800")));
    close(ends[0]);
    close(ends[1]);
  }
}

TEST(Platforms, ADeviceThatDoesNotAnswerIsLost) {
  Variables variables;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  variables.set("UNISONO_DEVICE_FD", std::to_string(ends[0]));  // taken over, and closed
  variables.set("UNISONO_DEVICE_TIMEOUT_S", "0.05");
  refuses(join_device, ErrorCode::kDeviceLost, HasSubstr("it has not answered for 0.05 s."));
  close(ends[1]);
}

TEST(Platforms, TheFirmwareIsAnImageOfWholeWords) {
  Variables variables;
  const auto folder = std::filesystem::path(testing::TempDir()) / ("firmware-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto refused = [&](const std::filesystem::path& path) {
    variables.set("UNISONO_FIRMWARE", path.string());
    refuses(join_device, ErrorCode::kBootstrap,
            AllOf(HasSubstr("UNISONO_FIRMWARE is \"" + path.string() + "\""), HasSubstr("unisono.bin")));
  };
  refused(folder / "nothing");
  refused(folder);
  std::ofstream(folder / "empty");
  refused(folder / "empty");
  std::ofstream(folder / "odd") << "12345";
  refused(folder / "odd");
  // With an image of whole words the next thing is asked for.
  std::ofstream(folder / "whole") << "12345678";
  variables.set("UNISONO_FIRMWARE", (folder / "whole").string());
  refuses(join_device, ErrorCode::kBootstrap, HasSubstr("UNISONO_DEVICE_FD is not set"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace unisono::driver
