"""Calls that the microcontroller and the native generator must agree on."""

from __future__ import annotations

import random
from collections.abc import Iterator

from .cpu import Call, Oracle

NOP, COPY, COMBINE, SEND, RECV, PUT, GET, BCAST, REDUCE, ALLREDUCE = range(10)
REDUCE_SCATTER, ALLGATHER, GATHER, SCATTER, GATHERV, SCATTERV, ALLGATHERV = range(10, 17)
ALLTOALL, ALLTOALLV, SCAN, EXSCAN, BARRIER, REDUCE_SCATTERV, PROGRAM = 17, 18, 19, 20, 21, 22, 31

REDUCING = {COMBINE, REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTERV, SCAN, EXSCAN}
MEAN = {REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTERV}
ROOTED = {SEND, RECV, PUT, GET, BCAST, REDUCE, GATHER, SCATTER, GATHERV, SCATTERV}
IN_PLACE = {*range(REDUCE, BARRIER), REDUCE_SCATTERV}
VECTORS = {GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, REDUCE_SCATTERV}
NO_DATA = {NOP, BARRIER}
LOCAL = {NOP, COPY, COMBINE, PUT, GET}
POINT_TO_POINT = {SEND, RECV}

SUM, MAX, BITWISE_XOR, MINLOC, AVG = 1, 4, 10, 11, 13
NONE, BYTE, INT32, FP16, FP32, FP64, COMPLEX128, BOOL, FP64_INT32 = 0, 1, 2, 4, 6, 7, 9, 16, 18
#: Operators with a datatype each, of elements of 1 to 16 bytes.
OPERATORS = ((SUM, FP32), (MAX, FP16), (BITWISE_XOR, BYTE), (MINLOC, FP64_INT32), (SUM, COMPLEX128), (SUM, FP64))

SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32)
#: The least, primes, such that do not divide, more than 32 bits of bytes and of elements, the most that fits.
COUNTS = (0, 1, 2, 5, 17, 31, 64, 97, 1000, 1009, 65536, (1 << 32) - 5, (1 << 32) + 15, (1 << 34) + 12345)


def calls_of(collective: int, seed: int, number: int) -> Iterator[Call]:
    """`number` calls of a collective, of all sizes, at least one for each count; reproducible."""
    draw = random.Random(f"{collective} {seed}")
    for i in range(number):
        size = SIZES[i % len(SIZES)] if collective not in LOCAL else draw.choice(SIZES)
        func, dtype = draw.choice(OPERATORS)
        if collective in MEAN and i % 5 == 4:
            func, dtype = AVG, draw.choice((FP16, FP32, COMPLEX128))
        count = COUNTS[(i + seed) % len(COUNTS)] if i < 4 * len(COUNTS) else draw.randrange(1 << draw.randrange(1, 36))
        in_place = collective in IN_PLACE and draw.random() < 0.5
        if collective == ALLTOALLV and not in_place:
            count = 0
        if collective in VECTORS and draw.random() < 0.1 and collective not in (ALLTOALLV, REDUCE_SCATTERV):
            count = -1
        rank = draw.randrange(size)
        yield Call(
            collective,
            count=0 if collective in NO_DATA else count,
            size=size,
            rank=rank,
            root=draw.choice((rank, draw.randrange(size))) if collective in ROOTED else 0,
            func=func if collective in REDUCING else 0,
            dtype=NONE if collective in NO_DATA else dtype,
            in_place=in_place,
            group_size=draw.choice((0, 0, 1, 2, 3, 4, size)),
        )


def programs_of(oracle: Oracle, collective: int, position: int, seed: int, number: int) -> Iterator[Call]:
    """The calls of `calls_of` that an algorithm admits."""
    for call in calls_of(collective, seed, number):
        if oracle.admits(call, position):
            yield call
