#include "cost/tuning_file.hpp"

#include <array>
#include <cstdio>

#include "core/error.hpp"
#include "core/quoted.hpp"
#include "core/text.hpp"
#include "cost/json.hpp"
#include "cost/names.hpp"

namespace unisono::cost {
namespace {

constexpr std::size_t kMostText = std::size_t{4} << 20U;
constexpr std::size_t kMostRules = 4096;
constexpr double kMostTime = 1e9;  ///< a second
constexpr double kMostByteTime = 1e6;

struct TimeField {
  const char* name;
  double Machine::*member;
};
constexpr TimeField kTimes[] = {
    {"line", &Machine::line},
    {"issue", &Machine::issue},
    {"segment", &Machine::segment},
    {"sync", &Machine::sync},
    {"yield", &Machine::yield},
    {"reduce", &Machine::reduce},
    {"reduce_half", &Machine::reduce_half},
};
struct LevelField {
  const char* name;
  std::array<double, kLevels> Machine::*member;
};
constexpr LevelField kByLevel[] = {{"copy", &Machine::copy}, {"cross", &Machine::cross}};
struct ByteField {
  const char* name;
  std::uint64_t Machine::*member;
};
constexpr ByteField kBytes[] = {{"near_bytes", &Machine::near_bytes}, {"shared_bytes", &Machine::shared_bytes}};

Machine machine_of(const json::Value& value) {
  value.only({"line", "issue", "segment", "sync", "yield", "reduce", "reduce_half", "copy", "cross", "near_bytes",
              "shared_bytes", "cores"});
  Machine machine;
  for (const TimeField& field : kTimes) {
    machine.*field.member = value.at(field.name).number(0, kMostTime);
  }
  for (const LevelField& field : kByLevel) {
    const json::Value& levels = value.at(field.name);
    if (levels.array().size() != kLevels) {
      levels.refuse(
          formatted("here are {} numbers; needed are 3: near, shared and main memory", levels.array().size()));
    }
    double before = 0;
    for (std::size_t i = 0; i < kLevels; ++i) {
      const json::Value& level = levels.array()[i];
      const double cost = level.number(0, kMostByteTime);
      if (cost < before) level.refuse("the cost falls from one level to the next; it may only rise");
      (machine.*field.member)[i] = before = cost;
    }
  }
  for (std::size_t i = 0; i < kLevels; ++i) {
    if (machine.cross[i] < machine.copy[i]) {
      value.at("cross").array()[i].refuse("data of another core costs less than data at hand (copy)");
    }
  }
  for (const ByteField& field : kBytes) {
    machine.*field.member = value.at(field.name).whole(1, std::uint64_t{1} << 50U);
  }
  if (machine.shared_bytes < machine.near_bytes) {
    value.at("shared_bytes").refuse("it is less than near_bytes");
  }
  machine.cores = static_cast<std::uint32_t>(value.at("cores").whole(0, 1U << 20U));
  return machine;
}

struct NetworkField {
  const char* name;
  double Network::*member;
};
constexpr NetworkField kNetwork[] = {
    {"latency", &Network::latency},           {"message", &Network::message},           {"byte", &Network::byte},
    {"near_latency", &Network::near_latency}, {"near_message", &Network::near_message},
};

MeasuredNetwork network_of(const json::Value& value) {
  value.only(
      {"transport", "latency", "message", "byte", "near_latency", "near_message", "connections", "register_from"});
  MeasuredNetwork network;
  network.transport = value.at("transport").text();
  for (const NetworkField& field : kNetwork) {
    network.prices.*field.member = value.at(field.name).number(0, kMostTime);
  }
  if (const json::Value* found = value.find("connections")) {
    network.connections = static_cast<std::uint32_t>(found->whole(1, kMostConnections));
  }
  if (const json::Value* found = value.find("register_from")) {
    network.register_from = found->whole(kLeastRegistered, kNeverRegistered);
  }
  return network;
}

Which which_of(const json::Value& rule, const char* name) {
  const json::Value* found = rule.find(name);
  if (found == nullptr) return Which::kAll;
  return found->boolean() ? Which::kWith : Which::kWithout;
}

Rule rule_of(const json::Value& value) {
  value.only({"collective", "algorithm", "min_bytes", "max_bytes", "min_ranks", "max_ranks", "direct", "crowded",
              "groups", "hosts", "switches"});
  Rule rule;
  const json::Value& collective = value.at("collective");
  const json::Value& algorithm = value.at("algorithm");
  const auto known = collective_named(collective.text());
  if (!known)
    collective.refuse("there is no collective " + in_quotes(collective.text()) + "; there are " + collectives_text());
  try {
    const NamedAlgorithm named = algorithm_named(*known, algorithm.text());
    rule.position = static_cast<std::uint16_t>(named.position);
    rule.radix = named.radix;
  } catch (const Error& error) {
    algorithm.refuse(error.what());
  }
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 53U;
  if (const json::Value* found = value.find("min_bytes")) rule.min_bytes = found->whole(0, kMostBytes);
  if (const json::Value* found = value.find("max_bytes")) rule.max_bytes = found->whole(0, kMostBytes);
  if (const json::Value* found = value.find("min_ranks")) {
    rule.min_ranks = static_cast<std::uint32_t>(found->whole(1, 1U << 20U));
  }
  if (const json::Value* found = value.find("max_ranks")) {
    rule.max_ranks = static_cast<std::uint32_t>(found->whole(1, 1U << 20U));
  }
  if (rule.min_bytes > rule.max_bytes) value.refuse("min_bytes is more than max_bytes, so no call meets the rule");
  if (rule.min_ranks > rule.max_ranks) value.refuse("min_ranks is more than max_ranks, so no call meets the rule");
  rule.direct = which_of(value, "direct");
  rule.crowded = which_of(value, "crowded");
  rule.groups = which_of(value, "groups");
  rule.hosts = which_of(value, "hosts");
  if (const json::Value* found = value.find("switches")) rule.switches = found->boolean();
  return rule;
}

}  // namespace

std::string hash_text(std::uint32_t hash) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "%08x", hash);
  return text.data();
}

