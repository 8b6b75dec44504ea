// Nodes of SMI's transport on a bus, all in this process, clocked in step; and messages between their ports, with
// elements that differ on every rank.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/smi_node.hpp"

namespace unisono::sim::testing {

inline std::uint32_t crc32_of(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t sum = ~0U;
  for (const std::uint8_t byte : bytes) {
    sum ^= byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~sum;
}

/// Tables of a bus, as docs/routing.md says: link 0 leads to the rank below, link 1 to the one above.
inline std::vector<std::uint8_t> bus_image(int rank, int ranks, int ports) {
  constexpr int kLinks = 4;
  std::vector<std::uint8_t> image{'U', 'R', 'O', 'U', 1, kLinks, 1, 0};
  for (const int number : {ranks, rank, ports, 0}) {
    image.push_back(static_cast<std::uint8_t>(number));
    image.push_back(0);
  }
  // The number of another kernel, counted from the lowest without this one.
  const auto other = [](int self, int target) { return target < self ? target : target - 1; };
  for (int link = 0; link < kLinks; ++link) {
    for (int to = 0; to < ranks; ++to) {
      const int out = to < rank ? 0 : 1;
      image.push_back(static_cast<std::uint8_t>(to == rank ? 1 : out == link ? 0 : 2 + other(link, out)));
    }
  }
  for (int link = 0; link < kLinks; ++link) {
    for (int endpoint = 0, port = 0; port < ports; ++port) {
      for (const int at : {port, ports + port}) {
        endpoint = at;
        const int owner = endpoint % kLinks;
        image.push_back(static_cast<std::uint8_t>(owner == link ? kLinks + endpoint / kLinks : 1 + other(link, owner)));
      }
    }
  }
  while (image.size() % 4 != 0) image.push_back(0);
  const std::uint32_t sum = crc32_of(image);
  for (int byte = 0; byte < 4; ++byte) image.push_back(static_cast<std::uint8_t>(sum >> (8 * byte)));
  return image;
}

/// The nodes of a job. `make` opens the node of a rank.
class CabledJob {
 public:
  using Make = std::function<std::unique_ptr<kernels::SmiNode>(const kernels::SmiNodeSettings&)>;

  CabledJob(int ranks, std::uint32_t ports, std::uint32_t packet_bytes, const Make& make)
      : folder_(std::filesystem::temp_directory_path() /
                ("unisono-bus-" + std::to_string(getpid()) + "-" + std::to_string(next_++))),
        memory_(memfd_create("cables", 0)) {
    std::filesystem::create_directories(folder_);
    std::ofstream json(folder_ / "routes.json");
    json << R"({"links": 4, "virtual_channels": 1, "nodes": [)";
    for (int rank = 0; rank < ranks; ++rank) {
      const auto end = [&](bool there, int peer, int link) {
        return there ? "{\"rank\": " + std::to_string(peer) + ", \"link\": " + std::to_string(link) + "}"
                     : std::string("null");
      };
      json << (rank == 0 ? "" : ", ") << R"({"node": "n)" << rank << R"(", "cks": [], "links": [)"
           << end(rank > 0, rank - 1, 1) << ", " << end(rank + 1 < ranks, rank + 1, 0) << ", null, null]}";
      const std::vector<std::uint8_t> image = bus_image(rank, ranks, static_cast<int>(ports));
      std::ofstream(folder_ / ("rank" + std::to_string(rank) + ".bin"), std::ios::binary)
          .write(reinterpret_cast<const char*>(image.data()), static_cast<std::streamsize>(image.size()));
    }
    json << "]}";
    json.close();
    kernels::SmiNodeSettings settings;
    settings.ranks = static_cast<std::uint32_t>(ranks);
    settings.memory = memory_;
    const std::string folder = folder_.string();
    settings.routes = folder.c_str();
    settings.latency = 7;
    settings.ports = ports;
    settings.packet_bytes = packet_bytes;
    for (settings.rank = 0; settings.rank < settings.ranks; ++settings.rank) nodes_.push_back(make(settings));
  }
  ~CabledJob() {
    nodes_.clear();
    close(memory_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CabledJob(const CabledJob&) = delete;
  CabledJob& operator=(const CabledJob&) = delete;

  kernels::SmiNode& node(int rank) { return *nodes_[static_cast<std::size_t>(rank)]; }
  /// A cycle of all nodes.
  void cycle() {
    for (const auto& node : nodes_) {
      if (!node->cycle(std::chrono::microseconds(0))) throw std::logic_error("nodes in step wait for each other");
    }
  }

 private:
  static inline int next_ = 0;
  std::filesystem::path folder_;
  int memory_;
  std::vector<std::unique_ptr<kernels::SmiNode>> nodes_;
};

/// A message from a port of a rank to the same port of another, and both its ends, as a kernel would have them.
struct TestMessage {
  int from = 0;
  int to = 1;
  std::uint32_t port = 0;
  kernels::PortOpen sends;  ///< peer and port are set by start()
  kernels::PortOpen receives;
  double pause_to_push = 0;  ///< part of the cycles
  double pause_to_pop = 0;
  double flush = 0;  ///< part of the words

  std::vector<std::byte> sent, got;
  std::size_t pushed = 0;
  std::uint64_t last = 0;  ///< cycle in which the last word was popped

  /// Both ends alike.
  void open(std::uint32_t count, std::uint32_t size, bool credits = false, bool strict = false,
            std::uint32_t window = 0) {
    sends.count = count;
    sends.size = size;
    sends.credits = credits;
    sends.strict = strict;
    sends.window = window;
    receives = sends;
  }
  void start(CabledJob& job) {
    sends.peer = static_cast<std::uint32_t>(to);
    receives.peer = static_cast<std::uint32_t>(from);
    sends.port = receives.port = port;
    std::mt19937 random(static_cast<std::uint32_t>(from) * 1000 + port * 100 + sends.count);
    sent.resize(std::size_t{sends.count} << sends.size);
    for (std::byte& byte : sent) byte = static_cast<std::byte>(random());
    start_sending(job);
    start_receiving(job);
  }
  void start_sending(CabledJob& job) const {
    kernels::PushEnd& end = job.node(from).push[port];
    end.open = sends;
    end.opening = true;
    end.valid = false;
  }
  void start_receiving(CabledJob& job) const {
    kernels::PopEnd& end = job.node(to).pop[port];
    end.open = receives;
    end.opening = true;
    end.count = 0;
    end.ready = false;
    end.complaint.reset();
  }
  /// Before a cycle: words are offered and taken.
  void step(CabledJob& job, std::mt19937& random) {
    const auto chance = [&](double part) { return std::uniform_real_distribution<>(0, 1)(random) < part; };
    kernels::PushEnd& to_node = job.node(from).push[port];
    if (!to_node.valid && pushed < sent.size() && (to_node.opening || to_node.active) && !chance(pause_to_push)) {
      const std::size_t most = kernels::kPortWordBytes >> sends.size;
      const std::size_t left = (sent.size() - pushed) >> sends.size;
      const std::size_t count = std::min(left, 1 + random() % most);
      to_node.word = {};
      std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(pushed), count << sends.size, to_node.word.begin());
      to_node.count = static_cast<std::uint32_t>(count);
      to_node.flush = chance(flush);
      to_node.valid = true;
      pushed += count << sends.size;
    }
    kernels::PopEnd& from_node = job.node(to).pop[port];
    if (from_node.count != 0) {
      got.insert(got.end(), from_node.word.begin(),
                 from_node.word.begin() + static_cast<std::ptrdiff_t>(std::size_t{from_node.count} << receives.size));
      from_node.count = 0;
      last = job.node(to).now();
    }
    if (!from_node.ready && !chance(pause_to_pop)) from_node.ready = true;
  }
  bool sender_closed(CabledJob& job) const {
    const kernels::PushEnd& end = job.node(from).push[port];
    return !end.opening && !end.active;
  }
  bool receiver_closed(CabledJob& job) const {
    const kernels::PopEnd& end = job.node(to).pop[port];
    return !end.opening && !end.active && end.count == 0;
  }
  bool closed(CabledJob& job) const { return sender_closed(job) && receiver_closed(job); }
};

/// Clocks the job until all messages have closed; false if that takes more than so many cycles.
inline bool run(CabledJob& job, std::vector<TestMessage>& messages, std::mt19937& random, int most = 60000) {
  for (int cycle = 0; cycle < most; ++cycle) {
    bool open = false;
    for (TestMessage& message : messages) {
      message.step(job, random);
      open = open || !message.closed(job);
    }
    if (!open) return true;
    job.cycle();
  }
  return false;
}

/// Rounds of messages of any length, protocol, size and pace, at all ports at once. Returns the cycles that each took.
inline std::vector<std::uint64_t> random_rounds(CabledJob& job, int ranks, int rounds, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint64_t> cycles;
  for (int round = 0; round < rounds; ++round) {
    std::vector<TestMessage> messages(4);
    for (std::uint32_t port = 0; port < 4; ++port) {
      TestMessage& message = messages[port];
      message.from = static_cast<int>(random() % static_cast<std::uint32_t>(ranks));
      message.to = static_cast<int>(random() % static_cast<std::uint32_t>(ranks));
      message.port = port;
      const auto count = static_cast<std::uint32_t>(random() % 4 == 0 ? random() % 3 : random() % 700);
      const auto protocol = random() % 3;
      message.open(count, static_cast<std::uint32_t>(random() % 4), protocol != 0, protocol == 2,
                   static_cast<std::uint32_t>(random() % 20) + 32);
      // A word of more elements than the window is never taken; with small ones words have one.
      message.receives.lanes = static_cast<std::uint32_t>(random() % 5);
      message.pause_to_push = random() % 2 == 0 ? 0 : 0.6;
      message.pause_to_pop = random() % 2 == 0 ? 0 : 0.6;
      message.flush = random() % 2 == 0 ? 0 : 0.2;
      message.start(job);
    }
    if (!run(job, messages, random)) throw std::runtime_error("round " + std::to_string(round) + " does not end");
    for (const TestMessage& message : messages) {
      if (message.got != message.sent) {
        throw std::runtime_error("round " + std::to_string(round) + ", port " + std::to_string(message.port) +
                                 ": other bytes were received than were sent");
      }
      cycles.push_back(message.last);
    }
  }
  return cycles;
}

}  // namespace unisono::sim::testing
