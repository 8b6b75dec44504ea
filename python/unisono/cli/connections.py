"""How many connections of TCP pay for a pair of ranks, measured by two ranks of a job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..communicator import Communicator
from .pair_jobs import pair_jobs, row

VARIABLE = "UNISONO_TCP_CONNECTIONS"
COUNTS = (1, 2, 4, 8)  #: that are tried
ROUNDS = 10  #: of all counts in turn, of which the best time of each counts
WARMING = 2  #: rounds before, in which connections are made and find out how fast they may be
MESSAGES, LENGTH = 8, 1 << 20  #: in a row, and bytes of each
WORTH = 1.15  #: how many times as fast as one connection several must be
NEAR = 1.05  #: fewer connections are as good as the best ones within this


class Found(NamedTuple):
    """What was found out."""

    connections: int  #: that two ranks of two hosts are to have
    time: float  #: that a stream of long messages then takes, as a part of that by one connection


def measure(world: Communicator, pair: tuple[int, int], transport: str) -> Found:
    """Collective; all ranks get the same. Of networks other than TCP nothing is measured."""
    found = Found(1, 1.0)
    if transport.split(",")[0] == "tcp" and world.rank in pair:
        times = _times(world, pair)
        count = choice(times)
        found = Found(count, times[count] / times[1])
    count, part = world.bcast(np.array(found, np.float64), pair[0]).tolist()
    return Found(int(count), part)


def choice(times: dict[int, float]) -> int:
    """The fewest connections that are about as fast as the best ones, if these are faster than one."""
    best = min(times.values())
    if times[1] < WORTH * best:
        return 1
    return next(count for count in sorted(times) if times[count] <= NEAR * best)


def _times(world: Communicator, pair: tuple[int, int]) -> dict[int, float]:
    """Seconds that a row of long messages takes, by how many connections the pair has."""
    times = {count: float("inf") for count in COUNTS}
    with pair_jobs(world, pair, VARIABLE, [str(count) for count in COUNTS]) as jobs:
        for number in range(WARMING + ROUNDS):
            for count, job in zip(COUNTS, jobs, strict=True):
                taken = row(job, MESSAGES, LENGTH)
                if number >= WARMING:
                    times[count] = min(times[count], taken)
    return times
