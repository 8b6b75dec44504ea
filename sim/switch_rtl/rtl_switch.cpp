#include "sim/switch_rtl/rtl_switch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
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
    entries_[place] = Served{entry.communicator, entry.epoch, entry.tree->members, terms.neighbours};
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
  std::string waiting(std::uint32_t communicator, std::uint16_t epoch) const override {
    const std::size_t place = find(communicator, epoch);
    if (place == entries_.size()) return {};
    std::string text;
    for (const SwitchModel::Wait& wait : model_.waits(static_cast<std::uint32_t>(place))) {
      text += formatted("call {} {}: waits for ", wait.sequence, name_of(wait.opcode));
      bool first = true;
      for (std::uint32_t port = 0; port < SwitchModel::kPorts; ++port) {
        if ((wait.ports >> port & 1U) == 0) continue;
        const UnitTerms::Neighbour& one = entries_[place]->neighbours[port];
        text += first ? "" : ", ";
        text += one.is_switch ? formatted("switch {}", one.rank - entries_[place]->members)
                              : formatted("rank {}", one.rank);
        first = false;
      }
      text += wait.takes ? " to take its result\n" : "\n";
    }
    return text;
  }

  void take(const UnitFrame& frame) override {
    const std::uint32_t port = port_of(frame.source);
    if (coming_[port]) {
      later_[port].emplace_back(frame.data.begin(), frame.data.end());
    } else {
      push(port, frame.data);
    }
  }
  bool takes_words() const override { return true; }
  void take_word(const ReceivedWord& word) override {
    const std::uint32_t port = port_of(word.source);
    SwitchModel::InWord in;
    std::memcpy(in.data.data(), word.data, word.bytes);
    in.bytes = word.bytes;
    in.last = word.last;
    if (word.damaged) {
      // A frame that is longer than its header says is dropped in the hardware.
      in.bytes = SwitchModel::kWordBytes;
      in.last = false;
      model_.push(port, in);
      in.last = true;
    } else if (word.last) {
      count(word.frame_bytes);
    }
    model_.push(port, in);
    coming_[port] = !word.last;
    for (; word.last && !later_[port].empty(); later_[port].pop_front()) push(port, later_[port].front());
  }
  bool is_busy() const override { return !model_.is_quiet(); }
  void tick() override {
    model_.tick();
    while (const auto word = model_.pop()) {
      network_.push_from(unit_, {word->data.data(), word->bytes, word->last, word->address, word->frame_bytes,
                                 static_cast<std::uint16_t>(word->control ? 1 : 0)});
    }
  }

 private:
  /// A communicator.
  struct Served {
    std::uint32_t number = 0;
    std::uint16_t epoch = 0;
    std::uint32_t members = 0;
    std::vector<UnitTerms::Neighbour> neighbours;  ///< by port
  };

  void count(std::size_t bytes) { bytes_ += bytes - std::min(bytes, SwitchModel::kWordBytes); }
  void push(std::uint32_t port, std::span<const std::byte> frame) {
    count(frame.size());
    model_.push(port, frame);
  }

  std::size_t find(std::uint32_t communicator, std::uint16_t epoch) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const std::optional<Served>& one) {
      return one && one->number == communicator && one->epoch == epoch;
    });
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
  std::array<bool, SwitchModel::kPorts> coming_{};  ///< a frame is, of which the rest follows
  std::array<std::deque<std::vector<std::byte>>, SwitchModel::kPorts> later_;  ///< whole frames behind it
  std::array<std::optional<Served>, SwitchModel::kEntries> entries_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<AggregationUnit> make_rtl_switch(Network& network, std::uint32_t unit) {
  return std::make_unique<RtlSwitch>(network, unit);
}

}  // namespace unisono::sim
