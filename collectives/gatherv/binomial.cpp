// Binomial gatherv: subtrees collect their blocks and hand them up.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005 (its binomial gather), with a count per rank. Cost: ceil(log2 P) alpha + N beta,
// N bytes in all, and N bytes copied at the root.
//
// As in gather, ranks are counted from the root on and a subtree's blocks are one packed range of
// scratch. Every rank knows all counts, so where each range begins and how long it is stands in params
// beforehand (see SubtreeParams), and both ends of a message read equal counts. The root collects in
// scratch too, because its blocks may lie anywhere, and unpacks; a child that is a leaf goes straight
// to its place.
//
// Arrivals write different places and wait for nothing; what is sent up, or unpacked, waits for the
// arrivals that brought it. Waiting goes from the root towards the leaves only. The root posts all
// arrivals before it unpacks, so that they can land at the same time.
#include "collectives/build.hpp"
#include "collectives/gatherv/gatherv.hpp"
#include "collectives/subtree.hpp"
#include "collectives/subtree_params.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool gatherv_binomial_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint64_t gatherv_binomial_scratch_bytes(const Call& call) {
  return Subtree::of(call).is_leaf() ? 0 : call.count * element_bytes(call);
}

std::uint32_t gatherv_binomial_params_words(const Call& call) { return SubtreeParams::words(call); }

void gatherv_binomial_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
  SubtreeParams::fill(call, words);
}

std::uint32_t gatherv_binomial_steps(const Call& call) {
  const Subtree node = Subtree::of(call);
  // Own block, each child, and then the message up, or the unpacking of all blocks but the root's.
  return 1 + node.children() + (node.is_root() ? steps_for(call.size - 1) : 1);
}

void gatherv_binomial_step(const Call& call, std::uint32_t s, Emit& emit) {
  const Subtree node = Subtree::of(call);
  const Place own{Region::kSrc};
  const auto home = [&](const Subtree& of) { return indirect(Region::kDst, call.size + of.rank()); };
  const auto packed = [&](std::uint32_t i) { return indirect(Region::kScratch, SubtreeParams::offset(call, i)); };

  if (s == 0) {
    if (node.is_root() ? call.in_place : node.is_leaf()) return;
    emit(Build(call).take(own).keep(node.is_root() ? home(node) : scratch()).count_at(call.rank));
    return;
  }
  if (s <= node.children()) {
    const Subtree child = node.child(s - 1);
    const Place place = node.is_root() && child.is_leaf() ? home(child) : packed(child.relative - node.relative);
    emit(Build(call).arrive(child.rank(), 0).keep(place).count_at(SubtreeParams::child_total(call, s - 1)));
    return;
  }
  const std::uint32_t first_arrival = node.is_root() && call.in_place ? 0 : 1;  // after the own block
  if (!node.is_root()) {
    Build up(call);
    up.take(node.is_leaf() ? own : scratch()).send(node.parent().rank(), 0).count_at(SubtreeParams::total(call));
    for (std::uint32_t i = 0; i < emit.moves(); ++i) up.after(emit.moves() - i);
    emit(up);
    return;
  }
  const std::uint32_t begin = 1 + (s - 1 - node.children()) * static_cast<std::uint32_t>(kMovesPerStep);
  for (std::uint32_t i = begin; i < call.size && i < begin + kMovesPerStep; ++i) {
    const std::uint32_t k = log2_floor(i);  // the child that brought it
    if (node.child(k).is_leaf()) continue;
    emit(Build(call)
             .take(packed(i))
             .keep(home(Subtree::at(call.size, call.root, i)))
             .count_at(plus(call.root, i, call.size))
             .after(emit.moves() - first_arrival - k));
  }
}

}  // namespace unisono::collectives
