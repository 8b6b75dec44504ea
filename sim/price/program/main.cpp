// unisono-network-price: what a collective call takes in a simulated network, as JSON, and the rules by which jobs
// there choose. `unisono run` and `unisono explain` with --network, and `unisono calibrate --switch` start it.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "cost/in_force.hpp"
#include "cost/tuning_file.hpp"
#include "sim/cluster/config.hpp"
#include "sim/model/calls.hpp"
#include "sim/network/settings.hpp"
#include "sim/price/price.hpp"
#include "sim/price/rules.hpp"

namespace {

using nlohmann::json;
using unisono::Error;
using unisono::ErrorCode;
using unisono::formatted;
using namespace unisono::sim;  // NOLINT(google-build-using-namespace): this is its program

using Options = std::map<std::string, std::string, std::less<>>;

constexpr const char* kJobSegment = "4096";  ///< driver/platform.cpp
constexpr const char* kUsage =
    "unisono-network-price --config FILE -n RANKS --op OP --bytes N [--dtype NAME] [--algorithms NAME,...] [--switch "
    "native|rtl|off] [--segment BYTES] [--parameters FILE] [--seconds S], or --rules --config FILE -n RANKS [--op OP] "
    "[--switch native|rtl|off], or --measure [--segment BYTES]";

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

/// The options, by name; each but --measure and --rules has a value.
Options options_of(int count, char** arguments) {
  constexpr std::string_view kNames[] = {"--config", "-n",        "--op",         "--bytes",      "--dtype",
                                         "--switch", "--seconds", "--parameters", "--algorithms", "--segment"};
  Options found;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--measure" || name == "--rules") {
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

std::string option(const Options& options, const char* name, const char* usual) {
  const auto found = options.find(name);
  return found == options.end() ? std::string(usual) : found->second;
}

struct Costs {
  EndpointCosts engine, switches;
};

Costs costs_of(const Options& options, const char* segment_bytes) {
  Costs made{{}, option(options, "--switch", "") == "rtl" ? costs_of_rtl_switch() : costs_of_switch()};
  const std::uint64_t segment = number("--segment", segment_bytes, made.engine.segment);
  if (segment < made.engine.eager_limit || segment % 64 != 0) {
    refuse(formatted("--segment: {} bytes were given; allowed are multiples of 64 from {} to {}", segment,
                     made.engine.eager_limit, made.engine.segment));
  }
  made.engine.segment = made.switches.segment = segment;
  return made;
}

std::uint32_t ranks_of(const Options& options) {
  const auto ranks = static_cast<std::uint32_t>(number("-n", option(options, "-n", ""), kMostModelled));
  if (ranks < 2) refuse(formatted("{} ranks were given; a network has 2 at least", ranks));
  return ranks;
}

unisono::Collective collective_of(const Options& options) {
  return named<unisono::Collective>("operation", option(options, "--op", ""), 32);
}

NetworkConfig network_of(const Options& options, std::uint32_t ranks) {
  const std::string file = option(options, "--config", "");
  if (file.empty()) refuse(formatted("there is no --config FILE; it is started as {}", kUsage));
  ClusterFile read = parse_cluster(text_of(file), file);
  if (read.network.shape == Shape::kCables) {
    refuse(formatted("{}, line {}: topology = cables is joined by SMI's transport; only the other shapes have prices",
                     file, read.network.lines.at("topology")));
  }
  const std::string mode = option(options, "--switch", "");
  if (!mode.empty() && read.network.aggregation.empty()) {
    refuse(formatted("--switch: {} names no switches; a line such as `aggregation = ais@switch*` does", file));
  }
  if (mode == "off") read.network.aggregation.clear();
  NetworkConfig network = read.network_of(ranks, {});
  refuse_idle_settings(network, make_topology(network));
  return network;
}

constexpr const char* kOrigin = "prices in ";  ///< how tuning files that this program writes begin

/// The tuning file of a job, whose engines have the segments that they have unless a program says otherwise.
std::string rules_of(const Options& options) {
  const std::uint32_t ranks = ranks_of(options);
  const Costs costs = costs_of(options, kJobSegment);
  const Ways ways(network_of(options, ranks));
  const Parameters parameters = measure(costs.engine, costs.switches);
  std::optional<unisono::Collective> only;
  if (options.contains("--op")) only = collective_of(options);
  unisono::cost::TuningFile file;
  file.processor = kOrigin + option(options, "--config", "");
  file.rules = rules_by_price({ways, parameters, costs.engine, ranks, option(options, "--switch", "") == "rtl"}, only);
  return unisono::cost::write_tuning(file);
}

/// " for 64 to 4096 bytes"; nothing where a rule is for all.
std::string range_of(const unisono::Rule& rule) {
  if (rule.max_bytes == unisono::kAnyBytes)
    return rule.min_bytes == 0 ? "" : formatted(" from {} bytes", rule.min_bytes);
  if (rule.min_bytes == 0) return formatted(" up to {} bytes", rule.max_bytes);
  return formatted(" for {} to {} bytes", rule.min_bytes, rule.max_bytes);
}

/// Why a job takes what it takes.
std::string reason_of(const Price& price, const unisono::cost::InForce& rules) {
  if (!price.rule) return price.reason;
  if (*price.rule < rules.stable) return "determinism: results must not depend on sizes or places";
  const std::string range = range_of(rules.rules[*price.rule]);
  if (*price.rule < rules.stable + rules.pins) return "pinned by UNISONO_ALGORITHM" + range;
  if (rules.file && rules.file->processor.starts_with(kOrigin)) return "cheapest by price" + range;
  return "by a rule of " + rules.path + range;
}

json answer(const Options& options) {
  const Costs costs = costs_of(options, option(options, "--segment", "8128").c_str());
  if (options.contains("--measure")) return {{"parameters", json_of(measure(costs.engine, costs.switches))}};

  const std::uint32_t ranks = ranks_of(options);
  const auto collective = collective_of(options);
  const auto dtype = named<unisono::Datatype>("datatype", option(options, "--dtype", "fp32"), 64);
  std::vector<std::string> names;
  for (std::string rest = option(options, "--algorithms", ""); !rest.empty();) {
    const std::size_t comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  const NetworkConfig network = network_of(options, ranks);
  const Parameters parameters = options.contains("--parameters") ? parameters_of(option(options, "--parameters", ""))
                                                                 : measure(costs.engine, costs.switches);
  const std::uint64_t bytes = number("--bytes", option(options, "--bytes", "0"), std::uint64_t{1} << 40U);
  const unisono::Call call = plain_call(collective, ranks, bytes, dtype);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::seconds(number("--seconds", option(options, "--seconds", "600"), 86400));
  const unisono::cost::InForce rules = unisono::cost::rules_in_force();
  const Price found = price(network, call, names, parameters, costs.engine, costs.switches,
                            {rules.rules, option(options, "--switch", "") == "rtl"}, until);

  json candidates = json::array();
  for (const Candidate& one : found.candidates) candidates.push_back(json_of(one));
  return {{"clock_khz", network.clock_khz},
          {"bound", found.bound},
          {"choice", found.choice},
          {"reason", reason_of(found, rules)},
          {"tree", found.tree},
          {"unserved", found.unserved},
          {"faults", faults_of(make_topology(network))},
          {"parameters", json_of(parameters)},
          {"candidates", candidates}};
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Options options = options_of(count, arguments);
    const std::string mode = option(options, "--switch", "");
    if (mode != "" && mode != "native" && mode != "rtl" && mode != "off") {
      refuse(formatted("--switch: '{}' was given; allowed are native, rtl and off", mode));
    }
    std::puts(options.contains("--rules") ? rules_of(options).c_str() : answer(options).dump(1).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unisono-network-price: %s\n", error.what());
    return 1;
  }
}
