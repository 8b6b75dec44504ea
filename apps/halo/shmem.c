/* A halo exchange in OpenSHMEM: each PE puts its outer rows into its neighbours' halos, with a signal behind them.
 *
 *   unisono-oshcc -O2 -o halo apps/halo/shmem.c && unisono run -n 4 ./halo
 *
 * messages.c is the same with sends and receives. */
#include <shmem.h>

#include "grid.h"

/* Symmetric: every PE has these, and a neighbour's are named as its own. */
static uint64_t from_above, from_below; /* steps whose row has come */

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  const int first = first_row(me, n), last = first_row(me + 1, n);
  /* The same size on all PEs, of two grids: what a neighbour puts for the next step must not disturb this one. */
  const size_t rows = (size_t)(kRows / n + 3);
  double(*grids[2])[kColumns];
  for (int i = 0; i < 2; ++i) {
    grids[i] = shmem_malloc(rows * sizeof *grids[i]);
    if (grids[i] == NULL) shmem_global_exit(2);
    fill(grids[i], first, last);
  }
  shmem_barrier_all();
  const double begin = seconds();
  for (int i = 0; i < kSteps; ++i) {
    double(*from)[kColumns] = grids[i % 2], (*to)[kColumns] = grids[(i + 1) % 2];
    const uint64_t done = (uint64_t)i + 1;
    step(to, from, first, last);
    /* The lower halo of the one above begins behind its rows. */
    if (me > 0) {
      const int above = first - first_row(me - 1, n);
      shmem_double_put_signal(to[above + 1], to[1], kColumns, &from_below, done, SHMEM_SIGNAL_SET, me - 1);
    }
    if (me < n - 1) {
      shmem_double_put_signal(to[0], to[last - first], kColumns, &from_above, done, SHMEM_SIGNAL_SET, me + 1);
    }
    if (me > 0) shmem_signal_wait_until(&from_above, SHMEM_CMP_GE, done);
    if (me < n - 1) shmem_signal_wait_until(&from_below, SHMEM_CMP_GE, done);
  }
  shmem_barrier_all();
  const double time = seconds() - begin;
  int right = same_as_serial(grids[kSteps % 2], first, last), all_right;
  shmem_int_min_reduce(SHMEM_TEAM_WORLD, &all_right, &right, 1);
  const int status = report(me, n, "put with signal", all_right, time);
  shmem_finalize();
  return status;
}
