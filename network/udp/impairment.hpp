// What a bad network does to datagrams, for tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "network/tcp/address.hpp"

namespace unisono::udp {

/// Chances are of 0 to 1, each for each datagram that is sent.
struct ImpairmentSettings {
  double loss = 0;
  double reorder = 0;  ///< held back until a few others have gone, or 2 ms have passed
  double duplicate = 0;
  double corrupt = 0;       ///< one bit turned
  std::size_t largest = 0;  ///< of a datagram that is not lost in silence; 0: any
  std::uint64_t seed = 1;
  bool any() const { return loss > 0 || reorder > 0 || duplicate > 0 || corrupt > 0 || largest > 0; }
};

/// "loss=0.01,reorder=0.1,duplicate=0.01,corrupt=0.001,largest=1400,seed=7", any of them; empty: none. Throws
/// Error(kBootstrap) for another text.
ImpairmentSettings impairment_of(std::string_view text);

/// Stands between a network and its socket. The same seed makes the same choices.
class Impairment {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Send = std::function<void(const tcp::SystemAddress& to, std::span<const std::byte> datagram)>;

  explicit Impairment(const ImpairmentSettings& settings);
  bool active() const { return settings_.any(); }
  /// Calls `send` for what goes on now, of this datagram and of those held back.
  void pass(const tcp::SystemAddress& to, std::span<const std::byte> datagram, Time now, const Send& send);
  /// Lets go what was held back long enough.
  void release(Time now, const Send& send);
  Time deadline() const;

 private:
  struct Held {
    tcp::SystemAddress to;
    std::vector<std::byte> datagram;
    unsigned others = 0;  ///< that must go before
    Time until;
  };
  bool happens(double chance);

  ImpairmentSettings settings_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
};

}  // namespace unisono::udp
