// Bits of the registers in spec/exchange.yaml, and the words of its tables (docs/rtl/cpu.md, communicators.md).
#pragma once

#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono::registers {

inline constexpr std::uint32_t kIdentity = 0x554e4953;  // 'UNIS'
inline constexpr std::uint32_t kVersion = static_cast<std::uint32_t>(kAbiVersion << 16U | kWireVersion);

inline constexpr std::uint32_t kControlReset = 1U << 0U;
inline constexpr std::uint32_t kControlRun = 1U << 1U;

inline constexpr std::uint32_t kStatusReady = 1U << 0U;
inline constexpr std::uint32_t kStatusFailed = 1U << 1U;
inline constexpr std::uint32_t kStatusSlotTaken = 1U << 2U;
inline constexpr std::uint32_t kStatusCompletion = 1U << 3U;

inline constexpr std::uint32_t kCodeGiven = 1U << 31U;  ///< in completed_code

/// Loading of programs.
inline constexpr std::uint32_t kProgramSlot = exchange::kPrograms;
inline constexpr std::uint32_t kProgramList = exchange::kPrograms + 4;
inline constexpr std::uint32_t kProgramMove = exchange::kPrograms + 8;
inline constexpr std::uint32_t kProgramLoad = exchange::kPrograms + 12;
inline constexpr std::uint32_t kProgramRestAddress = exchange::kPrograms + 16;  ///< two words
inline constexpr std::uint32_t kProgramRestMoves = exchange::kPrograms + 24;
inline constexpr std::uint32_t kProgramState = exchange::kPrograms;  ///< read
inline constexpr std::uint32_t kProgramRefused = 1U << 31U;

/// Words of an entry in `communicators`.
inline constexpr std::uint32_t kState = 0;
inline constexpr std::uint32_t kNumber = 1;
inline constexpr std::uint32_t kRank = 2;
inline constexpr std::uint32_t kSize = 3;
inline constexpr std::uint32_t kGroup = 4;
inline constexpr std::uint32_t kEager = 5;
inline constexpr std::uint32_t kDatatypes = 6;
inline constexpr std::uint32_t kFuncs = 7;
inline constexpr std::uint32_t kPathNumber = 8;
inline constexpr std::uint32_t kPathEpoch = 9;
inline constexpr std::uint32_t kPathEager = 10;
inline constexpr std::uint32_t kPathSegment = 11;
inline constexpr std::uint32_t kPathRxBuffers = 12;
inline constexpr std::uint32_t kPathSizeRank = 13;
inline constexpr std::uint32_t kPathValid = 14;
inline constexpr std::uint32_t kPathWindow = 15;
inline constexpr std::uint32_t kEntryWords = 16;

/// In kGroup: the switch above this rank, as a rank; 0: there is none.
inline constexpr std::uint32_t kAboveShift = 16;
/// In kPathRxBuffers: long messages point to point begin on credit, and leave so much credit to short ones.
inline constexpr std::uint32_t kOpens = 1U << 31U;
inline constexpr std::uint32_t kKeptShift = 16;
inline constexpr std::uint32_t kRxBuffersMask = 0xffffU;
/// In kPathSizeRank: where ranks from a number on are switches, that number.
inline constexpr std::uint32_t kMembersShift = 8;

/// Bits of the first.
inline constexpr std::uint32_t kStateValid = 1U << 0U;
inline constexpr std::uint32_t kStateRevoked = 1U << 1U;
inline constexpr std::uint32_t kStateCrowded = 1U << 2U;
inline constexpr std::uint32_t kStateChangesShift = 3;
inline constexpr std::uint32_t kStateChanges = (1U << 13U) - 1;

inline constexpr std::uint32_t kMemberWords = 64;  ///< of a communicator
inline constexpr std::uint32_t kMemberValid = 1U << 31U;
inline constexpr std::uint32_t kSessionOpen = 1U << 31U;

/// Offset of a word of a communicator's entry.
constexpr std::uint32_t communicator(std::uint32_t position, std::uint32_t word) {
  return exchange::kCommunicators + 4 * (kEntryWords * position + word);
}
/// Offset of the word of a member.
constexpr std::uint32_t member(std::uint32_t position, std::uint32_t rank) {
  return exchange::kMembers + 4 * (kMemberWords * position + rank);
}

}  // namespace unisono::registers
