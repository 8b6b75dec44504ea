// Datagrams that prove nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "network/refusal_count.hpp"
#include "network/tcp/address.hpp"

namespace unisono::udp {

/// Counts them, and logs one a second.
class Refusals {
 public:
  /// Of whom, and where it is.
  void belong_to(std::uint32_t self, std::uint16_t port) {
    self_ = self;
    port_ = port;
  }
  /// `fault` in words that follow "a datagram from" and its address.
  void add(const tcp::SystemAddress& from, const std::string& fault);
  std::uint64_t count() const { return count_.count(); }
  void show(std::atomic<std::uint64_t>& word) { count_.show(word); }

 private:
  std::uint32_t self_ = 0;
  std::uint16_t port_ = 0;
  RefusalCount count_;
};

}  // namespace unisono::udp
