#include "reference/equivalent.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/event_graph.hpp"
#include "reference/expectation.hpp"

namespace unisono::reference {
namespace {

bool memory(const Operand& operand) { return operand.kind == OperandKind::kMemory; }

// Whether an operand or result of a move lies beyond `bytes` of scratch.
bool touches_beyond(const Job& job, std::uint32_t rank, std::uint64_t bytes) {
  for (const Move& move : job.programs[rank].moves) {
    const std::uint64_t count = move.count_indirect ? job.params[rank][move.count / 8] : move.count;
    for (const Operand* slot : {&move.op0, &move.op1, &move.local}) {
      if (!memory(*slot) || slot->region != Region::kScratch || count == 0) continue;
      const std::uint64_t offset = slot->indirect ? job.params[rank][slot->offset / 8] : slot->offset;
      if (offset + count * bytes_of(move.dtype) > bytes) return true;
    }
  }
  return false;
}

// Whether two moves of a program have messages of the same direction with the same peer.
bool share_a_peer(const Program& program, const Move& a, const Move& b) {
  const auto peers = [&](PeerMode mode, std::uint32_t peer) -> std::vector<std::uint32_t> {
    if (mode == PeerMode::kRank) return {peer};
    const auto first = program.pool.begin() + peer + 1;
    return {first, first + program.pool[peer]};
  };
  const auto meet = [](const std::vector<std::uint32_t>& x, const std::vector<std::uint32_t>& y) {
    return std::find_first_of(x.begin(), x.end(), y.begin(), y.end()) != x.end();
  };
  const bool sends = a.remote.kind == RemoteKind::kMessage && b.remote.kind == RemoteKind::kMessage;
  const bool arrive = a.op1.kind == OperandKind::kArrival && b.op1.kind == OperandKind::kArrival;
  return (sends && meet(peers(a.remote.mode, a.remote.peer), peers(b.remote.mode, b.remote.peer))) ||
         (arrive && meet(peers(a.arrival.mode, a.arrival.peer), peers(b.arrival.mode, b.arrival.peer)));
}

// Bytes of a region of the rank that runs a move.
struct Bytes {
  Region region = Region::kSrc;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool holds(const Bytes& other) const { return region == other.region && begin <= other.begin && other.end <= end; }
  bool meets(const Bytes& other) const { return region == other.region && begin < other.end && other.begin < end; }
};

Bytes bytes_at(const Job& job, std::uint32_t rank, const Move& move, const Operand& slot) {
  const std::uint64_t count = move.count_indirect ? job.params[rank][move.count / 8] : move.count;
  const std::uint64_t begin = slot.indirect ? job.params[rank][slot.offset / 8] : slot.offset;
  return {slot.region, begin, begin + count * bytes_of(move.dtype)};
}

// Whether an earlier move of the rank has copied `from` to `to`, perhaps with more, and no move between that one and
// `end` writes either.
bool is_copy(const Job& job, std::uint32_t rank, std::uint32_t before, std::size_t end, const Bytes& from,
             const Bytes& to) {
  const auto& moves = job.programs[rank].moves;
  for (std::uint32_t i = 0; i < before; ++i) {
    const Move& copy = moves[i];
    if (!memory(copy.op0) || copy.op1.kind != OperandKind::kNone || !memory(copy.local)) continue;
    const Bytes source = bytes_at(job, rank, copy, copy.op0);
    const Bytes target = bytes_at(job, rank, copy, copy.local);
    if (!source.holds(from) || !target.holds(to) || from.begin - source.begin != to.begin - target.begin) continue;
    return std::none_of(moves.begin() + i + 1, moves.begin() + static_cast<std::ptrdiff_t>(end),
                        [&](const Move& later) {
                          if (!memory(later.local)) return false;
                          const Bytes written = bytes_at(job, rank, later, later.local);
                          return written.meets(from) || written.meets(to);
                        });
  }
  return false;
}

// Whether the one word of params that differs is a place in scratch only, and what stands there is alone, and has room,
// in both programs: the rank then keeps the same elsewhere.
bool moves_a_place_in_scratch(const Job& original, const Job& mutant, std::uint32_t rank) {
  const auto& words = original.params[rank];
  const auto differs = std::mismatch(words.begin(), words.end(), mutant.params[rank].begin()).first;
  const auto word = static_cast<std::uint64_t>(differs - words.begin()) * 8;
  const auto alone = [&](const Job& job) {
    std::vector<Bytes> there;
    std::vector<Bytes> others;
    for (const Move& move : job.programs[rank].moves) {
      if (move.count_indirect && move.count == word) return false;
      for (const Operand* slot : {&move.op0, &move.op1, &move.local}) {
        if (!memory(*slot)) continue;
        const bool names = slot->indirect && slot->offset == word;
        if (names && slot->region != Region::kScratch) return false;
        const Bytes bytes = bytes_at(job, rank, move, *slot);
        if (names && bytes.end > job.bytes(rank, Region::kScratch)) return false;
        if (bytes.begin != bytes.end) (names ? there : others).push_back(bytes);
      }
    }
    return std::none_of(there.begin(), there.end(), [&](const Bytes& bytes) {
      return std::any_of(others.begin(), others.end(), [&](const Bytes& other) { return other.meets(bytes); });
    });
  };
  return alone(original) && alone(mutant);
}

// Whether nobody sees the element that a move has more: it had been copied there before, or is kept where something
// else is written before it is read, or where the collective leaves open what stands. Moves of messages, and at memory
// of peers, are left out.
bool adds_what_nobody_sees(const Job& original, const Mutant& mutant) {
  const Move& was = original.programs[mutant.rank].moves[mutant.move];
  const Move& is = mutant.job.programs[mutant.rank].moves[mutant.move];
  const bool alone = is.remote.kind == RemoteKind::kNone && (is.op1.kind == OperandKind::kNone || memory(is.op1));
  if (!memory(is.local) || !alone) return false;
  for (const Operand* slot : {&is.op0, &is.op1, &is.local}) {
    if (!memory(*slot)) continue;
    const Bytes bytes = bytes_at(mutant.job, mutant.rank, is, *slot);
    if (bytes.end > mutant.job.bytes(mutant.rank, bytes.region)) return false;
  }
  const Bytes before = bytes_at(original, mutant.rank, was, was.local);
  const Bytes after = bytes_at(mutant.job, mutant.rank, is, is.local);
  const std::uint64_t element = bytes_of(is.dtype);
  if (after.begin != before.begin || after.end != before.end + element) return false;
  const bool open =
      after.region == Region::kScratch ||
      (after.region == Region::kDst &&
       expected(original, mutant.rank, after.region, before.end / element).kind == Expected::Kind::kAnything);
  const EventGraph graph(mutant.job);
  if (memory(is.op0) && is.op1.kind == OperandKind::kNone) {
    const std::uint64_t from = bytes_at(original, mutant.rank, was, was.op0).end;
    const std::size_t moves = original.programs[mutant.rank].moves.size();
    if (is_copy(original, mutant.rank, mutant.move, moves, {is.op0.region, from, from + element},
                {after.region, before.end, after.end})) {
      return !graph.first_unordered();
    }
  }
  return !graph.first_unordered_or_seen(mutant.rank, mutant.move, (before.end - before.begin) / element, open);
}

}  // namespace

std::optional<std::string> equivalent(const Job& original, const Mutant& mutant) {
  switch (mutant.mutation) {
    case Mutation::kDropDependency:
    case Mutation::kDropSegmentDependency:
      if (!EventGraph(mutant.job).first_unordered()) return "the dependency is redundant: all accesses stay ordered";
      return std::nullopt;
    case Mutation::kDropSignal:
      if (!EventGraph(mutant.job).first_unordered())
        return "the signal is redundant: all accesses and exits are ordered";
      return std::nullopt;
    case Mutation::kWrongRegion:
    case Mutation::kOtherChunk:
    case Mutation::kOperandOffset: {
      const Move& was = original.programs[mutant.rank].moves[mutant.move];
      const Move& is = mutant.job.programs[mutant.rank].moves[mutant.move];
      if (is.op0 != was.op0 && is.local == was.local &&
          // Where the region is another one, what is written later is so after the operand was read, or it would show.
          is_copy(original, mutant.rank, mutant.move,
                  mutant.mutation == Mutation::kWrongRegion ? mutant.move : original.programs[mutant.rank].moves.size(),
                  bytes_at(original, mutant.rank, is, is.op0), bytes_at(original, mutant.rank, was, was.op0)) &&
          !EventGraph(mutant.job).first_unordered()) {
        return "the operand is taken from where it had been copied from";
      }
      return std::nullopt;
    }
    case Mutation::kFlipSwap:
      if (original.algorithm != nullptr && !original.ordered()) {
        return "the function is commutative and the algorithm promises no order";
      }
      return std::nullopt;
    case Mutation::kScratchTooSmall:
      if (!touches_beyond(mutant.job, mutant.rank, mutant.job.bytes(mutant.rank, Region::kScratch))) {
        return "no move touches the scratch that is gone";
      }
      return std::nullopt;
    case Mutation::kExchangeMoves: {
      const Program& program = original.programs[mutant.rank];
      const auto& moves = program.moves;
      const Move& second = moves[mutant.move + 1];
      const bool linked =
          (second.dependencies & 1U) != 0 || second.segment_dependency0 == 1 || second.segment_dependency1 == 1;
      if (!linked && !share_a_peer(program, moves[mutant.move], second)) {
        return "no link and no common peer: program order has no other meaning";
      }
      if (!share_a_peer(program, moves[mutant.move], second) && moves.size() <= kWindow &&
          !EventGraph(mutant.job).first_unordered()) {
        return "no common peer, and all accesses stay ordered";
      }
      return std::nullopt;
    }
    case Mutation::kMoreElements:
      if (adds_what_nobody_sees(original, mutant)) return "nobody sees the element that is written beyond";
      return std::nullopt;
    case Mutation::kParamsWord:
      if (moves_a_place_in_scratch(original, mutant.job, mutant.rank)) return "the same, at another place of scratch";
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace unisono::reference
