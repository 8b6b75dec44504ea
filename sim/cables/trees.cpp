#include "sim/cables/trees.hpp"

#include <algorithm>
#include <stdexcept>

namespace unisono::sim {
namespace {

constexpr std::size_t kChildren = 4;  // unisono_smi_pkg::Children

bool has(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

bool cabled(const Routes& routes, int from, int to) {
  const auto& peers = routes.nodes[from].peers;
  return std::any_of(peers.begin(), peers.end(), [to](const auto& peer) { return peer && peer->rank == to; });
}

}  // namespace

std::vector<TreePlace> tree_of(const Routes& routes, int root, const std::vector<int>& members) {
  if (!has(members, root)) throw std::invalid_argument("rank " + std::to_string(root) + " is no member of the tree");
  std::vector<TreePlace> places(routes.nodes.size());
  std::vector<int> level{root}, inside{root};
  const auto hang = [&](int parent, int child, std::vector<int>& next) {
    places[child].parent = parent;
    places[parent].children.push_back(child);
    inside.push_back(child);
    next.push_back(child);
  };
  while (inside.size() < members.size()) {
    std::vector<int> next;
    for (const int member : members) {
      if (has(inside, member)) continue;
      int best = -1;
      for (const int rank : level) {
        if (!cabled(routes, rank, member) || places[rank].children.size() >= kChildren) continue;
        if (best < 0 || places[rank].children.size() < places[best].children.size()) best = rank;
      }
      if (best >= 0) hang(best, member, next);
    }
    if (next.empty()) {
      // No cable leads on from the newest: the first member that is left goes wherever there is a place.
      const auto child = std::find_if(members.begin(), members.end(), [&](int rank) { return !has(inside, rank); });
      const auto parent = std::find_if(inside.begin(), inside.end(), [&](int rank) {
        return places[rank].children.size() < kChildren && (cabled(routes, rank, *child) || rank == inside.front());
      });
      const auto any = std::find_if(inside.begin(), inside.end(),
                                    [&](int rank) { return places[rank].children.size() < kChildren; });
      hang(parent != inside.end() ? *parent : *any, *child, next);
    }
    level = next;
  }
  for (TreePlace& place : places) std::sort(place.children.begin(), place.children.end());
  return places;
}

}  // namespace unisono::sim
