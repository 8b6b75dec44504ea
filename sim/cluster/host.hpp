// A host without an operating system: brings up the nodes of a cluster, makes communicators, gives calls.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "sim/cluster/cluster.hpp"

namespace unisono::sim {

class Host {
 public:
  Host(Cluster& cluster, std::uint32_t node) : cluster_(cluster), node_(node) {}

  /// One transfer; ticks the cluster until it has ended. Throws std::runtime_error if the engine refuses it.
  std::uint32_t read(std::uint32_t offset);
  void write(std::uint32_t offset, std::uint32_t value);

  /// Starts the microcontroller and waits until the engine is ready.
  void run();
  struct Agreed {
    std::uint32_t eager_limit = 4096, segment_bytes = 4096, rx_buffers = 4;
    bool opens = true;       ///< long messages point to point begin on credit,
    std::uint32_t kept = 0;  ///< and leave so much of it to short ones
  };
  /// A communicator of nodes 0 .. size-1, whose rank here is the node's number.
  /// `changes` tells lives of the same place apart; it is the epoch, too, so what is late of a former life is dropped.
  void create_communicator(std::uint32_t place, std::uint32_t number, std::uint32_t size, const Agreed& agreed,
                           std::uint32_t changes = 0);
  /// What peers of this communicator may put to and get from; 0 bytes: nothing.
  void set_window(std::uint32_t place, std::uint64_t address, std::uint64_t bytes);
  void submit(const CallDescriptor& call);
  /// The next completion: its call id and code; waits for it, at most that many cycles, else throws.
  std::pair<std::uint32_t, std::uint16_t> completion(std::uint64_t cycles);

 private:
  Cluster& cluster_;
  std::uint32_t node_;
};

}  // namespace unisono::sim
