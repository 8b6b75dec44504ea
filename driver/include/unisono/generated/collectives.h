/* Generated from spec/ by `python -m spec.generator`. Do not edit.
 * What a call asks for: unisono_call::collective. Part of unisono.h, which includes it. */
#ifndef UNISONO_GENERATED_COLLECTIVES_H
#define UNISONO_GENERATED_COLLECTIVES_H

enum {
  UNISONO_NOP = 0,               /* an empty program; measures the cost of a call */
  UNISONO_COPY = 1,              /* dst = src on one rank */
  UNISONO_COMBINE = 2,           /* dst = func(src, dst) on one rank */
  UNISONO_SEND = 3,              /* point-to-point message to a peer */
  UNISONO_RECV = 4,              /* point-to-point message from a peer */
  UNISONO_PUT = 5,               /* write into a peer's window */
  UNISONO_GET = 6,               /* read from a peer's window */
  UNISONO_BCAST = 7,             /* the root's dst to every rank's dst */
  UNISONO_REDUCE = 8,            /* func over all ranks' src into the root's dst */
  UNISONO_ALLREDUCE = 9,         /* func over all ranks' src into every dst */
  UNISONO_REDUCE_SCATTER = 10,   /* func over all ranks' src (size blocks); block r into rank r's dst */
  UNISONO_ALLGATHER = 11,        /* every rank's src block into every dst, by rank */
  UNISONO_GATHER = 12,           /* every rank's src block into the root's dst, by rank */
  UNISONO_SCATTER = 13,          /* block r of the root's src into rank r's dst */
  UNISONO_GATHERV = 14,          /* gather with a count and displacement per rank */
  UNISONO_SCATTERV = 15,         /* scatter with a count and displacement per rank */
  UNISONO_ALLGATHERV = 16,       /* allgather with a count and displacement per rank */
  UNISONO_ALLTOALL = 17,         /* block j of rank i's src into block i of rank j's dst */
  UNISONO_ALLTOALLV = 18,        /* alltoall with counts and displacements per pair */
  UNISONO_SCAN = 19,             /* func over src of ranks 0..r into rank r's dst */
  UNISONO_EXSCAN = 20,           /* func over src of ranks 0..r-1 into rank r's dst; rank 0's dst is untouched */
  UNISONO_BARRIER = 21,          /* no rank leaves before every rank has entered */
  UNISONO_REDUCE_SCATTERV = 22,  /* reduce_scatter with a count and displacement per rank */
  UNISONO_PROGRAM = 31           /* a program given by the user */
};

#endif
