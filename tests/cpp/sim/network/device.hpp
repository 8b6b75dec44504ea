// A unit that notes what it takes, and answers as it is told to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  bool takes_words() const override { return by_words; }
  void take_word(const ReceivedWord& word) override {
    std::vector<std::byte>& frame = coming_[word.source];
    if (word.first != frame.empty() || (word.damaged && !word.last)) ++broken_words;
    frame.insert(frame.end(), word.data, word.data + word.bytes);
    if (pass_to) {
      network_.push_from(unit_, {word.data, word.bytes, word.last, *pass_to, word.frame_bytes, word.port});
    }
    if (!word.last) return;
    if (!word.damaged && frame.size() == word.frame_bytes) {
      take({word.source, word.port, frame});
    } else if (!word.damaged) {
      ++broken_words;
    }
    frame.clear();
  }
  void send(std::uint32_t destination, std::uint32_t bytes, std::uint16_t port = 0) {
    std::vector<std::byte> data(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) data[i] = byte_of(address(), port, i);
    network_.send_from(unit_, destination, port, data);
  }
  std::uint32_t address() const { return network_.unit(unit_).address; }

  std::vector<Taken> taken;
  std::function<void(Device&, const Taken&)> answer;
  bool by_words = false;                 ///< before anything comes
  std::optional<std::uint32_t> pass_to;  ///< where words go on to as they come
  std::uint32_t broken_words = 0;        ///< that do not make up a frame

 private:
  std::map<std::uint32_t, std::vector<std::byte>> coming_;  ///< by source, of which one is behind each link
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
