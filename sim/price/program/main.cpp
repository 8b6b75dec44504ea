// unisono-network-price: what a collective call takes in a simulated network, as JSON. `unisono explain --network` and
// `unisono calibrate --switch` start it.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/cluster/config.hpp"
#include "sim/model/calls.hpp"
#include "sim/network/settings.hpp"
#include "sim/price/price.hpp"

namespace {

using nlohmann::json;
using unisono::Error;
using unisono::ErrorCode;
using unisono::formatted;
using namespace unisono::sim;  // NOLINT(google-build-using-namespace): this is its program

constexpr const char* kUsage =
    "unisono-network-price --config FILE -n RANKS --op OP --bytes N [--dtype NAME] [--algorithms NAME,...] [--switch "
    "native|off] [--segment BYTES] [--parameters FILE] [--seconds S], or --measure [--segment BYTES]";

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

/// The options, by name; each but --measure has a value.
std::map<std::string, std::string, std::less<>> options_of(int count, char** arguments) {
  constexpr std::string_view kNames[] = {"--config", "-n",        "--op",         "--bytes",      "--dtype",
                                         "--switch", "--seconds", "--parameters", "--algorithms", "--segment"};
  std::map<std::string, std::string, std::less<>> found;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--measure") {
      found[name] = "";
      continue;
    }
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
      refuse(formatted("{} is no option; it is started as {}", name, kUsage));
    }
    if (i + 1 == count) refuse(name + " has no value");
    found[name] = arguments[++i];
  }
  return found;
}

std::uint64_t number(const std::string& name, std::string_view text, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > most) {
    refuse(formatted("{}: '{}' was given; allowed are 0 to {}", name, text, most));
  }
  return value;
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) refuse(file + " cannot be read");
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

template <class Value>
Value named(const char* what, std::string_view name, std::size_t values) {
  for (std::size_t i = 0; i < values; ++i) {
    if (name == unisono::name_of(static_cast<Value>(i))) return static_cast<Value>(i);
  }
  refuse(formatted("{} '{}' is not known", what, name));
}

/// The parameters by name, for both directions.
template <class Known, class F>
void each_parameter(Known& known, F&& with) {
  with("call", known.call);
  with("send", known.send);
  with("send_after", known.send_after);
  with("receive", known.receive);
  with("receive_late", known.receive_late);
  with("receive_list", known.receive_list);
  with("forward", known.forward);
  with("fold", known.fold);
  with("gap", known.gap);
  with("gap_receive", known.gap_receive);
  with("gap_receive_row", known.gap_receive_row);
  with("gap_list", known.gap_list);
  with("gap_fan_in", known.gap_fan_in);
  with("gap_granted", known.gap_granted);
  with("gap_program", known.gap_program);
  with("byte", known.byte);
  with("grant", known.grant);
  with("alpha", known.alpha);
  with("alpha_child", known.alpha_child);
  with("gap_switch", known.gap_switch);
  with("gap_asked", known.gap_asked);
}

json json_of(const Parameters& known) {
  json made = json::object();
  each_parameter(known, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Overhead>) {
      made[name] = {{"signal", value.signal}, {"first", value.first}, {"byte", value.byte}};
    } else {
      made[name] = value;
    }
  });
  return made;
}

Parameters parameters_of(const std::string& file) {
  Parameters found;
  try {
    const json document = json::parse(text_of(file));
    const json& given = document.at("parameters");
    each_parameter(found, [&](const char* name, auto& value) {
      const json& one = given.at(name);
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Overhead>) {
        value = {one.at("signal").get<double>(), one.at("first").get<double>(), one.at("byte").get<double>()};
      } else {
        value = one.get<double>();
      }
    });
  } catch (const json::exception& fault) {
    refuse(formatted("{} is no file of `unisono calibrate --switch`: {}", file, fault.what()));
  }
  return found;
}

