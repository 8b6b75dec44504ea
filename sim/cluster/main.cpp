// unisono-cluster: N Verilated engines, a network between them, and a socket to each one's host.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/config.hpp"
#include "sim/cluster/server.hpp"
#include "sim/cluster/trace.hpp"
#include "sim/network/settings.hpp"

namespace {

using unisono::Error;
using unisono::ErrorCode;

constexpr const char* kUsage =
    "usage: unisono-cluster -n NODES --fd FD,FD,... [--config FILE] [--memory partitioned|unified] [--seed N]\n"
    "                       [--threads N] [--firmware FILE] [--wave FILE] [--trace FILE] [--counters FILE]\n"
    "                       [--native NODE,... [--native-delay CYCLES]] [--ready FD]\n"
    "       unisono-cluster -n NODES --check [OPTIONS]\n"
    "\n"
    "Runs NODES engines in simulation and serves one host of each over an inherited socket.\n"
    "  --config    network: shape, rates, latencies, faults (docs/simulated-network.md)\n"
    "  --memory    platform: partitioned (copies take time, a call takes 50 us to be given) or\n"
    "              unified (the host's memory behind a TLB, a call takes 2 us); without it neither takes time\n"
    "  --seed      of everything random; same seed, same cycles\n"
    "  --threads   that evaluate nodes at the same time, which changes no cycle; default: one per node, as far as\n"
    "              there are processors\n"
    "  --firmware  image of the microcontroller, 32-bit words in hexadecimal; default: the one built with it\n"
    "  --wave      waveforms of a node, in the build that has them (unisono-cluster-wave)\n"
    "  --wave-node of which; default 0\n"
    "  --trace     a timeline of the moves of all engines, for Perfetto (Trace Event Format)\n"
    "  --counters  the engines' counters at the end, as JSON\n"
    "  --native    nodes whose engine is the native one, in C++, on the same network; it takes no time, but for\n"
    "  --native-delay  cycles that pass before a message of such an engine leaves; default 0\n"
    "  --ready     inherited descriptor: a byte is written to it when all options are good and hosts may come\n"
    "  --check     says what is wrong with the other options, and ends: status 0 if nothing is\n";

constexpr const char* kName = "unisono-cluster";
constexpr std::uint64_t kMostNodes = 64;

struct Options {
  unisono::sim::ClusterConfig cluster;
  unisono::sim::PlatformModel platform;
  std::vector<int> sockets;
  std::string trace, counters;  ///< files; empty: none
  int ready = -1;               ///< is told when hosts may come; negative: nobody
  bool check = false;           ///< nothing is to be run
};

std::uint64_t number_of(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error(ErrorCode::kInvalidArgument, std::string(option) + ": '" + std::string(text) + "' is not a number");
  }
  return value;
}

/// Numbers with commas between them.
std::vector<std::uint64_t> numbers_of(std::string_view option, std::string_view text) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    numbers.push_back(number_of(option, text.substr(at, comma - at)));
    at = comma + 1;
  }
  return numbers;
}

