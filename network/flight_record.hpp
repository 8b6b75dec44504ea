// Flight records: what an endpoint has called lately, in memory that its peers and tools can read at any time, also
// when it is stuck or has been stopped.
//
//   CommunicatorRecord [kRecordedCommunicators]      of one endpoint, which alone writes them
//
// No clock is read until a call has waited for a while.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace unisono {

/// Calls that are kept of each communicator; the oldest gives way.
inline constexpr std::uint32_t kRecordedCalls = 32;
/// Communicators of an endpoint that have a record; those made while all are taken have none.
inline constexpr std::uint32_t kRecordedCommunicators = 256;
/// Characters of a communicator's name, at most.
inline constexpr std::uint32_t kRecordedName = 32;
/// Ranks that can be named as waited for; those beyond are not.
inline constexpr std::uint32_t kRecordedRanks = 256;

/// What became of a recorded call.
enum class RecordedState : std::uint8_t { kNone = 0, kBegun = 1, kEnded = 2, kFailed = 3 };

/// One call. The head is zero while there is none, and while its words are being written.
struct CallRecord {
  std::atomic<std::uint64_t> head;   ///< sequence (32 bits), RecordedState, collective, func, datatype (8 each)
  std::atomic<std::uint64_t> count;  ///< elements (48 bits), flags
  std::atomic<std::uint64_t> peer;   ///< root, peer or recorded_exchange (32 bits); user tag, or signature
  /// Position in the table of algorithms plus one; 0: none is known. The upper half: short_factor_bits of post_scale.
  std::atomic<std::uint64_t> algorithm;
};
static_assert(sizeof(CallRecord) == 32);

/// Flags of CallRecord::count.
inline constexpr unsigned kRecordedCountBits = 48;
inline constexpr std::uint64_t kRecordedInPlace = std::uint64_t{1} << 48U;
inline constexpr std::uint64_t kRecordedPointToPoint = std::uint64_t{1} << 49U;  ///< sequence counts messages of a pair
inline constexpr std::uint64_t kRecordedLocal = std::uint64_t{1} << 50U;         ///< has no sequence
inline constexpr std::uint64_t kRecordedAnySource = std::uint64_t{1} << 51U;     ///< a receive that names no peer,
inline constexpr std::uint64_t kRecordedAnyTag = std::uint64_t{1} << 52U;        ///< or no tag
inline constexpr std::uint64_t kRecordedProbe = std::uint64_t{1} << 53U;         ///< waits for a message, and leaves it
/// Uses of a record, from bit 48 of CommunicatorRecord::identity.
inline constexpr std::uint64_t kRecordInUse = 1;
/// Its endpoint has given the communicator up; what it has called can still be compared, until the record is used
/// again.
inline constexpr std::uint64_t kRecordLeft = 2;

/// Bits of RecordedState in CallRecord::head.
inline constexpr unsigned kRecordedStateShift = 32;

/// What an endpoint tells of one of its communicators.
struct alignas(64) CommunicatorRecord {
  std::atomic<std::uint64_t> identity;  ///< number (32 bits), epoch (16), use (below); 0: it is free
  std::atomic<std::uint64_t> place;     ///< this endpoint's rank (32 bits), number of ranks
  std::atomic<std::uint64_t> begun;     ///< calls ever begun; call n stands at n % kRecordedCalls
  std::atomic<std::uint64_t> revoked;   ///< 1: it has failed
  std::atomic<std::uint64_t> left;      ///< of kRecordLeft: collective calls made (32 bits), their digest
  /// What its user calls the communicator: text, padded with zeros.
  std::array<std::atomic<std::uint64_t>, kRecordedName / 8> name;

  /// Of a call that has waited for a while.
  alignas(64) std::atomic<std::uint64_t> waiting;     ///< which one, plus one; 0: none
  std::atomic<std::uint64_t> since;                   ///< nanoseconds of the monotonic clock
  std::array<std::atomic<std::uint64_t>, 4> awaited;  ///< a bit for each rank that it waits for
  std::array<std::atomic<std::uint64_t>, 10> phase;   ///< what it waits for: text, padded with zeros
  std::array<CallRecord, kRecordedCalls> calls;
};

/// The name in a record; what cannot be told in a line of text is replaced.
inline std::string name_in(const CommunicatorRecord& record) {
  std::string name;
  for (const std::atomic<std::uint64_t>& word : record.name) {
    const std::uint64_t text = word.load(std::memory_order_relaxed);
    for (unsigned shift = 0; shift < 64; shift += 8) {
      const char character = static_cast<char>(text >> shift & 0xffU);
      if (character == 0) return name;
      name += character < ' ' || character > '~' ? '?' : character;
    }
  }
  return name;
}

/// A communicator as people are told of it.
inline std::string title_of(std::uint32_t number, const std::string& name) {
  return "communicator " + std::to_string(number) + (name.empty() ? "" : " \"" + name + "\"");
}

}  // namespace unisono