json json_of(const Candidate& one) {
  json made = {{"algorithm", one.algorithm}, {"switched", one.switched}};
  if (!one.refusal.empty()) {
    made["refusal"] = one.refusal;
    return made;
  }
  made["cycles"] = one.cycles ? json(*one.cycles) : json();
  if (!one.missing.empty()) made["missing"] = one.missing;
  made[one.switched ? "logcn" : "loggp"] = one.closed;
  if (one.switched) {
    const LogcnTerms& terms = one.terms;
    made["terms"] = {{"o", terms.o}, {"L", terms.latency},   {"m/G", terms.bytes},
                     {"c", terms.c}, {"grant", terms.grant}, {"N", terms.switches}};
  }
  made["busiest"] = {{"link", one.busiest.link},
                     {"bytes", one.busiest.bytes},
                     {"wire_bytes", one.busiest.wire_bytes},
                     {"cycles", one.busiest.cycles},
                     {"hops", one.busiest.hops}};
  if (one.cycles) made["busy"] = {{"link", one.busy_link}, {"share", one.busy_share}};
  return made;
}

json answer(int count, char** arguments) {
  const auto options = options_of(count, arguments);
  const auto option = [&](const char* name, const char* usual) {
    const auto found = options.find(name);
    return found == options.end() ? std::string(usual) : found->second;
  };
  const std::string mode = option("--switch", "");
  if (mode != "" && mode != "native" && mode != "rtl" && mode != "off") {
    refuse(formatted("--switch: '{}' was given; allowed are native, rtl and off", mode));
  }
  EndpointCosts engine, switches = mode == "rtl" ? costs_of_rtl_switch() : costs_of_switch();
  const std::uint64_t segment = number("--segment", option("--segment", "8128"), engine.segment);
  if (segment < engine.eager_limit || segment % 64 != 0) {
    refuse(formatted("--segment: {} bytes were given; allowed are multiples of 64 from {} to {}", segment,
                     engine.eager_limit, engine.segment));
  }
  engine.segment = switches.segment = segment;
  if (options.contains("--measure")) return {{"parameters", json_of(measure(engine, switches))}};

  const std::string file = option("--config", "");
  if (file.empty()) refuse(formatted("there is no --config FILE; it is started as {}", kUsage));
  const auto ranks = static_cast<std::uint32_t>(number("-n", option("-n", ""), kMostModelled));
  if (ranks < 2) refuse(formatted("{} ranks were given; a network has 2 at least", ranks));
  const auto collective = named<unisono::Collective>("operation", option("--op", ""), 32);
  const auto dtype = named<unisono::Datatype>("datatype", option("--dtype", "fp32"), 64);
  std::vector<std::string> names;
  for (std::string rest = option("--algorithms", ""); !rest.empty();) {
    const std::size_t comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }

  ClusterFile read = parse_cluster(text_of(file), file);
  if (read.network.shape == Shape::kCables) {
    refuse(formatted("{}, line {}: topology = cables is joined by SMI's transport; only the other shapes have prices",
                     file, read.network.lines.at("topology")));
  }
  if (!mode.empty() && read.network.aggregation.empty()) {
    refuse(formatted("--switch: {} names no switches; a line such as `aggregation = ais@switch*` does", file));
  }
  if (mode == "off") read.network.aggregation.clear();
  const NetworkConfig network = read.network_of(ranks, {});
  const Topology topology = make_topology(network);
  refuse_idle_settings(network, topology);

  const Parameters parameters =
      options.contains("--parameters") ? parameters_of(option("--parameters", "")) : measure(engine, switches);
  const std::uint64_t bytes = number("--bytes", option("--bytes", "0"), std::uint64_t{1} << 40U);
  const unisono::Call call = plain_call(collective, ranks, bytes, dtype);
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(number("--seconds", option("--seconds", "600"), 86400));
  const Price found = price(network, call, names, parameters, engine, switches, until);

  json candidates = json::array();
  for (const Candidate& one : found.candidates) candidates.push_back(json_of(one));
  return {{"clock_khz", network.clock_khz},
          {"bound", found.bound},
          {"choice", found.choice},
          {"reason", found.reason},
          {"tree", found.tree},
          {"faults", faults_of(topology)},
          {"parameters", json_of(parameters)},
          {"candidates", candidates}};
}

}  // namespace

int main(int count, char** arguments) {
  try {
    std::puts(answer(count, arguments).dump(1).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unisono-network-price: %s\n", error.what());
    return 1;
  }
}
