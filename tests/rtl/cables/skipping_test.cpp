// Cycles that are left out, nodes that run ahead, threads: the same bits in the same cycles.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cables/trees.hpp"
#include "tests/rtl/cables/cables_fixture.hpp"

namespace unisono::sim {
namespace {

struct Record {
  std::vector<std::uint64_t> cycles;
  std::vector<std::vector<std::uint8_t>> bytes;
  bool operator==(const Record&) const = default;
};

/// Channels with pauses and long silences, a port that nobody drains for a while, and a broadcast: all that the ends
/// see.
Record drive(const Routes& routes, const CableSettings& settings, std::uint64_t* skipped) {
  CableNetwork network(8, settings);
  network.load(routes);
  std::vector<const Outcome*> outcomes;
  for (int rank = 0; rank < 8; ++rank) {
    for (int port = 0; port < 3; ++port) {
      const int to = (rank + 1 + port) % 8;
      Message message{.port = port, .count = 150, .size = 2, .credits = port != 1, .lanes = 1 + 3 * port};
      message.pause = port == 0 ? 0.9 : 0;
      Message receive = message;
      message.peer = to;
      message.hold = port == 2 && rank == 3 ? 40 : -1;
      message.bytes.resize(600);
      for (std::size_t i = 0; i < 600; ++i) message.bytes[i] = static_cast<std::uint8_t>(i * 7 + rank + 50 * port);
      receive.peer = rank;
      outcomes.push_back(&network.node(rank).send(message));
      outcomes.push_back(&network.node(to).receive(receive));
    }
  }
  // Not before the channels have been quiet for long.
  for (int i = 0; i < 5000; ++i) network.cycle();
  network.node(3).release();
  std::vector<int> ranks{0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<TreePlace> tree = tree_of(routes, 5, ranks);
  std::vector<const CollectiveOutcome*> collectives;
  for (const int rank : ranks) {
    Collective call{.kind = Collective::Kind::kBroadcast, .port = 3, .root = 5, .count = 333, .size = 1};
    call.tree = tree[rank];
    call.pop_pause = 0.2;
    if (rank == 5) call.bytes.assign(666, 9);
    collectives.push_back(&network.node(rank).collective(call));
  }
  const bool done = network.run([&] {
    return std::ranges::all_of(outcomes, [](auto* o) { return o->closed; }) &&
           std::ranges::all_of(collectives, [](auto* o) { return o->closed; });
  });
  EXPECT_TRUE(done);
  network.advance(3000);
  Record record;
  record.cycles = {network.now(), network.crossed()};
  for (const Outcome* outcome : outcomes) {
    record.cycles.insert(record.cycles.end(), {outcome->opened_at, outcome->first_at, outcome->last_at});
    record.bytes.push_back(outcome->bytes);
  }
  for (const CollectiveOutcome* outcome : collectives) {
    record.cycles.insert(record.cycles.end(), {outcome->opened_at, outcome->closed_at, outcome->popped.last_at});
    record.bytes.push_back(outcome->popped.bytes);
  }
  *skipped = network.skipped();
  return record;
}

class Skipping : public Cables {};

TEST_F(Skipping, NothingButTimeIsLeftOut) {
  const Routes routes = make("--torus 2x4");
  std::uint64_t none = 0, some = 0, threads = 0;
  const Record whole = drive(routes, {.latency = 6, .skip_quiet = false}, &none);
  const Record skipping = drive(routes, {.latency = 6}, &some);
  const Record shared = drive(routes, {.latency = 6, .threads = 2}, &threads);
  EXPECT_EQ(none, 0u);
  EXPECT_GT(some, whole.cycles[0] * 8 / 4) << "of " << whole.cycles[0] * 8;
  EXPECT_EQ(threads, some);
  EXPECT_TRUE(skipping == whole);
  EXPECT_TRUE(shared == whole);
}

}  // namespace
}  // namespace unisono::sim
