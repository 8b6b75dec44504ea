#include "engine/plain_blocks.hpp"

#include <algorithm>
#include <array>

#include "core/facts.hpp"
#include "engine/admit.hpp"

namespace unisono::cclo {
namespace {

/// What is asked of a collective here.
struct Shape {
  bool vectors = false;
  bool rooted = false;
  std::array<VectorSides, 2> sides{};  ///< not in place, in place
};

/// By collective: so that calls need no look at the facts.
constexpr auto kShapes = [] {
  std::array<Shape, 32> shapes{};  // its number has five bits
  for (const Collective collective : kAllCollective) {
    const CollectiveFacts facts = facts_of(collective);
    shapes[static_cast<std::size_t>(collective)] = {
        facts.vectors, facts.rooted, {sides_of(collective, false), sides_of(collective, true)}};
  }
  return shapes;
}();

/// What one side's arrays come to.
struct Side {
  std::uint64_t total = 0;
  std::uint64_t extent = 0;
};

/// `ascending`: blocks are written, so that they must be known not to overlap.
bool add_up(const std::uint64_t* counts, const std::uint64_t* displacements, std::uint32_t size, bool ascending,
            Side& side) {
  if (counts == nullptr) return false;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::uint64_t begin = displacements != nullptr ? displacements[rank] : side.total;
    if (counts[rank] > kMaxCount || begin > kMaxCount) return false;
    side.total += counts[rank];
    if (counts[rank] == 0) continue;
    if (ascending && begin < side.extent) return false;
    side.extent = std::max(side.extent, begin + counts[rank]);
  }
  return side.total <= kMaxCount;
}

}  // namespace

std::optional<PlainBlocks> plain_blocks(const Call& call, const VectorArguments& arguments) {
  const Shape& shape = kShapes[static_cast<std::size_t>(call.collective)];
  if (!shape.vectors) return std::nullopt;
  const VectorSides sides = shape.sides[call.in_place ? 1 : 0];
  if (!sides.own && call.in_place) return std::nullopt;
  // Where there is a root, the others know of no displacements.
  const bool places = !shape.rooted || call.rank == call.root;
  PlainBlocks blocks;
  // The root's counts are enough: another rank may know its own only, and what all compare is none of them.
  const bool at_root = shape.rooted;
  if (!places && (sides.send ? arguments.send_counts : arguments.recv_counts) == nullptr) {
    if (arguments.own > kMaxCount) return std::nullopt;
    blocks.count = kUnknownCount;
    blocks.extents.own = arguments.own;
    return blocks;
  }
  Side send;
  Side recv;
  if (sides.send &&
      !add_up(arguments.send_counts, places ? arguments.send_displacements : nullptr, call.size, false, send)) {
    return std::nullopt;
  }
  if (sides.recv &&
      !add_up(arguments.recv_counts, places ? arguments.recv_displacements : nullptr, call.size, true, recv)) {
    return std::nullopt;
  }
  blocks.extents = {0, send.extent, recv.extent};
  if (sides.own) {
    blocks.count = at_root ? kUnknownCount : sides.send ? send.total : recv.total;
    blocks.extents.own = (sides.send ? arguments.send_counts : arguments.recv_counts)[call.rank];
  }
  return blocks;
}

}  // namespace unisono::cclo
