// What the hosts of a job tell each other beside their devices, over the network that they joined by.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "network/poe.hpp"

namespace unisono {

/// Control messages between hosts. Not thread-safe.
class Hosts {
 public:
  /// `network` must outlive this, and nobody else may use it.
  explicit Hosts(Poe& network) : network_(network) {}

  /// Every endpoint gives some bytes, and gets those of all, by endpoint. Collective over the job. `meanwhile` is
  /// called while others are awaited. Throws Error(kBootstrap) naming who has not come, or has gone.
  std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> own, std::chrono::milliseconds patience,
                                               const std::function<void()>& meanwhile);

  /// A communicator that another host has given up.
  struct Revocation {
    std::uint32_t endpoint = 0;
    std::uint32_t communicator = 0;
    std::uint16_t epoch = 0;
    ErrorCode code = ErrorCode::kRevoked;
    std::string reason;
  };
  /// Tells an endpoint. What finds no room is dropped: its calls then end by their deadlines.
  void tell(std::uint32_t endpoint, const Revocation& revocation);
  /// What has come since the last call.
  std::vector<Revocation> heard();

  Poe::Liveness liveness(std::uint32_t endpoint) { return network_.liveness(endpoint); }
  std::string describe(std::uint32_t endpoint) const { return network_.describe(endpoint); }

 private:
  bool send(std::uint32_t endpoint, const Header& header, std::span<const std::byte> payload);
  void listen();

  Poe& network_;
  std::uint32_t round_ = 0;
  std::vector<Revocation> revocations_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> given_;  ///< by round and endpoint
};

}  // namespace unisono
