"""calls.py BYTES CALLS WHAT: all-reduces of a job, one after the other; rank 0 prints a JSON line with what they took.

CALLS 0: until the job is ended, and nothing is printed.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import unisono

WARM = 50


def main() -> None:
    """What one rank does."""
    size, calls, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with unisono.init() as context:
        world = context.world
        given = np.full(size // 4, world.rank + 1, np.float32)
        got = np.empty_like(given)
        expected = world.size * (world.size + 1) / 2
        times: list[float] = []
        while not calls or len(times) < calls + WARM:
            begin = time.perf_counter()
            world.allreduce(given, got)
            if calls:
                times.append(time.perf_counter() - begin)
        if world.rank == 0:
            quick, slow = np.percentile(times[WARM:], (50, 99)) * 1e6
            print(
                json.dumps(
                    {
                        "bench": "switch", "what": what, "op": "allreduce", "ranks": world.size, "bytes": size,
                        "carrier": world.state.carrier, "median_us": round(float(quick), 1),
                        "p99_us": round(float(slow), 1), "verified": bool((got == expected).all()),
                    }
                )
            )  # fmt: skip


main()
