// Instructions of the custom-function unit, the microcontroller's way to the engine (rtl/cpu/unisono_cpu_port.sv).
//
// The numbers are those of rtl/cpu/unisono_cpu_pkg.sv; tests/rtl/cpu compares the two files.
#pragma once

#include <cstdint>

namespace unisono::port {

#define UNISONO_INLINE [[gnu::always_inline]] inline

// Groups, and the operations of each.
inline constexpr std::uint32_t kGroupControl = 0;
inline constexpr std::uint32_t kControlNext = 0;
inline constexpr std::uint32_t kControlEnd = 1;
inline constexpr std::uint32_t kControlFail = 2;
inline constexpr std::uint32_t kControlContext = 3;
inline constexpr std::uint32_t kControlKeep = 4;
inline constexpr std::uint32_t kControlClear = 5;
inline constexpr std::uint32_t kControlSign = 6;
inline constexpr std::uint32_t kControlForget = 7;

inline constexpr std::uint32_t kGroupPlace = 1;
inline constexpr std::uint32_t kPlaceTake = 0;
inline constexpr std::uint32_t kPlaceWith = 1;
inline constexpr std::uint32_t kPlaceKeep = 2;
inline constexpr std::uint32_t kPlaceRemote = 3;

inline constexpr std::uint32_t kGroupPeer = 2;
inline constexpr std::uint32_t kPeerArrive = 0;
inline constexpr std::uint32_t kPeerSend = 1;
inline constexpr std::uint32_t kPeerFetch = 2;
inline constexpr std::uint32_t kPeerStore = 3;

inline constexpr std::uint32_t kGroupBuild = 3;
inline constexpr std::uint32_t kBuildBegin = 0;
inline constexpr std::uint32_t kBuildCount = 1;
inline constexpr std::uint32_t kBuildCountIndirect = 2;
inline constexpr std::uint32_t kBuildSignal = 3;
inline constexpr std::uint32_t kBuildSwap = 4;
inline constexpr std::uint32_t kBuildAfter = 5;
inline constexpr std::uint32_t kBuildStreamAfter = 6;
inline constexpr std::uint32_t kBuildFunction = 7;
inline constexpr std::uint32_t kBuildTakeStream = 8;
inline constexpr std::uint32_t kBuildKeepStream = 9;
inline constexpr std::uint32_t kBuildAfterAll = 10;
inline constexpr std::uint32_t kBuildEmit = 11;
inline constexpr std::uint32_t kBuildList = 12;
inline constexpr std::uint32_t kBuildMoves = 13;

inline constexpr std::uint32_t kGroupDescriptor = 4;
inline constexpr std::uint32_t kGroupCommunicator = 5;

inline constexpr std::uint32_t kGroupCheck = 6;
inline constexpr std::uint32_t kCheckBegin = 0;
inline constexpr std::uint32_t kCheckLong = 1;
inline constexpr std::uint32_t kCheckWord = 2;
inline constexpr std::uint32_t kCheckHalf = 3;
inline constexpr std::uint32_t kCheckValue = 4;
inline constexpr std::uint32_t kDivideTotal = 8;
inline constexpr std::uint32_t kDivideQuotient = 9;
inline constexpr std::uint32_t kDivideHigh = 10;
inline constexpr std::uint32_t kDivideRest = 11;
inline constexpr std::uint32_t kBitWidth = 12;
inline constexpr std::uint32_t kBitReverse = 13;

inline constexpr std::uint32_t kGroupCovers = 7;

// Work items, as kControlNext gives them.
inline constexpr std::uint32_t kWorkStart = 1;
inline constexpr std::uint32_t kWorkMore = 2;
inline constexpr std::uint32_t kWorkControl = 3;
inline constexpr std::uint32_t kNextHitBit = 2;
inline constexpr std::uint32_t kNextSlotBit = 3;
inline constexpr std::uint32_t kNextPlanBit = 7;
inline constexpr std::uint32_t kNextFaultCodeBit = 8;
inline constexpr std::uint32_t kNextFaultBit = 31;
/// Plans whose keys the unit keeps.
inline constexpr std::uint32_t kPlans = 16;

// Words of the communicator table, and bits of the first.
inline constexpr std::uint32_t kCommunicatorState = 0;
inline constexpr std::uint32_t kCommunicatorNumber = 1;
inline constexpr std::uint32_t kCommunicatorRank = 2;
inline constexpr std::uint32_t kCommunicatorSize = 3;
inline constexpr std::uint32_t kCommunicatorGroup = 4;
inline constexpr std::uint32_t kCommunicatorEager = 5;
inline constexpr std::uint32_t kCommunicatorDatatypes = 6;
inline constexpr std::uint32_t kCommunicatorFuncs = 7;
inline constexpr std::uint32_t kCommunicatorValid = 0;
inline constexpr std::uint32_t kCommunicatorRevoked = 1;
inline constexpr std::uint32_t kCommunicatorCrowded = 2;

inline constexpr std::uint32_t kSpaceLocal = 0;
inline constexpr std::uint32_t kSpaceCollective = 1;
inline constexpr std::uint32_t kSpacePointToPoint = 2;

/// One instruction, for its effect. All are in program order: the unit has state.
template <std::uint32_t Group, std::uint32_t Operation>
UNISONO_INLINE void tell(std::uint32_t first = 0, std::uint32_t second = 0) {
  asm volatile(".insn r 0x0b, %0, %1, x0, %z2, %z3" : : "i"(Group), "i"(Operation), "rJ"(first), "rJ"(second));
}

/// One instruction, for its effect and its answer.
template <std::uint32_t Group, std::uint32_t Operation>
UNISONO_INLINE std::uint32_t ask(std::uint32_t first = 0, std::uint32_t second = 0) {
  std::uint32_t answer;
  asm volatile(".insn r 0x0b, %1, %2, %0, %z3, %z4"
               : "=r"(answer)
               : "i"(Group), "i"(Operation), "rJ"(first), "rJ"(second));
  return answer;
}

/// One instruction whose answer depends on its operand alone: the compiler may move it, join it with its like, or leave
/// it out.
template <std::uint32_t Group, std::uint32_t Operation>
UNISONO_INLINE std::uint32_t compute(std::uint32_t first) {
  std::uint32_t answer;
  asm(".insn r 0x0b, %1, %2, %0, %z3, x0" : "=r"(answer) : "i"(Group), "i"(Operation), "rJ"(first));
  return answer;
}

template <std::uint32_t Word>
UNISONO_INLINE std::uint32_t descriptor() {
  return ask<kGroupDescriptor, Word>();
}

template <std::uint32_t Word>
UNISONO_INLINE std::uint32_t communicator() {
  return ask<kGroupCommunicator, Word>();
}

/// Whether the 64-bit word `Word` of the descriptor is less than `bytes`.
template <std::uint32_t Word>
UNISONO_INLINE std::uint32_t lacks(std::uint64_t bytes) {
  return ask<kGroupCovers, Word>(static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(bytes >> 32U));
}

}  // namespace unisono::port
