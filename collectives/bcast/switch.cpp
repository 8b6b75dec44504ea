// Broadcast in the network: each switch passes on what comes from the root's side to all others at once.
//
// Source: ACiS (Haghi, thesis 2023), section 3. Cost over d levels of switches: 2 d alpha + n beta, n bytes on every
// link.
#include "collectives/bcast/bcast.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : 1; }

void bcast_switch_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.tree == nullptr) return;
  const TreePlace here(call);
  if (here.neighbours() == 0) return;
  const std::uint32_t tag = tag_up(call, here.position(call.root));
  Build move(call);
  move.count(call.count);
  if (call.rank == call.root) {
    move.take(dst());
    here.send_on(move, emit, kNoNode, tag);
  } else {
    const std::uint32_t from = here.toward(call.root);
    move.arrive(from, tag);
    if (!here.is_switch()) move.keep(dst());
    here.send_on(move, emit, from, tag);
  }
  emit(move);
}

}  // namespace unisono::collectives
