// Tuning: measuring the machine, the rules in force, and why a call is served as it is.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/group_table.hpp"
#include "core/text.hpp"
#include "cost/explain.hpp"
#include "cost/in_force.hpp"
#include "cost/tune.hpp"
#include "driver/calibrate.hpp"
#include "engine/copy_class.hpp"
#include "engine/stream_access.hpp"
#include "network/shm/segment.hpp"
#include "python/core/errors.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "reference/job.hpp"
#include "reference/reduction_order.hpp"

namespace unisono::python {

namespace {

nb::object flag(Which which) {
  if (which == Which::kAll) return nb::none();
  return nb::bool_(which == Which::kWith);
}

nb::dict dict_of(const Rule& rule) {
  nb::dict entry;
  const Algorithm& algorithm = algorithms()[rule.position];
  entry["collective"] = name_of(algorithm.collective);
  entry["algorithm"] = cost::text_of(rule.position, rule.radix);
  entry["min_bytes"] = rule.min_bytes;
  entry["max_bytes"] = rule.max_bytes == kAnyBytes ? nb::object(nb::none()) : nb::cast(rule.max_bytes);
  entry["min_ranks"] = rule.min_ranks;
  entry["max_ranks"] = rule.max_ranks == kAnyRanks ? nb::object(nb::none()) : nb::cast(rule.max_ranks);
  entry["direct"] = flag(rule.direct);
  entry["crowded"] = flag(rule.crowded);
  entry["groups"] = flag(rule.groups);
  entry["hosts"] = flag(rule.hosts);
  entry["switches"] = rule.switches;
  return entry;
}

nb::dict dict_of(const cost::Machine& machine) {
  nb::dict entry;
  entry["line"] = machine.line;
  entry["issue"] = machine.issue;
  entry["segment"] = machine.segment;
  entry["sync"] = machine.sync;
  entry["yield"] = machine.yield;
  entry["copy"] = nb::make_tuple(machine.copy[0], machine.copy[1], machine.copy[2]);
  entry["cross"] = nb::make_tuple(machine.cross[0], machine.cross[1], machine.cross[2]);
  entry["reduce"] = machine.reduce;
  entry["reduce_half"] = machine.reduce_half;
  entry["near_bytes"] = machine.near_bytes;
  entry["shared_bytes"] = machine.shared_bytes;
  entry["cores"] = machine.cores;
  return entry;
}

/// From how many bytes on the kernel copies, by kind of call; None: never.
nb::dict dict_of(const cclo::CopyClass& found) {
  const auto bytes = [](std::uint64_t from) {
    return from == shm::kNeverCopied ? nb::object(nb::none()) : nb::cast(from);
  };
  nb::dict entry;
  entry["one_way"] = bytes(found.from.one_way);
  entry["exchange"] = bytes(found.from.exchange);
  entry["reduction"] = bytes(found.from.reduction);
  switch (found.source) {
    case cclo::CopyClass::Source::kMeasured:
      entry["source"] = "measured";
      break;
    case cclo::CopyClass::Source::kKept:
      entry["source"] = "kept";
      break;
    case cclo::CopyClass::Source::kRefused:
      entry["source"] = "refused";
      break;
    case cclo::CopyClass::Source::kUsual:
      entry["source"] = "usual";
      break;
  }
  entry["file"] = cclo::copy_class_file();
  return entry;
}

nb::object dict_of(const std::optional<cost::MeasuredNetwork>& network) {
  if (!network) return nb::none();
  nb::dict entry;
  entry["transport"] = network->transport;
  entry["latency"] = network->prices.latency;
  entry["message"] = network->prices.message;
  entry["byte"] = network->prices.byte;
  entry["near_latency"] = network->prices.near_latency;
  entry["near_message"] = network->prices.near_message;
  entry["connections"] = network->connections;
  entry["register_from"] = network->register_from;
  return entry;
}

/// The text of a tuning file with what was measured of a network, and with the rules that follow from it in place of
/// those that it has for several hosts.
std::string with_network(const std::string& text, const std::string& transport, const cost::Network& prices,
                         std::uint32_t connections, std::optional<std::uint64_t> register_from,
                         std::uint32_t most_ranks) {
  if (connections < 1 || connections > cost::kMostConnections) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("{} connections were given; allowed are 1 to {}", connections, cost::kMostConnections));
  }
  cost::TuningFile file = cost::parse_tuning(text);
  file.network = cost::MeasuredNetwork{transport, prices, connections, register_from};
  std::erase_if(file.rules, [](const Rule& rule) { return rule.hosts == Which::kWith; });
  const std::vector<Rule> rules = cost::tune_hosts(file.machine, prices, most_ranks);
  file.rules.insert(file.rules.end(), rules.begin(), rules.end());
  return cost::write_tuning(file);
}

