// Barrier in the network: signals go up to the top of the tree, and down again.
//
// Source: ACiS (Haghi, thesis 2023), section 3. Cost over d levels of switches: 2 d alpha.
#include "collectives/barrier/barrier.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t barrier_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : 1; }

void barrier_switch_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.tree == nullptr) return;
  const std::uint32_t up_tag = tag_up(call);
  const std::uint32_t down_tag = tag_down(call);
  const TreePlace here(call);
  if (here.neighbours() == 0) return;
  // What comes from below one of this rank's switches has been waited for before it is waited for at the next.
  bool follows = false;
  const auto wait = [&](Build& move) {
    if (follows) move.after(1);
    follows = true;
    emit(move.signal());
  };
  for (std::uint32_t node = here.lowest(); node != kNoNode; node = here.next(node)) {
    Build up(call);
    here.arrive(up, emit, node, up_tag);
    if (node == here.top() && here.above() != kNoNode) {
      up.send(here.above(), up_tag);
    } else if (node == here.top()) {
      here.send_below(up, emit, down_tag);
    }
    wait(up);
  }
  if (here.above() == kNoNode) return;
  if (here.top() == kNoNode) {
    Build up(call);
    wait(up.send(here.above(), up_tag));
  }
  Build down(call);
  down.arrive(here.above(), down_tag);
  here.send_below(down, emit, down_tag);
  emit(down.signal());
}

}  // namespace unisono::collectives
