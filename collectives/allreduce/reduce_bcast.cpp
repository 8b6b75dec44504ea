// All-reduce as a reduction to rank 0 and a broadcast from it, over one binomial tree.
//
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 2005 (their first all-reduce).
// Cost: 2 ceil(log2 P) (alpha + n beta) + ceil(log2 P) n gamma; segments stream through the tree.
//
// On the way up a rank folds its operand and its children, in rank order, and sends the result on, in
// one move; on the way down it keeps what arrives and passes it to its children, in one move. Rank 0
// does both in one. No dependency is needed: in place, dst is overwritten by the result, element by
// element, which contains this rank's operand and so was sent after that had been read.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/peers.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUp = 0;
constexpr std::uint32_t kDown = 1;

}  // namespace

std::uint32_t allreduce_reduce_bcast_steps(const Call& /*call*/) { return 1; }

void allreduce_reduce_bcast_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const Subtree node = Subtree::at(call.size, 0, call.rank);
  const std::uint32_t children = node.children();
  if (call.size == 1 && call.in_place) return;

  const auto deliver = [&](Build& result) {
    result.keep(dst());
    send_to(result, emit, children, kDown, [&](std::uint32_t i) { return node.child(children - 1 - i).rank(); });
    emit(result);
  };
  Build up(call);
  up.take(input(call)).count(call.count);
  arrive_from(up, emit, children, kUp, [&](std::uint32_t i) { return node.child(i).rank(); });
  if (node.is_root()) {
    deliver(up);
    return;
  }
  emit(up.send(node.parent().rank(), kUp));
  Build down(call);
  deliver(down.count(call.count).arrive(node.parent().rank(), kDown));
}

}  // namespace unisono::collectives
