/* Exchanges with neighbours on grids and graphs: each is made by the MPI_ function, which a shim may carry, and by the
 * PMPI_ function below; both must write the same bytes. Edges may be double, lead to their own rank, or to nobody.
 *
 *     neighbours SEED
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { kEdges = 16, kRoom = 4096 };

static uint64_t state;
static int draw(int below) { /* the same on all ranks */
  state = state * 6364136223846793005U + 1442695040888963407U;
  return (int)((state >> 33) % (uint64_t)below);
}

static int rank, size, way;
static int from[kRoom], to[kRoom], wanted[kRoom];

static void fresh(void) {
  for (int i = 0; i < kRoom; ++i) from[i] = i * 64 + rank, to[i] = wanted[i] = -i;
}
static void same(const char* what) {
  if (memcmp(to, wanted, sizeof to) == 0) return;
  printf("rank %d: %s differs (way %d)\n", rank, what, way);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

#define MAKE(name, ...)                                            \
  do {                                                             \
    MPI_Request request;                                           \
    if (way == 0) MPI_Neighbor_##name(__VA_ARGS__);                \
    if (way == 1) {                                                \
      MPI_Ineighbor_##name(__VA_ARGS__, &request);                 \
      MPI_Wait(&request, MPI_STATUS_IGNORE);                       \
    }                                                              \
    if (way == 2) {                                                \
      INIT(Neighbor_##name)(__VA_ARGS__, MPI_INFO_NULL, &request); \
      for (int i = 0; i < 2; ++i) {                                \
        MPI_Start(&request);                                       \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                     \
      }                                                            \
      MPI_Request_free(&request);                                  \
    }                                                              \
  } while (0)

/* MPICH 4.0's own functions disagree about several edges between two ranks, and wait for ever for some. */
#ifdef MPICH
enum { kDoubles = 0 };
#else
enum { kDoubles = 1 };
#endif

/* All five, in three ways. Open MPI's non-blocking ones take two edges between two ranks in another order than its
 * blocking ones, which are compared with. */
static void exchange(MPI_Comm comm) {
  int counts[kEdges], places[kEdges], bytes[kEdges];
  MPI_Aint addresses[kEdges], gives[kEdges], takes[kEdges], wants[kEdges];
  MPI_Datatype types[kEdges], ints[kEdges], pair;
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int topology;
  MPI_Topo_test(comm, &topology);
  for (way = 0; way < 3; ++way) {
    const int count = draw(20);
    /* Every block has the same length, for the ends of an edge must agree; they lie in another order. */
    for (int i = 0; i < kEdges; ++i) {
      counts[i] = count, places[i] = (kEdges - i) * 60, bytes[i] = count / 2;
      addresses[i] = places[i] * 4, types[i] = pair;
    }
    fresh();
    MAKE(allgather, from, count, MPI_INT, to, count, MPI_INT, comm);
    PMPI_Neighbor_allgather(from, count, MPI_INT, wanted, count, MPI_INT, comm);
    same("neighbor_allgather");
    fresh();
    MAKE(allgatherv, from, count, MPI_INT, to, counts, places, MPI_INT, comm);
    PMPI_Neighbor_allgatherv(from, count, MPI_INT, wanted, counts, places, MPI_INT, comm);
    same("neighbor_allgatherv");
    fresh();
    MAKE(alltoall, from, count, pair, to, count, pair, comm);
    PMPI_Neighbor_alltoall(from, count, pair, wanted, count, pair, comm);
    same("neighbor_alltoall");
    fresh();
    MAKE(alltoallv, from, counts, places, MPI_INT, to, counts, places, MPI_INT, comm);
    PMPI_Neighbor_alltoallv(from, counts, places, MPI_INT, wanted, counts, places, MPI_INT, comm);
    same("neighbor_alltoallv");
    if (!kDoubles && topology == MPI_DIST_GRAPH) continue; /* MPICH's leaves blocks out */
    fresh();
    MAKE(alltoallw, from, bytes, addresses, types, to, bytes, addresses, types, comm);
    PMPI_Neighbor_alltoallw(from, bytes, addresses, types, wanted, bytes, addresses, types, comm);
    same("neighbor_alltoallw");
    /* From anywhere in memory to anywhere. */
    for (int i = 0; i < kEdges; ++i) {
      MPI_Get_address(from + places[i], &gives[i]);
      MPI_Get_address(to + places[i], &takes[i]);
      MPI_Get_address(wanted + places[i], &wants[i]);
      ints[i] = MPI_INT;
    }
    fresh();
    MAKE(alltoallw, MPI_BOTTOM, counts, gives, ints, MPI_BOTTOM, counts, takes, ints, comm);
    PMPI_Neighbor_alltoallw(MPI_BOTTOM, counts, gives, ints, MPI_BOTTOM, counts, wants, ints, comm);
    same("neighbor_alltoallw by addresses");
  }
  MPI_Type_free(&pair);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  MPI_Comm comm;
  /* Lines and grids, with ends or without. Two ranks in a circle are each other's neighbour on both sides. */
  for (int periodic = 0; periodic < 2; ++periodic) {
    const int line[1] = {size}, around[2] = {periodic, 0};
    if (periodic && size <= 2 && !kDoubles) continue;
    MPI_Cart_create(MPI_COMM_WORLD, 1, line, around, 0, &comm);
    exchange(comm);
    MPI_Comm_free(&comm);
    int grid[2] = {0, 0};
    MPI_Dims_create(size, 2, grid);
    if (periodic && grid[0] <= 2 && !kDoubles) continue;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, around, 1, &comm);
    exchange(comm);
    MPI_Comm_free(&comm);
  }
  /* A graph that all ranks know: a circle. */
  int *index = malloc((size_t)size * sizeof *index), *edges = malloc((size_t)size * 2 * sizeof *edges);
  for (int i = 0; i < size; ++i) {
    index[i] = 2 * (i + 1), edges[2 * i] = (i + size - 1) % size, edges[2 * i + 1] = (i + 1) % size;
  }
  if (size > 2 || kDoubles) {
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    exchange(comm);
    MPI_Comm_free(&comm);
  }
  /* Drawn edges, of which each rank knows its own: edge i goes from a to b. */
  for (int turn = 0; turn < 6; ++turn) {
    int sources[kEdges], destinations[kEdges], in = 0, out = 0, drawn[16][16] = {{0}};
    for (int i = draw(kEdges); i > 0; --i) {
      const int a = draw(size), b = draw(size);
      if (drawn[a][b]++ && !kDoubles) continue;
      if (b == rank) sources[in++] = a;
      if (a == rank) destinations[out++] = b;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, destinations, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    exchange(comm);
    MPI_Comm_free(&comm);
  }
  free(index);
  free(edges);
  /* Blocks that overlap where they are received, which libraries of MPI take: of equal bytes, to compare. */
  int overlapping[kEdges], over[kEdges];
  for (int i = 0; i < kEdges; ++i) overlapping[i] = 8, over[i] = i % 3;
  fresh();
  for (int i = 0; i < kRoom; ++i) from[i] = 7;
  MPI_Allgatherv(from, 8, MPI_INT, to, overlapping, over, MPI_INT, MPI_COMM_WORLD);
  PMPI_Allgatherv(from, 8, MPI_INT, wanted, overlapping, over, MPI_INT, MPI_COMM_WORLD);
  same("allgatherv to blocks that overlap");
  MPI_Alltoallv(from, overlapping, over, MPI_INT, to, overlapping, over, MPI_INT, MPI_COMM_WORLD);
  same("alltoallv to blocks that overlap");
  printf("right\n");
  MPI_Finalize();
  return 0;
}
