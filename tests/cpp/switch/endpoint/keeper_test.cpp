// Pools that a process has asked switches for: they come back with whichever connection is the next.
#include "switch/endpoint/keeper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "network/wait_hook.hpp"
#include "switch/handler/binary.hpp"
#include "tests/cpp/switch/handler/words.hpp"
#include "tests/cpp/switch/service/members.hpp"

namespace unisono::slots {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(Keeper, WhoeverConnectsAgainAsksForAllPoolsAgain) {
  auto one = std::make_unique<Serving>("one");
  const std::string address = one->address();
  Keeper keeper({address}, kSecret);
  const PoolRequest pool = request_for("one", 2);
  ASSERT_TRUE(keeper.make(0, pool, within(seconds(5))).made);
  const join::Blob binary = handler::write_binary(handler::adds_elements());
  ASSERT_EQ(keeper.set_operator(0, {pool.id, Func::kUser5, sha256_of(binary), binary}, within(seconds(5))), "");
  const std::string operators = R"("source":"by hand","element_bytes":8)";
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(ask_at(address, "show 7"), HasSubstr(operators));
    one.reset();
    one = std::make_unique<Serving>(ServiceSettings{.listen = address, .name = "one"});
    // Before the thread that looks for ends of connections has noticed, most likely.
    EXPECT_EQ(keeper.welcome(0, within(seconds(5))).name, "one");
  }
  EXPECT_THAT(ask_at(address, "show 7"), HasSubstr(operators));
  keeper.take_operator(pool.id, Func::kUser5, within(seconds(5)));
  EXPECT_THAT(ask_at(address, "show 7"), Not(HasSubstr(operators)));
  keeper.free(pool.id);
}

std::atomic<int> calls_elsewhere{0};
thread_local bool is_the_programs = false;

// What drives an MPI, for instance, which threads of the library must not call.
TEST(Keeper, ItsThreadCallsNoHookOfWaits) {
  is_the_programs = true;
  auto one = std::make_unique<Serving>("one");
  const std::string address = one->address();
  Keeper keeper({address}, kSecret);
  ASSERT_TRUE(keeper.make(0, request_for("one", 2), within(seconds(5))).made);
  WaitHook::install([](void*) { calls_elsewhere += is_the_programs ? 0 : 1; }, nullptr);
  one.reset();
  // Now there is somebody who takes connections and says nothing.
  const tcp::Address at = *tcp::parse_address(address);
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(silent, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(at.port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(silent, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(silent, 8), 0);
  pollfd watched{silent, POLLIN, 0};
  ASSERT_EQ(poll(&watched, 1, 5000), 1) << "the keeper connects again";
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  WaitHook::install(nullptr, nullptr);
  EXPECT_EQ(calls_elsewhere, 0);
  close(silent);
}

}  // namespace
}  // namespace unisono::slots
