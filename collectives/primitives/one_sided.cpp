// One-sided access to a peer's window: put and get. The peer is the call's root; the engine adds the
// call's offset within the window.
//
// Source: ACCL+ section 4.2.1 (remote memory as operand and result of a move).
// Cost: put alpha + n beta, get 2 alpha + n beta.
#include "collectives/build.hpp"
#include "collectives/primitives/primitives.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

void put_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  emit(Build(call).take(src()).store(call.root, Region::kWindow, 0).count(call.count));
}

void get_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  emit(Build(call).fetch(call.root, Region::kWindow, 0).keep(dst()).count(call.count));
}

}  // namespace unisono::collectives
