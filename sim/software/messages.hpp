// What both ends of a channel need to tell each other which message they mean, and what they were opened with.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/smi_node.hpp"
#include "sim/cables/message.hpp"

namespace unisono::sim::software {

/// Messages with each rank at a port, counted modulo 16, so that what is said of another message is not compared.
class Messages {
 public:
  explicit Messages(std::uint32_t ranks) : numbers_(ranks) {}
  /// How many have ended; 0 with a rank that does not exist.
  std::uint8_t with(std::uint32_t rank) const { return rank < numbers_.size() ? numbers_[rank] : std::uint8_t{0}; }
  void end(std::uint32_t rank) {
    if (rank < numbers_.size()) numbers_[rank] = static_cast<std::uint8_t>((numbers_[rank] + 1) % 16);
  }

 private:
  std::vector<std::uint8_t> numbers_;
};

/// unisono_smi_pkg::opening_of. The window is of strict alone.
inline Opening opening_of(const kernels::PortOpen& open) {
  const bool strict = open.strict && open.credits;
  Opening opening;
  opening.credits = open.credits;
  opening.strict = strict;
  opening.size = static_cast<int>(open.size);
  opening.count = open.count;
  opening.window = strict ? open.window : 0;
  return opening;
}

}  // namespace unisono::sim::software
