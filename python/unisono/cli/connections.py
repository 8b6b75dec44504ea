"""How many connections of TCP pay for a pair of ranks, measured by two ranks of a job."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from ..communicator import Communicator
from ..context import init

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
    own = pair.index(world.rank)
    times = {count: float("inf") for count in COUNTS}
    with ExitStack() as stack:
        jobs = {}
        for count in COUNTS:
            with _connections(count):
                store = _PairStore(world, pair[1 - own], count)
                jobs[count] = stack.enter_context(init(store, own, len(pair))).world
        for number in range(WARMING + ROUNDS):
            for count, job in jobs.items():
                taken = _row(job)
                if number >= WARMING:
                    times[count] = min(times[count], taken)
        for job in jobs.values():
            job.barrier()  # nobody leaves while the other one still sends
    return times


def _row(job: Communicator) -> float:
    """Seconds until a row of messages has gone from rank 0 to rank 1, and a short one has come back."""
    short = np.zeros(8, np.uint8)
    long = np.zeros(LENGTH, np.uint8)
    job.barrier()
    begin = time.perf_counter()
    if job.rank == 0:
        for request in [job.send_async(long, 1) for _ in range(MESSAGES)]:
            request.wait()
        job.recv(short, 1)
    else:
        for _ in range(MESSAGES):
            job.recv(long, 0)
        job.send(short, 0)
    return time.perf_counter() - begin


@contextmanager
def _connections(count: int) -> Iterator[None]:
    """A job that is joined meanwhile has so many."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


class _PairStore:
    """Two ranks of a job meet for another one: what one of them says goes to the other as a message."""

    def __init__(self, world: Communicator, peer: int, tag: int) -> None:
        self._world = world
        self._peer = peer
        self._tag = tag  #: of this job's messages; some of them are never asked for
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: Any) -> None:
        self._values[key] = bytes(value)
        self._world.send_object((key, bytes(value)), self._peer, self._tag)

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        deadline = time.monotonic() + timeout.total_seconds()
        while any(key not in self._values for key in keys):
            seconds = max(0.001, deadline - time.monotonic())
            key, value = self._world.recv_object(self._peer, self._tag, timeout=seconds)
            self._values[key] = value

    def get(self, key: str) -> bytes:
        return self._values[key]
