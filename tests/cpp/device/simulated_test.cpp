// The client of a simulated cluster against clusters that misbehave.
#include "platform/device/simulated.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace unisono::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// The other end of a device, played by a thread.
class Other {
 public:
  explicit Other(std::function<void(int)> plays) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) throw std::runtime_error("socketpair");
    host = pair[0];
    thread_ = std::thread([plays = std::move(plays), end = pair[1]] {
      plays(end);
      close(end);
    });
  }
  ~Other() { thread_.join(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  int host;  ///< the device takes it over

 private:
  std::thread thread_;
};

device::Request hear(int end) {
  device::Request request;
  recv(end, &request, sizeof request, MSG_WAITALL);
  std::vector<std::byte> payload(request.kind == device::RequestKind::kLoad ? 0 : request.length);
  if (!payload.empty()) recv(end, payload.data(), payload.size(), MSG_WAITALL);
  return request;
}

void say(int end, const device::Reply& reply) { send(end, &reply, sizeof reply, MSG_NOSIGNAL); }

void greet(int end, std::uint32_t version = device::kProtocolVersion) {
  hear(end);
  device::Reply reply;
  device::Greeting greeting;
  greeting.version = version;
  greeting.node = 3;
  greeting.memory_address = 4096;
  greeting.memory_bytes = 1 << 20;
  reply.length = sizeof greeting;
  say(end, reply);
  send(end, &greeting, sizeof greeting, MSG_NOSIGNAL);
}

void until_closed(int end) {
  char byte;
  while (recv(end, &byte, 1, 0) > 0) {
  }
}

/// The text of the Error(kDeviceLost) that an action ends in.
std::string lost(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeviceLost);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(SimulatedDevice, ReadsTheGreetingAndTime) {
  Other other([](int end) {
    greet(end);
    hear(end);
    device::Reply reply;
    reply.value = 0x1234567;
    reply.nanoseconds = 4711;
    say(end, reply);
    until_closed(end);
  });
  SimulatedDevice device(other.host);
  EXPECT_EQ(device.node(), 3U);
  EXPECT_EQ(device.memory_address(), 4096U);
  EXPECT_EQ(device.read(0x14), 0x1234567U);
  EXPECT_EQ(device.now().count(), 4711);
}

TEST(SimulatedDevice, AClusterThatHasEnded) {
  Other other([](int end) { hear(end); });
  EXPECT_THAT(lost([&] { const SimulatedDevice device(other.host); }), HasSubstr("it has ended"));
}

TEST(SimulatedDevice, AClusterThatEndsInTheMiddleOfAReply) {
  Other other([](int end) {
    greet(end);
    hear(end);
    device::Reply reply;
    reply.length = 1000;
    say(end, reply);
    send(end, &reply, sizeof reply, MSG_NOSIGNAL);
  });
  SimulatedDevice device(other.host);
  std::vector<std::byte> bytes(1000);
  EXPECT_THAT(lost([&] { device.load(4096, bytes); }), HasSubstr("it has ended"));
  // It stays lost, also for what would need no answer.
  EXPECT_THAT(lost([&] { device.write(0, 1); }), HasSubstr("it has ended"));
  EXPECT_THAT(lost([&] { device.wait(milliseconds(1)); }), HasSubstr("it has ended"));
}

TEST(SimulatedDevice, ForeignAnswers) {
  for (const bool magic : {true, false}) {
    Other other([&](int end) {
      greet(end);
      hear(end);
      device::Reply reply;
      if (magic) {
        reply.magic = 0x55;
      } else {
        reply.length = 8;
      }
      say(end, reply);
      until_closed(end);
    });
    SimulatedDevice device(other.host);
    EXPECT_THAT(lost([&] { device.read(0); }), HasSubstr(magic ? "no reply of the protocol" : "8 bytes where 0"));
  }
}

TEST(SimulatedDevice, AnotherVersion) {
  Other other([](int end) {
    greet(end, 9);
    until_closed(end);
  });
  EXPECT_THAT(lost([&] { const SimulatedDevice device(other.host); }), HasSubstr("version 9"));
}

TEST(SimulatedDevice, NeverAnswers) {
  Other other([](int end) {
    greet(end);
    until_closed(end);
  });
  SimulatedDevice device(other.host, milliseconds(150));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(lost([&] { device.read(0); }), HasSubstr("UNISONO_DEVICE_TIMEOUT_S"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(150));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(SimulatedDevice, ReadsNothing) {
  Other other([](int end) {
    greet(end);
    std::this_thread::sleep_for(milliseconds(600));
  });
  SimulatedDevice device(other.host, milliseconds(200));
  const std::vector<std::byte> much(8 << 20);
  EXPECT_THAT(lost([&] { device.store(4096, much); }), HasSubstr("read nothing"));
}

TEST(SimulatedDevice, AWaitGivesTheCallerTimeAndGoesOn) {
  int requests = 0;
  {
    Other other([&](int end) {
      greet(end);
      EXPECT_EQ(hear(end).argument, 7000U);  // nanoseconds
      ++requests;
      std::this_thread::sleep_for(milliseconds(200));
      say(end, {});
      EXPECT_EQ(hear(end).kind, device::RequestKind::kRead);
      ++requests;
      say(end, {});
      until_closed(end);
    });
    SimulatedDevice device(other.host);
    EXPECT_FALSE(device.wait(std::chrono::microseconds(7)));
    device.read(0);  // begins when the wait has been answered
  }
  EXPECT_EQ(requests, 2);
}

TEST(SimulatedDevice, AsksWhichSessionsHaveBrokenWhenAWaitSaysSo) {
  for (const bool another : {false, true}) {
    Other other([&](int end) {
      greet(end);
      EXPECT_EQ(hear(end).kind, device::RequestKind::kWait);
      device::Reply reply;
      reply.value = device::kHasBroken;
      say(end, reply);
      if (another) {
        EXPECT_EQ(hear(end).kind, device::RequestKind::kRead);
        say(end, {});
      }
      EXPECT_EQ(hear(end).kind, device::RequestKind::kBroken);
      const device::BrokenSession broken{5, 3, 1, 17, 19, 0};
      device::Reply told;
      told.length = sizeof broken;
      say(end, told);
      send(end, &broken, sizeof broken, MSG_NOSIGNAL);
      until_closed(end);
    });
    SimulatedDevice device(other.host);
    EXPECT_TRUE(device.broken().empty()) << "nothing is asked before";
    while (!device.wait(std::chrono::microseconds(7))) {
    }
    if (another) device.read(0);
    const auto broken = device.broken();
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_EQ(broken[0].source, 5U);
    EXPECT_EQ(broken[0].destination, 3U);
    EXPECT_TRUE(broken[0].control);
    EXPECT_EQ(broken[0].missing, 17U);
    EXPECT_EQ(broken[0].until, 19U);
    EXPECT_FALSE(broken[0].nothing_came);
    EXPECT_TRUE(device.broken().empty()) << "nor again";
  }
}

TEST(SimulatedDevice, ARefusedAccessLeavesItUsable) {
  Other other([](int end) {
    greet(end);
    hear(end);
    device::Reply reply;
    reply.code = static_cast<std::uint32_t>(ErrorCode::kInvalidArgument);
    say(end, reply);
    hear(end);
    reply.code = 0;
    reply.value = 5;
    say(end, reply);
    hear(end);
    reply.code = static_cast<std::uint32_t>(ErrorCode::kInternal);
    say(end, reply);
    until_closed(end);
  });
  SimulatedDevice device(other.host);
  try {
    device.write(0x20, 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(device.read(0), 5U);
  EXPECT_THAT(lost([&] { device.read(0); }), HasSubstr("internal"));
}

}  // namespace
}  // namespace unisono::test
