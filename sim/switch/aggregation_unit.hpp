// A switch of the simulated network that takes part in collectives, whatever it is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sim/network/network.hpp"
#include "sim/network/unit.hpp"
#include "sim/switch/switch_communicator.hpp"

namespace unisono::sim {

/// Not thread-safe.
class AggregationUnit : public Unit {
 public:
  /// Communicators that it has room for, and whether they are there already.
  virtual std::size_t capacity() const = 0;
  virtual bool is_full() const = 0;
  /// Whether a communicator of this number and epoch is there already.
  virtual bool has(std::uint32_t communicator, std::uint16_t epoch) const = 0;
  /// Makes one. Throws Error if it cannot serve it; there must be room, and no other of its number and epoch.
  virtual void make(SwitchEntry entry) = 0;
  virtual void free(std::uint32_t communicator, std::uint16_t epoch) = 0;

  /// Of communicators that are there and that were.
  virtual SwitchCounters counters() const = 0;
  /// Frames that were damaged, or of no communicator here.
  virtual std::uint64_t dropped() const = 0;
  /// What calls of a communicator wait for here, a line each; empty: nothing, or it cannot say.
  virtual std::string waiting(std::uint32_t communicator, std::uint16_t epoch) const = 0;
};

/// Makes the switch for a unit of the network, which must outlive it.
using UnitMaker = std::function<std::unique_ptr<AggregationUnit>(Network& network, std::uint32_t unit)>;

}  // namespace unisono::sim
