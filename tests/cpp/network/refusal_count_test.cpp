// How strangers are counted, and how often they are told of.
#include "network/refusal_count.hpp"

#include <gtest/gtest.h>

namespace unisono {
namespace {

using std::chrono::milliseconds;
using Time = RefusalCount::Clock::time_point;

TEST(RefusalCount, AFloodMakesALineASecond) {
  for (const Time begin : {Time{}, RefusalCount::Clock::now(), Time::min()}) {
    RefusalCount count;
    int lines = 0;
    // One each millisecond, for five seconds.
    for (int i = 0; i < 5000; ++i) {
      count.add();
      if (count.may_log(begin + milliseconds(i))) ++lines;
    }
    EXPECT_EQ(lines, 5);
    EXPECT_EQ(count.count(), 5000U);
    EXPECT_TRUE(count.may_log(begin + milliseconds(5000)));
    EXPECT_FALSE(count.may_log(begin + milliseconds(5999)));
  }
}

TEST(RefusalCount, SeveralNetworksShowOneNumber) {
  RefusalCount tcp;
  RefusalCount udp;
  std::atomic<std::uint64_t> word{0};
  tcp.add();
  tcp.show(word);
  udp.add();
  udp.add();
  udp.show(word);
  EXPECT_EQ(word.load(), 3U) << "what came before anybody looked counts, too";
  tcp.add();
  udp.add();
  EXPECT_EQ(word.load(), 5U);
  EXPECT_EQ(tcp.count(), 2U);
  EXPECT_EQ(udp.count(), 3U);
}

}  // namespace
}  // namespace unisono
