/* An MPI library, measured as a peer. Built once for each: the same source, its own compiler wrapper. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../worker.h"

static MPI_Comm reversed; /* all ranks, in the opposite order */
static MPI_Datatype datatype;
static int *counts, *displacements;

static void check(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  bench_fail("%s: %.*s", what, length, text);
}

uint32_t system_launched_rank(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  if (rank == NULL) bench_fail("neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set: what started this process?");
  return (uint32_t)strtoul(rank, NULL, 10);
}

void system_open(int* argc, char*** argv, uint32_t* rank, uint32_t* size) {
  check(MPI_Init(argc, argv), "MPI_Init");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int my_rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check(MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank, &reversed), "MPI_Comm_split");
  counts = calloc((size_t)ranks, sizeof *counts);
  displacements = calloc((size_t)ranks, sizeof *displacements);
  if (counts == NULL || displacements == NULL) bench_fail("there is no memory for the counts of %d ranks", ranks);
  *rank = (uint32_t)my_rank;
  *size = (uint32_t)ranks;
}

void system_close(void) {
  MPI_Comm_free(&reversed);
  free(counts);
  free(displacements);
  MPI_Finalize();
}

void* system_allocate(size_t bytes, int registered) {
  if (!registered) return bench_allocate_plain(bytes);
  void* memory = NULL;
  check(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory), "MPI_Alloc_mem");
  return memory;
}

void system_deallocate(void* memory, int registered) {
  if (registered) {
    MPI_Free_mem(memory);
  } else {
    free(memory);
  }
}

void system_prepare(const struct bench_call* call) {
  if (call->algorithm != NULL) bench_fail("algorithms of an MPI library cannot be named here");
  switch (call->datatype) {
    case BENCH_INT32:
      datatype = MPI_INT32_T;
      break;
    case BENCH_INT64:
      datatype = MPI_INT64_T;
      break;
    case BENCH_FP32:
      datatype = MPI_FLOAT;
      break;
    default:
      datatype = MPI_DOUBLE;
      break;
  }
  for (uint32_t i = 0; i < call->size; ++i) {
    counts[i] = (int)call->count;
    displacements[i] = (int)(i * call->count);
  }
}

static int pingpong(const struct bench_call* call) {
  const int count = (int)call->count;
  if (call->rank > 1) return MPI_SUCCESS;
  if (call->rank == 0) {
    const int result = MPI_Send(call->src, count, datatype, 1, 0, MPI_COMM_WORLD);
    if (result != MPI_SUCCESS) return result;
    return MPI_Recv(call->dst, count, datatype, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  const int result = MPI_Recv(call->dst, count, datatype, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (result != MPI_SUCCESS) return result;
  return MPI_Send(call->src, count, datatype, 0, 0, MPI_COMM_WORLD);
}

void system_call(const struct bench_call* call, uint32_t turn) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = datatype;
  const int n = (int)call->count, root = (int)turn;
  const void* const src = call->src;
  void* const dst = call->dst;
  int result = MPI_SUCCESS;
  switch (call->op) {
    case BENCH_PINGPONG:
      result = pingpong(call);
      break;
    case BENCH_BCAST:
      result = MPI_Bcast(dst, n, type, root, world);
      break;
    case BENCH_REDUCE:
      result = MPI_Reduce(src, dst, n, type, MPI_SUM, root, world);
      break;
    case BENCH_ALLREDUCE:
      result = MPI_Allreduce(src, dst, n, type, MPI_SUM, world);
      break;
    case BENCH_REDUCE_SCATTER:
      result = MPI_Reduce_scatter_block(src, dst, n, type, MPI_SUM, world);
      break;
    case BENCH_SCAN:
      result = MPI_Scan(src, dst, n, type, MPI_SUM, turn == 0 ? world : reversed);
      break;
    case BENCH_EXSCAN:
      result = MPI_Exscan(src, dst, n, type, MPI_SUM, turn == 0 ? world : reversed);
      break;
    case BENCH_GATHER:
      result = MPI_Gather(src, n, type, dst, n, type, root, world);
      break;
    case BENCH_SCATTER:
      result = MPI_Scatter(src, n, type, dst, n, type, root, world);
      break;
    case BENCH_ALLGATHER:
      result = MPI_Allgather(src, n, type, dst, n, type, world);
      break;
    case BENCH_ALLTOALL:
      result = MPI_Alltoall(src, n, type, dst, n, type, world);
      break;
    case BENCH_GATHERV:
      result = MPI_Gatherv(src, n, type, dst, counts, displacements, type, root, world);
      break;
    case BENCH_SCATTERV:
      result = MPI_Scatterv(src, counts, displacements, type, dst, n, type, root, world);
      break;
    case BENCH_ALLGATHERV:
      result = MPI_Allgatherv(src, n, type, dst, counts, displacements, type, world);
      break;
    case BENCH_REDUCE_SCATTERV:
      result = MPI_Reduce_scatter(src, dst, counts, type, MPI_SUM, world);
      break;
    case BENCH_ALLTOALLV:
      result = MPI_Alltoallv(src, counts, displacements, type, dst, counts, displacements, type, world);
      break;
    case BENCH_BARRIER:
      result = MPI_Barrier(world);
      break;
    default:
      bench_fail("operation %d is not known", (int)call->op);
  }
  if (__builtin_expect(result != MPI_SUCCESS, 0)) check(result, "a call");
}

void system_barrier(void) { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

const char* system_algorithm(void) { return NULL; }
