// Measures engines on cables beside the same engines on a switch, in cycles: one JSON object a line. Links of 100 Gb/s
// in both, propagation 50; the switch takes 100. Data differ on every rank, and every result is checked.
//
// Arguments: NAME=FOLDER for each network of cables; the folder is of `unisono route --ports 1`. A network measures
// what its number of ranks is for.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/rtl/job.hpp"
#include "collectives/algorithm.hpp"
#include "sim/cables/routes.hpp"

namespace unisono::bench {
namespace {

constexpr std::uint32_t kPlace = 3;
constexpr std::uint32_t kSegment = 8192;
constexpr double kBytesPerCycle = 50;

struct Place {
  std::string name;    ///< of the network
  std::string routes;  ///< folder; empty: a switch
};

sim::ClusterConfig config_of(const Place& place, std::uint32_t ranks) {
  sim::ClusterConfig config;
  config.network.nodes = ranks;
  config.network.policy = sim::Policy::kPause;
  config.routes = place.routes;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 50;
  config.memory.write_latency = 30;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

void print(const Place& place, std::uint32_t ranks, const char* op, std::uint64_t bytes, std::uint64_t cycles,
           double bound) {
  std::printf(
      "{\"system\": \"unisono-rtl\", \"op\": \"%s\", \"network\": \"%s\", \"ranks\": %u, \"bytes\": %llu, "
      "\"cycles\": %llu, \"of_raw\": %.4f, \"verified\": true}\n",
      op, place.name.c_str(), ranks, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(cycles),
      bound / static_cast<double>(cycles));
  std::fflush(stdout);
}

std::vector<std::byte> message(std::uint64_t bytes, std::uint32_t salt) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 2654435761U + salt * 40503U) >> 7U);
  return data;
}

/// Cycles of a message from node 0 to node 1, from both calls to the receiver's answer.
std::uint64_t send(Job& job, std::uint64_t bytes) {
  const std::uint32_t id = job.next_id();
  job.cluster().node(0).store(place_of(0, 0), message(bytes, id));
  CallDescriptor call;
  call.dtype = Datatype::kByte;
  call.communicator = kPlace;
  call.count = bytes;
  call.call_id = id;
  const std::uint64_t start = job.now();
  call.collective = Collective::kRecv;
  call.root = 0;
  call.dst_address = place_of(1, 0);
  call.dst_bytes = bytes;
  job.call(1, call);
  call.collective = Collective::kSend;
  call.root = 1;
  call.src_address = place_of(0, 0);
  call.src_bytes = bytes;
  call.dst_address = call.dst_bytes = 0;
  job.call(0, call);
  const std::uint64_t end = job.answer_of(1, id);
  job.answer_of(0, id);
  std::vector<std::byte> got(bytes);
  job.cluster().node(1).load(place_of(1, 0), got);
  if (got != message(bytes, id)) throw WrongResult("a message came with other data");
  return end - start;
}

int ring_of_allreduce() {
  const auto& all = algorithms();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].collective == Collective::kAllreduce && std::string(all[i].name) == "ring") return static_cast<int>(i);
  }
  throw std::logic_error("the table has no ring");
}

void measure(const Place& place, std::uint32_t ranks) {
  Job job(config_of(place, ranks));
  job.create(kPlace, {kSegment, kSegment, 64});
  Work work;
  work.place = kPlace;
  work.collective = Collective::kBarrier;
  for (int i = 0; i < 2; ++i) {
    job.run(work);
    job.settle();
  }
  print(place, ranks, "barrier", 0, job.run(work).cycles, 0);
  if (ranks == 2) {
    std::uint64_t before = 0, smaller = 0;
    for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{1} << 20U, std::uint64_t{4} << 20U}) {
      const std::uint64_t cycles = send(job, bytes);
      print(place, ranks, "send", bytes, cycles, static_cast<double>(bytes) / kBytesPerCycle);
      if (bytes > 64 && smaller > 64) {
        // What more bytes take more: no latency in it.
        print(place, ranks, "send, steady", bytes - smaller, cycles - before,
              static_cast<double>(bytes - smaller) / kBytesPerCycle);
      }
      before = cycles;
      smaller = bytes;
      job.settle();
    }
    return;
  }
  work.collective = Collective::kAllreduce;
  for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{64} << 10U, std::uint64_t{1} << 20U}) {
    work.count = bytes / 4;
    work.algorithm = bytes > 4096 ? ring_of_allreduce() : -1;
    const double least = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / kBytesPerCycle;
    print(place, ranks, work.algorithm < 0 ? "allreduce" : "allreduce, ring", bytes, job.run(work).cycles, least);
    job.settle();
  }
  work.algorithm = -1;
  work.collective = Collective::kAlltoall;
  work.count = 4096;
  print(place, ranks, "alltoall", 16384ULL * ranks, job.run(work).cycles, 16384.0 * (ranks - 1) / kBytesPerCycle);
}

}  // namespace
}  // namespace unisono::bench

int main(int count, char** arguments) {
  using namespace unisono;
  try {
    for (int i = 1; i < count; ++i) {
      const std::string word = arguments[i];
      const std::size_t at = word.find('=');
      const bench::Place place{word.substr(0, at), word.substr(at + 1)};
      const auto ranks = static_cast<std::uint32_t>(sim::read_routes(place.routes).nodes.size());
      bench::measure({"switch", ""}, ranks);
      bench::measure(place, ranks);
    }
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_carrier: %s\n", failure.what());
    return 1;
  }
}
