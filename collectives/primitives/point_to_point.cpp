// Point-to-point messages: send and recv. The peer is the call's root; the engine binds the user tag.
//
// Source: ACCL section IV.D. Cost: alpha + n beta. The moves are signals as well, because an empty
// message is one that the other side waits for: neither end knows the count of the other.
#include "collectives/build.hpp"
#include "collectives/primitives/primitives.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

void send_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  emit(Build(call).take(src()).send(call.root, 0).count(call.count).signal());
}

void recv_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  emit(Build(call).arrive(call.root, 0).keep(dst()).count(call.count).signal());
}

}  // namespace unisono::collectives
