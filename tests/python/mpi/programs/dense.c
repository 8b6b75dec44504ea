/* Derived datatypes whose elements are bytes in a row go where they lie, without a copy; others with as many bytes, in
 * another order, are packed. All may be freed while a call is in flight. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int packs;

/* Stands before the MPI's, for the shim. */
int PMPI_Pack(const void* from, int count, MPI_Datatype type, void* to, int bytes, int* position, MPI_Comm comm) {
  ++packs;
  return MPI_Pack(from, count, type, to, bytes, position, comm);
}

typedef struct {
  double value;
  int first, second;
} Element;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  const Element* from = in;
  Element* to = inout;
  (void)type;
  for (int i = 0; i < *count; ++i) {
    to[i].value += from[i].value;
    to[i].first += from[i].first;
    to[i].second += from[i].second;
  }
}

/* 0: a struct; 1: two members of one length; 2: resized to what it is; 3: a duplicate; 4: contiguous. */
static MPI_Datatype made(int kind) {
  const int three[3] = {1, 1, 1}, two[2] = {1, 2};
  const MPI_Aint places[3] = {0, 8, 12};
  const MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_INT};
  MPI_Datatype inner = MPI_DATATYPE_NULL, outer = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(kind == 0 ? 3 : 2, kind == 0 ? three : two, places, types, &inner);
  if (kind == 2) MPI_Type_create_resized(inner, 0, sizeof(Element), &outer);
  if (kind == 3) MPI_Type_dup(inner, &outer);
  if (kind == 4) MPI_Type_contiguous(1, inner, &outer);
  if (kind >= 2) {
    MPI_Type_free(&inner);
    inner = outer;
  }
  MPI_Type_commit(&inner);
  return inner;
}

enum { kElements = 1500 };
static Element mine[kElements], all[8 * kElements], sum[kElements];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  for (int kind = 0; kind < 5; ++kind) {
    for (int count = 1; count <= kElements; count += kElements - 1) {
      for (int i = 0; i < count; ++i) mine[i] = (Element){rank + i, rank * i, kind};
      memset(all, 0, sizeof all);
      memset(sum, 0, sizeof sum);
      MPI_Datatype type = made(kind);
      MPI_Allgather(mine, count, type, all, count, type, MPI_COMM_WORLD);
      MPI_Allreduce(mine, sum, count, type, op, MPI_COMM_WORLD);
      for (int i = 0; i < count; ++i) {
        for (int other = 0; other < size; ++other) {
          const Element* const of = &all[other * count + i];
          wrong += of->value != other + i || of->first != other * i || of->second != kind;
        }
        wrong += sum[i].value != size * i + size * (size - 1) / 2 || sum[i].second != size * kind;
      }
      memset(sum, 0, sizeof sum);
      MPI_Request request;
      MPI_Iallreduce(mine, sum, count, type, op, MPI_COMM_WORLD, &request);
      MPI_Type_free(&type);
      type = made((kind + 1) % 5); /* may have its handle */
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Type_free(&type);
      for (int i = 0; i < count; ++i) wrong += sum[i].first != i * size * (size - 1) / 2;
    }
  }
  if (packs != 0) printf("%d elements in a row were packed\n", packs);
  wrong += packs != 0;

  /* As many bytes, the second half first. */
  const int ones[2] = {1, 1};
  const MPI_Aint swapped[2] = {8, 0};
  const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_DOUBLE};
  MPI_Datatype reversed, twice;
  MPI_Type_create_struct(2, ones, swapped, types, &reversed);
  MPI_Type_contiguous(2, reversed, &twice);
  MPI_Type_commit(&twice);
  const double own[4] = {rank, rank + 0.25, rank + 0.5, rank + 0.75};
  double theirs[8 * 4] = {0};
  MPI_Allgather(own, 1, twice, theirs, 4, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int other = 0; other < size; ++other) {
    const double* const of = theirs + (ptrdiff_t)4 * other;
    wrong += of[0] != other + 0.25 || of[1] != other || of[2] != other + 0.75 || of[3] != other + 0.5;
  }
  MPI_Type_free(&reversed);
  MPI_Type_free(&twice);
  MPI_Op_free(&op);
  printf("%s\n", wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