/// `priced`: with times; else with what is sent between hosts.
nb::dict dict_of(const cost::Prediction& prediction, bool priced) {
  nb::dict entry;
  const auto time = [&](double value) { return priced ? nb::cast(value) : nb::object(nb::none()); };
  entry["total"] = time(prediction.time.total);
  entry["latency"] = time(prediction.time.latency);
  entry["copy"] = time(prediction.time.copy);
  entry["reduce"] = time(prediction.time.reduce);
  entry["sync"] = time(prediction.time.sync);
  entry["moves"] = prediction.moves;
  entry["most_moves"] = prediction.most_moves;
  entry["messages"] = prediction.messages;
  entry["message_bytes"] = prediction.message_bytes;
  entry["remote_bytes"] = prediction.remote_bytes;
  if (!priced) {
    entry["between_messages"] = prediction.between_messages;
    entry["between_bytes"] = prediction.between_bytes;
  }
  return entry;
}

nb::list list_of(std::span<const Rule> rules) {
  nb::list entries;
  for (const Rule& rule : rules) entries.append(dict_of(rule));
  return entries;
}

nb::dict in_force() {
  const cost::InForce found = without_gil([] { return cost::rules_in_force(); });
  nb::dict result;
  result["path"] = found.path;
  result["warning"] = found.warning;
  result["hash"] = found.rules.empty() ? "" : cost::hash_text(hash_of(found.rules));
  result["pins"] = found.pins;
  result["rules"] = list_of(found.rules);
  result["machine"] = dict_of(found.machine);
  result["calibrated"] = found.file.has_value();
  result["network"] = dict_of(found.file ? found.file->network : std::nullopt);
  return result;
}

