/* Blocks that are sent lie between those that are received, in one array, and overlap none of them: MPI allows that. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMost = 8, kLongest = 3000 };
static int data[2 * kMost * kLongest], counts[kMost], even[kMost], odd[kMost], bytes[kMost];
static MPI_Datatype ints[kMost];
static int rank, size, wrong, length;

static int value(int from, int to, int i) { return 1000000 * from + 10000 * to + i; }

/* Blocks of this rank for all, each with a place for one of theirs behind it. */
static void fill(void) {
  for (int other = 0; other < size; ++other) {
    for (int i = 0; i < length; ++i) {
      data[2 * other * length + i] = value(rank, other, i);
      data[(2 * other + 1) * length + i] = -1;
    }
  }
}

static void exchanged(const char* name) {
  int right = 1;
  for (int other = 0; other < size; ++other) {
    for (int i = 0; i < length; ++i) {
      right &= data[2 * other * length + i] == value(rank, other, i);
      right &= data[(2 * other + 1) * length + i] == value(other, rank, i);
    }
  }
  if (!right) printf("rank %d, %d elements: %s\n", rank, length, name);
  wrong += !right;
}

/* What comes to all, or to one, goes to the even places; the odd one of this rank is sent, or received. */
static void one_for_all(const char* name, int receives, int sends) {
  const int own = 2 * rank + 1;
  int right = 1;
  for (int other = 0; other < size; ++other) {
    for (int i = 0; i < length; ++i) {
      if (receives) right &= data[2 * other * length + i] == value(other, 0, i);
    }
  }
  for (int i = 0; i < length; ++i) right &= data[own * length + i] == value(rank, 0, i);
  if (!right) printf("rank %d, %d elements, %s: %s\n", rank, length, sends ? "sent" : "received", name);
  wrong += !right;
}

static void prepare(int whole, int own) {
  for (int i = 0; i < 2 * size * length; ++i) data[i] = -1;
  for (int other = 0; other < size && whole; ++other) {
    for (int i = 0; i < length; ++i) data[2 * other * length + i] = value(other, 0, i);
  }
  for (int i = 0; i < length && own; ++i) data[(2 * rank + 1) * length + i] = value(rank, 0, i);
}

static void ghosts(MPI_Comm ring) {
  const int inner = 4, left = (rank + size - 1) % size, right = (rank + 1) % size;
  const int two[2] = {length, length}, sends[2] = {0, (inner - 1) * length}, receives[2] = {0, (inner + 1) * length};
  const MPI_Aint send_bytes[2] = {4 * sends[0], 4 * sends[1]}, bytes_received[2] = {4 * receives[0], 4 * receives[1]};
  for (int typed = 0; typed < 2; ++typed) {
    int* const cells = data + length;
    for (int i = 0; i < (inner + 2) * length; ++i) data[i] = -1;
    for (int i = 0; i < inner * length; ++i) cells[i] = value(rank, 0, i);
    if (typed) {
      MPI_Neighbor_alltoallw(cells, two, send_bytes, ints, data, two, bytes_received, ints, ring);
    } else {
      MPI_Neighbor_alltoallv(cells, two, sends, MPI_INT, data, two, receives, MPI_INT, ring);
    }
    int good = 1;
    for (int i = 0; i < length; ++i) {
      good &= data[i] == value(left, 0, sends[1] + i);
      good &= data[receives[1] + i] == value(right, 0, sends[0] + i);
    }
    if (!good) printf("rank %d, %d elements: neighbours\n", rank, length);
    wrong += !good;
  }
}

/* In place, blocks of two arrays that lie apart: what is between them is not the program's. */
static void apart(void) {
  int* const far = malloc(64 << 20);
  int* const near = malloc(1 << 12);
  if (far == NULL || near == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  int* const base = far < near ? far : near;
  int places[kMost], ones[kMost], fits = 1;
  for (int other = 0; other < size; ++other) {
    int* const at = (other % 2 ? far : near) + other;
    *at = value(rank, other, 0);
    ones[other] = 1;
    fits &= at - base < (1 << 28);
    places[other] = fits ? (int)(at - base) : 0;
  }
  MPI_Request request;
  int all = 0;
  MPI_Allreduce(&fits, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all) {
    MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, base, ones, places, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int other = 0; other < size; ++other) wrong += base[places[other]] != value(other, rank, 0);
  }
  free(far);
  free(near);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int periodic = 1, lengths[] = {1, 7, kLongest};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  for (int turn = 0; turn < 3; ++turn) {
    length = lengths[turn];
    const int root = turn % size;
    for (int other = 0; other < size; ++other) {
      counts[other] = length;
      even[other] = 2 * other * length;
      odd[other] = 2 * other * length; /* from the second block on */
      bytes[other] = 4 * even[other];
      ints[other] = MPI_INT;
    }
    int* const second = data + length;
    fill();
    MPI_Alltoallv(data, counts, even, MPI_INT, second, counts, odd, MPI_INT, MPI_COMM_WORLD);
    exchanged("alltoallv");
    fill();
    MPI_Alltoallw(data, counts, bytes, ints, second, counts, bytes, ints, MPI_COMM_WORLD);
    exchanged("alltoallw");
    fill();
    MPI_Request request;
    MPI_Ialltoallv(data, counts, even, MPI_INT, second, counts, odd, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    exchanged("ialltoallv");
    int* const own = data + (2 * rank + 1) * length;
    prepare(0, 1);
    MPI_Gatherv(own, length, MPI_INT, data, counts, even, MPI_INT, root, MPI_COMM_WORLD);
    one_for_all("gatherv", rank == root, 1);
    prepare(0, 1);
    MPI_Allgatherv(own, length, MPI_INT, data, counts, even, MPI_INT, MPI_COMM_WORLD);
    one_for_all("allgatherv", 1, 1);
    prepare(rank == root, 0);
    MPI_Scatterv(data, counts, even, MPI_INT, own, length, MPI_INT, root, MPI_COMM_WORLD);
    one_for_all("scatterv", rank == root, 0);
    ghosts(ring);
  }
  apart();
  MPI_Comm_free(&ring);
  printf("%s\n", wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
