/* Loads a library in Fortran while it runs, for itself alone, and calls it. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*late)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "late");
  const int wrong = late == NULL ? -1 : late();
  if (wrong != 0) fprintf(stderr, "wrong: %d %s\n", wrong, library == NULL ? dlerror() : "");
  MPI_Finalize();
  return wrong != 0;
}
