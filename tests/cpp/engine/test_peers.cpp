// What a communicator knows of its members is made for those that it has to do with.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/state.hpp"

namespace unisono::test {
namespace {

using cclo::Peer;
using cclo::Peers;

std::size_t made(Peers& peers) {
  std::size_t count = 0;
  peers.for_each([&](const Peer& /*peer*/) { ++count; });
  return count;
}

TEST(Peers, AreMadeWhenTheyAreNeeded) {
  std::vector<std::uint32_t> endpoints(1003);
  std::iota(endpoints.rbegin(), endpoints.rend(), 0U);
  Peers peers(endpoints, 7);
  EXPECT_EQ(peers.endpoints(), endpoints);
  EXPECT_EQ(peers.endpoint(1002), 0U);
  EXPECT_EQ(made(peers), 0U);
  Peer& first = peers[500];
  EXPECT_EQ(first.credits, 7U);
  first.owed = 3;
  EXPECT_LE(made(peers), 16U) << "a few neighbours are made with it";
  for (std::uint32_t rank = 0; rank < endpoints.size(); ++rank) {
    EXPECT_EQ(peers[rank].credits, 7U);
    EXPECT_EQ(peers[rank].owed, rank == 500 ? 3U : 0U);
    peers[rank].credits = 7;
  }
  EXPECT_EQ(&peers[500], &first) << "it stays where it is";
  EXPECT_GE(made(peers), endpoints.size());
}

TEST(Peers, ThereMayBeNone) {
  Peers peers;
  EXPECT_EQ(made(peers), 0U);
  EXPECT_TRUE(peers.endpoints().empty());
}

}  // namespace
}  // namespace unisono::test
