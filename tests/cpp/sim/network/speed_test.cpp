// How fast the network is simulated. Prints and asserts nothing about time:
//   test_sim_network --gtest_also_run_disabled_tests --gtest_filter='*Speed*'
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <string>

#include "sim/network/network.hpp"

namespace unisono::sim {
namespace {

/// Every node sends frames to all others in turn, as fast as its link takes them, and pops what comes.
void measure(const char* name, const std::string& text, std::uint64_t cycles, std::uint32_t bytes,
             std::uint64_t every) {
  Network network(parse_network(text));
  const std::uint32_t nodes = network.nodes();
  std::vector<std::uint32_t> word(nodes), to(nodes);
  std::array<std::byte, kWordBytes> data{};
  const std::uint32_t words = (bytes + kWordBytes - 1) / kWordBytes;
  std::uint64_t popped = 0;
  for (std::uint32_t n = 0; n < nodes; ++n) to[n] = (n + 1) % nodes;
  const std::clock_t begin = std::clock();  // of this process: other jobs on the machine do not count
  for (std::uint64_t c = 0; c < cycles; ++c) {
    for (std::uint32_t n = 0; n < nodes; ++n) {
      if (network.front(n) != nullptr) {
        network.pop(n);
        ++popped;
      }
      if ((word[n] != 0 || c % every == 0) && network.can_push(n)) {
        const bool last = word[n] + 1 == words;
        network.push(n, {data.data(), last ? bytes - word[n] * kWordBytes : kWordBytes, last, to[n], bytes, 0});
        word[n] = last ? 0 : word[n] + 1;
        if (last) to[n] = (to[n] + 1) % nodes == n ? (n + 1) % nodes : (to[n] + 1) % nodes;
      }
    }
    network.tick();
  }
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%-34s %8.2f M cycles/s   %5.2f words popped per cycle\n", name, static_cast<double>(cycles) / took / 1e6,
              static_cast<double>(popped) / static_cast<double>(cycles));
}

TEST(DISABLED_Speed, Cycles) {
  measure("switch, 8 nodes, full, 4096 B", "topology = switch\nnodes = 8", 2'000'000, 4096, 1);
  measure("switch, 8 nodes, full, 64 B", "topology = switch\nnodes = 8", 2'000'000, 64, 1);
  measure("switch, 8 nodes, pause, 4096 B", "topology = switch\nnodes = 8\npolicy = pause", 2'000'000, 4096, 1);
  measure("torus, 16 nodes, full, pause", "topology = torus\nnodes = 16\npolicy = pause", 500'000, 4096, 1);
  measure("leaf-spine, 64 nodes, full, pause",
          "topology = leaf_spine\nnodes = 64\nleaves = 8\nspines = 8\npolicy = pause", 200'000, 4096, 1);
  measure("switch, 8 nodes, 64 B per 1000 c", "topology = switch\nnodes = 8", 5'000'000, 64, 1000);
  measure("switch, 8 nodes, idle", "topology = switch\nnodes = 8", 20'000'000, 64, 1ULL << 60U);
}

}  // namespace
}  // namespace unisono::sim
