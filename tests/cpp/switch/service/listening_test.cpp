// Where switches listen: at the address that they are told, and at no other.
#include "switch/service/listening.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch/datagrams.hpp"
#include "tests/cpp/switch/service/members.hpp"

namespace unisono::slots {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

ServiceSettings settings_at(const std::string& listen, const std::string& name, const std::string& uplink = "") {
  ServiceSettings settings;
  settings.listen = listen;
  settings.name = name;
  settings.uplink = uplink;
  return settings;
}

std::string fault_of(ServiceSettings settings) {
  settings.secret = kSecret;
  try {
    const Service service(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

/// An all-reduce of two members by the switch at `address`.
std::string reduced_at(const std::string& address, const std::string& name) {
  const auto caller = call_at(address);
  const PoolRequest request = request_for(name, 2);
  const PoolAnswer answer = caller->make(request, within(seconds(5)));
  if (!answer.made) return answer.refusal;
  Members members;
  members.add(request, name, answer.port);
  return members.allreduce();
}

TEST(Listening, AtOneAddressLeavesThePortToOthers) {
  Serving one(settings_at("127.0.0.1:0", "one"));
  const std::string port = one.address().substr(one.address().rfind(':'));
  // Of TCP and of UDP: the second switch would not start otherwise.
  Serving other(settings_at("127.0.0.2" + port, "other"));
  EXPECT_EQ(call_at("127.0.0.1" + port)->welcome().name, "one");
  EXPECT_EQ(call_at("127.0.0.2" + port)->welcome().name, "other");
  EXPECT_EQ(reduced_at(one.address(), "one"), "");
}

TEST(Listening, AtNoneInParticularIsAtAll) {
  Serving one(settings_at("0.0.0.0:0", "one"));
  const std::string port = one.address().substr(one.address().rfind(':'));
  EXPECT_EQ(call_at("127.0.0.2" + port)->welcome().name, "one");
  EXPECT_EQ(reduced_at("127.0.0.1" + port, "one"), "");
}

TEST(Listening, SaysWhatCannotBe) {
  EXPECT_THAT(fault_of(settings_at("192.0.2.1:7000", "one")),
              HasSubstr("cannot listen at 192.0.2.1:7000: no interface of this machine has this address"));
  EXPECT_THAT(fault_of(settings_at("127.0.0.1:0", "one", "192.0.2.1:7000")),
              HasSubstr("from 127.0.0.1, where alone it listens, its uplink 192.0.2.1:7000 cannot be reached"));
}

}  // namespace
}  // namespace unisono::slots
