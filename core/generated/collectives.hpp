// Generated from spec/ by `python -m spec.generator`. Do not edit.
// What holds of each collective, and which memory it uses. Freestanding.
#pragma once

#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono {

/// Who takes part in a call.
enum class CallKind : std::uint8_t {
  kCollective,  ///< all ranks take part
  kMessage,     ///< two ranks, matched by the user's tag
  kAccess,      ///< one rank, at the memory that a peer has exposed
  kLocal,       ///< one rank alone
  kProgram,     ///< a program of the user, whose buffers are bound as they are given
};

/// What holds of a collective (docs/model.md).
struct CollectiveFacts {
  bool known = false;
  CallKind kind = CallKind::kCollective;
  bool reduces = false;         ///< takes an operator
  bool mean = false;            ///< takes avg as well
  bool rooted = false;          ///< root or peer is a rank
  bool in_place = false;        ///< has an in-place form
  bool data = false;            ///< moves elements
  bool blocks = false;          ///< its count is that of one rank's block
  bool vectors = false;         ///< has a count for each rank
  bool sends = false;           ///< these are of what is sent
  bool receives = false;        ///< these are of what is received
  bool local = false;           ///< no message of its own
  bool point_to_point = false;  ///< matched by user tag
  /// Whose measurement tells from which size on ordinary buffers are copied by the kernel.
  Collective copies_like = Collective::kBcast;

  /// There is a count for each pair, of which a rank knows its own; otherwise all ranks know all counts.
  constexpr bool pairwise() const { return sends && receives; }
};

/// The facts of a collective; not `known` if there is none of that number.
constexpr CollectiveFacts facts_of(Collective collective) {
  switch (collective) {
    case Collective::kNop:
      return {.known = true, .kind = CallKind::kLocal, .local = true};
    case Collective::kCopy:
      return {.known = true, .kind = CallKind::kLocal, .data = true, .local = true};
    case Collective::kCombine:
      return {.known = true, .kind = CallKind::kLocal, .reduces = true, .data = true, .local = true};
    case Collective::kSend:
    case Collective::kRecv:
      return {.known = true, .kind = CallKind::kMessage, .rooted = true, .data = true, .point_to_point = true};
    case Collective::kPut:
    case Collective::kGet:
      return {.known = true, .kind = CallKind::kAccess, .rooted = true, .data = true, .local = true};
    case Collective::kBcast:
      return {.known = true, .kind = CallKind::kCollective, .rooted = true, .data = true};
    case Collective::kReduce:
      return {.known = true, .kind = CallKind::kCollective, .reduces = true, .mean = true, .rooted = true,
              .in_place = true, .data = true, .copies_like = Collective::kAllreduce};
    case Collective::kAllreduce:
      return {.known = true, .kind = CallKind::kCollective, .reduces = true, .mean = true, .in_place = true,
              .data = true, .copies_like = Collective::kAllreduce};
    case Collective::kReduceScatter:
      return {.known = true, .kind = CallKind::kCollective, .reduces = true, .mean = true, .in_place = true,
              .data = true, .blocks = true, .copies_like = Collective::kAllreduce};
    case Collective::kAllgather:
    case Collective::kAlltoall:
      return {.known = true, .kind = CallKind::kCollective, .in_place = true, .data = true, .blocks = true,
              .copies_like = Collective::kAllgather};
    case Collective::kGather:
    case Collective::kScatter:
      return {.known = true, .kind = CallKind::kCollective, .rooted = true, .in_place = true, .data = true,
              .blocks = true};
    case Collective::kGatherv:
      return {.known = true, .kind = CallKind::kCollective, .rooted = true, .in_place = true, .data = true,
              .vectors = true, .receives = true};
    case Collective::kScatterv:
      return {.known = true, .kind = CallKind::kCollective, .rooted = true, .in_place = true, .data = true,
              .vectors = true, .sends = true};
    case Collective::kAllgatherv:
      return {.known = true, .kind = CallKind::kCollective, .in_place = true, .data = true, .vectors = true,
              .receives = true};
    case Collective::kAlltoallv:
      return {.known = true, .kind = CallKind::kCollective, .in_place = true, .data = true, .vectors = true,
              .sends = true, .receives = true};
    case Collective::kScan:
    case Collective::kExscan:
      return {.known = true, .kind = CallKind::kCollective, .reduces = true, .in_place = true, .data = true};
    case Collective::kBarrier:
      return {.known = true, .kind = CallKind::kCollective};
    case Collective::kReduceScatterv:
      return {.known = true, .kind = CallKind::kCollective, .reduces = true, .mean = true, .in_place = true,
              .data = true, .vectors = true, .receives = true};
    case Collective::kProgram:
      return {.known = true, .kind = CallKind::kProgram, .rooted = true, .in_place = true};
  }
  return {};
}

