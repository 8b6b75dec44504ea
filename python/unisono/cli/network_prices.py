"""What messages between hosts take, measured by the ranks of a job."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..communicator import Communicator
from ..errors import InvalidArgumentError

BLOCKS = 40  # short and many, and the best counts: most of what disturbs comes in bursts
ROUND_TRIPS = 25  # of a block
FLIGHTS = 8  # messages in a row
SHORT, LONG = 8, 1 << 20  # bytes
NANOSECONDS = 1e9


class Prices(NamedTuple):
    """Nanoseconds, and nanoseconds a byte, as `cost/machine.hpp` has them."""

    latency: float
    message: float
    byte: float
    near_latency: float
    near_message: float

    def by(self, part: float) -> Prices:
        """The same if bytes take so great a part of the time."""
        return self._replace(byte=_rounded(self.byte * part))


class Layout(NamedTuple):
    """Which ranks are measured."""

    host_of: list[int]  #: by rank
    far: tuple[int, int]  #: on two hosts
    near: tuple[int, int] | None  #: on one; None: each host has one rank

    @property
    def hosts(self) -> int:
        """How many."""
        return len(set(self.host_of))

    def leads(self, rank: int) -> bool:
        """Whether it is the first one on its host."""
        return self.host_of.index(self.host_of[rank]) == rank


def layout_of(world: Communicator) -> Layout:
    """Collective. Raises `InvalidArgumentError` on every rank if all are on one host."""
    state = world.state
    if world.size < 2 or state.lanes:
        raise InvalidArgumentError(
            f"calibrate --network measures between hosts, and {'the only rank is' if world.size < 2 else 'all are'} on "
            "one: name hosts (`unisono calibrate --network --hosts a:2,b:2`), or start the command as a rank of a job "
            "that has several"
        )
    alone = state.groups == 1  # each rank is a host of its own
    own = world.rank if alone or state.group is None else state.group
    return layout(world.allgather(np.array([own])).ravel().tolist())


def layout(host_of: list[int]) -> Layout:
    """Ranks to be measured, of those on these hosts."""
    far = next(rank for rank, host in enumerate(host_of) if host != host_of[0])
    near = None
    for rank, host in enumerate(host_of):
        if host in host_of[:rank]:
            near = (host_of.index(host), rank)
            break
    return Layout(host_of, (0, far), near)


def measure(world: Communicator, where: Layout) -> Prices:
    """Collective. All ranks get the same; without ranks that share a host, what is near costs nothing extra."""
    half, message, byte = _between(world, where.far, with_bytes=True)
    near_half, near_message, _ = _between(world, where.near, with_bytes=False) if where.near else (0.0, 0.0, 0.0)
    return Prices(
        _rounded(max(0.0, half - 2 * message)),
        _rounded(message),
        _rounded(byte),
        _rounded(max(0.0, near_half - 2 * near_message)),
        _rounded(near_message),
    )


def transport() -> str:
    """What carries data between hosts here, first of all."""
    return os.environ.get("UNISONO_TRANSPORT") or "tcp"


def _between(world: Communicator, pair: tuple[int, int], *, with_bytes: bool) -> tuple[float, float, float]:
    """Half a round trip, what another message of a row takes, and what a byte of long ones takes."""
    if world.rank in pair:
        one = _best(world, pair, SHORT, 1)
        row = _best(world, pair, SHORT, FLIGHTS)
        found = [one / 2, max(0.0, row - one) / (FLIGHTS - 1), 0.0]
        if with_bytes:
            long_row = _best(world, pair, LONG, FLIGHTS) - _best(world, pair, LONG, 1)
            found[2] = max(0.0, long_row) / ((FLIGHTS - 1) * LONG)
    else:
        found = [0.0, 0.0, 0.0]
    half, message, byte = world.bcast(np.array(found), pair[0]).tolist()
    return half, min(message, half / 2), byte


def _best(world: Communicator, pair: tuple[int, int], length: int, messages: int) -> float:
    """Nanoseconds until so many messages have gone from one to the other, and a short one has come back."""
    one, other = pair
    out = [np.zeros(length, np.uint8) for _ in range(messages)]
    short = np.zeros(SHORT, np.uint8)

    def ask() -> None:
        for request in [world.send_async(each, other) for each in out]:
            request.wait()
        world.recv(short, other)

    def answer() -> None:
        for each in out:
            world.recv(each, one)
        world.send(short, one)

    turn: Callable[[], None] = ask if world.rank == one else answer
    turns = max(1, ROUND_TRIPS * SHORT // length) if length > SHORT else ROUND_TRIPS
    turn()
    best = float("inf")
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for _ in range(turns):
            turn()
        best = min(best, (time.perf_counter() - begin) / turns)
    return NANOSECONDS * best


def _rounded(value: float) -> float:
    """Three digits say all that such a measurement knows, and files stay readable."""
    return float(f"{value:.3g}")
