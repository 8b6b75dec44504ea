// Memory that the ranks of a job share where each simulates its own node: what goes over the cables, how far each clock
// is, and what ranks tell each other.
//
// A node's cycle t needs what its neighbours sent in cycle t - latency. So a node waits for a neighbour only if that is
// `latency` cycles behind, and equal programs have equal cycles however fast each rank is (conservative simulation of
// discrete events; Chandy and Misra, 1979).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "kernels/smi_node.hpp"

namespace unisono::sim {

/// What leaves a node by one link in one cycle, to the other end of the cable.
struct CableRecord {
  std::uint32_t words[64];  ///< as many as a packet has
  std::uint8_t valid;       ///< a packet
  std::uint8_t channel;     ///< its
  std::uint8_t freed;       ///< a bit for each channel of which a place is free again
  std::uint8_t up;          ///< the node runs
};

/// What one rank tells the others; all are zero when the job begins. `unisono run` reads the first three when all have
/// ended, as words of 64 bits.
struct alignas(128) RankState {
  std::atomic<std::uint64_t> begin;    ///< cycle in which the first kernel began, plus 1; 0: none did
  std::atomic<std::uint64_t> end;      ///< cycle in which the last one ended
  std::atomic<std::uint64_t> packets;  ///< that left by cables
  std::atomic<std::uint64_t> done;     ///< cycles
  std::atomic<std::uint64_t> moves;
  std::atomic<std::uint64_t> came;        ///< meetings
  std::atomic<std::uint64_t> came_at[2];  ///< cycle, of the last meeting and the one before, by its number's parity
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> tick;     ///< low bits of `done`, to sleep on
  std::atomic<std::uint32_t> waiters;  ///< ranks that sleep on it
};
static_assert(sizeof(RankState) == 128);

/// A view of the memory. Thread-safe as its atomics are.
class SharedCables {
 public:
  static constexpr int kLinks = 4;
  static constexpr int kCards = 4;  ///< of channels of one port and pair of ranks, the last ones

  /// Maps it, and makes it as large as all ranks need it. Throws std::runtime_error.
  SharedCables(int descriptor, std::uint32_t ranks, std::uint32_t ports, std::uint32_t latency);
  ~SharedCables();
  SharedCables(const SharedCables&) = delete;
  SharedCables& operator=(const SharedCables&) = delete;

  RankState& state(std::uint32_t rank) const { return states_[rank]; }
  /// What leaves a rank by a link in a cycle.
  CableRecord& record(std::uint32_t rank, int link, std::uint64_t cycle) const {
    return records_[(static_cast<std::size_t>(rank) * kLinks + static_cast<std::size_t>(link)) * slots_ +
                    (cycle & (slots_ - 1))];
  }
  kernels::ChannelCard& card(bool sends, std::uint32_t from, std::uint32_t to, std::uint32_t port,
                             std::uint64_t sequence) const;

  /// A rank has done so many cycles. Who sleeps on it is woken now and then only.
  void publish(std::uint32_t rank, std::uint64_t done) const;
  /// Wakes who sleeps on a rank: before that waits itself.
  void wake(std::uint32_t rank) const;
  /// Waits until a rank has done so many cycles, at most so long; whether it has. If it must sleep, it sleeps until
  /// `comfortable`, so that ranks on one core do not take turns for each cycle.
  bool await(std::uint32_t rank, std::uint64_t needed, std::uint64_t comfortable,
             std::chrono::microseconds at_most) const;

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t ranks_;
  std::uint32_t ports_;
  std::uint64_t nap_;  ///< cycles after which sleepers are woken
  std::size_t slots_ = 1;
  RankState* states_ = nullptr;
  CableRecord* records_ = nullptr;
  kernels::ChannelCard* cards_ = nullptr;
};

}  // namespace unisono::sim
