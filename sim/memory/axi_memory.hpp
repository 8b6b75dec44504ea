// AXI4 memory for simulations: what a Verilated model sees behind its memory ports.
//
// The model is clocked by `tick`: it samples what the master drives before a rising edge and answers with what it
// drives after that edge. With a Verilated `top`:
//
//   top.clk_i = 0; top.eval();
//   for each channel c: memory.tick(c, pins.sample(c));      // what holds just before the edge
//   top.clk_i = 1; top.eval();                               // the edge
//   for each channel c: pins.drive(c, memory.outputs(c));    // changes after the edge
//   top.eval();
//
// Everything that is random (latency, stalls, order) comes from one generator per channel, seeded by `seed`: the same
// seed and the same inputs give the same outputs, on any machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/memory/pages.hpp"
#include "sim/memory/tlb.hpp"

namespace unisono::sim {

inline constexpr std::size_t kMostBeatBytes = 64;

enum class AxiResponse : std::uint8_t { kOkay = 0, kSlaveError = 2, kDecodeError = 3 };

/// What a master drives.
struct AxiInputs {
  bool arvalid = false;
  std::uint32_t arid = 0;
  std::uint64_t araddr = 0;
  std::uint8_t arlen = 0;
  std::uint8_t arsize = 0;
  std::uint8_t arburst = 1;
  bool rready = false;

  bool awvalid = false;
  std::uint32_t awid = 0;
  std::uint64_t awaddr = 0;
  std::uint8_t awlen = 0;
  std::uint8_t awsize = 0;
  std::uint8_t awburst = 1;
  bool wvalid = false;
  std::array<std::uint8_t, kMostBeatBytes> wdata{};
  std::uint64_t wstrb = 0;
  bool wlast = false;
  bool bready = false;
};

/// What the memory drives.
struct AxiOutputs {
  bool arready = false;
  bool rvalid = false;
  std::uint32_t rid = 0;
  std::array<std::uint8_t, kMostBeatBytes> rdata{};
  AxiResponse rresp = AxiResponse::kOkay;
  bool rlast = false;

  bool awready = false;
  bool wready = false;
  bool bvalid = false;
  std::uint32_t bid = 0;
  AxiResponse bresp = AxiResponse::kOkay;

  bool operator==(const AxiOutputs&) const = default;
};

/// A master broke a rule of AXI4, or uses what this model does not have (narrow beats, FIXED and WRAP bursts).
struct AxiViolation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct AxiMemoryConfig {
  unsigned channels = 1;
  unsigned beat_bytes = 64;  ///< a power of two, up to 64
  std::uint64_t seed = 1;

  /// Cycles from the edge that takes a request to the edge that can take its first beat; at least 1.
  unsigned read_latency = 1;
  /// Cycles from the edge that takes the last beat to the edge that can take the answer; at least 1.
  unsigned write_latency = 1;
  /// Up to this many cycles more, at random per burst.
  unsigned jitter = 0;

  /// Beats per cycle: `beats` in every `cycles`, at most 1, for each direction.
  unsigned bandwidth_beats = 1;
  unsigned bandwidth_cycles = 1;
  /// Reads and writes share that bandwidth, as on the data bus of a DRAM.
  bool shared_bus = false;

  /// How often (of 256 cycles) each of the five channels pauses, at random.
  unsigned stall_ar = 0, stall_r = 0, stall_aw = 0, stall_w = 0, stall_b = 0;

  /// Answers bursts of different ids in any order, and interleaves beats of different reads.
  bool reorder = false;
  /// Bursts taken and not yet answered, per direction and channel.
  unsigned outstanding = 64;

  /// All channels see one memory (several ports), instead of one each.
  bool one_memory = false;

  /// Addresses are translated, by one TLB for all channels: what its misses cost is added to the latency.
  TlbConfig tlb;
};

struct AxiMemoryCounters {
  std::uint64_t cycles = 0;
  std::uint64_t read_bursts = 0, read_beats = 0;
  std::uint64_t write_bursts = 0, write_beats = 0;
  /// Largest number of bursts taken and not yet answered.
  std::uint64_t most_reads = 0, most_writes = 0;
};

/// Memory behind one or several AXI4 ports. A write is in memory when its answer is first offered, not earlier: who
/// reads before the answer reads what was there before.
class AxiMemory {
 public:
  explicit AxiMemory(const AxiMemoryConfig& config);