/// Numbers of hosts from 0 on, in order of their first ranks; nothing if all ranks are on one.
std::vector<std::uint32_t> numbered(const std::vector<std::uint64_t>& host_of) {
  std::map<std::uint64_t, std::uint32_t> numbers;
  std::vector<std::uint32_t> hosts;
  hosts.reserve(host_of.size());
  for (const std::uint64_t host : host_of) {
    hosts.push_back(numbers.emplace(host, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  if (numbers.size() < 2) hosts.clear();
  return hosts;
}

/// `hosts`: by rank, equal numbers for ranks of one host; empty: all are on one. `cores`: of each host.
nb::dict explained(int collective, std::uint32_t size, std::uint64_t count, int datatype, int op, std::uint32_t root,
                   bool in_place, bool reachable, std::uint32_t cores, const std::string& algorithm_name,
                   const std::vector<std::uint64_t>& hosts) {
  Call call;
  call.collective = static_cast<Collective>(collective);
  call.size = size;
  call.count = count;
  call.dtype = static_cast<Datatype>(datatype);
  call.func = static_cast<Func>(op);
  call.root = root;
  call.in_place = in_place;
  if (!hosts.empty() && hosts.size() != size) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("the hosts of {} ranks were given; the call has {}", hosts.size(), size));
  }
  // As a communicator has them whose members are there.
  const Grouping groups = find_groups(hosts);
  call.group_size = groups.size;
  call.groups = groups.list;
  std::map<std::uint64_t, std::uint32_t> ranks_of;
  for (const std::uint64_t host : hosts) ++ranks_of[host];
  const bool several = ranks_of.size() > 1;
  struct Result {
    cost::InForce rules;
    cost::Explanation explanation;
    bool crowded = false;
  };
  const Result result = without_gil([&] {
    Result made;
    made.rules = cost::rules_in_force();
    made.crowded = !several && size > cores;
    for (const auto& [host, ranks] : ranks_of) made.crowded = made.crowded || ranks > cores;
    cost::Machine machine = made.rules.machine;
    machine.cores = cores;
    if (several && made.rules.file && made.rules.file->network) {
      machine = cost::for_hosts(machine, made.rules.file->network->prices, numbered(hosts));
    } else {
      machine = cost::for_ranks(machine, size, made.crowded);
    }
    std::optional<cost::NamedAlgorithm> named;
    if (!algorithm_name.empty()) named = cost::algorithm_named(call.collective, algorithm_name);
    const Tuning tuning{made.rules.rules, made.crowded, true, several};
    made.explanation = cost::explain(call, reachable, tuning, machine, named ? &*named : nullptr);
    return made;
  });
  const cost::Explanation& found = result.explanation;
  const auto name = [](int position, std::uint8_t radix) {
    return position < 0 ? nb::object(nb::none()) : nb::cast(cost::text_of(position, radix));
  };
  nb::dict answer;
  answer["algorithm"] = name(found.choice.position, found.choice.radix);
  answer["runner_up"] = name(found.runner_up, 0);
  answer["crossover"] = found.crossover ? nb::cast(*found.crossover) : nb::object(nb::none());
  answer["crossover_stride"] = found.crossover_stride;
  answer["asked_in_vain"] = found.asked_in_vain;
  answer["crowded"] = result.crowded;
  answer["priced"] = found.priced;
  const Rule* rule = found.choice.rule;
  const Rule* own = result.rules.rules.data();
  const char* origin = algorithm_name.empty() ? "none" : "named";
  if (rule != nullptr) {
    const bool mine = rule >= own && rule < own + result.rules.rules.size();
    const auto place = static_cast<std::size_t>(rule - own);
    const std::size_t stable = result.rules.stable;
    origin = !mine ? "built-in" : place < stable ? "determinism" : place < stable + result.rules.pins ? "pin" : "file";
  }
  answer["origin"] = origin;
  answer["rule"] = rule == nullptr ? nb::object(nb::none()) : nb::object(dict_of(*rule));
  nb::list candidates;
  for (const cost::Candidate& candidate : found.candidates) {
    nb::dict entry;
    const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(candidate.position)];
    entry["algorithm"] = cost::text_of(candidate.position, candidate.radix);
    entry["restriction"] = algorithm.restriction;
    entry["direct"] = algorithm.direct;
    entry["prediction"] =
        candidate.admitted ? nb::object(dict_of(candidate.prediction, found.priced)) : nb::object(nb::none());
    candidates.append(entry);
  }
  answer["candidates"] = candidates;
  // Of a part of a long vector: enough to see all orders that there are, and how many.
  constexpr std::uint64_t kMost = 1U << 18U;
  const bool reduces = found.choice.position >= 0 && reference::is_reduction(call.collective) && count != 0;
  answer["order"] = nb::none();
  if (reduces && count * size <= kMost) {
    const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(found.choice.position)];
    call.direct = algorithm.direct;
    call.radix = found.choice.radix;
    const auto order = without_gil([&] { return reference::reduction_order(algorithm, call); });
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(order.hash));
    nb::dict entry;
    entry["hash"] = text;
    entry["orders"] = order.orders;
    answer["order"] = entry;
  }
  return answer;
}

