// Direct broadcast: the root writes one share into every dst, the others read the rest.
//
// Source: this project. Cost: sigma + alpha + n (P-1)/P beta; sigma is the entry of all ranks.
//
// P-1 ranks need n bytes each. Every rank copies (P-1)/P n of them: the root writes the first of P shares to the P-1
// others, and each other reads the P-1 shares that are left from the root. One move a rank. A share is whole cache
// lines, so root and reader never write the same line.
#include "collectives/direct.hpp"

#include "collectives/bcast/bcast.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool bcast_direct_admits(const Call& call) { return admits_direct(call); }

std::uint32_t bcast_direct_steps(const Call& call) { return call.count == 0 ? 0 : 1; }

void bcast_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.size == 1) return;
  const bool root = call.rank == call.root;
  const std::uint64_t written = shares(call).count(0);
  const std::uint64_t read = call.count - written;
  if (root) {
    Build write(call);
    write.take(dst()).count(written);
    store_to(write, emit, call.size - 1, dst(), [&](std::uint32_t i) { return other(call, i); });
    emit(write);
  } else if (read != 0) {
    const std::uint64_t offset = written * element_bytes(call);
    emit(Build(call).fetch(call.root, Region::kDst, offset).keep(dst(offset)).count(read));
  }
  // The root touches everybody's memory, the others the root's, if there is anything to read.
  const auto touches = [&](bool by_root, std::uint32_t whose) { return by_root || (whose == call.root && read != 0); };
  leave(
      call, emit, 1, [&](std::uint32_t peer) { return touches(root, peer); },
      [&](std::uint32_t peer) { return touches(peer == call.root, call.rank); });
}

}  // namespace unisono::collectives
