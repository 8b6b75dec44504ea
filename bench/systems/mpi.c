/* An MPI library, measured as a peer. Built once for each: the same source, its own compiler wrapper. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../worker.h"

static MPI_Comm reversed; /* all ranks, in the opposite order */
static MPI_Datatype datatype;
static MPI_Win window = MPI_WIN_NULL; /* that put and get reach */
/* Of v-collectives, a set behind the other, an entry for each rank. */
static struct { int *send, *send_at, *recv, *recv_at; } counts;

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
  const size_t entries = (size_t)ranks * BENCH_SETS;
  counts.send = calloc(4 * entries, sizeof *counts.send);
  if (counts.send == NULL) bench_fail("there is no memory for the counts of %d ranks", ranks);
  counts.send_at = counts.send + entries;
  counts.recv = counts.send + 2 * entries;
  counts.recv_at = counts.send + 3 * entries;
  *rank = (uint32_t)my_rank;
  *size = (uint32_t)ranks;
}

void system_close(void) {
  MPI_Comm_free(&reversed);
  free(counts.send);
  MPI_Finalize();
}

int system_offers(enum bench_kind kind) {
  (void)kind; /* MPI knows no registration: what is registered is ordinary memory to it */
  return 1;
}

void* system_allocate(size_t bytes, enum bench_kind kind) {
  if (kind != BENCH_ALLOCATED) return bench_allocate_plain(bytes);
  void* memory = NULL;
  check(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory), "MPI_Alloc_mem");
  return memory;
}

void system_deallocate(void* memory, enum bench_kind kind) {
  if (kind == BENCH_ALLOCATED) {
    MPI_Free_mem(memory);
  } else {
    free(memory);
  }
}

void* system_expose(size_t bytes, enum bench_kind kind) {
  /* Whole pages: MPICH 4.0.2 puts windows of a few bytes side by side, and then misses those of others. */
  const MPI_Aint size = (MPI_Aint)((bytes + 4095) / 4096 * 4096);
  void* memory = NULL;
  if (kind == BENCH_ALLOCATED) {
    check(MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window), "MPI_Win_allocate");
  } else {
    memory = bench_allocate_plain(bytes);
    check(MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), "MPI_Win_create");
  }
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  /* One epoch for all calls. Nobody locks exclusively, so nothing need be checked. */
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window), "MPI_Win_lock_all");
  return memory;
}

