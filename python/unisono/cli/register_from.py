"""From which length on libfabric is to register ordinary memory for a message, measured by two ranks of a job."""

from __future__ import annotations

import numpy as np

from ..communicator import Communicator
from .pair_jobs import pair_jobs, row

VARIABLE = "UNISONO_OFI_REGISTER_FROM"
LENGTHS = tuple(1 << power for power in range(16, 21))  #: bytes of a message; from the least that a job takes on
NEVER = 1 << 50  #: what the tuning file says where no length pays
ROUNDS = 12  #: of all lengths and both ways in turn, of which the best time of each counts
WARMING = 2  #: rounds before, in which sessions are made
BYTES = 8 << 20  #: of a row of messages


def measure(world: Communicator, pair: tuple[int, int], transport: str) -> int | None:
    """Collective; all ranks get the same: bytes, or `NEVER`. None if data do not go by libfabric."""
    if transport.split(",")[0] != "ofi":
        return None
    found = choice(*_times(world, pair)) if world.rank in pair else 0
    return int(world.bcast(np.array([found]), pair[0])[0])


def choice(registered: list[float], copied: list[float]) -> int:
    """The length from which on registering is never slower; times by `LENGTHS`."""
    least = NEVER
    for length, one, other in reversed(list(zip(LENGTHS, registered, copied, strict=True))):
        if one > other:
            break
        least = length
    return least


def _times(world: Communicator, pair: tuple[int, int]) -> tuple[list[float], list[float]]:
    """Seconds that a row of messages takes, by length: registered each time, and copied."""
    times = [[float("inf")] * len(LENGTHS) for _ in range(2)]
    with pair_jobs(world, pair, VARIABLE, [str(LENGTHS[0]), "off"]) as jobs:
        for number in range(WARMING + ROUNDS):
            for place, length in enumerate(LENGTHS):
                for way, job in enumerate(jobs):
                    taken = row(job, BYTES // length, length)
                    if number >= WARMING:
                        times[way][place] = min(times[way][place], taken)
    return times[0], times[1]
