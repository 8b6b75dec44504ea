"""What every collective must give, in NumPy alone, from the inputs of all ranks.

A rank does not ask the others for their inputs: `data` makes anybody's input from its rank, so the
expectation is independent of everything that is communicated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@lru_cache(maxsize=8)
def data(case: str, rank: int, count: int) -> Array:
    """Input of a rank: whole numbers that differ from rank to rank, small enough to add exactly. Read only."""
    seed = [rank, *case.encode()]
    values = np.random.default_rng(seed).integers(-1000, 1000, count, np.int32).astype(np.float32)
    values.flags.writeable = False
    return values


def v_counts(size: int, count: int) -> list[int]:
    """Unequal counts for gatherv and its like: rank 0 has nothing, the last rank the most."""
    return [count * 2 * rank // max(size - 1, 1) for rank in range(size)]


def v_matrix(size: int, count: int) -> list[list[int]]:
    """Elements that rank i sends to rank j: another number for every pair, some of them zero."""
    return [[count * ((3 * i + j) % size) // size for j in range(size)] for i in range(size)]


def blocks(whole: Array, counts: list[int]) -> list[Array]:
    """A vector cut at the given counts."""
    return np.split(whole, np.cumsum(counts)[:-1])


def reduce(case: str, ranks: range, count: int) -> Array:
    """Sum of the inputs of these ranks."""
    total = np.zeros(count, np.float32)
    for rank in ranks:
        total += data(case, rank, count)
    return total


def gather(case: str, counts: list[int]) -> Array:
    """The inputs of all ranks, one behind the other."""
    return np.concatenate([data(case, rank, count) for rank, count in enumerate(counts)])


def alltoall(case: str, rank: int, matrix: list[list[int]]) -> Array:
    """What each rank has for this one, one behind the other; matrix[i][j] goes from i to j."""
    return np.concatenate([blocks(data(case, i, sum(row)), row)[rank] for i, row in enumerate(matrix)])
