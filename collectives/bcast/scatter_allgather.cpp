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
// counts differ), blocks from the ring within the move that receives them. No arrival has a
// dependency, so none can be late for its sender.
#include "collectives/bcast/bcast.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kScatterTag = 0;  // the ring's step s has tag 1 + s

// Moves: the scatter's arrival (not on the root), its sends, then the ring.
struct Shape {
  Subtree node;
  std::uint32_t arrivals;   // of the scatter: 0 or 1
  std::uint32_t sends;      // of the scatter
  std::uint32_t ring_get;   // blocks this node takes from the ring
  std::uint32_t ring_give;  // blocks it passes to its right
  std::uint32_t ring_moves;

  explicit constexpr Shape(const Call& call) : node(Subtree::of(call)) {
    const std::uint32_t size = call.size;
    arrivals = node.is_root() ? 0 : 1;
    sends = node.children();
    ring_get = size - node.span;
    ring_give = size - Subtree::at(size, call.root, plus(node.relative, 1, size)).span;
    ring_moves = ring_get + 1 > ring_give ? ring_get + 1 : ring_give;
  }
};

}  // namespace

std::uint32_t bcast_scatter_allgather_steps(const Call& call) {
  if (call.size == 1) return 0;
  const Shape shape(call);
  return shape.arrivals + shape.sends + shape.ring_moves;
}

void bcast_scatter_allgather_step(const Call& call, std::uint32_t s, Emit& emit) {
  const Shape shape(call);
  const Subtree node = shape.node;
  const Split split{call.count, call.size};
  const std::uint64_t element = element_bytes(call);
  Build move(call);

  if (s < shape.arrivals) {
    const std::uint64_t begin = split.begin(node.relative);
    move.arrive(node.parent().rank(), kScatterTag)
        .keep(dst(begin * element))
        .count(split.begin(node.relative + node.span) - begin);
    emit(move);
    return;
  }
  if (s < shape.arrivals + shape.sends) {
    const Subtree child = node.child(shape.arrivals + shape.sends - 1 - s);  // deepest first
    const std::uint64_t begin = split.begin(child.relative);
    move.take(dst(begin * element))
        .send(child.rank(), kScatterTag)
        .count(split.begin(child.relative + child.span) - begin);
    if (shape.arrivals != 0) move.after(s);
    emit(move);
    return;
  }
  const std::uint32_t r = s - shape.arrivals - shape.sends;
  const std::uint32_t block = minus(node.relative, r, call.size);
  const std::uint64_t offset = split.begin(block) * element;
  move.count(split.count(block));
  if (r == 0 || r > shape.ring_get) {
    if (shape.ring_give == 0) return;  // the root is to the right; the moves that follow only listen
    move.take(dst(offset));
    if (shape.arrivals != 0) move.after(s);
  } else {
    move.arrive(minus(call.rank, 1, call.size), r).keep(dst(offset));
  }
  if (r < shape.ring_give) move.send(plus(call.rank, 1, call.size), r + 1);
  emit(move);
}

}  // namespace unisono::collectives
