// What it takes an endpoint of a model to do its part of a move, in cycles.
#pragma once

#include <cstdint>

#include "core/message_segment.hpp"

namespace unisono::sim {

/// The defaults are the hardware engine's: from its life of a call, its latencies (docs/rtl), and fitted to its figures
/// where those say nothing (docs/simulated-network.md says how well).
struct EndpointCosts {
  std::uint32_t first_move = 9;    ///< from the call to its first move, of a call that is known
  std::uint32_t next_move = 1;     ///< from move to move
  std::uint32_t known_moves = 32;  ///< of a longer program each move costs `firmware_move`
  std::uint32_t firmware_move = 30;
  std::uint32_t issue = 6;          ///< from a move to its issue, if nothing holds it back
  std::uint32_t job = 7;            ///< from issue to the first job
  std::uint32_t take_move = 5;      ///< of the dispatcher, to take an issued move
  std::uint32_t take_arrival = 12;  ///< likewise, and to post its arrival
  std::uint32_t dispatch = 7;       ///< of the dispatcher, for a job
  std::uint32_t list_job = 30;      ///< from job to job of a list that is sent to
  std::uint32_t list_signal = 9;    ///< likewise, without data
  std::uint32_t fan_in_job = 11;    ///< from job to job of a list that is received from
  std::uint32_t granted = 12;       ///< more for the first job of a message that had to be granted
  std::uint32_t follow = 21;        ///< more for a job that waited for the move that it follows
  std::uint32_t read = 62;          ///< from a job to the first word from memory
  std::uint32_t pass = 4;           ///< from a job to the first word that comes past the buffers
  std::uint32_t announce = 6;       ///< from a job to its header in Tx, which then waits for its words
  std::uint32_t fold = 8;           ///< of a word through the operator
  std::uint32_t child = 0;          ///< more for each message that one job folds, of integers, minima and maxima
  std::uint32_t child_sum = 0;      ///< likewise, of sums in floating point
  std::uint32_t child_product = 0;  ///< likewise, of products
  std::uint32_t leave = 3;   ///< from the last word of a segment in the transport to the frame's first on the link
  std::uint32_t write = 33;  ///< from the last word's burst to its acknowledgement
  std::uint32_t burst_words = 64;    ///< that memory is written in
  std::uint32_t further_burst = 24;  ///< more, if there was one before the last
  std::uint32_t arrive = 19;         ///< from a frame's last word to the job that takes it
  std::uint32_t onward = 22;         ///< more for a job that sends what arrives
  std::uint32_t behind = 12;         ///< from a frame's last word out of Rx to the job that takes the frame behind it
  std::uint32_t buffered = 33;       ///< from a frame's last word to its segment in a receive buffer
  std::uint32_t buffered_word = 2;   ///< more for each word of it
  std::uint32_t grant_out = 20;      ///< from the issue of an arrival to the grant on the link
  std::uint32_t grant_in = 15;       ///< from the grant's word to the job it allows
  std::uint32_t retire = 3;          ///< from an end to what waited for it
  std::uint32_t answer = 15;         ///< from the last retirement to the call's answer
  std::uint64_t eager_limit = 4096;  ///< bytes; longer messages wait for a grant
  std::uint64_t segment = 8128;      ///< bytes of the longest segment; 64 of header come before it
  bool lists_ascend = true;          ///< a list's peers are served by rank, not in listed order
  bool grants_when_asked = false;    ///< as switches do: they know no call before something of it comes
  bool instant = false;              ///< words take no time, but on links
  bool parallel_ports = false;  ///< a list is one job: its messages are folded, and sent, side by side; so are moves
  std::uint32_t transport_words = 512;
  std::uint32_t granted_first = 32, granted_next = 16;  ///< segments

  /// Longest segment of a message of so many bytes between engines.
  std::uint64_t segment_of(std::uint64_t bytes) const { return message_segment(bytes, eager_limit, segment); }
};

}  // namespace unisono::sim
