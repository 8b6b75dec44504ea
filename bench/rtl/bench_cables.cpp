// Measures SMI's transport on cables, in cycles of 250 MHz: one JSON object a line. Tables are made by `unisono route`:
// bench_cables BUS8 TORUS2X4 BUS2, three folders (a bus of 8 ranks, a torus of 2 by 4, a bus of 2), made with
// --ports 4.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "sim/cables/network.hpp"

namespace {

using namespace unisono::sim;

constexpr double kClockGhz = 0.25;
constexpr double kWire = 20;  // bytes a cycle: 40 Gb/s

/// Data that differs by place; checked at the other end.
std::vector<std::uint8_t> bytes_of(std::size_t length, unsigned seed) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::uint8_t>((i * 31 + seed) ^ (i >> 8));
  return bytes;
}

struct Ends {
  const Outcome* sent;
  const Outcome* got;
  std::vector<std::uint8_t> bytes;
};

Ends join(CableNetwork& network, int from, int to, Message message, unsigned seed) {
  Ends ends{nullptr, nullptr, bytes_of(std::size_t{message.count} << message.size, seed)};
  Message sender = message;
  sender.peer = to;
  sender.bytes = ends.bytes;
  message.peer = from;
  ends.got = &network.node(to).receive(message);
  ends.sent = &network.node(from).send(sender);
  return ends;
}

/// Runs until all is received; ends the program if something is wrong.
void finish(CableNetwork& network, const std::vector<Ends>& all) {
  const bool done =
      network.run([&] { return std::all_of(all.begin(), all.end(), [](const Ends& e) { return e.got->closed; }); });
  const bool right = std::all_of(all.begin(), all.end(),
                                 [](const Ends& e) { return e.got->bytes == e.bytes && e.got->complaints.empty(); });
  if (!done || !right) {
    std::fprintf(stderr, "bench_cables: %s\n", done ? "wrong data" : "the network stands still");
    std::exit(1);
  }
}

void bandwidth(const Routes& bus) {
  for (const bool credits : {false, true}) {
    for (const int size : {2, 3}) {
      for (const int hops : {1, 4, 7}) {
        CableNetwork network(8, {.latency = 4, .bytes_per_cycle = kWire});
        network.load(bus);
        const std::uint32_t count = 1 << 18 >> size;
        const Ends ends = join(network, 0, hops, {.port = 0, .count = count, .size = size, .credits = credits}, 7);
        finish(network, {ends});
        // From the first element that is received to the last one.
        const double cycles = static_cast<double>(ends.got->last_at - ends.got->first_at + 1);
        std::printf(
            "{\"section\": \"bandwidth\", \"type\": \"%s\", \"credits\": %s, \"hops\": %d, \"bytes\": %zu, \"cycles\": "
            "%.0f, \"gbit_s\": %.2f}\n",
            size == 2 ? "fp32" : "fp64", credits ? "true" : "false", hops, ends.bytes.size(), cycles,
            static_cast<double>(ends.bytes.size()) * 8 / cycles * kClockGhz);
      }
    }
  }
}

void latency(const Routes& bus) {
  for (const int wire : {1, 4, 50}) {
    for (const int hops : {1, 4, 7}) {
      CableNetwork network(8, {.latency = wire, .bytes_per_cycle = kPacketBytes});
      network.load(bus);
      // One element, pushed into an open channel: nothing else is under way.
      const Ends ends = join(network, 0, hops, {.port = 0, .count = 1, .size = 2, .lanes = 1}, 3);
      finish(network, {ends});
      const auto cycles = static_cast<long>(ends.got->first_at - ends.sent->first_at);
      std::printf(
          "{\"section\": \"latency\", \"hops\": %d, \"wire_cycles\": %d, \"cycles\": %ld, \"without_wire\": %ld, "
          "\"target\": %d}\n",
          hops, wire, cycles, cycles - static_cast<long>(hops) * wire, 20 + 10 * (hops - 1));
    }
  }
}

/// Messages of one element from one endpoint, as SMI measures it: cycles between packets that a CKS takes from it.
void injection(const Routes& bus) {
  for (const int senders : {1, 4}) {
    CableNetwork network(2, {.latency = 1, .bytes_per_cycle = kPacketBytes});
    Routes two = bus;
    network.load(two);
    std::vector<Ends> all;
    const std::uint32_t count = 7 * 4000;
    for (int port = 0; port < senders; ++port) {
      all.push_back(
          join(network, 0, 1, {.port = port, .count = count, .size = 2, .lanes = 7}, static_cast<unsigned>(port)));
    }
    finish(network, all);
    std::uint64_t first = ~0ull, last = 0;
    for (const Ends& ends : all) {
      first = std::min(first, ends.got->first_at);
      last = std::max(last, ends.got->last_at);
    }
    // All cross one cable: a packet each cycle is the most.
    std::printf(
        "{\"section\": \"injection\", \"senders\": %d, \"burst\": %d, \"packets\": %d, \"cycles_a_packet\": %.4f}\n",
        senders, UNISONO_BURST, senders * 4000, static_cast<double>(last - first) / (senders * 4000 - 1));
  }
}

void speed(const Routes& routes, const char* name, bool busy, int threads) {
  const int size = static_cast<int>(routes.nodes.size());
  CableNetwork network(size, {.latency = 10, .bytes_per_cycle = kWire, .threads = threads});
  network.load(routes);
  std::vector<Ends> all;
  for (int rank = 0; rank < size && busy; ++rank) {
    for (int port = 0; port < CableNode::kPorts; ++port) {
      all.push_back(join(network, rank, (rank + 1 + port) % size,
                         {.port = port, .count = 1 << 16, .size = 2, .credits = true, .lanes = 1}, 1));
    }
  }
  // Until all ports are busy; their messages last longer than what is measured, an element a cycle.
  network.advance(1000);
  const std::uint64_t cycles = 40000;
  const auto begin = std::chrono::steady_clock::now();
  network.advance(static_cast<int>(cycles));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "{\"section\": \"simulation\", \"network\": \"%s\", \"nodes\": %d, \"busy\": %s, \"threads\": %d, \"kilohertz\": "
      "%.1f}\n",
      name, size, busy ? "true" : "false", threads, static_cast<double>(cycles) / seconds / 1000);
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "bench_cables BUS8 TORUS2X4 BUS2: folders that `unisono route --ports 4 -o` has written\n");
    return 2;
  }
  const Routes bus = read_routes(words[1]), torus = read_routes(words[2]), two = read_routes(words[3]);
  bandwidth(bus);
  latency(bus);
  injection(two);
  for (const int threads : {1, 2}) {
    speed(torus, "torus 2x4", true, threads);
    speed(torus, "torus 2x4", false, threads);
  }
}
