"""simulated_calls.py OP BYTES CALLS: so many calls in a row, each result compared. For tools/bench-simulated-switch.

A call of `send` is a message from rank 0 to rank 1 and one back: like an all-reduce, each begins when the one before it
has come.
"""

from __future__ import annotations

import sys

import numpy as np
import unisono


def exchange(world: unisono.Communicator, mine: np.ndarray, result: np.ndarray) -> None:
    """Of ranks 0 and 1: a message there, and when it has come one back."""
    other = 1 - world.rank
    if world.rank == 0:
        world.send(mine, other)
    world.recv(result, other)
    if world.rank == 1:
        world.send(mine, other)


def main(op: str, size: int, calls: int) -> None:
    """Gives each rank numbers of its own, which have no rounding in their sums."""
    with unisono.init(timeout=1.0) as context:
        world = context.world
        given = [np.arange(size // 4, dtype=np.float32) % 97 + rank for rank in range(world.size)]
        mine, result = given[world.rank], np.zeros(size // 4, np.float32)
        world.barrier()
        for _ in range(calls):
            match op:
                case "allreduce":
                    world.allreduce(mine, result)
                case "reduce":
                    world.reduce(mine, result if world.rank == 0 else None, root=0)
                case "send":
                    if world.rank < 2:
                        exchange(world, mine, result)
                case _:
                    result[:] = given[0] if world.rank == 0 else 0
                    world.bcast(result, 0)
            wanted = {"bcast": given[0], "send": given[world.rank ^ 1]}.get(op, sum(given))
            gets = {"reduce": world.rank == 0, "send": world.rank < 2}.get(op, True)
            if gets and not np.array_equal(result, wanted):
                sys.exit(f"rank {world.rank}: {op} of {size} bytes has another result")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
