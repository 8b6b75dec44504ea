/* An application of the installed C interface: the ranks' numbers, summed, as each of them says. */
#include <stdint.h>
#include <stdio.h>
#include <unisono/unisono.h>

static int stop(const char* what) {
  fprintf(stderr, "%s: %s\n", what, unisono_last_error());
  return 1;
}

int main(void) {
  unisono_context* context;
  unisono_communicator* world;
  uint32_t rank, size;
  if (unisono_init(NULL, &context) != 0) return stop("init");
  if (unisono_world(context, &world) != 0) return stop("world");
  if (unisono_communicator_rank(world, &rank) != 0) return stop("rank");
  if (unisono_communicator_size(world, &size) != 0) return stop("size");

  int64_t mine[2] = {10 + rank, 100 * (int64_t)rank};
  int64_t total[2] = {0, 0};
  unisono_call call = {.struct_size = sizeof call,
                       .collective = UNISONO_ALLREDUCE,
                       .datatype = UNISONO_INT64,
                       .op = UNISONO_SUM,
                       .count = 2,
                       .src = mine,
                       .src_bytes = sizeof mine,
                       .dst = total,
                       .dst_bytes = sizeof total};
  if (unisono_run(world, &call) != 0) return stop("allreduce");
  printf("rank %u of %u, ABI %u: %lld %lld\n", (unsigned)rank, (unsigned)size, (unsigned)unisono_abi_version(),
         (long long)total[0], (long long)total[1]);
  return unisono_finalize(context) != 0 ? stop("finalize") : 0;
}
