#include "doors/mpi/neighbours.hpp"

#include <algorithm>
#include <cstdint>

#include "doors/mpi/operation.hpp"

namespace unisono::mpi {

namespace {

/// Ranks from which edges come and to which they go, in MPI's order, MPI_PROC_NULL included.
struct Lists {
  std::vector<int> sources;
  std::vector<int> destinations;
  bool grid = false;
};

Lists of_grid(MPI_Comm comm) {
  Lists lists;
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = MPI_PROC_NULL;
    int behind = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &before, &behind);
    lists.sources.insert(lists.sources.end(), {before, behind});
  }
  lists.destinations = lists.sources;
  lists.grid = true;
  return lists;
}

Lists of_graph(MPI_Comm comm) {
  Lists lists;
  int rank = 0;
  int count = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &count);
  lists.sources.resize(static_cast<std::size_t>(count));
  PMPI_Graph_neighbors(comm, rank, count, lists.sources.data());
  lists.destinations = lists.sources;
  return lists;
}

Lists of_distributed_graph(MPI_Comm comm) {
  int in = 0;
  int out = 0;
  int weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
  Lists lists;
  lists.sources.resize(static_cast<std::size_t>(in));
  lists.destinations.resize(static_cast<std::size_t>(out));
  std::vector<int> weights(static_cast<std::size_t>(in) + static_cast<std::size_t>(out) + 1);
  PMPI_Dist_graph_neighbors(comm, in, lists.sources.data(), weights.data(), out, lists.destinations.data(),
                            weights.data() + in);
  return lists;
}

/// The ranks that there are, and their places. Several edges between two ranks match in the order in which both name
/// them. `crossed`: of each two edges the second comes first. In a circle of two ranks, what leaves to the left arrives
/// from the right.
std::vector<std::int64_t> ranks_of(const std::vector<int>& list, bool crossed, std::vector<std::size_t>& places) {
  std::vector<std::int64_t> ranks;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t place = crossed ? i ^ 1U : i;
    if (list[place] == MPI_PROC_NULL) continue;
    ranks.push_back(list[place]);
    places.push_back(place);
  }
  return ranks;
}

/// Blocks of the edges there are: elements, displacements in bytes, datatypes.
Buffer& place_blocks(std::optional<Buffer>& buffer, const NeighbourBlocks& of, const std::vector<std::size_t>& places,
                     Buffer::Use use) {
  std::vector<Buffer::Given> blocks;
  blocks.reserve(places.size());
  const std::int64_t extent = of.types == nullptr ? layout_of(of.type).extent : 0;
  for (const std::size_t place : places) {
    const std::int64_t count = of.counts == nullptr ? of.count : of.counts[place];
    if (of.types != nullptr) {
      blocks.push_back({count, of.addresses[place], of.types[place]});
      continue;
    }
    const std::int64_t at =
        of.displacements == nullptr ? static_cast<std::int64_t>(place) * count : of.displacements[place];
    blocks.push_back({count, at * extent, of.type});
  }
  return buffer.emplace(of.data, blocks, use);
}

bool is_buffer(const NeighbourBlocks& blocks, const std::vector<std::size_t>& places) {
  if (blocks.data == MPI_IN_PLACE || blocks.count < 0) return false;
  if (blocks.types == nullptr) return blocks.type != MPI_DATATYPE_NULL;
  return std::none_of(places.begin(), places.end(), [&](std::size_t place) {
    return blocks.counts[place] != 0 && blocks.types[place] == MPI_DATATYPE_NULL;
  });
}

}  // namespace

Neighbours::~Neighbours() {
  if (graph != nullptr) unisono_graph_free(graph);
}

std::unique_ptr<Neighbours> neighbours_of(MPI_Comm comm, unisono_communicator* communicator) {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  Lists lists;
  if (topology == MPI_CART) {
    lists = of_grid(comm);
  } else if (topology == MPI_GRAPH) {
    lists = of_graph(comm);
  } else if (topology == MPI_DIST_GRAPH) {
    lists = of_distributed_graph(comm);
  } else {
    return nullptr;
  }
  auto made = std::make_unique<Neighbours>();
  const std::vector<std::int64_t> in = ranks_of(lists.sources, false, made->sources);
  const std::vector<std::int64_t> out = ranks_of(lists.destinations, lists.grid, made->destinations);
  const unisono_result result =
      unisono_graph_create(communicator, in.size(), in.data(), out.size(), out.data(), &made->graph);
  int all = result == 0 ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  return all != 0 ? std::move(made) : nullptr;
}

bool prepare_neighbours(Operation& operation, const NeighbourBlocks& send, const NeighbourBlocks& receive,
                        bool gathers) {
  const Neighbours* const neighbours = operation.door->neighbours.get();
  if (neighbours == nullptr || !is_buffer(receive, neighbours->sources)) return false;
  if (!is_buffer(send, neighbours->destinations)) return false;
  operation.call.collective = gathers ? UNISONO_ALLGATHERV : UNISONO_ALLTOALLV;
  operation.call.datatype = UNISONO_BYTE;
  operation.call.graph = neighbours->graph;
  if (gathers) {
    operation.give(operation.from.emplace(send.data, send.count, send.type));
    operation.call.count = operation.from->block_bytes();
  } else {
    operation.give_blocks(place_blocks(operation.from, send, neighbours->destinations, Buffer::Use::kRead));
  }
  operation.take_blocks(place_blocks(operation.to, receive, neighbours->sources, Buffer::Use::kWritten));
  operation.keep_apart();
  operation.results = Operation::kAll;
  operation.bytes = operation.to->bytes();
  return true;
}

}  // namespace unisono::mpi
