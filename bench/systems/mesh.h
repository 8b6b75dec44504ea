/* Plain TCP connections between all pairs of ranks, which `unisono run --hosts` has started. */
#ifndef UNISONO_BENCH_MESH_H
#define UNISONO_BENCH_MESH_H

#include <stdint.h>

enum { MESH_MOST_RANKS = 64 };

struct mesh {
  uint32_t rank, size;
  int sockets[MESH_MOST_RANKS]; /* to each rank, non-blocking; -1 to this one */
};

/* Meets the other ranks at rank 0's socket, which the launcher has opened, and connects each pair. */
struct mesh mesh_open(void);
void mesh_close(struct mesh* mesh);

#endif
