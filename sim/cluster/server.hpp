// Lets hosts attach to the nodes of a cluster; see platform/device/protocol.hpp.
//
// Time stands still while any attached host is not waiting for a reply. Copies into and out of device memory are done
// at once; a platform model may charge time for them, which passes before the reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "platform/device/protocol.hpp"
#include "sim/cluster/cluster.hpp"

namespace unisono::sim {

/// What stands between a host and its node, and what that costs.
struct PlatformModel {
  std::uint64_t invocation_ns = 0;  ///< before an access to a register that gives a call (doorbell)
  std::uint64_t copy_ns = 0;        ///< of each copy between host and device memory
  std::uint64_t copy_mbps = 0;      ///< rate of copies in Mbit/s; 0: they take no time beyond that
};

class Server {
 public:
  /// Serves host i, at the other end of `sockets[i]`, from node i; negative: no host. The sockets are closed by the
  /// server.
  Server(Cluster& cluster, const PlatformModel& model, std::span<const int> sockets);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Until all hosts have gone. Throws Error when a host breaks the protocol beyond repair; others go on.
  void run();
  /// Of this machine's time, how much the simulation took, hosts left out.
  double seconds() const { return seconds_; }

 private:
  class Attached;
  /// Receives until every attached host waits; false if none is left.
  bool wait_for_hosts();
  /// Answers the hosts if all that are attached have come to meet.
  bool meet();

  Cluster& cluster_;
  PlatformModel model_;
  double seconds_ = 0;
  std::vector<std::unique_ptr<Attached>> hosts_;
};

}  // namespace unisono::sim
