#include "sim/model/model.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/model/endpoint.hpp"
#include "sim/model/peers.hpp"
#include "sim/network/network.hpp"

namespace unisono::sim {
namespace {

std::uint32_t frame_bytes(const ModelHeader& header) { return kWordBytes + header.bytes; }
std::uint16_t port_of(const ModelHeader& header) {
  return header.kind == ModelHeader::Kind::kData ? kModelDataPort : kModelControlPort;
}

/// The transport of an engine: whole frames wait, control before data, and leave word by word.
class NodeOutlet final : public Outlet {
 public:
  NodeOutlet(Network& network, std::uint32_t node, std::uint32_t rank, const std::vector<std::uint32_t>& addresses)
      : network_(network), node_(node), rank_(rank), addresses_(addresses) {}

  void send(std::uint32_t rank, const ModelHeader& header) override {
    // What goes to the rank itself does not leave the engine.
    constexpr std::uint64_t kLoopback = 4;
    const std::uint64_t words = (frame_bytes(header) + kWordBytes - 1) / kWordBytes;
    if (rank == rank_)
      own_.push_back({network_.cycle() + kLoopback + words, header});
    else
      (header.kind == ModelHeader::Kind::kData ? data_ : control_).push_back({rank, header});
    if (header.kind == ModelHeader::Kind::kData && rank != rank_) waiting_ += static_cast<std::uint32_t>(words);
  }
  std::uint32_t waiting_words() const override { return waiting_; }

  /// True: there is room again.
  bool step(Endpoint& endpoint) {
    while (!own_.empty() && own_.front().cycle <= network_.cycle()) {
      endpoint.receive(own_.front().header, network_.cycle());
      own_.pop_front();
    }
    if (const ReceivedWord* word = network_.front(node_); word != nullptr) {
      if (word->first) std::memcpy(&coming_, word->data, sizeof coming_);
      const bool last = word->last;
      network_.pop(node_);
      if (last) endpoint.receive(coming_, network_.cycle());
    }
    if (!network_.can_push(node_)) return false;
    if (place_ == 0) {
      if (control_.empty() && data_.empty()) return false;
      std::deque<Waiting>& from = control_.empty() ? data_ : control_;
      going_ = from.front();
      from.pop_front();
    }
    std::array<std::byte, kWordBytes> bytes{};
    if (place_ == 0) std::memcpy(bytes.data(), &going_.header, sizeof going_.header);
    SentWord word;
    word.data = bytes.data();
    word.frame_bytes = frame_bytes(going_.header);
    word.bytes = std::min(kWordBytes, word.frame_bytes - place_);
    word.last = place_ + kWordBytes >= word.frame_bytes;
    word.destination = addresses_[going_.rank];
    word.port = port_of(going_.header);
    network_.push(node_, word);
    place_ = word.last ? 0 : place_ + kWordBytes;
    if (going_.header.kind == ModelHeader::Kind::kData) --waiting_;
    return word.last;
  }
  bool idle() const { return place_ == 0 && data_.empty() && control_.empty(); }
  std::uint64_t due() const { return own_.empty() ? Endpoint::kNever : own_.front().cycle; }

 private:
  struct Waiting {
    std::uint32_t rank = 0;
    ModelHeader header;
  };
  struct Own {
    std::uint64_t cycle = 0;
    ModelHeader header;
  };
  Network& network_;
  std::uint32_t node_, rank_;
  const std::vector<std::uint32_t>& addresses_;
  std::deque<Waiting> data_, control_;
  std::deque<Own> own_;
  Waiting going_;
  ModelHeader coming_;
  std::uint32_t place_ = 0, waiting_ = 0;
};

/// A switch: frames are there, and leave, whole.
class UnitOutlet final : public Outlet, public Unit {
 public:
  UnitOutlet(Network& network, std::uint32_t unit, const std::vector<std::uint32_t>& addresses)
      : network_(network), unit_(unit), addresses_(addresses) {
    network.attach(unit, *this);
  }
  void send(std::uint32_t rank, const ModelHeader& header) override {
    frame_.assign(frame_bytes(header), std::byte{0});
    std::memcpy(frame_.data(), &header, sizeof header);
    network_.send_from(unit_, addresses_[rank], port_of(header), frame_);
  }
  std::uint32_t waiting_words() const override { return 0; }
  void take(const UnitFrame& frame) override {
    ModelHeader header;
    std::memcpy(&header, frame.data.data(), sizeof header);
    endpoint->receive(header, network_.cycle());
    if (endpoint->due() <= network_.cycle()) endpoint->run(network_.cycle());
  }
  Endpoint* endpoint = nullptr;

