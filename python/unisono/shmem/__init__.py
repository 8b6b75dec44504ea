"""OpenSHMEM in Python: arrays in memory that every PE reaches, put and get, atomics, signals, teams.

>>> import numpy as np
>>> from unisono import shmem
>>> with shmem.init() as world:
...     box = shmem.zeros(4)
...     shmem.put(box, np.full(4, float(world.my_pe)), (world.my_pe + 1) % world.n_pes)
...     shmem.barrier_all()

An array that `empty`, `zeros` or `array` made is *symmetric*: every PE has one, and where a call takes one, or a
contiguous part of one, together with `pe`, that PE's is meant. docs/shmem.md is the introduction.
"""

from ._access import get, put, put_signal
from ._atomics import (
    atomic_add,
    atomic_and,
    atomic_compare_swap,
    atomic_fetch,
    atomic_fetch_add,
    atomic_or,
    atomic_set,
    atomic_swap,
    atomic_xor,
)
from ._job import barrier_all, fence, finalize, init, my_pe, n_pes, quiet
from ._memory import array, empty, free, peer_array, zeros
from ._teams import Team
from ._waits import test, wait_until, wait_until_any

__all__ = [
    "Team",
    "array",
    "atomic_add",
    "atomic_and",
    "atomic_compare_swap",
    "atomic_fetch",
    "atomic_fetch_add",
    "atomic_or",
    "atomic_set",
    "atomic_swap",
    "atomic_xor",
    "barrier_all",
    "empty",
    "fence",
    "finalize",
    "free",
    "get",
    "init",
    "my_pe",
    "n_pes",
    "peer_array",
    "put",
    "put_signal",
    "quiet",
    "test",
    "wait_until",
    "wait_until_any",
    "zeros",
]
