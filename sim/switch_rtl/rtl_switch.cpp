#include "sim/switch_rtl/rtl_switch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/switch_rtl/switch_model.hpp"
#include "sim/switch_rtl/unit_terms.hpp"

namespace unisono::sim {

namespace {

class RtlSwitch final : public AggregationUnit {
 public:
  RtlSwitch(Network& network, std::uint32_t unit) : network_(network), unit_(unit) {
    const UnitPlace& place = network_.unit(unit_);
    if (place.at.is_node) {
      throw Error(
          ErrorCode::kUnsupported,
          formatted("--switch rtl: {} is a node, behind whose one port are all ranks; a switch in hardware has a "
                    "port for each",
                    place.name));
    }
    const Topology& topology = network_.topology();
    for (std::uint32_t link = 0; link < topology.links.size(); ++link) {
      const LinkPlan& plan = topology.links[link];
      if (!plan.from.is_node && plan.from.index == place.at.index) links_.push_back(link);
    }
    if (links_.size() > SwitchModel::kPorts) {
      throw Error(ErrorCode::kUnsupported,
                  formatted("--switch rtl: {} has {} links; a switch in hardware is built with {} ports", place.name,
                            links_.size(), SwitchModel::kPorts));
    }
  }

  std::size_t capacity() const override { return SwitchModel::kEntries; }
  bool is_full() const override {
    return std::all_of(entries_.begin(), entries_.end(), [](const auto& one) { return one.has_value(); });
  }
  bool has(std::uint32_t communicator, std::uint16_t epoch) const override {
    return find(communicator, epoch) != entries_.size();
  }
  void make(SwitchEntry entry) override {
    const UnitTerms terms = unit_terms(entry, [this](std::uint32_t address) { return port_of(address); });
    const auto place = static_cast<std::size_t>(
        std::find_if(entries_.begin(), entries_.end(), [](const auto& one) { return !one.has_value(); }) -
        entries_.begin());
    model_.open(static_cast<std::uint32_t>(place), terms);
    entries_[place] = Key{entry.communicator, entry.epoch};
  }
  void free(std::uint32_t communicator, std::uint16_t epoch) override {
    const std::size_t place = find(communicator, epoch);
    if (place == entries_.size()) return;
    model_.close(static_cast<std::uint32_t>(place));
    entries_[place].reset();
  }

  SwitchCounters counters() const override {
    const SwitchModel::Counters counters = model_.counters();
    return {0, counters.arrived, bytes_, counters.mismatches, counters.faults};
  }
  std::uint64_t dropped() const override { return model_.counters().bad_frames; }
  std::string waiting(std::uint32_t /*communicator*/, std::uint16_t /*epoch*/) const override { return {}; }

  void take(const UnitFrame& frame) override {
    constexpr std::size_t kHeader = 64;
    bytes_ += frame.data.size() - std::min(frame.data.size(), kHeader);
    model_.push(port_of(frame.source), frame.data);
  }
  bool is_busy() const override { return !model_.is_quiet(); }
  void tick() override {
    model_.tick();
    while (const auto frame = model_.pop()) {
      network_.send_from(unit_, frame->address, frame->control ? 1 : 0, frame->data);
    }
  }

 private:
  using Key = std::pair<std::uint32_t, std::uint16_t>;

  std::size_t find(std::uint32_t communicator, std::uint16_t epoch) const {
    const auto found = std::find(entries_.begin(), entries_.end(), std::optional(Key{communicator, epoch}));
    return static_cast<std::size_t>(found - entries_.begin());
  }
  /// The link to it, in the order of the switch's links.
  std::uint32_t port_of(std::uint32_t address) const {
    const UnitPlace& place = network_.unit(unit_);
    const std::uint32_t link = network_.topology().way(place.at.index, place.address, address, 0);
    return static_cast<std::uint32_t>(std::find(links_.begin(), links_.end(), link) - links_.begin());
  }

  Network& network_;
  const std::uint32_t unit_;
  std::vector<std::uint32_t> links_;  ///< out of the switch
  SwitchModel model_;
  std::array<std::optional<Key>, SwitchModel::kEntries> entries_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<AggregationUnit> make_rtl_switch(Network& network, std::uint32_t unit) {
  return std::make_unique<RtlSwitch>(network, unit);
}

}  // namespace unisono::sim
