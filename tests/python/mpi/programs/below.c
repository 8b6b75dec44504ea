/* What programs in Fortran compare with: collectives by the PMPI_ functions of C, which nothing stands before. The PMPI
 * of Fortran is none of that: MPICH's calls MPI_ of C. */
#include <mpi.h>

typedef MPI_Fint* I;
#define TYPE(x) MPI_Type_f2c(*(x))
#define HOW TYPE(t), MPI_Op_f2c(*o), MPI_Comm_f2c(*c)

void below_bcast_(void* a, I n, I t, I root, I c, I e) { *e = PMPI_Bcast(a, *n, TYPE(t), *root, MPI_Comm_f2c(*c)); }
void below_reduce_(void* a, void* b, I n, I t, I o, I root, I c, I e) {
  *e = PMPI_Reduce(a, b, *n, TYPE(t), MPI_Op_f2c(*o), *root, MPI_Comm_f2c(*c));
}
void below_allreduce_(void* a, void* b, I n, I t, I o, I c, I e) { *e = PMPI_Allreduce(a, b, *n, HOW); }
void below_reduce_scatter_block_(void* a, void* b, I n, I t, I o, I c, I e) {
  *e = PMPI_Reduce_scatter_block(a, b, *n, HOW);
}
void below_reduce_scatter_(void* a, void* b, I n, I t, I o, I c, I e) { *e = PMPI_Reduce_scatter(a, b, n, HOW); }
void below_scan_(void* a, void* b, I n, I t, I o, I c, I e) { *e = PMPI_Scan(a, b, *n, HOW); }
void below_exscan_(void* a, void* b, I n, I t, I o, I c, I e) { *e = PMPI_Exscan(a, b, *n, HOW); }
void below_gather_(void* a, I n, I s, void* b, I m, I t, I root, I c, I e) {
  *e = PMPI_Gather(a, *n, TYPE(s), b, *m, TYPE(t), *root, MPI_Comm_f2c(*c));
}
void below_gatherv_(void* a, I n, I s, void* b, I m, I at, I t, I root, I c, I e) {
  *e = PMPI_Gatherv(a, *n, TYPE(s), b, m, at, TYPE(t), *root, MPI_Comm_f2c(*c));
}
void below_scatter_(void* a, I n, I s, void* b, I m, I t, I root, I c, I e) {
  *e = PMPI_Scatter(a, *n, TYPE(s), b, *m, TYPE(t), *root, MPI_Comm_f2c(*c));
}
void below_scatterv_(void* a, I n, I at, I s, void* b, I m, I t, I root, I c, I e) {
  *e = PMPI_Scatterv(a, n, at, TYPE(s), b, *m, TYPE(t), *root, MPI_Comm_f2c(*c));
}
void below_allgather_(void* a, I n, I s, void* b, I m, I t, I c, I e) {
  *e = PMPI_Allgather(a, *n, TYPE(s), b, *m, TYPE(t), MPI_Comm_f2c(*c));
}
void below_allgatherv_(void* a, I n, I s, void* b, I m, I at, I t, I c, I e) {
  *e = PMPI_Allgatherv(a, *n, TYPE(s), b, m, at, TYPE(t), MPI_Comm_f2c(*c));
}
void below_alltoall_(void* a, I n, I s, void* b, I m, I t, I c, I e) {
  *e = PMPI_Alltoall(a, *n, TYPE(s), b, *m, TYPE(t), MPI_Comm_f2c(*c));
}
void below_alltoallv_(void* a, I n, I from, I s, void* b, I m, I at, I t, I c, I e) {
  *e = PMPI_Alltoallv(a, n, from, TYPE(s), b, m, at, TYPE(t), MPI_Comm_f2c(*c));
}
/* Of one type. */
void below_alltoallw_(void* a, I n, I from, I s, void* b, I m, I at, I t, I c, I e) {
  MPI_Datatype types[64];
  for (int i = 0; i < 64; ++i) types[i] = TYPE(t);
  *e = *s == *t ? PMPI_Alltoallw(a, n, from, types, b, m, at, types, MPI_Comm_f2c(*c)) : MPI_ERR_TYPE;
}
