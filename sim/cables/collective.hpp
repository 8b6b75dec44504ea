// A collective as a rank opens it, and what became of it there.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cables/message.hpp"
#include "sim/cables/trees.hpp"

namespace unisono::sim {

/// One rank's part; docs/rtl/smi_collectives.md says what each field means. `tree` serves broadcast and reduction,
/// `member` and `members` (which CableNode::members has written) the root of the others.
struct Collective {
  enum class Kind { kBroadcast = 2, kScatter = 4, kReduce = 5, kGather = 6 };  // unisono_smi_pkg::op_e
  Kind kind = Kind::kBroadcast;
  int port = 0;
  int root = 0;
  std::uint32_t count = 0;
  int size = 2;  ///< an element has 1 << size bytes
  int dtype = 0;
  int func = 0;
  TreePlace tree{};
  int member = 0;
  int members = 0;
  int lanes = 0;                      ///< elements of a word; 0: as many as fit
  double push_pause = 0;              ///< the part of the cycles in which the kernel does not push
  double pop_pause = 0;               ///< and does not pop
  double flush = 0;                   ///< the part of the words that are flushed
  std::vector<std::uint8_t> bytes{};  ///< what this rank pushes: all of it
};

struct CollectiveOutcome {
  bool open = false;
  bool closed = false;
  bool refused = false;
  std::uint64_t opened_at = 0, closed_at = 0;  ///< cycles
  Outcome pushed, popped;                      ///< of this rank's ends
  std::vector<Difference> differences;
};

}  // namespace unisono::sim
