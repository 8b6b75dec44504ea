// Deliberate mistakes, to test the checker: every one that changes behaviour must be found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/job.hpp"

namespace unisono::reference {

/// One kind of mistake in one move of one rank.
enum class Mutation : std::uint8_t {
  kDropDependency,
  kDropSegmentDependency,
  kSendPeer,       ///< the message, or the remote result, goes to another rank
  kArrivalPeer,    ///< the message is awaited, or the memory read, from another rank
  kTag,            ///< of a message or an arrival
  kOperandOffset,  ///< one element before or after
  kLocalOffset,
  kOtherChunk,  ///< operand or result a whole block away
  kFewerElements,
  kMoreElements,
  kRemoveMove,
  kRemoveSend,     ///< of a message, or of the result to memory of peers
  kRemoveArrival,  ///< of a message, or of the operand in memory of peers
  kRemoveLocalResult,
  kRemoveOperand,
  kWrongFunc,
  kFlipSwap,
  kWrongRegion,
  kDuplicateMove,
  kExchangeMoves,  ///< a move and the next change places
  kScratchTooSmall,
  kParamsWord,    ///< a count or offset in params that a move reads
  kRemoteOffset,  ///< memory of peers one element, or a whole chunk, away
  kRemoteRegion,  ///< src of peers instead of dst, or dst instead of src
  kDropPeer,      ///< a list of peers without one of them
  kDoublePeer,    ///< a list of peers with one of them in the place of another
  kDropSignal,    ///< an empty message is neither sent nor awaited; in direct calls, where it ends accesses
};
inline constexpr std::uint32_t kMutations = 27;

/// Name of a mutation as reports write it.
const char* name_of(Mutation mutation);

/// A job with one mistake.
struct Mutant {
  Job job;
  Mutation mutation = Mutation::kTag;
  std::uint32_t rank = 0;
  std::uint32_t move = 0;
  std::string what;  ///< the move before and after
};

/// Makes one mistake of a kind at a place chosen by `seed`; nothing if the job has no place for it. Distances of
/// dependencies are kept pointing at the same moves when moves come or go. Moves that do nothing (count 0, no signal)
/// are left alone.
std::optional<Mutant> mutate(const Job& job, Mutation mutation, std::uint64_t seed);

/// Up to `count` different mutants, kinds in turn.
std::vector<Mutant> make_mutants(const Job& job, std::uint32_t count, std::uint64_t seed);

}  // namespace unisono::reference