void system_withdraw(void* memory, enum bench_kind kind) {
  check(MPI_Win_unlock_all(window), "MPI_Win_unlock_all");
  check(MPI_Win_free(&window), "MPI_Win_free"); /* with the memory, where that was allocated with the window */
  if (kind != BENCH_ALLOCATED) free(memory);
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
  if (call->counts == NULL) return;
  const int all_to_all = call->op == BENCH_ALLTOALLV;
  for (uint32_t set = 0; set < call->sets; ++set) {
    int send_at = 0, recv_at = 0;
    for (uint32_t i = 0; i < call->size; ++i) {
      const uint32_t at = set * call->size + i;
      counts.send[at] = (int)bench_count(call, set, all_to_all ? call->rank : 0, i);
      counts.recv[at] = (int)(all_to_all ? bench_count(call, set, i, call->rank) : bench_count(call, set, 0, i));
      counts.send_at[at] = send_at;
      counts.recv_at[at] = recv_at;
      send_at += counts.send[at];
      recv_at += counts.recv[at];
    }
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

/* All blocks go to rank 1 at once; one element comes back. */
static int stream(const struct bench_call* call) {
  const int n = (int)call->count;
  const size_t block = call->count * bench_element_bytes(call->datatype);
  if (call->rank > 1) return MPI_SUCCESS;
  MPI_Request requests[BENCH_FLIGHTS];
  for (size_t i = 0; i < BENCH_FLIGHTS; ++i) {
    const int result = call->rank == 0
                           ? MPI_Isend((char*)call->src + i * block, n, datatype, 1, 0, MPI_COMM_WORLD, &requests[i])
                           : MPI_Irecv((char*)call->dst + i * block, n, datatype, 0, 0, MPI_COMM_WORLD, &requests[i]);
    if (result != MPI_SUCCESS) return result;
  }
  const int result = MPI_Waitall(BENCH_FLIGHTS, requests, MPI_STATUSES_IGNORE);
  if (result != MPI_SUCCESS) return result;
  return call->rank == 0 ? MPI_Recv(call->dst, 1, datatype, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                         : MPI_Send(call->src, 1, datatype, 0, 0, MPI_COMM_WORLD);
}

/* Done when the data stand where they are to: at the target after a put, here after a get. */
static int put(const struct bench_call* call) {
  const int n = (int)call->count, target = (int)bench_target(call);
  const int result = MPI_Put(call->src, n, datatype, target, 0, n, datatype, window);
  return result != MPI_SUCCESS ? result : MPI_Win_flush(target, window);
}

static int get(const struct bench_call* call) {
  const int n = (int)call->count, target = (int)bench_target(call);
  const int result = MPI_Get(call->dst, n, datatype, target, 0, n, datatype, window);
  return result != MPI_SUCCESS ? result : MPI_Win_flush(target, window);
}

static int in_flight(const struct bench_call* call, int each) {
  const size_t block = call->count * bench_element_bytes(call->datatype);
  MPI_Request requests[BENCH_FLIGHTS];
  MPI_Status statuses[BENCH_FLIGHTS];
  for (int i = 0; i < BENCH_FLIGHTS; ++i) {
    int result = MPI_Iallreduce((const char*)call->src + i * block, (char*)call->dst + i * block, (int)call->count,
                                datatype, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    if (result == MPI_SUCCESS && each) result = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (result != MPI_SUCCESS) return result;
  }
  return each ? MPI_SUCCESS : MPI_Waitall(BENCH_FLIGHTS, requests, statuses);
}

void system_call(const struct bench_call* call, uint32_t turn, uint32_t set) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = datatype;
  const int n = (int)call->count, root = (int)turn;
  const void* const src = call->src;
  void* const dst = call->dst;
  const uint32_t at = set * call->size;
  const int *const send = counts.send + at, *const send_at = counts.send_at + at;
  const int *const recv = counts.recv + at, *const recv_at = counts.recv_at + at;
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
      result = MPI_Gatherv(src, recv[call->rank], type, dst, recv, recv_at, type, root, world);
      break;
    case BENCH_SCATTERV:
      result = MPI_Scatterv(src, send, send_at, type, dst, send[call->rank], type, root, world);
      break;
    case BENCH_ALLGATHERV:
      result = MPI_Allgatherv(src, recv[call->rank], type, dst, recv, recv_at, type, world);
      break;
    case BENCH_REDUCE_SCATTERV:
      result = MPI_Reduce_scatter(src, dst, recv, type, MPI_SUM, world);
      break;
    case BENCH_ALLTOALLV:
      result = MPI_Alltoallv(src, send, send_at, type, dst, recv, recv_at, type, world);
      break;
    case BENCH_BARRIER:
      result = MPI_Barrier(world);
      break;
    case BENCH_PUT:
      result = put(call);
      break;
    case BENCH_GET:
      result = get(call);
      break;
    case BENCH_STREAM:
      result = stream(call);
      break;
    case BENCH_INFLIGHT:
    case BENCH_WAITED:
      result = in_flight(call, call->op == BENCH_WAITED);
      break;
    default:
      bench_fail("operation %d is not known", (int)call->op);
  }
  if (__builtin_expect(result != MPI_SUCCESS, 0)) check(result, "a call");
}

void system_barrier(void) { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

void system_settle(void) {
  system_barrier();
  check(MPI_Win_sync(window), "MPI_Win_sync");
}

const char* system_algorithm(void) { return NULL; }
