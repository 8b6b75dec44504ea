"""Jobs of two ranks of a job, each with a variable of its own: what is best is measured with all of them in turn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import numpy as np

from ..communicator import Communicator
from ..context import init


@contextmanager
def pair_jobs(
    world: Communicator, pair: tuple[int, int], variable: str, values: Sequence[str]
) -> Iterator[list[Communicator]]:
    """Called by the two ranks of `pair`. For each value of the environment's variable a job of these two, in the order
    of the values; rank 0 of each is `pair[0]`.
    """
    own = pair.index(world.rank)
    with ExitStack() as stack:
        jobs = []
        for tag, value in enumerate(values):
            with _set(variable, value):
                jobs.append(stack.enter_context(init(_PairStore(world, pair[1 - own], tag), own, len(pair))).world)
        yield jobs
        for job in jobs:
            job.barrier()  # nobody leaves while the other one still sends


def row(job: Communicator, messages: int, length: int) -> float:
    """Seconds until so many messages of so many bytes have gone from rank 0 to rank 1, and a short one has come
    back.
    """
    short = np.zeros(8, np.uint8)
    long = np.zeros(length, np.uint8)
    job.barrier()
    begin = time.perf_counter()
    if job.rank == 0:
        for request in [job.send_async(long, 1) for _ in range(messages)]:
            request.wait()
        job.recv(short, 1)
    else:
        for _ in range(messages):
            job.recv(long, 0)
        job.send(short, 0)
    return time.perf_counter() - begin


@contextmanager
def _set(variable: str, value: str) -> Iterator[None]:
    """A job that is joined meanwhile finds it so."""
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


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
