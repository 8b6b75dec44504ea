// All-reduce in the network: switches fold what comes from below, the top sends the result down again.
//
// Source: ACiS (Haghi, thesis 2023), section 3; SHARP (Graham et al., COMHPC 2016). Cost over d levels of switches:
// 2 d alpha + 2 n beta, n bytes on every link and direction.
//
// No dependency is needed: in place, dst is overwritten by the result, element by element, which contains this rank's
// operand and so was sent after that had been read.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/switch_tag.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allreduce_switch_steps(const Call& call) { return call.tree == nullptr ? 0 : 1; }

void allreduce_switch_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.tree == nullptr) return;
  const std::uint32_t down_tag = tag_down(call);
  const TreePlace here(call);
  if (here.is_idle() || (here.neighbours() == 0 && call.in_place)) return;
  const auto deliver = [&](Build& result) {
    if (!here.is_switch()) result.keep(dst());
    here.send_below(result, emit, down_tag);
    emit(result);
  };
  here.fold_up(call, emit, input(call), dst(), tag_up(call), [&](Build& up) {
    if (here.above() == kNoNode) {
      deliver(up);
    } else {
      emit(up.send(here.above(), tag_up(call)));
    }
  });
  if (here.above() == kNoNode) return;
  Build down(call);
  deliver(down.count(call.count).arrive(here.above(), down_tag));
}

}  // namespace unisono::collectives