TuningFile parse_tuning(std::string_view text) {
  if (text.size() > kMostText) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("the file has {} bytes; allowed are {}", text.size(), kMostText));
  }
  const json::Value document = json::parse(text);
  const json::Value& version = document.at("unisono_tuning");
  if (version.whole(0, ~std::uint32_t{0}) != kTuningVersion) {
    version.refuse(formatted("the file is of version {}; this library reads version {}. Run `unisono calibrate`",
                             version.whole(0, ~std::uint32_t{0}), kTuningVersion));
  }
  document.only({"unisono_tuning", "processor", "hash", "machine", "network", "rules"});
  TuningFile file;
  if (const json::Value* processor = document.find("processor")) file.processor = processor->text();
  file.machine = machine_of(document.at("machine"));
  if (const json::Value* network = document.find("network")) file.network = network_of(*network);
  const json::Value& rules = document.at("rules");
  if (rules.array().size() > kMostRules) {
    rules.refuse(formatted("here are {} rules; allowed are {}", rules.array().size(), kMostRules));
  }
  for (const json::Value& rule : rules.array()) file.rules.push_back(rule_of(rule));
  if (const json::Value* hash = document.find("hash")) {
    const std::string found = hash_text(hash_of(file.rules));
    if (hash->text() != found) {
      hash->refuse("here is " + in_quotes(hash->text()) + ", but the rules have " + found +
                   ": the file was changed. If that was meant, remove this field");
    }
  }
  return file;
}

std::string write_tuning(const TuningFile& file) {
  std::string text =
      formatted("{{\n  \"unisono_tuning\": {},\n  \"processor\": {},\n  \"hash\": \"{}\",\n  \"machine\": {{\n",
                kTuningVersion, json::quoted(file.processor), hash_text(hash_of(file.rules)));
  for (const TimeField& field : kTimes) {
    text += std::string("    \"") + field.name + "\": " + json::number(file.machine.*field.member) + ",\n";
  }
  for (const LevelField& field : kByLevel) {
    text += std::string("    \"") + field.name + "\": [";
    for (std::size_t i = 0; i < kLevels; ++i)
      text += (i == 0 ? "" : ", ") + json::number((file.machine.*field.member)[i]);
    text += "],\n";
  }
  for (const ByteField& field : kBytes) {
    text += formatted("    \"{}\": {},\n", field.name, file.machine.*field.member);
  }
  text += formatted("    \"cores\": {}\n  }},\n", file.machine.cores);
  if (file.network) {
    text += "  \"network\": {\n    \"transport\": " + json::quoted(file.network->transport);
    for (const NetworkField& field : kNetwork) {
      text += std::string(",\n    \"") + field.name + "\": " + json::number(file.network->prices.*field.member);
    }
    text += formatted(",\n    \"connections\": {}", file.network->connections);
    if (file.network->register_from) text += formatted(",\n    \"register_from\": {}", *file.network->register_from);
    text += "\n  },\n";
  }
  text += "  \"rules\": [";
  bool first = true;
  for (const Rule& rule : file.rules) {
    const Algorithm& algorithm = algorithms()[rule.position];
    text += first ? "\n" : ",\n";
    first = false;
    text += std::string("    {\"collective\": \"") + name_of(algorithm.collective) + "\", \"algorithm\": \"" +
            text_of(rule.position, rule.radix) + "\"";
    if (rule.min_bytes != 0) text += formatted(", \"min_bytes\": {}", rule.min_bytes);
    if (rule.max_bytes != kAnyBytes) text += formatted(", \"max_bytes\": {}", rule.max_bytes);
    if (rule.min_ranks != 1) text += formatted(", \"min_ranks\": {}", rule.min_ranks);
    if (rule.max_ranks != kAnyRanks) text += formatted(", \"max_ranks\": {}", rule.max_ranks);
    const auto flag = [&](const char* name, Which which) {
      if (which != Which::kAll)
        text += std::string(", \"") + name + "\": " + (which == Which::kWith ? "true" : "false");
    };
    flag("direct", rule.direct);
    flag("crowded", rule.crowded);
    flag("groups", rule.groups);
    flag("hosts", rule.hosts);
    if (rule.switches) text += ", \"switches\": true";
    text += "}";
  }
  return text + (first ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace unisono::cost
