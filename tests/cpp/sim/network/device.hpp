// A unit that notes what it takes, and answers as it is told to.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cpp/sim/network/cluster.hpp"

namespace unisono::sim {

/// A frame that a unit has taken.
struct Taken {
  std::uint64_t cycle = 0;
  std::uint32_t source = 0;
  std::uint16_t port = 0;
  std::uint32_t bytes = 0;
  std::uint32_t wrong_bits = 0;
  friend bool operator==(const Taken&, const Taken&) = default;
};

class Device final : public Unit {
 public:
  Device(Network& network, std::uint32_t unit) : network_(network), unit_(unit) { network.attach(unit, *this); }

  void take(const UnitFrame& frame) override {
    Taken one{network_.cycle(), frame.source, frame.port, static_cast<std::uint32_t>(frame.data.size()), 0};
    for (std::uint32_t i = 0; i < frame.data.size(); ++i) {
      const auto difference = static_cast<unsigned>(frame.data[i] ^ byte_of(frame.source, frame.port, i));
      one.wrong_bits += static_cast<std::uint32_t>(std::popcount(difference));
    }
    taken.push_back(one);
    if (answer) answer(*this, one);
  }
  void send(std::uint32_t destination, std::uint32_t bytes, std::uint16_t port = 0) {
    std::vector<std::byte> data(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) data[i] = byte_of(address(), port, i);
    network_.send_from(unit_, destination, port, data);
  }
  std::uint32_t address() const { return network_.unit(unit_).address; }

  std::vector<Taken> taken;
  std::function<void(Device&, const Taken&)> answer;

 private:
  Network& network_;
  std::uint32_t unit_;
};

/// A cluster with a device at each of its units.
struct Equipped {
  explicit Equipped(const std::string& text) : Equipped(parse_network(text)) {}
  explicit Equipped(const NetworkConfig& config) : cluster(config) {
    for (std::uint32_t u = 0; u < cluster.network.units(); ++u) {
      devices.push_back(std::make_unique<Device>(cluster.network, u));
    }
  }
  /// Nodes that are engines.
  std::uint32_t engines() const {
    std::uint32_t count = cluster.network.nodes();
    for (std::uint32_t u = 0; u < cluster.network.units(); ++u) count -= cluster.network.unit(u).at.is_node ? 1 : 0;
    return count;
  }
  Cluster cluster;
  std::vector<std::unique_ptr<Device>> devices;
};

}  // namespace unisono::sim
