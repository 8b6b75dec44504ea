// Gather in the network: switches pass block after block on to the root, in the order of the tree.
//
// Source: ACiS (Haghi, thesis 2023), section 3. Cost over d levels of switches: 2 d alpha + P n beta at the root, n
// bytes a block.
//
// Blocks travel in the order of the tree, so those from one port of a switch follow one another.
#include "collectives/gather/gather.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t gather_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : call.size; }

void gather_switch_step(const Call& call, std::uint32_t s, Emit& emit) {
  if (call.tree == nullptr) return;
  const TreePlace here(call);
  const std::uint32_t member = here.member(s);
  const std::uint32_t tag = tag_block(call, here.position(call.root), s);
  const std::uint64_t offset = member * call.count * element_bytes(call);
  if (member == call.root) {
    if (call.rank == member && !call.in_place) emit(Build(call).take(src()).keep(dst(offset)).count(call.count));
    return;
  }
  if (call.rank == call.root) {
    emit(Build(call).arrive(here.toward(member), tag).keep(dst(offset)).count(call.count));
    return;
  }
  const std::uint32_t to = here.toward(call.root);
  if (call.rank == member) {
    emit(Build(call).take(src()).send(to, tag).count(call.count));
  } else if (const std::uint32_t from = here.toward(member); from != to) {
    emit(Build(call).arrive(from, tag).send(to, tag).count(call.count));
  }
}

}  // namespace unisono::collectives
