// Ways as numbers beside frames in the network.
#include "sim/price/ways.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "sim/model/calls.hpp"
#include "sim/network/network.hpp"

namespace unisono::sim {
namespace {

/// Takes the frames of a unit.
struct Taker final : Unit {
  explicit Taker(Network& of) : network(of) {}
  void take(const UnitFrame& /*frame*/) override { at = network.cycle(); }
  Network& network;
  std::uint64_t at = 0;
};

/// Cycles from the first word of a frame to its last, alone in the network.
std::uint64_t simulated(const NetworkConfig& config, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
  Network network(config);
  Taker taker(network);
  const bool by_unit = from >= config.nodes, to_unit = to >= config.nodes;
  if (to_unit) network.attach(to - config.nodes, taker);
  const std::vector<std::byte> frame(bytes);
  if (by_unit) network.send_from(from - config.nodes, to, 0, frame);
  for (std::uint32_t place = by_unit ? bytes : 0; network.cycle() < 100'000; network.tick()) {
    if (place < bytes && network.can_push(from)) {
      SentWord word;
      word.data = frame.data();
      word.frame_bytes = bytes;
      word.bytes = std::min(kWordBytes, bytes - place);
      word.last = place + kWordBytes >= bytes;
      word.destination = to;
      network.push(from, word);
      place += kWordBytes;
    }
    if (taker.at != 0) return taker.at;
    if (to_unit) continue;
    if (const ReceivedWord* word = network.front(to); word != nullptr) {
      const bool last = word->last;
      network.pop(to);
      if (last) return network.cycle();
    }
  }
  ADD_FAILURE() << "nothing came";
  return 0;
}

TEST(Ways, FramesTakeAsLongAsInTheNetwork) {
  const std::array<const char*, 6> networks{
      "nodes = 8\naggregation = ais@*",
      "topology = ring\nnodes = 8\naggregation = ais@*",
      "topology = torus\nnodes = 16\ngbps = 40\nswitch_latency = 7\naggregation = ais@*",
      "topology = leaf_spine\nleaves = 4\nspines = 2\nnodes = 8\naggregation = ais@*",
      "topology = leaf_spine\nleaves = 4\nspines = 2\nnodes = 8\ngbps = 400\ngbps@node* = 100\naggregation = ais@*",
      "topology = leaf_spine\nleaves = 4\nspines = 2\nnodes = 8\ngbps = 25\ngbps@node* = 100\npropagation = 9\n"
      "aggregation = ais@*"};
  for (const char* text : networks) {
    NetworkConfig config = parse_network(std::string(text) + "\npolicy = pause");
    const Ways ways(config);
    const std::uint32_t last = ways.topology().addresses() - 1;
    for (const auto& [from, to] :
         {std::pair{0U, 1U}, {0U, 5U}, {7U, 2U}, {0U, last}, {last, 3U}, {last, config.nodes}}) {
      if (from == to) continue;
      for (const std::uint32_t bytes : {64U, 128U, 1000U, 8192U}) {
        const auto expected = static_cast<double>(simulated(config, from, to, bytes));
        EXPECT_NEAR(ways.frame(from, to, bytes), expected, 4 + expected / 200)
            << text << ": " << from << " to " << to << ", " << bytes << " bytes";
      }
    }
  }
}

TEST(Ways, TheBusiestLinkCarriesWhatProgramsSay) {
  const NetworkConfig config = parse_network("nodes = 8\naggregation = ais@switch0");
  const Ways ways(config);
  // Each cable has the vector once each way, in segments with a header, and framing about them.
  const Busiest once = busiest_of(ways, call_of(config, "allreduce", "switch", 8, 16256), {});
  EXPECT_EQ(once.bytes, 2 * 8192U);
  EXPECT_EQ(once.wire_bytes, 2 * (8192U + 66));
  EXPECT_DOUBLE_EQ(once.cycles, 2 * (8192.0 + 66) / 50);
  EXPECT_EQ(once.hops, 1U);
  // Of a gather the root's has all blocks but its own.
  const Busiest root = busiest_of(ways, call_of(config, "gather", "linear", 8, 8 * 1024), {});
  EXPECT_EQ(root.link, "switch0>node0");
  EXPECT_EQ(root.bytes, 7 * (1024U + 64));
  EXPECT_EQ(root.hops, 2U);
}

}  // namespace
}  // namespace unisono::sim
