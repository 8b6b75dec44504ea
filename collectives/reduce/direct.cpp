// Direct reduction: every rank sums one share of the vector, straight from all and straight into the root's dst.
//
// Source: this project. Cost: sigma + alpha + n beta + n (P-1)/P gamma; sigma is the entry of all ranks. In place
// n/P beta more on the ranks that pass a part through scratch.
//
// Each rank reads its share from every rank's src, adds in rank order and delivers the sum to the root, in one move.
// Shares are whole cache lines, so no line of dst is written by two ranks.
//
// In place, the root's operand stands in its dst instead, and one move reads one region of its peers. So a rank folds
// the ranks below the root into scratch, the root's share onto that, and then the ranks above the root, each move
// following the one before it element by element: the same order, and the same bits but for fp16 and bf16, which round
// once in each move. Where only one operand lies on a side, and is at hand, it needs no scratch.
#include "collectives/direct.hpp"

#include "collectives/reduce/reduce.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// Delivers a sum to the root's share.
void to_root(const Call& call, Build& move, std::uint64_t offset) {
  if (call.rank == call.root) {
    move.keep(dst(offset));
  } else {
    move.store(call.root, Region::kDst, offset);
  }
}

// The moves of one share in place; how many they are.
std::uint32_t share_in_place(const Call& call, Emit& emit, std::uint64_t offset, std::uint64_t count) {
  const std::uint32_t root = call.root;
  const bool at_root = call.rank == root;
  const std::uint32_t above = call.size - 1 - root;
  if (call.size == 2 && !at_root) {
    Build both(call);
    both.take(src(offset)).fetch(root, Region::kDst, offset).arrival_first(root == 0).count(count);
    to_root(call, both, offset);
    emit(both);
    return 1;
  }
  std::uint32_t moves = 0;
  if (root != 0) {
    Build below(call);
    fetch_from(below, emit, root, src(offset), [](std::uint32_t i) { return i; });
    if (at_root && root == 1) {
      below.take(dst(offset)).arrival_first().keep(dst(offset)).count(count);
      emit(below);
      ++moves;
    } else {
      emit(below.keep(scratch()).count(count));
      ++moves;
      Build own(call);
      own.take(scratch()).stream_after(1).count(count);
      if (at_root) {
        own.with(dst(offset));
      } else {
        own.fetch(root, Region::kDst, offset);
      }
      if (at_root || above == 0) {
        to_root(call, own, offset);
      } else {
        own.keep(scratch());
      }
      emit(own);
      ++moves;
    }
  } else if (!at_root) {
    emit(Build(call).fetch(root, Region::kDst, offset).keep(scratch()).count(count));
    ++moves;
  }
  if (above != 0) {
    Build rest(call);
    rest.take(at_root ? dst(offset) : scratch()).stream_after(moves != 0 ? 1 : 0).count(count);
    fetch_from(rest, emit, above, src(offset), [&](std::uint32_t i) { return root + 1 + i; });
    to_root(call, rest, offset);
    emit(rest);
    ++moves;
  }
  return moves;
}

}  // namespace

bool reduce_direct_admits(const Call& call) { return admits_direct(call); }

std::uint64_t reduce_direct_scratch_bytes(const Call& call) {
  if (!call.in_place || call.size <= 2 || (call.rank == call.root && call.root < 2)) return 0;
  return shares(call).count(call.rank) * element_bytes(call);
}

std::uint32_t reduce_direct_steps(const Call& call) { return call.count == 0 ? 0 : 1; }

void reduce_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.size == 1) {
    if (!call.in_place) emit(Build(call).take(src()).keep(dst()).count(call.count));
    return;
  }
  const LineSplit split = shares(call);
  const std::uint64_t count = split.count(call.rank);
  const std::uint64_t offset = split.offset(call.rank);
  std::uint32_t moves = 0;
  if (count != 0 && call.in_place) {
    moves = share_in_place(call, emit, offset, count);
  } else if (count != 0) {
    Build share(call);
    share.count(count);
    fetch_from_all(share, emit, call, src(offset));
    to_root(call, share, offset);
    emit(share);
    moves = 1;
  }
  leave(
      call, emit, moves, [&](std::uint32_t) { return count != 0; },
      [&](std::uint32_t peer) { return split.count(peer) != 0; });
}

}  // namespace unisono::collectives
