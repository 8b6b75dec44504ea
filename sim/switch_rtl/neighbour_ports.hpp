// Which port of a switch's unit each neighbour has. A neighbour has a port of its own, by whatever link it is reached.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace unisono::sim {

template <std::uint32_t kPorts>
class NeighbourPorts {
 public:
  /// The neighbour's, if it has one.
  std::optional<std::uint32_t> find(std::uint32_t address) const {
    for (std::uint32_t port = 0; port < kPorts; ++port) {
      if (owner_[port] == address) return port;
    }
    return std::nullopt;
  }
  /// The neighbour at a port.
  std::optional<std::uint32_t> owner(std::uint32_t port) const { return owner_[port]; }

  /// The neighbour's port; if it has none, the first from `least` on that is not `taken`, a bit for each, which loses
  /// its neighbour. None if all are.
  std::optional<std::uint32_t> give(std::uint32_t address, std::uint32_t least, std::uint32_t taken) {
    if (const auto known = find(address)) return known;
    for (std::uint32_t i = 0; i < kPorts; ++i) {
      const std::uint32_t port = (least + i) % kPorts;
      if ((taken >> port & 1U) != 0) continue;
      owner_[port] = address;
      return port;
    }
    return std::nullopt;
  }

 private:
  std::array<std::optional<std::uint32_t>, kPorts> owner_{};
};

}  // namespace unisono::sim
