// Reduce in the network: switches fold what comes from below; the result goes from the top down to the root alone.
//
// Source: ACiS (Haghi, thesis 2023), section 3. Cost over d levels of switches: 2 d alpha + 2 n beta, n bytes on every
// link up, and on those to the root down.
//
// The order is that of the all-reduce, whatever the root is, so that both have equal bits.
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/sides.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t reduce_switch_scratch_bytes(const Call& call) {
  if (call.tree == nullptr || !TreePlace(call).keeps_partial()) return 0;
  return call.count * element_bytes(call);
}

std::uint32_t reduce_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : 1; }

void reduce_switch_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.tree == nullptr) return;
  const TreePlace here(call);
  const bool is_root = call.rank == call.root;
  const std::uint32_t up_tag = tag_up(call, here.position(call.root));
  const std::uint32_t down_tag = tag_down(call, here.position(call.root));
  if (here.is_idle() || (here.neighbours() == 0 && call.in_place)) return;
  here.fold_up(call, emit, reduce_input(call), scratch(), up_tag, [&](Build& up) {
    if (here.above() != kNoNode) {
      emit(up.send(here.above(), up_tag));
    } else if (is_root) {
      emit(up.keep(dst()));
    } else {
      emit(up.send(here.toward(call.root), down_tag));
    }
  });
  if (here.above() == kNoNode) return;
  Build down(call);
  down.count(call.count).arrive(here.above(), down_tag);
  if (is_root) {
    emit(down.keep(dst()));
  } else if (const std::uint32_t next = here.toward(call.root); next != here.above()) {
    emit(down.send(next, down_tag));
  }
}

}  // namespace unisono::collectives
