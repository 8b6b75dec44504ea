// All-gather in the network: each block goes once over every link; switches pass it on to all other sides at once.
//
// Source: ACiS (Haghi, thesis 2023), section 3. Cost over d levels of switches: 2 d alpha + P n beta, n bytes a block.
#include "collectives/allgather/allgather.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allgather_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : call.size; }

void allgather_switch_step(const Call& call, std::uint32_t s, Emit& emit) {
  if (call.tree == nullptr) return;
  const TreePlace here(call);
  if (here.is_idle()) return;
  const std::uint32_t member = here.member(s);
  const std::uint64_t offset = member * call.count * element_bytes(call);
  const std::uint32_t tag = tag_up(call, s);
  Build move(call);
  move.count(call.count);
  if (call.rank == member) {
    if (call.in_place && here.neighbours() == 0) return;
    move.take(input(call, offset));
    if (!call.in_place) move.keep(dst(offset));
    here.send_on(move, emit, kNoNode, tag);
  } else {
    const std::uint32_t from = here.toward(member);
    move.arrive(from, tag);
    if (!here.is_switch()) move.keep(dst(offset));
    here.send_on(move, emit, from, tag);
  }
  emit(move);
}

}  // namespace unisono::collectives
