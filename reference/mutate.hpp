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
  kSendPeer,       ///< the message goes to another rank
  kArrivalPeer,    ///< the message is awaited from another rank
  kTag,            ///< of a message or an arrival
  kOperandOffset,  ///< one element before or after
  kLocalOffset,
  kOtherChunk,  ///< operand or result a whole block away
  kFewerElements,
  kMoreElements,
  kRemoveMove,
  kRemoveSend,
  kRemoveArrival,
  kRemoveLocalResult,
  kRemoveOperand,
  kWrongFunc,
  kFlipSwap,
  kWrongRegion,
  kDuplicateMove,
  kExchangeMoves,  ///< a move and the next change places
  kScratchTooSmall,
  kParamsWord,    ///< a count or offset in params that a move reads
  kRemoteOffset,  ///< a put or get one element away
};
inline constexpr std::uint32_t kMutations = 23;

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

/// Whether a mutant provably behaves like the job it was made of, with the reason in words. Decided without the
/// checker, by these rules:
///
/// - a dependency was dropped, and the plain event graph (reference/event_graph.hpp) still orders all accesses;
/// - swap was flipped, and the algorithm promises no order: the functions are commutative;
/// - scratch was made smaller, and no move touches what is gone;
/// - two neighbours changed places that share no peer in the same direction, and no link between them was lost, for
///   then program order says nothing about them (rule 11); or one was lost, but neither touches a byte the other writes
///   and the event graph of the result still orders all accesses.
std::optional<std::string> equivalent(const Job& original, const Mutant& mutant);

}  // namespace unisono::reference
