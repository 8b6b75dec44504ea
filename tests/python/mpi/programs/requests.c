/* Requests of collectives, which a shim may carry, beside what is the MPI's: a rank that waits in the MPI owes progress
 * to the collective, and one that waits in the collective owes progress to the MPI. What a call in flight needs may be
 * freed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kElements = 1 << 20 };

static int rank, size;
static int *long_data, *ours, *sums;

static void check(int right, const char* what) {
  if (right) return;
  printf("rank %d: %s\n", rank, what);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(int turn) {
  for (int i = 0; i < kElements; ++i) ours[i] = i % 1000 + rank + turn, sums[i] = -1;
}
static int is_sum(int i, int turn) { return sums[i] == size * (i % 1000 + turn) + size * (size - 1) / 2; }
static void check_sums(int turn) {
  for (int i = 0; i < kElements; i += 997) check(is_sum(i, turn), "a wrong sum");
}

/* The last rank waits in a receive of the MPI until the others have ended the collective, which needs it. */
static void waits_in_the_mpi(int turn) {
  MPI_Request request;
  const int last = size - 1;
  int one = 1;
  fill(turn);
  MPI_Iallreduce(ours, sums, kElements, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (rank == last) {
    for (int i = 0; i < last; ++i) MPI_Recv(&one, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_sums(turn);
    MPI_Send(&one, 1, MPI_INT, last, 3, MPI_COMM_WORLD);
  }
  check(request == MPI_REQUEST_NULL, "a request");
  check_sums(turn);
}

/* Rank 0 waits for the collective while rank 1 is in a long send to it, and begins the collective afterwards. */
static void waits_in_the_collective(int turn) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  fill(turn);
  if (rank == 0) MPI_Irecv(long_data, kElements, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]);
  if (rank == 1) {
    for (int i = 0; i < kElements; ++i) long_data[i] = i + turn;
    MPI_Send(long_data, kElements, MPI_INT, 0, 4, MPI_COMM_WORLD);
  }
  MPI_Iallreduce(ours, sums, kElements, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  check_sums(turn);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (rank == 0) check(long_data[kElements - 1] == kElements - 1 + turn, "a wrong message");
}

static void left(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[2 * i] = ((int*)in)[2 * i];
}

/* Communicator, datatype and operator are freed while the call is in flight. */
static void frees_early(int turn) {
  MPI_Comm comm;
  MPI_Datatype column;
  MPI_Op op;
  MPI_Request requests[3];
  int mine[2] = {rank + turn, 5}, first[2] = {0, 9}, cells[64], columns[8][8], all = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(4, 1, 8, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Op_create(left, 0, &op);
  for (int i = 0; i < 64; ++i) cells[i] = rank * 64 + i, columns[i / 8][i % 8] = -1;
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Iallreduce(mine, first, 1, pair, op, comm, &requests[0]);
  MPI_Ibcast(rank == 0 ? cells : &columns[0][0], 1, column, 0, comm, &requests[1]);
  MPI_Iallreduce(&rank, &all, 1, MPI_INT, MPI_SUM, comm, &requests[2]);
  MPI_Op_free(&op);
  check(op == MPI_OP_NULL, "an operator");
  MPI_Type_free(&column);
  MPI_Comm_free(&comm);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&pair);
  check(first[0] == turn, "the first operand");
  check(all == size * (size - 1) / 2, "a sum of ranks");
  for (int i = 0; i < 32; ++i) {
    if (rank != 0) check(columns[i / 8][i % 8] == (i % 8 == 0 ? i : -1), "a column");
  }
}

/* Several calls by one operator, freed before them, end by the time that the program looks. */
static void shares_an_operator(int turn) {
  enum { kCalls = 4 };
  MPI_Op op;
  MPI_Request requests[kCalls];
  int mine[kCalls][2], first[kCalls][2], flag = 0;
  MPI_Op_create(left, 0, &op);
  for (int i = 0; i < kCalls; ++i) {
    mine[i][0] = rank + turn + i, mine[i][1] = 5;
    MPI_Iallreduce(mine[i], first[i], 1, MPI_2INT, op, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Op_free(&op);
  usleep(20000); /* meanwhile the helper thread brings what the operator takes */
  while (!flag) MPI_Testall(kCalls, requests, &flag, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCalls; ++i) check(first[i][0] == turn + i, "the first operand, by an operator of several");
}

/* Many at a time, in any order of their ends. */
static void has_many_in_flight(void) {
  enum { kMany = 100 };
  MPI_Request requests[kMany];
  int in[kMany], out[kMany], ended = 0;
  for (int i = 0; i < kMany; ++i) {
    in[i] = i * (rank + 1);
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
  }
  while (ended < kMany) {
    int index = -1;
    MPI_Waitany(kMany, requests, &index, MPI_STATUS_IGNORE);
    check(index >= 0 && out[index] == index * size * (size + 1) / 2, "one of many");
    ++ended;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long_data = malloc(kElements * sizeof *long_data);
  ours = malloc(kElements * sizeof *ours);
  sums = malloc(kElements * sizeof *sums);
  for (int turn = 0; turn < 3; ++turn) {
    waits_in_the_mpi(turn);
    if (size > 1) waits_in_the_collective(turn);
    frees_early(turn);
    shares_an_operator(turn);
    has_many_in_flight();
  }
  /* Nobody waits for it before the end but the MPI. */
  MPI_Request last;
  MPI_Ibarrier(MPI_COMM_WORLD, &last);
  MPI_Wait(&last, MPI_STATUS_IGNORE);
  free(long_data);
  free(ours);
  free(sums);
  printf("right\n");
  MPI_Finalize();
  return 0;
}
