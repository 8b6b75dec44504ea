// What closed forms of a call's time are made of, in cycles: measured by microbenchmarks of messages, never fitted to a
// collective.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/model/costs.hpp"

namespace unisono::sim {

/// Of a message of so many bytes, as far as they are in one segment.
struct Overhead {
  double signal = 0;  ///< without data
  double first = 0;   ///< of any data
  double byte = 0;

  double of(double bytes) const { return bytes == 0 ? signal : first + byte * bytes; }
  friend bool operator==(const Overhead&, const Overhead&) = default;
};

/// LogGP's o, g and G of an engine, by what it does with a message, and LoGcN's alpha of a switch. L comes from the
/// network's configuration. Where hardware has several paths, a parameter of the papers is several here.
struct Parameters {
  double call = 0;             ///< a call without a move: from being given to its answer
  Overhead send;               ///< o of a sender: from the call to the frame's first word on the link
  Overhead send_after;         ///< the same of a move that waited for another one's end
  Overhead receive;            ///< o of a receiver: from the frame's last word to the move's end
  Overhead receive_late;       ///< of one that stands in a buffer: from the issue of its move to the move's end
  Overhead receive_list;       ///< of the last one of several that one move takes, which all go through buffers
  Overhead forward;            ///< from a frame's last word to the first one of the frame that passes it on
  Overhead fold;               ///< more, for an operand that stands in memory
  double gap = 0;              ///< g: between messages that moves send one after the other
  double gap_receive = 0;      ///< between messages of several ranks, at the one that takes them
  double gap_receive_row = 0;  ///< between messages of one rank there
  Overhead gap_list;           ///< between messages of one move
  Overhead gap_fan_in;         ///< between messages that one move takes
  /// Of messages of a pair that have to be granted, two at a time: beside half of the way there and back.
  double gap_granted = 0;
  double gap_program = 0;  ///< between moves of a program that is longer than engines know by heart
  double byte = 0;         ///< G of the engine; the links have theirs
  double grant = 0;        ///< of a message that has to be granted: what it waits for beside the grant's own way
  Overhead alpha;          ///< of a switch: from the last word of the two that it sums to the first one of the result
  double alpha_child = 0;  ///< more for each further one
  double gap_switch = 0;   ///< between messages that a switch passes on to one rank
  double gap_asked = 0;    ///< between messages for which a switch is asked: beside the ways of request and grant

  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// Runs the microbenchmarks on two to four engines at one switch with a unit: messages from rank to rank, rows of them,
/// lists, one fold in an engine, one in the unit. Takes milliseconds; equal costs give equal parameters.
Parameters measure(const EndpointCosts& engine, const EndpointCosts& switches);

}  // namespace unisono::sim