 private:
  Network& network_;
  std::uint32_t unit_;
  const std::vector<std::uint32_t>& addresses_;
  std::vector<std::byte> frame_;
};

class Run {
 public:
  Run(const NetworkConfig& network, const ModelledCall& call, const EndpointCosts& engine,
      const EndpointCosts& switches)
      : network_(network), call_(call) {
    if (call.programs.size() != call.addresses.size()) refuse("each rank has a program and an address");
    for (std::uint32_t rank = 0; rank < call.programs.size(); ++rank) {
      const std::uint32_t address = call.addresses[rank];
      if (address >= network_.topology().addresses())
        refuse(formatted("rank {}: there is no address {}", rank, address));
      const std::vector<UnitPlace>& places = network_.topology().units;
      const auto place =
          std::find_if(places.begin(), places.end(), [&](const UnitPlace& one) { return one.address == address; });
      const bool member = rank < call.members;
      if (member != (place == places.end()))
        refuse(formatted("rank {} is {}, and address {} is {}", rank, member ? "an engine" : "a switch", address,
                         member ? "a unit" : "no unit"));
      if (member) {
        nodes_.push_back(std::make_unique<NodeOutlet>(network_, address, rank, call.addresses));
        endpoints_.push_back(
            std::make_unique<Endpoint>(rank, call.programs[rank], engine, *nodes_.back(), call.members));
        at_node_.push_back(endpoints_.back().get());
        ++engines_;
      } else {
        const auto unit = static_cast<std::uint32_t>(place - places.begin());
        units_.push_back(std::make_unique<UnitOutlet>(network_, unit, call.addresses));
        endpoints_.push_back(
            std::make_unique<Endpoint>(rank, call.programs[rank], switches, *units_.back(), call.members));
        units_.back()->endpoint = endpoints_.back().get();
      }
    }
    if (engines_ > kMostModelled) refuse(formatted("{} engines; {} are the most", engines_, kMostModelled));
  }

  ModelledTime run(const ModelLimits& limits) {
    constexpr std::uint32_t kLookAtClock = 1024;  // steps; each takes a microsecond or so
    for (const auto& endpoint : endpoints_) endpoint->start(0);
    for (std::uint32_t steps = 1; !finished(); ++steps) {
      if (network_.cycle() > limits.cycles) refuse_time("has not ended");
      if (steps % kLookAtClock == 0 && std::chrono::steady_clock::now() > limits.until) {
        throw Error(ErrorCode::kTimeout, formatted("model: the time was up after {} cycles", network_.cycle()));
      }
      step();
      skip();
    }
    ModelledTime time;
    for (std::uint32_t rank = 0; rank < endpoints_.size(); ++rank) {
      time.answered.push_back(endpoints_[rank]->answered());
      if (rank < call_.members) time.cycles = std::max(time.cycles, endpoints_[rank]->answered());
    }
    for (std::uint32_t link = 0; link < network_.links(); ++link) {
      const std::uint64_t busy = network_.counters(link).busy_cycles;
      if (busy <= time.busy_cycles) continue;
      time.busy_cycles = busy;
      time.busiest = network_.link_name(link);
    }
    return time;
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, "model: " + what);
  }
  [[noreturn]] void refuse_time(const char* what) const {
    throw Error(ErrorCode::kTimeout,
                formatted("model: the call {} in {} cycles; are the programs of one call, and does "
                          "the network lose frames?",
                          what, network_.cycle()));
  }
  bool finished() const {
    return std::all_of(endpoints_.begin(), endpoints_.end(), [](const auto& one) { return one->finished(); });
  }
  void step() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (at_node_[i]->due() <= network_.cycle()) at_node_[i]->run(network_.cycle());
      if (nodes_[i]->step(*at_node_[i])) at_node_[i]->room(network_.cycle());
    }
    for (const auto& unit : units_) {
      if (unit->endpoint->due() <= network_.cycle()) unit->endpoint->run(network_.cycle());
    }
    network_.tick();
  }
  void skip() {
    std::uint64_t next = network_.next_event();
    next = next == Network::kNever ? next : network_.cycle() + next;
    for (const auto& endpoint : endpoints_) next = std::min(next, endpoint->due());
    for (const auto& node : nodes_) {
      next = std::min(next, node->due());
      if (!node->idle()) return;
    }
    if (next == Network::kNever) {
      if (!finished()) refuse_time("stands still");
      return;
    }
    if (next > network_.cycle()) network_.skip(next - network_.cycle());
  }

  Network network_;
  const ModelledCall& call_;
  std::vector<std::unique_ptr<NodeOutlet>> nodes_;
  std::vector<Endpoint*> at_node_;  ///< of each of them
  std::vector<std::unique_ptr<UnitOutlet>> units_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  ///< by rank
  std::uint32_t engines_ = 0;
};

}  // namespace

ModelledTime run_model(const NetworkConfig& network, const ModelledCall& call, const EndpointCosts& engine,
                       const EndpointCosts& switches, const ModelLimits& limits) {
  return Run(network, call, engine, switches).run(limits);
}

EndpointCosts costs_of_switch() {
  EndpointCosts costs;
  costs.first_move = costs.next_move = costs.issue = costs.job = costs.take_move = costs.take_arrival = 0;
  costs.known_moves = ~0U;
  costs.dispatch = costs.granted = costs.follow = costs.read = costs.pass = costs.fold = costs.leave = 0;
  costs.write = costs.further_burst = costs.arrive = costs.onward = costs.behind = 0;
  costs.buffered = costs.buffered_word = costs.grant_out = costs.grant_in = costs.retire = costs.answer = 0;
  costs.grants_when_asked = costs.instant = costs.parallel_ports = true;
  costs.lists_ascend = false;
  costs.transport_words = ~0U;
  return costs;
}

EndpointCosts costs_of_rtl_switch() {
  EndpointCosts costs = costs_of_switch();
  costs.arrive = 7;              // to the event of a message of one word, from that word
  costs.dispatch = 12;           // the control decides one thing at a time,
  costs.read = costs.pass = 12;  // and takes so long from an event to the start of a fold
  costs.child = 4;
  costs.child_sum = 9;
  costs.child_product = 12;
  costs.leave = 13;              // from there to the frame: the chain's registers, narrowing, egress
  costs.grant_in = 7 + 12 + 12;  // a request is heard, decided on, and the grant begun
  costs.grant_out = 12;
  return costs;
}

}  // namespace unisono::sim
