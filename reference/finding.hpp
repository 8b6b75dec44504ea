// What the checker can find wrong.
#pragma once

#include <cstdint>
#include <string>

namespace unisono::reference {

enum class FindingKind : std::uint8_t {
  kMalformed,      ///< a move or program breaks a rule that one rank's text shows
  kOutOfBounds,    ///< a move touches bytes outside a region of the call
  kScratch,        ///< a move touches scratch beyond what the algorithm asked for
  kUnmatched,      ///< tag, count or element size differ, a message is never consumed, an arrival never satisfied
  kDeadlock,       ///< some moves never complete
  kUninitialised,  ///< a move reads scratch that nothing has written
  kRace,           ///< two moves touch the same byte, at least one writing, in no certain order
  kUnfinished,     ///< a rank's call may end while a peer still accesses its memory directly
  kWrongResult,    ///< an element of a result is not what the collective promises
  kOverwritten,    ///< an element that must stay untouched was written
  kUnstable,       ///< two legal schedules give different results
  kOverflow,       ///< more was sent than a channel holds, or has allowed
  kDataDependent,  ///< a count or offset depends on data, so it cannot be followed symbolically
};

/// Name of a kind as reports write it.
constexpr const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kMalformed:
      return "malformed";
    case FindingKind::kOutOfBounds:
      return "out of bounds";
    case FindingKind::kScratch:
      return "scratch overflow";
    case FindingKind::kUnmatched:
      return "unmatched";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kUninitialised:
      return "uninitialised";
    case FindingKind::kRace:
      return "race";
    case FindingKind::kUnfinished:
      return "unfinished access";
    case FindingKind::kWrongResult:
      return "wrong result";
    case FindingKind::kOverwritten:
      return "overwritten";
    case FindingKind::kUnstable:
      return "unstable";
    case FindingKind::kOverflow:
      return "overflow";
    case FindingKind::kDataDependent:
      return "data dependent";
  }
  return "?";
}

/// No rank, or no move.
inline constexpr std::uint32_t kNowhere = 0xffffffffU;

/// One thing found wrong, with the place it shows. `text` is a full explanation with the moves written out.
struct Finding {
  FindingKind kind = FindingKind::kMalformed;
  std::uint32_t rank = kNowhere;
  std::uint32_t move = kNowhere;        ///< index in the rank's program
  std::uint32_t other_rank = kNowhere;  ///< the second move, where two are involved
  std::uint32_t other_move = kNowhere;
  std::string text;
};

}  // namespace unisono::reference
