"""streams.py BYTES COMMUNICATORS: all-reduces of a job until its standard input ends, on all communicators at once, on
each one after the other. Rank 0 prints a JSON line with the times at which they ended, of each communicator.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import numpy as np
import unisono


def main() -> None:
    """What one rank does."""
    size, many = int(sys.argv[1]), int(sys.argv[2])
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with unisono.init() as context:
        world = context.world
        communicators = [world.dup() for _ in range(many)]
        ends: list[list[float]] = [[] for _ in communicators]
        given = [np.full(size // 4, world.rank + 1, np.float32) for _ in communicators]
        got = [np.empty_like(one) for one in given]
        requests = [one.allreduce_async(*buffers) for one, *buffers in zip(communicators, given, got, strict=True)]
        right, ended = True, [False] * many
        while not all(ended):
            for i, communicator in enumerate(communicators):
                if ended[i]:
                    continue
                requests[i].wait()
                ends[i].append(time.time())
                right = right and bool((got[i][1:] == world.size * (world.size + 1) / 2).all())
                # Rank 0 says in its first element that this is the last call; so all end with the same one.
                ended[i] = bool(got[i][0] < 0)
                if world.rank == 0 and over.is_set():
                    given[i][0] = -(2**20)
                if not ended[i]:
                    requests[i] = communicator.allreduce_async(given[i], got[i])
        if world.rank == 0:
            print(json.dumps({"ends": ends, "carrier": communicators[0].state.carrier, "verified": right}))


main()
