#include "sim/price/price.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/text.hpp"
#include "sim/model/calls.hpp"
#include "sim/network/frame.hpp"
#include "sim/price/loggp.hpp"
#include "sim/price/served.hpp"

namespace unisono::sim {
namespace {

/// The least that any algorithm takes: what a rank must send, or take, goes over its own link, and then, or before,
/// the way between two ranks.
double bound_of(const Ways& ways, const Call& call, const EndpointCosts& engine) {
  const CollectiveFacts facts = facts_of(call.collective);
  if (call.size < 2) return 0;
  const std::uint64_t all = call.count * element_bytes(call) * (facts.blocks ? call.size - 1 : 1);
  double nearest = 0, farthest = 0;
  for (std::uint32_t rank = 1; rank < call.size; ++rank) {
    const double way = ways.frame(0, rank, kWordBytes);
    nearest = nearest == 0 ? way : std::min(nearest, way);
    farthest = std::max(farthest, way);
  }
  double carried = 0;
  const std::uint32_t link = ways.topology().uplink[0];
  for (std::uint64_t done = 0; done < all; done += engine.segment) {
    carried += ways.busy(link, kWordBytes + std::min(engine.segment, all - done));
  }
  // The last word of the last frame may be a header's.
  return (facts.blocks ? nearest : farthest) + std::max(0.0, carried - ways.busy(link, kWordBytes));
}

/// What a job takes that names no algorithm, as the engines' admission has it.
void choose_for(const Topology& topology, Call call, const JobRules& job, Price& found) {
  const Served switches = served(topology, call.size, job.hardware);
  found.tree = switches.text;
  if (!topology.units.empty()) found.unserved = switches.reason;
  if (switches.reason.empty()) call.tree = switches.tree;
  Tuning tuning;
  tuning.rules = job.rules;
  tuning.radices = false;  // engines in hardware have the usual ones
  const Choice choice = choose(call, tuning);
  if (choice.position < 0) return;
  const Algorithm& chosen = algorithms()[static_cast<std::size_t>(choice.position)];
  found.choice = chosen.name;
  for (std::size_t i = 0; i < job.rules.size(); ++i) {
    if (&job.rules[i] == choice.rule) found.rule = i;
  }
  if (chosen.switched) {
    found.reason = "switches carry what they can";
    return;
  }
  found.reason = choice.rule != nullptr ? "by the built-in rules" : "the first of the table that admits the call";
  if (topology.units.empty()) return;
  found.reason += switches.reason.empty() ? "; switches do not carry it" : "; " + switches.reason;
}

Candidate form_of(const Ways& ways, const Algorithm& algorithm, const Call& call, const Parameters& parameters,
                  const EndpointCosts& engine) {
  Candidate found;
  found.algorithm = algorithm.name;
  found.switched = algorithm.switched;
  try {
    const ModelledCall programs = call_of(ways.topology(), algorithm, call);
    found.busiest = busiest_of(ways, programs, engine);
    if (algorithm.switched) {
      found.terms = logcn(ways, call, programs, parameters, engine);
      found.closed = found.terms.total();
    } else {
      found.closed = loggp(ways, programs, parameters, engine);
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::size_t colon = text.rfind(": ");
    found.refusal = colon == std::string::npos ? text : text.substr(colon + 2);
  }
  return found;
}

void simulate(const NetworkConfig& network, const Topology& topology, const Algorithm& algorithm, const Call& call,
              const EndpointCosts& engine, const EndpointCosts& switches, const ModelLimits& limits, Candidate& of) {
  try {
    const ModelledTime time = run_model(network, call_of(topology, algorithm, call), engine, switches, limits);
    of.cycles = time.cycles;
    of.busy_link = time.busiest;
    of.busy_share = time.cycles == 0 ? 0 : static_cast<double>(time.busy_cycles) / static_cast<double>(time.cycles);
  } catch (const Error& error) {
    of.missing = error.what();
    if (of.missing.starts_with("model: ")) of.missing.erase(0, 7);
  }
}

}  // namespace

Price price(const NetworkConfig& network, const Call& call, const std::vector<std::string>& names,
            const Parameters& parameters, const EndpointCosts& engine, const EndpointCosts& switches,
            const JobRules& job, std::chrono::steady_clock::time_point until) {
  if (call.size > kMostModelled) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("{} ranks were given; {} are the most that are modelled", call.size, kMostModelled));
  }
  for (const std::string& name : names) {
    if (find_algorithm(call.collective, name.c_str()) < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("{} has no algorithm {}; `unisono algorithms` lists them", name_of(call.collective), name));
    }
  }
  const Ways ways(network);
  Price found;
  for (const Algorithm& one : algorithms()) {
    if (one.collective != call.collective) continue;
    if (one.switched && ways.topology().units.empty() && names.empty()) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), one.name) == names.end()) continue;
    found.candidates.push_back(form_of(ways, one, call, parameters, engine));
  }
  const auto before = [](const Candidate& a, const Candidate& b) {
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    if (a.cycles.has_value() != b.cycles.has_value()) return a.cycles.has_value();
    if (a.cycles) return *a.cycles < *b.cycles;
    return a.closed < b.closed;
  };
  std::stable_sort(found.candidates.begin(), found.candidates.end(), before);
  for (Candidate& one : found.candidates) {
    if (!one.refusal.empty()) continue;
    if (names.empty() && one.closed > kFarOff * found.candidates.front().closed) {
      one.missing = formatted("by its closed form {:.0f} times as long as the quickest; name it to have it simulated",
                              one.closed / found.candidates.front().closed);
      continue;
    }
    const auto position = static_cast<std::size_t>(find_algorithm(call.collective, one.algorithm.c_str()));
    simulate(network, ways.topology(), algorithms()[position], call, engine, switches, {.until = until}, one);
  }
  std::stable_sort(found.candidates.begin(), found.candidates.end(), before);
  found.bound = bound_of(ways, call, engine);
  choose_for(ways.topology(), call, job, found);
  return found;
}

}  // namespace unisono::sim
