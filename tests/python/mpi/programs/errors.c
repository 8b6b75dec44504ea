/* Ranks call different things: with MPI_ERRORS_RETURN each gets an error of MPI, and goes on. */
#include <mpi.h>
#include <stdio.h>

/* Datatypes and places that no call may have: refused by the communicator's error handler, on all ranks, and the
 * communicator is whole. */
static int refused(void) {
  int size, all = 0, count = 0, x[64] = {0}, y[64] = {0}, ones[64], places[64];
  const int one = 1;
  MPI_Datatype none[64], ints[64];
  MPI_Request request;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 64; ++i) {
    ones[i] = 1;
    places[i] = i;
    none[i] = MPI_DATATYPE_NULL;
    ints[i] = MPI_INT;
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int errors[32], cases = 0;
  errors[cases++] = MPI_Bcast(x, 1, MPI_DATATYPE_NULL, 0, comm);
  errors[cases++] = MPI_Reduce(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, comm);
  errors[cases++] = MPI_Allreduce(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
  errors[cases++] = MPI_Reduce_scatter(x, y, ones, MPI_DATATYPE_NULL, MPI_SUM, comm);
  errors[cases++] = MPI_Scan(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
  errors[cases++] = MPI_Gather(x, 1, MPI_DATATYPE_NULL, y, 1, MPI_DATATYPE_NULL, 0, comm);
  errors[cases++] = MPI_Scatter(x, 1, MPI_DATATYPE_NULL, y, 1, MPI_DATATYPE_NULL, 0, comm);
  errors[cases++] = MPI_Allgather(x, 1, MPI_INT, y, 1, MPI_DATATYPE_NULL, comm);
  errors[cases++] = MPI_Allgatherv(x, 1, MPI_DATATYPE_NULL, y, ones, places, MPI_INT, comm);
  errors[cases++] = MPI_Alltoall(x, 1, MPI_INT, y, 1, MPI_DATATYPE_NULL, comm);
  errors[cases++] = MPI_Alltoallv(x, ones, places, MPI_DATATYPE_NULL, y, ones, places, MPI_INT, comm);
  errors[cases++] = MPI_Alltoallw(x, ones, places, none, y, ones, places, ints, comm);
  errors[cases++] = MPI_Alltoallw(x, ones, places, ints, y, ones, places, none, comm);
  errors[cases++] = MPI_Iallreduce(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, comm, &request);
  errors[cases++] = MPI_Ibcast(x, 1, MPI_DATATYPE_NULL, 0, comm, &request);
  int less[64] = {-1};
  MPI_Datatype gaps; /* elements of it are packed, and room is made for them before */
  MPI_Type_vector(2, 1, 3, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  errors[cases++] = MPI_Alltoallv(x, less, places, gaps, y, less, places, gaps, comm);
  errors[cases++] = MPI_Allgatherv(x, 0, gaps, y, less, places, gaps, comm);
  errors[cases++] = MPI_Alltoallv(x, less, places, MPI_INT, y, less, places, MPI_INT, comm);
  MPI_Type_free(&gaps);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* which Open MPI calls for these */
  errors[cases++] = MPI_Allreduce(x, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm);
  errors[cases++] = MPI_Allgather(x, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  for (int i = 0; i < cases; ++i) {
    if (errors[i] == MPI_SUCCESS) printf("case %d succeeded\n", i);
    count += errors[i] != MPI_SUCCESS;
  }
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  MPI_Comm_free(&comm);
  return count == cases && all == size;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0, data[4] = {0}, class, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int error = rank == 0 ? MPI_Allreduce(MPI_IN_PLACE, data, 4, MPI_INT, MPI_SUM, comm)
                              : MPI_Allreduce(MPI_IN_PLACE, data, 2, MPI_DOUBLE, MPI_MAX, comm);
  wrong |= error == MPI_SUCCESS;
  MPI_Error_class(error, &class);
  MPI_Error_string(error, text, &length);
  wrong |= class == MPI_SUCCESS || length == 0;
  /* What the MPI itself refuses, it refuses as ever. */
  wrong |= MPI_Bcast(data, -1, MPI_INT, 0, comm) == MPI_SUCCESS;
  wrong |= MPI_Bcast(data, 1, MPI_INT, size, comm) == MPI_SUCCESS;
  MPI_Comm_free(&comm);
  wrong |= !refused();
  /* Other communicators are whole. */
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  wrong |= all != size;
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return wrong;
}
