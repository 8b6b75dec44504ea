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
#include "sim/switch_rtl/neighbour_ports.hpp"
#include "sim/switch_rtl/switch_model.hpp"
#include "sim/switch_rtl/unit_terms.hpp"

namespace unisono::sim {

namespace {

class RtlSwitch final : public AggregationUnit {
 public:
  RtlSwitch(Network& network, std::uint32_t unit) : network_(network), unit_(unit) {
    holder_.assign(network_.topology().links.size(), kNobody);
  }

  std::size_t capacity() const override { return SwitchModel::kEntries; }
  bool is_full() const override {
    return std::all_of(entries_.begin(), entries_.end(), [](const auto& one) { return one.has_value(); });
  }
  bool has(std::uint32_t communicator, std::uint16_t epoch) const override {
    return find(communicator, epoch) != entries_.size();
  }
  void make(SwitchEntry entry) override {
    // Ports of those that are served stay theirs, and so do those at which something is coming, or waits to leave.
    std::uint32_t taken = 0, next = 0;
    for (std::uint32_t port = 0; port < SwitchModel::kPorts; ++port) {
      if (coming_[port] || !later_[port].empty() || !leaving_[port].empty() || serves(port)) taken |= 1U << port;
    }
    const UnitTerms terms = unit_terms(entry, [&](std::uint32_t address) {
      const std::uint32_t port = ports_.give(address, next, taken).value_or(SwitchModel::kPorts);
      if (port < SwitchModel::kPorts) taken |= 1U << port;
      next = port + 1;
      return port;
    });
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
  std::uint64_t dropped() const override { return model_.counters().bad_frames + strangers_; }
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
    const auto port = ports_.find(frame.source);
    if (!port) {
      ++strangers_;
    } else if (coming_[*port]) {
      later_[*port].emplace_back(frame.data.begin(), frame.data.end());
    } else {
      push(*port, frame.data);
    }
  }
  bool takes_words() const override { return true; }
  void take_word(const ReceivedWord& word) override {
    const auto found = ports_.find(word.source);
    if (!found || (!word.first && !coming_[*found])) {
      strangers_ += word.first ? 1 : 0;
      return;
    }
    const std::uint32_t port = *found;
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
  bool is_busy() const override {
    return !model_.is_quiet() ||
           std::any_of(leaving_.begin(), leaving_.end(), [](const auto& words) { return !words.empty(); });
  }
  void tick() override {
    model_.tick();
    while (const auto word = model_.pop()) leaving_[word->port].push_back(*word);
    // Those whose frames are under way go on; then others get the links that these leave.
    first_ = (first_ + 1) % SwitchModel::kPorts;
    for (const bool begins : {false, true}) {
      for (std::uint32_t i = 0; i < SwitchModel::kPorts; ++i) send(begins ? (first_ + i) % SwitchModel::kPorts : i);
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
  bool serves(std::uint32_t port) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const std::optional<Served>& one) {
      return one && std::any_of(one->neighbours.begin(), one->neighbours.end(),
                                [&](const auto& each) { return each.address == ports_.owner(port); });
    });
  }
  /// What has come out at a port goes onto the link, one frame after the other; a node's frames are whole.
  void send(std::uint32_t port) {
    const UnitPlace& place = network_.unit(unit_);
    for (std::deque<SwitchModel::OutWord>& words = leaving_[port]; !words.empty(); words.pop_front()) {
      const SwitchModel::OutWord& word = words.front();
      const auto kind = static_cast<std::uint16_t>(word.control ? 1 : 0);
      if (place.at.is_node) {
        std::vector<std::byte>& frame = whole_[port];
        frame.insert(frame.end(), word.data.begin(), word.data.begin() + word.bytes);
        if (!word.last) continue;
        network_.send_from(unit_, word.address, kind, frame);
        frame.clear();
        continue;
      }
      std::uint32_t& holder = holder_[network_.topology().way(place.at.index, place.address, word.address, kind)];
      if (holder != kNobody && holder != port) return;
      holder = word.last ? kNobody : port;
      network_.push_from(unit_, {word.data.data(), word.bytes, word.last, word.address, word.frame_bytes, kind});
    }
  }

  static constexpr std::uint32_t kNobody = ~0U;

  Network& network_;
  const std::uint32_t unit_;
  NeighbourPorts<SwitchModel::kPorts> ports_;
  std::vector<std::uint32_t> holder_;  ///< of each link: the port of whose frame it has a part
  std::uint32_t first_ = 0;            ///< port that may begin first
  std::array<std::deque<SwitchModel::OutWord>, SwitchModel::kPorts> leaving_;
  std::array<std::vector<std::byte>, SwitchModel::kPorts> whole_;  ///< a node's frame, as far as it has come out
  SwitchModel model_;
  std::array<bool, SwitchModel::kPorts> coming_{};  ///< a frame is, of which the rest follows
  std::array<std::deque<std::vector<std::byte>>, SwitchModel::kPorts> later_;  ///< whole frames behind it
  std::array<std::optional<Served>, SwitchModel::kEntries> entries_;
  std::uint64_t bytes_ = 0, strangers_ = 0;
};

}  // namespace

std::unique_ptr<AggregationUnit> make_rtl_switch(Network& network, std::uint32_t unit) {
  return std::make_unique<RtlSwitch>(network, unit);
}

}  // namespace unisono::sim
