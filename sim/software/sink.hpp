// Where the ends of a port put packets: into a sending endpoint of the transport, or into a queue of the port's unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "sim/software/packet.hpp"
#include "sim/software/transport.hpp"

namespace unisono::sim::software {

class PacketSink {
 public:
  PacketSink() = default;
  PacketSink(const PacketSink&) = delete;
  PacketSink& operator=(const PacketSink&) = delete;
  virtual ~PacketSink() = default;
  /// Whether there is room for a packet.
  virtual bool takes() const = 0;
  /// Only while it takes one.
  virtual void give(const Packet& packet) = 0;
};

/// An endpoint, in one cycle.
class EndpointSink final : public PacketSink {
 public:
  EndpointSink(Transport& transport, int endpoint, std::uint64_t now)
      : transport_(transport), endpoint_(endpoint), now_(now) {}
  bool takes() const override { return transport_.takes(endpoint_); }
  void give(const Packet& packet) override { transport_.give(endpoint_, packet, now_); }

 private:
  Transport& transport_;
  int endpoint_;
  std::uint64_t now_;
};

/// A queue of so many places.
class QueueSink final : public PacketSink {
 public:
  QueueSink(std::deque<Packet>& queue, std::size_t places) : queue_(queue), places_(places) {}
  bool takes() const override { return queue_.size() < places_; }
  void give(const Packet& packet) override { queue_.push_back(packet); }

 private:
  std::deque<Packet>& queue_;
  std::size_t places_;
};

}  // namespace unisono::sim::software
