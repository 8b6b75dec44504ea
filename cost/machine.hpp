// What a machine takes for the pieces of which a collective call consists, and what lies between several.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace unisono::cost {

/// Where the data that a rank works on lies, by how much there is of it.
enum class Level : std::uint8_t { kNear, kShared, kMemory };
inline constexpr std::size_t kLevels = 3;

/// Messages in a communicator whose ranks are on several hosts: nanoseconds, and nanoseconds a byte. `unisono calibrate
/// --network` measures them.
struct Network {
  double latency = 10'000;  ///< between hosts: from the end of the sender's work to the begin of the receiver's
  double message = 2'000;   ///< at each end of a message between hosts, or of 256 KiB of a longer one
  double byte = 0.1;        ///< on the way between two hosts; all ranks of a host share it, in each direction
  double near_latency = 500;
  double near_message = 500;  ///< the same between ranks of one host

  friend bool operator==(const Network&, const Network&) = default;
};

/// Times in nanoseconds, byte costs in nanoseconds a byte. The defaults are those of a server core at about 3 GHz; what
/// a machine really takes, `unisono calibrate` measures. Byte costs never fall from one level to the next, so that more
/// bytes never take less time.
struct Machine {
  double line = 60;     ///< from a rank's store to another core's load of it
  double issue = 10;    ///< one move, or one segment of it: finding it ready, and all that does not depend on bytes
  double segment = 60;  ///< a payload that does not fit a line: taking and giving back its cells
  double sync = 30;     ///< direct calls: showing one peer an address and taking in its own, beside the line
  double yield = 700;   ///< giving the core to another rank, where ranks take turns

  /// Copying on one core what it has at hand: one byte read and one written.
  std::array<double, kLevels> copy{0.02, 0.04, 0.12};
  /// Copying what another core has written last, or will read next.
  std::array<double, kLevels> cross{0.05, 0.08, 0.14};
  double reduce = 0.02;       ///< combining a byte of one operand with another, beside reading and writing
  double reduce_half = 0.05;  ///< likewise of fp16 and bf16

  std::uint64_t near_bytes = 512 * 1024;          ///< that a core has for itself
  std::uint64_t shared_bytes = 16 * 1024 * 1024;  ///< that all cores have together
  std::uint32_t cores = 0;                        ///< for ranks; 0: enough for every rank

  /// The network: what a line holds, and how long the pieces are in which larger messages travel.
  std::uint32_t inline_bytes = 48;
  std::uint32_t segment_bytes = 64 * 1024;
  std::uint32_t lane_segments = 4;  ///< of these a lane holds at once
  std::uint32_t lane_lines = 32;

  /// By rank, the number of its host, from 0 on without gaps; empty: all are on one. Then every rank has a core.
  std::vector<std::uint32_t> host_of{};
  Network network{};  ///< between them

  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace unisono::cost
