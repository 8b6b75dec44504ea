/* The halo exchange of shmem.c with sends and receives.
 *
 *   cc -O2 $(python -m unisono.config --cflags) -o messages apps/halo/messages.c $(python -m unisono.config --libs)
 *   unisono run -n 4 ./messages */
#include <unisono/unisono.h>

#include "grid.h"

static void check(unisono_result result) {
  if (result == 0) return;
  fprintf(stderr, "%s\n", unisono_last_error());
  exit(1);
}

/* Sends a row to a neighbour and receives one from it, together. */
static void exchange(unisono_communicator* world, int neighbour, const double* send, double* receive) {
  unisono_call out = {
      .struct_size = sizeof out, .collective = UNISONO_SEND, .datatype = UNISONO_FP64, .root = neighbour};
  unisono_call in = {.struct_size = sizeof in, .collective = UNISONO_RECV, .datatype = UNISONO_FP64, .root = neighbour};
  out.count = in.count = kColumns;
  out.src = send;
  in.dst = receive;
  out.src_bytes = in.dst_bytes = kColumns * sizeof(double);
  check(unisono_sendrecv(world, &out, &in, NULL));
}

int main(void) {
  unisono_context* context;
  unisono_communicator* world;
  uint32_t rank, size;
  check(unisono_init(NULL, &context));
  check(unisono_world(context, &world));
  check(unisono_communicator_rank(world, &rank));
  check(unisono_communicator_size(world, &size));
  const int me = (int)rank, n = (int)size, first = first_row(me, n), last = first_row(me + 1, n);
  double(*grids[2])[kColumns];
  for (int i = 0; i < 2; ++i) {
    grids[i] = malloc((size_t)(last - first + 2) * sizeof *grids[i]);
    if (grids[i] == NULL) return 2;
    fill(grids[i], first, last);
  }
  const unisono_call barrier = {.struct_size = sizeof barrier, .collective = UNISONO_BARRIER};
  check(unisono_run(world, &barrier));
  const double begin = seconds();
  for (int i = 0; i < kSteps; ++i) {
    double(*from)[kColumns] = grids[i % 2], (*to)[kColumns] = grids[(i + 1) % 2];
    step(to, from, first, last);
    /* Pairs first, then the pairs between them: nobody waits for a chain of others. */
    for (int turn = 0; turn < 2; ++turn) {
      const int below = me % 2 == turn;
      if (below && me < n - 1) exchange(world, me + 1, to[last - first], to[last - first + 1]);
      if (!below && me > 0) exchange(world, me - 1, to[1], to[0]);
    }
  }
  check(unisono_run(world, &barrier));
  const double time = seconds() - begin;
  int32_t right = same_as_serial(grids[kSteps % 2], first, last), all_right;
  unisono_call call = {.struct_size = sizeof call, .collective = UNISONO_ALLREDUCE, .datatype = UNISONO_INT32};
  call.op = UNISONO_MIN;
  call.count = 1;
  call.src = &right;
  call.dst = &all_right;
  call.src_bytes = call.dst_bytes = sizeof right;
  check(unisono_run(world, &call));
  const int status = report(me, n, "send and receive", all_right, time);
  check(unisono_finalize(context));
  return status;
}