/// What `--native` names.
std::vector<std::uint32_t> native_of(std::span<const std::uint64_t> named, std::uint64_t nodes) {
  std::vector<std::uint32_t> native;
  for (const std::uint64_t node : named) {
    if (node >= nodes) {
      throw Error(ErrorCode::kInvalidArgument, "--native: there is no node " + std::to_string(node) +
                                                   "; the cluster has nodes 0 to " + std::to_string(nodes - 1));
    }
    if (std::find(native.begin(), native.end(), node) != native.end()) {
      throw Error(ErrorCode::kInvalidArgument, "--native names node " + std::to_string(node) + " twice");
    }
    native.push_back(static_cast<std::uint32_t>(node));
  }
  return native;
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(ErrorCode::kInvalidArgument, file + " cannot be read");
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// A file to write; refused now, rather than when the run is over.
std::ofstream written(const std::string& option, const std::string& file) {
  std::ofstream stream(file);
  if (!stream) throw Error(ErrorCode::kInvalidArgument, option + ": " + file + " cannot be written");
  return stream;
}

/// A page walk reads the host's tables over its bus: about a microsecond.
constexpr unisono::sim::TlbConfig kUnifiedTlb{.entries = 256,
                                              .page_bytes = std::uint64_t{2} << 20U,
                                              .miss_cycles = 250,
                                              .from = unisono::sim::Node::kMemoryAddress};

unisono::sim::PlatformModel platform_of(std::string_view name) {
  if (name == "partitioned") return {50'000, 5'000, 100'000};
  if (name == "unified") return {2'000, 0, 0};
  throw Error(ErrorCode::kInvalidArgument, "--memory: '" + std::string(name) + "'; there are partitioned and unified");
}

Options parse(int count, char** arguments) {
  Options options;
  auto& cluster = options.cluster;
  cluster.memory.read_latency = 50;  // cycles: HBM behind its switch
  cluster.memory.write_latency = 30;
  cluster.memory.one_memory = true;
  cluster.firmware = UNISONO_FIRMWARE_HEX;
  cluster.threads = unisono::sim::usable_processors();
  std::uint64_t nodes = 0;
  bool unified = false;
  unisono::sim::ClusterFile file;
  file.network.policy = unisono::sim::Policy::kPause;
  std::optional<std::uint64_t> seed;
  std::vector<std::uint64_t> native;
  for (int i = 1; i < count; ++i) {
    const std::string option = arguments[i];
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "--check") {
      options.check = true;
      continue;
    }
    if (i + 1 == count) throw Error(ErrorCode::kInvalidArgument, option + " needs a value\n" + kUsage);
    const std::string value = arguments[++i];
    if (option == "-n") {
      nodes = number_of(option, value);
    } else if (option == "--config") {
      file = unisono::sim::parse_cluster(text_of(value), value);
    } else if (option == "--memory") {
      options.platform = platform_of(value);
      unified = value == "unified";
    } else if (option == "--seed") {
      seed = number_of(option, value);
    } else if (option == "--threads") {
      const std::uint64_t threads = number_of(option, value);
      if (threads < 1 || threads > kMostNodes) {
        throw Error(ErrorCode::kInvalidArgument, "--threads: 1 to 64\n" + std::string(kUsage));
      }
      cluster.threads = static_cast<unsigned>(threads);
    } else if (option == "--firmware") {
      cluster.firmware = value;
    } else if (option == "--wave") {
      cluster.wave = value;
    } else if (option == "--wave-node") {
      const std::uint64_t number = number_of(option, value);
      if (number >= kMostNodes)
        throw Error(ErrorCode::kInvalidArgument, "--wave-node: 0 to 63\n" + std::string(kUsage));
      cluster.wave_node = static_cast<std::uint32_t>(number);
    } else if (option == "--trace") {
      options.trace = value;
      cluster.trace = true;
      written(option, value);
    } else if (option == "--counters") {
      options.counters = value;
      written(option, value);
    } else if (option == "--native") {
      native = numbers_of(option, value);
    } else if (option == "--native-delay") {
      cluster.native_delay = number_of(option, value);
    } else if (option == "--ready") {
      options.ready = static_cast<int>(number_of(option, value));
    } else if (option == "--fd") {
      for (const std::uint64_t number : numbers_of(option, value)) options.sockets.push_back(static_cast<int>(number));
    } else {
      throw Error(ErrorCode::kInvalidArgument, "there is no option " + option + "\n" + kUsage);
    }
  }
  if (nodes < 1 || nodes > kMostNodes) {
    throw Error(ErrorCode::kInvalidArgument, "-n: a cluster has 1 to 64 nodes\n" + std::string(kUsage));
  }
  if (!options.check && options.sockets.size() != nodes) {
    throw Error(ErrorCode::kInvalidArgument, "--fd names " + std::to_string(options.sockets.size()) + " sockets for " +
                                                 std::to_string(nodes) + " nodes");
  }
  cluster.native = native_of(native, nodes);
  if (cluster.wave_node >= nodes) {
    throw Error(ErrorCode::kInvalidArgument, "--wave-node: there is no node " + std::to_string(cluster.wave_node));
  }
  if (!cluster.wave.empty() && std::count(cluster.native.begin(), cluster.native.end(), cluster.wave_node) != 0) {
    throw Error(ErrorCode::kInvalidArgument, "--wave shows node " + std::to_string(cluster.wave_node) +
                                                 ", and --native names it: it has no signals");
  }
  // A network has two nodes at least; a cluster of one has a second port that nobody uses.
  cluster.network = file.network_of(static_cast<std::uint32_t>(nodes), seed);
  cluster.seed = cluster.network.seed;
  cluster.memory.channels = unisono::sim::Node::kMemoryPorts;
  if (unified) {
    cluster.memory.tlb = file.tlb(kUnifiedTlb);
  } else if (file.has_tlb()) {
    throw Error(ErrorCode::kInvalidArgument, "tlb_...: only memory that is the host's is translated: --memory unified");
  }
  return options;
}

/// Says what the network of this configuration does to frames that nobody repeats.
void warn_of_faults(const unisono::sim::Network& network) {
  const std::vector<std::string> faults = unisono::sim::faults_of(network.topology());
  if (faults.empty()) return;
  std::string names;
  for (const std::string& fault : faults) names += (names.empty() ? "" : ", ") + fault;
  unisono::log(unisono::LogLevel::kWarn,
               "this network has faults (" + names +
                   "), and its transport repeats no frame: a call that misses one ends with frames_lost (frames that "
                   "come twice are dropped)",
               kName);
}

/// What became of frames that were not passed on, if there were any.
void tell_of_faults(const unisono::sim::Network& network) {
  using unisono::sim::Drop;
  std::uint64_t lost = 0, behind = 0, twice = 0, late = 0;
  for (std::uint32_t link = 0; link < network.links(); ++link) {
    const unisono::sim::LinkCounters counters = network.counters(link);
    for (const std::uint64_t dropped : counters.dropped) lost += dropped;
    lost -= counters.lost(Drop::kSession);
    behind += counters.lost(Drop::kSession);
    twice += counters.duplicated;
    late += counters.reordered;
  }
  if (lost + behind + twice + late == 0) return;
  unisono::log(unisono::LogLevel::kWarn,
               "frames lost: " + std::to_string(lost) + ", come twice: " + std::to_string(twice) + ", come late: " +
                   std::to_string(late) + "; dropped because they had come, or behind a gap: " + std::to_string(behind),
               kName);
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);  // the hosts get it too, and when they have gone this ends
  try {
    const Options options = parse(count, arguments);
    if (options.check) {
      const unisono::sim::Network network(options.cluster.network);
      return 0;
    }
    unisono::sim::Cluster cluster(options.cluster);
    warn_of_faults(cluster.network());
    unisono::sim::Server server(cluster, options.platform, options.sockets);
    if (options.ready >= 0) {
      // Who has started this waits for the byte, or for the end without one.
      [[maybe_unused]] const auto told = ::write(options.ready, "r", 1);
      ::close(options.ready);
    }
    server.run();
    if (!options.trace.empty()) {
      std::ofstream stream = written("--trace", options.trace);
      unisono::sim::write_trace(stream, cluster);
    }
    if (!options.counters.empty()) {
      std::ofstream stream = written("--counters", options.counters);
      unisono::sim::write_counters(stream, cluster);
    }
    tell_of_faults(cluster.network());
    if (!unisono::logs(unisono::LogLevel::kWarn)) return 0;
    // Of a job that ended at once there are no cycles, and no seconds, to divide by.
    const double cycles = static_cast<double>(std::max<std::uint64_t>(cluster.cycle(), 1));
    const double seconds = std::max(server.seconds(), 1e-6);
    const double khz = static_cast<double>(cluster.clock_khz());
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const double user = static_cast<double>(used.ru_utime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec);
    const std::size_t native = options.cluster.native.size();
    const std::string of_these = native == 0 ? "" : " (" + std::to_string(native) + " native)";
    std::fprintf(stderr,
                 "unisono-cluster: %u nodes%s, %.0f cycles (%.1f us at %.0f MHz), simulated at %.1f kHz by %u threads, "
                 "%.1f us of processor time per node and cycle\n",
                 cluster.nodes(), of_these.c_str(), cycles, cycles * 1000 / khz, khz / 1000, cycles / seconds / 1000,
                 cluster.threads(), 1e6 * user / (cycles * cluster.nodes()));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unisono-cluster: %s\n", error.what());
    return 1;
  }
}
