// Reduce-scatter in the network: block after block, in the order of the tree, is folded up to the top and sent down to
// the one member whose it is.
//
// Source: ACiS (Haghi, thesis 2023), section 3. Cost over d levels of switches: 2 d alpha + P n beta, n bytes a block.
#include "collectives/reduce_scatter/reduce_scatter.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

/// In place, the result stands where rank 0's block was. Whose block travels before that one keeps its result apart
/// until all blocks have been read.
bool keeps_result(const Call& call, const TreePlace& here) {
  return call.in_place && !here.is_switch() && here.position(call.rank) < here.position(0);
}

std::uint64_t partial_bytes(const Call& call, const TreePlace& here) {
  return here.keeps_partial() ? call.size * call.count * element_bytes(call) : 0;
}

}  // namespace

std::uint64_t reduce_scatter_switch_scratch_bytes(const Call& call) {
  if (call.tree == nullptr) return 0;
  const TreePlace here(call);
  return partial_bytes(call, here) + (keeps_result(call, here) ? call.count * element_bytes(call) : 0);
}

std::uint32_t reduce_scatter_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : call.size; }

void reduce_scatter_switch_step(const Call& call, std::uint32_t s, Emit& emit) {
  if (call.tree == nullptr) return;
  const std::uint32_t up_tag = tag_up(call, s);
  const std::uint32_t down_tag = tag_down(call, s);
  const TreePlace here(call);
  const std::uint32_t member = here.member(s);
  const bool is_own = call.rank == member;
  const std::uint64_t offset = member * call.count * element_bytes(call);
  const bool apart = keeps_result(call, here);
  const Place result = apart ? scratch(partial_bytes(call, here)) : dst();
  const Place operand = call.in_place ? dst(offset) : src(offset);
  if (here.is_idle() || (here.neighbours() == 0 && call.in_place)) return;
  here.fold_up(call, emit, operand, scratch(offset), up_tag, [&](Build& up) {
    if (here.above() != kNoNode) {
      emit(up.send(here.above(), up_tag));
    } else if (is_own) {
      emit(up.keep(result));
    } else {
      emit(up.send(here.toward(member), down_tag));
    }
  });
  if (here.above() != kNoNode) {
    Build down(call);
    down.count(call.count).arrive(here.above(), down_tag);
    if (is_own) {
      emit(down.keep(result));
    } else if (const std::uint32_t next = here.toward(member); next != here.above()) {
      emit(down.send(next, down_tag));
    }
  }
  if (apart && s + 1 == call.size) emit(Build(call).take(result).keep(dst()).count(call.count).after_all(emit.moves()));
}

}  // namespace unisono::collectives
