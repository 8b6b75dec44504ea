/* Ranks call different things: with MPI_ERRORS_RETURN each gets an error of MPI, and goes on. */
#include <mpi.h>
#include <stdio.h>

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
  /* Other communicators are whole. */
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  wrong |= all != size;
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return wrong;
}
