// Messages that the ends of a channel send and receive, as kernels would: what opens the channel, and the pace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace unisono::sim {

/// One end of a channel. The sender's bytes are its elements; the receiver's are empty.
struct Message {
  int peer = 0;             ///< the rank at the other end
  int port = 0;             ///< below CableNode::kPorts
  std::uint32_t count = 0;  ///< elements
  int size = 2;             ///< an element has 1 << size bytes
  bool credits = false;
  bool strict = false;
  std::uint32_t window = 0;  ///< the asynchronicity degree, of strict
  int lanes = 0;             ///< elements of a word; 0: as many as fit
  double pause = 0;          ///< the part of the cycles in which the kernel does not push or pop
  double flush = 0;          ///< the part of the words that are flushed
  std::int64_t hold = -1;    ///< elements after which the kernel stands still until release(); -1: it does not
  std::vector<std::uint8_t> bytes{};
};

/// What a receiver complained of.
struct Complaint {
  bool foreign = false;
  int src = 0;
  std::uint32_t expected = 0;
  std::uint32_t got = 0;
};

/// What one end was opened with: unisono_smi_pkg::opening_t.
struct Opening {
  int kind = 0;  ///< 0 a channel, else the operation of a collective
  bool credits = false;
  bool strict = false;
  int size = 0;
  int dtype = 0;
  int func = 0;
  std::uint32_t count = 0;
  std::uint32_t window = 0;  ///< of a tree, its root
  bool operator==(const Opening&) const = default;
};

/// Two ends that do not agree, as one of them names it.
struct Difference {
  int peer = 0;
  Opening mine, theirs;
};

/// What became of a message.
struct Outcome {
  bool open = false;    ///< the channel has been opened
  bool closed = false;  ///< and closed
  std::uint32_t elements = 0;
  std::vector<std::uint8_t> bytes;  ///< received
  std::uint64_t opened_at = 0;      ///< cycles
  std::uint64_t first_at = 0;       ///< the first word was pushed or popped
  std::uint64_t last_at = 0;        ///< the last one
  std::vector<Complaint> complaints;
  std::vector<Difference> differences;
};

}  // namespace unisono::sim
