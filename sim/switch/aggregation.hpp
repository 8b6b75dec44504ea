// Who aggregates for which communicator: gives the network's units their entries when hosts make communicators, and
// takes them away when these are freed. In a real network that is the work of a manager beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/switch/aggregation_unit.hpp"

namespace unisono::sim {

/// Not thread-safe.
class Aggregation {
 public:
  /// Puts a switch into each unit of the network, which must outlive this: by default those in C++.
  explicit Aggregation(Network& network, const UnitMaker& maker = {});

  struct Question {
    std::uint32_t communicator = 0;
    std::uint16_t epoch = 0;
    std::uint32_t eager_limit = 0, segment_bytes = 0, rx_buffers = 0;
    std::vector<std::uint32_t> nodes;  ///< of the members, by rank

    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Answer {
    std::string text;                      ///< the tree in brackets, or why there is none
    std::vector<std::uint32_t> addresses;  ///< of each switch, in the order of the brackets; empty: there is no tree
  };

  /// The node's host makes the communicator. The answer is the same for all members, until all that have asked have
  /// left.
  const Answer& join(std::uint32_t node, const Question& question);
  /// The node's host has freed it.
  void leave(std::uint32_t node, std::uint32_t communicator, std::uint16_t epoch);
  /// It has gone, and with it all its communicators.
  void leave_all(std::uint32_t node);

  /// What the calls of a communicator wait for at its switches, a line each, with the switch's name.
  std::string waiting(std::uint32_t node, std::uint32_t communicator, std::uint16_t epoch) const;

  const std::vector<std::unique_ptr<AggregationUnit>>& switches() const { return switches_; }

 private:
  struct Made {
    Question question;
    Answer answer;
    std::vector<std::uint32_t> units;  ///< numbers in the network, as the answer's addresses
    std::set<std::uint32_t> joined;    ///< nodes whose hosts know of it
  };

  void decide(Made& made);
  void end(std::size_t position);

  Network& network_;
  std::vector<std::unique_ptr<AggregationUnit>> switches_;  ///< by unit
  std::vector<std::unique_ptr<Made>> made_;
};

}  // namespace unisono::sim
