// A switch that aggregates, as a process of Linux: it makes pools for those who know its secret, and takes and sends
// the datagrams of their members (docs/switch-protocol.md).
//
// One thread serves the control connections, one the connection to the switch above, one runs handlers, and each of
// `threads` workers has a UDP socket and a share of the pools. It needs no privilege. Memory is bounded by `slots`:
// none grows with messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "network/udp/impairment.hpp"
#include "switch/service/handlers.hpp"

namespace unisono::slots {

struct ServiceSettings {
  std::string listen{};         ///< HOST:PORT, of TCP and UDP; port 0: any that both have free
  std::string secret{};         ///< 16 to join::kMaxSecret characters
  std::string name{};           ///< up to kMostSwitchName printable characters without blanks; empty: HOST:PORT
  std::uint32_t slots = 65536;  ///< places for a payload of 1344 bytes, in all
  std::uint32_t threads = 1;    ///< workers, 1 to 256
  std::string uplink{};         ///< HOST:PORT of the switch above; empty: none
  /// ADDRESS:PORT of a group of IPv4 for results; "off": each member gets its own; empty: off, but for a switch at an
  /// address of the loopback, whose members are all on its host: the first communicator of each job has a group there,
  /// if it has fewer members than this process has cores.
  std::string multicast{};
  std::uint64_t up_to_bytes = 0;                  ///< it advises callers to aggregate calls up to this size; 0: any
  HandlerLimits handlers{};                       ///< of what users load
  udp::ImpairmentSettings impairment{};           ///< of what it sends, for tests
  std::function<void(const std::string&)> say{};  ///< is told, in a sentence, what people should know; any thread
};

class Service {
 public:
  /// Takes the ports, and tries for at most five seconds to reach the switch above; without it the service works all
  /// the same, and goes on trying. Throws Error(kBootstrap) if a port is taken, or names of switches are not different
  /// ones, and Error(kInvalidArgument) for settings that cannot be.
  explicit Service(ServiceSettings settings);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// HOST:PORT, as people give it to their jobs.
  const std::string& address() const;
  const std::string& name() const;
  std::uint16_t port() const;

  /// Serves until `stop`, or somebody who knows the secret says so. Once. Throws Error(kBootstrap) if the system
  /// refuses what it needs.
  void run();
  /// From any thread, or a handler of signals.
  void stop() noexcept;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace unisono::slots
