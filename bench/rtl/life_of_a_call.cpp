// The life of one call, cycle by cycle: a kernel of node 0 sends, a kernel of node 1 receives, and what the engines'
// events (Counter) are in each cycle is printed as JSON. tools/rtl/life-of-a-call makes the picture of it.
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/rtl/job.hpp"

namespace unisono::bench {
namespace {

constexpr std::uint32_t kPlace = 3;
constexpr std::uint64_t kLimit = 20'000;

/// The cycles in which each event happened on a node, from the call on.
using Course = std::array<std::vector<std::uint64_t>, kAllCounter.size()>;

CallDescriptor send_or_recv(std::uint32_t node, std::uint32_t id, std::uint64_t bytes) {
  CallDescriptor call;
  call.collective = node == 0 ? Collective::kSend : Collective::kRecv;
  call.dtype = Datatype::kByte;
  call.communicator = kPlace;
  call.root = 1 - node;
  call.count = bytes;
  (node == 0 ? call.src_address : call.dst_address) = place_of(node, node);
  (node == 0 ? call.src_bytes : call.dst_bytes) = bytes;
  call.call_id = id;
  return call;
}

/// Both calls are given in one cycle.
std::array<Course, 2> course_of(Job& job, std::uint64_t bytes) {
  const std::uint32_t id = job.next_id();
  const std::uint64_t start = job.now();
  for (std::uint32_t node = 0; node < 2; ++node) job.call(node, send_or_recv(node, id, bytes));
  std::array<Course, 2> courses;
  for (std::array<bool, 2> answered{}; !answered[0] || !answered[1];) {
    if (job.now() - start > kLimit) throw std::runtime_error("the calls are not answered");
    job.tick();
    for (std::uint32_t node = 0; node < 2; ++node) {
      sim::Node& own = job.cluster().node(node);
      for (std::size_t i = 0; i < kAllCounter.size(); ++i) {
        if ((own.events() >> static_cast<unsigned>(kAllCounter[i]) & 1U) == 0) continue;
        courses[node][i].push_back(job.now() - 1 - start);
      }
      auto& answers = own.answers();
      for (; !answers.empty(); answers.pop_front()) {
        if (answers.front().call_id != id || answers.front().code != 0) throw std::runtime_error("a wrong answer");
        answered[node] = true;
      }
    }
  }
  return courses;
}

void print(const std::array<Course, 2>& courses, std::uint64_t bytes) {
  std::printf("{\"bytes\": %llu, \"nodes\": [", static_cast<unsigned long long>(bytes));
  for (std::size_t node = 0; node < courses.size(); ++node) {
    std::printf("%s\n{", node == 0 ? "" : ",");
    for (std::size_t i = 0; i < kAllCounter.size(); ++i) {
      std::printf("%s\n  \"%s\": [", i == 0 ? "" : ",", name_of(kAllCounter[i]));
      const auto& cycles = courses[node][i];
      for (std::size_t k = 0; k < cycles.size(); ++k) {
        std::printf("%s%llu", k == 0 ? "" : ", ", static_cast<unsigned long long>(cycles[k]));
      }
      std::printf("]");
    }
    std::printf("}");
  }
  std::printf("\n]}\n");
}

int run(std::uint64_t bytes) {
  sim::ClusterConfig config;
  config.network.nodes = 2;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 50;
  config.memory.write_latency = 30;
  config.firmware = UNISONO_FIRMWARE_HEX;
  Job job(config);
  job.create(kPlace, {4096, 8192, 16});
  // The first calls find nothing in the microcontroller's caches.
  for (int i = 0; i < 3; ++i) {
    course_of(job, bytes);
    job.settle();
  }
  std::vector<std::byte> data(bytes), result(bytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 5 + i / 256 + 1);
  job.cluster().node(0).store(place_of(0, 0), data);
  const auto courses = course_of(job, bytes);
  job.cluster().node(1).load(place_of(1, 1), result);
  if (result != data) throw WrongResult("what was received is not what was sent");
  print(courses, bytes);
  return 0;
}

}  // namespace
}  // namespace unisono::bench

int main(int count, char** arguments) {
  try {
    std::uint64_t bytes = 1024;
    if (count > 1) {
      const std::string_view text = arguments[1];
      const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), bytes);
      if (fault != std::errc{} || end != text.data() + text.size() || bytes == 0 || bytes > 4096) {
        std::fprintf(stderr, "usage: life_of_a_call [BYTES], 1 to 4096\n");
        return 2;
      }
    }
    return unisono::bench::run(bytes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "life_of_a_call: %s\n", error.what());
    return 1;
  }
}
