// Van de Geijn's broadcast: scatter the blocks over a binomial tree, then gather them around a ring.
//
// Source: Barnett, Payne, van de Geijn and Watts, "Broadcasting on meshes with wormhole routing", JPDC
// 1996; Thakur, Rabenseifner and Gropp, IJHPCA 2005. Cost: (ceil(log2 P) + P-1) alpha + 2 n (P-1)/P beta.
//
// Ranks are counted from the root on, and so are the P blocks. The scatter gives a node the blocks of
// its whole subtree, an interval. On the ring node v passes on block v, v-1, v-2, ... A node is not
// sent what it has from the scatter, so the root receives nothing on the ring, and an inner node is
// spared the last blocks. Hence every byte of dst is written once, by one arrival, and read only
// afterwards: blocks from the scatter after its arrival has completed (full dependencies, as the
// counts differ), blocks from the ring element by element behind the move that takes them in. Taking in
// and sending on are two moves, so that a block can be taken in before the next rank has used up the
// one before it. No arrival has a dependency, so none can be late for its sender.
#include "collectives/bcast/bcast.hpp"
#include "collectives/powers.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kScatterTag = 0;  // block v-r has tag 1 + r when node v sends it

// Moves: the scatter's arrival (not on the root), its sends, then the ring.
struct Shape {
  Subtree node;
  std::uint32_t arrivals;    // of the scatter: 0 or 1
  std::uint32_t sends;       // of the scatter
  std::uint32_t ring_get;    // blocks this node takes from the ring: v-1, v-2, ...
  std::uint32_t ring_give;   // blocks it passes to its right: v, v-1, ...
  std::uint32_t ring_steps;  // step r is about block v-r

  explicit constexpr Shape(const Call& call) : node(Subtree::of(call)) {
    const std::uint32_t size = call.size;
    arrivals = node.is_root() ? 0 : 1;
    sends = node.children();
    ring_get = size - node.span;
    ring_give = size - Subtree::at(size, call.root, plus(node.relative, 1, size)).span;
    ring_steps = ring_get + 1 > ring_give ? ring_get + 1 : ring_give;
  }

  // Moves before the one that sends block v-r, which the node has from the scatter: the scatter's, then
  // a send for each block before it and an arrival for each block that came on the ring.
  constexpr std::uint32_t moves_before(std::uint32_t r) const { return arrivals + sends + r + (r == 0 ? 0 : ring_get); }
};

}  // namespace

namespace {

std::uint32_t rounds_of(const Call& call, const Shape& shape) {
  return call.size == 1 ? 0 : shape.arrivals + shape.sends + shape.ring_steps;
}

void round_of(const Call& call, const Shape& shape, const Split& split, std::uint32_t s, Emit& emit) {
  const Subtree& node = shape.node;
  const std::uint64_t element = element_bytes(call);

  if (s < shape.arrivals + shape.sends) {
    const bool arrives = s < shape.arrivals;
    const Subtree part = arrives ? node : node.child(shape.arrivals + shape.sends - 1 - s);  // deepest child first
    const Place place = dst(split.begin(part.relative) * element);
    Build move(call);
    move.count(split.count(part.relative, part.span));
    if (arrives) {
      emit(move.arrive(node.parent().rank(), kScatterTag).keep(place));
    } else {
      emit(move.take(place).send(part.rank(), kScatterTag).after(shape.arrivals != 0 ? s : 0));
    }
    return;
  }

  const std::uint32_t r = s - shape.arrivals - shape.sends;
  const std::uint32_t block = minus(node.relative, r, call.size);
  const Place place = dst(split.begin(block) * element);
  const bool taken_in = r > 0 && r <= shape.ring_get;
  if (taken_in) {
    emit(Build(call).arrive(minus(call.rank, 1, call.size), r).keep(place).count(split.count(block)));
  }
  if (r < shape.ring_give) {
    Build give(call);
    give.take(place).send(plus(call.rank, 1, call.size), r + 1).count(split.count(block));
    if (taken_in) {
      give.stream_after(1);
    } else if (shape.arrivals != 0) {
      give.after(shape.moves_before(r));
    }
    emit(give);
  }
}

}  // namespace

std::uint32_t bcast_scatter_allgather_steps(const Call& call) { return steps_for(rounds_of(call, Shape(call)), 2); }

void bcast_scatter_allgather_step(const Call& call, std::uint32_t step, Emit& emit) {
  const Shape shape(call);
  const Split split{call.count, call.size};
  each_round(step, rounds_of(call, shape), 2, [&](std::uint32_t round) { round_of(call, shape, split, round, emit); });
}

}  // namespace unisono::collectives
