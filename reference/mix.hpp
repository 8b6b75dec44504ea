// What joins each ordered pair of ranks in a run, and who goes on when: a mix of lanes, credits and grants.
//
// In a communicator over several hosts one pair of ranks is joined by a lane, another by a network; on that, short
// messages need a credit and long ones a grant. The proofs run programs on channels that are all alike: the least
// permissive ones (interpreter.hpp), or lanes (engine/model.hpp). A mixed run (mixed_run.hpp) takes another kind for
// each ordered pair, and tests that programs end, and end right, whatever they meet:
//
// - lane: L lines, a segment in each, before or after its arrival has issued. A line that was taken comes back late.
// - credit: k buffers, a message in each, whole. A credit comes back when its message has been taken, and late: when
//   several are owed. A sender without credit waits for one, or asks for a grant, as the engine does.
// - grant: an arrival whose turn it is opens its landing, one at a time for each pair, and lets w segments come; it
//   raises that by halves of the ring as they are used. Data may land in the arrival's result, before the move runs.
// - a pair of credits may have a longest message, beyond which grants serve it, as below and above an eager limit.
//
// Segments, requests and what comes back are under way for as long as the schedule likes, each of the three in its own
// order: a request may overtake data. A send completes when its last segment has left, has arrived, or was taken.
//
// The schedule picks one thing at a time, a segment of one move or one delivery: always the first that was possible,
// with nothing under way for long; always the last, with nothing delivered while any move can go on; or anything, by a
// seed that also says how long deliveries take and which ranks lag behind. Equal mixes make equal runs.
//
// Each receiver checks what its sender does: no segment out of order, no line or buffer more than there are, nothing
// without credit or beyond its grant, one request and one grant at a time; and nothing is lost when all has ended.
// Values are expressions, and at the end all memory holds those of the least permissive run.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/job.hpp"
#include "reference/lowered.hpp"

namespace unisono::reference {

/// How messages of one ordered pair travel. Lengths are in elements; a message of none counts as one.
struct ChannelKind {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  enum class Way : std::uint8_t { kLane, kCredit, kGrant };
  enum class Ends : std::uint8_t { kSent, kArrived, kTaken };

  Way way = Way::kLane;
  std::uint32_t lines = 1;             ///< of a lane
  std::uint32_t buffers = 1;           ///< of credits; 0 only where the sender asks
  std::uint32_t batch = 1;             ///< credits that are owed before they go back; at most `buffers`, and at least 1
  std::uint64_t longest = kUnlimited;  ///< message of credits; a longer one is granted
  bool asks = false;                   ///< a sender without credit asks for a grant
  std::uint32_t landing = 1;           ///< segments of the ring that is granted
  bool in_place = false;               ///< a landing is the arrival's result, where that is possible: no ring then
  Ends ends = Ends::kSent;             ///< what a send waits for before it completes

  static ChannelKind lane(std::uint32_t lines);
  static ChannelKind credit(std::uint32_t buffers);
  static ChannelKind grant(std::uint32_t segments);
  /// "credit(4 by 2, asks)"
  std::string text() const;
};

/// The kinds of all pairs of a run, and its schedule. Takes no memory by pairs.
struct Mix {
  enum class Schedule : std::uint8_t { kFirst, kLast, kRandom };

  std::uint32_t size = 0;            ///< ranks
  bool drawn_kinds = false;          ///< each pair's is drawn, by `seed`; else:
  std::vector<std::uint32_t> hosts;  ///< by rank, the number of its host; all on one if it is empty
  ChannelKind within, between;       ///< of pairs on one host, and on two
  std::uint64_t segment = 1;         ///< elements, at most
  bool full_segment_dependencies = false;
  Schedule schedule = Schedule::kFirst;
  std::uint64_t seed = 0;  ///< of a random schedule, and of what is drawn

  ChannelKind kind(std::uint32_t from, std::uint32_t to) const;

  /// All pairs alike.
  static Mix all(std::uint32_t ranks, const ChannelKind& kind, Schedule schedule);
  /// One kind for pairs of ranks on one host, another for the others.
  static Mix by_host(std::vector<std::uint32_t> hosts, const ChannelKind& within, const ChannelKind& between,
                     Schedule schedule);
  /// Everything is drawn.
  static Mix drawn(std::uint32_t ranks, std::uint64_t seed);
  /// The kinds in words; those that are drawn pair by pair, for the pairs that have messages.
  std::string kinds_text(const Lowered& lowered) const;
  /// Schedule, seed and kinds in words, in several lines.
  std::string text(const Lowered& lowered) const;
};

/// The mixes that a job is run on: all pairs with one buffer, and all granted a segment at a time, first and last; a
/// lane of one line within each host, and credits or grants between them, where hosts are the call's groups, two ranges
/// of unequal length, and two that ranks are dealt to in turn; and `draws` that are drawn.
std::vector<Mix> mixes_of(const Job& job, std::uint32_t draws, std::uint64_t seed);

}  // namespace unisono::reference
