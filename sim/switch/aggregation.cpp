#include "sim/switch/aggregation.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "sim/network/engine_trees.hpp"
#include "sim/switch/switch_unit.hpp"

namespace unisono::sim {

Aggregation::Aggregation(Network& network, const UnitMaker& maker) : network_(network) {
  for (std::uint32_t unit = 0; unit < network_.units(); ++unit) {
    switches_.push_back(maker ? maker(network_, unit) : std::make_unique<SwitchUnit>(network_, unit));
    network_.attach(unit, *switches_.back());
  }
}

const Aggregation::Answer& Aggregation::join(std::uint32_t node, const Question& question) {
  for (const auto& one : made_) {
    if (one->question != question) continue;
    one->joined.insert(node);
    return one->answer;
  }
  auto made = std::make_unique<Made>();
  made->question = question;
  made->joined.insert(node);
  decide(*made);
  made_.push_back(std::move(made));
  return made_.back()->answer;
}

void Aggregation::decide(Made& made) {
  const Question& question = made.question;
  const auto refuse = [&](std::string reason) { made.answer = {std::move(reason), {}}; };
  const UnitTree laid = lay_tree(network_.topology(), question.nodes);
  if (!laid.reason.empty()) return refuse(laid.reason);
  const CallTree* const tree = parse_tree(laid.text, false);
  if (std::string reason = why_not_by_engines(network_.topology(), laid, *tree); !reason.empty()) {
    return refuse(std::move(reason));
  }
  for (const std::uint32_t unit : laid.units) {
    const UnitPlace& place = network_.unit(unit);
    if (switches_[unit]->is_full()) {
      return refuse(formatted("{} has {} communicators, which is all it has room for; free one first", place.name,
                              switches_[unit]->capacity()));
    }
    if (switches_[unit]->has(question.communicator, question.epoch)) {
      return refuse(formatted("{} serves another communicator of the number {}", place.name, question.communicator));
    }
  }
  SwitchEntry entry;
  entry.communicator = question.communicator;
  entry.epoch = question.epoch;
  entry.tree = tree;
  entry.addresses = question.nodes;
  for (const std::uint32_t unit : laid.units) entry.addresses.push_back(network_.unit(unit).address);
  entry.eager_limit = question.eager_limit;
  entry.segment_bytes = question.segment_bytes;
  entry.rx_buffers = question.rx_buffers;
  made.units = laid.units;
  try {
    for (entry.number = 0; entry.number < laid.units.size(); ++entry.number) {
      switches_[laid.units[entry.number]]->make(entry);
    }
  } catch (const Error& error) {
    const std::string name = network_.unit(laid.units[entry.number]).name;
    for (const std::uint32_t unit : laid.units) switches_[unit]->free(question.communicator, question.epoch);
    made.units.clear();
    return refuse(formatted("{}: {}", name, error.what()));
  }
  made.answer = {laid.text, {entry.addresses.begin() + tree->members, entry.addresses.end()}};
}

void Aggregation::end(std::size_t position) {
  const Made& made = *made_[position];
  for (const std::uint32_t unit : made.units) switches_[unit]->free(made.question.communicator, made.question.epoch);
  made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(position));
}

void Aggregation::leave(std::uint32_t node, std::uint32_t communicator, std::uint16_t epoch) {
  for (std::size_t i = 0; i < made_.size(); ++i) {
    Made& one = *made_[i];
    if (one.question.communicator != communicator || one.question.epoch != epoch || one.joined.erase(node) == 0) {
      continue;
    }
    if (one.joined.empty()) end(i);
    return;
  }
}

void Aggregation::leave_all(std::uint32_t node) {
  for (std::size_t i = made_.size(); i-- > 0;) {
    if (made_[i]->joined.erase(node) != 0 && made_[i]->joined.empty()) end(i);
  }
}

std::string Aggregation::waiting(std::uint32_t node, std::uint32_t communicator, std::uint16_t epoch) const {
  std::string text;
  for (const auto& one : made_) {
    if (one->question.communicator != communicator || one->question.epoch != epoch || one->joined.count(node) == 0) {
      continue;
    }
    for (std::size_t i = 0; i < one->units.size(); ++i) {
      const std::string lines = switches_[one->units[i]]->waiting(communicator, epoch);
      for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = lines.find('\n', at);
        text += formatted("switch {} ({}): {}\n", i, network_.unit(one->units[i]).name, lines.substr(at, end - at));
        at = end + 1;
      }
    }
  }
  return text;
}

}  // namespace unisono::sim
