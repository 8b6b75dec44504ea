// unisono-cluster: N Verilated engines, a network between them, and a socket to each one's host.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/config.hpp"
#include "sim/cluster/server.hpp"
#include "sim/cluster/trace.hpp"
#include "sim/network/cables.hpp"
#include "sim/network/settings.hpp"
#include "sim/switch_rtl/rtl_switch.hpp"

namespace {

using unisono::Error;
using unisono::ErrorCode;
using unisono::formatted;

constexpr const char* kName = "unisono-cluster";
constexpr std::uint32_t kMostNodes = 64;

struct Options {
  unisono::sim::ClusterConfig cluster;
  unisono::sim::PlatformModel platform;
  std::vector<int> sockets;
  std::string trace, counters;  ///< files; empty: none
  int ready = -1;               ///< is told when hosts may come; negative: nobody
  bool check = false;           ///< nothing is to be run
};

/// Refuses what `--native` cannot name.
void check_native(const std::vector<std::uint32_t>& native, std::uint32_t nodes) {
  for (auto at = native.begin(); at != native.end(); ++at) {
    if (*at >= nodes) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("--native: there is no node {}; the cluster has nodes 0 to {}", *at, nodes - 1));
    }
    if (std::find(native.begin(), at, *at) != at) {
      throw Error(ErrorCode::kInvalidArgument, formatted("--native names node {} twice", *at));
    }
  }
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

Options parse(int count, char** arguments) {
  Options options;
  auto& cluster = options.cluster;
  cluster.memory.read_latency = 50;  // cycles: HBM behind its switch
  cluster.memory.write_latency = 30;
  cluster.memory.one_memory = true;
  cluster.firmware = UNISONO_FIRMWARE_HEX;
  cluster.threads = unisono::sim::usable_processors();
  std::uint32_t nodes = 0;
  std::string memory, network;
  std::optional<std::uint64_t> seed;
  CLI::App app("Runs engines in simulation, and serves a host of each over an inherited socket.", kName);
  const CLI::Range most(1U, kMostNodes);
  const auto not_negative = [](const std::string& text) { return text.starts_with('-') ? text + " is negative" : ""; };
  app.add_option("-n", nodes, "how many engines")->required()->check(most);
  app.add_option("--fd", options.sockets, "sockets of the hosts")->delimiter(',');
  app.add_option("--config", network, "network: shape, rates, latencies, faults (docs/simulated-network.md)");
  app.add_option("--routes", cluster.routes,
                 "nodes are on cables, whose routes are in this folder (`unisono route --ports 1 -o`), and SMI's "
                 "transport carries the frames");
  app.add_option("--memory", memory,
                 "platform: partitioned (copies take time, a call takes 50 us to be given) or unified (the host's "
                 "memory behind a TLB, a call takes 2 us); without it neither takes time")
      ->check(CLI::IsMember({"partitioned", "unified"}));
  app.add_option("--seed", seed, "of everything random; same seed, same cycles")->check(not_negative);
  app.add_option("--threads", cluster.threads, "that evaluate nodes at the same time, which changes no cycle")
      ->check(most)
      ->capture_default_str();
  app.add_option("--firmware", cluster.firmware, "image of the microcontroller, 32-bit words in hexadecimal")
      ->capture_default_str();
  app.add_option("--wave", cluster.wave, "waveforms of a node, in the build that has them (unisono-cluster-wave)");
  app.add_option("--wave-node", cluster.wave_node, "of which")->capture_default_str();
  app.add_option("--trace", options.trace, "a timeline of the moves of all engines (Trace Event Format, for Perfetto)");
  app.add_option("--kernels", cluster.kernels,
                 "library of kernels that hosts of Verilated nodes may start (unisono kernel build)");
  app.add_option("--counters", options.counters, "the engines' counters at the end, as JSON");
  app.add_option("--native", cluster.native,
                 "nodes whose engine is the native one, in C++, which takes no time, but for")
      ->delimiter(',');
  app.add_option("--native-delay", cluster.native_delay, "cycles before a message of such an engine leaves")
      ->check(not_negative)
      ->capture_default_str();
  bool no_skip = false;
  std::string switches;
  app.add_option("--switch", switches,
                 "switches where the configuration says `aggregation`: native, in C++, which take no time, rtl, "
                 "Verilated, or off")
      ->check(CLI::IsMember({"native", "rtl", "off"}));
  app.add_flag("--no-skip", no_skip, "evaluates every engine in every cycle, also where nothing can change");
  app.add_flag("--check-skip", cluster.check_skip,
               "evaluates a second engine beside each, in every cycle, and stops at the first difference");
  app.add_option("--ready", options.ready, "inherited descriptor: gets a byte when hosts may come");
  app.add_flag("--check", options.check, "says what is wrong with the other options, and ends: status 0 if nothing is");
  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& fault) {
    throw Error(ErrorCode::kInvalidArgument, fault.what() + ("\n" + app.help()));
  }
  cluster.skip = !no_skip;
  if (no_skip && cluster.check_skip) {
    throw Error(ErrorCode::kInvalidArgument, "--check-skip: with --no-skip there is nothing to compare");
  }
  unisono::sim::ClusterFile file;
  file.network.policy = unisono::sim::Policy::kPause;
  if (!network.empty()) file = unisono::sim::parse_cluster(text_of(network), network);
  const bool unified = memory == "unified";
  if (unified) options.platform = {2'000, 0, 0};
  if (memory == "partitioned") options.platform = {50'000, 5'000, 100'000};
  cluster.trace = !options.trace.empty();
  if (cluster.trace) written("--trace", options.trace);
  if (!options.counters.empty()) written("--counters", options.counters);
  if (!options.check && options.sockets.size() != nodes) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("--fd names {} sockets for {} nodes", options.sockets.size(), nodes));
  }
  check_native(cluster.native, nodes);
  if (cluster.wave_node >= nodes) {
    throw Error(ErrorCode::kInvalidArgument, formatted("--wave-node: there is no node {}", cluster.wave_node));
  }
  if (!cluster.wave.empty() && std::count(cluster.native.begin(), cluster.native.end(), cluster.wave_node) != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("--wave shows node {}, and --native names it: it has no signals", cluster.wave_node));
  }
  if (!switches.empty() && file.network.aggregation.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--switch: " + (network.empty() ? "no configuration is given" : network) +
                                                 " names no switches; a line such as `aggregation = ais@switch*` does");
  }
  if (switches == "off") file.network.aggregation.clear();
  if (switches == "rtl") cluster.switches = unisono::sim::make_rtl_switch;
  cluster.engines = nodes;
  // A network has two nodes at least; a cluster of one has a second port that nobody uses.
  cluster.network = file.network_of(nodes, seed);
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
  unisono::log(
      unisono::LogLevel::kWarn,
      formatted("frames lost: {}, come twice: {}, come late: {}; dropped because they had come, or behind a gap: {}",
                lost, twice, late, behind),
      kName);
}

