// Direct scatter: every rank takes its block from the root's src.
//
// Source: this project. Cost: sigma + alpha + n beta, n bytes a block; sigma is the entry of all ranks. In place
// sigma + alpha + n (P-1)/P beta.
//
// One move a rank: the root copies its own block, the others read theirs, n bytes each. In place the root has no block
// to copy, so it writes the first of P shares of every other block instead, and their owners read the rest:
// n (P-1)/P bytes each.
#include "collectives/direct.hpp"

#include "collectives/scatter/scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool scatter_direct_admits(const Call& call) { return admits_direct(call); }

std::uint32_t scatter_direct_steps(const Call& call) {
  if (call.count == 0) return 0;
  return call.in_place && call.rank == call.root ? 2 : 1;
}

void scatter_direct_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint64_t bytes = call.count * element_bytes(call);
  const std::uint64_t written = call.in_place ? shares(call).count(0) : 0;  // of each block, by the root
  const bool read = written != call.count;
  const bool root = call.rank == call.root;
  const std::uint64_t rest = written * element_bytes(call);
  const std::uint64_t place = call.rank * bytes;
  if (root && call.in_place && s == 0) {
    for (std::uint32_t i = 0; i + 1 < call.size; ++i) {
      const std::uint32_t peer = other(call, i);
      emit(Build(call).take(src(peer * bytes)).store(peer, Region::kDst, 0).count(written));
    }
    return;
  }
  const std::uint32_t moves = root ? call.size - 1 : 1;  // that touch memory of others, if any do
  if (root && !call.in_place) {
    emit(Build(call).take(src(place)).keep(dst()).count(call.count));
  } else if (!root && read) {
    emit(Build(call).fetch(call.root, Region::kSrc, place + rest).keep(dst(rest)).count(call.count - written));
  }
  // The root touches the others' memory if it writes, the others the root's if there is anything to read.
  const auto touches = [&](bool by_root, std::uint32_t whose) {
    return by_root ? written != 0 : whose == call.root && read;
  };
  leave(
      call, emit, moves, [&](std::uint32_t peer) { return touches(root, peer); },
      [&](std::uint32_t peer) { return touches(peer == call.root, call.rank); });
}

}  // namespace unisono::collectives