/// What a communicator of streams would do with a call: the algorithm that it chooses, and of each that there is, by
/// name, whether src and dst go on element by element.
nb::dict streamed(int collective, std::uint32_t size, std::uint64_t count, int datatype, int op, bool in_place) {
  Call call;
  call.collective = static_cast<Collective>(collective);
  call.size = size;
  call.count = count;
  call.dtype = static_cast<Datatype>(datatype);
  call.func = static_cast<Func>(op);
  call.in_place = in_place;
  struct Entry {
    const char* name;
    cclo::StreamRegions regions;
  };
  std::vector<Entry> entries;
  const char* const chosen = without_gil([&]() -> const char* {
    std::vector<Rule> rules = cost::rules_in_force().rules;
    rules.insert(rules.end(), stream_rules().begin(), stream_rules().end());
    const Choice choice = choose(call, {rules});
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective != call.collective || algorithm.direct) continue;
      if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
      entries.push_back({algorithm.name, cclo::streamed_regions(algorithm, call)});
    }
    return choice.position < 0 ? nullptr : algorithms()[static_cast<std::size_t>(choice.position)].name;
  });
  nb::dict answer;
  answer["algorithm"] = chosen == nullptr ? nb::object(nb::none()) : nb::cast(chosen);
  nb::dict table;
  for (const Entry& entry : entries) {
    nb::dict one;
    one["src"] = entry.regions.src;
    one["dst"] = entry.regions.dst;
    table[entry.name] = one;
  }
  answer["algorithms"] = table;
  return answer;
}

}  // namespace

void bind_tuning(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names
  module.def(
      "calibrate",
      [](std::uint32_t most_ranks) {
        return without_gil([&] { return cost::write_tuning(driver::calibrate(most_ranks)); });
      },
      "most_ranks"_a, "Measures the machine; the text of a tuning file.");
  module.def(
      "tune_network",
      [](const std::string& text, const std::string& transport, double latency, double message, double byte,
         double near_latency, double near_message, std::uint32_t connections,
         std::optional<std::uint64_t> register_from, std::uint32_t most_ranks) {
        const cost::Network prices{latency, message, byte, near_latency, near_message};
        return without_gil(
            [&] { return with_network(text, transport, prices, connections, register_from, most_ranks); });
      },
      "text"_a, "transport"_a, "latency"_a, "message"_a, "byte"_a, "near_latency"_a, "near_message"_a, "connections"_a,
      "register_from"_a.none(), "most_ranks"_a,
      "The text of a tuning file with what a network takes, and rules for several hosts.");
  module.def(
      "check_tuning",
      [](const std::string& text) {
        const cost::TuningFile file = without_gil([&] { return cost::parse_tuning(text); });
        nb::dict result;
        result["processor"] = file.processor;
        result["machine"] = dict_of(file.machine);
        result["network"] = dict_of(file.network);
        result["rules"] = list_of(file.rules);
        return result;
      },
      "text"_a, "Reads the text of a tuning file.");
  module.def("tuning_in_force", &in_force, "The rules that this process would follow.");
  module.def(
      "usual_tuning_path", [] { return cost::usual_tuning_path(); }, "Where a tuning file is looked for.");
  module.def(
      "bytes_of", [](int datatype) { return bytes_of(static_cast<Datatype>(datatype)); }, "datatype"_a,
      "Bytes of an element.");
  module.def(
      "copy_class", [] { return dict_of(cclo::copy_class()); },
      "From how many bytes on the kernel copies ordinary buffers here; measures if that was not done since the start "
      "of "
      "the machine.");
  module.def(
      "measure_copy_class", [] { return dict_of(cclo::measure_copy_class()); },
      "Measures from how many bytes on the kernel copies ordinary buffers here, and keeps it.");
  module.def(
      "copied_from",
      [](int collective, std::uint32_t ranks, bool crowded) {
        const std::uint64_t from =
            cclo::copied_from(static_cast<Collective>(collective), ranks, crowded, cclo::copy_class().from);
        return from == shm::kNeverCopied ? nb::object(nb::none()) : nb::cast(from);
      },
      "collective"_a, "ranks"_a, "crowded"_a,
      "From how many bytes on the kernel copies ordinary buffers of a collective here; None: never.");
  module.def(
      "cores_for_ranks", [] { return driver::cores_for_ranks(); }, "Cores that ranks may use.");
  module.def("explain", &explained, "collective"_a, "size"_a, "count"_a, "datatype"_a, "op"_a, "root"_a, "in_place"_a,
             "reachable"_a, "cores"_a, "algorithm"_a = "", "hosts"_a = std::vector<std::uint64_t>{},
             "Why a call is served as it is.");
  module.def("streamed", &streamed, "collective"_a, "size"_a, "count"_a, "datatype"_a, "op"_a, "in_place"_a,
             "Which operands of a call can be streams that go on element by element.");
}

}  // namespace unisono::python