/// What each switch has carried.
void tell_of_switches(const unisono::sim::Cluster& cluster) {
  if (cluster.aggregation() == nullptr) return;
  const auto& switches = cluster.aggregation()->switches();
  for (std::uint32_t unit = 0; unit < switches.size(); ++unit) {
    const unisono::sim::SwitchCounters counters = switches[unit]->counters();
    const std::string wrong =
        counters.mismatches + counters.faults + switches[unit]->dropped() == 0
            ? ""
            : formatted("; calls that differed: {}, messages that nobody sends: {}, for no communicator: {}",
                        counters.mismatches, counters.faults, switches[unit]->dropped());
    // Switches in hardware know messages only.
    const bool knows_calls = counters.calls != 0 || counters.messages == 0;
    const std::string calls = knows_calls ? formatted("{} calls, ", counters.calls) : "";
    std::fprintf(stderr, "%s: switch %s: %s\n", kName, cluster.network().unit(unit).name.c_str(),
                 formatted("{}{} messages, {} bytes came{}", calls, counters.messages, counters.bytes, wrong).c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);  // the hosts get it too, and when they have gone this ends
  try {
    const Options options = parse(count, arguments);
    if (options.check) {
      if (options.cluster.routes.empty()) {
        const unisono::sim::Network network(options.cluster.network);
      } else {
        unisono::sim::check_cables(options.cluster.routes, options.cluster.network);
      }
      return 0;
    }
    unisono::sim::Cluster cluster(options.cluster);
    if (cluster.has_network()) warn_of_faults(cluster.network());
    unisono::sim::Server server(cluster, options.platform, options.sockets);
    if (options.ready >= 0) {
      // The process that has started this waits for the byte, or for the end without one.
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
    if (cluster.has_network()) tell_of_faults(cluster.network());
    for (const std::string& complaint : cluster.carrier().complaints()) {
      unisono::log(unisono::LogLevel::kWarn, complaint, kName);
    }
    if (!unisono::logs(unisono::LogLevel::kWarn)) return 0;
    // Of a job that ended at once there are no cycles, and no seconds, to divide by.
    const double cycles = static_cast<double>(std::max<std::uint64_t>(cluster.cycle(), 1));
    const double seconds = std::max(server.seconds(), 1e-6);
    const double khz = static_cast<double>(cluster.clock_khz());
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const double user = static_cast<double>(used.ru_utime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec);
    const std::size_t native = options.cluster.native.size();
    const std::string of_these = native == 0 ? "" : formatted(" ({} native)", native);
    std::fprintf(stderr,
                 "unisono-cluster: %u nodes%s, %.0f cycles (%.1f us at %.0f MHz), simulated at %.1f kHz by %u threads, "
                 "%.1f us of processor time per node and cycle, %.1f %% of which were evaluated\n",
                 cluster.nodes(), of_these.c_str(), cycles, cycles * 1000 / khz, khz / 1000, cycles / seconds / 1000,
                 cluster.threads(), 1e6 * user / (cycles * cluster.nodes()), 100 * cluster.evaluated());
    tell_of_switches(cluster);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unisono-cluster: %s\n", error.what());
    return 1;
  }
}
