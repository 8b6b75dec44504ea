// Linear reduction: everyone sends to the root.
//
// Source: ACCL+ section 4.2.4 (all-to-one). Cost: alpha + (P-1) n beta + (P-1) n gamma.
//
// The root folds the ranks above it onto its own operand, rising, and then the ranks below it from the
// left, falling; so operands stay in rank order for any root. See sides.hpp for the order of its moves.
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/sides.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_linear_steps(const Call& /*call*/) { return 1; }

void reduce_linear_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const std::uint32_t root = call.root;
  if (call.rank != root) {
    emit(Build(call).take(reduce_input(call)).send(root, 0).count(call.count));
    return;
  }
  fold_at_root(
      call, emit, call.size - 1 - root, [=](std::uint32_t i) { return root + 1 + i; }, root,
      [=](std::uint32_t i) { return root - 1 - i; });
}

}  // namespace unisono::collectives
