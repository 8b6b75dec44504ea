"""The halo exchange of shmem.c in Python: `unisono run -n 4 apps/halo/halo.py`."""

from __future__ import annotations

import sys

import numpy as np
from unisono import shmem

ROWS, COLUMNS, STEPS = 240, 320, 100


def initial(first: int, last: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Rows first - 1 to last of the plate; beyond it stand zeros."""
    row, column = np.mgrid[first - 1 : last + 1, :COLUMNS]
    return np.where((row < 0) | (row >= ROWS), 0.0, (row * 7 + column * 13) % 101)


def step(
    to: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    grid: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    first: int,
    last: int,
) -> None:
    """One step of all rows but the halo; the plate's edge keeps its temperature."""
    to[1:-1] = grid[1:-1]
    inner = slice(1 + (first == 0), len(grid) - 1 - (last == ROWS))
    up, down = slice(inner.start - 1, inner.stop - 1), slice(inner.start + 1, inner.stop + 1)
    to[inner, 1:-1] = 0.25 * (grid[up, 1:-1] + grid[down, 1:-1] + grid[inner, :-2] + grid[inner, 2:])


def main() -> int:
    """Exchanges, and compares with a run of one process: bit for bit."""
    with shmem.init() as world:
        me, n = world.my_pe, world.n_pes
        bounds = [ROWS * pe // n for pe in range(n + 1)]
        first, last = bounds[me], bounds[me + 1]
        most = max(np.diff(bounds)) + 2
        plates = [shmem.empty((int(most), COLUMNS)) for _ in range(2)]  # of one size on all PEs
        grids = [plate[: last - first + 2] for plate in plates]
        for grid in grids:
            grid[...] = initial(first, last)
        signals = shmem.zeros(2, np.uint64)  # from above, from below: steps whose row has come
        for turn in range(STEPS):
            to = grids[(turn + 1) % 2]
            step(to, grids[turn % 2], first, last)
            plate = plates[(turn + 1) % 2]
            if me > 0:
                shmem.put_signal(plate[first - bounds[me - 1] + 1], to[1], signals[1:], turn + 1, me - 1)
                shmem.wait_until(signals[:1], ">=", turn + 1)
            if me < n - 1:
                shmem.put_signal(plate[0], to[-2], signals[:1], turn + 1, me + 1)
                shmem.wait_until(signals[1:], ">=", turn + 1)
        serial = [initial(0, ROWS), initial(0, ROWS)]
        for turn in range(STEPS):
            step(serial[(turn + 1) % 2], serial[turn % 2], 0, ROWS)
        right = np.array_equal(grids[STEPS % 2][1:-1], serial[STEPS % 2][first + 1 : last + 1])
        all_right = bool(world.min(int(right)))
        if me == 0:
            print(f"{n} PEs: {'the same as' if all_right else 'NOT'} the serial run")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
