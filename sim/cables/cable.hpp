// One direction of a cable: packets arrive in order, a fixed number of cycles after they were sent. Nothing is lost and
// nothing is added (no framing). Beside the packets, in the other direction, go the receiver's signals: that it runs,
// and which places of its queues are free again.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/network/ring.hpp"

namespace unisono::sim {

constexpr int kPacketBytes = 32;

struct CablePacket {
  std::array<std::uint32_t, kPacketBytes / 4> words{};
  std::uint8_t channel = 0;
};

// Its two ends may be ahead of each other by less than `latency` cycles, and in two threads: what one has sent stays
// with it until exchange() hands it over.
class Cable {
 public:
  /// Packets take `latency` cycles (at least 1); the wire carries `bytes_per_cycle` bytes in each.
  Cable(int latency, double bytes_per_cycle) : latency_(latency), bytes_per_cycle_(bytes_per_cycle) {}

  /// The sender's end, to be called once in each cycle, before the rest.
  void begin_send(std::uint64_t cycle) {
    send_cycle_ = cycle;
    // What is left over of a cycle counts for the next packet; an idle wire saves nothing up.
    if (budget_ < kPacketBytes) budget_ += bytes_per_cycle_;
  }
  /// Whether the wire takes a packet in this cycle.
  bool ready() const { return budget_ >= kPacketBytes - 1e-9; }
  void send(const CablePacket& packet) {
    budget_ -= kPacketBytes;
    sent_.push_back({send_cycle_ + static_cast<std::uint64_t>(latency_), packet});
  }
  struct Signals {
    std::uint32_t freed = 0;
    bool up = false;
    bool operator==(const Signals&) const = default;
  };
  /// The signals that reach the sender in this cycle; to be called once in each.
  Signals signals() {
    if (signals_.empty() || signals_.front().due > send_cycle_) return {0, false};
    const Signals found = signals_.front().value;
    signals_.pop();
    return found;
  }

  /// The receiver's end, likewise.
  void begin_receive(std::uint64_t cycle) { receive_cycle_ = cycle; }
  /// What arrives in this cycle, or null.
  const CablePacket* arriving() const {
    return !packets_.empty() && packets_.front().due <= receive_cycle_ ? &packets_.front().value : nullptr;
  }
  void take() { packets_.pop(); }
  /// The receiver's signals of this cycle: a bit for each channel freed, and whether it runs.
  void signal(std::uint32_t freed, bool up) {
    told_.push_back({receive_cycle_ + static_cast<std::uint64_t>(latency_), {freed, up}});
  }

  /// Hands over what was sent in both directions; while neither end is in use. At least every `latency` cycles.
  void exchange() {
    for (Due<CablePacket>& packet : sent_) packets_.push(packet);
    for (Due<Signals>& signals : told_) signals_.push(signals);
    sent_.clear();
    told_.clear();
  }

 private:
  template <class T>
  struct Due {
    std::uint64_t due = 0;
    T value{};
  };
  int latency_;
  double bytes_per_cycle_;
  // The sender's.
  double budget_ = 0;
  std::uint64_t send_cycle_ = 0;
  std::vector<Due<CablePacket>> sent_;
  Ring<Due<Signals>> signals_;
  // The receiver's.
  alignas(64) std::uint64_t receive_cycle_ = 0;
  std::vector<Due<Signals>> told_;
  Ring<Due<CablePacket>> packets_;
};

}  // namespace unisono::sim
