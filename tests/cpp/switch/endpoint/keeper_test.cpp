// Pools that a process has asked switches for: they come back with whichever connection is the next.
#include "switch/endpoint/keeper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace unisono::slots