/// The collectives that take avg, in words.
inline constexpr const char* kTakesMean = "reduce, allreduce, reduce_scatter and reduce_scatterv";

/// A part of a buffer.
enum class Extent : std::uint8_t {
  kNothing,   ///< none of it
  kN,         ///< the count
  kAll,       ///< the count of each rank
  kOwn,       ///< this rank's block, of a count for each rank
  kBlock,     ///< this rank's one of all blocks
  kSent,      ///< all blocks, as the counts to send say
  kReceived,  ///< all blocks, as the counts to receive say
};

/// What a call uses of its buffers on one rank.
struct Uses {
  Extent src = Extent::kNothing;     ///< bound, and read
  Extent dst = Extent::kNothing;     ///< bound
  Extent reads = Extent::kNothing;   ///< of dst: input
  Extent writes = Extent::kNothing;  ///< of dst: result
};

/// What a call uses on the root or elsewhere; without a root, rank 0 is meant. Of programs nothing is known.
constexpr Uses uses_of(Collective collective, bool root, bool in_place) {
  using enum Extent;
  switch (collective) {
    case Collective::kNop:
    case Collective::kBarrier:
    case Collective::kProgram:
      return {};
    case Collective::kCopy:
      return {.src = kN, .dst = kN, .writes = kN};
    case Collective::kCombine:
      return {.src = kN, .dst = kN, .reads = kN, .writes = kN};
    case Collective::kSend:
    case Collective::kPut:
      return {.src = kN};
    case Collective::kRecv:
    case Collective::kGet:
      return {.dst = kN, .writes = kN};
    case Collective::kBcast:
      return {.dst = kN, .reads = root ? kN : kNothing, .writes = kN};
    case Collective::kReduce:
      return {.src = root && in_place ? kNothing : kN, .dst = root ? kN : kNothing,
              .reads = root && in_place ? kN : kNothing, .writes = root ? kN : kNothing};
    case Collective::kAllreduce:
    case Collective::kScan:
      return {.src = in_place ? kNothing : kN, .dst = kN, .reads = in_place ? kN : kNothing, .writes = kN};
    case Collective::kReduceScatter:
      return {.src = in_place ? kNothing : kAll, .dst = in_place ? kAll : kN, .reads = in_place ? kAll : kNothing,
              .writes = kN};
    case Collective::kAllgather:
      return {.src = in_place ? kNothing : kN, .dst = kAll, .reads = in_place ? kBlock : kNothing, .writes = kAll};
    case Collective::kGather:
      return {.src = root && in_place ? kNothing : kN, .dst = root ? kAll : kNothing,
              .reads = root && in_place ? kBlock : kNothing, .writes = root ? kAll : kNothing};
    case Collective::kScatter:
      return {.src = root ? kAll : kNothing, .dst = root && in_place ? kNothing : kN,
              .writes = root && in_place ? kNothing : kN};
    case Collective::kGatherv:
      return {.src = root && in_place ? kNothing : kOwn, .dst = root ? kReceived : kNothing,
              .reads = root && in_place ? kBlock : kNothing, .writes = root ? kReceived : kNothing};
    case Collective::kScatterv:
      return {.src = root ? kSent : kNothing, .dst = root && in_place ? kNothing : kOwn,
              .writes = root && in_place ? kNothing : kOwn};
    case Collective::kAllgatherv:
      return {.src = in_place ? kNothing : kOwn, .dst = kReceived, .reads = in_place ? kBlock : kNothing,
              .writes = kReceived};
    case Collective::kAlltoall:
      return {.src = in_place ? kNothing : kAll, .dst = kAll, .reads = in_place ? kAll : kNothing, .writes = kAll};
    case Collective::kAlltoallv:
      return {.src = in_place ? kNothing : kSent, .dst = kReceived, .reads = in_place ? kReceived : kNothing,
              .writes = kReceived};
    case Collective::kExscan:
      return {.src = in_place ? kNothing : kN, .dst = kN, .reads = in_place ? kN : kNothing,
              .writes = root ? kNothing : kN};
    case Collective::kReduceScatterv:
      return {.src = in_place ? kNothing : kReceived, .dst = in_place ? kReceived : kOwn,
              .reads = in_place ? kReceived : kNothing, .writes = kOwn};
  }
  return {};
}

}  // namespace unisono
