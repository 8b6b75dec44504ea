// Binomial scatterv: the mirror image of binomial gatherv.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005 (its binomial scatter), with a count per rank. Cost: ceil(log2 P) alpha + N beta,
// N bytes in all, and N bytes copied at the root.
//
// Ranks are counted from the root on, and a subtree's blocks are one packed range of scratch; every
// rank knows all counts, so where each range begins and how long it is stands in params beforehand.
// The root packs one child's range after the other, the largest first, and sends each as soon as it is
// packed; a child that is a leaf is sent straight from src. An inner node receives its range, sends
// each child its part and copies its own block to dst.
//
// Packing writes different places and waits for nothing. The message of a packed range waits for the
// moves that packed it, which are those just before it (of more than 32, the window takes care). All
// that leaves an inner node waits for the one arrival. Waiting goes from the leaves towards the root.
#include "collectives/build.hpp"
#include "collectives/scatterv/scatterv.hpp"
#include "collectives/subtree.hpp"
#include "collectives/subtree_params.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

/// Steps in which the root packs and sends child k: a move for each block and one for the message.
constexpr std::uint32_t root_steps(const Subtree& child) { return child.is_leaf() ? 1 : steps_for(child.span + 1); }

}  // namespace

bool scatterv_binomial_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint64_t scatterv_binomial_scratch_bytes(const Call& call) {
  return Subtree::of(call).is_leaf() ? 0 : call.count * element_bytes(call);
}

std::uint32_t scatterv_binomial_params_words(const Call& call) { return SubtreeParams::words(call); }

void scatterv_binomial_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.send_counts, arguments.send_displacements, words);
  SubtreeParams::fill(call, words);
}

std::uint32_t scatterv_binomial_steps(const Call& call) {
  const Subtree node = Subtree::of(call);
  if (!node.is_root()) return 1 + node.children() + (node.is_leaf() ? 0 : 1);  // arrival, each child, own block
  std::uint32_t steps = 1;                                                     // own block
  for (std::uint32_t k = 0; k < node.children(); ++k) steps += root_steps(node.child(k));
  return steps;
}

void scatterv_binomial_step(const Call& call, std::uint32_t s, Emit& emit) {
  const Subtree node = Subtree::of(call);
  const auto home = [&](const Subtree& of) { return indirect(Region::kSrc, call.size + of.rank()); };
  const auto packed = [&](std::uint32_t i) { return indirect(Region::kScratch, SubtreeParams::offset(call, i)); };

  if (!node.is_root()) {
    const std::uint32_t arrival = emit.moves();  // distance to the arrival, the first move
    if (s == 0) {
      const Place landing = node.is_leaf() ? dst() : scratch();
      emit(Build(call).arrive(node.parent().rank(), 0).keep(landing).count_at(SubtreeParams::total(call)));
    } else if (s <= node.children()) {
      const std::uint32_t k = node.children() - s;
      const Subtree child = node.child(k);
      emit(Build(call)
               .take(packed(child.relative - node.relative))
               .send(child.rank(), 0)
               .count_at(SubtreeParams::child_total(call, k))
               .after(arrival));
    } else {
      emit(Build(call).take(scratch()).keep(dst()).count_at(call.rank).after(arrival));
    }
    return;
  }

  for (std::uint32_t k = node.children(); k-- > 0;) {
    const Subtree child = node.child(k);
    const std::uint32_t steps = root_steps(child);
    if (s >= steps) {
      s -= steps;
      continue;
    }
    const auto message = [&]() -> Build {
      return Build(call).send(child.rank(), 0).count_at(SubtreeParams::child_total(call, k));
    };
    if (child.is_leaf()) {
      emit(message().take(home(child)));
      return;
    }
    const std::uint32_t begin = s * static_cast<std::uint32_t>(kMovesPerStep);
    for (std::uint32_t i = begin; i <= child.span && i < begin + kMovesPerStep; ++i) {
      if (i < child.span) {
        const Subtree block = Subtree::at(call.size, call.root, child.relative + i);
        emit(Build(call).take(home(block)).keep(packed(block.relative)).count_at(block.rank()));
      } else {
        emit(message().take(packed(child.relative)).after_all(child.span));
      }
    }
    return;
  }
  if (!call.in_place) emit(Build(call).take(home(node)).keep(dst()).count_at(call.rank));
}

}  // namespace unisono::collectives
