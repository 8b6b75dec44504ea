/* Collectives with counts of MPI_Count: each by the function that a shim may carry, and by the MPI below, which must
 * write the same. In the last round the count is more than int holds, of elements that have no bytes.
 *
 *     large [BYTES]     broadcasts so many bytes, too
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 256, kEach = 5 };

static int rank, size;
static int mine[kMost], one[kMost], two[kMost];

static void fill(void) {
  for (int i = 0; i < kMost; ++i) {
    mine[i] = 3 * i + 100 * rank;
    one[i] = two[i] = -1;
  }
}

static void same(const char* what) {
  if (memcmp(one, two, sizeof one) != 0) {
    printf("rank %d: %s differs\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  fill();
}

#define BOTH(name, ...)                                                        \
  do {                                                                         \
    int* to = one;                                                             \
    MPI_Request request;                                                       \
    MPI_##name##_c(__VA_ARGS__, MPI_COMM_WORLD);                               \
    to = two;                                                                  \
    PMPI_##name##_c(__VA_ARGS__, MPI_COMM_WORLD);                              \
    same(#name);                                                               \
    PMPI_##name##_c(__VA_ARGS__, MPI_COMM_WORLD);                              \
    to = one;                                                                  \
    MPI_I##name##_c(__VA_ARGS__, MPI_COMM_WORLD, &request);                    \
    MPI_Wait(&request, MPI_STATUS_IGNORE);                                     \
    same("i" #name);                                                           \
    to = two;                                                                  \
    PMPI_##name##_c(__VA_ARGS__, MPI_COMM_WORLD);                              \
    to = one;                                                                  \
    MPI_##name##_init_c(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request); \
    MPI_Start(&request);                                                       \
    MPI_Wait(&request, MPI_STATUS_IGNORE);                                     \
    MPI_Request_free(&request);                                                \
    same("persistent " #name);                                                 \
  } while (0)
#define MPI_IBcast_c MPI_Ibcast_c
#define MPI_IGather_c MPI_Igather_c
#define MPI_IScatter_c MPI_Iscatter_c
#define MPI_IAllgather_c MPI_Iallgather_c
#define MPI_IAlltoall_c MPI_Ialltoall_c
#define MPI_IReduce_c MPI_Ireduce_c
#define MPI_IAllreduce_c MPI_Iallreduce_c
#define MPI_IScan_c MPI_Iscan_c
#define MPI_IExscan_c MPI_Iexscan_c
#define MPI_IReduce_scatter_c MPI_Ireduce_scatter_c
#define MPI_IReduce_scatter_block_c MPI_Ireduce_scatter_block_c

static void moves(MPI_Count n, MPI_Datatype t) {
  /* What does not matter on a rank is not looked at. */
  const MPI_Count at_root = rank == size - 1 ? n : (MPI_Count)1 << 40;
  const MPI_Datatype type_at_root = rank == size - 1 ? t : MPI_DATATYPE_NULL;
  BOTH(Bcast, (rank == 0 ? memcpy(to, mine, sizeof mine) : (void*)to), n, t, 0);
  BOTH(Gather, mine, n, t, to, at_root, type_at_root, size - 1);
  BOTH(Scatter, mine, at_root, type_at_root, to, n, t, size - 1);
  BOTH(Allgather, mine, n, t, to, n, t);
  BOTH(Allgather, MPI_IN_PLACE, (MPI_Count)1 << 40, MPI_DATATYPE_NULL, to, n, t);
  BOTH(Alltoall, mine, n, t, to, n, t);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  fill();
  moves(kEach, MPI_INT);
  BOTH(Reduce, mine, to, kEach, MPI_INT, MPI_SUM, 0);
  BOTH(Allreduce, mine, to, kEach, MPI_INT, MPI_MAX);
  BOTH(Scan, mine, to, kEach, MPI_INT, MPI_SUM);
  BOTH(Exscan, mine, to, kEach, MPI_INT, MPI_SUM);
  BOTH(Reduce_scatter_block, mine, to, kEach, MPI_INT, MPI_SUM);
  MPI_Count counts[kMost];
  for (int i = 0; i < size; ++i) counts[i] = i + 1;
  BOTH(Reduce_scatter, mine, to, counts, MPI_INT, MPI_SUM);
  MPI_Datatype empty;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  moves(((MPI_Count)1 << 31) + 5, empty);
  MPI_Type_free(&empty);
  if (argc > 1) {
    const MPI_Count bytes = atoll(argv[1]);
    char* const data = malloc((size_t)bytes);
    for (MPI_Count i = 0; i < bytes; ++i) data[i] = (char)(rank == 0 ? i * 7 : 0);
    MPI_Bcast_c(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (MPI_Count i = 0; i < bytes; ++i) {
      if (data[i] != (char)(i * 7)) MPI_Abort(MPI_COMM_WORLD, 4);
    }
    free(data);
  }
  MPI_Finalize();
  printf("right\n");
  return 0;
}