  /// One rising edge of one channel's clock.
  void tick(unsigned channel, const AxiInputs& inputs);
  /// What the channel drives since its last edge.
  const AxiOutputs& outputs(unsigned channel) const { return channels_.at(channel).out; }
  const AxiMemoryCounters& counters(unsigned channel) const { return channels_.at(channel).counters; }
  /// Whether nothing is in flight.
  bool idle() const;
  /// Whether it is idle, and edges by which it is asked for nothing change no more than their count.
  bool can_skip() const;
  /// So many edges of all channels, by which nothing is asked for.
  void skip(std::uint64_t edges);

  /// As Pages::window, of the memory of a channel.
  std::byte* window(unsigned channel, std::uint64_t address, std::uint64_t bytes) {
    return pages(channel).window(address, bytes);
  }
  /// Past the ports.
  void read(unsigned channel, std::uint64_t address, std::span<std::uint8_t> bytes) const;
  void write(unsigned channel, std::uint64_t address, std::span<const std::uint8_t> bytes);

  /// Beats that touch [low, high] are answered so; what they write is not stored.
  void fail(unsigned channel, std::uint64_t low, std::uint64_t high, AxiResponse response);
  void heal() { failures_.clear(); }

  const AxiMemoryConfig& config() const { return config_; }
  const TlbCounters& tlb_counters() const { return tlb_.counters(); }

 private:
  struct Failure {
    unsigned channel;
    std::uint64_t low, high;
    AxiResponse response;
  };
  struct Beat {
    std::array<std::uint8_t, kMostBeatBytes> data;
    std::uint64_t strobe;
  };
  struct Burst {
    std::uint32_t id;
    std::uint64_t address;  // of the first beat, aligned
    unsigned beats;
    std::uint64_t due;
    unsigned at = 0;
    std::vector<Beat> data{};
  };
  struct Channel {
    AxiOutputs out;
    AxiMemoryCounters counters;
    std::uint64_t random;
    unsigned read_credit = 0, write_credit = 0;
    std::deque<Burst> reads;     // in order of request
    std::deque<Burst> requests;  // writes whose data is still to come
    std::deque<Beat> data;       // data whose request is still to come
    std::deque<bool> ends;       // its wlast
    std::deque<Burst> writes;    // with all their data
    std::size_t reading = 0;     // the burst of the beat on offer
    std::size_t writing = 0;     // the burst of the answer on offer
    AxiInputs before;            // to see that offers stay
  };

  std::uint64_t next(Channel& channel) const;
  bool stalls(Channel& channel, unsigned of_256) const;
  std::uint64_t due(Channel& channel, unsigned latency) const;
  Burst burst(Channel& channel, std::uint32_t id, std::uint64_t address, unsigned length, unsigned size, unsigned kind,
              const char* what) const;
  void check_stable(const Channel& channel, const AxiInputs& inputs) const;
  std::size_t choose(Channel& channel, const std::deque<Burst>& bursts) const;
  AxiResponse response(unsigned channel, std::uint64_t address) const;
  AxiResponse store(unsigned number, const Burst& burst);
  void take(unsigned number, Channel& channel, const AxiInputs& inputs);
  void offer(unsigned number, Channel& channel);
  Pages& pages(unsigned channel) { return pages_[config_.one_memory ? 0 : channel]; }
  const Pages& pages(unsigned channel) const { return pages_[config_.one_memory ? 0 : channel]; }

  AxiMemoryConfig config_;
  std::vector<Channel> channels_;
  std::vector<Pages> pages_;
  std::vector<Failure> failures_;
  Tlb tlb_;
};

/// The memory behind `unisono_memory_interleave` and the crossbars, as one: channels hold it in turns of
/// `interleave_bytes`.
class InterleavedMemory {
 public:
  InterleavedMemory(AxiMemory& memory, std::uint64_t interleave_bytes);

  void read(std::uint64_t address, std::span<std::uint8_t> bytes) const;
  void write(std::uint64_t address, std::span<const std::uint8_t> bytes);

 private:
  struct Place {
    unsigned channel;
    std::uint64_t address;
    std::size_t bytes;  // up to the end of the block
  };
  Place place(std::uint64_t address) const;

  AxiMemory& memory_;
  std::uint64_t block_;
};

}  // namespace unisono::sim
