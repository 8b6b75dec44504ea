/* What both programs of the halo exchange have in common: heat in a plate of kRows x kColumns points, whose edge keeps
 * its temperature. A process has some rows one behind the other, with a row of its neighbours above and one below: the
 * halo. */
#ifndef HALO_GRID_H
#define HALO_GRID_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRows = 240, kColumns = 320, kSteps = 500 };

/* Rows of a process: first <= row < last. */
static inline int first_row(int process, int processes) { return (int)((long)kRows * process / processes); }

static inline double initial(int row, int column) { return (double)((row * 7 + column * 13) % 101); }

/* Rows first - 1 to last of the plate, of which the first is grid[0]; beyond the plate stand zeros. */
static inline void fill(double (*grid)[kColumns], int first, int last) {
  for (int row = first - 1; row <= last; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      grid[row - first + 1][column] = row < 0 || row >= kRows ? 0 : initial(row, column);
    }
  }
}

/* One step, from one grid into another. */
static inline void step(double (*to)[kColumns], double (*from)[kColumns], int first, int last) {
  for (int row = first; row < last; ++row) {
    const int at = row - first + 1;
    memcpy(to[at], from[at], sizeof *to);
    if (row == 0 || row == kRows - 1) continue;
    for (int column = 1; column < kColumns - 1; ++column) {
      to[at][column] =
          0.25 * (from[at - 1][column] + from[at + 1][column] + from[at][column - 1] + from[at][column + 1]);
    }
  }
}

/* Whether rows are those that one process alone gets: bit for bit. */
static inline int same_as_serial(double (*grid)[kColumns], int first, int last) {
  double(*from)[kColumns] = malloc((kRows + 2) * sizeof *from), (*to)[kColumns] = malloc((kRows + 2) * sizeof *to);
  if (from == NULL || to == NULL) return 0;
  fill(from, 0, kRows);
  fill(to, 0, kRows);
  for (int i = 0; i < kSteps; ++i) {
    step(to, from, 0, kRows);
    double(*swap)[kColumns] = from;
    from = to, to = swap;
  }
  const int same = memcmp(grid[1], from[first + 1], (size_t)(last - first) * sizeof *grid) == 0;
  free(from);
  free(to);
  return same;
}

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int report(int process, int processes, const char* how, int right, double time) {
  if (process == 0) {
    printf("%d processes, %s: %s the serial run, %.1f us for a step\n", processes, how, right ? "the same as" : "NOT",
           time / kSteps * 1e6);
  }
  return right ? 0 : 1;
}

#endif
