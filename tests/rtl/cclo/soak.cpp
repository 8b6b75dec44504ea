// Random calls on four engines for as many cycles as asked for: `soak_rtl [CYCLES] [SEED]`.
//
// Memory stalls and answers out of order, ranks give their calls at different times, up to six calls are under way on
// two communicators. Every result is compared with the interpreter. Ends with 1 at the first thing that is wrong.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <random>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"
#include "tests/rtl/cclo/call_case.hpp"

namespace {

using namespace unisono;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::uint32_t kNodes = 4;
constexpr std::uint64_t kLimit = 2'000'000;

sim::ClusterConfig config_of(std::uint64_t seed) {
  sim::ClusterConfig config;
  config.network.nodes = kNodes;
  config.network.policy = sim::Policy::kPause;
  config.network.seed = config.seed = seed;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.memory.jitter = 40;
  config.memory.reorder = true;
  config.memory.stall_ar = config.memory.stall_r = config.memory.stall_aw = config.memory.stall_w = 30;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

int soak(std::uint64_t cycles, std::uint64_t seed) {
  sim::Cluster cluster(config_of(seed));
  std::vector<sim::Host> hosts;
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    hosts.emplace_back(cluster, node);
    hosts[node].run();
  }
  for (std::uint32_t place = 0; place < 2; ++place) {
    sim::Host::Agreed agreed;
    agreed.eager_limit = agreed.segment_bytes = place == 0 ? 4096 : 1024;
    agreed.rx_buffers = 1 + place;
    for (sim::Host& host : hosts) host.create_communicator(place, 20 + place, kNodes, agreed);
  }
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const auto list = rtl::CallCase::algorithms();
  const auto begin = std::chrono::steady_clock::now();
  std::uint32_t id = 0;
  std::uint64_t calls = 0, told = 0;
  while (cluster.cycle() < cycles) {
    std::vector<rtl::CallCase> round;
    for (std::uint64_t i = 1 + below(6); i > 0; --i) {
      const Algorithm& algorithm = *list[below(list.size())];
      const std::uint64_t count = below(8) == 0 ? below(20'000) : below(600);
      const Datatype dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone
                             : below(2) == 0                              ? Datatype::kFp32
                                                                          : Datatype::kInt32;
      auto made = rtl::CallCase::make(algorithm, kNodes, count, dtype, static_cast<std::uint32_t>(below(2)), id + 1,
                                      random(), round.size());
      if (!made) continue;
      ++id;
      round.push_back(std::move(*made));
    }
    // Each rank has its own pace; the order is the same on all.
    std::vector<std::size_t> given(kNodes, 0);
    for (std::size_t left = kNodes * round.size(); left > 0; --left) {
      std::uint32_t node = static_cast<std::uint32_t>(below(kNodes));
      while (given[node] == round.size()) node = (node + 1) % kNodes;
      const rtl::CallCase& next = round[given[node]++];
      next.place(cluster.node(node), node);
      hosts[node].submit(next.descriptor(node));
      for (std::uint64_t i = below(4) == 0 ? below(3000) : 0; i > 0; --i) cluster.tick();
    }
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      for (std::size_t i = 0; i < round.size(); ++i) {
        const auto [ended, code] = hosts[node].completion(kLimit);
        if (code != 0) {
          std::printf("node %u: call %u ended with code %u in cycle %llu\n", node, ended, code,
                      static_cast<unsigned long long>(cluster.cycle()));
          return 1;
        }
      }
    }
    for (const rtl::CallCase& call : round) {
      const auto expected = call.expected();
      for (std::uint32_t node = 0; node < kNodes; ++node) {
        if (call.result(cluster.node(node), node) == expected[node]) continue;
        std::printf("node %u: call %u has another result than the interpreter, before cycle %llu\n", node, call.id(),
                    static_cast<unsigned long long>(cluster.cycle()));
        return 1;
      }
    }
    calls += round.size();
    if (const std::uint64_t share = cluster.cycle() * 20 / cycles; share > told) {
      told = share;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      std::printf("%3llu %%  cycle %llu, %llu calls right, %.0f s\n", static_cast<unsigned long long>(5 * share),
                  static_cast<unsigned long long>(cluster.cycle()), static_cast<unsigned long long>(calls),
                  took.count());
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t cycles = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10'000'000;
  const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  std::printf("soak: %u engines, %llu cycles, seed %llu\n", kNodes, static_cast<unsigned long long>(cycles),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  try {
    return soak(cycles, seed);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
