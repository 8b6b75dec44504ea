// Exchanges along the edges of a graph whose vertices are the ranks: neighbour all-gather and all-to-all.
//
// They are no collectives of the table: what a rank does follows from its own edges, which differ. So each rank has a
// program of its own, made once for a graph and a datatype by a pure function of its edges, and run like a program of
// the user. Counts and places stand in params.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/program.hpp"
#include "driver/objects.hpp"

namespace unisono::driver {

/// The edges at one rank, each list in the order in which the user gave it and has the blocks.
struct Edges {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::vector<std::uint32_t> sources;       ///< where the edges come from that end here
  std::vector<std::uint32_t> destinations;  ///< where those go that begin here
};

/// Words of params: counts of the edges that leave (elements), where their blocks stand in src (bytes), then the same
/// of those that come in, in dst.
struct EdgeParams {
  std::uint32_t out;
  std::uint32_t in;

  explicit EdgeParams(const Edges& edges)
      : out(static_cast<std::uint32_t>(edges.destinations.size())),
        in(static_cast<std::uint32_t>(edges.sources.size())) {}
  std::uint32_t send_count(std::uint32_t edge) const { return edge; }
  std::uint32_t send_offset(std::uint32_t edge) const { return out + edge; }
  std::uint32_t recv_count(std::uint32_t edge) const { return 2 * out + edge; }
  std::uint32_t recv_offset(std::uint32_t edge) const { return 2 * out + in + edge; }
  std::uint32_t words() const { return 2 * out + 2 * in; }
};

/// An edge at a rank and where it stands among those between the same two ranks: the k-th that one end names is the
/// k-th that the other one names.
struct Edge {
  std::uint32_t index;     ///< in its list
  std::uint32_t distance;  ///< from its source to its destination, upwards around the ring
  std::uint32_t nth;       ///< between these two ranks
};
std::vector<Edge> edges_out(const Edges& edges);
std::vector<Edge> edges_in(const Edges& edges);

/// The program of a rank.
///
/// A send or an arrival for each edge, a copy for one from a rank to itself, and no order between them but their place
/// in the program: by distance, then by number, then by source. That is an order of all edges of the graph, and the
/// same on all ranks. So of the edges that are not done yet, the first one is the next move at both of its ends, the
/// window never holds it back, and no set of ranks can wait in a circle.
Program neighbour_program(const Edges& edges, Datatype dtype);

/// A graph that the ranks of a communicator have agreed on. Thread-safe.
class Graph {
 public:
  Graph(std::shared_ptr<Communicator> communicator, Edges edges, std::uint32_t fingerprint)
      : communicator_(std::move(communicator)), edges_(std::move(edges)), fingerprint_(fingerprint) {}

  const Communicator& communicator() const { return *communicator_; }
  const Edges& edges() const { return edges_; }
  /// A number that graphs share only if all their edges are equal.
  std::uint32_t fingerprint() const { return fingerprint_; }
  /// This rank's program for elements of `dtype`.
  std::shared_ptr<const Program> program(Datatype dtype) const;

 private:
  const std::shared_ptr<Communicator> communicator_;
  const Edges edges_;
  const std::uint32_t fingerprint_;
  mutable std::mutex mutex_;
  mutable std::map<Datatype, std::shared_ptr<const Program>> programs_;
};

using Graphs = Handles<Graph, HandleKind::kGraph>;

/// Collective: the ranks tell each other their edges. Throws, on every rank, if one names a rank that does not exist,
/// or if the ends of an edge disagree about it.
std::shared_ptr<Graph> make_graph(const std::shared_ptr<Communicator>& communicator,
                                  std::span<const std::int64_t> sources, std::span<const std::int64_t> destinations);

/// Checks a call that names a graph, as `check_call` checks others; what all calls have in common is left to that.
void check_neighbours(const Communicator& communicator, const unisono_call& call, CheckedCall& checked);

}  // namespace unisono::driver
